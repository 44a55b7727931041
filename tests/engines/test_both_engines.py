"""What every engine must do, whatever the mechanism: one suite for one machine and for Spark."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="pyspark is missing: pip install 'inftda[spark]'")


from inftda.demo import make_country
from inftda.estimates import estimate
from inftda.noise.bits import SeededSource
from inftda.publication.verify import verify
from inftda.spark import SparkEngine

BUDGET = {"epsilon": 1, "delta": 1e-8}
#: So strong that a draw differs from 0 with odds below 1e-10.
NO_NOISE = {"rho": 3000, "source": SeededSource(1)}

COUNTRY = make_country((3, 6, 24), 5_000, seed=3)
FLOWS = COUNTRY.flows()
#: A trivial level, only children, and branches of different depth.
DISEASES = {
    "chapter": ["A", "A", "B", "C", "C", "C"],
    "block": ["A", "A", "B", "C", "C", "C"],
    "disease": ["A1", "A2", "B1", "C1", "C2", "C3"],
}
SEXES, AGES = {"sex": ["f", "m"]}, {"age": ["young", "old"]}


def cells_in(table, *names, count="count"):
    """Cell to count, zeros left out."""
    columns = [table.column(name).to_pylist() for name in (*names, count)]
    return {tuple(cell): n for *cell, n in zip(*columns, strict=True) if n}


def patients():
    """300 made-up people, counted."""
    random = np.random.default_rng(5)
    codes = {"disease": DISEASES["disease"], **SEXES, **AGES}
    people = pa.table({name: random.choice(choice, 300) for name, choice in codes.items()})
    counted = people.group_by(list(codes)).aggregate([([], "count_all")])
    return counted.rename_columns([*codes, "count"])


@pytest.mark.parametrize(
    ("neighbours", "options"),
    [
        ("substitute", {}),
        pytest.param(
            "substitute", {"tree": "origin", "trips": 2, "exactly": False}, marks=pytest.mark.slow
        ),
        ("add-remove", {"trips": 2, "distinct": True}),
    ],
)
def test_with_next_to_no_noise_the_release_is_the_truth(engine, publish, neighbours, options):
    made, cells = publish(
        FLOWS, areas=COUNTRY.areas, engine=engine, neighbours=neighbours, **options, **NO_NOISE
    )
    assert cells == cells_in(FLOWS, "origin", "destination")
    assert made.total == 5_000


def test_a_table_with_other_axes_is_released_likewise(engine, publish):
    table = patients()
    axes = {"disease": DISEASES, "sex": SEXES, "age": AGES}
    made, cells = publish(table, axes=axes, engine=engine, **NO_NOISE)
    assert cells == cells_in(table, "disease", "sex", "age")
    assert [level["index"] for level in made.manifest.guarantee["levels"]] == [1, 3, 4, 5]


def test_origins_and_destinations_may_have_different_areas(engine, publish):
    flows = pa.table(
        {"origin": ["1", "1", "2"], "destination": ["x", "y", "y"], "count": [3, 40, 500]}
    )
    _, cells = publish(
        flows,
        origin_areas={"town": ["1", "2", "3"]},
        destination_areas={"region": ["p", "p", "q"], "place": ["x", "y", "z"]},
        engine=engine,
        **NO_NOISE,
    )
    assert cells == {("1", "x"): 3, ("1", "y"): 40, ("2", "y"): 500}


def test_a_top_down_release_is_positive_whole_complete_and_verifies(engine, publish):
    made, cells = publish(FLOWS, areas=COUNTRY.areas, engine=engine, **BUDGET)
    assert all(flow > 0 for flow in cells.values())
    assert sum(cells.values()) == made.total == 5_000
    assert cells != cells_in(FLOWS, "origin", "destination"), "there is noise in it"
    assert len(list(verify(made.table.parent))) > 5
    assert made.manifest.private


def test_a_noised_total_is_what_the_leaves_sum_to(engine, publish):
    made, cells = publish(
        FLOWS, areas=COUNTRY.areas, engine=engine, neighbours="add-remove", **BUDGET
    )
    assert sum(cells.values()) == made.total > 0
    assert made.manifest.guarantee["levels"][0]["index"] == 0
    list(verify(made.table.parent))


def test_noise_so_large_that_nothing_survives_gives_an_empty_release_that_verifies(engine, publish):
    flows = pa.table({"origin": ["001"], "destination": ["001"], "count": [1]})
    made, cells = publish(
        flows,
        areas={"town": ["001", "002"]},
        engine=engine,
        neighbours="add-remove",
        rho="1/1000000",
        source=SeededSource(1),  # one that draws a negative total
    )
    assert made.total == 0
    assert cells == {}


def test_an_empty_table_is_released_like_any_other_where_the_total_is_not_public(engine, publish):
    """An error would tell it from a table with one person in it."""
    codes = COUNTRY.areas.codes(COUNTRY.areas.depth).to_pylist()[:1]
    nobody = pa.table({"origin": codes, "destination": codes, "count": [0]})
    made, cells = publish(
        nobody, areas=COUNTRY.areas, engine=engine, neighbours="add-remove", **BUDGET
    )
    assert sum(cells.values()) == made.total >= 0
    list(verify(made.table.parent))


UNITS = [
    {},
    {"neighbours": "add-remove", "trips": 3},
    {"trips": 2, "exactly": False, "tree": "origin"},
    {"neighbours": "add-remove", "trips": 2, "distinct": True, "split": "geometric:1.3"},
]


@pytest.mark.parametrize("across", [pytest.param(0, marks=pytest.mark.nightly), 0.08])
@pytest.mark.parametrize("options", UNITS)
def test_equal_seeds_give_equal_releases_on_both_engines(spark, publish, options, across):
    """To the bit, on any number of tasks, and with all noisy values."""
    options = {**BUDGET, **options, "source": SeededSource(9), "across": across}
    _, without = publish(FLOWS, areas=COUNTRY.areas, **options)
    alone, here = publish(FLOWS, areas=COUNTRY.areas, measurements=True, **options)
    assert here == without, "measurements change no flow"
    for tasks, nodes in ((3, 20), (7, 200)):
        engine = SparkEngine(spark, tasks=tasks, driver_nodes=nodes)
        made, there = publish(
            FLOWS, areas=COUNTRY.areas, measurements=True, engine=engine, **options
        )
        assert there == here
        assert made.table.read_bytes() == alone.table.read_bytes()
        assert made.measured.read_bytes() == alone.measured.read_bytes()


@pytest.mark.nightly
@pytest.mark.parametrize("tree", ["destination", "origin"])
def test_an_estimate_of_a_release_by_spark_is_that_of_one_by_one_machine(spark, publish, tree):
    options = {**BUDGET, "areas": COUNTRY.areas, "tree": tree, "source": SeededSource(9)}
    engine = SparkEngine(spark, tasks=3, driver_nodes=20)
    here, _ = publish(FLOWS, measurements=True, **options)
    there, _ = publish(FLOWS, measurements=True, engine=engine, **options)
    one, other = (estimate(made).table for made in (here, there))
    assert other.equals(one)
    for levels in (("region", "region"), (None, None)):
        assert there.flows(*levels, intervals=True).equals(here.flows(*levels, intervals=True))


def test_a_release_with_totals_across_is_complete_and_verifies(engine, publish):
    made, cells = publish(
        FLOWS, areas=COUNTRY.areas, engine=engine, across=0.08, measurements=True, **BUDGET
    )
    assert sum(cells.values()) == made.total == 5_000
    assert len(list(verify(made.table.parent))) > 5
    assert totals_of(made)


def totals_of(made):
    return pq.read_table(made.table.parent / "measurements.parquet").to_pylist()


@pytest.mark.parametrize("options", [{}, {"neighbours": "add-remove"}])
def test_totals_of_short_axes_are_the_same_on_both_engines(spark, publish, options):
    """The sexes and ages refine one area each, so their groups hold all there is."""
    options = {
        "axes": {"disease": DISEASES, "sex": SEXES, "age": AGES}, "across": 0.1,
        "source": SeededSource(4), "epsilon": 1, "delta": 1e-8, **options,
    }  # fmt: skip
    one, alone = publish(patients(), **options)
    engine = SparkEngine(spark, tasks=3, driver_nodes=3)
    other, together = publish(patients(), engine=engine, **options)
    assert together == alone
    assert totals_of(other) == totals_of(one) != []


def test_trips_by_points_and_time_stamps_are_the_same_on_both_engines(spark, publish):
    random = np.random.default_rng(6)
    ends = [f"{end}_{degrees}" for end in ("from", "to") for degrees in ("lon", "lat")]
    trips = pa.table(
        {name: random.uniform(40, 44, 300).round(6) for name in ends}
        | {"at": [f"2026-05-{day:02} 0{day % 10}:30:00" for day in random.integers(1, 29, 300)]}
    )
    corners = [(x, y) for x in range(40, 44) for y in range(40, 44)]
    zones = {
        "side": ["west" if x < 42 else "east" for x, _ in corners],
        "zone": [f"{x}-{y}" for x, y in corners],
        "wkt": [
            f"POLYGON (({x} {y}, {x + 1} {y}, {x + 1} {y + 1}, {x} {y + 1}, {x} {y}))"
            for x, y in corners
        ],
    }
    options = {
        "areas": zones, "origin_point": tuple(ends[:2]), "destination_point": tuple(ends[2:]),
        "hour_of": "at", "source": SeededSource(8), **BUDGET,
    }  # fmt: skip
    one, alone = publish(trips, **options)
    other, together = publish(trips, engine=SparkEngine(spark, tasks=3, driver_nodes=3), **options)
    assert together == alone
    assert other.total == one.total == 300


def test_a_seeded_release_repeats_and_is_not_private(engine, publish):
    twice = [
        publish(FLOWS, areas=COUNTRY.areas, engine=engine, source=SeededSource(7), **BUDGET)
        for _ in range(2)
    ]
    assert twice[0][1] == twice[1][1]
    assert not twice[0][0].manifest.private


PEOPLE = pa.table(
    {
        "person": ["a", "a", "a", "b", "c", "c"],
        "origin": ["1", "1", "2", "3", "2", "2"],
        "destination": ["1", "1", "3", "3", "1", "1"],
    }
)
TOWNS = {"town": ["1", "2", "3"]}


@pytest.mark.parametrize(
    ("trips", "distinct", "total"), [(2, False, 5), (2, True, 4), (3, False, 6)]
)
def test_nobody_has_more_trips_than_the_unit_says(engine, publish, trips, distinct, total):
    made, cells = publish(
        PEOPLE, areas=TOWNS, engine=engine, person="person", trips=trips, distinct=distinct,
        neighbours="add-remove", **NO_NOISE,
    )  # fmt: skip
    assert made.total == total
    true = {("1", "1"): 2, ("2", "3"): 1, ("3", "3"): 1, ("2", "1"): 2}
    assert all(flow <= true[cell] for cell, flow in cells.items())
    assert cells["3", "3"] == 1, "a person with few trips keeps them"
    if distinct:
        assert max(cells.values()) == 1


def test_which_trips_are_kept_is_a_matter_of_chance(engine, publish):
    """One of two trips of each of 200 persons: neither all first ones nor all last ones."""
    n = 200
    people = pa.table(
        {
            "person": [str(i) for i in range(n)] * 2,
            "origin": ["1"] * 2 * n,
            "destination": ["1"] * n + ["2"] * n,
        }
    )
    _, cells = publish(
        people, areas=TOWNS, engine=engine, person="person", neighbours="add-remove", **NO_NOISE
    )
    assert sum(cells.values()) == n
    # 200 fair coins are outside 50..150 with odds of 1e-12.
    assert 50 < cells["1", "1"] < 150


def test_rows_that_cannot_be_placed_go_outside_or_are_dropped(engine, publish):
    flows = pa.table(
        {"origin": ["1", "9", None], "destination": ["2", "2", "3"], "count": [5, 70, 900]}
    )
    _, outside = publish(flows, areas=TOWNS, engine=engine, unplaceable="outside", **NO_NOISE)
    assert outside == {("1", "2"): 5, ("outside", "2"): 70, ("outside", "3"): 900}
    _, dropped = publish(
        flows, areas=TOWNS, engine=engine, unplaceable="drop", neighbours="add-remove", **NO_NOISE
    )
    assert dropped == {("1", "2"): 5}


def test_two_releases_differ_and_their_manifests_say_what_the_other_engine_says(engine, publish):
    twice = [publish(FLOWS, areas=COUNTRY.areas, engine=engine, **BUDGET) for _ in range(2)]
    assert twice[0][1] != twice[1][1]
    said, expected = (
        made.manifest.to_dict()
        for made in (twice[0][0], publish(FLOWS, areas=COUNTRY.areas, **BUDGET)[0])
    )
    for stated in (said, expected):
        assert stated.pop("n_flows") > 0
    for digest in ("seed", "flows_sha256", "measurements_sha256"):
        assert said.pop(digest) != expected.pop(digest)
    assert said == expected
