"""The truth, level by level: how many trips there are at every node that has any.

A node is one area on every axis (paper, section 3). The nodes of a level stand in *group order*:
by the area that the step to the level refines, then by the other areas of their parent, then by
their index among its children. Released parents are divided in the same order, so that what belongs
to a group of parents is one slice here. Memory follows the number of nodes that have trips; nothing
of size areas x areas is ever built.

The truth is confidential, unless a comparison builds the same from a release. Nothing of it may
leave except through the mechanism or a comparison that is marked confidential; it does not even
print itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from inftda.errors import IngestError
from inftda.kernels import inlined_kernel, kernel
from inftda.threads import Crew
from inftda.tree import Tree, TreeLevel

#: Counts of any level, also after noise is added, leave room for the digits that decide ties.
MAX_TOTAL: Final = 2**43
#: Bits sorted by one pass: 2^11 counters stay in the first-level cache.
DIGIT_BITS: Final = 11
#: Fewer nodes than this are not worth a second thread.
FEW: Final = 1 << 17
#: Parts handed to each thread: several, because parts take different times.
PARTS_PER_THREAD: Final = 4

Areas = tuple[NDArray[np.int32], ...]
Ints = NDArray[np.int64]
_Number = TypeVar("_Number", bound=np.generic)


@dataclass(frozen=True, eq=False)
class Leaves:
    """The confidential leaf counts: all leaves with trips, in any order, some of them in parts.

    Build them with `Leaves.of`, which checks the total. A leaf that stands here several times has
    the sum of its counts; `Truth` adds them up.

    Attributes:
        areas: for each axis, int32 depth-first numbers of the finest areas; read-only.
        counts: int64, all above zero; their sum is at most 2^43. Read-only.
    """

    areas: Areas
    counts: Ints

    @classmethod
    def of(cls, areas: Sequence[NDArray[np.int32]], counts: Ints) -> Self:
        """Leaves, those with a count of zero left out; no count may be negative.

        Raises:
            IngestError: the total is beyond 2^43.
        """
        check_total(_sum(counts))
        is_kept = counts != 0
        if not is_kept.all():
            areas, counts = [axis[is_kept] for axis in areas], counts[is_kept]
        # All of one kind, wherever they come from: kernels are compiled for kinds of arrays.
        return cls(
            tuple(_read_only(axis, np.int32) for axis in areas), _read_only(counts, np.int64)
        )

    def __repr__(self) -> str:
        return f"Leaves({len(self.areas)} axes, confidential)"


def _read_only(array: NDArray[Any], dtype: type[_Number]) -> NDArray[_Number]:
    """The array itself, or a copy if it is not contiguous or of another type."""
    view = np.ascontiguousarray(array, dtype).view()
    view.flags.writeable = False
    return view


def _sum(counts: Ints) -> int:
    """The sum, exact whatever the counts are; none is negative."""
    if not len(counts) or int(counts.max()) < 2**63 // len(counts):
        return int(counts.sum())
    # In halves, each of which is exact in int64.
    high, low = int((counts >> 32).sum()), int((counts & 0xFFFFFFFF).sum())
    return (high << 32) + low


def check_total(total: int) -> None:
    """Refuse more trips than sums of noisy counts leave room for.

    Raises:
        IngestError: there are more than 2^43.
    """
    if total > MAX_TOTAL:
        raise IngestError(
            "the total number of trips is beyond 2^43; check the count column, or split the table "
            "into parts"
        )


@dataclass(frozen=True, eq=False)
class Children:
    """Nodes of one splitting level that have trips, in group order. Confidential.

    Attributes:
        level: the level of the tree.
        node: int64[nodes], ascending: their numbers, see `TreeLevel.node_codes`.
        count: int64[nodes], their trips.
    """

    level: TreeLevel
    node: Ints
    count: Ints

    def __repr__(self) -> str:
        return f"Children({self.level.name}, confidential)"

    @classmethod
    def of(cls, level: TreeLevel, areas: Areas, count: Ints, crew: Crew) -> "Children":
        """Nodes of a level, which may come in any order and several times."""
        return cls(level, *sort_nodes(level.node_codes, areas, count, level.node_bits, crew))

    @cached_property
    def offsets(self) -> Ints:
        """int64[parents + 1]: slices of the nodes of each parent."""
        keys = self.node >> self.level.ordinal_bits
        return np.append(np.flatnonzero(np.diff(keys, prepend=-1)), len(keys))

    @property
    def key(self) -> Ints:
        """int64[parents], ascending: the parents, as `TreeLevel.keys` numbers them."""
        return self.node[self.offsets[:-1]] >> self.level.ordinal_bits

    @property
    def ordinal(self) -> Ints:
        """int64[nodes]: index of each node among all children of its parent."""
        return self.node & ((1 << self.level.ordinal_bits) - 1)

    def areas(self) -> Areas:
        """int32 for each axis: areas of the nodes."""
        level = self.level
        areas = list(level.areas_of(self.node >> level.ordinal_bits))
        areas[level.axis] = level.child_offsets[areas[level.axis]] + self.ordinal.astype(np.int32)
        return tuple(areas)

    def parents(self, crew: Crew) -> tuple[Areas, Ints]:
        """Areas of the parents for each axis, and the trips of each parent."""
        level, bits = self.level, self.level.ordinal_bits
        parts = crew.parts(len(self.node), FEW)
        n_parents = [*crew.map(lambda part: count_parents_kernel(self.node, bits, *part), parts)]
        ends = np.cumsum(n_parents).tolist()
        areas = tuple(np.empty(ends[-1], np.int32) for _ in level.axes)
        sums = np.empty(ends[-1], np.int64)
        fields = tuple(level.key_field(axis) for axis in range(len(level.axes)))

        def add_up(part: tuple[tuple[int, int], int]) -> None:
            (first, last), to = part
            sum_up_kernel(self.node, self.count, bits, fields, first, last, to, areas, sums)

        crew.run(add_up, zip(parts, [0, *ends], strict=False))
        return areas, sums


@dataclass(frozen=True, repr=False)
class Truth:
    """Counts of a tree, level by level.

    Attributes:
        tree: the public tree.
        total: number of trips.
        levels: the splitting levels, coarse to fine.
        margins: int64[finest areas] for each axis, the trips of every area.
    """

    tree: Tree
    total: int
    levels: tuple[Children, ...]
    margins: tuple[Ints, ...]

    @classmethod
    def of(cls, tree: Tree, leaves: Leaves, *, threads: int | None = None) -> "Truth":
        """Sum leaves up, from the finest level to the coarsest: parents are the next children.

        Args:
            tree: the public tree.
            leaves: they may repeat.
            threads: how many to sort on, at least 1; all cores by default.
        """
        nodes, total = (leaves.areas, leaves.counts), int(leaves.counts.sum())
        margins = tuple(
            np.zeros(axis.hierarchy.n_areas(axis.hierarchy.depth), np.int64) for axis in tree.axes
        )
        for number, margin in enumerate(margins):
            add_by_area_kernel(leaves.areas[number], leaves.counts, margin)
        del leaves  # levels take the room
        crew = Crew(threads)
        levels: list[Children] = []
        for level in reversed(tree.splitting_levels):
            levels.insert(0, Children.of(level, *nodes, crew))
            nodes = levels[0].parents(crew)
        return cls(tree, total, tuple(levels), margins)

    @classmethod
    def from_leaves(
        cls,
        tree: Tree,
        areas: Sequence[NDArray[np.int32]],
        counts: Ints,
        *,
        threads: int | None = None,
    ) -> "Truth":
        """The same from plain arrays; see `Leaves.of`.

        Raises:
            IngestError: the total is beyond 2^43.
        """
        return cls.of(tree, Leaves.of(areas, counts), threads=threads)

    def __repr__(self) -> str:
        return f"Truth({len(self.tree.axes)} axes, confidential)"

    def level(self, level: TreeLevel) -> Children:
        """The nodes of one splitting level."""
        return next(known for known in self.levels if known.level.index == level.index)

    @property
    def n_leaves(self) -> int:
        """Number of leaves that have trips."""
        return len(self.levels[-1].count) if self.levels else int(self.total > 0)

    @cached_property
    def leaves(self) -> tuple[Areas, Ints]:
        """Area numbers on each axis and counts of the leaves."""
        if self.levels:
            return self.levels[-1].areas(), self.levels[-1].count
        n = self.n_leaves
        return tuple(np.zeros(n, np.int32) for _ in self.tree.axes), np.full(n, self.total)

    def above(self, number: int) -> Ints:
        """int64[parents]: where the parents of `levels[number]` stand among the nodes above."""
        here = self.levels[number]
        if number == 0:
            return np.zeros(len(here.key), np.int64)
        above = self.levels[number - 1]
        codes = zip(above.level.node_codes, here.level.areas_of(here.key), strict=True)
        return np.searchsorted(above.node, sum(code[areas] for code, areas in codes))


def sort_nodes(
    codes: Sequence[Ints], areas: Areas, counts: Ints, n_bits: int, crew: Crew
) -> tuple[Ints, Ints]:
    """Numbers of nodes, ascending, and their counts; those of a node that repeats are added up.

    Nodes are partitioned by the top bits of their numbers, then each bucket is sorted.

    Args:
        codes: int64[areas] for each axis; the number of a node is the sum of its areas' codes.
        areas: int32[n] for each axis.
        counts: int64[n]. The total is below 2^60.
        n_bits: bits of the numbers.
        crew: threads to sort on.
    """
    n, cut, codes = len(counts), max(n_bits - DIGIT_BITS, 0), tuple(codes)
    node, count = np.empty(n, np.int64), np.empty(n, np.int64)
    parts = crew.parts(n, FEW)
    sizes = np.zeros((len(parts), 1 << (n_bits - cut)), np.int64)

    def count_part(part: int) -> None:
        count_nodes_kernel(codes, areas, *parts[part], cut, sizes[part])

    def move_part(part: int) -> None:
        move_nodes_kernel(codes, areas, counts, *parts[part], cut, free[part], node, count)

    crew.run(count_part, range(len(parts)))
    # Of every bucket first the nodes of the first part, then those of the second, and so on.
    free = (np.cumsum(sizes.T).reshape(sizes.T.shape) - sizes.T).T.copy()
    crew.run(move_part, range(len(parts)))
    offsets = np.concatenate([[0], free[-1]])

    def sort(buckets: tuple[int, int]) -> slice:
        largest = int(np.diff(offsets[buckets[0] : buckets[1] + 1]).max(initial=0))
        spare = np.empty(largest, np.int64), np.empty(largest, np.int64)
        ends = np.empty(1 << DIGIT_BITS, np.int64)
        last = sort_buckets_kernel(node, count, offsets, *buckets, cut, *spare, ends)
        return slice(int(offsets[buckets[0]]), last)

    n_parts = len(parts) * PARTS_PER_THREAD
    wanted = [n * part // n_parts for part in range(1, n_parts)]
    cuts = [0, *np.searchsorted(offsets[1:], wanted).tolist(), len(offsets) - 1]
    kept = list(crew.map(sort, pairwise(cuts)))
    if sum(part.stop - part.start for part in kept) == n:
        return node, count
    merged = [np.concatenate([array[part] for part in kept]) for array in (node, count)]
    return merged[0], merged[1]


@kernel
def add_by_area_kernel(areas: NDArray[np.int32], counts: Ints, sums: Ints) -> None:
    """Add counts to the sums of their areas, in place."""
    for i in range(areas.size):
        sums[areas[i]] += counts[i]


@inlined_kernel
def number_of(codes: tuple[Ints, ...], areas: Areas, i: int) -> Any:
    """Number of one node."""
    number = np.int64(0)
    for axis in range(len(codes)):
        number += codes[axis][areas[axis][i]]
    return number


@kernel
def count_nodes_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    codes: tuple[Ints, ...], areas: Areas, first: int, last: int, cut: int, sizes: Ints
) -> None:
    """Add how many of the nodes first..last have each value of the bits from `cut` on."""
    for i in range(first, last):
        sizes[number_of(codes, areas, i) >> cut] += 1


@kernel
def move_nodes_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    codes: tuple[Ints, ...],
    areas: Areas,
    counts: Ints,
    first: int,
    last: int,
    cut: int,
    free: Ints,
    node: Ints,
    count: Ints,
) -> None:
    """Write numbers and counts of the nodes first..last into buckets, of the bits from `cut` on.

    `free` is int64[buckets]: the next free index of each, before and after.
    """
    for i in range(first, last):
        number = number_of(codes, areas, i)
        to = free[number >> cut]
        free[number >> cut] = to + 1
        node[to], count[to] = number, counts[i]


@kernel
def sort_buckets_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    node: Ints,
    count: Ints,
    offsets: Ints,
    first: int,
    last: int,
    cut: int,
    spare_node: Ints,
    spare_count: Ints,
    ends: Ints,
) -> int:
    """Sort each of the buckets first..last by radix, and add up what is equal.

    What is left stands from the beginning of the first bucket on; where it ends is returned.

    Args:
        node: int64[n], sorted.
        count: int64[n], moved along.
        offsets: int64[buckets + 1], slices of these.
        first: first bucket.
        last: one after the last.
        cut: number of the bits that nodes of a bucket differ in.
        spare_node: int64[nodes of the largest bucket], overwritten, as are the next two.
        spare_count: int64, as many.
        ends: int64[2^DIGIT_BITS].
    """
    mask, start = ends.size - 1, int(offsets[first])
    end = start
    for bucket in range(first, last):
        low, high = offsets[bucket], offsets[bucket + 1]
        nodes, counts = node[low:high], count[low:high]
        others, their = spare_node[: high - low], spare_count[: high - low]
        for shift in range(0, cut, DIGIT_BITS):
            ends[:] = 0
            for i in range(nodes.size):
                ends[(nodes[i] >> shift) & mask] += 1
            if nodes.size == 0 or ends[(nodes[0] >> shift) & mask] == nodes.size:
                continue  # all digits are equal
            free = 0
            for digit in range(ends.size):
                free, ends[digit] = free + ends[digit], free
            for i in range(nodes.size):
                digit = (nodes[i] >> shift) & mask
                to = ends[digit]
                ends[digit] = to + 1
                others[to], their[to] = nodes[i], counts[i]
            nodes, others, counts, their = others, nodes, their, counts
        for i in range(nodes.size):
            if end > start and node[end - 1] == nodes[i]:
                count[end - 1] += counts[i]
            else:
                node[end], count[end] = nodes[i], counts[i]
                end += 1
    return end


@kernel
def count_parents_kernel(node: Ints, bits: int, first: int, last: int) -> int:
    """Number of the parents whose first child is among the nodes first..last."""
    n = 0
    for i in range(first, last):
        n += i == 0 or node[i] >> bits != node[i - 1] >> bits
    return n


@kernel
def sum_up_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    node: Ints,
    count: Ints,
    bits: int,
    fields: tuple[tuple[int, int], ...],
    first: int,
    last: int,
    to: int,
    areas: Areas,
    sums: Ints,
) -> None:
    """Write areas and trips of the parents whose first child is among the nodes first..last.

    The first of these parents goes to index `to`. For `bits` and `fields`, see `TreeLevel`.
    """
    i = first
    while 0 < i < last and node[i] >> bits == node[i - 1] >> bits:
        i += 1
    while i < last:
        key, trips = node[i] >> bits, 0
        while i < node.size and node[i] >> bits == key:
            trips += count[i]
            i += 1
        for axis in range(len(areas)):
            shift, width = fields[axis]
            areas[axis][to] = (key >> shift) & ((1 << width) - 1)
        sums[to] = trips
        to += 1
