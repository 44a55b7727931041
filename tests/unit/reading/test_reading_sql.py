"""SQL sources without a server: addresses, secrets, missing drivers."""

import pickle
import sys
import traceback

import pytest

from inftda.errors import IngestError, MissingExtraError
from inftda.reading import SqlQuery


def test_a_query_prints_nothing_of_its_database():
    query = SqlQuery("SELECT 1", "postgresql://me:hush@db.example:5432/mobility?password=hush")
    assert repr(query) == str(query) == "SqlQuery('SELECT 1', 'postgresql://...')"
    assert pickle.loads(pickle.dumps(query)) == query


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:Zq7/Xw9@127.0.0.1:1/x",  # libpq quotes Zq7 as a port
        "postgresql://me:Zq7@Xw9@127.0.0.1:1/x",
        "postgresql://me:Zq7?Kj@127.0.0.1:1/x",
        "postgresql://me:Zq7%Xw9@127.0.0.1:1/x",  # libpq quotes it as a token
        "postgresql://me:Zq7 Xw9@127.0.0.1:1/x",
        "postgresql://me:x@127.0.0.1:Zq7/x",
        "postgresql://127.0.0.1:1/x?Zq7",
        "postgresql://me:Zq7@127.0.0.1:1/x",
    ],
)
def test_what_a_driver_says_of_an_address_is_not_passed_on(read, address):
    pytest.importorskip("adbc_driver_postgresql.dbapi", reason="the extra `sql` is missing")
    with pytest.raises(IngestError, match=r"cannot open the database.* percent-encoded") as error:
        read(SqlQuery("SELECT 1", address))
    assert error.value.__context__ is None
    printed = "".join(traceback.format_exception(error.value))
    assert "Zq7" not in printed.replace(address, "")


def test_a_missing_driver_names_the_extra_that_brings_it(read, monkeypatch):
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql", None)
    with pytest.raises(
        MissingExtraError, match=r"needs adbc-driver-postgresql; .*inftda-od\[sql\]"
    ):
        read(SqlQuery("SELECT 1", "postgresql://h/x"))
