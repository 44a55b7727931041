"""Counts: non-zero leaf counts in tree order, and the same summed up at every level.

In tree order (the order of the refinement path) every node of every level is a contiguous
run, so a level's true counts are run sums and the true children of a node are one slice.
Memory follows the number of non-zero leaves; nothing of size areas x areas is ever built.

Counts are confidential, unless a comparison builds them from a release.
Nothing of the truth may leave except through a mechanism or a comparison that is marked
confidential.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from inftda.compiled import kernel
from inftda.leaves import Leaves
from inftda.threads import available_cores, map_in_order
from inftda.tree import Tree, TreeLevel
from inftda.tree_order import (
    DIGIT_BITS,
    WORD_BITS,
    Buckets,
    Keys,
    Layout,
    digits_below_cut,
    partition,
    sort_buckets_kernel,
)


@dataclass(frozen=True, repr=False)
class LevelCounts:
    """True non-zero nodes of one splitting level, in tree order.

    Attributes:
        level: the level of the tree.
        offsets: int64[parents + 1], slices of the next two: the true children of each true parent.
        ordinal: int32[nodes], index of each node among all children of its parent.
        count: int64[nodes].
    """

    level: TreeLevel
    offsets: NDArray[np.int64]
    ordinal: NDArray[np.int32]
    count: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"LevelCounts({self.level.name}, confidential)"


@dataclass(frozen=True, repr=False)
class Counts:
    """Counts of a tree, level by level.

    Attributes:
        tree: the public tree.
        total: number of trips.
        levels: the splitting levels, coarse to fine.
    """

    tree: Tree
    total: int
    levels: tuple[LevelCounts, ...]
    #: How many levels `nodes` has gone down last, and the areas there.
    _areas: tuple[int, tuple[NDArray[np.int32], ...]] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_areas", (0, self._root_areas()))

    @classmethod
    def of(cls, tree: Tree, leaves: Leaves, *, threads: int | None = None) -> "Counts":
        """Sort leaves in tree order and sum them up level by level.

        Args:
            tree: the public tree.
            leaves: they may repeat.
            threads: how many to sort on, at least 1; all cores by default.
        """
        layout = Layout.of(tree)
        keys = layout.keys(leaves.areas)
        levels = _sum_up(layout, keys, leaves.counts, threads or available_cores())
        return cls(tree, int(leaves.counts.sum()), tuple(levels))

    @classmethod
    def from_leaves(
        cls,
        tree: Tree,
        areas: Sequence[NDArray[np.int32]],
        counts: NDArray[np.int64],
        *,
        threads: int | None = None,
    ) -> "Counts":
        """The same from plain arrays; see `Leaves.of`.

        Raises:
            IngestError: the total is beyond 2^60.
        """
        return cls.of(tree, Leaves.of(areas, counts), threads=threads)

    def __repr__(self) -> str:
        return f"Counts({len(self.tree.axes)} axes, confidential)"

    def level(self, level: TreeLevel) -> LevelCounts:
        """The non-zero nodes of one splitting level."""
        return next(counts for counts in self.levels if counts.level.index == level.index)

    @property
    def n_roots(self) -> int:
        """1, or 0 if there are no leaves at all."""
        return len(self.levels[0].offsets) - 1 if self.levels else int(self.total != 0)

    @property
    def n_leaves(self) -> int:
        """Number of non-zero leaves."""
        return len(self.leaves[1])

    @cached_property
    def leaves(self) -> tuple[tuple[NDArray[np.int32], ...], NDArray[np.int64]]:
        """Area numbers on each axis and counts of the non-zero leaves, in tree order."""
        return self.nodes(len(self.levels))

    def nodes(self, n_levels: int) -> tuple[tuple[NDArray[np.int32], ...], NDArray[np.int64]]:
        """Area numbers and counts of the non-zero nodes after the first `n_levels` of `levels`.

        A release asks for one level after the other, so each goes on from the one before.
        """
        reached, areas = self._areas
        if reached > n_levels:
            reached, areas = 0, self._root_areas()
        for level in self.levels[reached:n_levels]:
            n_children = np.diff(level.offsets)
            areas = tuple(np.repeat(axis, n_children) for axis in areas)
            refined = areas[level.level.axis]
            np.add(level.level.child_offsets[refined], level.ordinal, out=refined)
        object.__setattr__(self, "_areas", (n_levels, areas))
        return areas, self.levels[n_levels - 1].count if n_levels else self._root_count()

    def _root_areas(self) -> tuple[NDArray[np.int32], ...]:
        return tuple(np.zeros(self.n_roots, np.int32) for _ in self.tree.axes)

    def _root_count(self) -> NDArray[np.int64]:
        return np.full(self.n_roots, self.total, np.int64)


#: Fewer leaves than this are not worth a second thread.
FEW = 1 << 17
#: Parts handed to each thread: several, because parts take different times.
PARTS_PER_THREAD = 4


@dataclass(frozen=True)
class _Sums:
    """Some levels of a part of the leaves, fine to coarse, and what they were summed up to."""

    levels: list[LevelCounts]
    keys: Keys
    counts: NDArray[np.int64]


def _sum_up(
    layout: Layout, keys: Keys, counts: NDArray[np.int64], threads: int
) -> list[LevelCounts]:
    """Levels from coarse to fine.

    Leaves are partitioned by the top bits of their keys. Parts of them are then sorted and
    summed up on their own, on all threads, as far as nodes do not straddle two parts.
    """
    buckets = partition(layout, keys, counts)
    indices = list(range(len(layout.levels)))[::-1]
    inside = [index for index in indices if layout.is_below_cut(index)]
    threads = threads if len(counts) > FEW else 1
    work = _PartWork(layout, buckets, inside)
    if threads > 1:
        # No bucket at all: this only compiles or loads the kernels. If two threads did that
        # and one were interrupted, the other would wait for its lock forever.
        work.sum_up((1, 1))
    parts = list(map_in_order(work.sum_up, _parts(buckets.ends, threads), threads))
    del buckets, work
    # Taken off the parts one by one, so that no more than one level is held twice.
    below = [_join([part.levels.pop(0) for part in parts]) for _ in inside]
    keys = np.concatenate([part.keys for part in parts], axis=1)
    counts = np.concatenate([part.counts for part in parts])
    above = _sum_levels(layout, keys, counts, 0, len(counts), indices[len(inside) :])
    return (below + above.levels)[::-1]


def _parts(ends: NDArray[np.int64], threads: int) -> list[tuple[int, int]]:
    """Range of buckets of each part; parts have about the same number of leaves."""
    n = int(ends[-1])
    n_parts = 1 if threads == 1 else threads * PARTS_PER_THREAD
    wanted = [n * part // n_parts for part in range(1, n_parts)]
    cuts = [0, *np.searchsorted(ends, wanted, side="right").tolist(), len(ends)]
    return [(a, b) for a, b in pairwise(cuts) if b > a]


@dataclass(frozen=True)
class _PartWork:
    """Sorting and summing up of a part of the leaves."""

    layout: Layout
    buckets: Buckets
    indices: list[int]

    def sum_up(self, part: tuple[int, int]) -> _Sums:
        first, last = part
        keys, counts, ends, spare_keys, spare_counts = self.buckets
        words, shifts = digits_below_cut(self.layout)
        digit_ends = np.empty(1 << DIGIT_BITS, np.int64)
        sort_buckets_kernel(
            keys, counts, ends, first, last, words, shifts, spare_keys, spare_counts, digit_ends
        )
        low = int(ends[first - 1]) if first else 0
        n = merge_equal_kernel(keys, counts, low, int(ends[last - 1]))
        return _sum_levels(self.layout, keys, counts, low, n, self.indices)


def _sum_levels(  # noqa: PLR0913, PLR0917 - private
    layout: Layout, keys: Keys, counts: NDArray[np.int64], low: int, n: int, indices: list[int]
) -> _Sums:
    """Sum up n sorted nodes from index `low` on, level by level; `indices` are fine to coarse."""
    levels = []
    for index in indices:
        ordinal, count = np.empty(n, np.int32), np.empty(n, np.int64)
        offsets = np.empty(n + 1, np.int64)
        n = sum_level_kernel(
            keys, counts, low, n, layout.word[index], layout.shift[index], layout.bits[index],
            ordinal, count, offsets,
        )  # fmt: skip
        levels.append(LevelCounts(layout.levels[index], offsets[: n + 1].copy(), ordinal, count))
    return _Sums(levels, keys[:, low : low + n].copy(), counts[low : low + n].copy())


def _join(parts: list[LevelCounts]) -> LevelCounts:
    """The same level of several parts, one after the other."""
    if len(parts) == 1:
        return parts[0]
    before = np.cumsum([0, *(len(part.count) for part in parts)])
    shifted = [part.offsets[:-1] + n for part, n in zip(parts, before, strict=False)]
    return LevelCounts(
        parts[0].level,
        np.concatenate([*shifted, before[-1:]]),
        np.concatenate([part.ordinal for part in parts]),
        np.concatenate([part.count for part in parts]),
    )


@kernel
def merge_equal_kernel(keys: Keys, counts: NDArray[np.int64], low: int, high: int) -> int:
    """Merge neighbours low..high with equal keys, adding up their counts, towards `low`.

    Args:
        keys: uint64[n_words, n], sorted from low to high.
        counts: int64[n]. The total is below 2^60.
        low: first of them.
        high: one after the last.

    Returns:
        Number of different keys.
    """
    at = low
    for i in range(low, high):
        is_new = i == low
        for w in range(keys.shape[0]):
            is_new = is_new or keys[w, i] != keys[w, at - 1]
        if is_new:
            for w in range(keys.shape[0]):
                keys[w, at] = keys[w, i]
            counts[at] = counts[i]
            at += 1
        else:
            counts[at - 1] += counts[i]
    return at - low


@kernel
def sum_level_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    keys: Keys,
    counts: NDArray[np.int64],
    low: int,
    n: int,
    word: int,
    shift: int,
    bits: int,
    ordinal: NDArray[np.int32],
    count: NDArray[np.int64],
    offsets: NDArray[np.int64],
) -> int:
    """Write the nodes of one level and sum them up to their parents, in place.

    Args:
        keys: uint64[n_words, ..], sorted; the first key of each parent is moved towards low.
        counts: int64[..], likewise with the sums. The total is below 2^60.
        low: index of the first node.
        n: number of nodes.
        word: index of the word that holds the level's ordinal.
        shift: its distance from the word's low end.
        bits: its width.
        ordinal: int32[n], written: index of each node among the children of its parent.
        count: int64[n], written.
        offsets: int64[n + 1], written: slices of the nodes, one for each parent.

    Returns:
        Number of parents.
    """
    mask = np.uint64((1 << bits) - 1)
    by, above = np.uint64(shift), np.uint64(shift + bits)
    at = low
    for i in range(low, low + n):
        key = keys[word, i]
        ordinal[i - low] = np.int32((key >> by) & mask)
        count[i - low] = counts[i]
        is_new = i == low
        if not is_new:
            # Shifting by 64 would shift by nothing: then all bits of the word are the ordinal's.
            is_new = bool(above < WORD_BITS and key >> above != keys[word, at - 1] >> above)
            for w in range(word):
                is_new = is_new or keys[w, i] != keys[w, at - 1]
        if is_new:
            for w in range(word + 1):
                keys[w, at] = keys[w, i]
            counts[at] = counts[i]
            offsets[at - low] = i - low
            at += 1
        else:
            counts[at - 1] += counts[i]
    offsets[at - low] = n
    return at - low
