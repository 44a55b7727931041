"""The truth: non-zero leaf counts in tree order, and the same summed up at every level.

In tree order (the order of the refinement path) every node of every level is a contiguous
run, so a level's true counts are run sums and the true children of a node are one slice.
Memory follows the number of non-zero leaves; nothing of size areas x areas is ever built.

This is the only module that holds the truth. Nothing of it may leave except through a
mechanism or a comparison that is marked confidential.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numba import njit
from numpy.typing import NDArray

from inftda.errors import IngestError
from inftda.tree import Tree, TreeLevel

WORD_BITS = 64
#: Bits sorted by one pass of the radix sort: 2^11 counters stay in the first-level cache.
DIGIT_BITS = 11
#: Sums at any level stay far from overflow, also after noise is added.
MAX_TOTAL = 2**60


@dataclass(frozen=True, repr=False)
class LevelCounts:
    """True non-zero nodes of one splitting level, in tree order.

    Attributes:
        level: the level of the tree.
        start: int64[parents + 1], true children of true parent i are start[i]..start[i+1].
        ordinal: int32[nodes], place of each node among all children of its parent.
        count: int64[nodes].
    """

    level: TreeLevel
    start: NDArray[np.int64]
    ordinal: NDArray[np.int32]
    count: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"LevelCounts({self.level.name}, confidential)"


@dataclass(frozen=True, repr=False)
class Counts:
    """True counts of a tree (or of the part of it below some nodes of one level).

    Attributes:
        tree: the public tree.
        top: level of the nodes that `levels` start below; the root by default.
        roots: area numbers of the true nodes of level `top`, one array per axis.
        root_count: int64, the count of each of these nodes.
        levels: the splitting levels below `top`, coarse to fine.
    """

    tree: Tree
    top: TreeLevel
    roots: tuple[NDArray[np.int32], ...]
    root_count: NDArray[np.int64]
    levels: tuple[LevelCounts, ...]

    @classmethod
    def from_leaves(
        cls,
        tree: Tree,
        areas: Sequence[NDArray[np.int32]],
        counts: NDArray[np.int64],
        *,
        top: int = 0,
    ) -> "Counts":
        """Sort leaves in tree order and sum them up level by level.

        Args:
            tree: the public tree.
            areas: for each axis, int32 numbers of finest areas; leaves may repeat.
            counts: int64, non-negative; zeros are dropped.
            top: level of the tree to sum up to.

        Raises:
            IngestError: the total is beyond 2^60.
        """
        _check_total(counts)
        layout = _Layout.of(tree)
        words, counts = _sort(layout, layout.keys(areas), counts)
        levels, words, counts = _sum_up(layout, words, counts, top)
        return cls(tree, tree.levels[top], layout.areas(words, top), counts, tuple(levels))

    def __repr__(self) -> str:
        return f"Counts({len(self.tree.axes)} axes, confidential)"

    @property
    def total(self) -> int:
        """Number of trips."""
        return int(self.root_count.sum())

    @property
    def n_leaves(self) -> int:
        """Number of non-zero leaves."""
        return len(self.levels[-1].count) if self.levels else len(self.root_count)

    @cached_property
    def leaves(self) -> tuple[tuple[NDArray[np.int32], ...], NDArray[np.int64]]:
        """Area numbers on each axis and counts of the non-zero leaves, in tree order."""
        return self.nodes(len(self.levels))

    def nodes(self, n_levels: int) -> tuple[tuple[NDArray[np.int32], ...], NDArray[np.int64]]:
        """Area numbers and counts of the true nodes after the first `n_levels` of `levels`."""
        areas = list(self.roots)
        count = self.root_count
        for level in self.levels[:n_levels]:
            areas = [np.repeat(axis, np.diff(level.start)) for axis in areas]
            axis = level.level.axis
            areas[axis] = level.level.child_start[areas[axis]] + level.ordinal
            count = level.count
        return tuple(areas), count


def _check_total(counts: NDArray[np.int64]) -> None:
    # Summed in halves: each half is exact in int64 whatever the counts are.
    high, low = int((counts >> 32).sum()), int((counts & 0xFFFFFFFF).sum())
    if (high << 32) + low > MAX_TOTAL:
        raise IngestError("the total number of trips is beyond 2^60; split the table into parts")


@dataclass(frozen=True)
class _Layout:
    """Where each splitting level's child ordinal stands in the sort key of a leaf.

    A key is one or more 64-bit words, most significant first; an ordinal never straddles
    two words. Depth-first order on an axis is order of ordinals, so comparing keys is
    comparing refinement paths.
    """

    tree: Tree
    levels: tuple[TreeLevel, ...]  # splitting levels, coarse to fine
    bits: tuple[int, ...]  # of the ordinal of each level
    word: tuple[int, ...]  # number of the word it stands in
    shift: tuple[int, ...]  # and how far from that word's low end

    @classmethod
    def of(cls, tree: Tree) -> "_Layout":
        levels = tree.splitting_levels
        bits = [(level.max_children - 1).bit_length() for level in levels]
        word, shift, place, used = [0] * len(levels), [0] * len(levels), 0, 0
        for i in reversed(range(len(levels))):
            if used + bits[i] > WORD_BITS:
                place, used = place + 1, 0
            word[i], shift[i] = place, used
            used += bits[i]
        # Words were filled from the fine end; number them from the coarse end.
        return cls(tree, levels, tuple(bits), tuple(place - w for w in word), tuple(shift))

    @property
    def n_words(self) -> int:
        return self.word[-1] + 1 if self.word else 1

    def used_bits(self, word: int) -> int:
        """Bits in use at the low end of a word."""
        places = zip(self.bits, self.word, self.shift, strict=True)
        return max((shift + bits for bits, w, shift in places if w == word), default=0)

    def keys(self, areas: Sequence[NDArray[np.int32]]) -> NDArray[np.uint64]:
        """uint64[n_words, leaves]: every axis has its own bits of the key, so they are ORed."""
        words = np.zeros((self.n_words, len(areas[0])), np.uint64)
        for axis, numbers in enumerate(areas):
            table = self._axis_bits(axis)
            for word in range(self.n_words):
                if table[word].any():
                    words[word] |= table[word][numbers]
        return words

    def _axis_bits(self, axis: int) -> NDArray[np.uint64]:
        """uint64[n_words, finest areas]: the bits one axis contributes to the key."""
        hierarchy = self.tree.axes[axis].hierarchy
        table = np.zeros((self.n_words, hierarchy.n_areas(hierarchy.depth)), np.uint64)
        for level, word, shift in zip(self.levels, self.word, self.shift, strict=True):
            if level.axis != axis:
                continue
            start = level.child_start
            ordinal = np.arange(start[-1]) - np.repeat(start[:-1], np.diff(start))
            of_leaf = ordinal[hierarchy.ancestor(hierarchy.depth, level.depths[axis])]
            table[word] |= of_leaf.astype(np.uint64) << np.uint64(shift)
        return table

    def ordinal(self, words: NDArray[np.uint64], level: int) -> NDArray[np.int32]:
        """int32: the ordinal of one level (by its place in `levels`) in each key."""
        mask = np.uint64((1 << self.bits[level]) - 1)
        row: NDArray[np.uint64] = words[self.word[level]]
        return ((row >> np.uint64(self.shift[level])) & mask).astype(np.int32)

    def areas(self, words: NDArray[np.uint64], top: int) -> tuple[NDArray[np.int32], ...]:
        """Area numbers on each axis of the nodes of tree level `top` that the keys lie in."""
        areas = [np.zeros(words.shape[1], np.int32) for _ in self.tree.axes]
        for place, level in enumerate(self.levels):
            if level.index <= top:
                axis = level.axis
                areas[axis] = level.child_start[areas[axis]] + self.ordinal(words, place)
        return tuple(areas)


def _sort(
    layout: _Layout, words: NDArray[np.uint64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Keys and counts sorted by key: least significant digit first, so every pass is stable."""
    counts = counts.copy()  # the caller's array is not ours to sort
    if (counts == 0).any():
        is_kept = counts != 0
        words, counts = words[:, is_kept], counts[is_kept]
    spare_words, spare_counts = np.empty_like(words), np.empty_like(counts)
    for word in reversed(range(layout.n_words)):
        for shift in range(0, layout.used_bits(word), DIGIT_BITS):
            moved = radix_pass_kernel(words, counts, word, shift, spare_words, spare_counts)
            if moved:
                words, spare_words = spare_words, words
                counts, spare_counts = spare_counts, counts
    return words, counts


@njit(cache=True, nogil=True)
def radix_pass_kernel(words, counts, word, shift, out_words, out_counts):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN201, PLR0913, PLR0917 - compiled; dtypes below
    """Scatter keys and counts by one digit of the key, keeping the order of equal digits.

    Args:
        words: uint64[n_words, n] keys; not changed.
        counts: int64[n]; not changed.
        word: number of the word the digit stands in.
        shift: how far from the word's low end it stands.
        out_words: uint64[n_words, n], written.
        out_counts: int64[n], written.

    Returns:
        False if all digits are equal and nothing was written.
    """
    n = counts.size
    mask = np.uint64((1 << DIGIT_BITS) - 1)
    by = np.uint64(shift)
    place = np.zeros(1 << DIGIT_BITS, np.int64)
    for i in range(n):
        place[(words[word, i] >> by) & mask] += 1
    if n == 0 or place[(words[word, 0] >> by) & mask] == n:
        return False
    before = 0
    for digit in range(place.size):
        here = place[digit]
        place[digit] = before
        before += here
    for i in range(n):
        digit = (words[word, i] >> by) & mask
        to = place[digit]
        place[digit] = to + 1
        for w in range(words.shape[0]):
            out_words[w, to] = words[w, i]
        out_counts[to] = counts[i]
    return True


def _sum_up(
    layout: _Layout, words: NDArray[np.uint64], counts: NDArray[np.int64], top: int
) -> tuple[list[LevelCounts], NDArray[np.uint64], NDArray[np.int64]]:
    """Run sums level by level from the leaves up; also the keys and counts of level `top`."""
    last = layout.n_words - 1
    n = collapse_kernel(words, counts, len(counts), last, 0, np.empty(0, np.int64))
    levels = []
    for place in reversed(range(len(layout.levels))):
        if layout.levels[place].index <= top:
            break
        ordinal, count = layout.ordinal(words[:, :n], place), counts[:n].copy()
        start = np.empty(n + 1, np.int64)
        above = layout.shift[place] + layout.bits[place]
        n = collapse_kernel(words, counts, n, layout.word[place], above, start)
        levels.append(LevelCounts(layout.levels[place], start[: n + 1].copy(), ordinal, count))
    return levels[::-1], words[:, :n], counts[:n].copy()


@njit(cache=True, nogil=True)
def collapse_kernel(words, counts, n, word, above, start):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN201, PLR0913, PLR0917 - compiled; dtypes below
    """Merge neighbours that agree in words 0..word-1 and in the bits of `word` from `above` up.

    Args:
        words: uint64[n_words, n..] sorted keys; the first key of each run is moved to the front.
        counts: int64[n..]; the sum of each run is moved to the front. The total is below 2^60.
        n: number of keys.
        word: the last word to compare.
        above: the lowest bit of it to compare; 64 compares none.
        start: int64[n + 1], written: where each run starts, and n behind the last; or empty.

    Returns:
        Number of runs.
    """
    runs = 0
    for i in range(n):
        is_new = i == 0
        if not is_new:
            for w in range(word):
                is_new = is_new or words[w, i] != words[w, runs - 1]
            if above < WORD_BITS:
                by = np.uint64(above)
                is_new = is_new or words[word, i] >> by != words[word, runs - 1] >> by
        if is_new:
            for w in range(word + 1):
                words[w, runs] = words[w, i]
            counts[runs] = counts[i]
            if start.size:
                start[runs] = i
            runs += 1
        else:
            counts[runs - 1] += counts[i]
    if start.size:
        start[runs] = n
    return runs
