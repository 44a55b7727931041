"""The mechanisms that the paper compares, each from a table and a budget to released flows.

InfTDA is `inftda.release`. The others are made of the same parts: the plan and the exact samplers.
The privacy unit is one trip of each person, who may be replaced by another.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import floor, log, sqrt
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import inftda
from inftda_lab.levels import Flows, Level, Release, levels_of
from inftda_lab.nearest import nearest_l2, nearest_linf
from inftda_lab.tables import Numbers, Table, numbers_of

#: Children that are drawn at a time.
BLOCK: Final = 1 << 22

Floats = NDArray[np.float64]
Solver = Callable[[Numbers, Numbers, Numbers, NDArray[np.float64]], None]


@dataclass(frozen=True)
class Budget:
    """The guarantee of a run, or that of the published figures: see `published_rho`.

    Attributes:
        epsilon: of the guarantee.
        delta: probability of failure.
        is_published: whether noise is as the paper's code drew it. NOT PRIVATE AS STATED.
    """

    epsilon: float
    delta: float = 1e-8
    is_published: bool = False

    def rho_or_epsilon(self, *, is_top_down: bool) -> dict[str, Any]:
        """The budget as a plan takes it."""
        if not self.is_published:
            return {"epsilon": self.epsilon, "delta": self.delta}
        rho = published_rho(self.epsilon, self.delta)
        return {"rho": rho / 2 if is_top_down else rho}


def published_rho(epsilon: float, delta: float) -> float:
    """The budget of the published figures: epsilon = rho + 2 sqrt(rho log(1 / delta)), lemma 21.

    The paper's code divided it over twice the number of levels, so its top-down mechanisms used
    half of it.

    >>> round(published_rho(1, 1e-8), 6)
    0.013211
    """
    log_odds = -log(delta)
    return (epsilon / (sqrt(log_odds + epsilon) + sqrt(log_odds))) ** 2


class Mechanism(Protocol):
    """From a table and a budget to released flows."""

    def __call__(self, table: Table, budget: Budget, seed: int) -> Flows:
        """One release."""


def inftda_release(table: Table, budget: Budget, seed: int) -> Flows:
    """InfTDA as in the paper: an even split, Gaussian noise, no cross tables."""
    return _listed(_release(table, budget, seed, method="paper").flows(), table)


def default_release(table: Table, budget: Budget, seed: int) -> Release:
    """A release with the default split and cross tables, with its published totals."""
    made = _release(table, budget, seed)
    finest = table.areas.level_name(table.areas.depth)
    origins, destinations = made.flows(finest, "all"), made.flows("all", finest)
    totals = _of_areas(origins, "origin", table), _of_areas(destinations, "destination", table)
    return Release(_listed(made.flows(), table), totals)


def release_without_cross_tables(table: Table, budget: Budget, seed: int) -> Flows:
    """A release with the default split of the whole budget over the levels."""
    return _listed(_release(table, budget, seed, cross_tables=0).flows(), table)


def default_estimate(table: Table, budget: Budget, seed: int) -> Flows:
    """The estimate, without centroids, from the release with the same seed."""
    return _listed(inftda.estimate(_release(table, budget, seed)).table, table)


def _release(table: Table, budget: Budget, seed: int, **options: Any) -> inftda.Release:
    source = inftda.SeededSource(seed)
    given = budget.rho_or_epsilon(is_top_down=True)
    return inftda.release(table.flows(), table.areas, source=source, **options, **given)


def _listed(flows: pa.Table, table: Table) -> Flows:
    """Published flows, by the numbers of their areas."""
    codes = table.areas.codes(table.areas.depth)
    origin, destination = (numbers_of(flows[end], codes) for end in ("origin", "destination"))
    return Flows(origin, destination, flows.column(2).to_numpy().astype(np.int64))


def _of_areas(totals: pa.Table, end: str, table: Table) -> Numbers:
    """Totals of all finest areas, by number."""
    found = np.zeros(table.areas.n_areas(table.areas.depth), np.int64)
    found[numbers_of(totals[end], table.areas.codes(table.areas.depth))] = totals["flow"].to_numpy()
    return found


def tda_l2(table: Table, budget: Budget, seed: int) -> Flows:
    """The top-down algorithm with the nearest integers in Euclidean distance."""
    return top_down(table, budget, seed, nearest_l2)


def tda_linf(table: Table, budget: Budget, seed: int) -> Flows:
    """The top-down algorithm with any of the nearest integers in Chebyshev distance."""
    return top_down(table, budget, seed, nearest_linf)


def top_down(table: Table, budget: Budget, seed: int, solve: Solver) -> Flows:
    """Noise on the children of released parents, and integers that add up to the parent.

    Nodes below a dropped parent, and only children, are not drawn: the release does not depend on
    them.
    """
    levels = levels_of(table.areas)
    tree, given = inftda.build_tree(table.areas), budget.rho_or_epsilon(is_top_down=True)
    plan = inftda.make_plan(tree, inftda.Unit(), method="paper", **given)
    sigma2 = {level.index: level.noise.square for level in plan.levels}
    source, random = inftda.SeededSource(seed), np.random.default_rng(seed)
    truth = Flows(table.origin, table.destination, table.count)
    parents = Flows(np.zeros(1, np.int64), np.zeros(1, np.int64), np.array([table.total]))
    for above, level in pairwise(levels):
        true = level.summed(truth)
        noise = inftda.Noise.gaussian(sigma2.get(level.index, Fraction(1)))
        parts = []
        for number, block in enumerate(_blocks(parents, above, level)):
            noisy = np.empty(len(block.origin), np.int64)
            noise.fill(noisy, source.bits(level.index, number))
            cells = block.origin * level.areas.n_areas(level.depths[1]) + block.destination
            noisy += true.at(cells)
            solve(noisy, block.offsets, block.total, random.random(len(noisy)))
            kept = noisy > 0
            parts.append((block.origin[kept], block.destination[kept], noisy[kept]))
        parents = Flows(*map(np.concatenate, zip(*parts, strict=True)))
    return parents


@dataclass(frozen=True)
class _Block:
    """Children of some parents: their areas, where each family starts, and what it sums to."""

    origin: Numbers
    destination: Numbers
    offsets: Numbers
    total: Numbers


def _blocks(parents: Flows, above: Level, level: Level) -> Iterator[_Block]:
    """All children of all parents, some parents at a time."""
    axis = 0 if level.depths[0] > above.depths[0] else 1
    refined = parents[axis]
    first = above.areas.child_offsets(above.depths[axis]).astype(np.int64)
    size = first[refined + 1] - first[refined]
    ends = np.cumsum(size)
    start = 0
    while start < len(refined):
        done = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + BLOCK, side="right")))
        here = slice(start, stop)
        offsets = np.concatenate([[0], np.cumsum(size[here])])
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], size[here])
        child = np.repeat(first[refined[here]], size[here]) + within
        other = np.repeat(parents[1 - axis][here], size[here])
        origin, destination = (child, other) if axis == 0 else (other, child)
        yield _Block(origin, destination, offsets, parents.trips[here])
        start = stop


def vanilla_gauss(table: Table, budget: Budget, seed: int) -> Flows:
    """Noise on every possible pair of finest areas; negative counts are kept."""
    n = table.areas.n_areas(table.areas.depth)
    # A tree of one level has the noise of a plan that measures nothing but the leaves.
    alone = inftda.build_tree(axis={"pair": {"pair": ["a", "b"]}})
    given = budget.rho_or_epsilon(is_top_down=False)
    plan = inftda.make_plan(alone, inftda.Unit(), method="paper", **given)
    noisy = np.empty(n * n, np.int64)
    noise = plan.levels[0].noise
    noise.fill(noisy, inftda.SeededSource(seed).bits())
    noisy[table.origin * n + table.destination] += table.count
    cell = np.flatnonzero(noisy)
    return Flows(cell // n, cell % n, noisy[cell])


def stability_histogram(table: Table, budget: Budget, seed: int) -> Flows:
    """Noise on pairs that occur; noisy counts up to a threshold are dropped.

    The proof is in `stability-histogram.md` beside this package.
    """
    if budget.is_published:
        return _published_histogram(table, budget, seed)
    scale, threshold = stability_noise(budget.epsilon, budget.delta)
    noisy = np.empty(len(table.count), np.int64)
    inftda.Noise.laplace(scale).fill(noisy, inftda.SeededSource(seed).bits())
    noisy += table.count
    kept = noisy > threshold
    return Flows(table.origin[kept], table.destination[kept], noisy[kept])


def stability_noise(epsilon: float, delta: float) -> tuple[Fraction, int]:
    """Scale of the discrete Laplace noise, and the largest count that is dropped.

    >>> stability_noise(1.0, 1e-8)
    (Fraction(2, 1), 39)
    """
    scale = 2 / Fraction(repr(epsilon))
    return scale, floor((1 + float(scale) * log(2 / delta)) * (1 + 1e-12))


def _published_histogram(table: Table, budget: Budget, seed: int) -> Flows:
    """As the paper's code had it: an l1 sensitivity of sqrt(2) where 2 is right.

    It costs 1.41 epsilon. Noise is continuous, and the threshold that of the library it calls.
    """
    scale = sqrt(2) / budget.epsilon
    noisy = table.count + np.random.default_rng(seed).laplace(0, scale, len(table.count))
    kept = noisy >= sqrt(2) + scale * log(1 / (2 * budget.delta))
    value = np.rint(noisy[kept]).astype(np.int64)
    return Flows(table.origin[kept], table.destination[kept], value)


def flat_laplace(table: Table, budget: Budget, seed: int) -> Flows:
    """Noise on every pair of finest areas; noisy counts below five scales are dropped.

    The whole budget at one level, with delta 0.
    """
    scale = 2 / Fraction(repr(budget.epsilon))
    n = table.areas.n_areas(table.areas.depth)
    noisy = inftda.Noise.laplace(scale).sample(n * n, inftda.SeededSource(seed))
    noisy[table.origin * n + table.destination] += table.count
    cell = np.flatnonzero(noisy >= float(5 * scale))
    return Flows(cell // n, cell % n, noisy[cell])


def least_squares(table: Table, budget: Budget, seed: int) -> Flows:
    """Two passes of weighted least squares over the tree, as BlueDown fits the US census.

    Every cell of every level is measured with the noise of a release without cross tables. The way
    up gives each node the best estimate from the measurements below it and its own; the way down
    divides each total among the children, none below 0, in whole numbers. BlueDown does this for
    many counts at each node and with constraints of the census; there is one count here, and no
    constraint.
    """
    levels = levels_of(table.areas)
    tree, given = inftda.build_tree(table.areas), budget.rho_or_epsilon(is_top_down=True)
    plan = inftda.make_plan(tree, inftda.Unit(), cross_tables=0, **given)
    measured = [levels[level.index] for level in plan.levels]
    truth, source = Flows(table.origin, table.destination, table.count), inftda.SeededSource(seed)
    noisy = []
    for level, planned in zip(measured, plan.levels, strict=True):
        value = np.empty(level.n_cells, np.int64)
        planned.noise.fill(value, source.bits(level.index))
        true = level.summed(truth)
        value[true.cell] += true.trips
        noisy.append(value.astype(np.float64))
    parents = [lower.parents(upper) for upper, lower in pairwise([levels[0], *measured])]
    nodes = way_up(noisy, [planned.noise.sigma**2 for planned in plan.levels], parents)
    value = np.array([table.total])
    for node, parent in zip(nodes, parents, strict=True):
        value = whole_shares(node, parent, value)
    # Levels below the last measured one have one child for each parent.
    n, cell = table.areas.n_areas(table.areas.depth), np.flatnonzero(value)
    return Flows(cell // n, cell % n, value[cell])


class Nodes(NamedTuple):
    """What the measurements at and below a level say of its nodes: best estimates, variances."""

    mean: Floats
    variance: Floats

    def summed(self, parent: Numbers, n: int) -> "Nodes":
        """Sums over the children of each of n parents."""
        sums = (np.bincount(parent, part, n).astype(np.float64) for part in self)
        return Nodes(*sums)


def way_up(
    measured: Sequence[Floats], variances: Sequence[float], parents: Sequence[Numbers]
) -> list[Nodes]:
    """Estimates of all nodes, coarsest level first, each from its subtree.

    Args:
        measured: noisy counts of every level.
        variances: of the noise of each level.
        parents: number of the parent of every node.
    """
    found = [Nodes(measured[-1], np.full(len(measured[-1]), variances[-1]))]
    for noisy, variance, parent in zip(
        measured[-2::-1], variances[-2::-1], parents[:0:-1], strict=True
    ):
        below = found[0].summed(parent, len(noisy))
        weight = below.variance / (below.variance + variance)
        mean = below.mean + weight * (noisy - below.mean)
        found.insert(0, Nodes(mean, below.variance * (1 - weight)))
    return found


def shares(nodes: Nodes, parent: Numbers, totals: Floats | Numbers) -> Floats:
    """Children nearest to their estimates, in standard deviations, that add up to their parents."""
    sums = nodes.summed(parent, len(totals))
    missing = (totals - sums.mean)[parent]
    return nodes.mean + nodes.variance / sums.variance[parent] * missing


def whole_shares(nodes: Nodes, parent: Numbers, totals: Numbers) -> Numbers:
    """The same with no child below 0, rounded by largest remainders to the whole totals."""
    left = np.arange(len(parent))
    while True:
        part = Nodes(nodes.mean[left], nodes.variance[left])
        share = shares(part, parent[left], totals)
        if share.min(initial=0) >= 0:
            break
        left = left[share > 0]  # those at or below 0 stay there when others are taken out
    real = np.zeros(len(parent))
    real[left] = share
    whole = np.floor(real + 1e-9).astype(np.int64)
    missing = totals - np.bincount(parent, whole, len(totals)).astype(np.int64)
    order = np.lexsort((whole - real, parent))
    rank = np.arange(len(order)) - np.searchsorted(parent[order], parent[order])
    whole[order] += rank < missing[parent[order]]
    return whole


#: The paper's five, by the names used in results, with the names of the published figures.
MECHANISMS: Final[dict[str, Mechanism]] = {
    "inftda": inftda_release,
    "tda-l2": tda_l2,
    "tda-linf": tda_linf,
    "stability-histogram": stability_histogram,
    "vanilla-gauss": vanilla_gauss,
}
#: What the product makes of the same budget; the paper does not have it.
PRODUCT: Final[dict[str, Callable[[Table, Budget, int], Flows | Release]]] = {
    "release": default_release,
    "release, no cross tables": release_without_cross_tables,
    "estimate": default_estimate,
}
#: Others to compare with, not of the paper.
OTHERS: Final[dict[str, Mechanism]] = {
    "flat-laplace": flat_laplace,
    "least-squares": least_squares,
}
PUBLISHED_NAMES: Final = {
    "inftda": "InfTDA",
    "tda-l2": "TDA_l2",
    "tda-linf": "TDA_linf",
    "stability-histogram": "SH",
    "vanilla-gauss": "VanillaGauss",
}
