"""Intervals of sums that are no cell of any measured table: how often they hold the truth."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import inftda
from inftda import SeededSource
from inftda.demo import make_country
from inftda.noise.distribution import Noise
from inftda.publication.intervals import _Sums

N_SUMS, N_COUNTS = 50_000, 4


@pytest.mark.parametrize(
    "law",
    [Noise.laplace(Fraction(2)), Noise.laplace(Fraction(25, 3)), Noise(Fraction(30))],
    ids=str,
)
def test_the_variance_of_a_sum_is_that_of_its_noise(law):
    """Of 200,000 draws, summed by four.

    Their mean square has a relative standard deviation of sqrt((2 + k / 4) / 50,000), below 0.8 %,
    as the excess kurtosis k of one draw is at most 3.2 here. The limit of 5 % is more than six of
    these: a false alarm in fewer than 1e-8 of all seeds. A variance of b^2 in place of 2 b^2 is off
    by half, 60 deviations, and is found with any seed.
    """
    draws = np.empty(N_SUMS * N_COUNTS, np.int64)
    law.fill_rows(draws, SeededSource(11).bits(), np.zeros(1, np.int64), np.array([0, len(draws)]))
    sums = _Sums(N_SUMS)
    sums.add(np.repeat(np.arange(N_SUMS), N_COUNTS), draws, law)
    assert np.mean(sums.value**2) == pytest.approx(sums.variance[0], rel=0.05)
    assert (sums.variance == sums.variance[0]).all()


MODES = {"mode": ["bus", "car", "walk"]}


def by_mode(flows, seed=1):
    """The same flows by mode: short and small ones are rarely by bus."""
    random = np.random.default_rng(seed)
    count = flows.column("count").to_numpy()
    share = np.where(count[:, None] < 20, [0.05, 0.75, 0.2], [0.5, 0.3, 0.2])
    split = random.multinomial(count, share)
    columns = {
        name: np.repeat(flows.column(name).to_numpy(), 3) for name in ("origin", "destination")
    }
    table = {**columns, "mode": MODES["mode"] * len(count), "count": split.ravel()}
    return pa.table(table).filter(split.ravel() > 0)


COUNTRY = make_country((4, 16, 160), 300_000, seed=5)
FLOWS = COUNTRY.flows()
TOWNS = COUNTRY.areas.codes(3)
BUDGET = {"epsilon": 1, "delta": 1e-8}


@pytest.fixture(scope="module", params=["two axes", "nothing across", "by mode"])
def released(request):
    if request.param == "by mode":
        flows, options = by_mode(FLOWS), {"axis": {"mode": MODES}}
    else:
        flows, options = FLOWS, {"cross_tables": 0} if request.param == "nothing across" else {}
    made = [
        inftda.release(flows, COUNTRY.areas, **BUDGET, **options, source=SeededSource(seed))
        for seed in (1, 2)
    ]
    return flows, made


def zones_of(kind, n, seed):
    random = np.random.default_rng(seed)
    if kind == "random":
        zone = random.integers(0, n, len(TOWNS))
    else:
        cuts = random.choice(np.arange(1, len(TOWNS)), n - 1, replace=False)
        zone = np.searchsorted(np.sort(cuts), np.arange(len(TOWNS)), side="right")
    return pa.table({"municipality": TOWNS, "zone": [f"z{number}" for number in zone]})


def held(flows, release, zones, **levels):
    """Whether each interval holds the truth, which is summed up by hand."""
    found = release.flows(zones=zones, intervals=True, **levels)
    zone = dict(zip(*(zones.column(name).to_pylist() for name in zones.column_names), strict=True))
    shown = [name for name in ("origin", "destination", "mode") if name in found.column_names]
    truth = {}
    for row in flows.to_pylist():
        key = tuple(row[name] if name == "mode" else zone[row[name]] for name in shown)
        truth[key] = truth.get(key, 0) + row["count"]
    return [
        row["low"] <= truth.get(tuple(row[name] for name in shown), 0) <= row["high"]
        for row in found.to_pylist()
    ]


@pytest.mark.parametrize("kind", ["random", "contiguous"])
def test_intervals_of_zones_hold_the_truth(released, kind):
    flows, made = released
    every, totals = [], []
    for number, release in enumerate(made):
        for n in (4, 12, 40):
            zones = zones_of(kind, n, 10 * number + n)
            every += held(flows, release, zones)
            more = {"level": {"mode": "all"}} if "mode" in flows.column_names else {}
            totals += held(flows, release, zones, destination_level="all", **more)
    assert np.mean(every) >= 0.95
    assert np.mean(totals) >= 0.9, "of 112 numbers whose intervals are for 95 %"


def test_intervals_of_zones_are_not_much_wider_than_their_noise_asks_for():
    release = inftda.release(FLOWS, COUNTRY.areas, **BUDGET, source=SeededSource(3))
    zones = zones_of("random", 4, 1)
    found = release.flows(zones=zones, intervals=True)
    width = found.column("high").to_numpy() - found.column("low").to_numpy()
    sigma = release.manifest.plan.levels[-1].sigma
    pairs = (len(TOWNS) / 4) ** 2  # not all were measured
    assert width.mean() < 2 * 2.5 * sigma * np.sqrt(pairs)


def test_a_zone_that_is_an_area_has_the_interval_of_the_area():
    release = inftda.release(FLOWS, COUNTRY.areas, **BUDGET, source=SeededSource(3))
    above = COUNTRY.areas.codes(1).take(COUNTRY.areas.ancestor(3, 1))
    zones = pa.table({"municipality": TOWNS, "zone": above})
    for levels in ({}, {"destination_level": "all"}):
        own = release.flows("region", levels.get("destination_level", "region"), intervals=True)
        assert release.flows(zones=zones, intervals=True, **levels) == own


def test_sums_of_an_estimate_have_intervals_beside_its_release():
    release = inftda.release(FLOWS, COUNTRY.areas, **BUDGET, source=SeededSource(3))
    made, zones = inftda.estimate(release), zones_of("random", 6, 2)
    assert "low" not in made.flows(zones=zones).column_names
    found = made.flows(zones=zones, release=release).to_pylist()
    assert sum(row["estimate"] for row in found) == release.total
    assert all(row["low"] <= row["estimate"] <= row["high"] for row in found)
    assert made.flows(zones=zones, release=release, at_least="A", top=3).num_rows == 3


def by_kind(seed):
    """Flows by kind, of which the second group has one only."""
    kinds = {"group": ["x", "x", "y"], "kind": ["a", "b", "c"]}
    table = FLOWS.append_column("kind", [np.array(["a", "b", "c"])[np.arange(len(FLOWS)) % 3]])
    return inftda.release(
        table, COUNTRY.areas, axis={"kind": kinds}, **BUDGET, source=SeededSource(seed)
    )


@pytest.mark.parametrize("levels", [("region", "region"), ("all", "municipality"), ("all", "all")])
def test_a_number_has_one_interval_by_whatever_name_it_is_asked_for(levels):
    """Flows of kind c are those of group y: on the tree, in totals and in sums across it."""
    release = by_kind(1)
    found = [
        release.flows(*levels, level={"kind": level}, where={"kind": code}, intervals=True)
        for level, code in (("group", "group:y"), ("kind", "kind:c"), ("group", "kind:c"))
    ]
    shown = [one.drop_columns(["kind"]).to_pylist() for one in found]
    assert len(shown[0]) >= 1
    assert shown[0] == shown[1] == shown[2]


@pytest.mark.parametrize("zones", [None, {"municipality": TOWNS, "whole": ["all"] * len(TOWNS)}])
def test_a_noised_overall_total_has_the_interval_of_its_noise(zones):
    options = {"unit": inftda.Unit("add-remove"), "source": SeededSource(1)}
    release = inftda.release(FLOWS, COUNTRY.areas, **BUDGET, **options)
    total = release.measurements().tables[0]
    whole = {"zones": zones} if zones else {"level": {"origin": "all", "destination": "all"}}
    (row,) = release.flows(**whole, intervals=True).to_pylist()
    half = total.noise.half_width()
    assert (row["low"], row["high"]) == (total.value[0] - half, total.value[0] + half)
    assert row["grade"] == "A"
