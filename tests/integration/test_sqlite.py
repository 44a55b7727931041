"""Trips from a real SQLite file."""

import sqlite3

import pytest

from inftda.errors import IngestError
from inftda.tree import Axis
from inftda.tree.hierarchy import Hierarchy

N_ROWS = 20_000  # more than one batch


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "mobility (2011)%.db"
    rows = [(f"p{i % 1000}", f"00{1 + i % 3}", f"00{1 + i % 2}", i % 5) for i in range(N_ROWS)]
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE trips (person TEXT, origin TEXT, destination TEXT, n INT)")
        connection.executemany("INSERT INTO trips VALUES (?, ?, ?, ?)", rows)
    connection.close()
    return f"sqlite:///{path}"


@pytest.mark.parametrize("count", ["n", "n * 1.0", "n || ''"])
def test_flows_are_summed(read, database, tmp_path, monkeypatch, count):
    monkeypatch.chdir(tmp_path)
    relative = "sqlite:///" + database.rpartition("/")[2]
    query = f"SELECT origin, destination, {count} AS count FROM trips"
    assert read(query, relative, repeated_rows="add").value.sum() == sum(
        i % 5 for i in range(N_ROWS)
    )


@pytest.mark.parametrize("query", ["SELECT * FROM nowhere", "SELEC", "", " ; "])
def test_a_wrong_query_is_one_clear_error(read, database, query):
    with pytest.raises(IngestError, match="query") as error:
        read(query, database)
    assert error.value.__context__ is None


def test_cells_of_any_kind_are_read_one_by_one(read, database):
    query = "SELECT CASE rowid % 2 WHEN 0 THEN '001' ELSE 2 END AS origin, destination FROM trips"
    towns = Hierarchy.read({"town": ["001", "002", "2"]})
    axes = (Axis("origin", towns), Axis("destination", towns))
    leaves = read(query, database, axes=axes)
    assert leaves.value.sum() == N_ROWS
    assert {*leaves.areas[0].tolist()} == {0, 2}


@pytest.mark.parametrize("cell", ["2.5", "x'303031'", "1e300", "9007199254740992.0"])
def test_a_cell_that_is_no_code_is_the_fault_of_its_row(read, database, cell):
    query = f"SELECT CASE rowid WHEN 19000 THEN {cell} ELSE '001' END AS origin, destination "
    with pytest.raises(IngestError, match="1 row of the SQL query cannot be placed: unknown"):
        read(query + "FROM trips", database)


def test_text_that_is_not_utf8_is_one_clear_error(read, database):
    query = "SELECT CASE rowid WHEN 19000 THEN CAST(x'ff' AS TEXT) ELSE '001' END AS origin, "
    with pytest.raises(IngestError, match="a cell is not UTF-8 text") as error:
        read(query + "destination FROM trips", database)
    assert error.value.__context__ is None


def test_a_stream_that_fails_half_way_is_one_clear_error_without_its_cells(read, database):
    query = "SELECT origin, destination, json(CASE rowid WHEN 19000 THEN '{secret' ELSE '1' END) "
    with pytest.raises(IngestError, match="the SQL query failed while its rows were read") as error:
        read(query + "AS count FROM trips", database)
    assert "secret" not in str(error.value)
    assert error.value.__context__ is None


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM trips", "ATTACH 'other.db' AS other", "PRAGMA writable_schema = 1",
        "VACUUM INTO 'copy.db'",
        "CREATE TEMP TABLE t AS SELECT 1", "SELECT load_extension('x') AS origin",
        "SELECT 1 AS origin; DELETE FROM trips", "SELECT 1); ATTACH 'other.db' AS other; (SELECT 2",
    ],
)  # fmt: skip
def test_a_query_can_do_nothing_but_read_the_database(read, database, tmp_path, monkeypatch, query):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(IngestError, match=r"one SELECT statement|failed while"):
        read(query, database)
    assert sorted(tmp_path.iterdir()) == before
    leaves = read("SELECT * FROM trips", database, count=None)
    assert leaves.value.sum() == N_ROWS


def test_a_view_of_a_strangers_file_can_do_nothing_but_read(read, database, tmp_path):
    with sqlite3.connect(next(tmp_path.glob("*.db"))) as connection:
        connection.execute("CREATE VIEW odd AS SELECT load_extension('x') AS origin")
    connection.close()
    with pytest.raises(IngestError, match="refuses the query"):
        read("SELECT origin, '001' AS destination FROM odd", database)


def test_the_database_is_closed_afterwards(read, database, tmp_path):
    read("SELECT * FROM trips", database, count=None)
    with pytest.raises(IngestError):
        read("SELECT 'X' AS origin, 'X' AS destination", database)
    path = next(tmp_path.glob("*.db"))
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE trips")  # a reader would hold a lock
    connection.close()
