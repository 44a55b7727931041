"""Exact draws for scales too wide for a table: a table of blocks, and a rejection step.

The magnitudes 0, 1, 2, ... are cut into blocks of m = 2^j. A block is drawn from a table with
the weight of its first element, an element of it uniformly, and the pair is kept with
probability exp(-gamma), gamma the gap in log-probability between that element and the first.
With about a thousand blocks to the scale, more than 999 pairs in 1,000 are kept. Whether to
keep one is decided by bounds on exp(-gamma) that hold in floating point with room to spare;
what they leave open is settled exactly. A draw whose pair is not kept is tried again, with the
bits of its next attempt. Proof: `docs/proofs/exact-sampling.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from inftda.kernels import kernel
from inftda.noise.ladder import exp_bounds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from fractions import Fraction

    from numpy.typing import NDArray

    from inftda.noise.bits import Bits
    from inftda.noise.table import WordTable

MARGIN: Final = 2.0**-40  # far above the rounding errors of the kernel, below 2^-48 in all


DROPPED, KEPT, OPEN = 0, 1, 2  # what has become of a pair


@kernel
def keep_pairs_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    blocks: NDArray[np.int64],
    words: NDArray[np.uint64],
    slopes: NDArray[np.float64],
    block_bits: int,
    out: NDArray[np.int64],
    state: NDArray[np.uint8],
) -> None:
    """Keep or drop pairs of a block and an element.

    Args:
        blocks: int64[n], block numbers; their sign is ignored.
        words: uint64[n, 4], second column: the element (leading bits) and a sign (lowest bit);
            third column: the first 64 bits of the number that decides whether to keep it.
        slopes: float64[3], a, b, c with gamma = element * (a * block + b * element + c).
        block_bits: j, at most 60.
        out: int64[n], written: what the pair stands for.
        state: uint8[n], written: `DROPPED`, `KEPT` or, where the bounds do not decide, `OPEN`.
    """
    shift = np.uint64(64 - block_bits)
    a, b, c = slopes[0], slopes[1], slopes[2]
    for i in range(blocks.size):
        word = words[i, 1]
        block = abs(blocks[i])
        element = np.int64(word >> shift)
        sign = np.int64(word & np.uint64(1))
        magnitude = (block << block_bits) + element
        out[i] = (magnitude ^ -sign) + sign
        gamma = element * (a * block + b * element + c)
        uniform = np.float64(words[i, 2]) * 2.0**-64
        if magnitude == 0 and sign == 1:
            state[i] = DROPPED  # zero has one sign only
        elif uniform + MARGIN < 1.0 - gamma:
            state[i] = KEPT
        elif gamma < 1.0 and uniform - MARGIN > 1.0 - gamma + 0.5 * gamma * gamma:
            state[i] = DROPPED
        else:
            state[i] = OPEN


@dataclass(frozen=True, slots=True)
class Blocks:
    """Draws from a symmetric distribution over the integers, block by block.

    Args:
        table: draws block numbers (of any sign), with the weights of the first elements.
        block_bits: j; blocks have 2^j elements.
        slopes: a, b, c such that element r of block i has probability exp(-gamma) times that
            of element 0, gamma = r (a i + b r + c).
    """

    table: WordTable
    block_bits: int
    slopes: tuple[Fraction, Fraction, Fraction]

    def fill(
        self,
        out: NDArray[np.int64],
        bits: Bits,
        rows: NDArray[np.int64],
        offsets: NDArray[np.int64],
    ) -> None:
        """Overwrite `out` with independent draws; see `Sampler.fill_rows`."""
        sizes = np.diff(offsets)
        row = np.repeat(rows, sizes)
        number = np.arange(len(out)) - np.repeat(offsets[:-1], sizes)
        left, attempt = np.arange(len(out)), 0
        while len(left):
            pair, is_kept = self._try(bits, row[left], number[left], attempt)
            out[left[is_kept]] = pair[is_kept]
            left, attempt = left[~is_kept], attempt + 1

    def _try(
        self, bits: Bits, row: NDArray[np.int64], number: NDArray[np.int64], attempt: int
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """One pair for each of some draws, and which of them are kept."""
        words = bits.blocks(row, number, attempt)
        blocks, pair = np.empty_like(row), np.empty_like(row)
        shift = np.uint64(64 - 8 * self.table.word_bytes)
        first = (words[:, 0] >> shift).astype(self.table.word_type)

        def further(part: int) -> Callable[[int], Iterator[int]]:
            return lambda i: bits.further(int(row[i]), int(number[i]), attempt, part)

        self.table.draw(first, blocks, further(2))
        slopes = np.array([float(slope) for slope in self.slopes])
        state = np.empty(len(row), np.uint8)
        keep_pairs_kernel(blocks, words, slopes, self.block_bits, pair, state)
        for i in np.flatnonzero(state == OPEN).tolist():
            element = int(words[i, 1]) >> (64 - self.block_bits)
            more = further(1 << 15)(i)
            state[i] = self._settle(abs(int(blocks[i])), element, int(words[i, 2]), more)
        return pair, state == KEPT

    def _settle(self, block: int, element: int, uniform: int, further: Iterator[int]) -> bool:
        """Return whether U < exp(-gamma), where `uniform` is the first 64 bits of U."""
        a, b, c = self.slopes
        gamma = element * (a * block + b * element + c)
        bits = 64
        while True:
            lower, upper = exp_bounds(gamma, bits + 64)
            if (uniform + 1) << 64 <= lower:
                return True
            if uniform << 64 >= upper:
                return False
            uniform = uniform << 64 | next(further)
            bits += 64
