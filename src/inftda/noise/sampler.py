"""What every sampler of integer noise can do, and the checks they share.

A sampler's scale is fixed when it is made; it knows neither what the noise is for nor the
counts it will be added to. Samplers hold no random state, so one sampler serves many
threads as long as each brings its own stream.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from inftda.errors import PrivacyError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from inftda.noise.entropy import RandomSource, Stream

#: Where noise may come from, the usual source first.

WIDEST: Final = 2**50
"""Largest scale, and the reciprocal of the smallest: wider noise could leave the range of int64."""


class Filler(Protocol):
    """Anything that writes independent draws into a caller's array."""

    def fill(self, out: NDArray[np.int64], stream: Stream) -> None:
        """Overwrite `out` (contiguous int64) with independent draws made from `stream`."""


class Method(Filler, Protocol):
    """A way to draw from one distribution; it holds no random state, so samplers share it."""

    @property
    def word_bytes(self) -> int:
        """Random bytes used per draw, apart from the rare draws that need more."""


class Sampler(Filler, Protocol):
    """A distribution over the integers that can be drawn from."""

    def sample(self, n: int, source: RandomSource | None = None) -> NDArray[np.int64]:
        """Return n independent draws; secure unless another source is given."""


class ExactSampler:
    """What the exact samplers have in common: they draw by one method.

    Args:
        method: draws from the distribution.
        word_bits: length of the random word of a draw, if it was not chosen by default.
    """

    __slots__ = ("_method", "_word_bits")

    def __init__(self, method: Method, word_bits: int | None) -> None:
        self._method, self._word_bits = method, word_bits

    @property
    def word_bytes(self) -> int:
        """Random bytes used per draw, apart from the rare draws that need more."""
        return self._method.word_bytes

    def fill(self, out: NDArray[np.int64], stream: Stream) -> None:
        """Overwrite `out` (contiguous int64) with independent draws, without the GIL."""
        self._method.fill(out, stream)

    def sample(self, n: int, source: RandomSource | None = None) -> NDArray[np.int64]:
        """Return n independent draws; secure unless another source is given."""
        return draw(self, n, source)


def draw(sampler: Filler, n: int, source: RandomSource | None) -> NDArray[np.int64]:
    """Return n draws from a new stream of `source`, or of a secure source if it is None."""
    from inftda.noise.entropy import SecureSource  # noqa: PLC0415 - a cipher, for draws only

    out = np.empty(n, dtype=np.int64)
    sampler.fill(out, (SecureSource() if source is None else source).stream())
    return out


def check_out(out: NDArray[np.int64]) -> None:
    """Raise unless `out` can be filled in place.

    Raises:
        PrivacyError: if it is not a writable one-dimensional contiguous array of int64.
    """
    flags = out.flags
    if out.dtype != np.int64 or out.ndim != 1 or not (flags.c_contiguous and flags.writeable):
        raise PrivacyError(
            "out must be a writable, contiguous, one-dimensional int64 array, got "
            f"{out.dtype} with {out.ndim} dimensions (allocate it with np.empty(n, np.int64))"
        )


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
