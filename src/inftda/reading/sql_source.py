"""SQL queries against a database: SQLite by Python itself, every other by ADBC (extra `sql`).

A driver of ADBC gives a stream of Arrow, whose columns have types. SQLite's have none, and its
driver would infer them from rows, so each of its cells becomes text here.

Nothing is written: sessions of PostgreSQL, DuckDB and SQLite are read-only, and in other databases
the query stands inside of another, where only a query can stand.

A password must never be shown: the repr of a query hides it, and messages of a driver, which may
quote an address or a row, are never passed on. Errors are reported by their SQLSTATE, and never
chained, because a chain is printed.
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote

import pyarrow as pa

from inftda.errors import IngestError, MissingExtraError, quietly
from inftda.reading.sources import ARROW_INPUT, Source, open_stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from inftda.reading.workspace import Workspace

T = TypeVar("T")

_LABEL: Final = "the SQL query"
#: An address names its driver, and a profile of ADBC its own.
_ADDRESS: Final = re.compile(r"([a-z][a-z0-9_]*)://.*", re.DOTALL)
_PROFILE: Final = "profile"
#: Databases in a file, whose path follows three slashes.
_FILES: Final = frozenset({"sqlite", "duckdb"})
#: Rows that are fetched from SQLite at once.
_BATCH_ROWS: Final = 1 << 14
#: SQL for a cell of SQLite as text: whole numbers as digits, other numbers with all their digits,
#: and bytes in a form that no code or count has.
_CELL: Final = """CASE typeof({0})
    WHEN 'real' THEN CASE WHEN abs({0}) < 9007199254740992 AND {0} = CAST({0} AS INTEGER)
        THEN CAST(CAST({0} AS INTEGER) AS TEXT) ELSE printf('%!.17g', {0}) END
    WHEN 'blob' THEN quote({0}) ELSE CAST({0} AS TEXT) END"""
#: Causes of PostgreSQL's errors, by the first letters of their SQLSTATE.
_STATES: Final = {
    "25006": "the session is read-only; give a SELECT statement",
    "42501": "the user may not read what it names",
    "42601": "it has a syntax error, or is more than one statement",
    "42703": "it names a column that does not exist",
    "42P01": "it names a table that does not exist",
    "42": "it is wrong, or names what does not exist",
}


@dataclass(frozen=True, slots=True)
class SqlQuery:
    """A query whose rows are trips or flows.

    Attributes:
        query: one SELECT statement.
        database: `postgresql://user:password@host:port/name`; `sqlite:///path/to/file` or
            `duckdb:///path/to/file` (four slashes for an absolute path); the address of any other
            database with a driver of ADBC, which it begins with, as `snowflake://...`; or
            `profile://name`, a connection profile of ADBC. Special characters of a password are
            percent-encoded; better still, leave it to PGPASSWORD, ~/.pgpass or a profile.

    >>> SqlQuery("SELECT * FROM trips", "postgresql://me:secret@localhost/mobility")
    SqlQuery('SELECT * FROM trips', 'postgresql://...')
    """

    query: str
    database: str = field(repr=False)

    def __repr__(self) -> str:
        return f"SqlQuery({self.query!r}, '{self.database.partition(':')[0]}://...')"

    @property
    def statement(self) -> str:
        """The query without the semicolon at its end."""
        query = self.query.strip().rstrip(";").rstrip()
        if not query:
            raise IngestError("the SQL query is empty; give a SELECT statement")
        return query


def open_query(source: SqlQuery, workspace: Workspace) -> Source:
    """Run a query; its rows are streamed, and the workspace closes the database."""
    found = _ADDRESS.fullmatch(source.database)
    if found is None or (found[1] in _FILES and not source.database.startswith(f"{found[1]}:///")):
        raise IngestError(
            "the database address must start with postgresql://, sqlite:///, duckdb:/// (as "
            "sqlite:///path, or sqlite:////path if it is absolute), the name of another driver of "
            "ADBC, or profile://; or export the table to Parquet"
        )
    if found[1] == "sqlite":
        return _open_sqlite(source, workspace)
    return _open_adbc(source, found[1], workspace)


def _explain(message: str) -> str:
    del message  # it may quote a row
    return (
        f"{_LABEL} failed while its rows were read, or a cell is not UTF-8 text; try it in the "
        "database"
    )


def _open_sqlite(source: SqlQuery, workspace: Workspace) -> Source:
    path = Path(source.database.removeprefix("sqlite:///"))
    if not path.is_file():
        raise IngestError(f"there is no SQLite file {str(path)!r}; check the path")
    query = source.statement
    uri = f"file:{quote(str(path.absolute()))}?mode=ro"
    # DuckDB asks for rows from a thread of its own.
    connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
    workspace.callback(connection.close)
    # Views of an untrusted file must not call functions that do more than compute.
    connection.execute("PRAGMA trusted_schema = OFF").close()
    damaged = f"cannot open {str(path)!r}: it is not an SQLite file, or is damaged"
    _quietly(lambda: connection.execute("PRAGMA schema_version").close(), lambda _: damaged)
    # As a subquery, the statement can only be a query: it cannot write or open another file. It has
    # a line of its own, as it may end in a comment. Messages of SQLite before the first row quote
    # no row.
    _quietly(
        lambda: connection.execute(f"EXPLAIN SELECT * FROM ({query}\n)").close(),  # noqa: S608 - read-only
        lambda failure: (
            f"{str(path)!r} refuses the query, which must be one SELECT statement: {failure}"
        ),
    )
    cursor = _quietly(lambda: connection.execute(query), lambda _: _explain(""))
    names = tuple(column[0] for column in cursor.description)
    cursor.close()

    def select(positions: Sequence[int]) -> str:
        columns = ", ".join(f"at_{i}" for i in range(len(names)))
        cells = ", ".join(_CELL.format(f"at_{position}") for position in positions)
        sql = f"WITH input_row({columns}) AS ({query}\n) SELECT {cells} FROM input_row"  # noqa: S608 - read-only
        schema = pa.schema([(f"c{i}", pa.string()) for i in range(len(positions))])
        batches = _sqlite_batches(connection, sql, schema)
        workspace.register(ARROW_INPUT, pa.RecordBatchReader.from_batches(schema, batches))
        return f"FROM {ARROW_INPUT}"

    return Source(_LABEL, names, select, _explain, is_repeatable=False)


def _sqlite_batches(
    connection: sqlite3.Connection, sql: str, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    cursor = connection.execute(sql)
    while rows := cursor.fetchmany(_BATCH_ROWS):
        arrays = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _open_adbc(source: SqlQuery, scheme: str, workspace: Workspace) -> Source:
    query, name = source.statement, "postgresql" if scheme == "postgres" else scheme
    try:
        manager: Any = import_module("adbc_driver_manager.dbapi")
        given = _connected_by(source.database, name)
    except ImportError:
        driver = "postgresql" if name == "postgresql" else "manager"
        raise MissingExtraError(
            f"reading from a database needs adbc-driver-{driver}; "
            "install it with: pip install 'inftda-od[sql]'"
        ) from None
    connection = _quietly(
        lambda: manager.connect(**given, autocommit=True), partial(_unopened, name)
    )
    workspace.callback(connection.close)
    cursor = connection.cursor()
    workspace.callback(cursor.close)

    def execute() -> pa.RecordBatchReader:
        # It may end in a comment, which ends with its line: PostgreSQL's driver puts it into COPY.
        if name == "postgresql":
            cursor.execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
            cursor.execute(f"{query}\n")
        else:
            cursor.execute(f"SELECT * FROM ({query}\n) AS input_rows")  # noqa: S608 - the user's
        return cursor.fetch_record_batch()

    reader = _quietly(
        execute,
        lambda failure: f"the database refuses the query{_cause(failure)}; try it in the database",
    )
    opened = open_stream(reader, workspace, _LABEL)

    def select(positions: Sequence[int]) -> str:
        """Exact decimals come as text."""
        columns = [
            f"TRY_CAST(c{i} AS DECIMAL(38, 18)) AS c{i}"
            if _is_numeric(reader.schema.field(position))
            else f"c{i}"
            for i, position in enumerate(positions)
        ]
        return f"SELECT {', '.join(columns)} FROM ({opened.select(positions)})"  # noqa: S608 - our own names

    return replace(opened, select=select, explain=_explain)


def _connected_by(database: str, name: str) -> dict[str, Any]:
    """Arguments for connecting with the driver manager of ADBC.

    Raises:
        ImportError: the driver of PostgreSQL is not installed.
    """
    if name == _PROFILE:
        return {"db_kwargs": {"uri": database}}
    if name != "duckdb":
        return {"driver": _driver(name), "db_kwargs": {"uri": database}}
    path = Path(database.removeprefix("duckdb:///"))
    if not path.is_file():
        raise IngestError(f"there is no DuckDB file {str(path)!r}; check the path")
    settings = {
        "path": str(path),
        "access_mode": "READ_ONLY",
        # Views of an untrusted file must not read other files.
        "enable_external_access": "false",
    }
    return {"driver": _driver(name), "entrypoint": "duckdb_adbc_init", "db_kwargs": settings}


def _driver(name: str) -> str:
    """The library of a driver, or its name if it is installed without a package of Python."""
    try:
        package: Any = import_module(f"adbc_driver_{name}")
    except ImportError:
        if name == "postgresql":
            raise
        return name
    find = getattr(package, "driver_path", None) or package._driver_path  # noqa: SLF001 - all have it
    return str(find())


def _unopened(name: str, failure: Exception) -> str:
    if name == "postgresql":
        return (
            "cannot open the database; check that the server runs, user, password and address: "
            "postgresql://user:password@host:port/name, with special characters of the password "
            "percent-encoded (@ as %40, / as %2F, ? as %3F, % as %25)"
        )
    is_missing = getattr(getattr(failure, "status_code", None), "name", "") == "NOT_FOUND"
    if is_missing and name == _PROFILE:
        return "there is no such connection profile of ADBC, or no driver that it names; check both"
    if is_missing:
        return (
            f"there is no driver of ADBC called {name!r} here; install it (as pip install "
            f"adbc-driver-{name}), give a profile://, or export the table to Parquet"
        )
    if name == "duckdb":
        return (
            "cannot open the DuckDB file: it is damaged, of a newer version, or another program "
            "writes to it"
        )
    return (
        "cannot open the database; check that it can be reached, user, password, and the address "
        f"that the driver {name!r} of ADBC wants (or put them into a profile://)"
    )


def _is_numeric(field: pa.Field) -> bool:
    metadata = field.metadata or {}
    declared = metadata.get(b"ADBC:postgresql:typname") or getattr(field.type, "type_name", None)
    return declared in {b"numeric", "numeric"}


def _quietly(action: Callable[[], T], explain: Callable[[Exception], str]) -> T:
    """Run an action of a driver; drop its messages, which may quote an address or a row."""
    return quietly(action, lambda failure: IngestError(explain(failure)))


def _cause(failure: Exception) -> str:
    """Describe the kind of an error without the driver's message."""
    state = getattr(failure, "sqlstate", None)
    if not state:
        return ""
    words = next((words for start, words in _STATES.items() if state.startswith(start)), None)
    return f": {words} (SQLSTATE {state})" if words else f" (SQLSTATE {state})"
