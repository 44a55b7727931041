"""The estimator: three passes over the levels of the tree.

Down, level by level: the estimated counts of the nodes above and the shares (`shares`) give
every child a mean; with its noisy count that gives a posterior (`prior`), and posterior means
that add up (`balance`) are the counts that the next level divides. Up: the noisy count of a node
and those of its children are combined, weighted by their variances. Down again: estimates that add
up, with totals that cross tables measured.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from inftda.estimates.balance import (
    Evidence,
    LayerEstimate,
    Targets,
    balance,
    unbalanced,
)
from inftda.estimates.prior import posterior_of
from inftda.estimates.rounding import round_down_the_tree
from inftda.estimates.shares import Shares, fit_shares, log_means_kernel, pairs_of
from inftda.publication.measured import (
    CrossTableSums,
    Floats,
    Layer,
    Map,
    Measurements,
    Part,
    layers_of,
)
from inftda.tree import Cells, Tree
from inftda.util.threads import ThreadPool, available_cores

_NOTHING = np.empty(0)


@dataclass(frozen=True)
class Fit:
    """Estimates of every measured level.

    Attributes:
        tree: the public tree.
        total: the overall total.
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
        """Fit the model to all measurements.

        Args:
            tree: the public tree.
            measured: the noisy counts.
            total: released sum of all flows, which estimates keep to.
            points: float64[finest areas, 3] by axis name: where areas are, as unit vectors,
                NaN where it is not known.
            threads: how many; all cores by default. Estimates do not depend on it.
        """
        layers = layers_of(tree, measured)
        del measured  # frees as much memory as all later steps need
        threads = threads or available_cores()
        levels = estimate_layers(layers, float(total), dict(points or {}), ThreadPool(threads).map)
        return cls(tree, total, levels, threads)

    def leaves(self, seed: int) -> Cells:
        """Positive whole numbers of finest areas that add up at every level.

        The seed decides which numbers are rounded up.
        """
        random, pool = np.random.default_rng(seed), ThreadPool(self.threads)
        parts = round_down_the_tree(self.tree, self.levels, self.total, random, pool)
        return Cells.join([*parts])


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
    """Combine noisy counts of nodes with the sums of their children."""
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

    They belong to the marginal totals of cross tables.
    """

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.by_axis = [np.zeros(1) for _ in (layers[0].level.axes if layers else ())]
        self._last = layers[-1].level if layers else None

    def within(self, table: CrossTableSums, layer: Layer) -> Floats:
        """float64[cells]: their part in each cell of a table, if axes are independent."""
        own = self.by_axis[layer.level.axis][table.area]
        if table.across is None:
            return own
        other = np.bincount(table.up, self.by_axis[table.across], minlength=table.up[-1] + 1)
        return np.asarray(own * other[table.other] / max(other.sum(), 1e-9))

    def divide(self, layer: Layer, shares: Shares) -> None:
        """Divide them to finer areas of the axis that a layer refines."""
        axis, offsets = layer.level.axis, layer.level.child_offsets
        above = np.repeat(self.by_axis[axis], np.diff(offsets))
        self.by_axis[axis] = above * shares.within(layer.level)

    def add(self, layer: Layer, estimate: Floats) -> None:
        """Add the undivided children of a layer; not needed for the last one."""
        if layer.level is self._last:
            return
        child = np.flatnonzero(layer.child_family < 0)
        for axis, numbers in enumerate(layer.child_areas(child)):
            sums = self.by_axis[axis]
            sums += np.bincount(numbers, estimate[child], minlength=len(sums))
