"""Spark reads the same tables alike, and complains about bad ones in the same words."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="pyspark is missing: pip install 'inftda-od[spark]'")

from spark_leaves import collect

from inftda.reading.rows import LIKE_TOTALS, SPLIT_CELLS
from inftda.spark.reading import read_leaves
from inftda.spark.session import settings
from inftda.tree.hierarchy import Hierarchy
from reading_cases import CASES, HIDDEN, Case, at_most, check_case, columns_of, people, read_case
from tiers import crossed

FLOWS = ("origin", "destination", "count")


@pytest.fixture
def read(spark):
    """Reads a source on the cluster."""

    def call(source, columns, axes, **options):
        with settings(spark):
            leaves = collect(read_leaves(spark, source, columns, axes, **options), len(axes))
        assert {axis.dtype for axis in leaves.areas} == {np.dtype(np.int32)}
        assert leaves.value.dtype == np.int64
        return leaves

    return call


@pytest.mark.parametrize(("name", "_"), crossed(CASES, ["a frame"]))
def test_a_frame_means_the_same_as_any_other_source(spark, read, name, _):
    case = CASES[name]
    case = case._replace(said=tuple(text for text in case.said if text != LIKE_TOTALS))  # not here
    frame = spark.createDataFrame(pa.table(columns_of(case.names, case.rows)))
    check_case(case, frame, "the table", read)


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
def test_counts_and_what_is_wrong_with_them_are_read_alike(spark, read, kind):
    """Every cell by itself: good ones are counted, and any other is refused in the same words."""
    cells = pa.array(COUNTS[kind])
    areas = [str(i) for i in range(len(cells))]
    table = pa.table({"area": areas, "count": cells})
    case = Case([], {}, unit=at_most(1), axes={"area": Hierarchy.read({"area": areas})})
    alone = [read_case(case, table.slice(i, 1))[0] for i in range(len(cells))]
    good = table.filter(pa.array([isinstance(outcome, dict) for outcome in alone]))
    expected = {cell: n for one in alone if isinstance(one, dict) for cell, n in one.items()}
    assert read_case(case, good)[0] == expected
    assert read_case(case, spark.createDataFrame(good), read)[0] == expected
    refused, _ = read_case(case, table)
    assert isinstance(refused, str)
    assert read_case(case, spark.createDataFrame(table), read)[0] == refused


GOOD = {"origin": ["001", "002"], "destination": ["002", "003"]}
#: Of types that text and whole numbers do not show, and what is not in `CASES`.
BAD = {
    "dates as counts": {"count": [dt.date(2026, 1, 1)] * 2},
    "decimals as codes": {"origin": [1.5, 2.0]},
    "lists as codes": {"origin": [["1"], ["2"]]},
    "exact decimals as codes": {"origin": [Decimal(1), Decimal(2)]},
    "decimals as persons": {"who": [1.5, 2.5]},
    "a count beyond 2^43": {"count": [2**43, 1]},
    "a person and a count": {"who": ["Jane", "Jane"], "count": ["123", "oops-secret"]},
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_tables_are_refused_in_the_same_words(spark, read, kind):
    table = pa.table(GOOD | BAD[kind])
    options = {"person": "who"} if "who" in BAD[kind] else {}
    case = Case([], "", options, unit=at_most(1))
    here, _ = read_case(case, table)
    assert isinstance(here, str)
    assert read_case(case, spark.createDataFrame(table), read)[0] == here
    assert not HIDDEN.search(here)


@pytest.mark.parametrize(
    "kind",
    [
        *("a folder", "a view"),
        *(
            pytest.param(kind, marks=pytest.mark.nightly)
            for kind in ("a file", "a frame of CSV", "in memory")
        ),
    ],
)
def test_equal_seeds_give_equal_leaves_from_every_kind_of_source(spark, read, tmp_path, kind):
    names = ("origin", "destination", "who", "count")
    case = Case(people(), {}, {"person": "who", "unplaceable": "drop"}, names, at_most(2))
    table = pa.table(columns_of(names, case.rows))
    source = tmp_path
    if kind == "a file":
        source = tmp_path / "a.parquet"
        pq.write_table(table, source)
    elif kind == "a folder":
        for i in range(3):
            pq.write_table(table.slice(150 * i, 150), tmp_path / f"{i}.parquet")
    elif kind == "a frame of CSV":
        pa_csv.write_csv(table, tmp_path / "a.csv")
        source = spark.read.csv(str(tmp_path / "a.csv"), header=True)
    elif kind == "a view":
        spark.createDataFrame(table).repartition(7).createOrReplaceTempView("people")
        source = "people"
    else:
        source = table
    here, _ = read_case(case, table)
    assert len(here) > 5
    assert read_case(case, source, read)[0] == here
    assert read_case(case, table, seed=2)[0] != here


def test_copies_in_different_parts_are_found(spark, read):
    rows = [("001", "002", 3)] * 2 + [("002", "003", 4), ("002", "002", 0), ("002", "002", 0)]
    twice = pa.table(columns_of(FLOWS, rows))
    apart = spark.createDataFrame(twice).repartition(3)
    found, _ = read_case(Case([], ""), apart, read)
    assert found.startswith("1 row of the table repeats another one, with the same origin, ")
    counts = pa.array([3, 5, 4, 0, 0])
    apart = spark.createDataFrame(twice.set_column(2, "count", counts)).repartition(3)
    found = read_case(Case([], ""), apart, read)
    assert found == ({("001", "002"): 8, ("002", "003"): 4}, (SPLIT_CELLS,))
