"""Confidential tables that cannot be read as counts."""

import gzip
import sqlite3

import pyarrow as pa
import pytest

from inftda.util.tabular import FORMAT_NAMES

HEAD = "origin,destination,count\n"
GOOD = HEAD + "1,2,30\n3,4,20\n"
MANY = HEAD + "".join(f"{1 + i % 4},{1 + i // 4 % 4},{i % 7}\n" for i in range(5000))
PACKED = gzip.compress(MANY.encode(), mtime=0)


def parquet(**columns):
    """A table with one good row, but for the columns given."""
    return pa.table({"origin": ["1"], "destination": ["2"], "count": [3], **columns})


FILES = {
    "an empty file": ("x.csv", b"", "is empty"),
    "a header only": ("x.csv", HEAD, "no rows"),
    "UTF-16": ("x.csv", GOOD.encode("utf-16"), "not utf-8 text"),
    "Latin-1 in a cell": ("x.csv", (HEAD + "1,\xe9,3\n").encode("latin-1"), "convert it to UTF-8"),
    "Latin-1 in the header": ("x.csv", "or\xedgin,b\n".encode("latin-1"), "--encoding"),
    "wide digits in a count": ("x.csv", HEAD + "1,2,\uff11\uff12\n", "not a number as count"),
    "a zero byte in a count": ("x.csv", HEAD + "1,2,\0003\n", "not a number as count"),
    "a zero byte in the header": ("x.csv", "ori\0gin,destination\n1,2\n", "did you mean"),
    "text called .gz": ("x.csv.gz", GOOD, "damaged or cut off"),
    "garbage behind a packed file": ("x.csv.gz", PACKED + b"garbage", "damaged or cut off"),
    "counts that overflow": ("x.csv", HEAD + "1,2,9000000000000000000\n" * 3, "beyond 2^43"),
    "no workbook": ("x.xlsx", GOOD, "damaged"),
    "CSV called .parquet": ("x.parquet", GOOD, "as Parquet"),
    "Parquet called .csv": ("x.csv", parquet(), "is not utf-8 text"),
    "no rows": ("x.parquet", parquet().slice(0, 0), "no rows"),
    "no columns": ("x.parquet", parquet().select([]), "as Parquet"),
}


@pytest.mark.parametrize("what", FILES)
def test_a_table_that_cannot_be_counted_is_refused(refuse_release, write, what):
    name, content, says = FILES[what]
    refuse_release(flows=write(name, content), says=says)


@pytest.mark.parametrize(
    ("flows", "says"),
    [
        ("nothing.csv", "check the path"),
        ("empty", f"no {FORMAT_NAMES} file in the folder"),
        ("both", "both CSV and Parquet"),
        ("differing", "a different header"),
        ("", "check the path"),
        ("/dev/null", "a pipe or a device"),
    ],
)
def test_a_path_without_one_table_is_refused(place, refuse_release, write, flows, says):
    for folder in ("empty", "both", "differing"):
        (place / folder).mkdir()
    write("both/a.csv", GOOD)
    write("both/b.parquet", parquet())
    write("differing/a.csv", GOOD)
    write("differing/b.csv", "origin,destination\n1,2\n")
    refuse_release("--quiet", flows=flows or "*.nothing", says=says)


@pytest.mark.slow
def test_a_pipe_is_refused_and_not_said_to_be_missing(shell):
    options = ("--epsilon", 1, "--delta", 1e-8, "--areas", "areas.csv", "--out", "out")
    done = shell("release", "/dev/stdin", *options, input=GOOD)
    assert done.code == 2
    assert "write it to a file first" in done.err


@pytest.mark.parametrize(
    ("database", "query", "says"),
    [
        ("mysql://host/name", "SELECT 1", "export the table to Parquet"),
        ("sqlite://x.db", "SELECT 1", "sqlite:///path"),
        ("sqlite:///nothing.db", "SELECT 1", "check the path"),
        ("sqlite:///trips.db", "", "empty"),
        ("sqlite:///trips.db", "DROP TABLE trips", "SELECT statement"),
        ("sqlite:///trips.db", "SELECT 1 AS origin", "no column 'destination'"),
        ("postgresql://me:p@ss@host/name", "SELECT 1", "percent-encoded"),
        ("postgresql://me:Sesame9@127.0.0.1:1/name?connect_timeout=1", "SELECT 1", "server runs"),
    ],
)
def test_a_database_that_gives_no_trips_is_refused(place, refuse_release, database, query, says):
    with sqlite3.connect(place / "trips.db") as connection:
        connection.execute("CREATE TABLE trips (origin, destination)")
    connection.close()
    refuse_release("--sql", query, "--database", database, flows=None, says=says)


def test_an_encoding_of_a_query_is_refused(refuse_release):
    query = ("--sql", "SELECT 1", "--database", "sqlite:///trips.db")
    refuse_release(*query, "--encoding", "latin-1", flows=None, says="--encoding")


#: All that can be wrong is tested where such tables are read.
TABLES = {
    "a matrix without a header": ("x.csv", "1,30,4\n2,5,6\n", ["--matrix"], "--skip-rows"),
    "a sheet of CSV": ("x.csv", GOOD, ["--sheet", "May"], "leave out --sheet"),
    "fewer rows than none": ("x.csv", GOOD, ["--skip-rows", "-1"], "at least 0"),
}


@pytest.mark.parametrize("what", TABLES)
def test_what_is_said_of_a_table_must_be_true(refuse_release, write, what):
    name, content, options, says = TABLES[what]
    refuse_release(*options, flows=write(name, content), says=says)
