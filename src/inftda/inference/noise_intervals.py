"""Intervals of measured counts by their noise alone, stated as 95 %.

A reader looks at numbers of some size, and the largest are those whose noise was high. So the
quantile allows for that selection (Benjamini and Yekutieli, 2005): of the m counts near enough to
have come into a class of size, R did, so each interval is for 1 - 0.05 R / m. That holds on average
over the numbers of a class, not for each of them.
"""

import math
from collections import Counter
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from inftda.inference.measured import Whole
from inftda.noise.law import Law

Ends = tuple[NDArray[np.int64], NDArray[np.int64]]

_MISSED: Final = 0.05
#: Probability on either side of an interval: 98.5 % together. It is stated as 95 %: the
#: measured coverage was at least that in every class of numbers (docs/explanation/estimates.md).
TAIL: Final = 0.0075
#: Noise that goes further than all but this part of all draws does not count: noisy counts that are
#: further apart than twice that have different true numbers.
_RARE: Final = 1e-6
#: Classes of size are counted for so many counts at a time.
_CHUNK: Final = 1 << 20
#: No count is larger.
_MOST: Final = 2.0**62


@dataclass(frozen=True)
class NoiseIntervals:
    """Intervals of measured counts by their noise alone, for readers who pick them by size.

    Attributes:
        noise: law of the noise.
        first: int64[classes], noisy counts of each class in noise scales, rounded down, in order.
        half: int64[classes], half of the width of the intervals there.
    """

    noise: Law
    first: NDArray[np.int64]
    half: NDArray[np.int64]

    @classmethod
    def of(cls, noisy: Whole, noise: Law, missed: float = _MISSED) -> "NoiseIntervals":
        """Classes of all counts that were measured with the same noise.

        Args:
            noisy: the counts.
            noise: law of the noise.
            missed: probability that an interval misses, at most, whatever its class allows.
        """
        counted: Counter[int] = Counter()
        for start in range(0, len(noisy), _CHUNK):
            found = np.unique(
                _classes(noisy[start : start + _CHUNK], noise.sigma), return_counts=True
            )
            counted.update(dict(zip(*(one.tolist() for one in found), strict=True)))
        first = np.array(sorted(counted), np.int64)
        inside = np.array([counted[one] for one in first.tolist()], np.int64)
        up_to = np.concatenate([[0], np.cumsum(inside)])
        # Ten noise scales of a Gaussian, twenty of a Laplace, whose noise goes further.
        apart = math.ceil(2 * noise.half_width(_RARE) / noise.sigma)
        near = up_to[np.searchsorted(first, first + apart, side="right")]
        near -= up_to[np.searchsorted(first, first - apart)]
        allowed = np.minimum(_MISSED * inside / near, missed).tolist()
        half = np.array([noise.half_width(one) for one in allowed], np.int64)
        return cls(noise, first, half)

    def ends(self, noisy: Whole) -> Ends:
        """Intervals of some of the counts."""
        half = self.half[np.searchsorted(self.first, _classes(noisy, self.noise.sigma))]
        return whole_ends(noisy - half.astype(float), noisy + half.astype(float))


def _classes(noisy: Whole, sigma: float) -> NDArray[np.int64]:
    return np.floor(np.clip(noisy / sigma, -_MOST, _MOST)).astype(np.int64)


def measured_ends(noisy: NDArray[np.int64], noise: Law) -> Ends:
    """Intervals of counts that were measured and not selected."""
    half = float(noise.half_width(_MISSED))
    return whole_ends(noisy - half, noisy + half)


class NoiseSums:
    """Noisy counts summed up by rows of an answer, with what is known of the noise of each sum.

    Attributes:
        value: float64[rows], sums.
        variance: float64[rows], of their noise.
        excess: float64[rows], fourth cumulant of their noise: that of Laplace noise is not 0.
        n: int64[rows], counts in each.
    """

    def __init__(self, n_rows: int) -> None:
        self.value, self.variance, self.excess = (np.zeros(n_rows) for _ in range(3))
        self.n = np.zeros(n_rows, np.int64)

    def add(self, row: Whole, value: Whole, noise: Law) -> None:
        """Add some counts, each to a row."""
        n = np.bincount(row, minlength=len(self.n))
        self.n += n
        self.value += np.bincount(row, value, minlength=len(self.n))
        self.variance += n * noise.sigma**2
        self.excess += n * (3 * noise.sigma**4 if noise.is_laplace else 0)

    def ends(self) -> Ends:
        """Intervals for 98.5 %, as those of the model are.

        Noise goes as far as a bell curve; that of Laplace further, by the first term of Cornish and
        Fisher, and at most as far as that of a single count.
        """
        missed = 2 * TAIL
        z = -NormalDist().inv_cdf(missed / 2)
        excess = self.excess / np.maximum(self.variance, 1e-9) ** 2
        most = np.where(excess > 0, -math.log(missed) / math.sqrt(2), z)
        further = np.minimum(z + (z**3 - 3 * z) * excess / 24, most)
        half = further * np.sqrt(self.variance)
        return whole_ends(self.value - half, self.value + half)


def containing(number: NDArray[np.int64], ends: Ends) -> Ends:
    """Intervals that are extended, where they have to be, to hold the number beside them."""
    return np.minimum(ends[0], number), np.maximum(ends[1], number)


def whole_ends(low: NDArray[np.floating], high: NDArray[np.floating]) -> Ends:
    """Outward to integers; no count is below 0, and ends that are not numbers say nothing."""
    low, high = np.nan_to_num(low, nan=0.0), np.nan_to_num(high, nan=_MOST)
    return (
        np.floor(np.clip(low, 0, _MOST)).astype(np.int64),
        np.ceil(np.clip(high, 0, _MOST)).astype(np.int64),
    )
