"""Cross tables: marginals beside the tree that are measured for their marginal totals.

The levels of the tree are marginals of the table, from the whole to the leaves. Other totals ("all
who leave this town", "all who go by ferry") are marginals beside the tree. Some of these are also
measured, each with a small part of the budget, and noisy counts of the tree are adjusted to them
(`inftda.mechanism.adjustment`).

A cross table has areas of the axis that a level refines, and of some other axes or of none. It is
measured row by row: a row has the children of one area, with one area on each other axis. With
areas of no other axis it has one row for each area that is divided, so it is measured as a whole.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import inf
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inftda.tree.cells import Areas, Ints, differ
from inftda.tree.levels import CellRows, Marginal, TreeLevel

#: A marginal is measured if it has at most this many cells for each area of the longest axis: then
#: no step draws much more than it does for the tree.
CELLS_PER_AREA: Final = 128
#: Largest number of areas of a short axis (modes, sexes, parts of the day).
SHORT: Final = 64
#: Totals are much better than the tree's own sum of as many noisy counts if that has a variance
#: this many times larger.
MUCH_BETTER: Final = 20


class Limits(NamedTuple):
    """How far noisy counts may be adjusted to agree with a cross table.

    All are in standard deviations of the noise of the counts.

    Attributes:
        down: how far counts may be lowered.
        up: how far they may be raised.
        room: how far below the least count that is positive without adjustment a count may be and
            still become positive.
    """

    down: int
    up: int
    room: int


#: Limits of most cross tables (`SOFT`) and of hard totals (`HARD`), which sums have to agree with:
#: there, counts of large categories are lowered further to make room for those of small ones.
SOFT: Final = Limits(1, 1, 1)
HARD: Final = Limits(4, 1, 3)


@dataclass(frozen=True)
class CrossTable(Marginal):
    """A marginal beside the tree that is measured.

    Attributes:
        level: the level of the tree in whose step it is measured: that step divides areas of
            `level.axis` into the areas of this table.
    """

    level: TreeLevel

    @property
    def index(self) -> int:
        """Number of the level of the tree it belongs to."""
        return self.level.index

    @property
    def key(self) -> tuple[int, ...]:
        """Key in a plan: the levels of the axes."""
        return self.depths

    @property
    def label(self) -> tuple[int, ...]:
        """Label from which the random bits of its noise are derived."""
        return (self.index, *self.depths)

    @cached_property
    def others(self) -> tuple[int, ...]:
        """The axes beside `level.axis` that are not summed up."""
        return tuple(a for a, depth in enumerate(self.depths) if depth and a != self.level.axis)

    @property
    def is_whole(self) -> bool:
        """Whether all cells are measured, whichever parents were released; true of totals."""
        return not self.others

    @property
    def is_finest_one_way(self) -> bool:
        """Whether it gives the totals of an axis's finest areas."""
        axis = self.level.axis
        return self.is_whole and self.depths[axis] == self.axes[axis].coarsest[-1]

    @cached_property
    def _beside(self) -> Marginal:
        """The table with the refined axis summed up: a cell for each row of a divided area."""
        refined = self.level.axis
        return Marginal(
            self.axes, tuple(d if a != refined else 0 for a, d in enumerate(self.depths))
        )

    @cached_property
    def row_codes(self) -> dict[int, Ints]:
        """For each other axis int64[areas of parents]: summand of an area in the number of its row.

        Numbers of rows count from 0 in each group of parents.
        """
        codes, step = {}, 1
        for axis in reversed(self.others):
            hierarchy, depth = self.axes[axis].hierarchy, self.depths[axis]
            codes[axis] = (
                hierarchy.ancestor(self.level.parent_depths[axis], depth).astype(np.int64) * step
            )
            step *= hierarchy.n_areas(depth)
        return codes

    @property
    def rows_per_group(self) -> int:
        """Largest number of rows of a group of parents."""
        return self._beside.n_nodes

    def rows(self, parents: Areas) -> CellRows:
        """Rows that parents, in group order, belong to."""
        refined, n = parents[self.level.axis], self.rows_per_group
        is_first = differ([refined])
        area, group = refined[is_first], np.cumsum(is_first) - 1
        cell = group * n
        for axis, code in self.row_codes.items():
            cell += code[parents[axis]]
        row_of = np.full(len(area) * n, -1)
        row_of[cell] = 0
        found = np.flatnonzero(row_of == 0)
        row_of[found] = np.arange(len(found))
        return self._rows(area[found // n], found % n, row_of[cell])

    def all_rows(self) -> CellRows:
        """A row for each area that is divided, of a table that is measured as a whole."""
        area = np.arange(len(self.level.child_offsets) - 1, dtype=np.int32)
        return self._rows(area, np.zeros(len(area), np.int64), np.empty(0, np.int64))

    def _rows(self, refined: NDArray[np.int32], number: Ints, of_parents: Ints) -> CellRows:
        """Rows by the area that is divided and their number in its group."""
        areas = list(self._beside.areas_at(number))
        areas[self.level.axis] = refined
        key = (refined.astype(np.int64) << 32) | number
        sizes = self.level.n_children[refined]
        return CellRows.below(self.level, tuple(areas), sizes, key, of_parents)

    def hard_from(self, ratio: float) -> float:
        """Least number of released parents of a group whose sums have to agree with the table.

        Sums have to agree with totals of a short axis that are much more precise than the sums of
        the tree's own noisy counts.

        Args:
            ratio: variance of the noise of the step's children over that of the table.
        """
        hierarchy = self.axes[self.level.axis].hierarchy
        is_short = self.is_whole and hierarchy.n_areas(hierarchy.depth) <= SHORT
        return MUCH_BETTER / ratio if is_short else inf

    def limits(self, ratio: float, n_parents: int) -> Limits:
        """How far counts of the children of a group of parents may be adjusted to it.

        Args:
            ratio: as `hard_from` takes it.
            n_parents: number of released parents of the group.
        """
        return HARD if n_parents >= self.hard_from(ratio) else SOFT


def chains(tables: Sequence[tuple[int, ...]]) -> list[list[tuple[int, ...]]]:
    """Arrange the tables of a step in chains, in which each table refines the one before.

    Args:
        tables: depths of the tables, coarse to fine.
    """
    found: list[list[tuple[int, ...]]] = []
    for depths in tables:
        for chain in found:
            if all(a <= b for a, b in zip(chain[-1], depths, strict=True)):
                chain.append(depths)
                break
        else:
            found.append([depths])
    return found


def distinguishing(level: TreeLevel) -> Iterator[tuple[int, ...]]:
    """Depths of the candidate cross tables of a step, one-way first, then coarse to fine."""
    one_way = [0] * len(level.axes)
    one_way[level.axis] = level.axes[level.axis].coarsest[level.depths[level.axis]]
    yield tuple(one_way)
    others = [a for a in range(len(level.axes)) if a != level.axis]
    for axis in sorted(others, key=lambda a: -level.axes[a].hierarchy.n_areas(level.depths[a])):
        for coarser, depth in pairwise(level.axes[axis].coarsest[: level.depths[axis] + 1]):
            if depth != coarser:
                yield (*one_way[:axis], depth, *one_way[axis + 1 :])
