"""The law of noise: which distribution over the integers is drawn from, and how wide it is.

Both families are symmetric and exact. One number says how wide: the variance parameter sigma2 of a
discrete Gaussian, the square of the scale of a discrete Laplace. By that number both cost the same
in zCDP (`docs/proofs/accounting.md`, section 7).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from inftda.errors import PrivacyError
from inftda.noise.gaussian import DiscreteGaussian, Sampler
from inftda.noise.laplace import DiscreteLaplace
from inftda.noise.quantiles import half_width, laplace_half_width, laplace_squares

#: No draw of Laplace noise goes further, in scales, with a probability that 64 bits could tell
#: from 0.
_FURTHEST = 50

Family = Literal["gaussian", "laplace"]


@dataclass(frozen=True)
class Law:
    """A discrete Gaussian or a discrete Laplace.

    Attributes:
        square: variance parameter of a Gaussian, square of the scale of a Laplace; exact.
        family: which of the two.

    >>> Law.laplace(Fraction(3, 2))
    Law(square=Fraction(9, 4), family='laplace')
    """

    square: Fraction
    family: Family = "gaussian"

    @classmethod
    def laplace(cls, scale: Fraction) -> "Law":
        """A discrete Laplace."""
        return cls(scale**2, "laplace")

    @property
    def is_laplace(self) -> bool:
        """Whether it is a Laplace."""
        return self.family == "laplace"

    @cached_property
    def scale(self) -> Fraction:
        """Scale of a Laplace, exact."""
        self.check()
        return Fraction(math.isqrt(self.square.numerator), math.isqrt(self.square.denominator))

    def check(self) -> None:
        """Refuse a Laplace whose scale is not a fraction: it could not be drawn exactly."""
        if not self.is_laplace:
            return
        for number in (self.square.numerator, self.square.denominator):
            if math.isqrt(number) ** 2 != number:
                raise PrivacyError(
                    f"Laplace noise with the squared scale {str(self.square)[:40]} has no exact "
                    "scale; it was edited or damaged"
                )

    @cached_property
    def sigma(self) -> float:
        """Noise scale for people and estimates: the standard deviation, or close to it.

        The noise itself is drawn from `square`.
        """
        if not self.is_laplace:
            return math.sqrt(self.square)
        a = math.exp(-1 / float(self.scale))
        return math.sqrt(2 * a) / -math.expm1(-1 / float(self.scale))

    def sampler(self) -> Sampler:
        """What draws it."""
        return DiscreteLaplace(self.scale) if self.is_laplace else DiscreteGaussian(self.square)

    def half_width(self, missed: float = 0.05) -> int:
        """Noise is at most this, on either side, but with probability `missed`."""
        if self.is_laplace:
            return laplace_half_width(float(self.scale), missed)
        return half_width(self.sigma, missed)

    def squares(self, off: NDArray[np.float64]) -> NDArray[np.float64]:
        """Squares of z: whole numbers in noise scales, as far out as a normal number would be.

        Noise of Laplace goes further than a Gaussian's of the same deviation. So its z is the
        normal number that is as often exceeded.
        """
        if not self.is_laplace:
            return np.square(off / self.sigma)
        scale, most = float(self.scale), math.ceil(_FURTHEST * self.scale)
        if most >= len(off):
            return laplace_squares(off, scale)
        known = laplace_squares(np.arange(most + 1.0), scale)  # few numbers, which many share
        squares: NDArray[np.float64] = known[np.minimum(np.abs(off), most).astype(np.int64)]
        return squares

    def __str__(self) -> str:
        if self.is_laplace:
            return f"discrete Laplace, scale {float(self.scale):.5g}"
        return f"discrete Gaussian, σ = {self.sigma:.5g}"  # noqa: RUF001 - a Greek letter
