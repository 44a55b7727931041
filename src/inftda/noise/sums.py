"""How likely sums of several draws of noise are to be large.

The law of a sum is found by multiplying the Fourier transforms of the laws of its parts. Where
noise is wide, probabilities are kept at multiples of a step that is small beside every part, and
numbers are rounded so that no tail is understated.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inftda.noise.law import Law

#: Steps in the deviation of the narrowest part, and in that of the sum, at least.
_IN_PART, _IN_SUM = 4, 64
#: How far the law of a sum is kept: in deviations of the sum, and of its widest part.
_FAR, _FURTHEST = 10, 32
#: Fourier transforms are good to about this; smaller probabilities are rounded up to it.
_LEAST = 1e-14


@dataclass(frozen=True)
class Tail:
    """The law of a sum of draws, which is symmetric around 0.

    Attributes:
        step: distance of the numbers that probabilities are kept for.
        beyond: float64, probability that the sum is at least 0, one step, two steps, ...
    """

    step: int
    beyond: NDArray[np.float64]

    @classmethod
    def of(cls, draws: Sequence[tuple[Law, int]]) -> "Tail":
        """The law of the sum of so many draws of each kind.

        >>> from fractions import Fraction
        >>> tail = Tail.of([(Law(Fraction(100)), 1), (Law(Fraction(300)), 1)])
        >>> round(float(tail.probability(np.array([40.0]))[0]), 3)  # two deviations
        0.024
        """
        draws = [(law, n) for law, n in draws if n]
        if not draws:
            return cls(1, np.array([1.0, 0.0]))
        widths = [law.sigma for law, _ in draws]
        width = math.sqrt(sum(n * law.sigma**2 for law, n in draws))
        step = max(1, math.floor(min(min(widths) / _IN_PART, width / _IN_SUM)))
        half = math.ceil((_FAR * width + _FURTHEST * max(widths)) / step)
        size = 1 << (2 * half).bit_length()
        at = step * np.minimum(np.arange(size), size - np.arange(size)).astype(float)
        together = np.ones(size // 2 + 1)
        for law, n in draws:
            scale = float(law.scale) if law.is_laplace else law.sigma
            chance = np.exp(-at / scale if law.is_laplace else -((at / scale) ** 2) / 2)
            together *= np.fft.rfft(chance / chance.sum()).real ** n
        chance = np.maximum(np.fft.irfft(together, size), 0)
        beyond = np.cumsum(chance[: size // 2][::-1])[::-1]
        return cls(step, np.clip(beyond, _LEAST, 1))

    def probability(self, least: NDArray[np.float64]) -> NDArray[np.float64]:
        """That the sum is at least so large; 1 for what is not above 0."""
        at = np.clip(np.floor(least / self.step), 0, len(self.beyond) - 1).astype(np.int64)
        found: NDArray[np.float64] = np.where(least > 0, self.beyond[at], 1.0)
        return found

    def quantile(self, missed: NDArray[np.float64]) -> NDArray[np.float64]:
        """What the sum exceeds with no more than these probabilities."""
        # Probabilities fall from left to right.
        first = np.searchsorted(-self.beyond, -missed, side="left")
        return np.asarray(
            np.maximum(self.step * np.minimum(first, len(self.beyond) - 1).astype(float) - 1, 0)
        )
