"""Marginal totals that are measured: published, read back, verified and asked for."""

import numpy as np
import pyarrow as pa
import pytest

from edited_folders import seal
from handmade_tables import totals_table
from inftda import SeededSource, estimate, release
from inftda.demo import make_country
from inftda.errors import ReleaseError
from inftda.publication.manifest import MEASUREMENTS_FILE
from inftda.publication.reliability import (
    describe_cross_totals,
    grades,
    listed_note,
    planned_totals,
)
from inftda.publication.totals import totals_by_level
from inftda.publication.verify import verify
from inftda.tree import Axis, Tree
from inftda.tree.hierarchy import Hierarchy

COUNTRY = make_country((3, 6, 24), 20_000, seed=3)
FLOWS, AREAS = COUNTRY.flows(), COUNTRY.areas
BUDGET = {"epsilon": 1, "delta": 1e-8}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("across") / "release"
    return release(FLOWS, AREAS, **BUDGET, cross_tables=0.08, measurements="totals", out=out)


@pytest.fixture
def folder(made, tmp_path):
    """A copy that may be damaged."""
    return made.save(tmp_path / "copy").table.parent


# The number that is published


def handmade(listed, measured, *, levels, sigma2=100):
    """Totals of the finest level, from what is listed there and measured at each level."""
    hierarchy = Hierarchy.read(levels)
    variance = sigma2 if isinstance(sigma2, dict) else dict.fromkeys(measured, sigma2)
    tables = {
        depth: totals_table(values, variance[depth], depth) for depth, values in measured.items()
    }
    return totals_by_level(Tree((Axis("origin", hierarchy),), ()), 0, np.array(listed), tables)


def test_a_sum_and_a_measurement_are_weighed_by_their_variances():
    """900 less 200, which may be noise, against 100: the measurement counts for seven eighths."""
    found = handmade([970, 1_030], {1: [1_000, 1_000]}, levels={"area": ["a", "b"]})[1]
    assert found.flow.tolist() == [996, 1_004]


def test_large_areas_whose_sums_are_bad_do_not_spoil_small_ones_that_are_good():
    listed = np.array([*range(100, 130), *range(5_000, 5_030)])
    apart = np.where(listed < 5_000, 20, 900) * (-1) ** np.arange(60)
    levels = {"area": [f"{number:02}" for number in range(60)]}
    found = handmade(listed, {1: listed + apart}, levels=levels, sigma2=400)[1]
    moved = np.abs(found.flow - listed)
    assert set(moved[:30].tolist()) <= {1, 2, 3}, "one eleventh of 20"
    assert moved[30:].min() > 895


def test_an_only_child_and_its_parent_follow_the_better_measurement():
    levels = {"region": list("AAB"), "town": list("xyz")}
    measured = {1: [5_000, 4_800], 2: [2_500, 2_600, 4_930]}
    sigma2 = {1: 10_000, 2: 100}
    found = handmade([2_450, 2_630, 4_930], measured, levels=levels, sigma2=sigma2)
    assert found[2].flow[2] == found[1].flow[1], "which both measurements agree with"


def test_plan_and_query_agree_on_an_only_child():
    """Totals of groups have more noise than those of kinds, also if a group has one kind."""
    kinds = {"group": ["x", "x", "x", "y"], "kind": list("abcd")}
    flows = COUNTRY.flows()
    kind = [kinds["kind"][number % 4] for number in range(len(flows))]
    table = flows.append_column("kind", [kind])
    made = release(table, AREAS, axis={"kind": kinds}, **BUDGET, source=SeededSource(4))
    number = [axis.name for axis in made.tree.axes].index("kind")
    noise = {
        table.depths[number]: law
        for table, law in planned_totals(made.tree, made.manifest.plan)
        if table.depths[number]
    }
    assert noise[2].sigma < 0.7 * noise[1].sigma, "or nothing is tried"
    half = noise[2].half_width()
    said = describe_cross_totals(made.tree, made.manifest.plan)
    assert f" kind \N{PLUS-MINUS SIGN}{half:,}" in said
    assert "kind kind" not in said, "the name of the axis is that of its level"
    for level, code in (("kind", "d"), ("group", "y")):
        (row,) = made.flows(
            "all", "all", where={"kind": f"{level}:{code}"}, intervals=True
        ).to_pylist()
        assert row["high"] - row["low"] == 2 * half


def test_totals_of_a_level_that_was_not_measured_are_sums_of_flows():
    """With delta 0 only the finest totals are measured, and say how far these sums are off."""
    levels = {"region": list("AAB"), "town": list("xyz")}
    found = handmade([240, 260, 500], {2: [300, 320, 380]}, levels=levels)
    assert [*found] == [1, 2]
    assert found[1].sigma is None
    assert found[1].flow.tolist() == [500, 500]
    assert found[1].flow.tolist() == [found[2].flow[:2].sum(), found[2].flow[2]]


def test_a_level_that_splits_nothing_has_the_totals_of_the_one_above():
    areas = {"region": list("AAB"), "same": list("xxy"), "town": list("123")}
    flows = pa.table({"origin": ["1", "3"], "destination": ["2", "2"], "count": [500, 700]})
    made = release(flows, areas, rho=0.1, cross_tables=0.08)
    region, same = (made.flows(level, "all", intervals=True) for level in ("region", "same"))
    assert region.drop_columns(["origin"]) == same.drop_columns(["origin"])
    assert same.column("origin").to_pylist() == ["x", "y"]


def test_an_axis_with_one_area_makes_no_difference_to_a_question():
    """Whoever asks for a whole country, or names it as a filter, asks for all of it."""
    areas = {"country": ["BE"] * 3, "town": list("123")}
    flows = pa.table({"origin": ["1", "3"], "destination": ["2", "2"], "count": [500, 700]})
    made = release(flows, areas, rho=0.1, cross_tables=0.08)
    expected = made.flows("town", "all", intervals=True)
    beside = made.flows("town", "country", to="BE", intervals=True)
    assert set(beside.column("destination").to_pylist()) == {"BE"}
    assert beside.drop_columns(["destination"]) == expected


def test_all_areas_with_a_total_are_rows_and_filters_keep_to_some():
    flows = pa.table({"origin": ["a"], "destination": ["b"], "count": [10_000]})
    made = release(flows, {"area": list("abc")}, rho=0.1, cross_tables=0.08, source=SeededSource(2))
    found = made.flows("area", "all").to_pylist()
    flow, listed = (made.totals_of("origin")[1][n] for n in (0, 1))
    assert {row["origin"]: row["flow"] for row in found} == {
        code: n for code, n, m in zip("abc", flow, listed, strict=True) if n or m
    }
    assert made.flows("area", "all", from_=["b", "c"]).column("flow").to_pylist() == [
        n for n, m in zip(flow[1:], listed[1:], strict=True) if n or m
    ]
    both = made.flows("all", "all", from_=["b", "c"]).to_pylist()
    assert both == [{"flow": flow[1:].sum(), "listed": listed[1:].sum()}]


def test_other_sums_are_sums_of_flows(made):
    for asked in (
        made.flows("province", "all", to="region:1"),
        made.flows("province", "region"),
        made.flows("all", "region"),
        made.flows("all", "all"),
    ):
        assert "listed" not in asked.column_names


@pytest.fixture(scope="module")
def sparse():
    """Every twentieth of 600 towns has three trips to each other one, which are all lost."""
    codes = np.array([f"{number:03}" for number in range(600)])
    hubs = np.repeat(codes[::20], 600)
    flows = {
        "origin": [*hubs, *codes],
        "destination": [*np.tile(codes, 30), *codes],
        "count": [3] * len(hubs) + [500] * 600,
    }
    areas = {"region": [code[0] for code in codes], "town": codes}
    made = release(pa.table(flows), areas, **BUDGET, source=SeededSource(1))
    true = 500 + 1_800 * np.isin(codes, hubs)
    return made, true


def error_of(found, true):
    return np.abs(found - true).mean()


def test_where_small_flows_are_lost_totals_are_far_better_than_sums_and_measurements(sparse):
    """Off by 79, 48 and 42; by a seed, so that it cannot fail by chance."""
    made, true = sparse
    totals = made.totals_of("origin")[2]
    error = error_of(totals.flow, true)
    assert error < 0.6 * error_of(totals.listed, true)
    assert error < 0.9 * error_of(made._totals[2, 0].value, true)


@pytest.mark.parametrize("seed", [1, 2])
def test_where_sums_are_good_totals_are_no_worse(seed):
    country = make_country((5, 25, 300), 250_000, seed=seed)
    made = release(country.flows(), country.areas, **BUDGET, source=SeededSource(seed))
    for axis, area in (("origin", country.origin), ("destination", country.destination)):
        true = np.bincount(area, country.count, minlength=300)
        totals = made.totals_of(axis)[3]
        assert error_of(totals.flow, true) < 1.02 * error_of(totals.listed, true)


def test_what_is_not_listed_is_said_where_it_is_more_than_noise(sparse):
    made, _ = sparse
    hub, other = (made.flows("all", "all", from_=code, intervals=True) for code in ("020", "021"))
    missing = hub.column("flow")[0].as_py() - hub.column("listed")[0].as_py()
    assert missing > 500
    assert listed_note(hub) == f"{missing:,} of these are in flows too small to be listed"
    assert listed_note(other) == ""
    every = listed_note(made.flows("town", "all", intervals=True))
    assert every.startswith("30 of these totals have a part in flows too small to be listed")


# Grades


@pytest.mark.parametrize(
    ("number", "low", "high", "grade"),
    [
        (100, 90, 110, "A"), (100, 100, 100, "A"), (100, 90, 111, "B"), (100, 75, 100, "B"),
        (100, 60, 150, "C"), (100, 49, 100, "D"), (100, 100, 151, "D"), (6, 0, 6, "D"),
        (0, 0, 0, "D"), (0, 0, 40, "D"), (2**61, 2**61, 2**61, "A"),
    ],
)  # fmt: skip
def test_a_grade_is_the_larger_half_of_the_interval_as_a_part_of_the_number(
    number, low, high, grade
):
    assert grades(*(np.array([one]) for one in (number, low, high))).to_pylist() == [grade]


def test_intervals_hold_the_flow_beside_them_and_the_largest_may_not_be_zero(sparse):
    made, _ = sparse
    n_extended = 0
    for origin, destination in (("town", "town"), ("region", "town"), ("town", "region")):
        found = made.flows(origin, destination, intervals=True)
        flow, low, high = (found.column(n).to_numpy() for n in ("flow", "low", "high"))
        assert ((low <= flow) & (flow <= high)).all()
        assert found.column("grade") == pa.chunked_array([grades(flow, low, high)])
        n_extended += np.count_nonzero((low == flow) | (high == flow))
        largest = made.flows(origin, destination, intervals=True, top=10**6)
        assert len(largest) == (low > 0).sum()
        assert (largest.column("low").to_numpy() > 0).all()
    assert n_extended > 10, "or nothing was tried"
    assert len(made.flows(top=10**6)) == made.manifest.n_flows, "without intervals all are listed"


def test_only_numbers_of_a_grade_or_better_are_shown_if_one_asks(sparse):
    made, _ = sparse
    estimated = estimate(made)
    shown = made.flows(intervals=True), estimated.flows()
    for table, every, options in zip(
        (made, estimated), shown, ({}, {"intervals": False}), strict=True
    ):
        for at_least in "ABCD":
            wanted = [row for row in every.to_pylist() if row["grade"] <= at_least]
            assert table.flows(at_least=at_least, **options).to_pylist() == wanted
    with pytest.raises(ReleaseError, match="one of A, B, C, D, got 'E'"):
        made.flows(at_least="E")
    with pytest.raises(ReleaseError, match="only beside their release"):
        estimated.flows("all", at_least="B")


# Releases without


def test_a_release_with_little_noise_says_that_nothing_is_measured_across():
    made = release(FLOWS, AREAS, epsilon=200, delta=1e-8, cross_tables=0.08)
    assert not made.has_totals
    assert "listed" not in made.flows("region", "all").column_names
    assert made.manifest.guarantee.cross_table_share == "2/25"
    assert made.manifest.guarantee.cross_tables == ()


def test_totals_across_are_about_half_as_far_off():
    """On a made-up country; what is gained on real tables is measured by experiments.

    The ratio of the errors is 0.48 on average, and its standard deviation over seeds is 0.04. That
    of six seeds is above 0.56 by chance in fewer than one of a million choices of seeds.
    """
    country = make_country((5, 30, 300), 400_000, seed=1)
    flows, true, errors = country.flows(), {}, {0: 0, 0.08: 0}
    for area, count in zip(
        *(flows.column(c).to_pylist() for c in ("origin", "count")), strict=True
    ):
        true[area] = true.get(area, 0) + count
    for seed in range(1, 7):
        for across in errors:
            source = SeededSource(seed)
            made = release(flows, country.areas, **BUDGET, cross_tables=across, source=source)
            sums = made.flows("municipality", "all").to_pylist()
            found = {row["origin"]: row["flow"] for row in sums}
            errors[across] += sum(abs(found.get(area, 0) - true[area]) for area in true)
    assert errors[0.08] < 0.56 * errors[0]


# The folder


def test_totals_must_be_there_if_they_were_measured_and_only_then(folder, tmp_path):
    plain = tmp_path / "plain"
    release(FLOWS, AREAS, **BUDGET, cross_tables=0, measurements="totals", out=plain)
    (folder / MEASUREMENTS_FILE).rename(plain / MEASUREMENTS_FILE)
    with pytest.raises(ReleaseError, match=f"no {MEASUREMENTS_FILE}"):
        list(verify(folder))
    with pytest.raises(ReleaseError, match="is not part of the release"):
        list(verify(plain))
    seal(plain, measurements="totals")
    with pytest.raises(ReleaseError, match="were not accounted for"):
        list(verify(plain))
