"""How far discrete noise goes, exactly: small noise scales are far from a bell curve."""

import math
from functools import cache
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

#: Up to this noise scale probabilities are summed up. Beyond it the quantile of a bell curve,
#: rounded up, is on the safe side and at most one too much.
_SUMMED: Final = 20.0
#: No draw goes further, in noise scales, with a probability that 64 bits could tell from 0.
_FURTHEST: Final = 38


@cache
def half_width(sigma: float, missed: float = 0.05) -> int:
    """Noise is at most this, on either side, but with probability `missed`.

    Args:
        sigma: noise scale, positive.
        missed: probability, at least 1e-14.

    >>> half_width(0.5), half_width(1.0), half_width(60.13)
    (1, 2, 118)
    """
    if sigma > _SUMMED:
        return math.ceil(-NormalDist().inv_cdf(missed / 2) * sigma)
    noise = np.arange(math.ceil(_FURTHEST * sigma) + 1)
    weight = np.exp(-0.5 * (noise / sigma) ** 2)
    beyond = 2 * (np.cumsum(weight[::-1])[::-1] - weight)
    return int(np.argmax(beyond <= missed * (beyond[0] + weight[0])))


def laplace_half_width(scale: float, missed: float = 0.05) -> int:
    """The same for discrete Laplace noise: P[|X| > t] = 2 a^(t + 1) / (1 + a), a = exp(-1 / scale).

    >>> laplace_half_width(1.0), laplace_half_width(7.0)
    (3, 21)
    """
    a = math.exp(-1 / scale)
    return max(0, math.ceil(-scale * math.log(missed * (1 + a) / 2) - 1 - 1e-9))


def laplace_squares(off: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """Squares of the normal numbers that are as often exceeded as these by Laplace noise.

    >>> laplace_squares(np.array([0.0, 21.0]), 7.0).round(1).tolist()
    [0.0, 3.7]
    """
    normal = np.linspace(0, _FURTHEST / 2, 2048)
    rarity = np.array([-math.log(math.erfc(z / math.sqrt(2))) for z in normal])
    rare = np.abs(off) / scale + math.log1p(math.exp(-1 / scale)) - math.log(2)
    # Beyond the last the square grows by 2 for each unit, as the logarithm of a bell curve does.
    beyond = 2 * np.maximum(rare - rarity[-1], 0)
    found: NDArray[np.float64] = np.interp(rare, rarity, normal**2) + beyond
    found[off == 0] = 0  # noise of at least 0 is certain
    return found
