"""The tree that is released top-down: axes and the order in which they are refined.

A node is one area on every axis. Each step refines one axis by one level; the paper's
destination tree (section 3) refines destination 1, origin 1, destination 2, origin 2, ...
Nothing of the size of the tree is ever built: sizes are Python integers, 10^12 nodes are normal.

The levels of the tree are marginals of the table, from the whole to the leaves. Totals across it
("all who leave this town", "all who go by ferry") are marginals off the tree. Some of these are
measured too, each with a small part of the budget, and tell the level steps which way to lean
(`inftda.mechanism.prices`).

All of it is public knowledge: it must never be derived from the trips.
"""

import heapq
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from math import inf, prod
from pathlib import Path
from typing import Any, Final, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from inftda.areas.reader import Levels, read_areas
from inftda.errors import PrivacyError, TreeError
from inftda.hierarchy import Hierarchy

ORIGIN, DESTINATION = "origin", "destination"
#: Columns that stand beside those of the axes.
_TAKEN = frozenset({"flow", "listed", "estimate", "low", "high", "grade"})
#: Bits of the number of a cell, at most: numbers of cells are int64.
MAX_BITS = 62

#: A marginal off the tree is measured if it has at most this many cells for each area of the
#: longest axis: then no step draws much more than it does for the tree.
CELLS_PER_AREA: Final = 128
#: Axes with no more areas (modes, sexes, parts of the day) have totals that sums agree with.
SHORT: Final = 64
#: Sums agree with totals of a short axis if the tree's own sum of as many noisy counts has a
#: variance this many times larger.
MUCH_BETTER: Final = 20
#: How far the price of such a total may lower counts, in noise scales of the step.
#: A constant of compiled code (`inftda.kernels`).
HARD_REACH: Final = 4


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


class Impossible(Protocol):
    """What cannot occur, as far as trees have to know it (`inftda.impossible`)."""

    def is_possible(
        self, depths: tuple[int, ...], areas: Sequence[NDArray[np.int32]]
    ) -> NDArray[np.bool_]:
        """Whether each of some nodes at these levels of the axes can occur."""

    def restricts(self, depths: tuple[int, ...], axis: int) -> bool:
        """Whether it tells apart nodes that are alike but for this level of an axis."""

    def to_text(self) -> bytes:
        """As it is published."""


@dataclass(frozen=True)
class Marginal:
    """Counts by one level of every axis, 0 where the axis is summed up.

    Attributes:
        axes: the axes of the tree.
        depths: the level in each axis's hierarchy that the cells are at.
        impossible: cells that cannot occur, if any are known.
    """

    axes: tuple[Axis, ...]
    depths: tuple[int, ...]
    impossible: Impossible | None = field(default=None, kw_only=True, repr=False, compare=False)

    @cached_property
    def name(self) -> str:
        """For people: "province > municipality" is from province to municipality."""
        separator = " > " if _is_od(self.axes) else " \N{MULTIPLICATION SIGN} "
        return separator.join(
            axis.hierarchy.level_name(depth)
            for axis, depth in zip(self.axes, self.depths, strict=True)
        )

    @cached_property
    def n_nodes(self) -> int:
        """Number of possible nodes, or cells."""
        return prod(
            axis.hierarchy.n_areas(depth)
            for axis, depth in zip(self.axes, self.depths, strict=True)
        )

    @property
    def is_restricted(self) -> bool:
        """Whether some nodes cannot occur, of those that are ever looked at."""
        return self.impossible is not None

    def is_possible(self, areas: Sequence[NDArray[np.int32]]) -> NDArray[np.bool_]:
        """Whether each of some nodes can occur."""
        if self.impossible is None:
            return np.ones(len(areas[0]), bool)
        return self.impossible.is_possible(self.depths, areas)

    def above(self, leaves: Sequence[NDArray[np.int32]]) -> list[NDArray[np.int32]]:
        """int32 for each axis: areas of the nodes that some leaves lie below."""
        found = []
        for axis, depth, finest in zip(self.axes, self.depths, leaves, strict=True):
            is_finest = depth == axis.hierarchy.depth
            up = None if is_finest else axis.hierarchy.ancestor(axis.hierarchy.depth, depth)
            found.append(finest if up is None else up[finest])
        return found

    def numbers(self, areas: Sequence[NDArray[np.int32]]) -> NDArray[np.int64]:
        """int64: number of each node, by its areas; the last axis runs fastest.

        There must be fewer than 2^62 nodes.
        """
        number = np.zeros(len(areas[0]), np.int64)
        for axis, depth, here in zip(self.axes, self.depths, areas, strict=True):
            number *= axis.hierarchy.n_areas(depth)
            number += here
        return number

    def areas_at(self, number: NDArray[np.int64]) -> tuple[NDArray[np.int32], ...]:
        """int32 for each axis: areas of the nodes with these numbers."""
        areas = []
        for axis, depth in zip(reversed(self.axes), reversed(self.depths), strict=True):
            number, here = np.divmod(number, axis.hierarchy.n_areas(depth))
            areas.append(here.astype(np.int32))
        return tuple(reversed(areas))

    def sum_up(
        self, leaves: Sequence[NDArray[np.int32]], counts: NDArray[np.int64]
    ) -> tuple[tuple[NDArray[np.int32], ...], NDArray[np.int64]]:
        """Leaves summed up to these nodes.

        Args:
            leaves: int32 finest areas of the leaves, for each axis; they may repeat.
            counts: int64.

        Returns:
            Areas of all nodes that have leaves, sorted by the first axis, then by the second and
            so on; and int64 sums.
        """
        above = self.above(leaves)
        if self.n_nodes < 1 << MAX_BITS:  # one key is sorted faster than several
            order = np.argsort(self.numbers(above), kind="stable")
        else:
            order = np.lexsort(above[::-1])
        above = [numbers[order] for numbers in above]
        first = np.flatnonzero(differ(above))
        sums = np.add.reduceat(counts[order], first) if len(first) else counts[:0]
        return tuple(numbers[first] for numbers in above), sums

    def leaf_capacities(self, only: str | None = None) -> Iterator[tuple[int, int]]:
        """(leaves under a node, number of such nodes), nodes with most leaves first, lazily.

        With the name of an axis, of that axis alone: finest areas under an area, and areas.

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
        """Child ranges on the refined axis, by area number there at the level above."""
        return self.axes[self.axis].hierarchy.child_offsets(self.depths[self.axis] - 1)

    @cached_property
    def n_children(self) -> NDArray[np.int64]:
        """int64: how many children areas of the refined axis have, by number at the level above."""
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

    def parents(self, areas: Sequence[NDArray[np.int32]]) -> tuple[NDArray[np.int32], ...]:
        """Areas of the parents of some nodes of this level, one array per axis."""
        return tuple(
            self.parent_area[numbers] if axis == self.axis else numbers
            for axis, numbers in enumerate(areas)
        )

    @cached_property
    def group_axes(self) -> tuple[int, ...]:
        """Axes in the order that group order goes by: the refined one, then the longest first."""
        others = [axis for axis in range(len(self.axes)) if axis != self.axis]
        return (self.axis, *sorted(others, key=lambda axis: -self.n_parent_areas(axis)))

    def n_parent_areas(self, axis: int) -> int:
        """Number of areas on an axis at the level of the parents."""
        return self.axes[axis].hierarchy.n_areas(self.parent_depths[axis])

    @property
    def most_parents(self) -> int:
        """Parents that a group of the step may have: all areas of all other axes."""
        return prod(self.n_parent_areas(axis) for axis in self.group_axes[1:])

    @cached_property
    def _key_fields(self) -> dict[int, tuple[int, int]]:
        """For each axis, how far its area is shifted in a key, and its number of bits."""
        fields, shift = {}, 0
        for axis in reversed(self.group_axes):
            bits = (self.n_parent_areas(axis) - 1).bit_length()
            fields[axis] = shift, bits
            shift += bits
        if shift + self.ordinal_bits > MAX_BITS:
            raise TreeError(
                f"the table has more than 2^{MAX_BITS} possible cells; leave out a column or its "
                "finest areas"
            )
        return fields

    def key_field(self, axis: int) -> tuple[int, int]:
        """Where the area on an axis lies in a key: how far it is shifted, and its bits."""
        return self._key_fields[axis]

    @cached_property
    def key_bits(self) -> int:
        """Bits of the keys of parents."""
        return sum(bits for _, bits in self._key_fields.values())

    def keys(self, parents: Sequence[NDArray[np.int32]]) -> NDArray[np.int64]:
        """int64: one number for each parent, from its areas; ascending numbers are group order."""
        key = np.zeros(len(parents[0]), np.int64)
        for axis, (shift, _) in self._key_fields.items():
            key |= parents[axis].astype(np.int64) << shift
        return key

    def areas_of(self, keys: NDArray[np.int64]) -> tuple[NDArray[np.int32], ...]:
        """int32 for each axis: areas of the parents with these keys."""
        return tuple(
            ((keys >> shift) & ((1 << bits) - 1)).astype(np.int32)
            for shift, bits in (self._key_fields[axis] for axis in range(len(self.axes)))
        )

    @cached_property
    def ordinal_bits(self) -> int:
        """Bits of the index of a node among the children of its parent."""
        return (self.max_children - 1).bit_length()

    @property
    def node_bits(self) -> int:
        """Bits of the numbers of nodes."""
        return self.key_bits + self.ordinal_bits

    def parent_codes(self) -> tuple[NDArray[np.int64], ...]:
        """int64[areas] for each axis: what each area adds to the key of a parent."""
        return tuple(
            np.arange(self.n_parent_areas(axis)) << self.key_field(axis)[0]
            for axis in range(len(self.axes))
        )

    @cached_property
    def node_codes(self) -> tuple[NDArray[np.int64], ...]:
        """int64[areas] for each axis: what each area adds to the number of a node of this level.

        That is the key of its parent, then its index among the parent's children.
        """
        codes = [code << self.ordinal_bits for code in self.parent_codes()]
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
    def is_restricted(self) -> bool:
        """Whether a node of the level above that can occur may have children that cannot."""
        if self.impossible is None or self.refined is None:
            return False
        return self.impossible.restricts(self.depths, self.axis)

    @cached_property
    def is_trivial(self) -> bool:
        """Whether the step to this level splits no area: nothing to measure, nothing to pay."""
        if self.refined is None:
            return False
        return not self.axes[self.refined].hierarchy.splits(self.depths[self.refined])


@dataclass(frozen=True)
class OffTree(Marginal):
    """A marginal off the tree that is measured.

    Attributes:
        level: the level of the tree whose step it belongs to: there the areas of `level.axis` are
            divided into those that it has.
    """

    level: TreeLevel

    @property
    def index(self) -> int:
        """Number of the level of the tree it belongs to."""
        return self.level.index

    @cached_property
    def across(self) -> int | None:
        """The axis beside `level.axis` that is not summed up; None in a one-way marginal."""
        others = [a for a, depth in enumerate(self.depths) if depth and a != self.level.axis]
        return others[0] if others else None

    @property
    def is_finest_one_way(self) -> bool:
        """Whether it gives the totals of an axis's finest areas."""
        axis = self.level.axis
        return self.across is None and self.depths[axis] == self.axes[axis].coarsest[-1]

    def hard_from(self, trust: float) -> float:
        """From how many released parents of a group on sums have to agree with it.

        Sums agree with totals of a short axis that are much better than the tree's own.

        Args:
            trust: variance of the noise of the step's children over that of the marginal.
        """
        hierarchy = self.axes[self.level.axis].hierarchy
        is_short = self.across is None and hierarchy.n_areas(hierarchy.depth) <= SHORT
        return MUCH_BETTER / trust if is_short else inf


@dataclass(frozen=True)
class Tree:
    """Axes, each with its hierarchy, and the order in which they are refined.

    Attributes:
        axes: the columns of the table.
        order: names of axes; each mention refines that axis by one level.
        impossible: cells that cannot occur, if any are known.

    >>> areas = Hierarchy.read({"region": ["N", "N", "S"], "town": ["1", "2", "3"]})
    >>> tree = Tree.destination_first(areas)
    >>> [level.name for level in tree.levels]
    ['all > all', 'all > region', 'region > region', 'region > town', 'town > town']
    >>> tree.levels[-1].n_nodes, tree.depth
    (9, 4)
    """

    axes: tuple[Axis, ...]
    order: tuple[str, ...]
    impossible: Impossible | None = field(default=None, repr=False, compare=False)

    @classmethod
    def build(cls, axes: Sequence[Axis], order: Sequence[str]) -> Self:
        """A tree from its axes and the order of refinement.

        Args:
            axes: the columns of the table.
            order: names of axes; each mention refines that axis by one level.

        Raises:
            TreeError: an axis is missing, named twice, or not refined to its finest level.
        """
        names = [axis.name for axis in axes]
        _check_names(names)
        for name in order:
            if name not in names:
                raise TreeError(
                    f"the order names the axis {name!r}; the axes are {', '.join(names)}"
                )
        for axis in axes:
            times = list(order).count(axis.name)
            if times != axis.hierarchy.depth:
                raise TreeError(
                    f"the order names the axis {axis.name!r} {times} times, but its "
                    f"hierarchy has {axis.hierarchy.depth} levels; name it once for each level"
                )
        return cls(tuple(axes), tuple(order))

    @classmethod
    def destination_first(cls, origin: Hierarchy, destination: Hierarchy | None = None) -> Self:
        """The destination tree of the paper: destination 1, origin 1, destination 2, ..."""
        axes = (Axis(ORIGIN, origin), Axis(DESTINATION, destination or origin))
        return cls.build(axes, interleave([axes[1], axes[0]]))

    @classmethod
    def origin_first(cls, origin: Hierarchy, destination: Hierarchy | None = None) -> Self:
        """The origin tree of the paper: origin 1, destination 1, origin 2, ..."""
        axes = (Axis(ORIGIN, origin), Axis(DESTINATION, destination or origin))
        return cls.build(axes, interleave(axes))

    @cached_property
    def levels(self) -> tuple[TreeLevel, ...]:
        """Levels 0 (root) to the number of steps, trivial ones included."""
        names = [axis.name for axis in self.axes]
        depths = [0] * len(names)
        impossible = self.impossible
        levels = [TreeLevel(self.axes, tuple(depths), 0, None, impossible=impossible)]
        for index, axis in enumerate(map(names.index, self.order), start=1):
            depths[axis] += 1
            level = TreeLevel(self.axes, tuple(depths), index, axis, impossible=impossible)
            levels.append(level)
        return tuple(levels)

    @cached_property
    def splitting_levels(self) -> tuple[TreeLevel, ...]:
        """Levels below the root that split something; only these are measured."""
        return tuple(level for level in self.levels[1:] if not level.is_trivial)

    @property
    def depth(self) -> int:
        """T: number of levels that are measured."""
        return len(self.splitting_levels)

    @property
    def is_od(self) -> bool:
        """Whether the axes are just origin and destination."""
        return _is_od(self.axes)

    def check_numbers(self) -> None:
        """Refuse a tree that has more nodes than there are numbers for them.

        Raises:
            TreeError: it has. Plans can be made for it, and nothing else.
        """
        for level in self.splitting_levels:
            level.key_field(0)

    @cached_property
    def off_tree(self) -> tuple[OffTree, ...]:
        """Marginals off the tree that are measured, in the order of the steps they belong to.

        All that have at most two axes which are not summed up, and not too many cells.
        """
        longest = max(axis.hierarchy.n_areas(axis.hierarchy.depth) for axis in self.axes)
        found = [
            OffTree(self.axes, depths, level, impossible=self.impossible)
            for level in self.splitting_levels
            for depths in _told_apart(level)
            if depths not in self.on_tree
        ]
        return tuple(one for one in found if one.n_nodes <= CELLS_PER_AREA * longest)

    def off_tree_at(self, level: TreeLevel) -> tuple[OffTree, ...]:
        """Those of one step."""
        return tuple(one for one in self.off_tree if one.index == level.index)

    def marginal(self, depths: Sequence[int]) -> TreeLevel | OffTree:
        """The level, or the marginal off the tree, that is measured at these depths."""
        every: list[TreeLevel | OffTree] = [*self.levels, *self.off_tree]
        return next(one for one in every if one.depths == depths)

    @cached_property
    def on_tree(self) -> frozenset[tuple[int, ...]]:
        """Depths of all levels, by the coarsest levels of the axes that have the same areas."""
        return frozenset(self.coarsest(level.depths) for level in self.levels)

    def coarsest(self, depths: Sequence[int]) -> tuple[int, ...]:
        """For each axis the coarsest level that has the same areas as the given one."""
        return tuple(axis.coarsest[depth] for axis, depth in zip(self.axes, depths, strict=True))


def chains(marginals: Sequence[OffTree]) -> list[list[OffTree]]:
    """Those of one step in chains, each coarse to fine, every one inside the one before.

    One chain for each further axis, and the one-way marginal at the head of the first of them.
    """
    one_way = [one for one in marginals if one.across is None]
    by_axis: dict[int, list[OffTree]] = {}
    for one in marginals:
        if one.across is not None:
            by_axis.setdefault(one.across, []).append(one)
    found = [sorted(chain, key=lambda one: one.n_nodes) for chain in by_axis.values()]
    return [one_way + found[0], *found[1:]] if found else [one_way] if one_way else []


def _told_apart(level: TreeLevel) -> Iterator[tuple[int, ...]]:
    """Depths of the marginals that tell the areas of a step apart, one-way first."""
    one_way = [0] * len(level.axes)
    one_way[level.axis] = level.axes[level.axis].coarsest[level.depths[level.axis]]
    yield tuple(one_way)
    others = [a for a in range(len(level.axes)) if a != level.axis]
    for axis in sorted(others, key=lambda a: -level.axes[a].hierarchy.n_areas(level.depths[a])):
        for coarser, depth in pairwise(level.axes[axis].coarsest[: level.depths[axis] + 1]):
            if depth != coarser:
                yield (*one_way[:axis], depth, *one_way[axis + 1 :])


def differ(areas: Sequence[NDArray[np.int32]]) -> NDArray[np.bool_]:
    """Whether each node differs from the one before it; the first one does."""
    found = np.zeros(len(areas[0]), bool)
    found[:1] = True
    for numbers in areas:
        found[1:] |= numbers[1:] != numbers[:-1]
    return found


def interleave(axes: Sequence[Axis]) -> list[str]:
    """One level of each axis in turn; when one is used up the others go on."""
    deepest = max(axis.hierarchy.depth for axis in axes)
    return [
        axis.name
        for level in range(1, deepest + 1)
        for axis in axes
        if level <= axis.hierarchy.depth
    ]


def default_order(axes: Sequence[Axis], first: str | None = None) -> list[str]:
    """Destination and origin in turn; every other axis after them, but `first`, one by one."""
    by_name = {axis.name: axis for axis in axes}
    begin = [by_name.pop(first)] if first in by_name else []
    ends = [by_name.pop(name) for name in (DESTINATION, ORIGIN) if name in by_name]
    order = [axis.name for axis in begin for _ in range(axis.hierarchy.depth)]
    order += interleave(ends) if ends else []
    return order + [name for name, axis in by_name.items() for _ in range(axis.hierarchy.depth)]


def build_tree(  # noqa: PLR0913 - one keyword for each thing that shapes a tree
    areas: Any = None,
    *,
    axis: Mapping[str, Any] | None = None,
    levels: Levels | None = None,
    order: Sequence[str] | None = None,
    outside: bool | Collection[str] = False,
    first: str | None = None,
) -> Tree:
    """The public tree from whatever describes it; see `release` for the arguments.

    `outside` says whether there is an area for what cannot be placed, or on which axes. Without an
    order, the axis called `first` is refined before all others.

    Raises:
        TreeError: no hierarchy is given for an end, or the order does not fit.
    """
    given = {} if areas is None else {ORIGIN: areas, DESTINATION: areas}
    given |= dict(axis or {})
    ends = {ORIGIN, DESTINATION} & given.keys()
    if len(ends) == 1:
        other = ({ORIGIN, DESTINATION} - ends).pop()
        raise TreeError(f"there is no hierarchy for the {other}; give areas for both ends")
    if not given:
        raise TreeError(
            "there is no hierarchy; give areas by `areas=`, or by `axis=` for other tables"
        )
    # Origins and destinations mostly have the same areas, which are then read once.
    read: dict[tuple[Any, bool], Hierarchy] = {}
    axes = []
    for name, source in given.items():
        is_outside = outside if isinstance(outside, bool) else name in outside
        key = (str(source) if isinstance(source, str | Path) else id(source), is_outside)
        if key not in read:
            found = read_areas(source, levels=levels if name in ends else None)
            read[key] = found.with_outside() if is_outside else found
        axes.append(Axis(name, read[key]))
    if order is not None and sorted(order) == sorted(axis.name for axis in axes):
        by_name = {axis.name: axis for axis in axes}
        order = interleave([by_name[name] for name in order])
    return Tree.build(axes, order or default_order(axes, first))


def _check_names(names: list[str]) -> None:
    if not names:
        raise TreeError("a tree needs at least one axis")
    # Query engines ignore case in column names, so names must differ in more than case.
    folded = [name.casefold() for name in names]
    for name in names:
        if folded.count(name.casefold()) > 1:
            raise TreeError(f"the axis {name!r} is given twice; name each axis once")
        if not name.strip() or name.casefold() in _TAKEN:
            raise TreeError(
                f"an axis must not be called {name!r}; give its column another name (columns of "
                f"what is released are called {', '.join(sorted(_TAKEN))})"
            )


def _is_od(axes: Sequence[Axis]) -> bool:
    return [axis.name for axis in axes] == [ORIGIN, DESTINATION]


def _sizes(axis: Axis, depth: int) -> list[tuple[int, int]]:
    """(leaves, number of areas with that many leaves) of one axis, largest first."""
    sizes, areas = np.unique(axis.hierarchy.leaves_under(depth), return_counts=True)
    return [(int(s), int(a)) for s, a in zip(sizes[::-1], areas[::-1], strict=True)]


def _largest_products(factors: list[list[tuple[int, int]]]) -> Iterator[tuple[int, int]]:
    """Products of one size from each factor with their multiplicities, largest first.

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
