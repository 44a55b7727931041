"""The order of the refinement path: sort keys of leaves, and sorting by them.

A key holds, for each splitting level, a leaf's index among the children of its parent. Each
level has its own bits, so the key of a leaf is the OR of one looked-up word per axis, and
comparing keys is comparing paths. Sorting is by radix: a comparison sort on ten columns of
24 million leaves takes most of a minute, this takes a second or two.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inftda.compiled import kernel
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

    def keys(self, areas: Sequence[NDArray[np.int32]], crew: Crew) -> Keys:
        """uint64[n_words, leaves]: every axis has its own bits of the key, so they are ORed."""
        words = np.empty((self.n_words, len(areas[0])), np.uint64)
        bits = tuple(self._axis_bits(axis) for axis in range(len(areas)))

        def write(part: tuple[int, int]) -> None:
            write_keys_kernel(words, bits, tuple(areas), *part)

        write((0, 0))  # no leaf at all: loads the kernel before threads share it
        list(crew.map(write, _parts(len(areas[0]), crew)))
        return words

    def _axis_bits(self, axis: int) -> Keys:
        """uint64[finest areas, n_words]: the bits one axis contributes to the key."""
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
        ends: int64[values], where the bucket of each value of the top bits ends.
        spare_keys: room for as many keys, to sort with.
        spare_counts: likewise for counts.
    """

    keys: Keys
    counts: NDArray[np.int64]
    ends: NDArray[np.int64]
    spare_keys: Keys
    spare_counts: NDArray[np.int64]

    def __repr__(self) -> str:
        return "Buckets(confidential)"


def partition(
    layout: Layout, cut: int, keys: Keys, counts: NDArray[np.int64], crew: Crew
) -> Buckets:
    """Order leaves by the bits of their keys from `cut` on; `keys` is used up, `counts` is not.

    Every thread moves a part of the leaves. Those of a bucket stand in the order of the parts.
    """
    out_keys, out_counts = np.empty_like(keys), np.empty_like(counts)
    parts = _parts(len(counts), crew)
    ends = np.zeros((len(parts), 1 << (layout.used_bits(0) - cut)), np.int64)

    def count(number: int, part: tuple[int, int]) -> None:
        count_digits_kernel(keys, *part, 0, cut, ends[number])

    def move(number: int, part: tuple[int, int]) -> None:
        move_by_digit_kernel(keys, counts, *part, 0, cut, 0, out_keys, out_counts, ends[number])

    for work in (count, move):
        work(0, (0, 0))  # as above
        list(crew.map(lambda item, do=work: do(*item), enumerate(parts)))
        if work is count:
            # From the leaves of each bucket and part to where the first of them goes.
            ends[:] = (np.cumsum(ends.T).reshape(ends.T.shape) - ends.T).T
    return Buckets(out_keys, out_counts, ends[-1], keys, np.empty_like(counts))


def _parts(n_leaves: int, crew: Crew) -> list[tuple[int, int]]:
    """First leaf of a part for each thread, and one after the last."""
    return list(pairwise(n_leaves * part // crew.threads for part in range(crew.threads + 1)))


def digits_below_cut(layout: Layout, cut: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Word and shift of every digit to sort by inside one value of the top bits, low first."""
    digits = [
        (word, shift)
        for word in reversed(range(layout.n_words))
        for shift in range(0, layout.used_bits(word) if word else cut, DIGIT_BITS)
    ]
    return np.array([w for w, _ in digits], np.int64), np.array([s for _, s in digits], np.int64)


@kernel
def write_keys_kernel(
    words: Keys,
    bits: tuple[Keys, ...],
    areas: tuple[NDArray[np.int32], ...],
    first: int,
    last: int,
) -> None:
    """Write the keys first..last.

    Args:
        words: uint64[n_words, n], written.
        bits: uint64[areas, n_words] for each axis, the bits of each area.
        areas: int32[n] for each axis, the area of each leaf.
        first: first key.
        last: one after the last.
    """
    for i in range(first, last):
        for word in range(words.shape[0]):
            key = np.uint64(0)
            for axis in range(len(areas)):
                key |= bits[axis][areas[axis][i], word]
            words[word, i] = key


@kernel
def sort_buckets_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    keys: Keys,
    counts: NDArray[np.int64],
    ends: NDArray[np.int64],
    first: int,
    last: int,
    words: NDArray[np.int64],
    shifts: NDArray[np.int64],
    spare_keys: Keys,
    spare_counts: NDArray[np.int64],
    digit_ends: NDArray[np.int64],
) -> None:
    """Sort each of the buckets first..last on its own, by all digits given.

    Buckets are short, so all passes over one stay in the cache. Words that no digit is of are
    equal in all keys of a bucket and stay where they are.

    Args:
        keys: uint64[n_words, n], sorted within each bucket.
        counts: int64[n], moved along.
        ends: int64[buckets], where each bucket ends; each starts where the one before ends.
        first: first bucket.
        last: one after the last bucket.
        words: int64[digits], word of each digit, least significant first.
        shifts: int64[digits], its distance from the word's low end.
        spare_keys: uint64[n_words, n], overwritten.
        spare_counts: int64[n], overwritten.
        digit_ends: int64[2^DIGIT_BITS], overwritten.
    """
    for bucket in range(first, last):
        low = ends[bucket - 1] if bucket > 0 else 0
        high = ends[bucket]
        if high - low < 2:
            continue
        is_spare, top = False, words[words.size - 1] if words.size > 0 else 0
        for digit in range(words.size):
            word, shift = words[digit], shifts[digit]
            if is_spare:
                moved = radix_pass_kernel(
                    spare_keys, spare_counts, low, high, word, shift, top, keys, counts, digit_ends
                )
            else:
                moved = radix_pass_kernel(
                    keys, counts, low, high, word, shift, top, spare_keys, spare_counts, digit_ends
                )
            if moved:
                is_spare = not is_spare
        if is_spare:
            for w in range(top, keys.shape[0]):
                for i in range(low, high):
                    keys[w, i] = spare_keys[w, i]
            for i in range(low, high):
                counts[i] = spare_counts[i]


@kernel
def radix_pass_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    keys: Keys,
    counts: NDArray[np.int64],
    low: int,
    high: int,
    word: int,
    shift: int,
    top: int,
    out_keys: Keys,
    out_counts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> bool:
    """Scatter the keys and counts low..high by one digit, keeping the order of equal digits.

    Args:
        keys: uint64[n_words, n]; not changed.
        counts: int64[n]; not changed.
        low: first of them.
        high: one after the last.
        word: index of the word that holds the digit.
        shift: its distance from the word's low end.
        top: first word of the keys that is moved.
        out_keys: uint64[n_words, n], written from low to high.
        out_counts: int64[n], likewise.
        ends: int64[values], written: where each digit's bucket ends; a power of 2 of them.

    Returns:
        False if all digits are equal and nothing was moved.
    """
    ends[:] = 0
    count_digits_kernel(keys, low, high, word, shift, ends)
    mask = np.uint64(ends.size - 1)
    is_moved = high > low and ends[(keys[word, low] >> np.uint64(shift)) & mask] < high - low
    before = low
    for digit in range(ends.size):
        here = ends[digit]
        ends[digit] = before if is_moved else before + here
        before += here
    if is_moved:
        move_by_digit_kernel(
            keys, counts, low, high, word, shift, top, out_keys, out_counts, ends
        )
    return is_moved


@kernel
def count_digits_kernel(
    keys: Keys, low: int, high: int, word: int, shift: int, sizes: NDArray[np.int64]
) -> None:
    """Count the keys low..high by one digit.

    Args:
        keys: uint64[n_words, n].
        low: first of them.
        high: one after the last.
        word: index of the word that holds the digit.
        shift: its distance from the word's low end.
        sizes: int64[values], added to; a power of 2 of them.
    """
    mask = np.uint64(sizes.size - 1)
    for i in range(low, high):
        sizes[(keys[word, i] >> np.uint64(shift)) & mask] += 1


@kernel
def move_by_digit_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    keys: Keys,
    counts: NDArray[np.int64],
    low: int,
    high: int,
    word: int,
    shift: int,
    top: int,
    out_keys: Keys,
    out_counts: NDArray[np.int64],
    free: NDArray[np.int64],
) -> None:
    """Move the keys and counts low..high into the bucket of their digit, keeping their order.

    Args as above, and:
        free: int64[values], the next free index of each bucket, before and after.
    """
    mask = np.uint64(free.size - 1)
    for i in range(low, high):
        digit = (keys[word, i] >> np.uint64(shift)) & mask
        to = free[digit]
        free[digit] = to + 1
        for w in range(top, keys.shape[0]):
            out_keys[w, to] = keys[w, i]
        out_counts[to] = counts[i]
