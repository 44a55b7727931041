"""Intervals of sums that are no cell of any measured table: how often they hold the truth."""

import numpy as np
import pyarrow as pa
import pytest

import inftda
from inftda import SeededSource
from inftda.demo import make_country

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
        flows, options = FLOWS, {"across": 0} if request.param == "nothing across" else {}
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
