"""The order of the refinement path: sort keys of leaves, and sorting by them.

A key holds, for each splitting level, a leaf's index among the children of its parent. Each
level has its own bits, so the key of a leaf is the OR of one looked-up word per axis, and
comparing keys is comparing paths. Sorting is by radix: a comparison sort on ten columns of
24 million leaves takes most of a minute, this takes a second or two.
"""

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inftda.kernels import inlined_kernel, kernel
from inftda.leaves import Leaves
from inftda.threads import Crew
from inftda.tree import Tree, TreeLevel

WORD_BITS = 64
#: Bits sorted by one pass: 2^11 counters stay in the first-level cache.
DIGIT_BITS = 11
#: Leaves are partitioned by the whole first word, so that sorting leaves it alone, if it has no
#: more bits than these and there are that many leaves for each of its values.
BUCKET_BITS, BUCKET_LEAVES = 16, 32

Keys = NDArray[np.uint64]


@dataclass(frozen=True)
class Layout:
    """Where each splitting level's child ordinal is stored in the sort key of a leaf.

    A key is one or more 64-bit words, most significant first; an ordinal never straddles
    two words. Depth-first order on an axis is order of ordinals, so comparing keys is
    comparing refinement paths.
    """

    tree: Tree
    levels: tuple[TreeLevel, ...]  # splitting levels, coarse to fine
    bits: tuple[int, ...]  # of the ordinal of each level
    word: tuple[int, ...]  # index of the word that holds it
    shift: tuple[int, ...]  # and its distance from that word's low end

    @classmethod
    def of(cls, tree: Tree) -> "Layout":
        """The layout of the keys of a tree."""
        levels = tree.splitting_levels
        bits = [(level.max_children - 1).bit_length() for level in levels]
        word, shift, current, used = [0] * len(levels), [0] * len(levels), 0, 0
        for i in reversed(range(len(levels))):
            if used + bits[i] > WORD_BITS:
                current, used = current + 1, 0
            word[i], shift[i] = current, used
            used += bits[i]
        # Words were filled from the fine end; number them from the coarse end.
        return cls(tree, levels, tuple(bits), tuple(current - w for w in word), tuple(shift))

    @property
    def n_words(self) -> int:
        """Words of a key."""
        return self.word[-1] + 1 if self.word else 1

    def cut(self, n_leaves: int) -> int:
        """Lowest of the key's top bits: leaves are partitioned by these before they are sorted."""
        used = self.used_bits(0)
        is_short = used <= BUCKET_BITS and n_leaves >> used >= BUCKET_LEAVES
        return 0 if is_short and self.n_words > 1 else max(used - DIGIT_BITS, 0)

    def used_bits(self, word: int) -> int:
        """Bits in use at the low end of a word."""
        ordinals = zip(self.bits, self.word, self.shift, strict=True)
        return max((shift + bits for bits, w, shift in ordinals if w == word), default=0)

    def axis_bits(self) -> tuple[Keys, ...]:
        """uint64[finest areas, n_words] for each axis: its bits of the key, to be ORed."""
        return tuple(self._axis_bits(axis) for axis in range(len(self.tree.axes)))

    def _axis_bits(self, axis: int) -> Keys:
        hierarchy = self.tree.axes[axis].hierarchy
        table = np.zeros((hierarchy.n_areas(hierarchy.depth), self.n_words), np.uint64)
        for level, word, shift in zip(self.levels, self.word, self.shift, strict=True):
            if level.axis != axis:
                continue
            offsets = level.child_offsets
            ordinal = np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))
            of_leaf = ordinal[hierarchy.ancestor(hierarchy.depth, level.depths[axis])]
            table[:, word] |= of_leaf.astype(np.uint64) << np.uint64(shift)
        return table


class Buckets(NamedTuple):
    """Leaves ordered by the top bits of their keys.

    Attributes:
        keys: uint64[n_words, n].
        counts: int64[n].
        offsets: int64[values + 1], slices of these: the bucket of each value of the top bits.
    """

    keys: Keys
    counts: NDArray[np.int64]
    offsets: NDArray[np.int64]

    def __repr__(self) -> str:
        return "Buckets(confidential)"


def partition(layout: Layout, cut: int, leaves: Leaves, crew: Crew) -> Buckets:
    """Order leaves by the bits of their keys from `cut` on.

    Every thread moves a part of the leaves, and makes their keys when it does: keys in any other
    order are never written down. Leaves of a bucket stand in the order of the parts.
    """
    n = len(leaves.counts)
    keys, counts = np.empty((layout.n_words, n), np.uint64), np.empty(n, np.int64)
    parts = list(pairwise(n * part // crew.threads for part in range(crew.threads + 1)))
    sizes = np.zeros((len(parts), 1 << (layout.used_bits(0) - cut)), np.int64)
    bits, areas = layout.axis_bits(), leaves.areas
    crew.run(
        partial(count_leaves_kernel, bits, areas, *part, cut, here)
        for part, here in zip(parts, sizes, strict=True)
    )
    # Of every bucket first the leaves of the first part, then those of the second, and so on.
    free = (np.cumsum(sizes.T).reshape(sizes.T.shape) - sizes.T).T.copy()
    crew.run(
        partial(move_leaves_kernel, bits, areas, leaves.counts, *part, cut, here, keys, counts)
        for part, here in zip(parts, free, strict=True)
    )
    return Buckets(keys, counts, np.concatenate([[0], free[-1]]))


def digits_below_cut(layout: Layout, cut: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Word and shift of every digit to sort by inside one value of the top bits, low first."""
    digits = [
        (word, shift)
        for word in reversed(range(layout.n_words))
        for shift in range(0, layout.used_bits(word) if word else cut, DIGIT_BITS)
    ]
    return np.array([w for w, _ in digits], np.int64), np.array([s for _, s in digits], np.int64)


@inlined_kernel
def key_word(
    bits: tuple[Keys, ...], areas: tuple[NDArray[np.int32], ...], leaf: int, word: int
) -> np.uint64:
    """One word of the key of a leaf."""
    key = np.uint64(0)
    for axis in range(len(areas)):
        key |= bits[axis][areas[axis][leaf], word]
    return key


@kernel
def count_leaves_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    bits: tuple[Keys, ...],
    areas: tuple[NDArray[np.int32], ...],
    first: int,
    last: int,
    cut: int,
    sizes: NDArray[np.int64],
) -> None:
    """Count the leaves first..last by the top bits of their keys.

    Args:
        bits: uint64[areas, n_words] for each axis, the bits of each area.
        areas: int32[n] for each axis, the area of each leaf.
        first: first leaf.
        last: one after the last.
        cut: lowest of the top bits.
        sizes: int64[values], added to.
    """
    for leaf in range(first, last):
        sizes[key_word(bits, areas, leaf, 0) >> np.uint64(cut)] += 1


@kernel
def move_leaves_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    bits: tuple[Keys, ...],
    areas: tuple[NDArray[np.int32], ...],
    counts: NDArray[np.int64],
    first: int,
    last: int,
    cut: int,
    free: NDArray[np.int64],
    out_keys: Keys,
    out_counts: NDArray[np.int64],
) -> None:
    """Move the leaves first..last into the buckets of the top bits of their keys.

    Args as above, and:
        counts: int64[n].
        free: int64[values], the next free index of each bucket, before and after.
        out_keys: uint64[n_words, n], written.
        out_counts: int64[n], written.
    """
    for leaf in range(first, last):
        bucket = key_word(bits, areas, leaf, 0) >> np.uint64(cut)
        to = free[bucket]
        free[bucket] = to + 1
        for word in range(out_keys.shape[0]):
            out_keys[word, to] = key_word(bits, areas, leaf, word)
        out_counts[to] = counts[leaf]


@kernel
def sort_buckets_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    keys: Keys,
    counts: NDArray[np.int64],
    offsets: NDArray[np.int64],
    first: int,
    last: int,
    words: NDArray[np.int64],
    shifts: NDArray[np.int64],
    spare_keys: Keys,
    spare_counts: NDArray[np.int64],
    digit_ends: NDArray[np.int64],
) -> None:
    """Sort each of the buckets first..last on its own, by all digits given.

    Words that no digit is of are equal in all keys of a bucket and stay where they are.

    Args:
        keys: uint64[n_words, n], sorted within each bucket.
        counts: int64[n], moved along.
        offsets: int64[buckets + 1], slices of these.
        first: first bucket.
        last: one after the last bucket.
        words: int64[digits], word of each digit, least significant first.
        shifts: int64[digits], its distance from the word's low end.
        spare_keys: uint64[n_words, leaves of the largest bucket], overwritten.
        spare_counts: int64, as many, overwritten.
        digit_ends: int64[2^DIGIT_BITS], overwritten.
    """
    for bucket in range(first, last):
        low, n = offsets[bucket], offsets[bucket + 1] - offsets[bucket]
        if n < 2:
            continue
        is_spare, top = False, words[words.size - 1] if words.size > 0 else 0
        for digit in range(words.size):
            word, shift = words[digit], shifts[digit]
            if is_spare:
                moved = radix_pass_kernel(
                    spare_keys, spare_counts, 0, n, word, shift, top, keys, counts, low, digit_ends
                )
            else:
                moved = radix_pass_kernel(
                    keys, counts, low, n, word, shift, top, spare_keys, spare_counts, 0, digit_ends
                )
            if moved:
                is_spare = not is_spare
        if is_spare:
            for w in range(top, keys.shape[0]):
                for i in range(n):
                    keys[w, low + i] = spare_keys[w, i]
            for i in range(n):
                counts[low + i] = spare_counts[i]


@kernel
def radix_pass_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    keys: Keys,
    counts: NDArray[np.int64],
    low: int,
    n: int,
    word: int,
    shift: int,
    top: int,
    out_keys: Keys,
    out_counts: NDArray[np.int64],
    out_low: int,
    ends: NDArray[np.int64],
) -> bool:
    """Scatter some keys and counts by one digit, keeping the order of equal digits.

    Args:
        keys: uint64[n_words, any]; not changed.
        counts: int64; not changed.
        low: first of them.
        n: how many.
        word: index of the word that holds the digit.
        shift: its distance from the word's low end.
        top: first word of the keys that is moved.
        out_keys: uint64[n_words, any], written.
        out_counts: int64, likewise.
        out_low: where the first of them goes.
        ends: int64[values], overwritten; a power of 2 of them.

    Returns:
        False if all digits are equal and nothing was moved.
    """
    mask = np.uint64(ends.size - 1)
    by = np.uint64(shift)
    ends[:] = 0
    for i in range(low, low + n):
        ends[(keys[word, i] >> by) & mask] += 1
    if n == 0 or ends[(keys[word, low] >> by) & mask] == n:
        return False
    free = out_low
    for digit in range(ends.size):
        free, ends[digit] = free + ends[digit], free
    for i in range(low, low + n):
        digit = (keys[word, i] >> by) & mask
        to = ends[digit]
        ends[digit] = to + 1
        for w in range(top, keys.shape[0]):
            out_keys[w, to] = keys[w, i]
        out_counts[to] = counts[i]
    return True
