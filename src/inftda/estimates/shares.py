"""Shares: how the count of a node is expected to be divided among its children.

A child's share is proportional to a factor of its own area, times one factor if it contains
the other end of the trip, times one factor for the distance to the other end where locations
are known. Fitted to the noisy counts themselves by quasi-likelihood (E y = m, var y = s^2 +
m + m^2 + r s m, where the overdispersion r is found by moments), with a ridge on the logarithms
of areas' factors, whose spread over the areas of a level is found by moments first and then by
expectation and maximization. Marginal totals from cross tables are one more observation of
each area's factor.

Noisy counts and not estimates are fitted: estimates are shrunk and would lose the means.
Counts that are clear (`prior`) need no mean, and single large flows tell little about other flows:
means are for the counts that are not clear, and a clear count affects the factor of an area by its
logarithm only.
"""

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inftda.estimates.prior import PRIOR_FREE_SIGMAS
from inftda.publication.measured import Families, Floats, Layer, Map, Part
from inftda.tree import DESTINATION, ORIGIN, TreeLevel
from inftda.util.kernels import inlined_kernel, kernel

#: Newton steps, and after how many of them the spread of factors is fitted as well.
_ROUNDS, _BURN_IN = 12, 2
#: Classes of distance: two for each doubling; the last is for areas without a location.
N_BINS: Final = 32
#: Variance of the logarithm of an area's factor, at least and at most; of the other factors.
_SPREADS: Final = (0.001, 4.0)
_WIDE: Final = 9.0
#: Counts vary by this much of (noise scale) x (mean) beyond the rest, at least and at most.
_OVERDISPERSION: Final = (0.3, 10.0)
#: Relative variance of totals of areas around their expectation by factors.
_MISFIT: Final = 0.01
#: Logarithms move by no more than this in a round, and factors stay within these bounds.
_STEP, _LIMIT = 1.0, 12.0
#: Counts that are divided are at least so many noise scales: all children have a positive mean.
_LEAST_COUNT: Final = 0.001
_EARTH_KM: Final = 6371.0


class Pairs(NamedTuple):
    """Where the children of a layer are, seen from the other end of the trip.

    Attributes:
        same: int32[families], which child contains the other end, -1 if none does.
        bins: uint8[children], class of distance; empty if distances do not matter.
    """

    same: NDArray[np.int32]
    bins: NDArray[np.uint8]


class Shares(NamedTuple):
    """Fitted factors.

    Attributes:
        area: float64[areas], of each area of the refined axis.
        same: of the child that contains the other end.
        bins: float64[N_BINS], of each class of distance.
    """

    area: Floats
    same: float
    bins: Floats

    def within(self, level: TreeLevel) -> Floats:
        """float64[areas]: share of each area in the area above, by its own factor alone."""
        starts = level.child_offsets[:-1]
        sums = np.add.reduceat(self.area, starts) if len(starts) else self.area
        return np.asarray(self.area / np.repeat(sums, np.diff(level.child_offsets)))


def pairs_of(layer: Layer, points: dict[str, Floats], map_: Map) -> Pairs:
    """Same areas and distances of a layer's children.

    `points` are float64[finest areas, 3] by axis name: unit vectors, NaN where unknown.
    """
    level = layer.level
    other = _other_end(level)
    nothing = Pairs(np.full(len(layer.first), -1, np.int32), np.empty(0, np.uint8))
    if other is None or level.depths[other] == 0:
        return nothing
    depth, across = level.depths[level.axis], level.depths[other]
    own, theirs = level.axes[level.axis], level.axes[other]
    same = nothing.same
    if own.hierarchy == theirs.hierarchy and across >= depth:
        hierarchy = own.hierarchy
        child = hierarchy.ancestor(across, depth)[layer.areas[other]]
        is_inside = hierarchy.ancestor(depth, depth - 1)[child] == layer.areas[level.axis]
        same = np.where(is_inside, child - layer.first, -1).astype(np.int32)
    bins = nothing.bins
    if own.name in points and theirs.name in points:
        bins = np.empty(len(layer.noisy), np.uint8)
        here = _centres(points[own.name], own.hierarchy.ancestor(own.hierarchy.depth, depth))
        above = theirs.hierarchy.ancestor(theirs.hierarchy.depth, across)
        there = _centres(points[theirs.name], above)

        def work(part: Part) -> None:
            bin_distances_kernel(part, layer.families, layer.areas[other], here, there, bins)

        list(map_(work, layer.parts()))
    return Pairs(same, bins)


def fit_shares(layer: Layer, pairs: Pairs, count: Floats, elsewhere: Floats, map_: Map) -> Shares:
    """Factors that explain the noisy counts of a layer.

    `count` is the estimated count of the node that each family divides; `elsewhere` are counts of
    nodes that were not divided, by refined area.
    """
    log_area, log_same, log_bins = np.zeros(layer.n_areas), 0.0, np.zeros(N_BINS)
    spread, overdispersion = 1.0, _OVERDISPERSION[0]
    above = np.repeat(np.arange(len(elsewhere)), np.diff(layer.level.child_offsets))
    shares = Shares(np.exp(log_area), 1.0, np.exp(log_bins))
    for round_ in range(_ROUNDS):
        (score, information, expected, clear), others = _evidence(
            layer, pairs, count, shares, overdispersion, map_
        )
        if (totals := layer.totals) is not None:
            expected = expected + elsewhere[above] * shares.within(layer.level)
            variance = totals.variance + expected + _MISFIT * expected**2
            score = score + (totals.value - clear - expected) * expected / variance
            information = information + expected**2 / variance
        if round_ == 0:
            spread = _spread(score, information)
        elif round_ >= _BURN_IN:
            each = log_area**2 + 1 / (information + 1 / spread)
            spread = float(np.clip(np.mean(each), *_SPREADS))
        excess, unit = others[N_BINS + 1]
        overdispersion = float(np.clip(excess / max(unit, 1e-9), *_OVERDISPERSION))
        step = (score - log_area / spread) / (information + 1 / spread)
        log_area += np.clip(step, -_STEP, _STEP)
        log_same = _moved(log_same, others[N_BINS])
        log_bins = _moved(log_bins, others[:N_BINS].T)
        shares = Shares(np.exp(log_area), float(np.exp(log_same)), np.exp(log_bins))
    return shares


def _evidence(  # noqa: PLR0913, PLR0917 - what is known of a layer from all sides
    layer: Layer, pairs: Pairs, count: Floats, shares: Shares, overdispersion: float, map_: Map
) -> tuple[Floats, Floats]:
    """Score and information of the logarithms of factors, by `weigh_factors_kernel`."""
    by_area = np.zeros((4, layer.n_areas))

    def weigh(part: Part) -> Floats:
        others = np.zeros((N_BINS + 2, 2))
        into = by_area, others
        weigh_factors_kernel(part, layer.families, count, pairs, shares, overdispersion, into)
        return others

    return by_area, sum(map_(weigh, layer.parts()), np.zeros((N_BINS + 2, 2)))


def _spread(score: Floats, information: Floats) -> float:
    """Variance of the logarithms of areas' factors, by moments, less its standard error."""
    square = max((information**2).sum(), 1e-9)
    variance = ((score**2 - information).sum() - np.sqrt(2 * square)) / square
    return float(np.clip(np.log1p(max(variance, 0.0)), *_SPREADS))


def _moved(log: Any, evidence: Floats) -> Any:
    """Logarithms of few factors with much evidence after a step."""
    score, information = evidence
    step = np.clip((score - log / _WIDE) / (information + 1 / _WIDE), -_STEP, _STEP)
    return np.clip(log + step, -_LIMIT, _LIMIT)


def _other_end(level: TreeLevel) -> int | None:
    """The axis of the other end of the trip, if a level refines one of the two."""
    names = [axis.name for axis in level.axes]
    ends = {ORIGIN: DESTINATION, DESTINATION: ORIGIN}
    other = ends.get(names[level.axis])
    return names.index(other) if other in names else None


def _centres(points: Floats, above: NDArray[np.int32]) -> Floats:
    """float64[areas, 3]: mean of the points in each area; NaN where there are none."""
    is_known = ~np.isnan(points[:, 0])
    n = int(above[-1]) + 1
    counts = np.bincount(above[is_known], minlength=n)
    with np.errstate(invalid="ignore", divide="ignore"):
        sums = [np.bincount(above[is_known], points[is_known, i], minlength=n) for i in range(3)]
        return np.stack(sums, axis=1) / counts[:, None]


@kernel
def bin_distances_kernel(  # noqa: PLR0913, PLR0917 - points at both ends
    part: Part,
    families: Families,
    other: NDArray[np.int32],
    here: Floats,
    there: Floats,
    bins: NDArray[np.uint8],
) -> None:
    """Write the class of distance of each child to `bins`: two for each doubling of 1 + km.

    `other` is the area at the other end of each family; `here` and `there` are float64[areas, 3],
    points on the unit sphere.
    """
    offsets, first = families.offsets, families.first
    for f in range(part[0], part[1]):
        for i in range(offsets[f], offsets[f + 1]):
            k = first[f] + i - offsets[f]
            square = 0.0
            for x in range(3):
                square += (here[k, x] - there[other[f], x]) ** 2
            if np.isnan(square):
                bins[i] = N_BINS - 1
            else:
                bins[i] = min(int(2 * np.log2(1 + _EARTH_KM * np.sqrt(square))), N_BINS - 2)


@inlined_kernel
def _write_factors(
    families: Families, pairs: Pairs, shares: Shares, f: int, factor: Floats
) -> None:
    """All factors of each child of family f together, into the first of `factor`."""
    # Taken out of the tuples once: numba counts references whenever it takes an array out.
    area, bins, bin_factor = shares.area, pairs.bins, shares.bins
    low, n, first = families.offsets[f], len(factor), families.first[f]
    for j in range(n):
        factor[j] = area[first + j]
    if pairs.same[f] >= 0:
        factor[pairs.same[f]] *= shares.same
    if bins.size:
        for j in range(n):
            factor[j] *= bin_factor[bins[low + j]]


@inlined_kernel
def most_children(part: Part, offsets: NDArray[np.int64]) -> int:
    """Children of the largest of some families."""
    most = 0
    for f in range(part[0], part[1]):
        most = max(most, offsets[f + 1] - offsets[f])
    return most


@inlined_kernel
def _left(left: float, count: float, sigma: float) -> float:
    """Count of a node minus its clear counts, which may be negative because of noise."""
    return min(max(left, 0.1 * sigma), count)


@kernel
def weigh_factors_kernel(  # noqa: PLR0913, PLR0917 - counts, factors, and what is summed up
    part: Part,
    families: Families,
    count: Floats,
    pairs: Pairs,
    shares: Shares,
    overdispersion: float,
    into: tuple[Floats, Floats],
) -> None:
    """Sum up the evidence of the noisy counts of some families for a Newton step of the factors.

    `count` is the estimated sum of the children of each family. Added to, in `into`: for each
    area score, information, means of counts that are not clear, and clear counts; score and
    information of bins and then of `same`, and at last squared deviations in excess and what they
    are per unit of overdispersion.
    """
    offsets, first, noisy, _, sigma = families
    same, bins = pairs
    clear = PRIOR_FREE_SIGMAS * sigma
    by_area, others = into
    factors = np.empty(most_children(part, offsets))
    for f in range(part[0], part[1]):
        low, high = offsets[f], offsets[f + 1]
        if high - low == 1:
            by_area[3, first[f]] += count[f]
            continue
        _write_factors(families, pairs, shares, f, factors[: high - low])
        whole, among, left = 0.0, 0.0, count[f]
        for i in range(low, high):
            factor = factors[i - low]
            whole += factor
            if noisy[i] > clear:
                left -= noisy[i]
            else:
                among += factor
        # Estimated as 0 although a child is clear: its mean must have a logarithm.
        divided = max(count[f], _LEAST_COUNT * sigma)
        left = _left(left, divided, sigma)
        for i in range(low, high):
            k, factor = first[f] + i - low, factors[i - low]
            if factor == 0:
                continue
            is_clear = noisy[i] > clear
            mean = divided * factor / whole if is_clear else left * factor / among
            variance = sigma * sigma + mean + mean * mean + overdispersion * sigma * mean
            off, information = noisy[i] - mean, mean * mean / variance
            score = off * mean / variance
            if is_clear:
                by_area[0, k] += information * np.log(noisy[i] / mean)
                by_area[3, k] += noisy[i]
            else:
                by_area[0, k] += score
                by_area[2, k] += mean
                others[N_BINS + 1, 0] += mean * (off * off - sigma * sigma - mean - mean * mean)
                others[N_BINS + 1, 1] += mean * mean * sigma
            by_area[1, k] += information
            if same[f] == i - low:
                others[N_BINS, 0] += score
                others[N_BINS, 1] += information
            if bins.size:
                others[bins[i], 0] += score
                others[bins[i], 1] += information


@kernel
def log_means_kernel(  # noqa: PLR0913, PLR0917 - counts, factors, and what is written
    part: Part,
    families: Families,
    count: Floats,
    pairs: Pairs,
    shares: Shares,
    log_mean: NDArray[np.float32],
) -> None:
    """Write to `log_mean` the logarithm of mean / sigma, for counts that are not clear.

    It is 0 for clear counts, which have no mean here.
    """
    offsets, _, noisy, _, sigma = families
    factors = np.empty(most_children(part, offsets))
    for f in range(part[0], part[1]):
        low, high = offsets[f], offsets[f + 1]
        _write_factors(families, pairs, shares, f, factors[: high - low])
        whole, left = 0.0, count[f]
        for i in range(low, high):
            factor = factors[i - low]
            log_mean[i] = factor
            if high - low > 1 and noisy[i] > PRIOR_FREE_SIGMAS * sigma:
                left -= noisy[i]
                log_mean[i] = 0.0
            else:
                whole += factor
        left = _left(left, max(count[f], _LEAST_COUNT * sigma), sigma)
        for i in range(low, high):
            if log_mean[i] > 0:
                log_mean[i] = np.log(log_mean[i] / whole * left / sigma)
