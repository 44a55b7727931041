"""SQL sources without a server: addresses, secrets, missing drivers."""

import pickle
import sys
import traceback

import pytest

from inftda.errors import IngestError, MissingExtraError
from inftda.reading import SqlQuery, sql_query

#: No part of it, of three characters or more, may turn up anywhere.
PASSWORD = "Zq7/Xw@9?Kj#Vp Yt%B"
ENCODED = "Zq7%2FXw%409%3FKj%23Vp%20Yt%25B"


def leaks(text):
    """Pieces of the password that turn up in a text."""
    return [PASSWORD[i : i + 3] for i in range(len(PASSWORD) - 2) if PASSWORD[i : i + 3] in text]


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://me:{ENCODED}@db.example:5432/mobility?sslmode=require",
        f"postgres://me:{ENCODED}@db.example:5432/mobility",
        f"postgresql://me@db.example:5432/mobility?password={ENCODED}",
    ],
)
def test_a_query_prints_its_database_without_user_and_password(address):
    query = SqlQuery("SELECT 1", address)
    assert query.public_address == "postgresql://db.example:5432/mobility"
    assert repr(query) == str(query)
    assert repr(query) == "SqlQuery('SELECT 1', 'postgresql://db.example:5432/mobility')"
    assert pickle.loads(pickle.dumps(query)) == query


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://me:{PASSWORD}@db/x",  # everything raw
        "postgresql://me:Zq7/Xw9@127.0.0.1:5432/x",  # libpq would quote Zq7 as a port
        "postgresql://me:Zq7@Xw9@127.0.0.1/x",
        "postgresql://me:Zq7?Kj@127.0.0.1/x",
        "postgresql://me:12?Xw9=Kj@127.0.0.1/x",
        "postgresql://me:Zq7%Xw9@127.0.0.1/x",  # libpq would quote it as a token
        "postgresql://me:Zq7 Xw9@127.0.0.1/x",
        "postgresql://me:x@127.0.0.1:Zq7/x",
        "postgresql://me:x@127.0.0.1/x?Zq7",
        "postgresql:me:Zq7",
    ],
)
def test_an_address_that_a_driver_would_misread_is_refused_without_quoting_it(read, address):
    with pytest.raises(IngestError, match="percent-encoded") as error:
        read(SqlQuery("SELECT 1", address))
    printed = "".join(traceback.format_exception(error.value))
    assert not leaks(str(error.value))
    assert "Zq7" not in str(error.value)
    assert error.value.__context__ is None
    assert "Zq7" not in printed.replace(address, "")
    assert "Zq7" not in repr(SqlQuery("SELECT 1", address))


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://",
        "postgresql://localhost",
        "postgresql:///mobility?host=/var/run/postgresql",
        "postgresql://me@[::1]:5432/x",
        "postgresql://me:p:w@a:1,b:2/x?target_session_attrs=any&sslmode=disable",
    ],
)
def test_addresses_that_libpq_takes_are_taken(address):
    assert "p:w" not in SqlQuery("", address).public_address
    sql_query._check_address(address)


def test_secrets_are_blotted_out_in_every_form_they_may_be_written_in():
    secrets = sql_query._check_address(f"postgresql://me:{ENCODED}@h/x?sslpassword=Hush%21")
    text = f"a {PASSWORD} b {ENCODED} c Hush! d Hush%21 e"
    assert sql_query._mask(text, secrets) == "a *** b *** c *** d *** e"


def test_other_databases_are_refused(read):
    with pytest.raises(IngestError, match="must start with postgresql:// or sqlite:///") as error:
        read(SqlQuery("SELECT 1", "mysql://me:hush@localhost/x"))
    assert "hush" not in str(error.value)


@pytest.mark.parametrize(
    ("address", "package"),
    [("postgresql://h/x", "adbc-driver-postgresql")],
)
def test_a_missing_driver_names_the_extra_that_brings_it(
    read, tmp_path, monkeypatch, address, package
):
    path = tmp_path / "a.db"
    path.touch()
    monkeypatch.setitem(sys.modules, f"{package.replace('-', '_')}.dbapi", None)
    with pytest.raises(MissingExtraError, match=rf"needs {package}; .*inftda\[sql\]"):
        read(SqlQuery("SELECT 1", address.format(path)))
