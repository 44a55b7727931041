"""Axes, marginals, and the levels of a tree.

A node is one area on every axis. Each step of a tree refines one axis by one level; the paper's
destination tree (section 3) refines destination 1, origin 1, destination 2, origin 2, ...
Nothing of the size of a level is ever built: sizes are Python integers, 10^12 nodes are normal.
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from inftda.errors import PrivacyError, TreeError
from inftda.tree.cells import Areas, Ints, differ
from inftda.tree.hierarchy import Hierarchy
from inftda.tree.keys import MAX_BITS, NodeKeys

ORIGIN: Final = "origin"
DESTINATION: Final = "destination"


@dataclass(frozen=True)
class Axis:
    """One column of the table and the hierarchy its codes come from."""

    name: str
    hierarchy: Hierarchy

    @cached_property
    def coarsest(self) -> tuple[int, ...]:
        """For each level of the hierarchy the coarsest that has the same areas."""
        levels = [0]
        for level in range(1, self.hierarchy.depth + 1):
            levels.append(level if self.hierarchy.splits(level) else levels[-1])
        return tuple(levels)


@dataclass(frozen=True)
class Marginal:
    """Counts by one level of every axis, 0 where the axis is summed up.

    Attributes:
        axes: the axes of the tree.
        depths: the level in each axis's hierarchy that the cells are at.
    """

    axes: tuple[Axis, ...]
    depths: tuple[int, ...]

    @cached_property
    def name(self) -> str:
        """Name for people: "province > municipality" is from province to municipality."""
        separator = " > " if is_od(self.axes) else " \N{MULTIPLICATION SIGN} "
        return separator.join(
            axis.hierarchy.level_name(depth)
            for axis, depth in zip(self.axes, self.depths, strict=True)
        )

    @cached_property
    def n_nodes(self) -> int:
        """Number of nodes or cells."""
        return prod(
            axis.hierarchy.n_areas(depth)
            for axis, depth in zip(self.axes, self.depths, strict=True)
        )

    def above(self, leaves: Sequence[NDArray[np.int32]]) -> list[NDArray[np.int32]]:
        """int32 for each axis: areas of the node that contains each leaf."""
        found = []
        for axis, depth, finest in zip(self.axes, self.depths, leaves, strict=True):
            is_finest = depth == axis.hierarchy.depth
            up = None if is_finest else axis.hierarchy.ancestor(axis.hierarchy.depth, depth)
            found.append(finest if up is None else up[finest])
        return found

    def numbers(self, areas: Sequence[NDArray[np.int32]]) -> Ints:
        """int64: number of each of fewer than 2^62 nodes, by its areas, the last axis fastest."""
        number = np.zeros(len(areas[0]), np.int64)
        for axis, depth, here in zip(self.axes, self.depths, areas, strict=True):
            number *= axis.hierarchy.n_areas(depth)
            number += here
        return number

    def areas_at(self, number: Ints) -> Areas:
        """int32 for each axis: areas of the nodes with these numbers."""
        areas = []
        for axis, depth in zip(reversed(self.axes), reversed(self.depths), strict=True):
            number, here = np.divmod(number, axis.hierarchy.n_areas(depth))
            areas.append(here.astype(np.int32))
        return tuple(reversed(areas))

    def sum_up(self, leaves: Sequence[NDArray[np.int32]], counts: Ints) -> tuple[Areas, Ints]:
        """Sum up leaves to these nodes.

        Args:
            leaves: int32 finest areas of the leaves, for each axis; they may repeat.
            counts: int64.

        Returns:
            Areas of all nodes that have leaves, sorted by the first axis, then by the second and
            so on; and int64 sums.
        """
        above = self.above(leaves)
        if self.n_nodes <= len(counts):  # added up node by node, without sorting
            number = self.numbers(above)
            sums = np.zeros(self.n_nodes, np.int64)
            np.add.at(sums, number, counts)  # exact, unlike sums of floats
            number = np.flatnonzero(np.bincount(number))
            return self.areas_at(number), sums[number]
        if self.n_nodes < 1 << MAX_BITS:  # one key is sorted faster than several
            order = np.argsort(self.numbers(above), kind="stable")
        else:
            order = np.lexsort(above[::-1])
        above = [numbers[order] for numbers in above]
        first = np.flatnonzero(differ(above))
        sums = np.add.reduceat(counts[order], first) if len(first) else counts[:0]
        return tuple(numbers[first] for numbers in above), sums

    def leaf_capacities(self, only: str | None = None) -> Iterator[tuple[int, int]]:
        """Yield (leaves under a node, number of such nodes), nodes with most leaves first.

        With the name of an axis, yield (finest areas under an area, number of such areas) of it.

        Raises:
            PrivacyError: there is no such axis.
        """
        factors = [
            _sizes(axis, depth)
            for axis, depth in zip(self.axes, self.depths, strict=True)
            if only in {None, axis.name}
        ]
        if not factors:
            names = ", ".join(axis.name for axis in self.axes)
            raise PrivacyError(f"`once_per=` names the axis {only!r}; the axes are {names}")
        return _largest_products(factors)


@dataclass(frozen=True)
class TreeLevel(Marginal):
    """All nodes after the first `index` steps; level 0 is the root.

    Attributes:
        index: number of steps taken.
        refined: number of the axis that the step to this level refines; None at the root.
    """

    index: int
    refined: int | None

    @cached_property
    def axis(self) -> int:
        """Number of the axis that the step to this level refines."""
        if self.refined is None:
            raise TreeError("the root is not reached by refining an axis")
        return self.refined

    @cached_property
    def child_offsets(self) -> NDArray[np.int32]:
        """Ranges of children on the refined axis, by number of the area at the level above."""
        return self.axes[self.axis].hierarchy.child_offsets(self.depths[self.axis] - 1)

    @cached_property
    def n_children(self) -> Ints:
        """int64: number of children of each area of the refined axis at the level above."""
        return np.diff(self.child_offsets).astype(np.int64)

    @cached_property
    def parent_depths(self) -> tuple[int, ...]:
        """The level in each axis's hierarchy that the parents of nodes of this level are at."""
        return tuple(depth - (axis == self.axis) for axis, depth in enumerate(self.depths))

    @cached_property
    def parent_area(self) -> NDArray[np.int32]:
        """For each area on the refined axis the area at the level above that holds it."""
        depth = self.depths[self.axis]
        return self.axes[self.axis].hierarchy.ancestor(depth, depth - 1)

    def parents(self, areas: Sequence[NDArray[np.int32]]) -> Areas:
        """Find the areas of the parents of nodes of this level, one array per axis."""
        return tuple(
            self.parent_area[numbers] if axis == self.axis else numbers
            for axis, numbers in enumerate(areas)
        )

    @cached_property
    def group_axes(self) -> tuple[int, ...]:
        """Axes in the sort order of groups: the refined one, then the others, longest first."""
        others = [axis for axis in range(len(self.axes)) if axis != self.axis]
        return (self.axis, *sorted(others, key=lambda axis: -self.n_parent_areas(axis)))

    def n_parent_areas(self, axis: int) -> int:
        """Number of areas on an axis at the level of the parents."""
        return self.axes[axis].hierarchy.n_areas(self.parent_depths[axis])

    @property
    def most_parents(self) -> int:
        """Largest number of parents in a group of the step: all areas of all other axes."""
        return prod(self.n_parent_areas(axis) for axis in self.group_axes[1:])

    @cached_property
    def numbering(self) -> NodeKeys:
        """Numbering of the nodes of this level and of their parents.

        Raises:
            TreeError: there are more nodes than numbers.
        """
        n_areas = [self.n_parent_areas(axis) for axis in range(len(self.axes))]
        return NodeKeys(n_areas, self.group_axes, self.max_children)

    def keys(self, parents: Sequence[NDArray[np.int32]]) -> Ints:
        """int64: the key of each parent; ascending keys are group order."""
        return self.numbering.of(parents)

    def areas_of(self, keys: Ints) -> Areas:
        """int32 for each axis: areas of the parents with these keys."""
        return self.numbering.areas(keys)

    @cached_property
    def node_codes(self) -> tuple[Ints, ...]:
        """int64[areas] for each axis: summand of each area in the number of a node of this level.

        That is the key of its parent, then its index among the parent's children.
        """
        codes = [code << self.numbering.ordinal_bits for code in self.numbering.codes]
        ordinal = np.arange(len(self.parent_area)) - self.child_offsets[self.parent_area]
        codes[self.axis] = codes[self.axis][self.parent_area] + ordinal
        return tuple(codes)

    @cached_property
    def max_children(self) -> int:
        """Largest number of nodes of this level under one node of the level above."""
        return 1 if self.refined is None else int(self.n_children.max())

    @property
    def mean_children(self) -> float:
        """Nodes of this level under one node of the level above, on average."""
        return 1.0 if self.refined is None else float(self.n_children.mean())

    @property
    def level(self) -> "TreeLevel":
        """The level itself; for a cross table, the level whose step it is measured in."""
        return self

    @property
    def is_whole(self) -> bool:
        """Whether all cells are measured, whichever parents were released; true of the root."""
        return self.refined is None

    @property
    def key(self) -> int:
        """Key in a plan: the number of the level."""
        return self.index

    @property
    def label(self) -> tuple[int, ...]:
        """Label from which the random bits of its noise are derived."""
        return (self.index,)

    def rows(self, parents: Areas) -> "CellRows":
        """Rows that are measured for parents: the children of each, except only children.

        The count of an only child is that of its parent, so no noise is drawn for it.
        """
        n = self.n_children[parents[self.axis]]
        key = self.keys(parents)
        return CellRows.below(self, parents, np.where(n > 1, n, 0), key, np.arange(len(n)))

    def all_rows(self) -> "CellRows":
        """The only row of the root, with one cell."""
        if not self.is_whole:
            raise TreeError("only the root is measured as a whole")
        nowhere = tuple(np.zeros(1, np.int32) for _ in self.axes)
        return CellRows(0, nowhere, np.ones(1, np.int64), np.zeros(1, np.int64))

    @cached_property
    def is_trivial(self) -> bool:
        """Whether the step to this level splits no area, so that nothing is measured."""
        if self.refined is None:
            return False
        return not self.axes[self.refined].hierarchy.splits(self.depths[self.refined])


def _nothing() -> Ints:
    return np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class CellRows:
    """Rows of cells that are measured together.

    A row has the children of one area on the axis that a level refines, with one area on each other
    axis. Its cells have consecutive areas, so only the first of each row is stored.

    Attributes:
        axis: the refined axis.
        areas: int32[rows] for each axis; on the refined one the first child.
        sizes: int64[rows], number of cells of each; 0 for children that are not measured.
        key: int64[rows], ascending: number of each row in its table, which its noise follows from.
        of_parents: int64[parents], the row that each parent belongs to.
    """

    axis: int
    areas: Areas
    sizes: Ints
    key: Ints = field(default_factory=_nothing)
    of_parents: Ints = field(default_factory=_nothing)

    @classmethod
    def below(cls, level: TreeLevel, above: Areas, sizes: Ints, *known: Ints) -> Self:
        """Make rows from their areas, where the area on the refined axis is the one divided."""
        areas = list(above)
        areas[level.axis] = level.child_offsets[above[level.axis]]
        return cls(level.axis, tuple(areas), sizes, *known)

    @cached_property
    def offsets(self) -> Ints:
        """int64[rows + 1]: slices of the cells."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    def cells(self) -> Areas:
        """int32[cells] for each axis: the areas of every cell."""
        found = [np.repeat(numbers, self.sizes) for numbers in self.areas]
        start = np.repeat(self.offsets[:-1], self.sizes)
        found[self.axis] += (np.arange(len(start)) - start).astype(np.int32)
        return tuple(found)

    def bare(self) -> "CellRows":
        """Copy without `key` and `of_parents`, which only a step needs."""
        return CellRows(self.axis, self.areas, self.sizes)


def is_od(axes: Sequence[Axis]) -> bool:
    """Tell whether the axes are just origin and destination."""
    return [axis.name for axis in axes] == [ORIGIN, DESTINATION]


def _sizes(axis: Axis, depth: int) -> list[tuple[int, int]]:
    """(leaves, number of areas with that many leaves) of one axis, largest first."""
    sizes, areas = np.unique(axis.hierarchy.leaves_under(depth), return_counts=True)
    return [(int(s), int(a)) for s, a in zip(sizes[::-1], areas[::-1], strict=True)]


def _largest_products(factors: list[list[tuple[int, int]]]) -> Iterator[tuple[int, int]]:
    """Yield products of one size from each factor with their multiplicities, largest first.

    A heap holds the frontier of index tuples; each popped tuple pushes its successors, so
    only as many products are formed as are asked for.
    """
    first = (0,) * len(factors)
    heap = [(-prod(sizes[0][0] for sizes in factors), first)]
    seen = {first}
    while heap:
        negative, indices = heapq.heappop(heap)
        yield -negative, prod(sizes[i][1] for sizes, i in zip(factors, indices, strict=True))
        for position, index in enumerate(indices):
            following = (*indices[:position], index + 1, *indices[position + 1 :])
            if index + 1 < len(factors[position]) and following not in seen:
                seen.add(following)
                product = prod(s[i][0] for s, i in zip(factors, following, strict=True))
                heapq.heappush(heap, (-product, following))
