"""The exact accountant: one-trip units, whose privacy loss is linear in an integer.

The loss of a cell that changes by one is (1 - 2x) / (2 s) at noise x of variance s. If all
variances are sigma2 / r for whole numbers r, all losses together are (W - 2Y) / (2 sigma2), Y the
sum of all r x and W the sum of all r, and

    delta(epsilon) = sum over y of P[Y = y] * max(0, 1 - exp(epsilon - loss(y))).

The distribution of Y is convolved where variances are small. Elsewhere a Gaussian bounds it, up to
a proven factor close to 1. Every term is positive and rounded upward, without discretisation or
cancellation. The result must never be below the true delta, and is valid for one trip only. Proofs:
`docs/proofs/accounting.md`, sections 3 to 5.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from inftda.noise.tails import (
    ABSOLUTE_SLACK,
    RELATIVE_SLACK,
    TAIL_SLACK,
    array_half,
    gaussian_tail,
    log_inflation,
    log_inflation_at_zero,
    log_theta_excess,
    rounding_of_sum,
    sum_of_gaussians,
)
from inftda.util.exact_numbers import MIN_DELTA

#: Largest ratio of two variances.
MAX_RATIO: Final = 256
#: If the Gaussian bound is looser than this, the distribution is convolved, unless that is slow.
_MAX_LOG_INFLATION: Final = 1e-6
_MOST_PRODUCTS: Final = 3 * 10**8
#: Where even the logarithm of the factor is above this, the bound is useless.
_USELESS: Final = 50.0
#: Above this standard deviation of Y sums become integrals, at a relative cost of about 1e-3.
_LONGEST_SUM: Final = 4000.0
_NEGLIGIBLE: Final = 45.0  # terms smaller than the first by exp(-45) are bounded, not summed


@dataclass(frozen=True)
class LossLattice:
    """All cells one person changes by one, with commensurable noise.

    Attributes:
        sigma2: the variance that all others are whole fractions of.
        ratios: for each cell, sigma2 over its variance; ascending, without a common divisor.
    """

    sigma2: Fraction
    ratios: tuple[int, ...]

    @classmethod
    def of(cls, cells: Iterable[tuple[Fraction, int]]) -> "LossLattice | None":
        """The lattice of (variance, number of cells that change by one); None if there is none."""
        cells = tuple(cells)
        first, unit = cells[0][0], 1
        for sigma2, _ in cells:
            relative = first / sigma2
            unit = math.lcm(unit, relative.denominator)
            if max(unit, relative.numerator) > MAX_RATIO:
                return None
        ratios = sorted(int(unit * first / s) for s, n_shifts in cells for _ in range(n_shifts))
        return cls(unit * first, tuple(ratios)) if ratios[-1] <= MAX_RATIO else None

    def delta(self, epsilon: float | Fraction) -> float:
        """The smallest delta for `epsilon`, rounded up; `epsilon` may be negative."""
        # Terms count from y0 on, where the loss is epsilon. It is kept exact: all weights
        # 1 - exp(-(y - y0) / sigma2) then come without cancellation.
        start = Fraction(epsilon) * self.sigma2 - Fraction(sum(self.ratios), 2)
        if self._is_convolved:
            value = self._convolved(start)
        elif self._log_inflation > _USELESS:
            value = 1.0
        elif self._deviation <= _LONGEST_SUM:
            value = self._summed(start) * math.exp(self._log_inflation)
        else:
            value = self._integrated(float(start)) * math.exp(self._log_inflation)
        return min(1.0, max(MIN_DELTA, value + ABSOLUTE_SLACK))

    @cached_property
    def _is_convolved(self) -> bool:
        """Whether the Gaussian bound is loose and convolving is quick."""
        # It is loose by its factor, and because the factors of the summands are below 1.
        each = (log_theta_excess(float(self.sigma2) / ratio) for ratio in self.ratios)
        if self._log_inflation + sum(each) <= _MAX_LOG_INFLATION:
            return False
        length = products = 0
        for ratio in self.ratios:
            half = array_half(float(self.sigma2) / ratio)
            products += 2 * half * (length + 1)
            length += 2 * half * ratio
        return products <= _MOST_PRODUCTS

    @cached_property
    def _log_inflation(self) -> float:
        by_steps = log_inflation(self.ratios, float(self.sigma2))
        if by_steps <= _MAX_LOG_INFLATION:
            return by_steps
        return min(by_steps, log_inflation_at_zero(self.ratios, float(self.sigma2)))

    @cached_property
    def _deviation(self) -> float:
        """Standard deviation of the Gaussian that bounds Y."""
        return math.sqrt(sum(self.ratios) * float(self.sigma2))

    @cached_property
    def _array(self) -> NDArray[np.float64]:
        return sum_of_gaussians(self.ratios, float(self.sigma2))

    def _convolved(self, start: Fraction) -> float:
        """Small variances: the distribution of Y as an array."""
        chance = self._array
        half = len(chance) // 2
        first = max(math.floor(start) + 1, -half)
        if first > half:
            return 0.0
        terms = chance[first + half :] * self._weights(start, first, half)
        return float(terms.sum()) * (1 + rounding_of_sum(chance, len(self.ratios)))

    def _summed(self, start: Fraction) -> float:
        """Gaussian bound, one term for each integer, and a bound of those left out."""
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
        """Gaussian bound: the sum of a unimodal function is below its integral plus its maximum."""
        deviation, sigma2 = self._deviation, float(self.sigma2)
        if start > 25 * deviation:
            return 0.0
        epsilon = start / sigma2 + sum(self.ratios) / (2 * sigma2)
        gain = gaussian_tail(start / deviation)
        shifted = gaussian_tail((start + deviation**2 / sigma2) / deviation)
        # gaussian_tail is upward; the subtracted term has to be downward.
        loss = math.exp(min(epsilon, 700.0)) * shifted * (1 - 4 * TAIL_SLACK)
        # g(y) (y - start) / sigma2 bounds the summand, and is largest at this peak.
        peak = (start + math.sqrt(start**2 + 4 * deviation**2)) / 2
        density = math.exp(-((peak / deviation) ** 2) / 2) / (math.sqrt(2 * math.pi) * deviation)
        return max(gain - loss, 0.0) + density * (peak - start) / sigma2 * (1 + RELATIVE_SLACK)
