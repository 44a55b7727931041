"""Exact draws from a table: one random word, one or two look-ups, a sign.

A word is a sign and the first b bits u of a uniform number U. The magnitude is the k with
F(k-1) <= U < F(k). The table holds c_k = floor(2^b F(k)), so u decides k unless u equals some
c_k; such a word is decided with further random bits against F at a higher precision, until
nothing is left open. Draws are exact for every length of word: it only sets how often the slow
path is taken. Proof: `docs/proofs/exact-sampling.md`.

No word may be used for two draws, and an undecided word must never be replaced by a fresh
one: that would change the distribution.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from inftda.errors import PrivacyError
from inftda.util.kernels import kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from inftda.noise.bits import Bits
    from inftda.noise.ladder import Ladder

    Words: TypeAlias = NDArray[np.unsignedinteger[Any]]

MAX_GUIDE_BITS: Final = 16  # 256 KiB of guide: it should stay in the second-level cache


@kernel
def map_words_kernel(
    words: Words,
    out: NDArray[np.int64],
    table: tuple[Words, NDArray[np.uint32], np.uint64],
    first: int,
) -> int:
    """Turn words into draws, up to the first undecided one.

    Args:
        words: uint32[n] or uint64[n], a sign (lowest bit) below the b bits of u.
        out: int64[n], overwritten from `first` on. It may overlap `words`, as long as no
            `out[i]` reaches beyond the end of `words[i]`.
        table: like words, c_0 <= c_1 <= ... <= c_last = 2^b - 1, the largest u there is;
            uint32[2^g], for each value of the g leading bits of u the first k with c_k at or above
            the smallest such u; and how far to shift a word right so that those g bits remain.
        first: index to start at.

    Returns:
        The index of the first undecided word, or n.
    """
    cdf, guide, shift = table
    # Indices are unsigned because numba tests signed ones for being negative.
    one = np.uint64(1)
    i = np.uint64(first)
    n = np.uint64(words.size)
    while i < n:
        word = np.uint64(words[i])
        u = word >> one
        k = np.uint64(guide[word >> shift])
        k += np.uint64(u > cdf[k])  # no branch: k is now nearly always the answer
        if u >= cdf[k]:
            while u > cdf[k]:
                k += one
            if u == cdf[k]:
                break
        sign = np.int64(word & one)
        out[i] = (np.int64(k) ^ -sign) + sign
        i += one
    return np.int64(i)  # type: ignore[return-value] # numba makes it an int


class WordTable:
    """Draws k or -k, the sign at random, where the magnitude k follows a ladder.

    Args:
        ladder_of: called with `bits` and `guard`, gives the ladder of the magnitude; its tail is
            below 2^-bits, each rung known to 2^-(bits + guard).
        word_bits: length of a word with its sign, 2 to 64. 32 needs half the random bits of
            64 and decides one draw in 2^31 / (length of the table) the slow way; 8 is for
            testing that way.
    """

    __slots__ = ("_cdf", "_guide", "_kept", "_ladder_of", "_shift", "word_bits")

    def __init__(self, ladder_of: Callable[..., Ladder], word_bits: int) -> None:
        if not 2 <= word_bits <= 64:
            raise PrivacyError(f"word_bits must be from 2 to 64, got {word_bits} (use 32 or 64)")
        bits = word_bits - 1
        floors = _certain_floors(ladder_of, bits)
        # At least four cells of the guide per entry, so that few cells hold a boundary.
        guide_bits = min(bits, MAX_GUIDE_BITS, max(8, len(floors).bit_length() + 3))
        cells = np.arange(1 << guide_bits, dtype=np.uint64) << np.uint64(bits - guide_bits)
        self._cdf: Words = np.array(floors, dtype=np.uint32 if word_bits <= 32 else np.uint64)
        self._guide = np.searchsorted(self._cdf, cells.astype(self._cdf.dtype)).astype(np.uint32)
        self._shift = np.uint64(word_bits - guide_bits)
        self._ladder_of = ladder_of
        self._kept: dict[int, Ladder] = {}
        self.word_bits = word_bits

    def fill(
        self,
        out: NDArray[np.int64],
        bits: Bits,
        rows: NDArray[np.int64],
        offsets: NDArray[np.int64],
    ) -> None:
        """Overwrite `out` with independent draws, as in `Noise.fill_rows`."""
        # The words are made at the end of the array itself. Going forward, draw i overwrites
        # bytes up to 8 (i + 1), and no unread word lies there, whether it has 4 bytes or 8.
        word_bytes = self._cdf.itemsize
        words = out.view(self._cdf.dtype)[out.size * (8 // word_bytes - 1) :]
        bits.fill(words, rows, offsets)
        if spare := 8 * word_bytes - self.word_bits:
            words >>= spare
        done = self._map(words, out, 0)
        while done < out.size:
            row = int(np.searchsorted(offsets, done, side="right")) - 1
            further = bits.further(int(rows[row]), done - int(offsets[row]))
            out[done] = self._settle(int(words[done]), further)
            done = self._map(words, out, done + 1)

    def _map(self, words: Words, out: NDArray[np.int64], first: int) -> int:
        done: int = map_words_kernel(words, out, (self._cdf, self._guide, self._shift), first)
        return done

    def _settle(self, word: int, further: Iterator[int]) -> int:
        """Return the draw an undecided word leads to, given further random words."""
        u, sign = word >> 1, word & 1
        bits = self.word_bits - 1
        k = None
        while k is None:
            u = u << 64 | next(further)
            bits += 64
            k = self._ladder(bits).find(u, bits)
        return -k if sign else k

    def _ladder(self, bits: int) -> Ladder:
        """Return the ladder for words of this many bits, cached for the next undecided word."""
        ladder = self._kept.get(bits)
        if ladder is None:  # two threads may both build it, with the same result
            ladder = self._kept[bits] = self._ladder_of(bits)
        return ladder


def _certain_floors(ladder_of: Callable[..., Ladder], bits: int) -> list[int]:
    """Return floor(2^bits F(k)) for all k up to the first that reaches 2^bits - 1."""
    guard = 64
    while True:
        floors = ladder_of(bits, guard=guard).floors(bits)
        if floors is not None:
            return floors
        guard *= 2
