"""The level step with off-tree tables: groups are divided with prices.

Everything here that touches true counts adds noise to them at once, at the scale that the plan
pays for; what is done with noisy counts is in `inftda.mechanisms.prices`.

Privacy:
    Every off-tree table partitions the trips and is measured once: each of its cells belongs to
    one group of one step. Which cells are drawn depends on what was released before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inftda.compiled import kernel
from inftda.counts import Counts, LevelCounts
from inftda.lattice import Table, chains
from inftda.mechanisms.prices import (
    Candidates,
    Cells,
    Map,
    balance,
    count_candidates_kernel,
    keep_positive_kernel,
    write_candidates_kernel,
)
from inftda.mechanisms.step import (
    LevelStep,
    Nodes,
    _scratch,
    add_truth_kernel,
    child_areas_kernel,
    count_draws_kernel,
    find_true_kernel,
    join,
)
from inftda.noise.sampler import Sampler
from inftda.optimize.segments import check_status
from inftda.tree import TreeLevel

#: Candidates above which one group is balanced on all threads.
MANY: Final = 1 << 20


@dataclass(frozen=True)
class MeasuredTable:
    """An off-tree table of a step and the noise that the plan pays for.

    Attributes:
        table: the table.
        sampler: its noise.
        trust: variance of the noise of the step's children over that of the table.
    """

    table: Table
    sampler: Sampler
    trust: float


@dataclass(frozen=True, repr=False)
class TrueParents:
    """True parents of a level, by their area on the refined axis. Confidential.

    Attributes:
        areas: int32[parents] for each axis, in tree order.
        order: int64[parents], sorted by the refined area.
        offsets: int64[areas + 1], slices of `order`.
    """

    areas: tuple[NDArray[np.int32], ...]
    order: NDArray[np.int64]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, counts: Counts, level: TreeLevel) -> "TrueParents":
        """The true parents of the nodes of a level."""
        before = sum(known.level.index < level.index for known in counts.levels)
        areas, _ = counts.nodes(before)
        refined = areas[level.axis]
        n_areas = len(level.child_offsets) - 1
        offsets = np.concatenate([[0], np.cumsum(np.bincount(refined, minlength=n_areas))])
        return cls(areas, np.argsort(refined, kind="stable"), offsets)

    def __repr__(self) -> str:
        return "TrueParents(confidential)"


@dataclass(frozen=True)
class AcrossStep(LevelStep):
    """A level step with off-tree tables.

    Attributes:
        tables: those that are measured at this step.
        sigma: noise scale of the tree level.
    """

    tables: tuple[MeasuredTable, ...] = ()
    sigma: float = 0.0

    def measure_totals(
        self, truth: LevelCounts, true_parents: TrueParents
    ) -> NDArray[np.int64] | None:
        """The step's one-way table, noisy: all its cells, also below areas that were dropped."""
        for number, measured in enumerate(self.tables):
            if measured.table.across is None:
                totals = np.empty(int(self.level.child_offsets[-1]), np.int64)
                stream = self.source.stream(self.level.index, 0, number)
                measured.sampler.fill(totals, stream)
                first = self.level.child_offsets[true_parents.areas[self.level.axis]]
                everyone = np.arange(len(first))
                true_children = (truth.offsets, truth.ordinal, truth.count)
                add_sums_kernel(totals, first.astype(np.int64), everyone, *true_children)
                return totals
        return None

    def divide_groups(
        self,
        items: Sequence[tuple[int, Nodes]],
        truth: LevelCounts,
        true_parents: TrueParents,
        totals: NDArray[np.int64],
        *,
        are_leaves: bool,
        threads: int = 1,
        map_: Map = map,
    ) -> tuple[Nodes, int]:
        """Children of whole groups, in group order, and the number of draws for the tree.

        Args:
            items: number and parents of each item that the groups are cut into.
            truth: true children; the parents' `true_index` is into its `offsets`.
            true_parents: those of these groups, at least.
            totals: what `measure_totals` gives.
            are_leaves: whether nothing comes after, so that no true index is needed.
            threads: how many the groups are divided on; the result does not depend on it.
            map_: work on these threads.
        """
        parents = join([part for _, part in items])
        candidates = _join(list(map_(lambda item: self._candidates(*item, truth), items)))
        cells = self._measure(items[0][0], parents, truth, true_parents, totals)
        is_large = len(candidates.column) > MANY
        balance(candidates, cells, reach=self.sigma, threads=threads if is_large else 1, map_=map_)
        offsets = np.empty_like(candidates.offsets)
        keep_positive_kernel(candidates, offsets)
        n = int(offsets[-1])
        column = candidates.column[:n]
        areas = tuple(np.empty(n, np.int32) for _ in parents.areas)
        refined, child_offsets = self.level.axis, self.level.child_offsets
        child_areas_kernel(parents.areas, refined, child_offsets, offsets, column, areas)
        true_index = np.empty(0 if are_leaves else n, np.int64)
        if not are_leaves:
            find_true_kernel(
                parents.true_index, offsets, column, truth.offsets, truth.ordinal, true_index
            )
        n_draws = int(candidates.size[candidates.size > 1].sum())
        return Nodes(areas, candidates.value[:n].copy(), true_index), n_draws

    def _candidates(self, item: int, parents: Nodes, truth: LevelCounts) -> Candidates:
        """Noise for the children of an item's parents; of these, what may become positive."""
        n = len(parents.value)
        x_offsets = np.empty(n + 1, np.int64)
        count_draws_kernel(parents.areas[self.level.axis], self.level.child_offsets, x_offsets)
        x, seeds, kept = _scratch(int(x_offsets[-1]), n)
        stream = self.source.stream(self.level.index, item)
        self.sampler.fill(x, stream)
        stream.fill(seeds)
        add_truth_kernel(
            x, x_offsets, parents.true_index, truth.offsets, truth.ordinal, truth.count
        )
        check_status(self.optimize(x, x_offsets, parents.value, seeds, kept))
        sums, least, bound = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
        offsets = np.empty(n + 1, np.int64)
        is_too_large = count_candidates_kernel(
            x, x_offsets, kept.index, kept.offsets, int(2 * self.sigma), sums, least, bound, offsets
        )
        check_status(int(is_too_large))
        column = np.empty(offsets[-1], np.int32)
        noisy, value = np.empty(offsets[-1], np.int64), np.empty(offsets[-1], np.int64)
        write_candidates_kernel(x, x_offsets, bound, seeds, offsets, column, noisy)
        size = np.maximum(np.diff(x_offsets), 1)
        return Candidates(offsets, column, noisy, value, parents.value, size, sums, least)

    def _measure(
        self,
        item: int,
        parents: Nodes,
        truth: LevelCounts,
        true_parents: TrueParents,
        totals: NDArray[np.int64],
    ) -> Cells:
        """Noisy cells of the off-tree tables, wherever the groups have a parent."""
        groups = Groups.of(self.level, parents, true_parents)
        row, parts = [], []
        n_rows = 0
        for chain in self._chains:
            finest = True
            for number in reversed(chain):
                measured = self.tables[number]
                rows = groups.rows(measured.table)
                if finest:
                    row.append(rows.of_parents + n_rows)
                else:
                    parts[-1].above[before.of_parents] = rows.of_parents + n_rows
                offsets = np.concatenate([[0], np.cumsum(groups.n_children[rows.group])])
                if measured.table.across is None:
                    first = self.level.child_offsets[groups.area].astype(np.int64)
                    spread = np.repeat(first - offsets[:-1], np.diff(offsets))
                    cells = totals[spread + np.arange(offsets[-1])]
                else:
                    cells = np.empty(int(offsets[-1]), np.int64)
                    stream = self.source.stream(self.level.index, item, number)
                    measured.sampler.fill(cells, stream)
                    is_in = rows.of_true >= 0
                    add_sums_kernel(
                        cells, offsets[rows.of_true[is_in]], groups.true[is_in],
                        truth.offsets, truth.ordinal, truth.count,
                    )  # fmt: skip
                n = len(rows.group)
                parts.append(
                    Cells(
                        row=np.empty((0, 0), np.int64),
                        above=np.full(n, -1),
                        is_finest=np.full(n, finest),
                        offsets=np.diff(offsets),
                        measured=cells,
                        trust=np.full(n, measured.trust),
                    )
                )
                before, finest = rows, False
                n_rows += n
        _, above, is_finest, sizes, noisy, trust = (
            list(arrays) for arrays in zip(*parts, strict=True)
        )
        return Cells(
            row=np.stack(row),
            above=np.concatenate(above),
            is_finest=np.concatenate(is_finest),
            offsets=np.concatenate([[0], np.cumsum(np.concatenate(sizes))]),
            measured=np.concatenate(noisy),
            trust=np.concatenate(trust),
        )

    @cached_property
    def _chains(self) -> list[list[int]]:
        tables = [measured.table for measured in self.tables]
        return [[tables.index(table) for table in chain] for chain in chains(tables)]


class Rows(NamedTuple):
    """Rows of one table in some groups: the cells of a group and one area across.

    Attributes:
        group: int64[rows].
        of_parents: int64[parents], the row that holds each.
        of_true: int64[true parents], likewise; -1 if none does.
    """

    group: NDArray[np.int64]
    of_parents: NDArray[np.int64]
    of_true: NDArray[np.int64]


@dataclass(frozen=True)
class Groups:
    """Some groups of parents, and all true parents in these groups."""

    level: TreeLevel
    areas: tuple[NDArray[np.int32], ...]
    area: NDArray[np.int32]
    of_parents: NDArray[np.int64]
    true: NDArray[np.int64]
    true_areas: tuple[NDArray[np.int32], ...]
    of_true: NDArray[np.int64]

    @classmethod
    def of(cls, level: TreeLevel, parents: Nodes, true_parents: TrueParents) -> "Groups":
        """The groups of parents that stand in group order."""
        refined = parents.areas[level.axis]
        is_first = np.diff(refined, prepend=-1) != 0
        area = refined[is_first]
        low, high = area[0], area[-1] + 1
        group_of = np.full(high - low, -1)
        group_of[area - low] = np.arange(len(area))
        start, stop = true_parents.offsets[low], true_parents.offsets[high]
        true = true_parents.order[start:stop]
        of_true = group_of[true_parents.areas[level.axis][true] - low]
        true, of_true = true[of_true >= 0], of_true[of_true >= 0]
        true_areas = tuple(numbers[true] for numbers in true_parents.areas)
        return cls(
            level, parents.areas, area, np.cumsum(is_first) - 1, true, true_areas, of_true
        )

    @property
    def n_children(self) -> NDArray[np.int64]:
        """Children of the area of each group."""
        return np.diff(self.level.child_offsets)[self.area].astype(np.int64)

    def rows(self, table: Table) -> Rows:
        """Rows of a table that hold a parent."""
        axis = table.across
        if axis is None:
            return Rows(np.arange(len(self.area)), self.of_parents, self.of_true)
        hierarchy = self.level.axes[axis].hierarchy
        across = hierarchy.ancestor(self.level.depths[axis], table.depths[axis]).astype(np.int64)
        n = hierarchy.n_areas(table.depths[axis])
        code = self.of_parents * n + across[self.areas[axis]]
        row_of = np.full(len(self.area) * n, -1)
        row_of[code] = 0
        found = np.flatnonzero(row_of == 0)
        row_of[found] = np.arange(len(found))
        of_true = row_of[self.of_true * n + across[self.true_areas[axis]]]
        return Rows(found // n, row_of[code], of_true)


def _join(parts: list[Candidates]) -> Candidates:
    """Candidates of several items, one after the other."""
    if len(parts) == 1:
        return parts[0]
    joined = Candidates(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
    counts = np.concatenate([np.diff(part.offsets) for part in parts])
    return joined._replace(offsets=np.concatenate([[0], np.cumsum(counts)]))


@kernel
def add_sums_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    cells: NDArray[np.int64],
    first: NDArray[np.int64],
    parent: NDArray[np.int64],
    true_offsets: NDArray[np.int64],
    true_ordinal: NDArray[np.int32],
    true_count: NDArray[np.int64],
) -> None:
    """Add true counts to the noise of the cells they are summed up in, in place.

    Args:
        cells: int64.
        first: int64[n], the cell of the first child, had it one, of each of some true parents.
        parent: int64[n], which true parents.
        true_offsets: int64[true parents + 1], slices of the next two.
        true_ordinal: int32, index of each true child among all children of its parent.
        true_count: int64.
    """
    for i in range(parent.size):
        for child in range(true_offsets[parent[i]], true_offsets[parent[i] + 1]):
            cells[first[i] + true_ordinal[child]] += true_count[child]
