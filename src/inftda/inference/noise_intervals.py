"""Intervals of measured counts by their noise alone, stated as 95 %.

A reader looks at numbers of some size, and the largest are those whose noise was high. So the
quantile allows for that selection (Benjamini and Yekutieli, 2005): of the R counts that came into a
class of size, at most 5 % are to miss. A count that was there before misses with the probability q
of the interval; one that is d away has to come first, so it does with no more than the probability
that noise goes as far. The sum of the smaller of both, over all counts, is at most 0.05 R. That
holds on average over the numbers of a class, not for each of them.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from inftda.inference.measured import Whole
from inftda.noise.law import Law
from inftda.noise.sums import Tail

Ends = tuple[NDArray[np.int64], NDArray[np.int64]]

_MISSED: Final = 0.05
#: Classes of size, in noise scales: as wide as one, and beyond ten as wide as a tenth of the size.
_EDGES: Final = np.append(np.arange(-20.0, 10.0), 10 * 1.1 ** np.arange(420))
#: Probabilities to miss go down to 10 to the power of minus this, and are halved in so many times.
_DECADES, _HALVINGS = 14.0, 20
#: Probability on either side of an interval: 98.5 % together. It is stated as 95 %: the
#: measured coverage was at least that in every class of numbers (docs/explanation/estimates.md).
TAIL: Final = 0.0075
#: Classes of size are counted for so many counts at a time.
_CHUNK: Final = 1 << 20
#: No count is larger.
_MOST: Final = 2.0**62


@dataclass(frozen=True)
class NoiseIntervals:
    """Intervals of measured counts by their noise alone, for readers who pick them by size.

    Attributes:
        edges: float64, where one class of size ends and the next begins.
        half: int64[classes], half of the width of the intervals of each.
    """

    edges: NDArray[np.float64]
    half: NDArray[np.int64]

    @classmethod
    def of(cls, noisy: Whole, noise: Law, missed: float = _MISSED) -> "NoiseIntervals":
        """Classes of all counts that were measured with the same noise.

        Args:
            noisy: the counts.
            noise: law of the noise.
            missed: probability that an interval misses, at most, whatever its class allows.
        """
        edges = noise.sigma * _EDGES
        inside = np.zeros(len(edges) + 1, np.int64)
        for start in range(0, len(noisy), _CHUNK):
            kind = np.searchsorted(edges, noisy[start : start + _CHUNK], side="right")
            inside += np.bincount(kind, minlength=len(inside))
        allowed = _allowed(edges, inside, noise, missed)
        half = [noise.half_width(one) for one in allowed.tolist()]
        return cls(edges, np.array(half, np.int64))

    def ends(self, noisy: Whole) -> Ends:
        """Intervals of some of the counts."""
        half = self.half[np.searchsorted(self.edges, noisy, side="right")].astype(float)
        return whole_ends(noisy - half, noisy + half)


def _allowed(
    edges: NDArray[np.float64], inside: NDArray[np.int64], noise: Law, missed: float
) -> NDArray[np.float64]:
    """The probability to miss of the intervals of each class; see above."""
    low, high = np.append(-np.inf, edges), np.append(edges, np.inf)
    apart = np.maximum(low[:, None] - high, low - high[:, None])
    # Where counts truly are is known up to their noise, so that two draws have to go that way.
    away = Tail.of([(noise, 2)]).probability(apart)
    least, most = np.full(len(inside), -_DECADES), np.full(len(inside), math.log10(missed))
    for _ in range(_HALVINGS):
        middle = (least + most) / 2
        sums = (inside * np.minimum(10 ** middle[:, None], away)).sum(axis=1)
        is_enough = sums <= _MISSED * inside
        least, most = np.where(is_enough, middle, least), np.where(is_enough, most, middle)
    return np.asarray(10**least)


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
