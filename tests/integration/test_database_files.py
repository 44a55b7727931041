"""Trips from real files of SQLite and DuckDB: counted, and nothing but read."""

import shutil
import sqlite3

import duckdb
import pytest

from inftda.errors import IngestError
from inftda.tree import Axis
from inftda.tree.hierarchy import Hierarchy

pytest.importorskip("adbc_driver_manager.dbapi", reason="the extra `sql` is not installed")

N_ROWS = 20_000  # more than one batch
TRIPS = [(f"p{i % 1000}", f"00{1 + i % 3}", f"00{1 + i % 2}", i % 5) for i in range(N_ROWS)]
SUM = sum(n for *_, n in TRIPS)
ENDS = "SELECT origin, destination"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A file of each kind with a table of trips, and a view of what nobody may read."""
    folder = tmp_path_factory.mktemp("databases")
    (folder / "other.csv").write_text("origin,destination\n001,001\n")
    with sqlite3.connect(folder / "mobility (2011)%.db") as connection:
        connection.execute("CREATE TABLE trips (person TEXT, origin TEXT, destination TEXT, n INT)")
        connection.executemany("INSERT INTO trips VALUES (?, ?, ?, ?)", TRIPS)
        connection.execute("CREATE VIEW spy AS SELECT load_extension('x') AS origin")
    connection.close()
    with duckdb.connect(str(folder / "trips.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE trips AS SELECT 'p' || (i % 1000) AS person, '00' || (1 + i % 3) AS "
            "origin, '00' || (1 + i % 2) AS destination, i % 5 AS n "
            f"FROM range({N_ROWS}) AS rows(i)"
        )
        connection.execute(f"CREATE VIEW spy AS FROM read_csv('{folder / 'other.csv'}')")
    return folder


@pytest.fixture
def address(made, tmp_path, own_databases, monkeypatch):  # noqa: ARG001 - files are not shared
    """Addresses of copies, by kind."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return {
        "sqlite": f"sqlite:///{tmp_path / 'mobility (2011)%.db'}",
        "duckdb": f"duckdb:///{tmp_path / 'trips.duckdb'}",
        "relative": "sqlite:///mobility (2011)%.db",
    }


@pytest.mark.parametrize(
    ("kind", "query", "total"),
    [
        *(("relative", f"{ENDS}, {n} AS count FROM trips", SUM) for n in ("n", "n * 1.0")),
        ("sqlite", f"{ENDS}, n || '' AS count FROM trips", SUM),
        ("duckdb", f"{ENDS} FROM trips -- all of them", N_ROWS),
        # Sums are of the type HUGEINT, which comes as a decimal.
        ("duckdb", f"{ENDS}, sum(n) AS count FROM trips GROUP BY ALL ORDER BY 1", SUM),
    ],
)
def test_trips_are_counted(read, address, kind, query, total):
    assert read(query, address[kind], repeated_rows="add").value.sum() == total


#: What a query says, and what is said of it.
REFUSED = {
    "sqlite": {
        "SELECT * FROM nowhere": "query",
        "SELEC": "query",
        "": "query",
        " ; ": "query",
        "DELETE FROM trips": "one SELECT statement",
        "ATTACH 'other.db' AS other": "one SELECT statement",
        "PRAGMA writable_schema = 1": "one SELECT statement",
        "VACUUM INTO 'copy.db'": "one SELECT statement",
        "CREATE TEMP TABLE t AS SELECT 1": "one SELECT statement",
        "SELECT load_extension('x') AS origin": "failed while",
        "SELECT 1 AS origin; DELETE FROM trips": "one SELECT statement",
        "SELECT 1); ATTACH 'other.db' AS other; (SELECT 2": "one SELECT statement",
        "SELECT origin, '001' AS destination FROM spy": "refuses the query",
        "SELECT 'X' AS origin, 'X' AS destination": "cannot be placed",
        **{
            f"SELECT CASE rowid WHEN 19000 THEN {cell} ELSE '001' END AS origin, "
            "destination FROM trips": "1 row of the SQL query cannot be placed: unknown"
            for cell in ("2.5", "x'303031'", "1e300", "9007199254740992.0")
        },
        "SELECT CASE rowid WHEN 19000 THEN CAST(x'ff' AS TEXT) ELSE '001' END AS origin, "
        "destination FROM trips": "a cell is not UTF-8 text",
        f"{ENDS}, json(CASE rowid WHEN 19000 THEN '{{secret' ELSE '1' END) AS count "
        "FROM trips": "the SQL query failed while its rows were read",
    },
    "duckdb": {
        "SELECT * FROM nowhere": "the database refuses the query",
        "SELEC": "the database refuses the query",
        "DELETE FROM trips": "the database refuses the query",
        "DROP TABLE trips": "the database refuses the query",
        "SELECT 1; SELECT 2": "the database refuses the query",
        "FROM spy": "the database refuses the query",
        "COPY trips TO 'stolen.csv'": "the database refuses the query",
        "SELECT ('secret' || origin)::INT AS origin, destination FROM trips": (
            "failed while|refuses the query"
        ),
    },
}


@pytest.mark.parametrize(
    ("kind", "query"), [(kind, query) for kind, queries in REFUSED.items() for query in queries]
)
def test_a_query_can_do_nothing_but_read_and_its_failure_quotes_no_cell(
    read, address, kind, query, tmp_path
):
    before = sorted(tmp_path.iterdir())
    with pytest.raises(IngestError, match=REFUSED[kind][query]) as error:
        read(query, address[kind])
    assert "secret" not in str(error.value)
    assert error.value.__context__ is None
    assert sorted(tmp_path.iterdir()) == before
    assert read("SELECT * FROM trips", address[kind], count=None).value.sum() == N_ROWS


def test_cells_of_any_kind_are_read_one_by_one(read, address):
    query = "SELECT CASE rowid % 2 WHEN 0 THEN '001' ELSE 2 END AS origin, destination FROM trips"
    towns = Hierarchy.read({"town": ["001", "002", "2"]})
    axes = (Axis("origin", towns), Axis("destination", towns))
    leaves = read(query, address["sqlite"], axes=axes)
    assert leaves.value.sum() == N_ROWS
    assert {*leaves.areas[0].tolist()} == {0, 2}


def test_the_database_is_closed_afterwards(read, address, tmp_path):
    read("SELECT * FROM trips", address["sqlite"], count=None)
    with pytest.raises(IngestError):
        read("SELECT 'X' AS origin, 'X' AS destination", address["sqlite"])
    with sqlite3.connect(next(tmp_path.glob("*.db"))) as connection:
        connection.execute("DROP TABLE trips")  # a reader would hold a lock
    connection.close()


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("duckdb:///nothing.duckdb", "there is no DuckDB file"),
        ("duckdb:///damaged.duckdb", "cannot open the DuckDB file: it is damaged"),
        ("nosuchdriver://me:Zq7@127.0.0.1/x", "no driver of ADBC called 'nosuchdriver' here"),
        ("profile://nosuchprofile", "no such connection profile"),
        ("duckdb://trips.duckdb", "the database address must start with"),
        ("../x.so://Zq7", "the database address must start with"),
        ("Zq7", "the database address must start with"),
    ],
)
def test_an_address_without_a_database_is_refused(read, tmp_path, monkeypatch, address, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "damaged.duckdb").write_bytes(b"x" * 20_000)
    with pytest.raises(IngestError, match=says) as error:
        read("SELECT 1", address)
    assert "Zq7" not in str(error.value)
    assert error.value.__context__ is None
