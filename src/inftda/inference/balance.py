"""Estimates that add up: one shift per family, one price per measured sum.

The posterior of a count is a function of its noisy value. Shifting the noisy values of a
family alike until the estimates sum to the node above is what Bayes' rule gives when the sum
is known. Sums measured off the tree are known with noise: they have prices (`targets`), which are
added to the noisy values of all their counts.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from inftda.inference.families import Floats, Layer, Map, Whole
from inftda.inference.prior import CLEAR, MOST_NOISY, Posterior, look_up
from inftda.inference.targets import Targets
from inftda.kernels import inlined_kernel, kernel

#: Rounds of prices, unless none moves by more than this many noise scales.
_SWEEPS: Final = 6
_SETTLED: Final = 0.05
#: Families sum to their nodes within this many noise scales before they are scaled to do so: in
#: the end, and while prices are still found.
_CLOSE, _NEAR = 0.01, 0.2
#: How far a shift goes in one step, in noise scales; and steps to find it.
_STRIDE: Final = 3.0
_STEPS: Final = 10


@dataclass(frozen=True)
class Known:
    """What is known of the children of a layer before they have to add up.

    Attributes:
        layer: the layer.
        posterior: its table.
        log_mean: float32[children], logarithm of what the shares say, over sigma.
        mean: float64[families below], what children that are divided further are, by all that
            was measured of them and below; empty if that is not to be used.
        variance: float64[families below], likewise.
    """

    layer: Layer
    posterior: Posterior
    log_mean: NDArray[np.float32]
    mean: Floats
    variance: Floats


def balance(known: Known, count: Floats, map_: Map, targets: Targets) -> Floats:
    """float64[children]: estimates of a layer that sum to the nodes above.

    Args:
        known: what is known of them.
        count: float64[families], what the children of each family have to sum to.
        map_: maps a function over items on threads.
        targets: sums that were measured off the tree.
    """
    layer = known.layer
    estimate = np.empty(len(layer.noisy))
    shifts, prices = np.zeros(len(layer.first)), np.zeros(targets.n_cells)
    sums = np.zeros((2, targets.n_cells))
    close = _NEAR

    def shift(part: tuple[int, int]) -> None:
        work = np.empty((2, layer.level.max_children))
        shift_kernel(
            *part, layer.offsets, layer.noisy, layer.below, count, known.log_mean,
            known.posterior.moments, known.mean, known.variance, layer.sigma, close, targets.start,
            prices, shifts, estimate, work, sums,
        )  # fmt: skip

    if targets.chains:
        list(map_(shift, layer.parts()))
    for _ in range(_SWEEPS if targets.chains else 0):
        before = prices.copy()
        for chain in targets.chains:
            prices[:], sums[:] = targets.better(chain, prices, sums, layer.sigma), 0
            list(map_(shift, layer.parts()))
        if np.abs(prices - before).max() <= _SETTLED * layer.sigma:
            break
    close = _CLOSE
    list(map_(shift, layer.parts()))
    return estimate


def unbalanced(known: Known, map_: Map) -> tuple[Floats, Floats]:
    """float64[families] each: sum of the children's means and variances if they need not add up."""
    layer = known.layer
    mean, variance = np.empty(len(layer.first)), np.empty(len(layer.first))

    def add(part: tuple[int, int]) -> None:
        add_children_kernel(
            *part, layer.offsets, layer.noisy, layer.below, known.log_mean,
            known.posterior.moments, known.mean, known.variance, layer.sigma, mean, variance,
        )  # fmt: skip

    list(map_(add, layer.parts()))
    return mean, variance


@inlined_kernel
def posterior(
    moments: Floats, log_mean: float, noisy: float, measured: float, sigma: float
) -> tuple[float, float]:
    """Mean and variance of a count that was measured, with its noisy value shifted to `noisy`."""
    if measured > CLEAR * sigma or noisy >= MOST_NOISY * sigma:
        return noisy, sigma * sigma
    mean, variance = look_up(moments, log_mean, noisy / sigma)
    return mean * sigma, variance * sigma * sigma


@inlined_kernel
def _shifted(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    below: int,
    mean_below: Floats,
    variance_below: Floats,
    moments: Floats,
    log_mean: float,
    noisy: int,
    by: float,
    sigma: float,
) -> tuple[float, float]:
    """Mean and variance of a child whose noisy count is shifted, by all that is known of it."""
    if below >= 0:
        variance = variance_below[below]
        mean = mean_below[below] + variance * by / (sigma * sigma)
    else:
        mean, variance = posterior(moments, log_mean, noisy + by, noisy, sigma)
    if mean < 0:
        return 0.0, 0.0
    return mean, variance


@inlined_kernel
def _add_up_prices(start: NDArray[np.int64], family: int, price: Floats, whole: Floats) -> None:
    """Prices of a family's children in all tables, summed up into `whole`."""
    for j in range(len(whole)):
        whole[j] = 0.0
        for t in range(start.shape[0]):
            whole[j] += price[start[t, family] + j]


@inlined_kernel
def _add_to_sums(
    start: NDArray[np.int64], family: int, estimate: Floats, slope: Floats, sums: Floats
) -> None:
    """Estimates of a family's children, and their slopes, added to the sums of all tables."""
    for j in range(len(estimate)):
        for t in range(start.shape[0]):
            sums[0, start[t, family] + j] += estimate[j]
            sums[1, start[t, family] + j] += slope[j]


@kernel
def shift_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    begin: int,
    end: int,
    offsets: NDArray[np.int64],
    noisy: Whole,
    below: NDArray[np.int32],
    count: Floats,
    log_mean: NDArray[np.float32],
    moments: Floats,
    mean_below: Floats,
    variance_below: Floats,
    sigma: float,
    close: float,
    start: NDArray[np.int64],
    price: Floats,
    shift: Floats,
    estimate: Floats,
    work: Floats,
    sums: Floats,
) -> None:
    """Shift the noisy counts of each family until the estimates sum to its count.

    Args:
        begin: first family.
        end: one after the last.
        offsets: int64[families + 1], slices of the children.
        noisy: whole numbers[children].
        below: int32[children], index into means below, or -1; not read if there are none.
        count: float64[families].
        log_mean: float32[children].
        moments: float64[means, noisy values, 2].
        mean_below: float64[families below] or empty.
        variance_below: likewise.
        sigma: noise scale.
        close: how near families come to their counts, in noise scales, before they are scaled.
        start: int64[tables, families], cell of each family's first child in tables off the tree.
        price: float64[cells].
        shift: float64[families], where to start; overwritten.
        estimate: float64[children], written.
        work: float64[2, most children], overwritten: prices, and by how much an estimate rises
            with its noisy count.
        sums: float64[2, cells], added to: estimates, and their slopes in the price.
    """
    for f in range(begin, end):
        low, high = offsets[f], offsets[f + 1]
        if high - low == 1:
            estimate[low], work[1, 0] = count[f], 0.0
            _add_to_sums(start, f, estimate[low:high], work[1], sums)
            continue
        _add_up_prices(start, f, price, work[0, : high - low])
        moved = shift[f]
        whole = 0.0
        for step in range(_STEPS):
            whole, rise = 0.0, 0.0
            for i in range(low, high):
                by = moved + work[0, i - low]
                b = below[i] if mean_below.size else -1
                mean, variance = _shifted(
                    b, mean_below, variance_below, moments, log_mean[i], noisy[i], by, sigma
                )
                estimate[i], work[1, i - low] = mean, variance / (sigma * sigma)
                whole += mean
                rise += work[1, i - low]
            missing = count[f] - whole
            if abs(missing) <= close * min(0.1 * (1 + count[f]), sigma) or step == _STEPS - 1:
                break
            by = missing / max(rise, 1e-9)
            moved += min(max(by, -_STRIDE * sigma), _STRIDE * sigma)
        shift[f] = moved
        scale = count[f] / whole if whole > 0 else 0.0
        for i in range(low, high):
            estimate[i] = estimate[i] * scale if whole > 0 else count[f] / (high - low)
        _add_to_sums(start, f, estimate[low:high], work[1], sums)


@kernel
def add_children_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    begin: int,
    end: int,
    offsets: NDArray[np.int64],
    noisy: Whole,
    below: NDArray[np.int32],
    log_mean: NDArray[np.float32],
    moments: Floats,
    mean_below: Floats,
    variance_below: Floats,
    sigma: float,
    mean: Floats,
    variance: Floats,
) -> None:
    """Means and variances of children, summed up in each family.

    Args as above, and:
        mean: float64[families], written.
        variance: float64[families], written.
    """
    for f in range(begin, end):
        mean[f], variance[f] = 0.0, 0.0
        for i in range(offsets[f], offsets[f + 1]):
            if mean_below.size and below[i] >= 0:
                mean[f] += mean_below[below[i]]
                variance[f] += variance_below[below[i]]
            else:
                m, v = posterior(moments, log_mean[i], float(noisy[i]), noisy[i], sigma)
                mean[f] += m
                variance[f] += v
