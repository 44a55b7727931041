"""The discrete Gaussian: integer noise with P[X = x] proportional to exp(-x^2 / (2 sigma2)).

This is the noise of the paper's mechanism (sections 2 and 4.1). It is drawn exactly, from
secure bits, at a few nanoseconds per draw. Nothing is ever rounded, truncated or capped: the
distribution is the one the accountants reason about. Proof: `docs/proofs/exact-sampling.md`.

A sampler's scale is fixed when it is made; it knows neither what the noise is for nor the
counts it will be added to. Samplers hold no random state: a draw follows from the bits at its
address (`inftda.noise.bits`).
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final

import numpy as np

from inftda.errors import PrivacyError
from inftda.noise.blocks import Blocks
from inftda.noise.ladder import gaussian_ladder
from inftda.noise.table import WordTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from inftda.noise.bits import Bits, RandomSource

WIDEST: Final = 2**50
"""Largest scale, and the reciprocal of the smallest: wider noise could leave the range of int64."""
SHORT_WORD_SIGMA2: Final = 1024**2  # up to here tables are short enough for 32-bit words
TABLE_SIGMA2: Final = 10_000**2  # up to here there is a table of draws; beyond it, of blocks
BLOCKS_SIGMA2: Final = 512**2  # block width is chosen so that sigma spans at most 512 blocks


class Sampler:
    """A distribution over the integers that can be drawn from, exactly."""

    __slots__ = ("_method",)

    def __init__(self, method: WordTable | Blocks) -> None:
        self._method = method

    def fill(self, out: NDArray[np.int64], bits: Bits) -> None:
        """Overwrite `out` (contiguous int64) with the draws of row 0."""
        self.fill_rows(out, bits, np.zeros(1, np.int64), np.array([0, len(out)]))

    def fill_rows(
        self,
        out: NDArray[np.int64],
        bits: Bits,
        rows: NDArray[np.int64],
        offsets: NDArray[np.int64],
    ) -> None:
        """Overwrite an array with independent draws, without the interpreter lock.

        Args:
            out: int64, contiguous.
            bits: random bits.
            rows: int64[rows], ascending: where the bits of each row are.
            offsets: int64[rows + 1], slices of out.
        """
        flags = out.flags
        if out.dtype != np.int64 or out.ndim != 1 or not (flags.c_contiguous and flags.writeable):
            raise PrivacyError(
                "out must be a writable, contiguous, one-dimensional int64 array, got "
                f"{out.dtype} with {out.ndim} dimensions (allocate it with np.empty(n, np.int64))"
            )
        self._method.fill(out, bits, rows, offsets)

    def sample(self, n: int, source: RandomSource | None = None) -> NDArray[np.int64]:
        """Return n independent draws; secure unless another source is given."""
        from inftda.noise.bits import SecureSource  # noqa: PLC0415 - a cipher, for draws only

        out = np.empty(n, dtype=np.int64)
        self.fill(out, (SecureSource() if source is None else source).bits())
        return out


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
        super().__init__(_method(self.sigma2, word_bits))

    def __repr__(self) -> str:
        return f"DiscreteGaussian(sigma2={str(self.sigma2)!r})"


@lru_cache(maxsize=16)
def _method(sigma2: Fraction, word_bits: int | None) -> WordTable | Blocks:
    """Return the sampling method; it holds no random state, so it can be shared."""
    if sigma2 <= TABLE_SIGMA2:
        if word_bits is None:
            word_bits = 32 if sigma2 <= SHORT_WORD_SIGMA2 else 64
        return WordTable(partial(gaussian_ladder, sigma2), word_bits)
    block_bits = 0
    while sigma2 > BLOCKS_SIGMA2 << 2 * block_bits:
        block_bits += 1
    size = 1 << block_bits
    first_elements = partial(gaussian_ladder, sigma2 / size**2, is_half=True)
    # Element r of block i is x = m i + r, and x^2 - (m i)^2 = r (2 m i + r).
    slopes = (size / sigma2, 1 / (2 * sigma2), Fraction(0))
    return Blocks(WordTable(first_elements, word_bits or 32), block_bits, slopes)


def exact_positive(name: str, value: Fraction | float | str, *, at_most: int) -> Fraction:
    """Return `value` as a fraction without rounding it.

    A float is taken at its exact binary value, a string as the number it spells ("81/4",
    "20.25").

    Raises:
        PrivacyError: if it is not a number, above `at_most`, or below 1 / at_most.
    """
    try:
        exact = Fraction(value)
    except (TypeError, ValueError, OverflowError, ZeroDivisionError) as error:
        raise PrivacyError(
            f"{name} must be a number, got {value!r} (give a fraction such as 81/4)"
        ) from error
    if not 1 <= exact * at_most <= at_most**2:
        raise PrivacyError(
            f"{name} must be from {1 / at_most:.0e} to {at_most:.0e}, got {value} "
            "(take it from the plan)"
        )
    return exact
