"""Both engines read the same tables alike, and complain about bad ones in the same words."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="pyspark is missing: pip install 'inftda-od[spark]'")

from spark_leaves import collect

from inftda.errors import InftdaError
from inftda.hierarchy import Hierarchy
from inftda.noise.bits import SeededSource
from inftda.privacy.unit import Unit
from inftda.reading import Columns, read_leaves
from inftda.spark.reading import read_leaves as read_on_spark
from inftda.spark.session import settings
from inftda.tree import Axis
from leaf_counts import leaf_counts

TOWNS = Hierarchy.read({"region": ["N", "N", "S"], "town": ["1", "2", "03"]})
AXES = (Axis("origin", TOWNS), Axis("destination", TOWNS))
NOISED = Unit("add-remove")
ONE = Unit()


def flows(**columns):
    """Two good rows with some columns replaced."""
    return pa.table({"origin": ["1", "2"], "destination": ["2", "03"], **columns})


def read_both(spark, table, *, say=None, seed=1, axes=AXES, unit=ONE, **columns):
    """Leaves as a dictionary, or the message, by either engine.

    On Spark a table in memory is read as a frame: else both would be read by the same code.
    """
    frame = spark.createDataFrame(table) if isinstance(table, pa.Table) else table
    options = {"unit": unit, "random_source": SeededSource(seed), "say": say}
    return [
        _outcome(lambda: read_leaves(table, Columns(**columns), axes, **options)),
        _outcome(lambda: _collect(spark, frame, Columns(**columns), axes, options)),
    ]


def _outcome(read):
    try:
        return dict(leaf_counts(read()))
    except InftdaError as problem:
        return type(problem).__name__, str(problem)


def _collect(spark, source, columns, axes, options):
    with settings(spark):
        leaves = collect(read_on_spark(spark, source, columns, axes, **options), len(axes))
    assert {axis.dtype for axis in leaves.areas} == {np.dtype(np.int32)}
    assert leaves.counts.dtype == np.int64
    return leaves


COUNTS = {
    "integers": [0, 7, -2, None, 2**62],
    "small integers": pa.array([0, 6, -1, None], pa.int8()),
    "floats": [0.0, 2.0, 2.5, -1.0, -0.5, float("nan"), float("inf"), 1e300, 2.0**63, None],
    "exact decimals": [Decimal("3.00"), Decimal("3.01"), Decimal(-1), Decimal(2**70), None],
    "text": [
        "7", " 8 ", "+9", "1.00", "1.", "1.5", ".5", "-1", "-0.0", "1e3", "0x1F", "1_000", "x", "",
        " ", "nan", "-Inf", "9" * 30, str(2**63 - 1), str(2**63), "007", None,
    ],
}  # fmt: skip


@pytest.mark.parametrize("kind", COUNTS)
def test_counts_and_what_is_wrong_with_them_are_read_alike(spark, kind):
    """Every cell by itself: good ones are counted, and any other is refused in the same words."""
    cells = pa.array(COUNTS[kind])
    n = len(cells)
    areas = Hierarchy.read({"area": [str(i) for i in range(n)]})
    table = pa.table({"area": [str(i) for i in range(n)], "count": cells})
    alone = [read_leaves_of(table.slice(i, 1), areas) for i in range(n)]
    good = pa.array([isinstance(outcome, dict) for outcome in alone])
    local, cluster = read_both(spark, table.filter(good), axes=[Axis("area", areas)], unit=NOISED)
    assert (
        local
        == cluster
        == {cell: n for one in alone if isinstance(one, dict) for cell, n in one.items()}
    )
    local, cluster = read_both(spark, table, axes=[Axis("area", areas)], unit=NOISED)
    assert isinstance(local, tuple)
    assert cluster == local


def read_leaves_of(table, areas):
    return _outcome(lambda: read_leaves(table, Columns(), [Axis("area", areas)], unit=NOISED))


def persons(person, **columns):
    """Two good rows of persons."""
    return flows(person=person, **columns), {"person": "person"}


BAD = {
    "many unknown codes": (
        pa.table({"origin": [f"x{i}" for i in range(9)], "destination": [*"12345678", None]}), {}
    ),
    "a code without its zero": (flows(origin=["1", "3"]), {}),
    "dates as counts": (flows(count=[dt.date(2026, 1, 1)] * 2), {}),
    "decimals as codes": (flows(origin=[1.5, 2.0]), {}),
    "lists as codes": (flows(origin=[["1"], ["2"]]), {}),
    "exact decimals as codes": (flows(origin=[Decimal(1), Decimal(2)]), {}),
    "no such column": (pa.table({"Origin": ["1"], "destination": ["2"]}), {}),
    "no rows": (flows().slice(0, 0), {}),
    "a column like counts": (flows(Count=[3, 4]), {}),
    "only zeros": (flows(count=[0, 0]), {}),
    "counts beyond 2^63 in all": (flows(count=[2**62, 2**62 + 2**61]), {}),
    "counts beyond 2^43 in a leaf": (
        pa.table({"origin": ["1"] * 9, "destination": ["2"] * 9, "count": [2**63 - 1] * 9}), {}
    ),
    "a missing person": persons(["a", None]),
    "an empty person": persons(["a", ""]),
    "a person with two trips": persons(["a", "a"]),
    "a person with no trip": persons(["a", "b"], count=[1, 0]),
    "a person with many trips": persons(["a", "b"], count=[2**62, 1]),
    "decimals as persons": persons([1.5, 2.5]),
    "two roles": (flows(), {"person": "origin"}),
    "rows dropped from a public total": (flows(), {"unplaceable": "drop"}),
    "no area outside": (flows(), {"unplaceable": "outside"}),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_bad_tables_are_refused_in_the_same_words(spark, kind):
    table, options = BAD[kind]
    local, cluster = read_both(spark, table, **options)
    assert isinstance(local, tuple)
    assert cluster == local


@pytest.mark.parametrize(
    "text",
    ["anna@example.org,1,2,17\n", "origin,destination,Trips\n1,2,7\n", "home,work,count\n1,2,7\n"],
)
def test_bad_headers_are_refused_in_the_same_words(spark, tmp_path, text):
    (tmp_path / "flows.csv").write_text(text)
    local, cluster = read_both(spark, tmp_path / "flows.csv")
    assert isinstance(local, tuple)
    assert cluster == local
    assert "anna" not in local[1]


@pytest.mark.parametrize("count", ["auto", None])
def test_what_a_row_was_taken_for_is_said_in_the_same_words(spark, count):
    heard = []
    local, cluster = read_both(spark, flows(count=[3, 4]), count=count, say=heard.append)
    assert local == cluster
    assert len(heard) == 2
    assert heard[0] == heard[1]


def people(n_rows=3000, n_people=300):
    """Trips of people, some of whom make very many; some between unknown areas."""
    rng = np.random.default_rng(1)
    codes = np.array(["1", "2", "03", "x", "3"])
    count = rng.integers(0, 4, n_rows)
    count[:5] = [5000, 2**40, 2**62, 0, 7]
    return pa.table({
        "origin": codes[rng.integers(0, 5, n_rows)],
        "destination": codes[rng.integers(0, 4, n_rows)],
        "person": rng.integers(0, n_people, n_rows),
        "count": count,
    })  # fmt: skip


@pytest.mark.parametrize("kind", ["a file", "a folder", "CSV", "a view", "pandas"])
def test_equal_seeds_give_equal_leaves_from_every_kind_of_source(spark, tmp_path, kind):
    table = people()
    source = spark_source = tmp_path
    if kind == "a file":
        source = spark_source = tmp_path / "a.parquet"
        pq.write_table(table, source)
    elif kind == "a folder":
        for i in range(3):
            pq.write_table(table.slice(1000 * i, 1000), tmp_path / f"{i}.parquet")
    elif kind == "CSV":
        source = spark_source = tmp_path / "a.csv"
        pa_csv.write_csv(table, source)
    elif kind == "a view":
        spark.createDataFrame(table).repartition(7).createOrReplaceTempView("people")
        source, spark_source = table, "people"
    else:
        source = spark_source = pd.DataFrame(table.to_pydict()).astype({"origin": object})
    columns = Columns(person="person", unplaceable="drop")
    unit = Unit("add-remove", 2)
    options = {"unit": unit, "random_source": SeededSource(5), "say": None}
    local = _outcome(lambda: read_leaves(source, columns, AXES, **options))
    assert len(local) > 5
    assert _outcome(lambda: _collect(spark, spark_source, columns, AXES, options)) == local
    options["random_source"] = SeededSource(6)
    assert _outcome(lambda: read_leaves(source, columns, AXES, **options)) != local


def test_an_empty_table_is_read_where_the_total_is_not_public(spark):
    for table in (flows().slice(0, 0), flows(count=[0, 0])):
        assert read_both(spark, table, unit=NOISED) == [{}, {}]


def test_no_message_quotes_a_count_or_a_person(spark):
    table = flows(person=["Jane Doe", "Jane Doe"], count=["12345678901", "oops-987"])
    _, (_, message) = read_both(spark, table, person="person", unit=NOISED)
    for secret in ("Jane", "12345678901", "987"):
        assert secret not in message
