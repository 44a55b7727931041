"""What the samplers of integer noise have in common.

A sampler's scale is fixed when it is made; it knows neither what the noise is for nor the
counts it will be added to. Samplers hold no random state: a draw follows from the bits at its
address (`inftda.noise.bits`).
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from inftda.errors import PrivacyError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from inftda.noise.bits import Bits, RandomSource
    from inftda.noise.blocks import Blocks
    from inftda.noise.table import Table

WIDEST: Final = 2**50
"""Largest scale, and the reciprocal of the smallest: wider noise could leave the range of int64."""


class Sampler:
    """A distribution over the integers that can be drawn from, exactly.

    Args:
        method: draws from the distribution.
        word_bits: length of the random word of a draw, if it was not chosen by default.
    """

    __slots__ = ("_method", "_word_bits")

    def __init__(self, method: Table | Blocks, word_bits: int | None) -> None:
        self._method, self._word_bits = method, word_bits

    @property
    def word_bytes(self) -> int:
        """Random bytes used per draw, apart from the rare draws that need more."""
        return self._method.word_bytes

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
