"""Sums of independent discrete Gaussians: probabilities, never understated.

Accounting and error bounds need tails of sums such as X_1 + ... + X_M with
P[X = x] proportional to exp(-x^2 / (2 sigma2)) on the integers. Two ways, both upper bounds:

- small variances: plain convolution of arrays. Every term is positive, so rounding is a
  relative error that can be counted;
- others: the sum is a Gaussian sampled at the integers, up to a factor exp(log_inflation)
  that is a theorem and closer to 1 than 1e-6 for sigma2 >= 1.6.

Must never return less than the truth. Proofs: `docs/proofs/accounting.md`, sections 3 and 4.
"""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

#: Covers the rounding of every float computation here; see docs/proofs/accounting.md, section 5.
RELATIVE_SLACK: Final = 1e-9
#: Covers erfc at arguments up to 40 / sqrt(2) and the rounding of the argument.
TAIL_SLACK: Final = 1e-12
#: Mass of what arrays leave out, in units of draws: exp(-REACH^2 / 2) < 1e-119.
REACH: Final = 23.5
#: Covers what arrays leave out and what underflows.
ABSOLUTE_SLACK: Final = 1e-110


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
    """Log of the factor A with P[Y = y] <= A * gaussian density(y), for every integer y.

    Args:
        ratios: one integer r for each summand r X, X of variance parameter sigma2 / r, in
            ascending order, beginning with 1. The Gaussian has variance sigma2 * sum(ratios).
        sigma2: the variance parameter for r = 1.
    """
    total, done = 0.0, ratios[0]
    for ratio in ratios[1:]:
        total += log_theta_excess(sigma2 / ratio * done / (done + ratio))
        done += ratio
    return total


def law_of_sum(ratios: Sequence[int], sigma2: float) -> NDArray[np.float64]:
    """Probabilities of Y = sum of r X, X of variance sigma2 / r, at -h..h, by convolution."""
    law = np.ones(1)
    for ratio in sorted(set(ratios)):
        law = np.convolve(law, _power(_law(ratio, sigma2), list(ratios).count(ratio)))
    return law


def rounding_of_sum(law: NDArray[np.float64], n_summands: int) -> float:
    """Relative error of every entry of `law_of_sum`, at most."""
    return RELATIVE_SLACK + n_summands * len(law) * 2.0**-51


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


def _law(ratio: int, sigma2: float) -> NDArray[np.float64]:
    """Probabilities of r X at -h..h, zero between multiples of r."""
    variance = sigma2 / ratio
    half = math.ceil(REACH * math.sqrt(variance)) + 1
    weights = np.exp(-(np.arange(-half, half + 1, dtype=np.float64) ** 2) / (2 * variance))
    law = np.zeros(2 * half * ratio + 1)
    # Dividing by less than the whole sum makes every probability larger: the safe side.
    law[::ratio] = weights / weights.sum()
    return law


def _power(law: NDArray[np.float64], times: int) -> NDArray[np.float64]:
    """Convolution of `law` with itself, `times` factors."""
    result = np.ones(1)
    while times:
        if times % 2:
            result = np.convolve(result, law)
        law, times = (np.convolve(law, law), times // 2) if times > 1 else (law, 0)
    return result
