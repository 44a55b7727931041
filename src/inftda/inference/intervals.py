"""Intervals for counts, with a coverage of at least 95 %.

With the model: the posterior of the estimator. Without it: the noisy count and its noise
alone, with the quantile adjusted for the selection that makes a number a published one
(Benjamini and Yekutieli, 2005): of m measured counts R were published, so each interval is
for 1 - 0.05 R / m.
"""

from collections.abc import Sequence
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from inftda.inference.families import Floats, Whole
from inftda.inference.model import Estimated
from inftda.inference.prior import CLEAR, LEAST_MEAN, MEAN_STEPS, TAIL, Posterior, look_up
from inftda.kernels import kernel

Ends = tuple[NDArray[np.int64], NDArray[np.int64]]

_SIGMAS: Final = NormalDist().inv_cdf(1 - TAIL)
_MISSED: Final = 0.05
#: Shares that are smaller have no quantile in 64 bits.
_LEAST_SHARE: Final = 1e-12
#: No count is larger.
_MOST: Final = 2.0**62


def child_ends(levels: Sequence[Estimated], number: int, child: NDArray[np.int64]) -> Ends:
    """Intervals of some children of a layer, by the model.

    By their means and their noisy counts alone. What makes estimates better still (their own
    children, sums that have to agree) is left out: by how much it does is not known well enough,
    and intervals that used it had a coverage as low as 88 %.

    Args:
        levels: estimates of every measured level.
        number: which layer.
        child: int64[n], which children of it.
    """
    if not len(child):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    level = levels[number]
    layer = level.layer
    family = np.searchsorted(layer.offsets, child, side="right") - 1
    low, high = np.empty(len(child)), np.empty(len(child))
    known = level.known
    ends_kernel(child, layer.noisy, known.log_mean, known.posterior.ends, layer.sigma, low, high)
    found = _whole(low, high)
    is_only = layer.offsets[family + 1] - layer.offsets[family] == 1
    if number and is_only.any():  # it has its parent's count
        above = child_ends(levels, number - 1, layer.parent[family[is_only]])
        for ours, theirs in zip(found, above, strict=True):
            ours[is_only] = theirs
    return found


def unseen_ends(posterior: Posterior, sigma: float, mean: Floats) -> Ends:
    """Intervals of counts that were not measured, of which a mean is expected."""
    row = (np.log(np.maximum(mean, 1e-9) / sigma) - LEAST_MEAN) * MEAN_STEPS
    high = np.interp(row, np.arange(len(posterior.ends_unseen)), posterior.ends_unseen) * sigma
    return _whole(np.zeros(len(high)), high)


def selected_ends(noisy: NDArray[np.int64], sigma: float, share: float) -> Ends:
    """Intervals of published counts by their noise alone.

    Args:
        noisy: int64[n].
        sigma: noise scale.
        share: part of the measured counts that was published and is of the same size.
    """
    half = NormalDist().inv_cdf(1 - _MISSED * np.clip(share, _LEAST_SHARE, 1.0) / 2) * sigma
    return _whole(noisy - half, noisy + half)


def measured_ends(noisy: NDArray[np.int64], sigma: float) -> Ends:
    """Intervals of counts that were measured and not selected."""
    return selected_ends(noisy, sigma, 1.0)


def _whole(low: NDArray[np.floating], high: NDArray[np.floating]) -> Ends:
    """Outward to whole numbers; no count is below 0, and ends that are not numbers say nothing."""
    low, high = np.nan_to_num(low, nan=0.0), np.nan_to_num(high, nan=_MOST)
    return (
        np.floor(np.clip(low, 0, _MOST)).astype(np.int64),
        np.ceil(np.clip(high, 0, _MOST)).astype(np.int64),
    )


@kernel
def ends_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    child: NDArray[np.int64],
    noisy: Whole,
    log_mean: NDArray[np.float32],
    ends: Floats,
    sigma: float,
    low: Floats,
    high: Floats,
) -> None:
    """Intervals of some children of a layer.

    Args:
        child: int64[n], which children.
        noisy: whole numbers[children].
        log_mean: float32[children].
        ends: float64[means, noisy values, 2].
        sigma: noise scale.
        low: float64[n], written.
        high: float64[n], written.
    """
    for n in range(child.size):
        i = child[n]
        if noisy[i] > CLEAR * sigma:
            low[n] = noisy[i] - _SIGMAS * sigma
            high[n] = noisy[i] + _SIGMAS * sigma
        else:
            below, above = look_up(ends, log_mean[i], noisy[i] / sigma)
            low[n], high[n] = below * sigma, above * sigma
