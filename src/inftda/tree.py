"""The tree that is released top-down: axes and the order in which they are refined.

A node is one area on every axis. Each step refines one axis by one level; the paper's
destination tree (section 3) refines destination 1, origin 1, destination 2, origin 2, ...
Nothing of the size of the tree is ever built: sizes are Python integers, 10^12 nodes are normal.

The tree is public knowledge: it must never be derived from the trips.
"""

import heapq
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from inftda.areas.reader import Levels, read_areas
from inftda.errors import TreeError
from inftda.hierarchy import Hierarchy

ORIGIN, DESTINATION = "origin", "destination"
_TAKEN = "flow"
#: Bits of the number of a cell, at most: numbers of cells are int64.
MAX_BITS = 62


@dataclass(frozen=True)
class Axis:
    """One column of the table and the hierarchy its codes come from."""

    name: str
    hierarchy: Hierarchy


@dataclass(frozen=True, slots=True)
class Step:
    """Refinement of one axis (by its number) from `level - 1` to `level` of its hierarchy."""

    axis: int
    level: int


@dataclass(frozen=True)
class TreeLevel:
    """All nodes after the first `index` steps; level 0 is the root.

    Attributes:
        index: number of steps taken.
        step: the step that leads here; None at the root.
        axes: the axes of the tree.
        depths: the level in each axis's hierarchy that nodes of this level are at.
    """

    index: int
    step: Step | None
    axes: tuple[Axis, ...]
    depths: tuple[int, ...]

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
        """Number of possible nodes."""
        return prod(
            axis.hierarchy.n_areas(depth)
            for axis, depth in zip(self.axes, self.depths, strict=True)
        )

    @cached_property
    def axis(self) -> int:
        """Number of the axis that the step to this level refines."""
        if self.step is None:
            raise TreeError("the root is not reached by refining an axis")
        return self.step.axis

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

    @cached_property
    def _key_fields(self) -> dict[int, tuple[int, int]]:
        """For each axis, how far its area is shifted in a key, and its number of bits."""
        fields, shift = {}, 0
        for axis in reversed(self.group_axes):
            bits = (self.n_parent_areas(axis) - 1).bit_length()
            fields[axis] = shift, bits
            shift += bits
        if shift > MAX_BITS:
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
    def max_children(self) -> int:
        """Largest number of nodes of this level under one node of the level above."""
        return 1 if self.step is None else int(self.n_children.max())

    @cached_property
    def is_trivial(self) -> bool:
        """Whether the step to this level splits no area: nothing to measure, nothing to pay."""
        if self.step is None:
            return False
        return not self.axes[self.step.axis].hierarchy.splits(self.step.level)

    def sum_up(
        self, leaves: Sequence[NDArray[np.int32]], counts: NDArray[np.int64]
    ) -> tuple[tuple[NDArray[np.int32], ...], NDArray[np.int64]]:
        """Leaves summed up to the nodes of this level.

        Args:
            leaves: int32 finest areas of the leaves, for each axis; they may repeat.
            counts: int64.

        Returns:
            Areas of all nodes that have leaves, sorted by the first axis, then by the second and
            so on; and int64 sums.
        """
        above = [
            axis.hierarchy.ancestor(axis.hierarchy.depth, depth)[numbers]
            for axis, depth, numbers in zip(self.axes, self.depths, leaves, strict=True)
        ]
        if self.n_nodes < 1 << MAX_BITS:  # one key is sorted faster than several
            key = np.zeros(len(counts), np.int64)
            for axis, depth, numbers in zip(self.axes, self.depths, above, strict=True):
                key = key * axis.hierarchy.n_areas(depth) + numbers
            order = np.argsort(key, kind="stable")
        else:
            order = np.lexsort(above[::-1])
        above = [numbers[order] for numbers in above]
        first = np.flatnonzero(differ(above))
        sums = np.add.reduceat(counts[order], first) if len(first) else counts[:0]
        return tuple(numbers[first] for numbers in above), sums

    def leaf_capacities(self) -> Iterator[tuple[int, int]]:
        """(leaves under a node, number of such nodes), nodes with most leaves first, lazily."""
        factors = [_sizes(axis, depth) for axis, depth in zip(self.axes, self.depths, strict=True)]
        return _largest_products(factors)


@dataclass(frozen=True)
class Tree:
    """Axes, each with its hierarchy, and the order in which they are refined.

    >>> areas = Hierarchy.read({"region": ["N", "N", "S"], "town": ["1", "2", "3"]})
    >>> tree = Tree.destination_first(areas)
    >>> [level.name for level in tree.levels]
    ['all > all', 'all > region', 'region > region', 'region > town', 'town > town']
    >>> tree.levels[-1].n_nodes, tree.depth
    (9, 4)
    """

    axes: tuple[Axis, ...]
    steps: tuple[Step, ...]

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
        depths = dict.fromkeys(names, 0)
        steps = []
        for name in order:
            if name not in depths:
                raise TreeError(
                    f"the order names the axis {name!r}; the axes are {', '.join(names)}"
                )
            depths[name] += 1
            steps.append(Step(names.index(name), depths[name]))
        for axis in axes:
            if depths[axis.name] != axis.hierarchy.depth:
                raise TreeError(
                    f"the order names the axis {axis.name!r} {depths[axis.name]} times, but its "
                    f"hierarchy has {axis.hierarchy.depth} levels; name it once for each level"
                )
        return cls(tuple(axes), tuple(steps))

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
        depths = [0] * len(self.axes)
        levels = [TreeLevel(0, None, self.axes, tuple(depths))]
        for index, step in enumerate(self.steps, start=1):
            depths[step.axis] = step.level
            levels.append(TreeLevel(index, step, self.axes, tuple(depths)))
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

    def sum_up(
        self, depths: Sequence[int], areas: Sequence[NDArray[np.int32]], counts: NDArray[np.int64]
    ) -> tuple[tuple[NDArray[np.int32], ...], NDArray[np.int64]]:
        """Leaves summed up to one level of every axis, 0 where it is summed up altogether."""
        return TreeLevel(0, None, self.axes, tuple(depths)).sum_up(areas, counts)

    @property
    def order(self) -> tuple[str, ...]:
        """Names of the axes in the order of refinement, as `Tree.build` takes them."""
        return tuple(self.axes[step.axis].name for step in self.steps)


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


def default_order(axes: Sequence[Axis], *, first: str = DESTINATION) -> list[str]:
    """Origin and destination in turn, `first` first; every other axis after them, one by one."""
    ends = [axis for axis in axes if axis.name in {ORIGIN, DESTINATION}]
    others = [axis for axis in axes if axis.name not in {ORIGIN, DESTINATION}]
    ends.sort(key=lambda axis: axis.name != first)
    order = interleave(ends) if ends else []
    for axis in others:
        order += [axis.name] * axis.hierarchy.depth
    return order


def build_tree(  # noqa: PLR0913 - the ways to describe the public tree
    areas: Any = None,
    *,
    origin_areas: Any = None,
    destination_areas: Any = None,
    axes: Mapping[str, Any] | None = None,
    order: Sequence[str] | None = None,
    first: Literal["destination", "origin"] = "destination",
    outside: bool | Collection[str] = False,
    levels: Levels | None = None,
) -> Tree:
    """The public tree from whatever describes it; see `release` for the arguments.

    `outside` says whether there is an area for what cannot be placed, or on which axes.

    Raises:
        TreeError: no hierarchy is given for an end, or the order does not fit.
    """
    if first not in {ORIGIN, DESTINATION}:
        raise TreeError(f"tree must be 'destination' or 'origin', got {first!r}")
    given: dict[str, Any] = {}
    if areas is not None or origin_areas is not None or destination_areas is not None:
        given = {
            ORIGIN: areas if origin_areas is None else origin_areas,
            DESTINATION: areas if destination_areas is None else destination_areas,
        }
    given |= dict(axes or {})
    for name, source in given.items():
        if source is None:
            raise TreeError(f"there is no hierarchy for the {name}; give areas for both ends")
    if not given:
        raise TreeError(
            "there is no hierarchy; give areas by --areas (areas= in Python), or --axis for "
            "other tables"
        )
    # Origins and destinations mostly have the same areas, which are then read once.
    read: dict[tuple[int, bool], Hierarchy] = {}
    built = []
    for name, source in given.items():
        is_outside = outside if isinstance(outside, bool) else name in outside
        if (id(source), is_outside) not in read:
            found = read_areas(source, levels=levels if name in {ORIGIN, DESTINATION} else None)
            read[id(source), is_outside] = found.with_outside() if is_outside else found
        built.append(Axis(name, read[id(source), is_outside]))
    return Tree.build(built, order or default_order(built, first=first))


def _check_names(names: list[str]) -> None:
    if not names:
        raise TreeError("a tree needs at least one axis")
    # Query engines ignore case in column names, so names must differ in more than case.
    folded = [name.casefold() for name in names]
    for name in names:
        if folded.count(name.casefold()) > 1:
            raise TreeError(f"the axis {name!r} is given twice; name each axis once")
        if not name.strip() or name.casefold() == _TAKEN:
            raise TreeError(
                f"an axis must not be called {name!r}; give its column another name "
                f"({_TAKEN!r} is the column of what is released)"
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
