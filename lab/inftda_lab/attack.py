"""Attacks on disclosure control without a guarantee: what follows from published numbers.

    python -m inftda_lab.attack FOLDER [FOLDER ...] [--methods cbs bfs stats-nz ons suppress:10]

A folder has `flows.parquet` and `areas.csv`. Tables are published at every level of the tree, with
totals of the finest areas of each end.

Arithmetic: every number is the sum of its children, and every total the sum of its leaves. The
bounds that a reader knows of each are propagated along these sums until nothing changes. Along the
tree alone this finds all that follows: no two sums share more than one number, and none in a
circle. With totals it finds at least a part: linear programming could find more.

Two editions: a reader who has the table with and without one person sees where that person's trip
went if its number changes. A person is taken to have one trip.

All results are about the true counts, and as confidential as these.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from inftda.confidential.methods import (
    Method,
    change_by_key,
    find_method,
    hide_in_families,
    hide_small,
    perturbation_matrix,
    round_to_nearest,
)
from inftda_lab.levels import levels_of
from inftda_lab.tables import Numbers, Table, read_table

DEFAULT_METHODS: Final = ("cbs", "bfs", "stats-nz", "ons", "suppress:10")
#: Rounds of carrying bounds from totals to the tree; after a few hardly anything changes.
MAX_ROUNDS: Final = 100
#: Records that are looked at together, so that memory does not grow with the table.
_RECORDS_AT_ONCE: Final = 1 << 20

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Nodes:
    """True counts of the cells of a level that have trips, family by family.

    Attributes:
        count: of each cell.
        offsets: slices of the children of each cell of the level above.
        missing: how many possible children of each cell above have no trips.
        of_leaf: the cell of each flow of the table.
    """

    count: Numbers
    offsets: Numbers
    missing: Numbers
    of_leaf: Numbers


def count_nodes(table: Table) -> list[Nodes]:
    """All levels below the root; the last has the flows themselves."""
    found: list[Nodes] = []
    of_leaf, ends = np.zeros(len(table.count), np.int64), (table.origin, table.destination)
    for above, level in pairwise(levels_of(table.areas)):
        axis = 0 if level.depths[0] > above.depths[0] else 1
        depth, areas = above.depths[axis], table.areas
        n_children = np.diff(areas.child_offsets(depth)).astype(np.int64)
        if n_children.max() == 1:  # the cells of the level above
            continue
        cell = level.cells(*ends)
        order = np.lexsort((cell, of_leaf))
        is_new = np.diff(cell[order], prepend=-1) != 0
        first, parent = order[is_new], of_leaf[order[is_new]]
        of_leaf = np.empty_like(of_leaf)
        of_leaf[order] = np.cumsum(is_new) - 1
        count = np.zeros(len(first), np.int64)
        np.add.at(count, of_leaf, table.count)
        starts = np.flatnonzero(np.diff(parent, prepend=-1))
        refined = areas.ancestor(areas.depth, depth)[ends[axis][first[starts]]]
        offsets = np.append(starts, len(parent))
        missing = n_children[refined] - np.diff(offsets)
        found.append(Nodes(count, offsets, missing, of_leaf))
    return found


@dataclass(frozen=True, repr=False)
class Shown:
    """One table as it is published, and what a reader knows of each number.

    Attributes:
        true: the true counts.
        value: what is published; 0 where a cell is hidden.
        is_hidden: which cells are published as hidden.
        low: lower bounds.
        high: upper bounds.
    """

    true: Numbers
    value: Numbers
    is_hidden: Flags
    low: Numbers
    high: Numbers


@dataclass(frozen=True, repr=False)
class Published:
    """All tables of one edition.

    Attributes:
        table: what they were made from.
        nodes: its true counts below the root.
        levels: the root, and each level below it.
        totals: of the finest areas of each end; cells are all areas.
        max_count_shown_as_zero: the largest true count that may be published as zero.
        n_reidentified: trips whose removal changes the number of their own flow.
        n_seen_anywhere: trips whose removal changes any number below the root.
    """

    table: Table
    nodes: list[Nodes]
    levels: list[Shown]
    totals: list[Shown]
    max_count_shown_as_zero: int
    n_reidentified: int
    n_seen_anywhere: int


def publish(table: Table, method: Method, random: np.random.Generator) -> Published:
    """All tables of one edition by a method of `inftda compare`."""
    nodes, n = count_nodes(table), table.areas.n_areas(table.areas.depth)
    totals = [np.zeros(n, np.int64) for _ in range(2)]
    for sums, areas in zip(totals, (table.origin, table.destination), strict=True):
        np.add.at(sums, areas, table.count)
    if method.kind.show is hide_small:
        return _suppressed(table, nodes, totals, method)
    if method.kind.show is change_by_key:
        return _changed_by_keys(table, nodes, totals, method, random)
    return _rounded(table, nodes, totals, method, random)


def _suppressed(
    table: Table, nodes: list[Nodes], totals: list[Numbers], method: Method
) -> Published:
    is_secondary, most = method.kind.is_secondary, method.number

    def shown(true: Numbers, is_hidden: Flags) -> Shown:
        # Zeros are published; what is hidden for the sake of others may be any number.
        largest = table.total if is_secondary else most - 1
        low, high = np.where(is_hidden, 1, true), np.where(is_hidden, largest, true)
        return Shown(true, np.where(is_hidden, 0, true), is_hidden, low, high)

    levels = [shown(np.array([table.total]), np.zeros(1, bool))]
    for level in nodes:
        is_hidden = level.count < most
        if is_secondary:
            above = levels[-1].is_hidden
            is_hidden = hide_in_families(level.count, level.offsets, above, most)
        levels.append(shown(level.count, is_hidden))
    tables = [shown(true, (true > 0) & (true < most)) for true in totals]
    seen = _seen(table, nodes, [~level.is_hidden for level in levels[1:]])
    return Published(table, nodes, levels, tables, 0, *seen)


def _rounded(
    table: Table,
    nodes: list[Nodes],
    totals: list[Numbers],
    method: Method,
    random: np.random.Generator,
) -> Published:
    base, is_nearest = method.number, method.kind.show is round_to_nearest
    below, above = (base // 2, (base - 1) // 2) if is_nearest else (base - 1, base - 1)

    def rounded(true: Numbers, chance: NDArray[np.float64]) -> Numbers:
        if is_nearest:
            return round_to_nearest(true, base, random)
        down, rest = np.divmod(true, base)
        return np.asarray(base * (down + (chance * base < rest)), np.int64)

    def shown(true: Numbers) -> tuple[Shown, Flags]:
        """A table, and where it would differ with one trip less."""
        chance = random.random(len(true))
        value = rounded(true, chance)
        low, open_ = np.maximum(value - below, 0), np.zeros(len(true), bool)
        is_changed = value != rounded(true - 1, chance)
        return Shown(true, value, open_, low, value + above), is_changed

    made = [shown(true) for true in (np.array([table.total]), *(at.count for at in nodes))]
    levels, changed = [one for one, _ in made], [flags for _, flags in made]
    seen = _seen(table, nodes, changed[1:])
    return Published(table, nodes, levels, [shown(true)[0] for true in totals], above, *seen)


def _seen(table: Table, nodes: list[Nodes], changed: Sequence[Flags]) -> tuple[int, int]:
    """Trips that are seen at their flow, and at any level, if one of them goes.

    `changed` says of each cell below the root whether its number changes. That of the root tells
    nothing about where the trip went.
    """
    if not nodes:
        return 0, 0
    flags = [is_changed[level.of_leaf] for is_changed, level in zip(changed, nodes, strict=True)]
    at_leaf, anywhere = table.count[flags[-1]].sum(), table.count[np.any(flags, axis=0)].sum()
    return int(at_leaf), int(anywhere)


def _changed_by_keys(
    table: Table,
    nodes: list[Nodes],
    totals: list[Numbers],
    method: Method,
    random: np.random.Generator,
) -> Published:
    """Every record has a key; the sum of the keys of a cell picks its change."""
    most = method.number
    matrix = perturbation_matrix(most, **{"variance": 2.0, **method.options})
    record_keys = random.integers(0, 1 << 64, table.total, np.uint64)
    leaf_of_record = np.repeat(np.arange(len(table.count)), table.count)

    def shown(true: Numbers, keys: NDArray[np.uint64]) -> Shown:
        value = true + change_of(true, keys, matrix)
        # Zeros stay zeros, so a number above 0 is of a count above 0.
        low = np.where(value > 0, np.maximum(value - most, 1), 0)
        return Shown(true, value, np.zeros(len(true), bool), low, value + most)

    keys = [record_keys.sum(keepdims=True, dtype=np.uint64)]
    for level in nodes:
        keys.append(np.zeros(len(level.count), np.uint64))
        np.add.at(keys[-1], level.of_leaf[leaf_of_record], record_keys)  # modulo 2^64
    counts = [np.array([table.total]), *(level.count for level in nodes)]
    levels = [shown(true, own) for true, own in zip(counts, keys, strict=True)]
    tables = [shown(true, random.integers(0, 1 << 64, len(true), np.uint64)) for true in totals]
    n_at_leaf = n_anywhere = 0
    for start in range(0, table.total, _RECORDS_AT_ONCE):
        here = slice(start, start + _RECORDS_AT_ONCE)
        leaf, key = leaf_of_record[here], record_keys[here]
        is_changed = []
        for level, own, sums in zip(nodes, levels[1:], keys[1:], strict=True):
            node = level.of_leaf[leaf]
            fewer = own.true[node] - 1
            without = fewer + change_of(fewer, sums[node] - key, matrix)
            is_changed.append(without != own.value[node])
        if nodes:
            n_at_leaf += int(np.count_nonzero(is_changed[-1]))
            n_anywhere += int(np.count_nonzero(np.any(is_changed, axis=0)))
    return Published(table, nodes, levels, tables, most, n_at_leaf, n_anywhere)


def change_of(true: Numbers, key: NDArray[np.uint64], matrix: NDArray[np.float64]) -> Numbers:
    """How the sum of its keys changes each count."""
    most = len(matrix) - 1
    row, chance = np.minimum(true, most), (key >> np.uint64(11)).astype(np.float64) / (1 << 53)
    stacked = (matrix + 2.0 * np.arange(most + 1)[:, None]).ravel()
    at = np.searchsorted(stacked, chance + 2.0 * row, side="right") - row * matrix.shape[1]
    return np.asarray(np.minimum(at, 2 * most) - most, np.int64)


@dataclass(frozen=True, slots=True)
class Attack:
    """Results of both attacks. Confidential.

    Attributes:
        trips: in the table, one for each person.
        hidden_cells: finest cells that are published as hidden.
        hidden_trips: trips in them.
        exact_by_levels: finest cells that are not published as they are, but follow exactly from
            the numbers of all levels.
        exact_with_totals: the same with totals of the finest areas, at least.
        exact_ones: of these, cells of a single trip: one person is known.
        n_reidentified: trips of which two editions show origin and destination exactly.
        n_seen_anywhere: trips of which they show something below the grand total.
    """

    trips: int
    hidden_cells: int
    hidden_trips: int
    exact_by_levels: int
    exact_with_totals: int
    exact_ones: int
    n_reidentified: int
    n_seen_anywhere: int


def attack(published: Published) -> Attack:
    """Both attacks on one edition."""
    leaves = published.levels[-1]
    bounds = Bounds(published)
    was_open = leaves.low < leaves.high  # other numbers are published as they are
    bounds.along_tree()
    by_levels = int(np.count_nonzero(was_open & bounds.is_exact))
    bounds.everywhere()
    exact = was_open & bounds.is_exact
    return Attack(
        trips=published.table.total,
        hidden_cells=int(np.count_nonzero(leaves.is_hidden)),
        hidden_trips=int(leaves.true[leaves.is_hidden].sum()),
        exact_by_levels=by_levels,
        exact_with_totals=int(np.count_nonzero(exact)),
        exact_ones=int(np.count_nonzero(exact & (leaves.true == 1))),
        n_reidentified=published.n_reidentified,
        n_seen_anywhere=published.n_seen_anywhere,
    )


class Bounds:
    """What a reader of an edition knows of every cell: at least `low`, at most `high`, by level."""

    def __init__(self, published: Published) -> None:
        table, nodes, most = (
            published.table, published.nodes, published.max_count_shown_as_zero,
        )  # fmt: skip
        whole = int(published.levels[0].high[0])  # no cell is larger
        self.low = [level.low.copy() for level in published.levels]
        self.high = [np.minimum(level.high, whole) for level in published.levels]
        self._totals = published.totals
        self._offsets = [level.offsets for level in nodes]
        #: The most that cells without a count add up to, by parent and by finest area.
        self._slack = [most * level.missing for level in nodes]
        of_leaf = nodes[-1].of_leaf if nodes else np.zeros(len(table.count), np.int64)
        self._areas, self._across = [], []
        for ends in (table.origin, table.destination):
            area = np.zeros(len(self.low[-1]), np.int64)
            area[of_leaf] = ends
            self._areas.append(area)
            n = table.areas.n_areas(table.areas.depth)
            missing = n - np.bincount(ends, minlength=n)
            self._across.append(np.minimum(missing * most, whole).astype(np.int64))

    @property
    def is_exact(self) -> Flags:
        """Which leaves are known exactly."""
        return np.asarray(self.low[-1] == self.high[-1])

    def along_tree(self) -> None:
        """Carry bounds up and down the tree, once each, which is enough."""
        for i in range(len(self._offsets) - 1, -1, -1):
            low, high = self._sums(i)
            self.low[i] = np.maximum(self.low[i], low)
            self.high[i] = np.minimum(self.high[i], high)
        for i, offsets in enumerate(self._offsets):
            (low, high), n = self._sums(i), np.diff(offsets)
            self._tighten(i + 1, np.repeat(self.low[i] - high, n), np.repeat(self.high[i] - low, n))

    def everywhere(self) -> None:
        """Carry bounds along the tree and between totals and leaves until nothing changes."""
        for _ in range(MAX_ROUNDS):
            before = self._width()
            for area, total, slack in zip(self._areas, self._totals, self._across, strict=True):
                sums = np.zeros((2, len(total.low)), np.int64)
                np.add.at(sums[0], area, self.low[-1])
                np.add.at(sums[1], area, self.high[-1])
                low, high = total.low - (sums[1] + slack), total.high - sums[0]
                self._tighten(-1, low[area], high[area])
            self.along_tree()
            if self._width() == before:
                return

    def _sums(self, i: int) -> tuple[Numbers, Numbers]:
        """Of each parent, what its children come to at least and at most."""
        first = self._offsets[i][:-1]
        low = np.add.reduceat(self.low[i + 1], first)
        return low, np.add.reduceat(self.high[i + 1], first) + self._slack[i]

    def _tighten(self, i: int, low: Numbers, high: Numbers) -> None:
        """A cell is its sum less all others: their bounds without its own."""
        low, high = low + self.high[i], high + self.low[i]
        self.low[i], self.high[i] = np.maximum(self.low[i], low), np.minimum(self.high[i], high)

    def _width(self) -> int:
        return sum(int((high - low).sum()) for low, high in zip(self.low, self.high, strict=True))


def attack_table(table: Table, method: str, seed: int = 1) -> Attack:
    """Both attacks on one edition of a table by a method of `inftda compare`."""
    return attack(publish(table, find_method(method), np.random.default_rng(seed)))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what is found, one line for each table and method."""
    parser = argparse.ArgumentParser(prog="inftda_lab.attack", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, help="flows.parquet, areas.csv")
    parser.add_argument("--methods", nargs="*", default=list(DEFAULT_METHODS))
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    lines = [["table", "method", *(one.name for one in fields(Attack))]]
    for folder in given.folders:
        for method in given.methods:
            found = attack_table(read_table(folder), method, given.seed)
            lines.append([folder.name, method, *map(str, astuple(found))])
    sys.stdout.writelines("\t".join(line) + "\n" for line in lines)


if __name__ == "__main__":
    main()
