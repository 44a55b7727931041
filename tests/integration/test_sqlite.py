"""Trips from a real SQLite file, streamed through ADBC."""

import sqlite3

import pytest

from inftda.errors import IngestError
from inftda.hierarchy import Hierarchy
from inftda.ingest import SqlQuery, read_leaves
from inftda.privacy.unit import PrivacyUnit

pytest.importorskip("adbc_driver_sqlite", reason="the extra `sql` is not installed")

TOWNS = Hierarchy.read({"region": ["N", "N", "S"], "town": ["001", "002", "003"]})
AXES = [("origin", TOWNS), ("destination", TOWNS)]
N_ROWS = 5000  # more than one batch


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "mobility (2011)%.db"
    rows = [(f"p{i % 1000}", f"00{1 + i % 3}", f"00{1 + i % 2}", i % 5) for i in range(N_ROWS)]
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE trips (person TEXT, origin TEXT, destination TEXT, n INT)")
        connection.executemany("INSERT INTO trips VALUES (?, ?, ?, ?)", rows)
    connection.close()
    return f"sqlite:///{path}"


def test_trips_are_counted(database):
    leaves = read_leaves(SqlQuery("SELECT origin, destination FROM trips;", database), AXES)
    assert leaves.counts.sum() == N_ROWS
    assert len(leaves.counts) == 6


def test_flows_are_summed(database):
    query = "SELECT origin, destination, sum(n) AS count FROM trips GROUP BY 1, 2"
    grouped = read_leaves(SqlQuery(query, database), AXES)
    single = read_leaves(SqlQuery("SELECT * FROM trips", database), AXES, count="n")
    assert grouped.counts.sum() == single.counts.sum() == sum(i % 5 for i in range(N_ROWS))


def test_contributions_are_bounded(database):
    unit = PrivacyUnit("add-remove", trips=2)
    query = SqlQuery("SELECT * FROM trips", database)
    leaves = read_leaves(query, AXES, count=None, person="person", unit=unit)
    assert leaves.counts.sum() == 2000


def test_a_relative_path_is_taken_from_the_working_directory(database, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    relative = "sqlite:///" + database.rpartition("/")[2]
    leaves = read_leaves(SqlQuery("SELECT * FROM trips", relative), AXES, count=None)
    assert leaves.counts.sum() == N_ROWS


def test_unknown_areas_are_named_although_the_stream_is_gone(database):
    query = "SELECT 'X' || origin AS origin, destination FROM trips"
    with pytest.raises(IngestError, match=r"5,000 rows of the SQL query .*'X001', 'X002'"):
        read_leaves(SqlQuery(query, database), AXES)


def test_a_query_that_writes_is_refused(database):
    with pytest.raises(IngestError, match="readonly"):
        read_leaves(SqlQuery("DELETE FROM trips", database), AXES)
    leaves = read_leaves(SqlQuery("SELECT * FROM trips", database), AXES, count=None)
    assert leaves.counts.sum() == N_ROWS


@pytest.mark.parametrize("query", ["SELECT * FROM nowhere", "SELEC", "", " ; "])
def test_a_wrong_query_is_one_clear_error(database, query):
    with pytest.raises(IngestError, match="query") as error:
        read_leaves(SqlQuery(query, database), AXES)
    assert error.value.__context__ is None


def test_a_file_that_is_missing_is_named_and_not_made(tmp_path):
    path = tmp_path / "nowhere.db"
    with pytest.raises(IngestError, match=r"no SQLite file .*nowhere\.db"):
        read_leaves(SqlQuery("SELECT 1", f"sqlite:///{path}"), AXES)
    assert not path.exists()
    with pytest.raises(IngestError, match="sqlite:///path"):
        read_leaves(SqlQuery("SELECT 1", "sqlite://nowhere.db"), AXES)


def test_a_file_that_is_no_database_is_one_clear_error(tmp_path):
    path = tmp_path / "a.db"
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(IngestError, match=r"sqlite:///.*a\.db"):
        read_leaves(SqlQuery("SELECT 1", f"sqlite:///{path}"), AXES)


def test_a_stream_that_fails_half_way_is_one_clear_error_without_its_cells(database):
    query = "SELECT origin, destination, CASE WHEN rowid > 4000 THEN 'secret' ELSE 1 END AS count "
    with pytest.raises(IngestError, match="the SQL query failed while its rows were read") as error:
        read_leaves(SqlQuery(query + "FROM trips", database), AXES)
    assert "secret" not in str(error.value)
    assert error.value.__context__ is None


def test_the_database_is_closed_afterwards(database, tmp_path):
    read_leaves(SqlQuery("SELECT * FROM trips", database), AXES, count=None)
    with pytest.raises(IngestError):
        read_leaves(SqlQuery("SELECT 'X' AS origin, 'X' AS destination", database), AXES)
    path = next(tmp_path.glob("*.db"))
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE trips")  # a reader would hold a lock
    connection.close()
