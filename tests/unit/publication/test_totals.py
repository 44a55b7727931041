"""Totals that are measured across the tree: published, read back, verified and asked for."""

import json

import numpy as np
import pyarrow as pa
import pytest

from inftda import SeededSource, release
from inftda.demo import make_country
from inftda.errors import ReleaseError
from inftda.noise.quantiles import half_width
from inftda.publication.manifest import MEASUREMENTS_FILE, digest
from inftda.publication.trust import planned_totals
from inftda.publication.verify import verify

COUNTRY = make_country((3, 6, 24), 20_000, seed=3)
FLOWS, AREAS = COUNTRY.flows(), COUNTRY.areas
BUDGET = {"epsilon": 1, "delta": 1e-8}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("across") / "release"
    return release(FLOWS, AREAS, **BUDGET, across=0.08, measurements="totals", out=out)


@pytest.fixture
def folder(made, tmp_path):
    """A copy that may be damaged."""
    return made.save(tmp_path / "copy").table.parent


def true_totals(axis, level):
    depth = AREAS.level_of(level)
    number = AREAS.find(3, FLOWS.column(axis).to_pylist())
    sums = np.zeros(AREAS.n_areas(depth), np.int64)
    np.add.at(sums, AREAS.ancestor(3, depth)[number], FLOWS.column("count").to_numpy())
    return sums


def totals(made):
    """Axis, level and values of all measured totals."""
    return {
        (axis.name, axis.hierarchy.level_name(depth)): table.value.tolist()
        for table in made._totals.values()
        for axis, depth in zip(made.tree.axes, table.depths, strict=True)
        if depth
    }


def test_every_one_way_table_off_the_tree_is_published(made):
    found = totals(made)
    assert {key: len(values) for key, values in found.items()} == {
        ("origin", "region"): 3,
        ("origin", "province"): 6,
        ("origin", "municipality"): 24,
        ("destination", "province"): 6,
        ("destination", "municipality"): 24,
    }, "destination regions are the first level of the tree"


def test_totals_are_the_truth_with_the_noise_that_is_stated(made):
    planned = planned_totals(made.tree, made.manifest.plan)
    assert len(planned) == 5
    for table, sigma in planned:
        axis = made.tree.axes[table.level.axis].name
        level = AREAS.level_name(table.depths[table.level.axis])
        found = made.total_intervals(axis, level)
        assert set(found.column("sigma").to_pylist()) == {sigma}
        error = found.column("measured").to_numpy() - true_totals(axis, level)
        assert np.abs(error).max() < 6 * sigma
        assert np.abs(error).max() > sigma / 10, "and not without noise"


def test_intervals_follow_from_measurement_and_released_sum(made):
    found = made.total_intervals("origin", "province")
    sums = made.flows("province", "all")
    released = dict(zip(*(sums.column(c).to_pylist() for c in ("origin", "flow")), strict=True))
    assert found.column("area").to_pylist() == AREAS.codes(2).to_pylist()
    for row in found.to_pylist():
        half = half_width(row["sigma"])
        assert row["released"] == released.get(row["area"], 0)
        assert row["low"] == max(0, row["measured"] - half)
        assert row["high"] == max(0, row["measured"] + half)
        assert row["max_error"] == abs(row["released"] - row["measured"]) + half


def test_an_area_without_flows_has_a_released_sum_of_zero():
    flows = pa.table({"origin": ["a"], "destination": ["b"], "count": [10_000]})
    made = release(flows, {"area": list("abc")}, rho=0.1, across=0.08)
    found = made.total_intervals("origin", "area").to_pylist()
    assert [row["area"] for row in found] == list("abc")
    assert sum(row["released"] for row in found) == 10_000
    assert min(row["low"] for row in found) >= 0


def test_a_level_that_splits_nothing_has_the_totals_of_the_one_above():
    areas = {"region": list("AAB"), "same": list("xxy"), "town": list("123")}
    flows = pa.table({"origin": ["1", "3"], "destination": ["2", "2"], "count": [500, 700]})
    made = release(flows, areas, rho=0.1, across=0.08)
    region, same = (made.total_intervals("origin", level) for level in ("region", "same"))
    assert region.column("measured") == same.column("measured")
    assert same.column("area").to_pylist() == ["x", "y"]


@pytest.mark.parametrize(
    ("axis", "level"),
    [("origin", "street"), ("mode", "region"), ("destination", "region"), ("origin", "all")],
)
def test_totals_that_were_not_measured_are_refused(made, axis, level):
    with pytest.raises(ReleaseError):
        made.total_intervals(axis, level)


def test_without_across_there_are_none(tmp_path):
    plain = release(FLOWS, AREAS, **BUDGET, across=0, measurements="totals", out=tmp_path / "plain")
    assert not plain.has_totals
    assert not (tmp_path / "plain" / MEASUREMENTS_FILE).exists()
    assert plain.manifest.measurements == "none"
    with pytest.raises(ReleaseError, match="across"):
        plain.total_intervals("origin", "region")


def test_a_release_with_little_noise_says_that_nothing_is_measured_across():
    made = release(FLOWS, AREAS, epsilon=200, delta=1e-8, across=0.08)
    assert not made.has_totals
    assert made.manifest.guarantee["across"] == "2/25"
    assert made.manifest.guarantee["tables"] == []


def test_a_release_in_memory_has_them_too(tmp_path):
    made = release(FLOWS, AREAS, **BUDGET, across=0.08, measurements="totals")
    saved = made.save(tmp_path / "saved")
    assert totals(saved) == totals(made)
    assert "measured totals are those of every area" in " ".join(verify(tmp_path / "saved"))


def test_sums_across_are_less_than_half_as_far_off():
    """On a made-up country; what is gained on real tables is measured by experiments."""
    country = make_country((5, 30, 300), 400_000, seed=1)
    flows, true, errors = country.flows(), {}, {}
    for area, count in zip(
        *(flows.column(c).to_pylist() for c in ("origin", "count")), strict=True
    ):
        true[area] = true.get(area, 0) + count
    for across in (0, 0.08):
        source = SeededSource(7)
        made = release(flows, country.areas, **BUDGET, across=across, source=source)
        sums = made.flows("municipality", "all").to_pylist()
        found = {row["origin"]: row["flow"] for row in sums}
        errors[across] = sum(abs(found.get(area, 0) - true[area]) for area in true)
    assert errors[0.08] < 0.5 * errors[0]


# The folder


def test_a_release_with_totals_is_verified_and_replaced(folder):
    assert list(verify(folder))
    release(FLOWS, AREAS, **BUDGET, across=0, measurements="totals", out=folder, force=True)
    assert not (folder / MEASUREMENTS_FILE).exists(), "what replaces it has none"
    (folder / MEASUREMENTS_FILE).write_text("somebody's notes")
    with pytest.raises(ReleaseError, match=MEASUREMENTS_FILE):
        release(FLOWS, AREAS, **BUDGET, across=0, measurements="totals", out=folder, force=True)


def restate(folder, **changes):
    file = folder / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes, indent=2) + "\n")


def test_totals_must_be_there_if_they_were_measured_and_only_then(folder, tmp_path):
    plain = tmp_path / "plain"
    release(FLOWS, AREAS, **BUDGET, across=0, measurements="totals", out=plain)
    (folder / MEASUREMENTS_FILE).rename(plain / MEASUREMENTS_FILE)
    with pytest.raises(ReleaseError, match=f"no {MEASUREMENTS_FILE}"):
        list(verify(folder))
    with pytest.raises(ReleaseError, match="is not part of the release"):
        list(verify(plain))
    restate(plain, measurements="totals", measurements_sha256=digest(plain / MEASUREMENTS_FILE))
    with pytest.raises(ReleaseError, match="were not accounted for"):
        list(verify(plain))
