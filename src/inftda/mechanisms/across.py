"""The level step with off-tree tables: groups are divided with prices.

Everything here that touches true counts adds noise to them at once, at the scale that the plan
pays for; what is done with noisy counts is in `inftda.mechanisms.prices`.

Privacy:
    Every off-tree table partitions the trips and is measured once: each of its cells belongs to
    one group of one step. Which cells are drawn depends on what was released before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inftda.kernels import kernel
from inftda.lattice import Table, chains
from inftda.mechanisms.prices import (
    HARD,
    Candidates,
    Cells,
    Map,
    balance,
    candidate_depth,
    check_exact,
    count_candidates_kernel,
    keep_positive_kernel,
    write_candidates_kernel,
)
from inftda.mechanisms.step import (
    Divided,
    Drawn,
    LevelStep,
    Nodes,
    join,
)
from inftda.noise.sampler import Sampler
from inftda.optimize.segments import Survivors
from inftda.tree import TreeLevel
from inftda.truth import Children


@dataclass(frozen=True)
class MeasuredTable:
    """An off-tree table of a step and the noise that the plan pays for.

    Attributes:
        table: the table.
        sampler: its noise.
        trust: variance of the noise of the step's children over that of the table.
        sigma2: variance parameter of its noise.
    """

    table: Table
    sampler: Sampler
    trust: float
    sigma2: Fraction

    @property
    def is_one_way(self) -> bool:
        """Whether all axes but the refined one are summed up."""
        return self.table.across is None


@dataclass(frozen=True)
class Across:
    """What is measured at a step beside the children.

    Attributes:
        tables: at least one.
        sigma: noise scale of the children.
        totals: int64[areas], the one-way table as it was measured, of all areas that the
            refined axis has at the step's level; None if the step has no such table.
    """

    tables: tuple[MeasuredTable, ...]
    sigma: float
    totals: NDArray[np.int64] | None = None

    @property
    def one_way(self) -> MeasuredTable | None:
        """The one-way table, if there is one."""
        return next((known for known in self.tables if known.is_one_way), None)


@dataclass(frozen=True)
class AcrossStep:
    """A level step with off-tree tables, carried out.

    Attributes:
        step: the step.
        across: what is measured beside it.
    """

    step: LevelStep
    across: Across

    @classmethod
    def of(cls, step: LevelStep) -> "AcrossStep":
        """A step that has tables off the tree."""
        if step.across is None:
            raise ValueError("the step measures nothing across")
        return cls(step, step.across)

    def measure_totals(self, margin: NDArray[np.int64]) -> NDArray[np.int64]:
        """The one-way table, noisy: all its cells, also below areas that were dropped.

        Args:
            margin: int64[finest areas], the true trips of every area on the refined axis.
        """
        level = self.step.level
        number = next(n for n, known in enumerate(self.across.tables) if known.is_one_way)
        sums = level.axes[level.axis].hierarchy.sum_up(margin, level.depths[level.axis])
        totals = self._noise(number, 0, len(sums))
        add_totals(totals, sums)
        return totals

    def divide_groups(
        self,
        items: Sequence[tuple[int, Nodes]],
        truth: Children,
        *,
        threads: int = 1,
        map_: Map = map,
        is_kept: bool = False,
    ) -> Divided:
        """Children of whole groups, in group order.

        Args:
            items: number and parents of each item that the groups are cut into.
            truth: true children of these groups, at least.
            threads: how many there are to divide the groups on; the result does not depend on it.
            map_: maps a function over items on these threads.
            is_kept: whether the noisy counts are wanted.
        """
        parents = join([part for _, part in items])
        groups = Groups.of(self.step.level, parents)
        chained = self._chains(len(parents.value) / len(groups.area))
        depth = candidate_depth(self.across.sigma, is_hard=chained.is_hard)

        def find(item: tuple[int, Nodes]) -> tuple[Candidates, NDArray[np.int64]]:
            number, some = item
            return self._candidates(number, some, truth, depth, is_kept=is_kept)

        parts, noisy = zip(*map_(find, items), strict=True)
        candidates = _join(parts)
        drawn = [self.step.drawn(parents, np.concatenate(noisy))] if is_kept else []
        cells = self._measure(items[0][0], groups, truth, chained, drawn if is_kept else None)
        balance(candidates, cells, reach=self.across.sigma, threads=threads, map_=map_)
        offsets = np.empty_like(candidates.offsets)
        keep_positive_kernel(candidates, offsets)
        survivors = Survivors(candidates.column, candidates.value, offsets)
        children = self.step.children(parents, survivors)
        n_draws = int(candidates.size[candidates.size > 1].sum())
        return Divided(children, n_draws, tuple(drawn))

    def drawn_totals(self) -> tuple[Drawn, ...]:
        """The one-way table as it was measured, if the step has one."""
        level, one_way, totals = self.step.level, self.across.one_way, self.across.totals
        if one_way is None or totals is None:
            return ()
        n = len(level.child_offsets) - 1
        areas = [np.zeros(n, np.int32) for _ in level.axes]
        areas[level.axis] = np.arange(n, dtype=np.int32)
        return (Drawn.below(level, one_way.table.depths, tuple(areas), totals),)

    def _candidates(
        self, item: int, parents: Nodes, truth: Children, depth: int, *, is_kept: bool
    ) -> tuple[Candidates, NDArray[np.int64]]:
        """Children of an item's parents that may become positive, and all noisy counts.

        Args:
            item: its number.
            parents: all of them.
            truth: true children.
            depth: how far below the least positive count candidates go.
            is_kept: whether the noisy counts are wanted; there are none if not.
        """
        n = len(parents.value)
        noisy = self.step.draw(item, parents, truth)
        # A copy: the optimiser overwrites what it is given, and x is needed again.
        survivors = self.step.optimized(noisy.x.copy(), noisy, parents)
        sums, least, bound = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
        offsets = np.empty(n + 1, np.int64)
        largest = count_candidates_kernel(
            noisy.x, noisy.offsets, survivors.index, survivors.offsets, depth,
            sums, least, bound, offsets,
        )  # fmt: skip
        size = np.maximum(np.diff(noisy.offsets), 1)
        check_exact(largest, reach=self.across.sigma, total=parents.value, size=size)
        column = np.empty(offsets[-1], np.int32)
        key, value = np.empty(offsets[-1], np.int64), np.empty(offsets[-1], np.int64)
        write_candidates_kernel(noisy.x, noisy.offsets, bound, noisy.seeds, offsets, column, key)
        candidates = Candidates(offsets, column, key, value, parents.value, size, sums, least)
        return candidates, (noisy.x if is_kept else noisy.x[:0]).copy()

    def _chains(self, parents_per_group: float) -> "Chained":
        """The tables by their index, in chains; a hard total is a chain of its own."""
        tables = [known.table for known in self.across.tables]
        found = [[tables.index(table) for table in chain] for chain in chains(tables)]
        head = self.across.tables[found[0][0]]
        is_hard = head.table.is_hard(head.trust, parents_per_group)
        if is_hard:
            found = [found[0][:1], *([found[0][1:]] if found[0][1:] else []), *found[1:]]
        return Chained(found, is_hard)

    def _measure(
        self,
        item: int,
        groups: "Groups",
        truth: Children,
        chained: "Chained",
        drawn: list[Drawn] | None = None,
    ) -> Cells:
        """Noisy cells of the off-tree tables, wherever the groups have a parent.

        Those that are drawn here, and not before as the one-way table is, are added to `drawn`.
        """
        row: list[NDArray[np.int64]] = []
        parts: list[_TableCells] = []
        n_rows = 0
        for chain in chained.chains:
            is_hard = chained.is_hard and chain is chained.chains[0]
            finer: Rows | None = None
            for number in reversed(chain):
                known = self.across.tables[number]
                rows = groups.rows(known.table)
                measured = self._cells_of(number, item, groups, rows, truth, is_hard)
                if finer is None:
                    row.append(rows.of_parents + n_rows)
                else:
                    parts[-1].above[finer.of_parents] = rows.of_parents + n_rows
                trust = HARD if is_hard else known.trust
                parts.append(_TableCells.of(groups, rows, measured, trust, is_finest=finer is None))
                if drawn is not None and not known.is_one_way:
                    drawn.append(self._drawn(known.table, groups, rows, measured))
                n_rows += len(rows.group)
                finer = rows
        above, sizes, is_finest, measured, trusts = map(np.concatenate, zip(*parts, strict=True))
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        return Cells(np.stack(row), above, is_finest, offsets, measured, trusts)

    def _cells_of(  # noqa: PLR0913, PLR0917 - private
        self,
        number: int,
        item: int,
        groups: "Groups",
        rows: "Rows",
        truth: Children,
        is_hard: bool,  # noqa: FBT001 - private
    ) -> NDArray[np.int64]:
        """Noisy cells of one table: the one-way table was measured before, others are now."""
        if self.across.totals is not None and self.across.tables[number].is_one_way:
            totals = groups.totals(self.across.totals)
            return groups.agreed(totals) if is_hard else totals
        sizes = groups.n_children[rows.group]
        cells = self._noise(number, item, int(sizes.sum()))
        shift, bits = self.step.level.key_field(rows.axis)
        add_sums_kernel(
            cells,
            np.cumsum(sizes) - sizes,
            rows.of_cells,
            groups.area,
            self.step.level.key_field(self.step.level.axis)[0],
            (shift, (1 << bits) - 1, rows.ancestor),
            truth[1:],
        )
        return cells

    def _drawn(
        self, table: Table, groups: "Groups", rows: "Rows", value: NDArray[np.int64]
    ) -> Drawn:
        """Noisy cells of a two-way table, with their areas."""
        level = self.step.level
        areas = [np.zeros(len(rows.group), np.int32) for _ in level.axes]
        areas[level.axis] = groups.area[rows.group]
        areas[rows.axis] = rows.across
        return Drawn.below(level, table.depths, tuple(areas), value)

    def _noise(self, number: int, item: int, n_cells: int) -> NDArray[np.int64]:
        """Noise for some cells of a table."""
        cells = np.empty(n_cells, np.int64)
        stream = self.step.source.stream(self.step.level.index, item, number)
        self.across.tables[number].sampler.fill(cells, stream)
        return cells


class _TableCells(NamedTuple):
    """Rows of one table as they go into `Cells`."""

    above: NDArray[np.int64]
    sizes: NDArray[np.int64]
    is_finest: NDArray[np.bool_]
    measured: NDArray[np.int64]
    trust: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        groups: "Groups",
        rows: "Rows",
        measured: NDArray[np.int64],
        trust: float,
        *,
        is_finest: bool,
    ) -> "_TableCells":
        """Rows without any above them yet."""
        n, sizes = len(rows.group), groups.n_children[rows.group]
        return cls(np.full(n, -1), sizes, np.full(n, is_finest), measured, np.full(n, trust))


class Chained(NamedTuple):
    """Tables of a step by their index, in chains, each coarse to fine.

    Attributes:
        chains: one or more.
        is_hard: whether the first is the one-way table alone, which sums have to agree with.
    """

    chains: list[list[int]]
    is_hard: bool


@dataclass(frozen=True)
class Rows:
    """Rows of one table that hold parents of some groups: a group and one area across each.

    Attributes:
        axis: the axis across; that of the groups for a one-way table, which has no other.
        ancestor: int32, the area across of each area that a parent may have on that axis.
        group: int64[rows].
        across: int32[rows], the area across.
        of_parents: int64[parents], the row that holds each.
        of_cells: int64[groups, areas across], the row of each; -1 if no parent is there.
    """

    axis: int
    ancestor: NDArray[np.int32]
    group: NDArray[np.int64]
    across: NDArray[np.int32]
    of_parents: NDArray[np.int64]
    of_cells: NDArray[np.int64]


@dataclass(frozen=True, repr=False)
class Groups:
    """Some groups of parents, which know where their truth is. Confidential.

    Attributes:
        level: the level of the children.
        parents: all parents of the groups, in group order.
        area: int32[groups], the area that each refines.
        of_parents: int64[parents], the group of each.
    """

    level: TreeLevel
    parents: Nodes
    area: NDArray[np.int32]
    of_parents: NDArray[np.int64]

    @classmethod
    def of(cls, level: TreeLevel, parents: Nodes) -> "Groups":
        """The groups of some parents in group order."""
        refined = parents.areas[level.axis]
        is_first = np.diff(refined, prepend=-1) != 0
        return cls(level, parents, refined[is_first], np.cumsum(is_first) - 1)

    @property
    def n_children(self) -> NDArray[np.int64]:
        """Children of the area of each group."""
        return np.diff(self.level.child_offsets)[self.area].astype(np.int64)

    def rows(self, table: Table) -> Rows:
        """Rows of a table that hold a parent."""
        axis = self.level.axis if table.across is None else table.across
        hierarchy = self.level.axes[axis].hierarchy
        depth = 0 if table.across is None else table.depths[axis]
        ancestor = hierarchy.ancestor(self.level.parent_depths[axis], depth)
        n = hierarchy.n_areas(depth)
        cell = self.of_parents * n + ancestor[self.parents.areas[axis]]
        row_of = np.full(len(self.area) * n, -1)
        row_of[cell] = 0
        found = np.flatnonzero(row_of == 0)
        row_of[found] = np.arange(len(found))
        group, across = found // n, (found % n).astype(np.int32)
        return Rows(axis, ancestor, group, across, row_of[cell], row_of.reshape(-1, n))

    def totals(self, totals: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of a one-way table that belong to children of the groups."""
        sizes = self.n_children
        shift = self.level.child_offsets[self.area] - (np.cumsum(sizes) - sizes)
        found: NDArray[np.int64] = totals[np.repeat(shift, sizes) + np.arange(sizes.sum())]
        return found

    def agreed(self, measured: NDArray[np.int64]) -> NDArray[np.int64]:
        """Totals of children, shifted equally in each group to sum to its count; none below 0."""
        sizes = self.n_children
        released = np.zeros(len(sizes), np.int64)
        np.add.at(released, self.of_parents, self.parents.value)
        too_much = np.add.reduceat(measured, np.cumsum(sizes) - sizes) - released
        agreed: NDArray[np.int64] = np.maximum(measured - np.repeat(too_much // sizes, sizes), 0)
        return agreed


def _join(parts: Sequence[Candidates]) -> Candidates:
    """Candidates of several items, one after the other."""
    if len(parts) == 1:
        return parts[0]
    joined = Candidates(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
    counts = np.concatenate([np.diff(part.offsets) for part in parts])
    return joined._replace(offsets=np.concatenate([[0], np.cumsum(counts)]))


def add_totals(totals: NDArray[np.int64], sums: NDArray[np.int64]) -> None:
    """Add true totals of areas to their noise, in place."""
    totals += sums


@kernel
def add_sums_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    cells: NDArray[np.int64],
    row_offsets: NDArray[np.int64],
    row_of: NDArray[np.int64],
    area: NDArray[np.int32],
    shift: int,
    across: tuple[int, int, NDArray[np.int32]],
    children: Any,
) -> None:
    """Add true counts to the noise of the cells they are summed up in, in place.

    Args:
        cells: int64, row by row.
        row_offsets: int64[rows or one more], slices of these.
        row_of: int64[groups, areas across], the row of each; -1 if it is not measured.
        area: int32[groups], the area that each refines.
        shift: where that area lies in the key of a parent; all below it are other areas.
        across: shift and mask of the area across in the key, and int32, the area of the table that
            holds each.
        children: key, offsets, ordinal and count, as in `Children`.
    """
    across_shift, mask, ancestor = across
    key, child_offsets, ordinal, count = children
    for group in range(area.size):
        refined = np.int64(area[group])
        parent = np.searchsorted(key, refined << shift)
        while parent < key.size and key[parent] >> shift == refined:
            row = row_of[group, ancestor[(key[parent] >> across_shift) & mask]]
            if row >= 0:
                for child in range(child_offsets[parent], child_offsets[parent + 1]):
                    cells[row_offsets[row] + ordinal[child]] += count[child]
            parent += 1
