"""How often intervals hold, on tables that speak against the model and on tables for it.

What is claimed: on average over published numbers of similar size, 95 in 100. That is measured
(docs/explanation/reliability.md); here a class fails that lies below 94 % by more than two standard
errors. Not claimed: the same for the numbers with a certain truth, or for single ones.
"""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import inftda
from count_tables import table_of
from inftda.mechanism.topdown import release_counts
from inftda.noise.distribution import Noise
from inftda.privacy.noise_plan import make_plan
from inftda.privacy.unit import UNIT
from inftda.publication.intervals import Intervals, _Components
from inftda.publication.measured import distinct_rows, find_rows
from inftda.publication.measurements import measurements_of, noisy_table
from inftda.reading.columns import COLUMNS
from inftda.reading.truth import Truth
from inftda.tree import Marginal

N, GROUP, SEEDS = 80, 20, 4
#: Noise scale of a release of two levels at epsilon 1 and delta 1e-8.
SIGMA = 14.87
#: Laplace noise with about that standard deviation.
LAPLACE = Noise.laplace(Fraction(21, 2))
#: Classes of published size, in noise scales, and the fewest numbers
#: whose share can be compared with 95 %.
CLASSES = (0, 0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, np.inf)
ENOUGH = 200


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


def leaves_of(flows):
    """Numbers of the areas and counts of all flows that are not 0."""
    at = np.nonzero(flows)
    return tuple(numbers.astype(np.int32) for numbers in at), flows[at]


def _published(table):
    """Published numbers of a few releases, and whether their intervals hold."""
    codes, areas = _areas()
    found = []
    for seed in range(SEEDS):
        flows = table(np.random.default_rng(seed))
        trips = table_of(flows, origin=codes, destination=codes)
        source = inftda.SeededSource(seed)
        release = inftda.release(trips, areas, epsilon=1, delta=1e-8, source=source)
        rows = release.flows(intervals=True)
        at = (np.searchsorted(codes, rows.column(name)) for name in ("origin", "destination"))
        true = flows[tuple(at)]
        flow, low, high = (rows.column(name).to_numpy() for name in ("flow", "low", "high"))
        found.append((flow, (low <= true) & (true <= high)))
    return map(np.concatenate, zip(*found, strict=True))


@pytest.mark.parametrize("table", [busy_centre, almost_equal, two_sizes, gravity])
def test_intervals_hold_in_every_class_of_published_size(table):
    flow, holds = _published(table)
    assert holds.mean() >= 0.95
    assert not failing(flow / SIGMA, holds)


def failing(size, holds):
    """Classes of size below 94 % by more than two standard errors."""
    class_of = np.searchsorted(CLASSES, size, side="right")
    assert np.bincount(class_of).max() >= ENOUGH
    return [
        (CLASSES[one - 1], n, round(share, 3))
        for one in np.unique(class_of)
        for n, share in [((class_of == one).sum(), holds[class_of == one].mean())]
        if n >= ENOUGH and share < 0.94 - 2 * math.sqrt(0.94 * 0.06 / n)
    ]


@pytest.mark.parametrize("table", [busy_centre, gravity])
def test_parents_far_below_the_noise_are_judged_by_their_means(table):
    """By their published numbers, cells would be classified as if such parents were that small."""
    codes, areas = _areas()
    towns, regions = np.arange(N), np.arange(N) // GROUP
    sums = np.zeros(3)
    for seed in range(SEEDS):
        flows = table(np.random.default_rng(seed))
        trips = table_of(flows, origin=codes, destination=codes)
        source = inftda.SeededSource(seed)
        release = inftda.release(trips, areas, epsilon=0.2, delta=1e-8, source=source)
        intervals = release._intervals
        above, finest = intervals._levels[-2:]
        at = tuple(regions if depth == 1 else towns for depth in above.level.depths)
        true, published = np.zeros((2, N, N), int)
        np.add.at(true, np.ix_(*at), flows)
        published[intervals.nodes[1][1]] = intervals.nodes[1][2]
        is_small = published[finest.parent_areas] < above.table.noise.sigma
        kinds = (true[finest.parent_areas], published[finest.parent_areas], finest.parent)
        sums += [of[is_small].sum() for of in kinds]
    truth, by_number, by_mean = sums
    assert abs(by_mean - truth) < abs(by_number - truth) / 1.5


def _published_with_laplace(table, *, everywhere):
    """The same, with Laplace noise at the finest level, or everywhere."""
    tree = COLUMNS.tree(_areas()[1])
    plan = make_plan(tree, UNIT, epsilon=1, delta=1e-8, cross_tables=0.08, method="paper")
    *above, finest = plan.levels
    tables = plan.tables

    def changed(part):
        return replace(part, noise=LAPLACE)

    if everywhere:
        above, tables = map(changed, above), tuple(map(changed, tables))
    plan = replace(plan, levels=(*above, changed(finest)), tables=tables)
    found = []
    for seed in range(3 * SEEDS):
        flows = table(np.random.default_rng(seed))
        truth = Truth.from_leaves(tree, *leaves_of(flows))
        drawn = release_counts(truth, plan.account(), inftda.SeededSource(seed), threads=1)
        areas, flow = drawn.leaves.areas, drawn.leaves.value
        measured = measurements_of(tree, plan, map(noisy_table, drawn.noisy))
        intervals = Intervals(tree, measured, areas, flow, is_public=True)
        depths = tree.splitting_levels[-1].depths
        low, high = intervals.of(depths, areas, flow)
        true = flows[areas]
        found.append((flow, (low <= true) & (true <= high)))
    return map(np.concatenate, zip(*found, strict=True))


@pytest.mark.parametrize("everywhere", [False, True])
@pytest.mark.parametrize("table", [busy_centre, almost_equal, two_sizes, gravity])
def test_intervals_hold_with_laplace_noise_too(table, everywhere):
    flow, holds = _published_with_laplace(table, everywhere=everywhere)
    assert holds.mean() >= 0.95
    if table is busy_centre:
        # Where one cell in a hundred is 40 and all others around it are 0, published numbers of one
        # to two deviations hold for nine in ten only.
        size = flow / LAPLACE.sigma
        assert holds[(size >= 1) & (size < 2)].mean() >= 0.86
        flow, holds = flow[size >= 2.5], holds[size >= 2.5]
    assert not failing(flow / LAPLACE.sigma, holds)


def test_errors_in_common_are_those_of_exact_covariances():
    """Nested and crossed measurements of sums in 2 areas of 2, by 3 areas of another axis."""
    rng = np.random.default_rng(5)
    sizes, variance = [[1, 2, 4], [1, 3]], 7.0
    components, covariance = _Components(sizes, variance), variance * np.eye(12)
    for depths, sigma2 in [((2, 0), 3.0), ((0, 1), 20.0), ((1, 0), 1.0), ((1, 1), 5.0)]:
        cell = np.ravel_multi_index(
            [np.arange(12) // 3 // (4 // sizes[0][depths[0]]), np.arange(12) % 3 * (depths[1] > 0)],
            (4, 3),
        )
        inside = (cell[:, None] == np.unique(cell)).astype(float)
        of_cell = inside.T @ covariance @ inside
        common = components.common(depths)
        assert common * np.trace(covariance) == pytest.approx(np.trace(of_cell))
        part = rng.random()
        left = np.eye(12) - part / inside.sum(axis=0)[0] * inside @ inside.T
        covariance = left @ covariance @ left.T
        covariance += (part / inside.sum(axis=0)[0]) ** 2 * sigma2 * inside @ inside.T
        components.move(depths, part, sigma2)


def _sums(release, truth, depths):
    """Published sums by some levels, the true ones, and their intervals."""
    marginal = Marginal(release.tree.axes, depths)
    areas, flow = marginal.sum_up(*release.leaves())
    at, count = marginal.sum_up(*truth)
    true = np.append(count, 0)[find_rows(at, areas)]
    return flow, true, release.intervals().of(depths, areas, flow)


def test_sums_in_a_deep_binary_tree_hold():
    """Every measurement of a coarser level is one of nearly the same sums again."""
    codes = [f"{number:06b}" for number in range(64)]
    names = [f"l{depth}" for depth in range(1, 7)]
    areas = pa.table(
        {name: [code[:depth] for code in codes] for depth, name in enumerate(names, 1)}
    )
    holds = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        flows = rng.poisson(300, (64, 64)) * (rng.random((64, 64)) < 0.7)
        trips = table_of(flows, origin=codes, destination=codes)
        options = {"epsilon": 1, "delta": 1e-8, "source": inftda.SeededSource(seed)}
        release = inftda.release(trips, areas, **options)
        truth = leaves_of(flows)
        for depths in [(6, 4), (4, 6), (6, 3), (5, 3), (3, 5)]:
            _, true, (low, high) = _sums(release, truth, depths)
            holds.append((low <= true) & (true <= high))
    assert np.concatenate(holds).mean() >= 0.95


def test_undivided_cells_have_the_modes_of_their_area():
    """All flows into a town are by its own mode, so with national shares no interval holds."""
    rng = np.random.default_rng(3)
    flows = rng.poisson(4, (N, N))
    flows[np.arange(N), np.arange(N)] = 2_000
    codes, areas = _areas()
    mode = np.arange(N) % 8  # of the destination
    origin, destination = np.nonzero(flows)
    count = flows[origin, destination]
    trips = pa.table({
        "origin": codes[origin], "destination": codes[destination],
        "mode": [f"m{number}" for number in mode[destination]], "count": count,
    })  # fmt: skip
    modes = pa.table({"mode": [f"m{number}" for number in range(8)]})
    axes = {"origin": areas, "destination": areas, "mode": modes}
    source = inftda.SeededSource(3)
    release = inftda.release(trips, axis=axes, epsilon=1, delta=1e-8, source=source)
    at = tuple(part.astype(np.int32) for part in (origin, destination, mode[destination]))
    flow, true, (low, high) = _sums(release, (at, count), (0, 2, 1))
    assert ((low <= true) & (true <= high))[flow > 1_000].mean() >= 0.85


def test_children_measure_a_cell_a_second_time():
    """Where all cells are large, estimates are as far off as stated, and less than one noise."""
    codes = [f"t{number:02}" for number in range(16)]
    areas = pa.table({"region": [f"r{number // 2}" for number in range(16)], "town": codes})
    apart, smaller = [], []
    for seed in range(4):
        flows = np.random.default_rng(seed).poisson(900, (16, 16))
        trips = table_of(flows, origin=codes, destination=codes)
        options = {"epsilon": 1, "delta": 1e-8, "source": inftda.SeededSource(seed)}
        release = inftda.release(trips, areas, **options)
        intervals, tree = release.intervals(), release.tree
        truth = leaves_of(flows)
        levels = zip(intervals._levels, intervals._estimates, strict=True)
        for cells, (estimate, variance) in list(levels)[:-1]:
            at, count = Marginal(tree.axes, cells.level.depths).sum_up(*truth)
            true = count[find_rows(at, cells.table.areas)]
            apart.append(np.square(estimate - true) / variance)
            smaller.append(variance / cells.table.noise.sigma**2)
    assert 0.85 < np.sqrt(np.concatenate(apart).mean()) < 1.15
    assert np.concatenate(smaller).max() < 1
    assert np.concatenate(smaller).mean() < 0.85


def test_a_sum_of_one_cell_is_as_wide_as_the_cell():
    """One large flow in each pair of regions; the other sums are noise of single cells."""
    codes, areas = _areas()
    ends = codes[::GROUP]
    trips = pa.table({
        "origin": np.repeat(ends, len(ends)), "destination": np.tile(ends, len(ends)),
        "count": np.full(len(ends) ** 2, 2_000),
    })  # fmt: skip
    source = inftda.SeededSource(1)
    release = inftda.release(trips, areas, epsilon=1, delta=1e-8, source=source)
    intervals = release.intervals()
    sums, flow = Marginal(release.tree.axes, (2, 1)).sum_up(*release.leaves())
    low, high = intervals.of((2, 1), sums, flow)
    cells = intervals._levels[-1]
    inside = cells.table.areas[0], cells.table.areas[1] // GROUP
    first, n = distinct_rows(inside)
    found = find_rows(tuple(of[first] for of in inside), sums)
    at = np.flatnonzero((found >= 0) & (n[found] == 1))
    least, most = cells.ends(first[found[at]], flow[at])
    assert len(at) == 10
    assert (low[at] <= least).all()
    assert (high[at] >= most).all()
