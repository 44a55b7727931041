"""A release by Spark is the release by one machine, to the bit.

So whatever holds of the one (`tests/unit/test_publish.py` and its neighbours) holds of the other.
"""

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="pyspark is missing: pip install 'inftda-od[spark]'")


from inftda.demo import make_country
from inftda.noise.bits import SeededSource
from inftda.pipeline import release
from inftda.privacy.unit import Unit
from inftda.publication.verify import verify
from inftda.reading import Columns
from inftda.spark import SparkEngine

BUDGET = {"epsilon": 1, "delta": 1e-8}

COUNTRY = make_country((3, 6, 24), 5_000, seed=3)
FLOWS = COUNTRY.flows()
RANDOM = np.random.default_rng(5)
#: A trivial level, only children, and branches of different depth; short axes beside it, which
#: refine one area each, so that their groups hold all there is.
AXES = {
    "disease": {
        "chapter": ["A", "A", "B", "C", "C", "C"],
        "block": ["A", "A", "B", "C", "C", "C"],
        "disease": ["A1", "A2", "B1", "C1", "C2", "C3"],
    },
    "sex": {"sex": ["f", "m"]},
    "age": {"age": ["young", "old"]},
}
PATIENTS = pa.table({name: RANDOM.choice(axis[name], 300) for name, axis in AXES.items()})
#: Some of them make many trips, some of them between unknown places.
PEOPLE = pa.table(
    {name: RANDOM.choice(["1", "2", "3", "x"], 400) for name in ("origin", "destination")}
    | {"person": RANDOM.integers(0, 90, 400)}
)
TOWNS = {"town": ["1", "2", "3"]}
ENDS = [f"{end}_{degrees}" for end in ("from", "to") for degrees in ("lon", "lat")]
POINTS = pa.table(
    {name: RANDOM.uniform(40, 44, 300).round(6) for name in ENDS}
    | {"at": [f"2026-05-{day:02} 0{day % 10}:30:00" for day in RANDOM.integers(1, 29, 300)]}
)
CORNERS = [(x, y) for x in range(40, 44) for y in range(40, 44)]
ZONES = {
    "side": ["west" if x < 42 else "east" for x, _ in CORNERS],
    "zone": [f"{x}-{y}" for x, y in CORNERS],
    "wkt": [
        f"POLYGON (({x} {y}, {x + 1} {y}, {x + 1} {y + 1}, {x} {y + 1}, {x} {y}))"
        for x, y in CORNERS
    ],
}
NOBODY = FLOWS.slice(0, 1).set_column(2, "count", pa.array([0]))


def capital():
    """Eleven regions; half of all trips are within the first, so in one group and one task."""
    towns = {"region": np.repeat(np.arange(11), [100, *[10] * 10]).astype(str)}
    towns["town"] = [f"{i:03d}" for i in range(200)]
    ends = [np.concatenate([RANDOM.integers(0, most, 10_000) for most in (100, 200)]) for _ in "od"]
    origin, destination = (pa.array(towns["town"]).take(pa.array(end)) for end in ends)
    return pa.table({"origin": origin, "destination": destination}), towns


NOISED = Unit("add-remove")
CASES = {
    "a public total": (FLOWS, COUNTRY.areas, {}),
    "without cross tables": (FLOWS, COUNTRY.areas, {"cross_tables": 0}),
    "delta 0": (FLOWS, COUNTRY.areas, {"delta": 0}),
    "a noised total": (FLOWS, COUNTRY.areas, {"unit": Unit("add-remove", 3)}),
    "the origin first": (
        FLOWS, COUNTRY.areas,
        {"unit": Unit(trips=2, exactly=False), "order": ("origin", "destination")},
    ),
    "distinct trips": (
        FLOWS, COUNTRY.areas,
        {"unit": Unit("add-remove", 2, distinct=True), "split": range(1, 8)},
    ),
    "another table": (PATIENTS, None, {"axis": AXES, "cross_tables": 0.1}),
    "another table, noised": (PATIENTS, None, {"axis": AXES, "unit": NOISED}),
    "points and times": (
        POINTS, ZONES,
        {"columns": Columns(origin=ENDS[:2], destination=ENDS[2:], hour="at")},
    ),
    "persons, others dropped": (PEOPLE, TOWNS, {
        "columns": Columns(person="person", unplaceable="drop"), "unit": Unit("add-remove", 3),
    }),
    "persons, others outside": (
        PEOPLE, TOWNS, {
            "columns": Columns(person="person", unplaceable="outside"),
            "unit": Unit("add-remove", 2, distinct=True),
        },
    ),
    "a lopsided table": (*capital(), {}),
    "an empty table": (NOBODY, COUNTRY.areas, {"unit": NOISED}),
    # With a seed that draws a negative total.
    "nothing survives": (
        NOBODY, COUNTRY.areas,
        {"unit": NOISED, "rho": "1/1000000", "epsilon": None, "delta": None},
    ),
}  # fmt: skip
#: Those of every push: between them all ways to read, and tables of every kind.
SOON = {"another table", "points and times", "persons, others outside", "nothing survives"}


@pytest.mark.parametrize(
    "case", [pytest.param(name, marks=[pytest.mark.nightly] * (name not in SOON)) for name in CASES]
)
def test_equal_seeds_give_equal_folders_on_any_number_of_tasks(spark, tmp_path, case):
    table, areas, options = CASES[case]
    options = {**BUDGET, "source": SeededSource(1), **options}
    alone = release(table, areas, out=tmp_path / "alone", **options)
    if case == "nothing survives":
        assert alone.total == 0
    # A frame is read by the executors, a table in memory by the driver.
    for source, tasks, nodes in ((spark.createDataFrame(table), 3, 3), (table, 7, 200)):
        out = tmp_path / f"{tasks} tasks"
        engine = SparkEngine(spark, tasks=tasks, driver_nodes=nodes)
        release(source, areas, out=out, engine=engine, **options)
        assert _contents(out) == _contents(tmp_path / "alone")


def _contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("table", [FLOWS, NOBODY], ids=["flows", "nobody"])
def test_a_private_release_verifies_whatever_the_table(spark, tmp_path, table):
    engine = SparkEngine(spark, tasks=4, driver_nodes=20)
    options = {"unit": NOISED, "engine": engine, **BUDGET}
    made = release(table, COUNTRY.areas, out=tmp_path / "out", **options)
    assert made.manifest.private
    assert len(list(verify(tmp_path / "out"))) > 5


def test_two_releases_differ_and_say_what_one_machine_says(spark, tmp_path):
    """From secure bits, and without the noisy counts."""
    engine = SparkEngine(spark, tasks=4, driver_nodes=20)
    made = [
        release(FLOWS, COUNTRY.areas, out=tmp_path / name, engine=where, **BUDGET)
        for name, where in (("a", engine), ("b", engine), ("c", "local"))
    ]
    assert not made[0].flows().equals(made[1].flows())
    assert made[0].total == 5_000
    said = [one.manifest.to_dict() for one in made]
    for stated in said:
        assert stated["private"]
        for chance in ("n_flows", "division_seed", "files"):
            assert stated.pop(chance)
    assert said[0] == said[2]
