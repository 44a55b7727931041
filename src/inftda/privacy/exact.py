"""The exact accountant: one-trip units, whose privacy loss is linear in an integer.

The loss of a cell that changes by one is (1 - 2x) / (2 sigma^2) at noise x. If the variances
are sigma2 / r for whole numbers r (a uniform split), all losses together are
(W - 2Y) / (2 sigma2) with Y the sum of all r x and W the sum of all r, and

    delta(epsilon) = sum over y of P[Y = y] * max(0, 1 - exp(epsilon - loss(y))).

Every term is positive, every rounding upward. No discretisation, no Fourier transform, and
fast enough to calibrate with. Must never be used for several trips.
Proofs: `docs/proofs/accounting.md`, sections 3 to 5.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from inftda.privacy.levels import MIN_DELTA, Measured
from inftda.privacy.sums import (
    ABSOLUTE_SLACK,
    RELATIVE_SLACK,
    TAIL_SLACK,
    gaussian_tail,
    law_of_sum,
    log_inflation,
    log_theta_excess,
    rounding_of_sum,
)

_MAX_RATIO: Final = 64
#: Above this excess the Gaussian bound is not tight and arrays are short: convolve.
_MAX_LOG_INFLATION: Final = 1e-6
#: Above this standard deviation of Y sums become integrals, at a relative cost of about 1e-3.
_LONGEST_SUM: Final = 4000.0
_NEGLIGIBLE: Final = 45.0  # terms smaller than the first by exp(-45) are bounded, not summed


@dataclass(frozen=True)
class LossLattice:
    """All cells one person changes by one, with commensurable noise.

    Attributes:
        sigma2: the largest variance.
        ratios: for each cell, sigma2 over its variance; ascending, the first is 1.
    """

    sigma2: Fraction
    ratios: tuple[int, ...]

    @classmethod
    def of(cls, levels: Iterable[Measured]) -> "LossLattice | None":
        """The lattice of these levels; None if they are not of that kind."""
        cells = [(level.sigma2, level.n_shifts) for level in levels]
        largest = max(sigma2 for sigma2, _ in cells)
        ratios: list[int] = []
        for sigma2, n_shifts in cells:
            ratio = largest / sigma2
            if not n_shifts or ratio.denominator != 1 or ratio > _MAX_RATIO:
                return None
            ratios += [int(ratio)] * n_shifts
        return cls(largest, tuple(sorted(ratios)))

    def delta(self, epsilon: float) -> float:
        """The least delta for `epsilon`, rounded up."""
        # Terms count from y0 on, where the loss is epsilon. It is kept exact: all weights
        # 1 - exp(-(y - y0) / sigma2) then come without cancellation.
        start = Fraction(epsilon) * self.sigma2 - Fraction(sum(self.ratios), 2)
        if self._looseness > _MAX_LOG_INFLATION:
            value = self._convolved(start)
        elif self._deviation <= _LONGEST_SUM:
            value = self._summed(start) * math.exp(self._log_inflation)
        else:
            value = self._integrated(float(start)) * math.exp(self._log_inflation)
        return min(1.0, max(MIN_DELTA, value + ABSOLUTE_SLACK))

    @cached_property
    def _log_inflation(self) -> float:
        return log_inflation(self.ratios, float(self.sigma2))

    @cached_property
    def _looseness(self) -> float:
        """What the Gaussian bound gives away: its factor, and that the summands' are below 1."""
        each = (log_theta_excess(float(self.sigma2) / ratio) for ratio in self.ratios)
        return self._log_inflation + sum(each)

    @cached_property
    def _deviation(self) -> float:
        """Standard deviation of the Gaussian that bounds Y."""
        return math.sqrt(sum(self.ratios) * float(self.sigma2))

    @cached_property
    def _law(self) -> NDArray[np.float64]:
        return law_of_sum(self.ratios, float(self.sigma2))

    def _convolved(self, start: Fraction) -> float:
        """Small variances: the law of Y as an array."""
        law = self._law
        half = len(law) // 2
        first = max(math.floor(start) + 1, -half)
        if first > half:
            return 0.0
        terms = law[first + half :] * self._weights(start, first, half)
        return float(terms.sum()) * (1 + rounding_of_sum(law, len(self.ratios)))

    def _summed(self, start: Fraction) -> float:
        """Gaussian law, one term for each integer, and a bound of those left out."""
        variance = self._deviation**2
        first = max(math.floor(start) + 1, -math.ceil(25 * self._deviation))
        if first > 25 * self._deviation:
            return 0.0
        last = math.isqrt(math.ceil(max(first, 0) ** 2 + 2 * _NEGLIGIBLE * variance)) + 1
        y = np.arange(first, last + 1, dtype=np.float64)
        densities = np.exp(-(y**2) / (2 * variance))
        terms = float((densities * self._weights(start, first, last)).sum())
        # Beyond `last` the density falls by at least the factor at `last`, each step.
        rest = math.exp(-(last**2) / (2 * variance)) / math.expm1(last / variance)
        return (terms + rest) / math.sqrt(2 * math.pi * variance) * (1 + RELATIVE_SLACK)

    def _weights(self, start: Fraction, first: int, last: int) -> NDArray[np.float64]:
        """1 - exp(-(y - start) / sigma2) for y from first to last."""
        offset = float(first - start)
        steps = np.arange(last - first + 1, dtype=np.float64)
        weights: NDArray[np.float64] = -np.expm1(-(offset + steps) / float(self.sigma2))
        return weights

    def _integrated(self, start: float) -> float:
        """Gaussian law: the sum of a unimodal function is below its integral plus its maximum."""
        deviation, sigma2 = self._deviation, float(self.sigma2)
        if start > 25 * deviation:
            return 0.0
        epsilon = start / sigma2 + sum(self.ratios) / (2 * sigma2)
        gain = gaussian_tail(start / deviation)
        shifted = gaussian_tail((start + deviation**2 / sigma2) / deviation)
        # gaussian_tail is upward; the subtracted term has to be downward.
        loss = math.exp(epsilon) * shifted * (1 - 4 * TAIL_SLACK)
        # g(y) (y - start) / sigma2 bounds the summand, and is largest at this peak.
        peak = (start + math.sqrt(start**2 + 4 * deviation**2)) / 2
        density = math.exp(-((peak / deviation) ** 2) / 2) / (math.sqrt(2 * math.pi) * deviation)
        return max(gain - loss, 0.0) + density * (peak - start) / sigma2 * (1 + RELATIVE_SLACK)
