"""The discrete Gaussian: integer noise with P[X = x] proportional to exp(-x^2 / (2 sigma2)).

This is the noise of the paper's mechanism (sections 2 and 4.1). It is drawn exactly, from
secure bits, at a few nanoseconds per draw. Nothing is ever rounded, truncated or capped: the
distribution is the one the accountants reason about. Proof: `docs/proofs/exact-sampling.md`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache, partial
from typing import Final

from inftda.noise.blocks import Blocks
from inftda.noise.ladder import gaussian_ladder
from inftda.noise.sampler import WIDEST, Sampler, exact_positive
from inftda.noise.table import Table

SHORT_WORD_SIGMA2: Final = 1024**2  # up to here tables are short enough for 32-bit words
TABLE_SIGMA2: Final = 10_000**2  # up to here there is a table of draws; beyond it, of blocks
BLOCKS_SIGMA2: Final = 512**2  # block width is chosen so that sigma spans at most 512 blocks


class DiscreteGaussian(Sampler):
    """Exact sampler of the discrete Gaussian.

    Args:
        sigma2: the variance parameter, exact: a fraction, an integer, a string such as
            "81/4", or a float, taken at its exact binary value.
        word_bits: length of the random word of a draw, for tests; chosen by default.

    Privacy:
        Adding independent draws to counts with l2 sensitivity D is D^2 / (2 sigma2)-zCDP.

    Example:
        >>> DiscreteGaussian("81/4").sample(3).dtype
        dtype('int64')
    """

    __slots__ = ("sigma2",)

    def __init__(self, sigma2: Fraction | float | str, *, word_bits: int | None = None) -> None:
        self.sigma2: Fraction = exact_positive("sigma2", sigma2, at_most=WIDEST**2)
        super().__init__(_method(self.sigma2, word_bits), word_bits)

    @property
    def max_abs(self) -> int:
        """A magnitude that a draw exceeds with probability below 2^-128."""
        # P[|X| > k] <= exp(-k^2 / (2 sigma2)), and exp(-178 / 2) < 2^-128.
        return math.isqrt(math.ceil(178 * self.sigma2)) + 1

    def __repr__(self) -> str:
        return f"DiscreteGaussian(sigma2={str(self.sigma2)!r})"

    def __reduce__(self) -> tuple[object, ...]:  # rebuilding a table is faster than sending it
        return partial(DiscreteGaussian, word_bits=self._word_bits), (self.sigma2,)


@lru_cache(maxsize=16)
def _method(sigma2: Fraction, word_bits: int | None) -> Table | Blocks:
    """Return the sampling method; it holds no random state, so it can be shared."""
    if sigma2 <= TABLE_SIGMA2:
        if word_bits is None:
            word_bits = 32 if sigma2 <= SHORT_WORD_SIGMA2 else 64
        return Table(partial(gaussian_ladder, sigma2), word_bits)
    block_bits = 0
    while sigma2 > BLOCKS_SIGMA2 << 2 * block_bits:
        block_bits += 1
    size = 1 << block_bits
    first_elements = partial(gaussian_ladder, sigma2 / size**2, is_half=True)
    # Element r of block i is x = m i + r, and x^2 - (m i)^2 = r (2 m i + r).
    slopes = (size / sigma2, 1 / (2 * sigma2), Fraction(0))
    return Blocks(Table(first_elements, word_bits or 32), block_bits, slopes)
