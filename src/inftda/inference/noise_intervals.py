"""Intervals of measured counts by their noise alone, stated as 95 %.

A reader looks at numbers of some size, and the largest are those whose noise was high. So the
quantile allows for that selection (Benjamini and Yekutieli, 2005): of the m counts near enough to
have come into a class of size, R did, so each interval is for 1 - 0.05 R / m. That holds on average
over the numbers of a class, not for each of them.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from inftda.inference.measured import Whole
from inftda.noise.quantiles import half_width

Ends = tuple[NDArray[np.int64], NDArray[np.int64]]

_MISSED: Final = 0.05
#: Counts that are further apart, in noise scales, have different true numbers: noise of more than
#: five scales is drawn once in a million times.
_NEAR: Final = 10
#: Classes of size are counted for so many counts at a time.
_CHUNK: Final = 1 << 20
#: No count is larger.
_MOST: Final = 2.0**62


@dataclass(frozen=True)
class NoiseIntervals:
    """Intervals of measured counts by their noise alone, for readers who pick them by size.

    Attributes:
        sigma: noise scale.
        first: int64[classes], noisy counts of each class in noise scales, rounded down, in order.
        half: int64[classes], half of the width of the intervals there.
    """

    sigma: float
    first: NDArray[np.int64]
    half: NDArray[np.int64]

    @classmethod
    def of(cls, noisy: Whole, sigma: float, missed: float = _MISSED) -> "NoiseIntervals":
        """Classes of all counts that were measured with the same noise.

        Args:
            noisy: the counts.
            sigma: noise scale.
            missed: probability that an interval misses, at most, whatever its class allows.
        """
        counted: Counter[int] = Counter()
        for start in range(0, len(noisy), _CHUNK):
            found = np.unique(_classes(noisy[start : start + _CHUNK], sigma), return_counts=True)
            counted.update(dict(zip(*(one.tolist() for one in found), strict=True)))
        first = np.array(sorted(counted), np.int64)
        inside = np.array([counted[one] for one in first.tolist()], np.int64)
        up_to = np.concatenate([[0], np.cumsum(inside)])
        near = up_to[np.searchsorted(first, first + _NEAR, side="right")]
        near -= up_to[np.searchsorted(first, first - _NEAR)]
        allowed = np.minimum(_MISSED * inside / near, missed).tolist()
        half = np.array([half_width(sigma, one) for one in allowed], np.int64)
        return cls(sigma, first, half)

    def ends(self, noisy: Whole) -> Ends:
        """Intervals of some of the counts."""
        half = self.half[np.searchsorted(self.first, _classes(noisy, self.sigma))]
        return whole_ends(noisy - half.astype(float), noisy + half.astype(float))


def _classes(noisy: Whole, sigma: float) -> NDArray[np.int64]:
    return np.floor(np.clip(noisy / sigma, -_MOST, _MOST)).astype(np.int64)


def measured_ends(noisy: NDArray[np.int64], sigma: float) -> Ends:
    """Intervals of counts that were measured and not selected."""
    half = float(half_width(sigma, _MISSED))
    return whole_ends(noisy - half, noisy + half)


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
