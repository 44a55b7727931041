"""The estimator: down with shares and priors, up with what children say, down again.

Down, level by level: the estimated counts of the nodes above and the shares (`shares`) give
every child a mean; with its noisy count that gives a posterior (`prior`), and posterior means
that add up (`balance`) are the counts that the next level divides. Up: what is known of a
node from its own noisy count, and from those of its children, is weighed by the variances.
Down again: estimates that add up, with totals that were measured across the tree.

Intervals are those of the posterior, stated as 95 %. That holds on average over the numbers of a
class of published size, as measured, not for each of them (docs/explanation/estimates.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inftda.inference.balance import (
    Evidence,
    LayerEstimate,
    Targets,
    balance,
    unbalanced,
)
from inftda.inference.measured import (
    Areas,
    CellIntervals,
    Families,
    Floats,
    Layer,
    Map,
    Measurements,
    OffTreeSums,
    Part,
    WholeNodes,
    layers_of,
    narrow,
)
from inftda.inference.noise_intervals import Ends, whole_ends
from inftda.inference.prior import (
    LEAST_MEAN,
    MEAN_STEPS,
    PRIOR_FREE_SIGMAS,
    Posterior,
    interpolate,
    posterior_of,
)
from inftda.inference.rounding import round_down_the_tree
from inftda.inference.shares import Shares, fit_shares, log_means_kernel, pairs_of
from inftda.kernels import kernel
from inftda.threads import Crew, available_cores
from inftda.tree import Tree

_NOTHING = np.empty(0)


@dataclass(frozen=True)
class Fit:
    """Estimates of every measured level.

    Attributes:
        tree: the public tree.
        total: of everything.
        levels: estimates, coarse to fine.
        threads: how many to work on.
    """

    tree: Tree
    total: int
    levels: Sequence[LayerEstimate]
    threads: int

    @classmethod
    def of(
        cls,
        tree: Tree,
        measured: Measurements,
        total: int,
        points: Mapping[str, Floats] | None = None,
        *,
        threads: int | None = None,
    ) -> "Fit":
        """Estimate everything from what was measured.

        Args:
            tree: the public tree.
            measured: the noisy counts.
            total: released sum of all flows, which estimates keep to.
            points: float64[finest areas, 3] by axis name: where areas are, as unit vectors,
                NaN where it is not known.
            threads: how many; all cores by default. Estimates do not depend on it.
        """
        layers = layers_of(tree, measured)
        del measured  # as large as all that follows, if nobody else has it
        threads = threads or available_cores()
        levels = estimate_layers(layers, float(total), dict(points or {}), Crew(threads).map)
        return cls(tree, total, levels, threads)

    def leaves(self, seed: int) -> CellIntervals:
        """Positive whole numbers of finest areas that add up at every level, and their intervals.

        The seed decides which numbers are rounded up.
        """
        n_axes = len(self.tree.axes)
        columns: list[list[NDArray[Any]]] = [[] for _ in range(n_axes + 3)]
        random = np.random.default_rng(seed)
        for part in round_down_the_tree(
            self.tree, self.levels, self.total, random, self._with_ends, Crew(self.threads)
        ):
            found: list[NDArray[Any]] = [*part.areas, part.value, part.low, part.high]
            for column, numbers in zip(columns, found, strict=True):
                column.append(narrow(numbers))
        joined = [np.concatenate([np.empty(0, np.int32), *column]) for column in columns]
        return CellIntervals(tuple(joined[:n_axes]), *joined[n_axes:])

    def _with_ends(self, rounded: WholeNodes) -> CellIntervals:
        """Some numbers with their intervals."""
        low, high = rounded.value.copy(), rounded.value.copy()
        for number, level in enumerate(self.levels):
            is_here = rounded.layer == number
            low[is_here], high[is_here] = child_ends(self.levels, number, rounded.child[is_here])
            if number == len(self.levels) - 1:
                is_unseen = rounded.layer < 0
                posterior, sigma = level.posterior, level.layer.sigma
                low[is_unseen], high[is_unseen] = unseen_ends(
                    posterior, sigma, rounded.mean[is_unseen]
                )
        areas, value = rounded.areas, rounded.value
        return CellIntervals(areas, value, np.minimum(low, value), np.maximum(high, value))

    def node_ends(self, number: int, areas: Areas) -> Ends:
        """Intervals of nodes that were released, of one of the measured levels."""
        layer = self.levels[number].layer
        child = layer.find(areas)
        is_found = child >= 0
        low, high = (np.zeros(len(child), np.int64) for _ in range(2))
        low[is_found], high[is_found] = child_ends(self.levels, number, child[is_found])
        if number and not is_found.all():  # only children, which have their parent's count
            above = layer.level.parents([numbers[~is_found] for numbers in areas])
            low[~is_found], high[~is_found] = self.node_ends(number - 1, above)
        return low, high


def estimate_layers(
    layers: Sequence[Layer], total: float, points: dict[str, Floats], map_: Map
) -> list[LayerEstimate]:
    """Estimates of every measured level that add up, coarse to fine; `points` as for `Fit`."""
    found = _down(layers, total, points, map_)
    _up(found, map_)
    count, apart = np.array([total]), _UndividedCounts(layers)
    for number, known in enumerate(found):
        layer = known.layer
        apart.divide(layer, known.shares)
        elsewhere = [apart.within(table, layer) for chain in layer.chains for table in chain]
        targets = Targets.of(layer, layer.chains, elsewhere)
        count = balance(known, count[layer.parent], map_, targets)
        found[number] = replace(known, estimate=count)
        apart.add(layer, count)
    return found


def _down(
    layers: Sequence[Layer], total: float, points: dict[str, Floats], map_: Map
) -> list[LayerEstimate]:
    """Posteriors and shares of every level, given estimates of the level above."""
    found = []
    above, apart = np.array([total]), _UndividedCounts(layers)
    for layer in layers:
        count = above[layer.parent]
        known = _expected(layer, count, apart.by_axis[layer.level.axis], points, map_)
        found.append(known)
        if layer is not layers[-1]:  # whose estimates nothing divides
            above = balance(known, count, map_, Targets.of(layer))
            apart.divide(layer, known.shares)
            apart.add(layer, above)
    return found


def _expected(
    layer: Layer, count: Floats, elsewhere: Floats, points: dict[str, Floats], map_: Map
) -> LayerEstimate:
    """Means of all children by their shares, and the posterior that fits them."""
    pairs = pairs_of(layer, points, map_)
    shares = fit_shares(layer, pairs, count, elsewhere, map_)
    log_mean = np.empty(len(layer.noisy), np.float32)

    def work(part: Part) -> None:
        log_means_kernel(part, layer.families, count, pairs, shares, log_mean)

    list(map_(work, layer.parts()))
    posterior = posterior_of(layer, log_mean, map_)
    is_shifted = not layer.noise.is_laplace
    evidence = Evidence(log_mean, posterior.moments, is_shifted, _NOTHING, _NOTHING)
    return LayerEstimate(layer, shares, posterior, evidence, _NOTHING)


def _up(levels: list[LayerEstimate], map_: Map) -> None:
    """What children say of the nodes they divide, with the nodes' own noisy counts."""
    for number in range(len(levels) - 1, 0, -1):
        finer, known = levels[number], levels[number - 1]
        mean, variance = unbalanced(finer, map_)
        layer, parent = known.layer, finer.layer.parent
        is_measured = np.ones(len(layer.noisy), bool)
        is_measured[layer.offsets[:-1][np.diff(layer.offsets) == 1]] = False
        own = is_measured[parent] / layer.sigma**2
        theirs = 1 / np.maximum(variance, 1e-9)
        mean = (own * layer.noisy[parent] + theirs * mean) / (own + theirs)
        evidence = known.evidence._replace(mean=mean, variance=1 / (own + theirs))
        levels[number - 1] = replace(known, evidence=evidence)


class _UndividedCounts:
    """Counts of nodes that are not divided further, by the areas of every axis.

    They belong to the totals of areas that are measured across the tree.
    """

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.by_axis = [np.zeros(1) for _ in (layers[0].level.axes if layers else ())]
        self._last = layers[-1].level if layers else None

    def within(self, table: OffTreeSums, layer: Layer) -> Floats:
        """float64[cells]: what each cell of a table has of them, if axes have nothing in common."""
        own = self.by_axis[layer.level.axis][table.area]
        if table.across is None:
            return own
        other = np.bincount(table.up, self.by_axis[table.across], minlength=table.up[-1] + 1)
        return np.asarray(own * other[table.other] / max(other.sum(), 1e-9))

    def divide(self, layer: Layer, shares: Shares) -> None:
        """Go on to finer areas of the axis that a layer refines."""
        axis, offsets = layer.level.axis, layer.level.child_offsets
        above = np.repeat(self.by_axis[axis], np.diff(offsets))
        self.by_axis[axis] = above * shares.within(layer.level)

    def add(self, layer: Layer, estimate: Floats) -> None:
        """Add the children of a layer that nothing divides; those of the last one are of no use."""
        if layer.level is self._last:
            return
        child = np.flatnonzero(layer.child_family < 0)
        for axis, numbers in enumerate(layer.child_areas(child)):
            sums = self.by_axis[axis]
            sums += np.bincount(numbers, estimate[child], minlength=len(sums))


def child_ends(levels: Sequence[LayerEstimate], number: int, child: NDArray[np.int64]) -> Ends:
    """Intervals of some children of a layer, by the model; of clear ones by their noise.

    By their means and their noisy counts alone. What makes estimates better still (their own
    children, sums that have to agree) is left out: by how much it does is not known well enough,
    and intervals that used it had a coverage as low as 88 %.
    """
    if not len(child):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    level = levels[number]
    layer = level.layer
    family = np.searchsorted(layer.offsets, child, side="right") - 1
    low, high = np.empty(len(child)), np.empty(len(child))
    ends_kernel(child, layer.families, level.evidence.log_mean, level.posterior.ends, (low, high))
    found = whole_ends(low, high)
    noisy = layer.noisy[child]
    if (is_clear := noisy > PRIOR_FREE_SIGMAS * layer.sigma).any():
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
def ends_kernel(
    child: NDArray[np.int64],
    families: Families,
    log_mean: NDArray[np.float32],
    ends: Floats,
    into: tuple[Floats, Floats],
) -> None:
    """Write lower and upper ends of the intervals of some children of a layer."""
    noisy, sigma = families.noisy, families.sigma
    low, high = into
    for n in range(child.size):
        i = child[n]
        below, above = interpolate(ends, log_mean[i], noisy[i] / sigma)
        low[n], high[n] = below * sigma, above * sigma
