"""The true counts, level by level, of every node that is not zero. Confidential.

A node is one area on every axis (paper, section 3). The nodes of a level stand in *group order*:
by the area that the step to the level refines, then by the other areas of their parent, then by
their index among its children. Released parents are divided in the same order, so the children of a
group of parents are one slice here. Memory follows the number of nodes that have trips; nothing of
size areas x areas is ever built.

The truth is confidential, unless a comparison builds the same from a release. Nothing of it may
leave except through the mechanism or a comparison that is marked confidential; its repr shows no
counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from inftda.errors import IngestError
from inftda.tree import Areas, Cells, Ints, Tree, TreeLevel
from inftda.tree.cells import differ
from inftda.tree.keys import MAX_BITS
from inftda.util.exact_numbers import exact_sum
from inftda.util.kernels import inlined_kernel, kernel
from inftda.util.threads import ThreadPool

#: Counts of any level, also after noise is added, leave room for the digits that decide ties.
MAX_TOTAL: Final = 2**43
#: Bits sorted by one pass: 2^11 counters stay in the first-level cache.
DIGIT_BITS: Final = 11
#: Fewer nodes than this are not worth a second thread.
FEW: Final = 1 << 17
#: Parts handed to each thread: several, because parts take different times.
PARTS_PER_THREAD: Final = 4

_Number = TypeVar("_Number", bound=np.generic)


def leaf_counts(areas: Sequence[NDArray[Any]], counts: NDArray[Any]) -> Cells:
    """The confidential leaf counts: all leaves with trips, in any order, some of them in parts.

    A leaf that stands here several times has the sum of its counts; `Truth` adds them up.

    Args:
        areas: for each axis depth-first numbers of the finest areas.
        counts: none negative; leaves with a count of zero are left out.

    Raises:
        IngestError: the total is beyond 2^43.
    """
    check_total(exact_sum(counts))
    is_kept = counts != 0
    if not is_kept.all():
        areas, counts = [axis[is_kept] for axis in areas], counts[is_kept]
    return Cells(tuple(_read_only(axis, np.int32) for axis in areas), _read_only(counts, np.int64))


def may_repeat(leaves: Cells) -> bool:
    """Return whether a leaf is listed several times; also True if there are too many to tell."""
    sizes = [int(axis.max(initial=0)) + 1 for axis in leaves.areas]
    if prod(sizes) > 1 << MAX_BITS:
        return True
    key = np.ravel_multi_index(leaves.areas, sizes)
    key.sort()
    return bool((key[1:] == key[:-1]).any())


def _read_only(array: NDArray[Any], dtype: type[_Number]) -> NDArray[_Number]:
    """The array itself, or a copy if it is not contiguous or of another type."""
    view = np.ascontiguousarray(array, dtype).view()
    view.flags.writeable = False
    return view


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
    def of(cls, level: TreeLevel, cells: Cells, pool: ThreadPool) -> "Children":
        """Nodes of a level, which may come in any order and several times."""
        bits = level.numbering.bits + level.numbering.ordinal_bits
        return cls(level, *sort_nodes(level.node_codes, cells, bits, pool))

    @cached_property
    def offsets(self) -> Ints:
        """int64[parents + 1]: slices of the nodes of each parent."""
        keys = self.node >> self.level.numbering.ordinal_bits
        return np.append(np.flatnonzero(differ([keys])), len(keys))

    @property
    def key(self) -> Ints:
        """int64[parents], ascending: the parents, as `TreeLevel.keys` numbers them."""
        return self.node[self.offsets[:-1]] >> self.level.numbering.ordinal_bits

    @property
    def ordinal(self) -> Ints:
        """int64[nodes]: index of each node among all children of its parent."""
        return self.node & ((1 << self.level.numbering.ordinal_bits) - 1)

    def areas(self) -> Areas:
        """int32 for each axis: areas of the nodes."""
        level = self.level
        areas = list(level.areas_of(self.node >> level.numbering.ordinal_bits))
        areas[level.axis] = level.child_offsets[areas[level.axis]] + self.ordinal.astype(np.int32)
        return tuple(areas)

    def parents(self) -> Cells:
        """The parents, and the trips of each."""
        return Cells(self.level.areas_of(self.key), _sums(self.count, self.offsets[:-1]))


@dataclass(frozen=True, repr=False)
class Truth:
    """Counts of a tree, level by level.

    Attributes:
        tree: the public tree.
        total: number of trips.
        levels: the splitting levels, coarse to fine.
        marginal_totals: int64[finest areas] for each axis, the trips of every area.
    """

    tree: Tree
    total: int
    levels: tuple[Children, ...]
    marginal_totals: tuple[Ints, ...]

    @classmethod
    def of(cls, tree: Tree, leaves: Cells, *, threads: int | None = None) -> "Truth":
        """Sum leaves of `leaf_counts` up, from the finest level: parents are the next children."""
        nodes, total = leaves, int(leaves.value.sum())
        # Sums of counts are far below 2^53, so they are exact as floats.
        marginal_totals = tuple(
            np.bincount(areas, leaves.value, axis.hierarchy.n_areas(axis.hierarchy.depth)).astype(
                np.int64
            )
            for axis, areas in zip(tree.axes, leaves.areas, strict=True)
        )
        del leaves  # levels take the room
        levels, pool = list[Children](), ThreadPool(threads)
        for level in reversed(tree.splitting_levels):
            levels.insert(0, Children.of(level, nodes, pool))
            nodes = levels[0].parents()
        return cls(tree, total, tuple(levels), marginal_totals)

    @classmethod
    def from_leaves(
        cls,
        tree: Tree,
        areas: Sequence[NDArray[Any]],
        counts: NDArray[Any],
        *,
        threads: int | None = None,
    ) -> "Truth":
        """The truth of plain arrays; see `leaf_counts`.

        Raises:
            IngestError: the total is beyond 2^43.
        """
        return cls.of(tree, leaf_counts(areas, counts), threads=threads)

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
    def leaves(self) -> Cells:
        """Areas and counts of the leaves."""
        if self.levels:
            return Cells(self.levels[-1].areas(), self.levels[-1].count)
        return Cells.root(len(self.tree.axes), self.total)

    def above(self, number: int) -> Ints:
        """int64[parents]: where the parents of `levels[number]` stand among the nodes above."""
        here = self.levels[number]
        if number == 0:
            return np.zeros(len(here.key), np.int64)
        above = self.levels[number - 1]
        codes = zip(above.level.node_codes, here.level.areas_of(here.key), strict=True)
        return np.searchsorted(above.node, sum(code[areas] for code, areas in codes))


def sort_nodes(
    codes: Sequence[Ints], cells: Cells, n_bits: int, pool: ThreadPool
) -> tuple[Ints, Ints]:
    """Numbers of nodes, ascending, and their counts; those of a node that repeats are added up.

    Nodes are partitioned by the top bits of their numbers, then each bucket is sorted.

    Args:
        codes: int64[areas] for each axis; the number of a node is the sum of its areas' codes.
        cells: the nodes; their total is below 2^60.
        n_bits: bits of the numbers.
        pool: threads to sort on.
    """
    # All read-only, so that numba compiles one kernel.
    areas = tuple(_read_only(axis, np.int32) for axis in cells.areas)
    nodes = tuple(codes), areas, _read_only(cells.value, np.int64)
    n, cut = len(cells.value), max(n_bits - DIGIT_BITS, 0)
    node, count = np.empty(n, np.int64), np.empty(n, np.int64)
    parts = pool.parts(n, FEW)
    sizes = np.zeros((len(parts), 1 << (n_bits - cut)), np.int64)

    def count_part(part: int) -> None:
        count_nodes_kernel(nodes, parts[part], cut, sizes[part])

    def move_part(part: int) -> None:
        move_nodes_kernel(nodes, parts[part], cut, free[part], (node, count))

    pool.run(count_part, range(len(parts)))
    # Of every bucket first the nodes of the first part, then those of the second, and so on.
    free = (np.cumsum(sizes.T).reshape(sizes.T.shape) - sizes.T).T.copy()
    pool.run(move_part, range(len(parts)))
    offsets = np.concatenate([[0], free[-1]])

    def sort(buckets: tuple[int, int]) -> slice:
        largest = int(np.diff(offsets[buckets[0] : buckets[1] + 1]).max(initial=0))
        spare = np.empty(largest, np.int64), np.empty(largest, np.int64)
        last = sort_buckets_kernel((node, count), offsets, buckets, cut, spare)
        return slice(int(offsets[buckets[0]]), last)

    n_parts = len(parts) * PARTS_PER_THREAD
    wanted = [n * part // n_parts for part in range(1, n_parts)]
    cuts = [0, *np.searchsorted(offsets[1:], wanted).tolist(), len(offsets) - 1]
    kept = list(pool.map(sort, pairwise(cuts)))
    if sum(part.stop - part.start for part in kept) == n:
        return node, count
    merged = [np.concatenate([array[part] for part in kept]) for array in (node, count)]
    return merged[0], merged[1]


def _sums(counts: Ints, starts: Ints) -> Ints:
    """int64: sums of slices, none of which is empty."""
    if len(starts) == len(counts):
        return counts
    sums: Ints = np.add.reduceat(counts, starts)
    return sums


@inlined_kernel
def number_of(codes: tuple[Ints, ...], areas: Areas, i: int) -> Any:
    """Number of one node."""
    number = np.int64(0)
    for axis in range(len(codes)):
        number += codes[axis][areas[axis][i]]
    return number


@kernel
def count_nodes_kernel(
    nodes: tuple[tuple[Ints, ...], Areas, Ints], part: tuple[int, int], cut: int, sizes: Ints
) -> None:
    """Add how many nodes of a part have each value of the bits from `cut` on."""
    codes, areas, _ = nodes
    for i in range(part[0], part[1]):
        sizes[number_of(codes, areas, i) >> cut] += 1


@kernel
def move_nodes_kernel(
    nodes: tuple[tuple[Ints, ...], Areas, Ints],
    part: tuple[int, int],
    cut: int,
    free: Ints,
    out: tuple[Ints, Ints],
) -> None:
    """Write numbers and counts of the nodes of a part into buckets, of the bits from `cut` on.

    `free` is int64[buckets]: the next free index of each, before and after.
    """
    codes, areas, counts = nodes
    node, count = out
    for i in range(part[0], part[1]):
        number = number_of(codes, areas, i)
        to = free[number >> cut]
        free[number >> cut] = to + 1
        node[to], count[to] = number, counts[i]


@kernel
def sort_buckets_kernel(
    nodes_of_all: tuple[Ints, Ints],
    offsets: Ints,
    buckets: tuple[int, int],
    cut: int,
    spare: tuple[Ints, Ints],
) -> int:
    """Sort each of some buckets by radix, and add up counts of equal nodes.

    The result begins at the first bucket; return its end.

    Args:
        nodes_of_all: int64[n] twice: numbers, which are sorted, and counts.
        offsets: int64[buckets + 1], slices of these.
        buckets: the first bucket, and the one after the last.
        cut: number of the bits that nodes of a bucket differ in.
        spare: int64[nodes of the largest bucket] twice, overwritten.
    """
    node, count = nodes_of_all
    ends = np.empty(1 << DIGIT_BITS, np.int64)
    mask, start = ends.size - 1, int(offsets[buckets[0]])
    end = start
    for bucket in range(buckets[0], buckets[1]):
        low, high = offsets[bucket], offsets[bucket + 1]
        nodes, counts = node[low:high], count[low:high]
        others, their = spare[0][: high - low], spare[1][: high - low]
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
