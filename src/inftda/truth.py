"""The truth, level by level: how many trips there are at every node that has any.

A node is one area on every axis (paper, section 3). The nodes of a level are kept as children by
parent. Parents stand in *group order*: by the area that the step to the level refines, then by
their other areas. Released parents are divided in the same order, so that what belongs to a group
of parents is one slice here. Memory follows the number of nodes that have trips; nothing of size
areas x areas is ever built.

The truth is confidential, unless a comparison builds the same from a release. Nothing of it may
leave except through the mechanism or a comparison that is marked confidential; it does not even
print itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from inftda.errors import IngestError
from inftda.kernels import kernel
from inftda.threads import Crew, available_cores
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
        """Leaves, those with a count of zero left out.

        Args:
            areas: for each axis, int32 numbers of finest areas.
            counts: int64, not negative; zeros are left out.

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


class Children(NamedTuple):
    """Nodes of one splitting level that have trips, by parent. Confidential.

    Attributes:
        level: the level of the tree.
        key: int64[parents], ascending: the parents, as `TreeLevel.keys` numbers them.
        offsets: int64[parents + 1], slices of the next two.
        ordinal: int32[nodes], index of each node among all children of its parent, ascending.
        count: int64[nodes], its trips.
    """

    level: TreeLevel
    key: Ints
    offsets: Ints
    ordinal: NDArray[np.int32]
    count: Ints  # type: ignore[assignment] # hides tuple.count, which nobody needs here

    def __repr__(self) -> str:
        return f"Children({self.level.name}, confidential)"

    @classmethod
    def of(
        cls, level: TreeLevel, areas: Sequence[NDArray[np.int32]], count: Ints, crew: Crew
    ) -> "Children":
        """Nodes of a level, which may come in any order and several times, by parent."""
        parents = level.parents(areas)
        key = level.keys(parents)
        ordinal = areas[level.axis] - level.child_offsets[parents[level.axis]]
        ordinal = ordinal.astype(np.int32, copy=False)
        key, ordinal, count = sort_by_key(key, ordinal, count, level, crew)
        first, offsets = np.empty_like(key), np.empty(len(key) + 1, np.int64)
        n, n_parents = merge_equal_kernel(key, ordinal, count, first, offsets)
        # Copies where much would stay allocated for little.
        return cls(level, first[:n_parents].copy(), offsets[: n_parents + 1].copy(),
                   _fitted(ordinal, n), _fitted(count, n))  # fmt: skip

    @property
    def sums(self) -> Ints:
        """int64[parents]: the trips of each parent."""
        if not len(self.key):
            return np.zeros(0, np.int64)
        return np.add.reduceat(self.count, self.offsets[:-1])

    def areas(self) -> Areas:
        """int32 for each axis: areas of the nodes."""
        level = self.level
        parents = level.areas_of(self.key)
        areas = [np.repeat(numbers, np.diff(self.offsets)) for numbers in parents]
        areas[level.axis] = level.child_offsets[areas[level.axis]] + self.ordinal
        return tuple(areas)


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
        areas, counts, total = leaves.areas, leaves.counts, int(leaves.counts.sum())
        margins = []
        for axis, numbers in zip(tree.axes, areas, strict=True):
            margins.append(np.zeros(axis.hierarchy.n_areas(axis.hierarchy.depth), np.int64))
            add_by_area_kernel(numbers, counts, margins[-1])
        del leaves  # levels take several times their room
        levels: list[Children] = []
        for level in reversed(tree.splitting_levels):
            few = len(counts) <= FEW
            crew = Crew(1 if few else threads or available_cores())
            levels.insert(0, Children.of(level, areas, counts, crew))
            areas, counts = level.areas_of(levels[0].key), levels[0].sums
        return cls(tree, total, tuple(levels), tuple(margins))

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
        level = self.levels[number - 1].level
        areas = here.level.areas_of(here.key)
        place = np.empty(len(here.key), np.int64)
        order = np.lexsort((areas[level.axis], level.keys(level.parents(areas))))
        place[order] = np.arange(len(order))
        return place


def _fitted(array: NDArray[_Number], n: int) -> NDArray[_Number]:
    """The first n elements; a copy where much would stay allocated for little."""
    return array[:n] if 8 * n > 7 * len(array) else array[:n].copy()


def sort_by_key(
    key: Ints, ordinal: NDArray[np.int32], count: Ints, level: TreeLevel, crew: Crew
) -> tuple[Ints, NDArray[np.int32], Ints]:
    """Nodes by key and ordinal: partitioned by the top bits of keys, then parts of them sorted."""
    cut = max(level.key_bits - DIGIT_BITS, 0)
    sizes = np.zeros(1 << (level.key_bits - cut), np.int64)
    count_keys_kernel(key, cut, sizes)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    out = np.empty_like(key), np.empty_like(ordinal), np.empty_like(count)
    move_nodes_kernel(key, ordinal, count, cut, offsets[:-1].copy(), *out)
    # Digits by which a bucket is sorted, the least significant first; those of ordinals are < 0.
    digits = [
        *(shift - 64 for shift in range(0, (level.max_children - 1).bit_length(), DIGIT_BITS)),
        *range(0, cut, DIGIT_BITS),
    ]
    shifts, largest = np.array(digits, np.int64), int(sizes.max(initial=0))

    def sort(buckets: tuple[int, int]) -> None:
        sort_buckets_kernel(
            *out, offsets, *buckets, shifts,
            np.empty(largest, np.int64), np.empty(largest, np.int32), np.empty(largest, np.int64),
            np.empty(1 << DIGIT_BITS, np.int64),
        )  # fmt: skip

    sort((0, 0))  # compiled before threads share it
    wanted = [
        len(key) * part // (crew.threads * PARTS_PER_THREAD)
        for part in range(1, crew.threads * PARTS_PER_THREAD)
    ]
    cuts = [0, *np.searchsorted(offsets[1:], wanted).tolist(), len(sizes)]
    for _ in crew.map(sort, [(a, b) for a, b in pairwise(cuts) if b > a]):
        pass
    return out


@kernel
def add_by_area_kernel(areas: NDArray[np.int32], counts: Ints, sums: Ints) -> None:
    """Add counts to the sums of their areas, in place.

    Args:
        areas: int32[n].
        counts: int64[n].
        sums: int64[areas].
    """
    for i in range(areas.size):
        sums[areas[i]] += counts[i]


@kernel
def count_keys_kernel(key: Ints, cut: int, sizes: Ints) -> None:
    """Count keys by their bits from `cut` on.

    Args:
        key: int64[n].
        cut: lowest of these bits.
        sizes: int64[values], added to.
    """
    for i in range(key.size):
        sizes[key[i] >> cut] += 1


@kernel
def move_nodes_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    key: Ints,
    ordinal: NDArray[np.int32],
    count: Ints,
    cut: int,
    free: Ints,
    out_key: Ints,
    out_ordinal: NDArray[np.int32],
    out_count: Ints,
) -> None:
    """Move nodes into the buckets of the top bits of their keys.

    Args:
        key: int64[n].
        ordinal: int32[n].
        count: int64[n].
        cut: lowest of the top bits.
        free: int64[buckets], the next free index of each; changed.
        out_key: int64[n], written, as are the next two.
        out_ordinal: int32[n].
        out_count: int64[n].
    """
    for i in range(key.size):
        bucket = key[i] >> cut
        to = free[bucket]
        free[bucket] = to + 1
        out_key[to], out_ordinal[to], out_count[to] = key[i], ordinal[i], count[i]


@kernel
def sort_buckets_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    key: Ints,
    ordinal: NDArray[np.int32],
    count: Ints,
    offsets: Ints,
    first: int,
    last: int,
    shifts: Ints,
    spare_key: Ints,
    spare_ordinal: NDArray[np.int32],
    spare_count: Ints,
    ends: Ints,
) -> None:
    """Sort each of the buckets first..last on its own, by radix.

    Args:
        key: int64[n], sorted within each bucket, and the next two along with it.
        ordinal: int32[n].
        count: int64[n].
        offsets: int64[buckets + 1], slices of these.
        first: first bucket.
        last: one after the last bucket.
        shifts: int64[digits], where each digit lies, least significant first: in the ordinal
            64 above the shift if that is negative, otherwise in the key.
        spare_key: int64[nodes of the largest bucket], overwritten, as are the next two.
        spare_ordinal: int32, as many.
        spare_count: int64, as many.
        ends: int64[2^DIGIT_BITS], overwritten.
    """
    mask = ends.size - 1
    for bucket in range(first, last):
        low, n = offsets[bucket], offsets[bucket + 1] - offsets[bucket]
        if n < 2:
            continue
        keys, ordinals, counts = key[low : low + n], ordinal[low : low + n], count[low : low + n]
        others, their, further = spare_key[:n], spare_ordinal[:n], spare_count[:n]
        is_spare = False
        for shift in shifts:
            ends[:] = 0
            for i in range(n):
                ends[
                    ((ordinals[i] >> (shift + 64)) if shift < 0 else (keys[i] >> shift)) & mask
                ] += 1
            here = ((ordinals[0] >> (shift + 64)) if shift < 0 else (keys[0] >> shift)) & mask
            if ends[here] == n:
                continue  # all digits are equal
            free = 0
            for digit in range(ends.size):
                free, ends[digit] = free + ends[digit], free
            for i in range(n):
                digit = ((ordinals[i] >> (shift + 64)) if shift < 0 else (keys[i] >> shift)) & mask
                to = ends[digit]
                ends[digit] = to + 1
                others[to], their[to], further[to] = keys[i], ordinals[i], counts[i]
            keys, others = others, keys
            ordinals, their = their, ordinals
            counts, further = further, counts
            is_spare = not is_spare
        if is_spare:
            for i in range(n):
                others[i], their[i], further[i] = keys[i], ordinals[i], counts[i]


@kernel
def merge_equal_kernel(
    key: Ints, ordinal: NDArray[np.int32], count: Ints, parents: Ints, offsets: Ints
) -> tuple[int, int]:
    """Add up sorted nodes that are the same, and find out where parents begin.

    Args:
        key: int64[n], sorted; key of the parent of each.
        ordinal: int32[n], sorted for each parent; moved to the front.
        count: int64[n], added up and moved likewise. The total is below 2^60.
        parents: int64[n], written: the different keys.
        offsets: int64[n + 1], written: the first node of each parent, and one more.

    Returns:
        Number of nodes, and of parents.
    """
    n = n_parents = 0
    for i in range(key.size):
        is_new_parent = i == 0 or key[i] != key[i - 1]
        if is_new_parent:
            parents[n_parents], offsets[n_parents] = key[i], n
            n_parents += 1
        if is_new_parent or ordinal[i] != ordinal[n - 1]:
            ordinal[n], count[n] = ordinal[i], count[i]
            n += 1
        else:
            count[n - 1] += count[i]
    offsets[n_parents] = n
    return n, n_parents
