"""Whatever Spark reads can be released."""

import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="pyspark is missing: pip install 'inftda-od[spark]'")

from spark_leaves import collect

from inftda.errors import IngestError
from inftda.noise.bits import SeededSource
from inftda.privacy.unit import Unit
from inftda.reading import Columns, SqlQuery, TableFile
from inftda.spark.reading import open_table, read_leaves
from inftda.spark.session import settings
from inftda.tree import Axis
from inftda.tree.hierarchy import Hierarchy
from leaf_counts import leaf_counts

ROWS = [("001", "002", "5"), ("002", "001", "7")]


def rows_of(spark, source):
    """Names and rows of a source, as text."""
    with settings(spark):
        table = open_table(spark, source)
        found = table.select(range(len(table.names))).toArrow()
    rows = found.select([f"c{i}" for i in range(len(table.names))]).to_pylist()
    return table.names, sorted(tuple(map(str, row.values())) for row in rows)


@pytest.fixture
def arrow():
    names = ["origin", "destination", "count"]
    return pa.table([pa.array(column) for column in zip(*ROWS, strict=True)], names=names)


NAMES = ("origin", "destination", "count")


def test_a_frame_a_file_and_a_folder_are_read_alike(spark, arrow, tmp_path):
    pq.write_table(arrow, tmp_path / "flows.parquet")
    frame = spark.read.parquet(str(tmp_path / "flows.parquet"))
    path = tmp_path / "flows.parquet"
    sources = [frame, str(path), path.as_uri(), tmp_path, str(tmp_path / "*.parquet")]
    sources += [TableFile(path), TableFile(tmp_path), TableFile(tmp_path / "*.parquet")]
    for source in sources:
        assert rows_of(spark, source) == (NAMES, ROWS)


def test_codes_in_folder_names_keep_their_zeros(spark, arrow, tmp_path):
    for code in ("001", "002"):
        folder = tmp_path / "trips" / f"day={code}"
        folder.mkdir(parents=True)
        pq.write_table(arrow.slice(0, 1), folder / "part.parquet")
    names, rows = rows_of(spark, tmp_path / "trips")
    assert names == (*NAMES, "day")
    assert rows == [(*ROWS[0], "001"), (*ROWS[0], "002")]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("flows.parquet", "not Parquet", "damaged"),
        ("nothing", None, "no file or table"),
        ("nothing.parquet", None, "no file or table"),
    ],
)
def test_what_cannot_be_read_is_refused_without_a_word_of_its_contents(
    spark, tmp_path, name, content, said
):
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(IngestError, match=said) as caught:
        rows_of(spark, tmp_path / name)
    assert caught.value.__context__ is None


def test_csv_and_parquet_in_one_folder_are_refused(spark, arrow, tmp_path):
    pq.write_table(arrow, tmp_path / "flows.parquet")
    (tmp_path / "flows.csv").write_text("origin,destination\n1,2\n")
    with pytest.raises(IngestError, match="both CSV and Parquet"):
        read(spark, tmp_path)


TOWNS = Hierarchy.read({"town": ["1", "2"]})
AXES = (Axis("origin", TOWNS), Axis("destination", TOWNS))


def read(spark, source):
    with settings(spark):
        return read_leaves(
            spark, source, Columns(), AXES, unit=Unit(), random_source=SeededSource(1)
        )


def refuse(spark, source, said):
    with pytest.raises(IngestError, match=said) as caught:
        read(spark, source)
    assert caught.value.__context__ is None


def test_something_else_is_refused(spark):
    refuse(spark, 7, "from a int")
    refuse(spark, SqlQuery("SELECT 1", "sqlite:///x.db"), "spark.read.jdbc")


@pytest.mark.parametrize("others", [["1"], [1.0]])
def test_files_of_a_folder_must_agree_in_types(spark, tmp_path, others):
    for name, origin in (("a", [1]), ("b", others)):
        table = pa.table({"origin": origin, "destination": ["2"]})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    refuse(spark, tmp_path, "need the same types")


def test_types_that_spark_does_not_know_are_refused(spark, tmp_path):
    long = pa.array([1], pa.decimal256(50, 0))
    pq.write_table(pa.table({"origin": long, "destination": ["2"]}), tmp_path / "a.parquet")
    refuse(spark, tmp_path, "columns that Spark does not know")


def test_files_of_a_folder_may_have_further_columns(spark, tmp_path):
    for name, further in (("a", {}), ("b", {"note": ["x"]})):
        folder = tmp_path / "origin=1"
        folder.mkdir(exist_ok=True)
        pq.write_table(pa.table({"destination": ["2"], **further}), folder / f"{name}.parquet")
    with settings(spark):
        leaves = collect(read(spark, tmp_path))
    assert {*zip(*(axis.tolist() for axis in leaves.areas), strict=True)} == {(0, 1)}
    assert leaves.value.sum() == 2


def test_a_failing_part_says_nothing_of_its_rows(spark, executor_logs):
    bad = spark.sql("SELECT '1' AS destination, CAST(X'ff' AS STRING) || 'canary' AS origin")
    refuse(spark, bad, "the table is not UTF-8")
    logs = [path.read_text(errors="replace") for path in executor_logs.rglob("std*")]
    assert logs
    assert not any("canary" in text for text in logs)


def test_other_formats_than_parquet_are_read_by_the_driver(spark, tmp_path):
    """Lines above the header, a matrix, and a zip file, alike on one machine and on a cluster."""
    (tmp_path / "flows.csv").write_text("2026\n,1,2\n1,3,-\n2,,4\n")
    with zipfile.ZipFile(tmp_path / "flows.zip", "w") as packed:
        packed.write(tmp_path / "flows.csv", "flows.csv")
    for name in ("flows.csv", "flows.zip"):
        source = TableFile(tmp_path / name, matrix=True, skip_rows=1)
        assert leaf_counts(collect(read(spark, source))) == {(0, 0): 3, (1, 1): 4}
    assert open_table(spark, "https://example.org/flows.csv") is None
    refuse(spark, "hdfs://example.org/flows.csv", "let Spark read Parquet files")


def test_without_a_cluster_files_folders_and_globs_are_read_by_the_driver(
    spark, arrow, tmp_path, monkeypatch
):
    pq.write_table(arrow, tmp_path / "flows.parquet")
    monkeypatch.setattr("inftda.spark.reading.is_local", lambda _: True)
    for name in ("flows.parquet", "", "*.parquet", "**/*.parquet"):
        for source in (str(tmp_path / name), TableFile(tmp_path / name)):
            assert open_table(spark, source) is None


def test_the_encoding_of_parquet_is_refused(spark, arrow, tmp_path):
    pq.write_table(arrow, tmp_path / "flows.parquet")
    for path in (tmp_path / "flows.parquet", tmp_path):
        refuse(spark, TableFile(path, encoding="latin-1"), "is not a file of CSV; leave out `en")
