"""Both engines read the same tables alike, and complain about bad ones in the same words."""

import datetime as dt
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="pyspark is missing: pip install 'inftda[spark]'")

from inftda.engines.spark.columns import count_value
from inftda.engines.spark.leaves import read_leaves as read_on_spark
from inftda.engines.spark.session import settings
from inftda.engines.spark.table import open_table
from inftda.errors import InftdaError
from inftda.hierarchy import Hierarchy
from inftda.ingest import Leaves, read_leaves
from inftda.ingest.columns import count_value as count_in_duckdb
from inftda.ingest.sources import Column
from inftda.noise.entropy import SeededSource
from inftda.privacy.unit import PrivacyUnit

TOWNS = Hierarchy.read({"region": ["N", "N", "S"], "town": ["1", "2", "03"]})
AXES = [("origin", TOWNS), ("destination", TOWNS)]
SOURCE = SeededSource(1)


def flows(**columns):
    """Two good rows with some columns replaced."""
    return pa.table({"origin": ["1", "2"], "destination": ["2", "03"], **columns})


def read_both(spark, table, *, axes=AXES, count="auto", person=None, unit=None, **options):
    """Leaves as a dictionary, or the message, by either engine."""
    options = {
        "count": count,
        "person": person,
        "unit": unit or PrivacyUnit(),
        "unplaceable": "error",
        "random_source": SOURCE,
        **options,
    }
    return [
        _outcome(lambda: read_leaves(table, axes, **options)),
        _outcome(lambda: _collect(spark, table, axes, options)),
    ]


def _outcome(read):
    try:
        leaves = read()
    except InftdaError as problem:
        return type(problem).__name__, str(problem)
    cells = zip(*(axis.tolist() for axis in leaves.areas), strict=True)
    return dict(zip(cells, leaves.counts.tolist(), strict=True))


def _collect(spark, table, axes, options):
    with settings(spark):
        leaves = read_on_spark(spark, table, axes, **options)
        try:
            *areas, counts = (column.to_numpy() for column in leaves.frame.toArrow().columns)
        finally:
            leaves.close()
    return Leaves(tuple(areas), counts)


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
    table = pa.table({"count": COUNTS[kind]})
    local = duckdb.from_arrow(table)
    column = Column("count", '"count"', str(local.types[0]))
    expected = local.project(", ".join(count_in_duckdb(column, "the table"))).fetchall()
    with settings(spark):
        opened = open_table(spark, table)
        value, flaw = count_value(opened.column("count", role="counts"), "the table")
        found = [tuple(row) for row in opened.frame.select(value, flaw).collect()]
    assert found == expected


def test_rows_without_counts_are_trips_and_whole_numbers_are_codes_as_written(spark):
    table = pa.table({"origin": [1, 1, 2], "destination": ["2", "2", "03"]})
    local, cluster = read_both(spark, table)
    assert local == cluster == {(0, 1): 2, (1, 2): 1}


BAD = {
    "many unknown codes": pa.table(
        {"origin": [f"x{i}" for i in range(9)], "destination": [*"12345678", None]}
    ),
    "a negative count": flows(count=[1, -2]),
    "text as count": flows(count=["1", "1e3"]),
    "dates as counts": flows(count=[dt.date(2026, 1, 1)] * 2),
    "decimals as codes": flows(origin=[1.0, 2.0]),
    "lists as codes": flows(origin=[["1"], ["2"]]),
    "no such column": pa.table({"Origin": ["1"], "destination": ["2"]}),
    "no rows": flows().slice(0, 0),
    "a column like counts": flows(Count=[3, 4]),
    "only zeros": flows(count=[0, 0]),
    "counts beyond 2^63 in all": flows(count=[2**62, 2**62 + 2**61]),
}


def without_type_names(outcome):
    """Spark calls types by other names than DuckDB."""
    kind, message = outcome
    words = message.split(" ")
    if "holds" in words and "values;" in words:
        words[words.index("holds") + 1 : words.index("values;")] = ["SOME"]
    return kind, " ".join(words)


@pytest.mark.parametrize("kind", BAD)
def test_bad_tables_are_refused_in_the_same_words(spark, kind):
    local, cluster = read_both(spark, BAD[kind])
    assert isinstance(local, tuple)
    assert without_type_names(cluster) == without_type_names(local)


PEOPLE = flows(person=["a", None])


@pytest.mark.parametrize(
    ("table", "options"),
    [
        (PEOPLE, {"person": "person"}),
        (flows(person=["a", ""]), {"person": "person"}),
        (flows(person=["a", "a"]), {"person": "person"}),
        (flows(person=["a", "b"], count=[1, 0]), {"person": "person"}),
        (flows(person=["a", "b"], count=[2_000_000, 1]), {"person": "person"}),
        (flows(person=[1.5, 2.5]), {"person": "person"}),
        (flows(), {"person": "person"}),
        (flows(), {"person": "origin"}),
        (flows(), {"count": "destination"}),
        (flows(), {"unplaceable": "drop"}),
        (flows(), {"unplaceable": "burn"}),
        (flows(), {"unplaceable": "outside"}),
    ],
)
def test_wrong_options_are_refused_in_the_same_words(spark, table, options):
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
    read_both(spark, flows(count=[3, 4]), count=count, say=heard.append)
    assert len(heard) == 2
    assert heard[0] == heard[1]


def test_no_message_quotes_a_count_or_a_person(spark):
    table = flows(person=["Jane Doe", "Jane Doe"], count=["12345678901", "oops-987"])
    _, (_, message) = read_both(spark, table, person="person")
    for secret in ("Jane", "12345678901", "987"):
        assert secret not in message
