"""Tail probabilities of noise and of sums of draws.

Two kinds of figures; `Noise.half_width` has the quantiles of one draw:

- bounds for guarantees: never below the truth, with every rounding upward
  (docs/proofs/accounting.md, sections 3 to 5);
- `Tail`, for intervals: the distribution of a sum of any draws, by Fourier transforms. Where noise
  is wide, probabilities are kept at multiples of a step that is small beside every part, and
  numbers are rounded so that no tail is understated.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from inftda.noise.distribution import Noise

#: Covers the rounding of every float computation here: docs/proofs/accounting.md, section 5.
RELATIVE_SLACK: Final = 1e-9
#: Covers erfc at arguments up to 40 / sqrt(2) and the rounding of the argument.
TAIL_SLACK: Final = 1e-12
#: Half-length of arrays in deviations: they leave out a mass of exp(-REACH^2 / 2) < 1e-119 a draw.
REACH: Final = 23.5
#: Covers the mass outside of arrays, and underflow.
ABSOLUTE_SLACK: Final = 1e-110
#: Points of a trapezoidal rule: at least this many for each deviation of Y, and not more in all.
_POINTS_PER_DEVIATION: Final = 7
_MOST_POINTS: Final = 2**18
#: Up to here tails of Gaussians are sums, beyond it Gaussian integrals.
_SUMMED_SIGMA2: Final = 50.0**2
#: Steps in the deviation of the narrowest part, and in that of the sum, at least.
_IN_PART, _IN_SUM = 4, 64
#: How far the distribution of a sum is kept: in deviations of the sum, and of its widest part.
_FAR, _FURTHEST = 10, 32
#: Fourier transforms are good to about this; smaller probabilities are rounded up to it.
_LEAST = 1e-14


def tail_bound(noise: Noise, summands: int) -> Callable[[int], float]:
    """P[S > t] for t >= 0, rounded up, of the sum S of one or two draws, or of more Gaussians."""
    if noise.is_laplace:
        return _tail_of_laplace(float(noise.scale), summands)
    return _tail_of_gaussians(float(noise.square), summands)


def _tail_of_laplace(scale: float, summands: int) -> Callable[[int], float]:
    """In closed form: P[z = x] is proportional to a^|x|, a = exp(-1 / scale)."""
    a, rest = math.exp(-1 / scale), -math.expm1(-1 / scale)  # rest = 1 - a
    constant, slope = 1 / (1 + a), 0.0
    if summands == 2:
        constant, slope = (1 + a + 2 * a**2) / (1 + a) ** 3, rest / (1 + a) ** 2

    def tail(t: int) -> float:
        power = math.exp(-(t + 1) / scale) * (1 + RELATIVE_SLACK)
        return power * (constant + slope * (t + 1)) + ABSOLUTE_SLACK

    return tail


def _tail_of_gaussians(sigma2: float, summands: int) -> Callable[[int], float]:
    """By summation where noise is small, by the Gaussian that bounds it elsewhere."""
    ratios = (1,) * summands
    if sigma2 <= _SUMMED_SIGMA2:
        chance = sum_of_gaussians(ratios, sigma2)
        upper = chance[len(chance) // 2 + 1 :]
        sums = np.cumsum(upper[::-1])[::-1] * (1 + rounding_of_sum(chance, summands))
        beyond = sums + ABSOLUTE_SLACK
        return lambda t: float(beyond[t]) if t < len(beyond) else ABSOLUTE_SLACK
    deviation, factor = math.sqrt(summands * sigma2), math.exp(log_inflation(ratios, sigma2))

    def tail(t: int) -> float:
        # The density is convex beyond one deviation: a unit step lies below its integral.
        start = t + 0.5 if t + 0.5 >= deviation else t
        return factor * gaussian_tail(start / deviation)

    return tail


def log_theta_excess(tau2: float) -> float:
    """Upper bound of log(theta / (sqrt(2 pi) tau)), theta = sum over k of exp(-k^2 / (2 tau2)).

    It is the largest factor by which a Gaussian of variance tau2, summed over any shifted
    copy of the integers, exceeds its integral.
    """
    if tau2 >= 0.15:  # Poisson summation converges at least as fast as the sum itself
        q = math.exp(-2 * math.pi**2 * tau2)
        return math.log1p(2 * q / (1 - q**3)) * (1 + RELATIVE_SLACK)
    q = math.exp(-1 / (2 * tau2))
    return math.log((1 + 2 * q / (1 - q**3)) / math.sqrt(2 * math.pi * tau2)) + RELATIVE_SLACK


def log_inflation(ratios: Sequence[int], sigma2: float) -> float:
    """Log of a factor A with P[Y = y] <= A * gaussian density(y), for every integer y.

    Args:
        ratios: one integer r for each summand r X, X of variance parameter sigma2 / r, without a
            common divisor. The Gaussian has variance sigma2 * sum(ratios).
        sigma2: the variance parameter for r = 1.
    """
    total, done, spacing = 0.0, ratios[0], ratios[0]  # values so far are multiples of spacing
    for ratio in ratios[1:]:
        common = math.gcd(spacing, ratio)
        tau2 = sigma2 / ratio * done / (done + ratio)
        total += log_theta_excess(tau2 / (spacing // common) ** 2)
        done, spacing = done + ratio, common
    return total


def log_inflation_at_zero(ratios: Sequence[int], sigma2: float) -> float:
    """Compute the bound from the probability of Y = 0, where A is attained: tight, but slower.

    The mean of the characteristic function, which is positive, over n points of the circle is
    the probability that n divides Y. Infinite where that takes too many points, or a variance is
    below 1.
    """
    deviation = math.sqrt(sum(ratios) * sigma2)
    n = math.ceil(_POINTS_PER_DEVIATION * deviation) + 1
    if n > _MOST_POINTS or sigma2 / max(ratios) < 1:
        return math.inf
    product = np.ones(n)
    for ratio, times in Counter(ratios).items():
        turns = np.arange(n, dtype=np.int64) * ratio % n
        angle = 2 * math.pi / n * np.minimum(turns, n - turns)
        rate = sigma2 / ratio / 2
        # Further terms of the theta function are below 4e-9 of these for variances from 1 on.
        near, far = np.exp(-rate * angle**2), np.exp(-rate * (2 * math.pi - angle) ** 2)
        product *= ((near + far) * (1 + 4e-9)) ** times
    factor = float(product.mean()) * math.sqrt(2 * math.pi) * deviation
    return math.log(factor) + len(ratios) * RELATIVE_SLACK


def sum_of_gaussians(ratios: Sequence[int], sigma2: float) -> NDArray[np.float64]:
    """Probabilities of Y = sum of r X, X of variance sigma2 / r, at -h..h, by convolution."""
    chance = np.ones(1)
    for ratio in ratios:
        half = array_half(sigma2 / ratio)
        x = np.arange(-half, half + 1, dtype=np.float64)
        weights = np.exp(-(x**2) / (2 * sigma2 / ratio))
        # Dividing by less than the whole sum makes every probability larger: the safe side.
        chance = _spread(chance, weights / weights.sum(), ratio)
    return chance


def rounding_of_sum(chance: NDArray[np.float64], n_summands: int) -> float:
    """Relative error of every entry of `sum_of_gaussians`, at most."""
    return RELATIVE_SLACK + n_summands * len(chance) * 2.0**-51


def gaussian_tail(x: float) -> float:
    """Upper bound of P[N(0, 1) > x]."""
    return 0.5 * math.erfc(x / math.sqrt(2)) * (1 + TAIL_SLACK)


def gaussian_quantile(p: float) -> float:
    """Some x >= 0 with P[N(0, 1) > x] <= p, hardly larger than the smallest."""
    low, high = 0.0, 40.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if gaussian_tail(middle) <= p else (middle, high)
    return high


def array_half(variance: float) -> int:
    """An array of the probabilities of one draw goes from minus this to this."""
    return math.ceil(REACH * math.sqrt(variance)) + 1


def _spread(
    chance: NDArray[np.float64], weights: NDArray[np.float64], ratio: int
) -> NDArray[np.float64]:
    """Convolution of `chance` with `weights` at multiples of `ratio`: each remainder by itself."""
    length = len(chance) + (len(weights) - 1) * ratio
    rows = np.pad(chance, (0, -len(chance) % ratio)).reshape(-1, ratio).T
    spread = np.stack([np.convolve(row, weights) for row in rows], axis=1)
    return spread.reshape(-1)[:length]


@dataclass(frozen=True)
class Tail:
    """The distribution of a sum of draws, which is symmetric around 0.

    Attributes:
        step: distance of the numbers that probabilities are kept for.
        beyond: float64, probability that the sum is at least 0, one step, two steps, ...
    """

    step: int
    beyond: NDArray[np.float64]

    @classmethod
    def of(cls, draws: Sequence[tuple[Noise, int]]) -> "Tail":
        """The distribution of the sum of so many draws of each kind.

        >>> from fractions import Fraction
        >>> tail = Tail.of([(Noise(Fraction(100)), 1), (Noise(Fraction(300)), 1)])
        >>> round(float(tail.probability(np.array([40.0]))[0]), 3)  # two deviations
        0.024
        """
        draws = [(noise, n) for noise, n in draws if n]
        if not draws:
            return cls(1, np.array([1.0, 0.0]))
        widths = [noise.sigma for noise, _ in draws]
        width = math.sqrt(sum(n * noise.sigma**2 for noise, n in draws))
        step = max(1, math.floor(min(min(widths) / _IN_PART, width / _IN_SUM)))
        half = math.ceil((_FAR * width + _FURTHEST * max(widths)) / step)
        size = 1 << (2 * half).bit_length()
        at = step * np.minimum(np.arange(size), size - np.arange(size)).astype(float)
        together = np.ones(size // 2 + 1)
        for noise, n in draws:
            scale = float(noise.scale) if noise.is_laplace else noise.sigma
            chance = np.exp(-at / scale if noise.is_laplace else -((at / scale) ** 2) / 2)
            together *= np.fft.rfft(chance / chance.sum()).real ** n
        chance = np.maximum(np.fft.irfft(together, size), 0)
        beyond = np.cumsum(chance[: size // 2][::-1])[::-1]
        return cls(step, np.clip(beyond, _LEAST, 1))

    def probability(self, least: NDArray[np.float64]) -> NDArray[np.float64]:
        """Probability that the sum is at least so large; 1 for values up to 0."""
        at = np.clip(np.floor(least / self.step), 0, len(self.beyond) - 1).astype(np.int64)
        found: NDArray[np.float64] = np.where(least > 0, self.beyond[at], 1.0)
        return found

    def quantile(self, missed: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values that the sum exceeds with no more than these probabilities."""
        # Probabilities fall from left to right.
        first = np.searchsorted(-self.beyond, -missed, side="left")
        return np.asarray(
            np.maximum(self.step * np.minimum(first, len(self.beyond) - 1).astype(float) - 1, 0)
        )
