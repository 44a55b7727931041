"""Trips from a database of DuckDB, by the same driver manager as those of any other database."""

import duckdb
import pytest

from inftda.errors import IngestError

pytest.importorskip("adbc_driver_manager.dbapi", reason="the extra `sql` is not installed")


@pytest.fixture
def database(tmp_path, own_databases):  # noqa: ARG001 - a file, and not one that tests share
    """Address of a file with a table of trips, and beside it one that nobody may read."""
    (tmp_path / "other.csv").write_text("origin,destination\n001,001\n")
    with duckdb.connect(str(tmp_path / "trips.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE trips AS SELECT '00' || (1 + i % 3) AS origin, '001' AS destination, "
            "i % 5 AS n, i % 100 AS person FROM range(3000) AS rows(i)"
        )
        connection.execute(f"CREATE VIEW spy AS FROM read_csv('{tmp_path / 'other.csv'}')")
    return f"duckdb:///{tmp_path / 'trips.duckdb'}"


def test_trips_are_counted(read, database):
    leaves = read("SELECT origin, destination FROM trips -- all of them", database)
    assert leaves.value.tolist() == [1000] * 3


def test_sums_are_counts(read, database):
    """They are of the type HUGEINT, which comes as a decimal."""
    query = "SELECT origin, destination, sum(n) AS count FROM trips GROUP BY ALL ORDER BY 1"
    assert read(query, database).value.sum() == 6000


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM nowhere",
        "SELEC",
        "DELETE FROM trips",
        "DROP TABLE trips",
        "SELECT 1; SELECT 2",
        "FROM spy",
        "COPY trips TO 'stolen.csv'",
    ],
)
def test_a_query_that_does_not_only_read_is_refused(read, database, query, tmp_path):
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(IngestError, match="the database refuses the query") as error:
        read(query, database)
    assert error.value.__context__ is None
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert read("FROM trips", database, count=None).value.sum() == 3000


def test_a_row_that_fails_is_not_quoted(read, database):
    query = "SELECT ('secret' || origin)::INT AS origin, destination FROM trips"
    with pytest.raises(IngestError, match=r"failed while|refuses the query") as error:
        read(query, database)
    assert "secret" not in str(error.value)
    assert error.value.__context__ is None


def test_a_file_that_is_none_is_refused(read, tmp_path):
    with pytest.raises(IngestError, match="there is no DuckDB file"):
        read("SELECT 1", f"duckdb:///{tmp_path / 'nothing.duckdb'}")
    (tmp_path / "x.duckdb").write_bytes(b"x" * 20_000)
    with pytest.raises(IngestError, match="cannot open the DuckDB file: it is damaged"):
        read("SELECT 1", f"duckdb:///{tmp_path / 'x.duckdb'}")


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("nosuchdriver://me:Zq7@127.0.0.1/x", "no driver of ADBC called 'nosuchdriver' here"),
        ("profile://nosuchprofile", "no such connection profile"),
        ("duckdb://trips.duckdb", "the database address must start with"),
        ("../x.so://Zq7", "the database address must start with"),
        ("Zq7", "the database address must start with"),
    ],
)
def test_an_address_without_a_driver_is_refused(read, address, says):
    with pytest.raises(IngestError, match=says) as error:
        read("SELECT 1", address)
    assert "Zq7" not in str(error.value)
    assert error.value.__context__ is None
