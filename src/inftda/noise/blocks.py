"""Exact draws for scales too wide for a table: a table of blocks, and a rejection step.

The magnitudes 0, 1, 2, ... are cut into blocks of m = 2^j. A block is drawn from a table with
the weight of its first element, an element of it uniformly, and the pair is kept with
probability exp(-gamma), gamma the gap in log-probability between that element and the first.
With about a thousand blocks to the scale, more than 999 pairs in 1,000 are kept. Whether to
keep one is decided by bounds on exp(-gamma) that hold in floating point with room to spare;
what they leave open is settled exactly. Proof: `docs/proofs/exact-sampling.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from inftda.kernels import kernel
from inftda.noise.ladder import exp_bounds
from inftda.noise.sampler import check_out

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from inftda.noise.entropy import Stream
    from inftda.noise.table import Table

CHUNK: Final = 1 << 14  # pairs at a time: 384 KiB of blocks and words
MARGIN: Final = 2.0**-40  # far above the rounding errors of the kernel, below 2^-48 in all


@kernel
def keep_pairs_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    blocks: NDArray[np.int64],
    words: NDArray[np.uint64],
    slopes: NDArray[np.float64],
    block_bits: int,
    out: NDArray[np.int64],
    state: NDArray[np.int64],
) -> bool:
    """Keep or drop pairs of a block and an element, up to the first undecided one.

    Args:
        blocks: int64[n], block numbers; their sign is ignored.
        words: uint64[n, 2], first column: the element (leading bits) and a sign (lowest bit);
            second column: the first 64 bits of the number that decides whether to keep it.
        slopes: float64[3], a, b, c with gamma = element * (a * block + b * element + c).
        block_bits: j, at most 60.
        out: int64[at least n], kept draws are appended to it.
        state: int64[2], how many pairs are done and how many draws are in `out`; updated.

    Returns:
        Whether all pairs are done. If not, the next one is undecided.
    """
    # Indices are unsigned because numba tests signed ones for being negative.
    one = np.uint64(1)
    done, kept = np.uint64(state[0]), np.uint64(state[1])
    n = np.uint64(blocks.size)
    shift = np.uint64(64 - block_bits)
    a, b, c = slopes[0], slopes[1], slopes[2]
    is_decided = True
    while done < n:
        word = words[done, 0]
        block = abs(blocks[done])
        element = np.int64(word >> shift)
        sign = np.int64(word & one)
        magnitude = (block << block_bits) + element
        gamma = element * (a * block + b * element + c)
        uniform = np.float64(words[done, 1]) * 2.0**-64
        if uniform + MARGIN < 1.0 - gamma:
            out[kept] = (magnitude ^ -sign) + sign
            kept += np.uint64(magnitude != 0 or sign == 0)  # zero has one sign only
        elif not (gamma < 1.0 and uniform - MARGIN > 1.0 - gamma + 0.5 * gamma * gamma):
            is_decided = False
            break
        done += one
    state[0] = done
    state[1] = kept
    return is_decided


@dataclass(frozen=True, slots=True)
class Blocks:
    """Draws from a symmetric distribution over the integers, block by block.

    Args:
        table: draws block numbers (of any sign), with the weights of the first elements.
        block_bits: j; blocks have 2^j elements.
        slopes: a, b, c such that element r of block i has probability exp(-gamma) times that
            of element 0, gamma = r (a i + b r + c).
    """

    table: Table
    block_bits: int
    slopes: tuple[Fraction, Fraction, Fraction]

    @property
    def max_abs(self) -> int:
        """The largest magnitude in the table; larger ones have probability below 2^-31."""
        return ((self.table.max_abs + 1) << self.block_bits) - 1

    @property
    def word_bytes(self) -> int:
        """Random bytes used per pair."""
        return self.table.word_bytes + 16

    def fill(self, out: NDArray[np.int64], stream: Stream) -> None:
        """Overwrite `out` with independent draws made from `stream`."""
        check_out(out)
        filled = 0
        while filled < out.size:
            filled += self._fill_some(out[filled : filled + CHUNK], stream)

    def _fill_some(self, out: NDArray[np.int64], stream: Stream) -> int:
        """Try one pair for each element of `out`; return how many draws were kept."""
        blocks = np.empty(out.size, dtype=np.int64)
        self.table.fill(blocks, stream)
        words = stream.words(2 * out.size).reshape(-1, 2)
        slopes = np.array([float(slope) for slope in self.slopes])
        state = np.zeros(2, dtype=np.int64)
        while not keep_pairs_kernel(blocks, words, slopes, self.block_bits, out, state):
            done, kept = (int(n) for n in state)
            block, word = abs(int(blocks[done])), int(words[done, 0])
            element = word >> (64 - self.block_bits)
            magnitude, is_negative = (block << self.block_bits) + element, word & 1
            is_kept = self._settle(block, element, int(words[done, 1]), stream)
            if is_kept and (magnitude or not is_negative):
                out[kept] = -magnitude if is_negative else magnitude
                kept += 1
            state[:] = done + 1, kept
        return int(state[1])

    def _settle(self, block: int, element: int, uniform: int, stream: Stream) -> bool:
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
            uniform = uniform << 64 | int(stream.words(1)[0])
            bits += 64
