"""How often intervals hold, on tables that speak against the model and on tables for it.

What is claimed: on average over the published numbers of a class of size, at least 95 in 100. Not
claimed: the same for the numbers with a certain truth, or for single ones.
"""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import inftda
from inftda.inference.measured import Measurements, NoisyTable
from inftda.inference.noise_intervals import NoiseIntervals
from inftda.mechanism.topdown import release_counts
from inftda.noise.law import Law
from inftda.privacy.plan import make_plan
from inftda.privacy.unit import UNIT
from inftda.publication.intervals import Intervals
from inftda.publication.measurements import planned_measurements
from inftda.reading.columns import COLUMNS
from inftda.truth import Leaves, Truth

N, GROUP, SEEDS = 80, 20, 4
#: Noise scale of a release of two levels at epsilon 1 and delta 1e-8.
SIGMA = 14.87
#: Laplace noise with about that standard deviation.
LAPLACE = Law.laplace(Fraction(21, 2))
#: Classes of published size, in noise scales, and fewer numbers than this say nothing of 95 %.
CLASSES = (0, 0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, np.inf)
ENOUGH = 100


def busy_centre(rng):
    """Many trips between all towns of one region, and elsewhere 40 in one pair of a hundred."""
    flows = np.where(rng.random((N, N)) < 0.01, 40, 0)
    flows[:GROUP, :GROUP] = rng.poisson(90, (GROUP, GROUP))
    return flows


def almost_equal(rng):
    """Nearly all flows are three noise scales, so what is published as larger is noise."""
    return np.where(rng.random((N, N)) < 0.95, round(3 * SIGMA), 0)


def two_sizes(rng):
    """One flow in five as large as the noise, and one in a hundred five times as large."""
    kind = rng.random((N, N))
    return np.where(kind < 0.2, round(SIGMA), np.where(kind < 0.21, round(5 * SIGMA), 0))


def gravity(rng):
    """What the model is for: flows in proportion to the sizes of both towns."""
    sizes = np.exp(rng.normal(0, 1, (2, N)))
    return rng.poisson(4 * np.outer(*sizes))


def _areas():
    codes = np.array([f"t{i:02}" for i in range(N)])
    return codes, pa.table({"region": [f"r{i // GROUP}" for i in range(N)], "town": codes})


def _published(table):
    """Published numbers of a few releases, and whether their intervals hold."""
    codes, areas = _areas()
    found = []
    for seed in range(SEEDS):
        flows = table(np.random.default_rng(seed))
        origin, destination = np.nonzero(flows)
        release = inftda.release(
            pa.table({"origin": codes[origin], "destination": codes[destination],
                      "count": flows[origin, destination]}),
            areas, epsilon=1, delta=1e-8, source=inftda.SeededSource(seed),
        )  # fmt: skip
        rows = release.flows(intervals=True)
        at = (np.searchsorted(codes, rows.column(name)) for name in ("origin", "destination"))
        true = flows[tuple(at)]
        flow, low, high = (rows.column(name).to_numpy() for name in ("flow", "low", "high"))
        found.append((flow, (low <= true) & (true <= high)))
    return map(np.concatenate, zip(*found, strict=True))


@pytest.mark.parametrize("table", [busy_centre, almost_equal, two_sizes, gravity])
def test_intervals_hold_in_every_class_of_published_size(table):
    flow, holds = _published(table)
    class_of = np.searchsorted(CLASSES, flow / SIGMA, side="right")
    for one in np.unique(class_of):
        inside = holds[class_of == one]
        assert len(inside) < ENOUGH or inside.mean() >= 0.95, CLASSES[one - 1]


def _published_with_laplace(table, *, everywhere):
    """The same, with Laplace noise at the finest level, or everywhere."""
    tree = COLUMNS.tree(_areas()[1])
    plan = make_plan(tree, UNIT, epsilon=1, delta=1e-8, across=0.08)
    *above, finest = plan.levels
    tables = plan.tables

    def changed(part):
        return replace(part, sigma2=LAPLACE.square, family="laplace")

    if everywhere:
        above, tables = map(changed, above), tuple(map(changed, tables))
    plan = replace(plan, levels=(*above, changed(finest)), tables=tables)
    found = []
    for seed in range(3 * SEEDS):
        flows = table(np.random.default_rng(seed))
        at = tuple(numbers.astype(np.int32) for numbers in np.nonzero(flows))
        truth = Truth.of(tree, Leaves.of(at, flows[at]), threads=1)
        drawn = release_counts(truth, plan.account(), inftda.SeededSource(seed), threads=1)
        areas, flow = drawn.leaves.areas, drawn.leaves.value
        intervals = Intervals(tree, _measured(tree, plan, drawn.noisy), int(flow.sum()))
        depths = tree.splitting_levels[-1].depths
        low, high = intervals.of(depths, areas, flow)
        true = flows[areas]
        found.append((flow, (low <= true) & (true <= high)))
    return map(np.concatenate, zip(*found, strict=True))


def _measured(tree, plan, noisy):
    """What was drawn, each table in one piece."""
    parts = list(noisy)
    tables = planned_measurements(tree, plan)
    joined = []
    for table in tables:
        own = [one for one in parts if one.depths == table.depths]
        areas = tuple(map(np.concatenate, zip(*(one.cells() for one in own), strict=True)))
        value = np.concatenate([one.value for one in own])
        joined.append(NoisyTable(table.depths, table.noise, areas, value))
    levels = (table.level.index if table.is_on_tree else None for table in tables)
    return Measurements(tuple(joined), tuple(levels))


@pytest.mark.parametrize("everywhere", [False, True])
@pytest.mark.parametrize("table", [busy_centre, almost_equal, two_sizes, gravity])
def test_intervals_hold_with_laplace_noise_too(table, everywhere):
    flow, holds = _published_with_laplace(table, everywhere=everywhere)
    class_of = np.searchsorted(CLASSES, flow / LAPLACE.sigma, side="right")
    enough = [one for one in np.unique(class_of) if (class_of == one).sum() >= ENOUGH]
    assert enough
    for one in enough:
        assert holds[class_of == one].mean() >= 0.95, CLASSES[one - 1]


def test_the_noise_of_a_class_allows_for_what_came_into_it():
    """Of 10,000 zeros, those with the highest noise are a class, whose intervals reach 0."""
    noisy = np.round(np.random.default_rng(0).normal(0, 20, 10_000)).astype(np.int64)
    low, high = NoiseIntervals.of(noisy, Law(Fraction(400))).ends(noisy)
    assert low.max() == 0
    assert (high - low)[noisy > 60].min() > (high - low)[np.abs(noisy) < 20].max()


def test_a_class_of_laplace_noise_may_be_that_of_counts_twice_as_far_away():
    """Zeros whose noise was 14 scales: a Gaussian would go as far once in 10^23 draws."""
    law = Law.laplace(Fraction(10))
    random = np.random.default_rng(0)
    noisy = np.round(random.laplace(0, 10, 1_000_000)).astype(np.int64)
    low, _ = NoiseIntervals.of(noisy, law).ends(noisy)
    assert noisy.max() > 10 * law.sigma - 20
    is_high = noisy > 6 * law.sigma
    assert is_high.sum() > ENOUGH
    assert (low[is_high] == 0).mean() >= 0.95


@pytest.mark.parametrize(
    ("law", "half"), [(Law(Fraction(400)), 39), (Law.laplace(Fraction(20)), 60)]
)
def test_a_count_that_stands_alone_has_the_width_of_its_noise(law, half):
    noisy = np.array([5, 10**9, 2**61])
    low, high = NoiseIntervals.of(noisy, law).ends(noisy)
    assert (noisy[1] - low[1], high[1] - noisy[1]) == (half, half)


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(3, 2), Fraction(7), Fraction(40)])
@pytest.mark.parametrize("missed", [0.05, 0.015, 1e-6])
def test_half_widths_of_laplace_noise_are_the_least_that_hold(scale, missed):
    weights = [math.exp(-abs(x) / scale) for x in range(-3000, 3001)]
    whole, half = math.fsum(weights), Law.laplace(scale).half_width(missed)

    def beyond(reach):
        return 2 * math.fsum(weights[3001 + reach :]) / whole

    assert beyond(half) <= missed * (1 + 1e-6)
    assert half == 0 or beyond(half - 1) > missed
