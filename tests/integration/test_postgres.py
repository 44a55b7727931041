"""Trips from a real PostgreSQL server on loopback, streamed through ADBC."""

import logging
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import traceback
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest

from inftda.errors import IngestError
from inftda.reading import SqlQuery
from patience import PATIENCE
from reading_cases import CASES, check_case, columns_of

adbc_driver_postgresql = pytest.importorskip("adbc_driver_postgresql", reason="see below")
pg = pytest.importorskip("adbc_driver_postgresql.dbapi", reason="the extra `sql` is not installed")

pytestmark = pytest.mark.nightly  # other databases are read by the same code

#: With everything in it that an address may trip over.
PASSWORD = "hüsh/Xw7@q?9#k %zz"
N_ROWS = 30_000


def binaries():
    """The folder with initdb and pg_ctl, or a skip that says what is missing."""
    found = shutil.which("pg_ctl")
    folders = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    for folder in reversed(folders):
        if (folder / "initdb").exists() and (folder / "pg_ctl").exists():
            return folder
    pytest.skip("NO POSTGRESQL SERVER HERE: install the package `postgresql` to run these tests")
    return None


def as_user():
    """How to start the server: it refuses to run as root."""
    if os.geteuid() != 0:
        return None, []
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        if shutil.which("setpriv"):
            ids = [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
            return user, ["setpriv", *ids]
    pytest.skip("NO POSTGRESQL TESTS: running as root, and there is no other user to run it as")
    return None


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="session")
def server():
    """Address of a fresh server without a password in it, started once."""
    folder, (user, prefix) = binaries(), as_user()
    # Not below pytest's own directory, which another user may not enter.
    home = Path(tempfile.mkdtemp(prefix="pg-inftda-"))
    port = free_port()
    (home / "password").write_text(PASSWORD + "\n")
    if user is not None:
        for path in (home, home / "password"):
            os.chown(path, user.pw_uid, user.pw_gid)

    def run(*command):
        command = [*prefix, str(folder / command[0]), "-D", str(home / "data"), *command[1:]]
        subprocess.run(command, check=True, cwd=home, capture_output=True, timeout=PATIENCE)

    options = (
        f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={home} -c fsync=off"
    )
    try:
        password = ("-A", "scram-sha-256", f"--pwfile={home / 'password'}")
        run("initdb", "-U", "me", *password, "--no-sync", "-E", "UTF8", "--locale=C")
        run("pg_ctl", "-w", "-o", options, "-l", str(home / "log"), "start")
        try:
            yield f"127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def database(server):
    """Address of a server with a table of trips."""
    address = f"postgresql://me:{quote(PASSWORD, safe='')}@{server}"
    with pg.connect(address, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE trips AS SELECT i % 1000 AS person, "
            "'00' || (1 + i % 3) AS origin, ('00' || (1 + i % 2))::char(3) AS destination, "
            f"(i % 5)::numeric AS n FROM generate_series(0, {N_ROWS - 1}) AS i"
        )
    return address


def test_tables_mean_the_same_as_in_any_other_source(database):
    for number, case in enumerate(CASES.values()):
        name = f"case_{number}"
        with pg.connect(database, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.adbc_ingest(name, pa.table(columns_of(case.names, case.rows)))
        check_case(case, SqlQuery(f"SELECT * FROM {name}", database), "the SQL query")


@pytest.mark.parametrize(
    "kind", ["numeric", "numeric(10, 3)", "bigint", "smallint", "float8", "text"]
)
def test_counts_of_any_type_are_summed(read, database, kind):
    query = f"SELECT origin, destination, n::{kind} AS count FROM trips"
    leaves = read(query, database, repeated_rows="add")
    assert leaves.value.sum() == sum(i % 5 for i in range(N_ROWS))


@pytest.mark.parametrize("kind", ["numeric", "date", "boolean"])
def test_codes_that_are_neither_text_nor_whole_numbers_are_refused_by_type(read, database, kind):
    query = f"SELECT NULL::{kind} AS origin, destination FROM trips"
    with pytest.raises(IngestError, match=r"column 'origin' .* text or whole numbers"):
        read(query, database)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT * FROM nowhere", "a table that does not exist"),
        ("SELEC", "syntax error"),
        ("DELETE FROM trips", "read-only"),
        ("SELECT 1; SELECT 2", "more than one statement"),
        ("SELECT 'secret'::text, 1/0", "(SQLSTATE 22012)"),
        ("SELECT origin, destination, ('secret' || n)::int AS count FROM trips", "failed while"),
    ],
)
def test_a_query_that_fails_is_one_clear_error_that_quotes_no_row(read, database, query, message):
    with pytest.raises(IngestError) as error:
        read(query, database)
    assert message in str(error.value)
    assert "secret" not in str(error.value)
    assert error.value.__context__ is None


def leaks(text):
    """Pieces of the password, as it is or percent-encoded, that turn up in a text."""
    forms = (PASSWORD, quote(PASSWORD, safe=""), quote(PASSWORD))
    return {f[i : i + 4] for f in forms for i in range(len(f) - 3) if f[i : i + 4] in text}


@pytest.mark.parametrize(
    "change",
    [
        lambda address: address.replace("me:", "nobody:"),
        lambda address: address.replace("/postgres", "/nowhere"),
        lambda address: address.replace("127.0.0.1", "127.0.0.1:1,127.0.0.1"),
        lambda address: address + "?bogus=1",
        lambda address: address + "?port=none",
        lambda address: address.replace(quote(PASSWORD, safe=""), PASSWORD),
        lambda address: address.replace("%2F", "/"),
        lambda address: address.replace("%40", "@"),
        lambda address: address.replace("%25", "%"),
        lambda address: f"{address.partition('@')[0]}@127.0.0.1:{free_port()}/postgres",
    ],
)
def test_a_password_never_turns_up_in_errors_tracebacks_logs_or_output(
    read, database, change, capfd, caplog
):
    caplog.set_level(logging.DEBUG)
    query, address = "SELECT * FROM nowhere", change(database)
    with pytest.raises(
        IngestError, match=r"cannot open the database; check|does not exist"
    ) as error:
        read(query, address)
    printed = "".join(traceback.format_exception(error.value))
    output = capfd.readouterr()
    for text in (
        str(error.value),
        repr(error.value),
        printed,
        repr(SqlQuery(query, address)),
        caplog.text,
        *output,
    ):
        assert not leaks(text)
    assert error.value.__context__ is None
    assert error.value.__cause__ is None


def test_no_connection_is_left_open(read, database):
    for query in ("SELECT origin, destination FROM trips", "SELECT * FROM nowhere"):
        try:
            read(query, database)
        except IngestError:
            continue
    with pg.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        assert cursor.fetchone() == (0,)


def test_a_profile_of_adbc_names_driver_and_address(read, database, tmp_path, monkeypatch):
    """As for databases whose drivers are not known here; nothing can be written there either."""
    monkeypatch.setenv("ADBC_PROFILE_PATH", str(tmp_path))
    monkeypatch.setenv("TRIPS", database)
    (tmp_path / "trips.toml").write_text(
        "profile_version = 1\n"
        f'driver = "{adbc_driver_postgresql._driver_path()}"\n'
        '[Options]\nuri = "{{ env_var(TRIPS) }}"\n'
    )
    query = "SELECT origin, destination FROM trips -- of all"
    assert read(query, "profile://trips").value.sum() == N_ROWS
    for statement in (
        "DELETE FROM trips",
        "WITH gone AS (DELETE FROM trips RETURNING *) TABLE gone",
    ):
        with pytest.raises(IngestError, match="refuses the query"):
            read(statement, "profile://trips")
    assert read(query, database).value.sum() == N_ROWS
    monkeypatch.setenv("TRIPS", database.replace("/postgres", "/nowhere"))
    with pytest.raises(IngestError, match="cannot open the database") as error:
        read(query, "profile://trips")
    assert not leaks(str(error.value))
