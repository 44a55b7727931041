"""The lattice of tables: one level of every axis, 0 where an axis is summed up.

The tree measures one path through the lattice, from the whole to the leaves. Totals across
it ("all who leave this town", "all who go by ferry") lie off the path. Some of these
tables are measured too, each with a small part of the budget, and tell the level steps
which way to lean (`inftda.mechanism.prices`).

Like the tree, the lattice is public knowledge: it must never be derived from the trips.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import inf, prod
from typing import Final

from inftda.tree import Axis, Tree, TreeLevel

#: A measured table has at most this many cells for each area of the longest axis: then no step
#: draws much more than it does for the tree.
CELLS_PER_AREA: Final = 128

#: Axes with no more areas (modes, sexes, parts of the day) have totals that sums agree with.
SHORT: Final = 64
#: Sums agree with totals of a short axis if the tree's own sum of as many noisy counts has a
#: variance this many times larger.
MUCH_BETTER: Final = 20
#: How far the price of such a total may lower counts, in noise scales of the step.
#: A constant of compiled code (`inftda.kernels`).
HARD_REACH: Final = 4

#: Part of the budget (rho) that off-tree tables get unless told otherwise.
DEFAULT_SHARE: Final = Fraction(8, 100)


def share_or_default(across: float | Fraction | None) -> float | Fraction:
    """The part of the budget for off-tree tables, as it was asked for or by default."""
    return DEFAULT_SHARE if across is None else across


@dataclass(frozen=True)
class Table:
    """An off-tree table that is measured.

    Attributes:
        level: the level of the tree whose step the table belongs to: there the areas of
            `level.axis` are divided into those that the table has.
        depths: level of each axis's hierarchy, 0 where it is summed up.
    """

    level: TreeLevel
    depths: tuple[int, ...]

    @property
    def index(self) -> int:
        """Number of the level of the tree it belongs to."""
        return self.level.index

    @property
    def name(self) -> str:
        """For people."""
        return self._as_level.name

    @property
    def n_nodes(self) -> int:
        """Number of cells."""
        return self._as_level.n_nodes

    @property
    def max_children(self) -> int:
        """Largest number of cells that one of the step's groups has in one row."""
        return self.level.max_children

    @property
    def is_trivial(self) -> bool:
        """Never: tables that equal others are not measured."""
        return False

    @cached_property
    def across(self) -> int | None:
        """The axis beside `level.axis` that is not summed up; None in a one-way table."""
        others = [a for a, depth in enumerate(self.depths) if depth and a != self.level.axis]
        return others[0] if others else None

    @cached_property
    def is_finest_one_way(self) -> bool:
        """Whether it gives the totals of an axis's finest areas."""
        finest = coarsest_equal(self.level.axes[self.level.axis])[-1]
        return self.across is None and self.depths[self.level.axis] == finest

    def is_hard(self, trust: float, parents: float) -> bool:
        """Whether sums have to agree with it: totals of a short axis, much better than the tree's.

        Args:
            trust: variance of the noise of the step's children over that of the table.
            parents: released parents of a group.
        """
        return parents >= self.hard_from(trust)

    def hard_from(self, trust: float) -> float:
        """From how many released parents of a group on sums have to agree with it; see above."""
        hierarchy = self.level.axes[self.level.axis].hierarchy
        is_short = self.across is None and hierarchy.n_areas(hierarchy.depth) <= SHORT
        return MUCH_BETTER / trust if is_short else inf

    @property
    def most_parents(self) -> int:
        """Parents that a group of the step may have: all areas of all other axes."""
        others = [a for a in range(len(self.level.axes)) if a != self.level.axis]
        return prod(self.level.axes[a].hierarchy.n_areas(self.level.depths[a]) for a in others)

    def leaf_capacities(self) -> Iterator[tuple[int, int]]:
        """(leaves in a cell, number of such cells), cells with most leaves first."""
        return self._as_level.leaf_capacities()

    @cached_property
    def _as_level(self) -> TreeLevel:
        return TreeLevel(self.index, None, self.level.axes, self.depths)


def off_tree_tables(tree: Tree) -> tuple[Table, ...]:
    """Off-tree tables that are measured, in the order of the steps they belong to.

    All that have at most two axes which are not summed up, and not too many cells.
    """
    equal = [coarsest_equal(axis) for axis in tree.axes]
    most = CELLS_PER_AREA * max(axis.hierarchy.n_areas(axis.hierarchy.depth) for axis in tree.axes)
    on_tree = tables_on_tree(tree)
    found = []
    for level in tree.splitting_levels:
        for depths in _at_step(level, equal):
            table = Table(level, depths)
            if depths not in on_tree and table.n_nodes <= most:
                found.append(table)
    return tuple(found)


def tables_on_tree(tree: Tree) -> set[tuple[int, ...]]:
    """Depths of the tables on the tree, by the coarsest levels that have the same areas."""
    return {coarsest_depths(tree, level.depths) for level in tree.levels}


def coarsest_depths(tree: Tree, depths: Sequence[int]) -> tuple[int, ...]:
    """For each axis the coarsest level that has the same areas as the given one."""
    return tuple(coarsest_equal(axis)[depth] for axis, depth in zip(tree.axes, depths, strict=True))


def chains(tables: Sequence[Table]) -> list[list[Table]]:
    """The tables of one step in chains, each coarse to fine, every table inside the one before.

    One chain for each further axis, and the one-way table at the head of the first of them.
    """
    one_way = [table for table in tables if table.across is None]
    by_axis: dict[int, list[Table]] = {}
    for table in tables:
        if table.across is not None:
            by_axis.setdefault(table.across, []).append(table)
    found = [sorted(chain, key=lambda table: table.n_nodes) for chain in by_axis.values()]
    return [one_way + found[0], *found[1:]] if found else [one_way] if one_way else []


def weights(tables: Sequence[Table], n_tree: int, share: Fraction) -> list[Fraction]:
    """Weights of off-tree tables, where each of the tree's `n_tree` measured levels has weight 1.

    Together they have at most `share` of the whole, up to half of that for the totals of the
    finest areas, which people ask for first. All weights are one over a power of two, so that
    variances are whole multiples of one another, also after rounding: the exact accountant
    needs that.
    """
    n_finest = sum(table.is_finest_one_way for table in tables)
    budget = n_tree * share / (1 - share)
    finest = _largest_weight(n_finest, budget / 2)
    other = _largest_weight(len(tables) - n_finest, budget - n_finest * finest)
    return [finest if table.is_finest_one_way else other for table in tables]


def _largest_weight(n: int, budget: Fraction) -> Fraction:
    """The largest power of two, at most 1, that n tables can have."""
    weight = Fraction(1)
    while n * weight > budget:
        weight /= 2
    return weight


def _at_step(level: TreeLevel, equal: Sequence[Sequence[int]]) -> Iterator[tuple[int, ...]]:
    """Depths of the tables in which a step's areas are told apart, one-way first."""
    one_way = [0] * len(level.axes)
    one_way[level.axis] = equal[level.axis][level.depths[level.axis]]
    yield tuple(one_way)
    others = [a for a in range(len(level.axes)) if a != level.axis]
    for axis in sorted(others, key=lambda a: -level.axes[a].hierarchy.n_areas(level.depths[a])):
        for coarser, depth in pairwise(range(level.depths[axis] + 1)):
            if equal[axis][depth] != equal[axis][coarser]:
                yield (*one_way[:axis], depth, *one_way[axis + 1 :])


def coarsest_equal(axis: Axis) -> list[int]:
    """For each level of an axis the coarsest that has the same areas."""
    levels = [0]
    for level in range(1, axis.hierarchy.depth + 1):
        levels.append(level if axis.hierarchy.splits(level) else levels[-1])
    return levels
