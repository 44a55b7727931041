"""The discrete Laplace: integer noise with P[X = x] proportional to exp(-|x| / scale).

This is the noise of the stability histogram, which the paper compares with. It is drawn
exactly and as fast as the discrete Gaussian, by the same means. Nothing is ever rounded,
truncated or capped. Proof: `docs/proofs/exact-sampling.md`.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache, partial
from typing import Final

from inftda.noise.blocks import Blocks
from inftda.noise.gaussian import WIDEST, Sampler, exact_positive
from inftda.noise.ladder import laplace_ladder
from inftda.noise.table import WordTable

SHORT_WORD_SCALE: Final = 512  # up to here tables are short enough for 32-bit words
TABLE_SCALE: Final = 2_000  # up to here there is a table of draws; beyond it, of blocks
BLOCKS_SCALE: Final = 256  # block width is chosen so that the scale spans at most 256 blocks


class DiscreteLaplace(Sampler):
    """Exact sampler of the discrete Laplace.

    Args:
        scale: exact: a fraction, an integer, a string such as "9/2", or a float, taken
            at its exact binary value.
        word_bits: length of the random word of a draw, for tests; chosen by default.

    Privacy:
        Adding independent draws to counts with l1 sensitivity D is (D / scale)-DP.

    Example:
        >>> DiscreteLaplace("9/2").sample(3).dtype
        dtype('int64')
    """

    __slots__ = ("scale",)

    def __init__(self, scale: Fraction | float | str, *, word_bits: int | None = None) -> None:
        self.scale: Fraction = exact_positive("scale", scale, at_most=WIDEST)
        super().__init__(_method(self.scale, word_bits))

    def __repr__(self) -> str:
        return f"DiscreteLaplace(scale={str(self.scale)!r})"


@lru_cache(maxsize=16)
def _method(scale: Fraction, word_bits: int | None) -> WordTable | Blocks:
    """Return the sampling method; it holds no random state, so it can be shared."""
    if scale <= TABLE_SCALE:
        if word_bits is None:
            word_bits = 32 if scale <= SHORT_WORD_SCALE else 64
        return WordTable(partial(laplace_ladder, scale), word_bits)
    block_bits = 0
    while scale > BLOCKS_SCALE << block_bits:
        block_bits += 1
    first_elements = partial(laplace_ladder, scale / (1 << block_bits), is_half=True)
    slopes = (Fraction(0), Fraction(0), 1 / scale)
    return Blocks(WordTable(first_elements, word_bits or 32), block_bits, slopes)
