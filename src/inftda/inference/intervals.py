"""Intervals for counts by the posterior of the estimator, stated as 95 %.

That holds on average over the numbers of a class of published size, as measured, not for each of
them (docs/explanation/estimates.md).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inftda.inference.families import Floats, Whole
from inftda.inference.model import Estimated
from inftda.inference.noise_intervals import Ends, whole_ends
from inftda.inference.prior import CLEAR, LEAST_MEAN, MEAN_STEPS, Posterior, look_up
from inftda.kernels import kernel


def child_ends(levels: Sequence[Estimated], number: int, child: NDArray[np.int64]) -> Ends:
    """Intervals of some children of a layer, by the model; of clear ones by their noise.

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
    layer, known = level.layer, level.known
    family = np.searchsorted(layer.offsets, child, side="right") - 1
    low, high = np.empty(len(child)), np.empty(len(child))
    ends_kernel(child, layer.noisy, known.log_mean, known.posterior.ends, layer.sigma, low, high)
    found = whole_ends(low, high)
    noisy = layer.noisy[child]
    if (is_clear := noisy > CLEAR * layer.sigma).any():
        for ours, alone in zip(found, level.by_noise.ends(noisy[is_clear]), strict=True):
            ours[is_clear] = alone
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
    return whole_ends(np.zeros(len(high)), high)


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
        below, above = look_up(ends, log_mean[i], noisy[i] / sigma)
        low[n], high[n] = below * sigma, above * sigma
