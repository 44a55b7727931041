"""Make estimates add up: one shift per family, one dual variable per measured sum.

The posterior of a count is a function of its noisy value. Where noise is Gaussian, shifting the
noisy values of a family alike until the estimates sum to the node above is what Bayes' rule gives
when the sum is known: it weighs each count x by exp(shift x / sigma^2). Where noise is Laplace,
these weights are no shift (below 0 the noisy value does not even matter), so estimates follow the
weights to first order: they move by the shift times their variance / sigma^2.

Sums in cross tables were measured with noise. Every cell of a cross table has a dual variable,
which is added to the noisy values of all its counts. In weighted least squares it is (measurement -
sum) x (sigma of the layer / sigma of the sum)^2. Nested tables form a chain, whose dual variables
are found together, as if each count moved by its slope: sums are passed up the chain, then dual
variables down. Several chains take turns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inftda.estimates.prior import MOST_NOISY, PRIOR_FREE_SIGMAS, Posterior, interpolate
from inftda.estimates.shares import Shares, most_children
from inftda.publication.measured import (
    CrossTableSums,
    Families,
    Floats,
    Layer,
    Map,
    Part,
)
from inftda.util.kernels import inlined_kernel, kernel

#: Rounds of dual ascent, unless no dual variable moves by more than this many noise scales.
_SWEEPS: Final = 6
_CONVERGED: Final = 0.05
#: Families sum to their nodes within this many noise scales before they are scaled to do so: in
#: the end, and while dual variables are still found.
_CLOSE, _NEAR = 0.01, 0.2
#: How far a shift goes in one step, in noise scales; and steps to find it.
_STRIDE: Final = 3.0
_STEPS: Final = 10
#: Largest dual variable, in noise scales.
_REACH: Final = 4.0


class Evidence(NamedTuple):
    """Evidence about the children of a layer, for kernels.

    Attributes:
        log_mean: float32[children], logarithm of the mean by the shares, over sigma.
        moments: float64[means, noisy values, 2], of the posterior.
        is_shifted: whether estimates follow noisy values that are shifted; otherwise their slopes.
        mean: float64[families below], means of the children that are divided further, from their
            own measurements and those below; empty if they are not used.
        variance: float64[families below], variances of these means.
    """

    log_mean: NDArray[np.float32]
    moments: Floats
    is_shifted: bool
    mean: Floats
    variance: Floats


@dataclass(frozen=True)
class LayerEstimate:
    """Measurements, shares, posteriors and estimates of one level.

    Attributes:
        layer: the measurements.
        shares: how nodes are expected to be divided.
        posterior: posterior of a count by its mean and its noisy value.
        evidence: the evidence about each child.
        estimate: float64[children], adding up to the level above; empty until they do.
    """

    layer: Layer
    shares: Shares
    posterior: Posterior
    evidence: Evidence
    estimate: Floats


class NestedTable(NamedTuple):
    """A table in its chain.

    Attributes:
        cells: its cells among those of all tables.
        inside: int64[cells], for each the cell of the table before it that it lies in.
    """

    cells: slice
    inside: NDArray[np.int64]


@dataclass(frozen=True)
class Targets:
    """All sums over children of a layer that were measured in cross tables.

    Attributes:
        start: int64[tables, families], cell of each family's first child; its siblings' follow.
        block: int64[cells]: siblings, whose sum is decided by the nodes above, have one number.
        value: float64[cells], the measurement minus the counts that are in no family.
        variance: float64[cells], of the noise.
        chains: tables that lie inside each other, coarse to fine, in the order of their turns.
    """

    start: NDArray[np.int64]
    block: NDArray[np.int64]
    value: Floats
    variance: Floats
    chains: Sequence[Sequence[NestedTable]]

    @classmethod
    def of(
        cls,
        layer: Layer,
        chains: Sequence[Sequence[CrossTableSums]] = (),
        elsewhere: Sequence[Floats] = (),
    ) -> "Targets":
        """Collect the tables of a layer in chains; subtract counts that are in no family."""
        tables = [table for chain in chains for table in chain]
        offsets = np.cumsum([0, *(len(table.value) for table in tables)])
        starts = [table.start + first for table, first in zip(tables, offsets, strict=False)]
        is_first = np.zeros(layer.n_areas, bool)
        is_first[layer.level.child_offsets[:-1]] = True
        areas = [table.area for table in tables]
        apart = np.concatenate([np.empty(0), *elsewhere])
        value = np.concatenate([np.empty(0), *(table.value for table in tables)])
        cells = [slice(*ends) for ends in pairwise(offsets.tolist())]
        numbers = iter(range(len(tables)))
        linked = [_links(layer, [next(numbers) for _ in one], starts, cells) for one in chains]
        return cls(
            start=np.array(starts, np.int64).reshape(len(tables), len(layer.first)),
            block=np.cumsum(np.concatenate([np.empty(0, bool), *map(is_first.take, areas)])) - 1,
            value=value - apart,
            variance=np.concatenate([np.empty(0), *(table.variance for table in tables)]),
            chains=linked,
        )

    @property
    def n_cells(self) -> int:
        """Cells of all tables."""
        return len(self.value)

    def updated_duals(
        self, chain: Sequence[NestedTable], duals: Floats, sums: Floats, sigma: float
    ) -> Floats:
        """float64[cells]: dual variables of all chains, after a step of one of them.

        `sums` are the sums and slopes at the present dual variables, as in `SumDuals`.
        """
        ratio = sigma**2 / self.variance
        missing = self.value - sums[0]
        with np.errstate(divide="ignore"):
            spread = np.bincount(self.block, 1 / ratio)
        # The nodes above determine the total of all cells of a block.
        pull = ratio * missing - (np.bincount(self.block, missing) / spread)[self.block] - duals
        step = _solve(chain, ratio, np.where(ratio > 0, pull, 0.0), sums[1])
        return np.asarray(np.clip(duals + step, -_REACH * sigma, _REACH * sigma))


def _links(
    layer: Layer, chain: Sequence[int], starts: Sequence[NDArray[np.int64]], cells: Sequence[slice]
) -> list[NestedTable]:
    """A chain of tables, by their numbers."""
    sizes = np.diff(layer.offsets)
    links = [NestedTable(cells[chain[0]], np.empty(0, np.int64))]
    for coarse, fine in pairwise(chain):
        _, family = np.unique(starts[fine], return_index=True)
        n = sizes[family]
        sibling = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
        inside = np.full(cells[fine].stop - cells[fine].start, cells[coarse].start)
        at = np.repeat(starts[fine][family], n) + sibling - cells[fine].start
        inside[at] = np.repeat(starts[coarse][family], n) + sibling
        links.append(NestedTable(cells[fine], inside))
    return links


def _solve(chain: Sequence[NestedTable], ratio: Floats, pull: Floats, rise: Floats) -> Floats:
    """float64[cells]: changes of the dual variables of a chain that bring sums to their targets.

    Slopes are taken as constant. `rise` is the slope of each sum in its dual variable, `pull` the
    change of each dual variable if sums stayed, and `ratio` is (sigma of the layer / sigma of the
    sum)^2.
    """
    slope, moved, above, step = (np.zeros_like(rise) for _ in range(4))
    slope[chain[-1].cells] = rise[chain[-1].cells]
    for link in reversed(chain[1:]):
        at = link.cells
        damping = 1 + ratio[at] * slope[at]
        n = len(rise)
        slope += np.bincount(link.inside, slope[at] / damping, n)
        moved += np.bincount(link.inside, (slope[at] * pull[at] + moved[at]) / damping, n)
    for number, link in enumerate(chain):
        at = link.cells
        if number:
            above[at] = above[link.inside] + step[link.inside]
        missing = pull[at] - ratio[at] * (moved[at] + slope[at] * above[at])
        step[at] = missing / (1 + ratio[at] * slope[at])
    return step


class SumDuals(NamedTuple):
    """Sums in cross tables while estimates are made to add up, for kernels.

    Attributes:
        start: int64[tables, families], cell of each family's first child; its siblings' follow.
        dual: float64[cells].
        sums: float64[2, cells]: estimates, and slopes in the dual variable, summed up by cell.
    """

    start: NDArray[np.int64]
    dual: Floats
    sums: Floats


def balance(known: LayerEstimate, count: Floats, map_: Map, targets: Targets) -> Floats:
    """float64[children]: estimates of a layer that sum to the `count` of each family."""
    layer = known.layer
    estimate, shift = np.empty(len(layer.noisy)), np.zeros(len(layer.first))
    duals = SumDuals(targets.start, np.zeros(targets.n_cells), np.zeros((2, targets.n_cells)))

    def add_up(close: float) -> None:
        duals.sums[:] = 0

        def work(part: Part) -> None:
            into = shift, estimate
            shift_kernel(part, layer.families, known.evidence, count, duals, close, into)

        list(map_(work, layer.parts()))

    if targets.chains:
        add_up(_NEAR)
    for _ in range(_SWEEPS if targets.chains else 0):
        before = duals.dual.copy()
        for chain in targets.chains:
            duals.dual[:] = targets.updated_duals(chain, duals.dual, duals.sums, layer.sigma)
            add_up(_NEAR)
        if np.abs(duals.dual - before).max() <= _CONVERGED * layer.sigma:
            break
    add_up(_CLOSE)
    return estimate


def unbalanced(known: LayerEstimate, map_: Map) -> tuple[Floats, Floats]:
    """float64[families] each: sum of the children's means and variances if they need not add up."""
    layer = known.layer
    mean, variance = np.empty(len(layer.first)), np.empty(len(layer.first))

    def add(part: Part) -> None:
        add_children_kernel(part, layer.families, known.evidence, mean, variance)

    list(map_(add, layer.parts()))
    return mean, variance


@inlined_kernel
def _moments(
    moments: Floats, log_mean: float, noisy: int, by: float, sigma: float
) -> tuple[float, float]:
    """Mean and variance of a count, if its noisy value were larger by `by`."""
    if noisy > PRIOR_FREE_SIGMAS * sigma or noisy + by >= MOST_NOISY * sigma:
        return noisy + by, sigma * sigma
    mean, variance = interpolate(moments, log_mean, (noisy + by) / sigma)
    return mean * sigma, variance * sigma * sigma


@inlined_kernel
def _scale_to(count: float, whole: float, estimate: Floats) -> None:
    """Scale estimates, the sum of which is `whole`, to a count; alike if there is nothing yet."""
    if whole <= 0:
        estimate[:] = 1.0
        whole = len(estimate)
    for j in range(len(estimate)):
        estimate[j] *= count / max(whole, 1e-300)


@inlined_kernel
def _add_up_duals(duals: SumDuals, family: int, whole: Floats) -> None:
    """Dual variables of a family's children in all tables, summed up into `whole`."""
    start, dual, _ = duals
    for j in range(len(whole)):
        whole[j] = 0.0
        for t in range(start.shape[0]):
            whole[j] += dual[start[t, family] + j]


@inlined_kernel
def _add_to_sums(duals: SumDuals, family: int, estimate: Floats, slope: Floats) -> None:
    """Estimates of a family's children, and their slopes, added to the sums of all tables."""
    start, _, sums = duals
    for j in range(len(estimate)):
        for t in range(start.shape[0]):
            sums[0, start[t, family] + j] += estimate[j]
            sums[1, start[t, family] + j] += slope[j]


@kernel
def shift_kernel(  # noqa: PLR0913, PLR0917 - what is known, what is wanted, what is found
    part: Part,
    families: Families,
    evidence: Evidence,
    count: Floats,
    duals: SumDuals,
    close: float,
    into: tuple[Floats, Floats],
) -> None:
    """Shift the noisy counts of each family until the estimates sum to its count.

    Families come to within `close` noise scales before they are scaled. Overwritten, in `into`:
    the shifts of families, to start from, and estimates of children; the latter are added to the
    sums of `duals` as well.
    """
    # Taken out of the tuples once: numba counts references whenever it takes an array out.
    offsets, _, noisy, child_family, sigma = families
    log_mean, moments, is_shifted, mean_below, variance_below = evidence
    shift, estimate = into
    most = most_children(part, offsets)
    dual, slope = np.empty(most), np.empty(most)  # of the children of one family
    for f in range(part[0], part[1]):
        low, high = offsets[f], offsets[f + 1]
        if high - low == 1:
            estimate[low], slope[0] = count[f], 0.0
            _add_to_sums(duals, f, estimate[low:high], slope)
            continue
        _add_up_duals(duals, f, dual[: high - low])
        moved = shift[f]
        whole = 0.0
        for step in range(_STEPS):
            whole, rise = 0.0, 0.0
            for i in range(low, high):
                by = moved + dual[i - low]
                below = child_family[i] if mean_below.size else -1
                if below >= 0:
                    variance = variance_below[below]
                    mean = mean_below[below] + variance * by / (sigma * sigma)
                elif is_shifted:
                    mean, variance = _moments(moments, log_mean[i], noisy[i], by, sigma)
                else:
                    mean, variance = _moments(moments, log_mean[i], noisy[i], 0.0, sigma)
                    mean += variance * by / (sigma * sigma)
                if mean < 0:
                    mean, variance = 0.0, 0.0
                estimate[i], slope[i - low] = mean, variance / (sigma * sigma)
                whole += mean
                rise += slope[i - low]
            missing = count[f] - whole
            if abs(missing) <= close * min(0.1 * (1 + count[f]), sigma) or step == _STEPS - 1:
                break
            by = missing / max(rise, 1e-9)
            moved += min(max(by, -_STRIDE * sigma), _STRIDE * sigma)
        shift[f] = moved
        _scale_to(count[f], whole, estimate[low:high])
        _add_to_sums(duals, f, estimate[low:high], slope)


@kernel
def add_children_kernel(
    part: Part, families: Families, evidence: Evidence, mean: Floats, variance: Floats
) -> None:
    """Write means and variances of children, summed up in each family."""
    offsets, _, noisy, child_family, sigma = families
    log_mean, moments, _, mean_below, variance_below = evidence
    for f in range(part[0], part[1]):
        mean[f], variance[f] = 0.0, 0.0
        for i in range(offsets[f], offsets[f + 1]):
            below = child_family[i] if mean_below.size else -1
            if below >= 0:
                mean[f] += mean_below[below]
                variance[f] += variance_below[below]
            else:
                m, v = _moments(moments, log_mean[i], noisy[i], 0.0, sigma)
                mean[f] += m
                variance[f] += v
