"""The estimator on small made-up tables with fixed seeds."""

import numpy as np
import pyarrow as pa
import pytest

import inftda
from count_tables import table_of
from inftda.estimates.model import Fit
from inftda.estimates.prior import (
    LEAST_MEAN,
    LEAST_NOISY,
    MEAN_STEPS,
    NOISY_STEPS,
    PRIOR_FREE_SIGMAS,
    interpolate,
)
from inftda.estimates.shares import fit_shares, pairs_of

N_AREAS = 60
#: The one with large flows.
LARGE = 7


def _fit(flows, *, across, epsilon=1.0):
    """The fit of a release of float64[areas, areas] flows; areas are in six groups."""
    codes = np.array([f"a{i:02}" for i in range(N_AREAS)])
    table = table_of(flows, origin=codes, destination=codes)
    areas = pa.table({"group": [f"g{i // 10}" for i in range(N_AREAS)], "area": codes})
    release = inftda.release(
        table, areas, epsilon=epsilon, delta=1e-6, cross_tables=across,
        source=inftda.SeededSource(3), allow_large_delta=True,
    )  # fmt: skip
    return Fit.of(release.tree, release.measurements(), release.total, threads=1)


@pytest.fixture(scope="module")
def small_flows():
    """Flows that are all about as large as the noise, but for some of one area."""
    flows = np.random.default_rng(1).poisson(20, (N_AREAS, N_AREAS))
    flows[LARGE, ::5] = 3_000
    return flows


def test_large_flows_of_an_area_say_little_of_its_other_flows(small_flows):
    """Those are all alike, so factors should be; the area's total is 30 times the others'."""
    last = _fit(small_flows, across=0.0).levels[-1]
    factor = last.shares.area / np.median(last.shares.area)
    assert last.layer.level.axis == 0
    assert factor[LARGE] < 1.2


def test_rounding_moves_totals_of_areas_by_a_few_trips_only(small_flows):
    """Also where next to nothing was measured: independent trips would move them by about 50."""
    fit = _fit(small_flows, across=0.08, epsilon=0.02)
    totals = []
    for seed in range(2):
        leaves = fit.leaves(seed)
        totals.append([np.bincount(n, leaves.value, N_AREAS) for n in leaves.areas])
    assert np.abs(np.subtract(*totals)).max() <= 8


def test_children_sum_to_their_node_at_every_level(small_flows):
    above = None
    for level in _fit(small_flows, across=0.08).levels:
        layer, estimate = level.layer, level.estimate
        count = small_flows.sum() if above is None else above[layer.parent]
        assert np.add.reduceat(estimate, layer.offsets[:-1]) == pytest.approx(count, abs=1e-6)
        assert (estimate >= 0).all()
        above = estimate


def test_counts_of_more_than_32_bits_are_estimated_too(small_flows):
    flows = small_flows.copy()
    flows[0, 1] = 5 * 10**9
    fit = _fit(flows, across=0.08)
    assert fit.levels[-1].layer.noisy.dtype == np.int64
    leaves = fit.leaves(0)
    assert leaves.value.sum() == flows.sum()
    (origin, destination), value = leaves.areas, leaves.value
    (largest,) = value[(origin == 0) & (destination == 1)]
    assert abs(largest - flows[0, 1]) < 1_000


def test_a_table_is_met_in_its_cells_and_straight_in_between():
    table = np.random.default_rng(0).random((6, 9, 2))
    mean, noisy = LEAST_MEAN + 2 / MEAN_STEPS, LEAST_NOISY + 5 / NOISY_STEPS
    assert interpolate.py_func(table, mean, noisy) == pytest.approx(table[2, 5])
    halfway = interpolate.py_func(table, mean + 0.5 / MEAN_STEPS, noisy + 0.5 / NOISY_STEPS)
    assert halfway == pytest.approx(table[2:4, 5:7].mean(axis=(0, 1)))
    assert interpolate.py_func(table, -1e9, 1e9) == pytest.approx(table[0, -1], abs=1e-5)


#: A region with one town only, and one with three.
FEW = {"region": ["A", "B", "B", "B"], "town": ["1", "2", "3", "4"]}


@pytest.mark.parametrize("trips", [1, 2**40])
def test_releases_of_only_children_have_estimates_and_intervals(trips):
    """Whatever is below them was not measured, and is all theirs, however much that is."""
    trip = pa.table({"origin": ["1"], "destination": ["1"], "count": [trips]})
    release = inftda.release(
        trip, pa.table(FEW), epsilon=50, delta=1e-6,
        source=inftda.SeededSource(1), allow_large_delta=True,
    )  # fmt: skip
    (flow,) = release.flows(intervals=True).to_pylist()
    assert flow["low"] <= trips <= flow["high"]
    rows = inftda.estimate(release).flows().to_pylist()
    assert sum(row["estimate"] for row in rows) == trips
    largest = max(rows, key=lambda row: row["estimate"])
    assert (largest["origin"], largest["destination"]) == ("1", "1")


def test_factors_are_finite_where_a_clear_count_lies_below_a_node_estimated_as_zero(small_flows):
    """Much noise on coarse levels and little on fine ones can lead to that."""
    layer = _fit(small_flows, across=0.0).levels[-1].layer
    count = np.add.reduceat(layer.noisy, layer.offsets[:-1]).astype(float)
    child = np.flatnonzero(layer.noisy > PRIOR_FREE_SIGMAS * layer.sigma)[0]
    count[np.searchsorted(layer.offsets, child, side="right") - 1] = 0
    pairs, elsewhere = pairs_of(layer, {}, map), np.zeros(len(layer.level.child_offsets) - 1)
    shares = fit_shares(layer, pairs, count, elsewhere, map)
    assert np.isfinite(shares.area).all()
    assert np.isfinite(shares.same)
