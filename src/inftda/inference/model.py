"""The estimator: down with shares and priors, up with what children say, down again.

Down, level by level: the estimated counts of the nodes above and the shares (`shares`) give
every child a mean; with its noisy count that gives a posterior (`prior`), and posterior means
that add up (`balance`) are the counts that the next level divides. Up: what is known of a
node from its own noisy count, and from those of its children, is weighed by the variances.
Down again: estimates that add up, with totals that were measured across the tree.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from inftda.inference.balance import Known, balance, unbalanced
from inftda.inference.families import Floats, Layer, Map
from inftda.inference.noise_intervals import NoiseIntervals
from inftda.inference.off_tree import Sums, Totals
from inftda.inference.prior import CLEAR, TAIL, posterior_of
from inftda.inference.shares import (
    Pairs,
    Shares,
    fit_shares,
    log_means_kernel,
    pairs_of,
)
from inftda.inference.targets import Targets

_NOTHING = np.empty(0)


@dataclass(frozen=True)
class Estimated:
    """Estimates of one level.

    Attributes:
        known: the layer, its posterior, and what is known of its children from below.
        shares: the fitted factors.
        estimate: float64[children], adding up to the level above.
    """

    known: Known
    shares: Shares
    estimate: Floats

    @property
    def layer(self) -> Layer:
        """The layer."""
        return self.known.layer

    @cached_property
    def by_noise(self) -> NoiseIntervals:
        """Intervals of its clear counts, which need no model."""
        return NoiseIntervals.of(self.layer.noisy, self.layer.sigma, 2 * TAIL)


def estimate_layers(  # noqa: PLR0913 - all that is known
    layers: Sequence[Layer],
    total: float,
    *,
    totals: Sequence[Totals | None],
    sums: Sequence[Sequence[Sequence[Sums]]],
    points: dict[str, Floats],
    map_: Map,
) -> list[Estimated]:
    """Estimates of every measured level that add up, coarse to fine.

    Args:
        layers: the measured levels.
        total: of everything.
        totals: for each layer, totals of the areas it refines, if they were measured.
        sums: for each layer, all that was measured off the tree with it, in chains.
        points: float64[finest areas, 3] by axis name: unit vectors, NaN where unknown.
        map_: maps a function over items on threads.
    """
    knowns, shares = _down(layers, total, totals, points, map_)
    _up(knowns, map_)
    found: list[Estimated] = []
    count, apart = np.array([total]), _Apart(layers)
    for known, factors, measured in zip(knowns, shares, sums, strict=True):
        layer = known.layer
        apart.divide(layer, factors)
        elsewhere = [apart.within(table, layer) for chain in measured for table in chain]
        targets = Targets.of(layer, measured, elsewhere)
        count = balance(known, count[layer.parent], map_, targets)
        found.append(Estimated(known, factors, count))
        apart.add(layer, count)
    return found


def _down(
    layers: Sequence[Layer],
    total: float,
    totals: Sequence[Totals | None],
    points: dict[str, Floats],
    map_: Map,
) -> tuple[list[Known], list[Shares]]:
    """Posteriors and shares of every level, given estimates of the level above."""
    knowns, found = [], []
    above, apart = np.array([total]), _Apart(layers)
    for layer, measured in zip(layers, totals, strict=True):
        count = above[layer.parent]
        pairs = pairs_of(layer, points, map_)
        shares = fit_shares(layer, pairs, count, measured, apart.by_axis[layer.level.axis], map_)
        known = _expected(layer, pairs, shares, count, map_)
        knowns.append(known)
        found.append(shares)
        if layer is not layers[-1]:  # whose estimates nothing divides
            above = balance(known, count, map_, Targets.of(layer, (), ()))
            apart.divide(layer, shares)
            apart.add(layer, above)
    return knowns, found


def _expected(layer: Layer, pairs: Pairs, shares: Shares, count: Floats, map_: Map) -> Known:
    """Means of all children by their shares, and the posterior that fits them."""
    log_mean = np.empty(len(layer.noisy), np.float32)

    def work(part: tuple[int, int]) -> None:
        log_means_kernel(
            *part, layer.offsets, layer.first, layer.noisy, count, pairs.same, pairs.bins,
            shares.area, shares.same, shares.bins, layer.sigma, CLEAR * layer.sigma, log_mean,
        )  # fmt: skip

    list(map_(work, layer.parts()))
    posterior = posterior_of(layer, log_mean, map_)
    return Known(layer, posterior, log_mean, _NOTHING, _NOTHING)


def _up(knowns: list[Known], map_: Map) -> None:
    """What children say of the nodes they divide, with the nodes' own noisy counts."""
    for number in range(len(knowns) - 1, 0, -1):
        finer, known = knowns[number], knowns[number - 1]
        mean, variance = unbalanced(finer, map_)
        layer, parent = known.layer, finer.layer.parent
        is_measured = np.ones(len(layer.noisy), bool)
        is_measured[layer.offsets[:-1][np.diff(layer.offsets) == 1]] = False
        own = is_measured[parent] / layer.sigma**2
        theirs = 1 / np.maximum(variance, 1e-9)
        mean = (own * layer.noisy[parent] + theirs * mean) / (own + theirs)
        knowns[number - 1] = replace(known, mean=mean, variance=1 / (own + theirs))


class _Apart:
    """Counts of nodes that are not divided further, by the areas of every axis.

    They belong to the totals of areas that are measured across the tree.
    """

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.by_axis = [np.zeros(1) for _ in (layers[0].level.axes if layers else ())]
        self._last = layers[-1].level if layers else None

    def within(self, table: Sums, layer: Layer) -> Floats:
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
        child = np.flatnonzero(layer.below < 0)
        for axis, numbers in enumerate(layer.child_areas(child)):
            sums = self.by_axis[axis]
            sums += np.bincount(numbers, estimate[child], minlength=len(sums))
