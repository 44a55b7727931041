"""SQL queries against a database: SQLite by Python itself, PostgreSQL by ADBC (extra `sql`).

The session is read-only. PostgreSQL's columns have types; SQLite's have none, so its cells are
converted one by one. A password must never leave: it is hidden in the printed form of a
query, addresses that could make a driver quote a piece of it are refused before the driver
sees them, and what drivers say is passed on only where it cannot contain data, with the
secrets masked. Driver errors are never chained, because a chain is printed.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, quote, unquote

import numpy as np
import pyarrow as pa

from inftda.errors import IngestError, MissingExtraError
from inftda.reading import cells
from inftda.reading.columns import NUMERIC
from inftda.reading.memory import open_stream
from inftda.reading.sources import ARROW_INPUT, RAW_FLAW, Input, Relation, Use

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from inftda.reading.workspace import Workspace

_ADDRESS: Final = re.compile(
    r"""postgres(?:ql)?://
    (?:(?P<user>[^:@/?\s]*)(?::(?P<password>[^@/?\s]*))?@)?
    (?P<hosts>[^@/?\s]*)
    (?:/(?P<name>[^@/?\s]*))?
    (?:\?(?P<parameters>[^@\s]*))?""",
    re.VERBOSE,
)
_HOST: Final = re.compile(r"(?:\[[0-9a-fA-F:.%]+\]|[^:\[\]]*)(?::\d*)?")
_STRAY_PERCENT: Final = re.compile(r"%(?![0-9a-fA-F]{2})")
_SECRET_PARAMETERS: Final = frozenset({"password", "sslpassword", "oauth_client_secret"})
_LABEL: Final = "the SQL query"
_FAILED: Final = "it failed while running; try it in the database"
#: Rows that are fetched from SQLite at once.
_BATCH_ROWS: Final = 1 << 14
#: What a query may do in SQLite: nothing that writes, and no other file.
_READING: Final = frozenset({
    sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE,
})  # fmt: skip
#: SQLSTATE classes of errors about the query's text or the session, never about a row.
_ABOUT_THE_QUERY: Final = ("25", "28", "3D", "3F", "42")


@dataclass(frozen=True, slots=True)
class SqlQuery:
    """A query whose rows are trips or flows.

    Attributes:
        query: one SELECT statement.
        database: `postgresql://user:password@host:port/name` or `sqlite:///path/to/file`
            (four slashes for an absolute path). Special characters of a password are
            percent-encoded; better still, leave the password to PGPASSWORD or ~/.pgpass.

    >>> SqlQuery("SELECT * FROM trips", "postgresql://me:secret@localhost/mobility")
    SqlQuery('SELECT * FROM trips', 'postgresql://localhost/mobility')
    """

    query: str
    database: str = field(repr=False)

    @property
    def public_address(self) -> str:
        """The database without user, password and options: fit for logs and manifests."""
        if self.database.startswith("sqlite:"):
            return self.database
        parts = _parse(self.database)
        if parts is None:  # any piece of it may be a piece of the password
            return "(database)"
        return f"postgresql://{parts['hosts']}/{parts['name'] or ''}"

    def __repr__(self) -> str:
        return f"SqlQuery({self.query!r}, {self.public_address!r})"


def open_query(source: SqlQuery, workspace: Workspace) -> Input:
    """Run a query; its rows are streamed, and the workspace closes the database.

    Raises:
        IngestError: the address is wrong, the database cannot be reached, or it refuses
            the query.
        MissingExtraError: the driver is not installed.
    """
    if source.database.startswith("sqlite:"):
        return _open_sqlite(source, workspace)
    if source.database.startswith(("postgresql:", "postgres:")):
        return _open_postgresql(source, workspace)
    raise IngestError(
        "the database address must start with postgresql:// or sqlite:///; "
        "other databases: export the table to Parquet"
    )


def _open_sqlite(source: SqlQuery, workspace: Workspace) -> Input:
    if not source.database.startswith("sqlite:///"):
        raise IngestError("an SQLite address is sqlite:///path (sqlite:////path if absolute)")
    path = Path(source.database.removeprefix("sqlite:///"))
    if not path.is_file():
        raise IngestError(f"there is no SQLite file {str(path)!r}; check the path")
    query = _one_query(source)
    uri = f"file:{quote(str(path.absolute()))}?mode=ro"
    # DuckDB asks for rows from a thread of its own.
    connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
    workspace.on_close(connection.close)
    # Views of a stranger's file must not call functions that do more than compute.
    connection.execute("PRAGMA trusted_schema = OFF").close()
    _, failure = _attempt(lambda: connection.execute("PRAGMA schema_version").close())
    if failure is not None:
        raise IngestError(f"cannot open {source.public_address}: {_first_line(failure)}")
    connection.set_authorizer(_only_reading)
    # Text that is not UTF-8 becomes a flaw of its row; sqlite3's own error would quote it.
    connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    cause: str | None = None
    _, failure = _attempt(lambda: connection.execute(f"EXPLAIN {query}").close())
    if failure is not None:
        cause = _first_line(failure)  # found before any row is read, so it quotes none
    else:
        cursor, failure = _attempt(lambda: connection.execute(query))
        cause = None if failure is None else _FAILED
    if cause is not None:
        if str(failure).startswith(("not authorized", "authorization denied")):
            cause = "it may only read, as the database is read-only; give a SELECT statement"
        raise IngestError(f"{source.public_address} refuses the query: {cause}")
    names = tuple(column[0] for column in cursor.description or ())
    if not names:
        raise IngestError("the SQL query gives no columns; give a SELECT statement")

    def select(uses: Sequence[Use]) -> Relation:
        schema = pa.schema([*((use.alias, pa.string()) for use in uses), (RAW_FLAW, pa.int8())])
        batches = _sqlite_batches(cursor, uses, schema)
        workspace.register(ARROW_INPUT, pa.RecordBatchReader.from_batches(schema, batches))
        return Relation(f"FROM {ARROW_INPUT}", {})

    return Input(_LABEL, "sql", names, select, is_repeatable=False)


def _only_reading(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    """SQLite's authorizer, called for every step of a statement."""
    del first
    is_safe = action in _READING and not (second or "").lower().startswith("load_extension")
    return sqlite3.SQLITE_OK if is_safe else sqlite3.SQLITE_DENY


def _sqlite_batches(
    cursor: sqlite3.Cursor, uses: Sequence[Use], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Rows as text, every cell converted by itself."""
    while rows := cursor.fetchmany(_BATCH_ROWS):
        columns = list(zip(*rows, strict=True))
        flaw = np.zeros(len(rows), np.int8)
        arrays = []
        for use in uses:
            column = columns[use.position]
            found = cells.convert(column, use.purpose)
            arrays.append(found.values.cast(pa.string()))
            if found.flaw is not None:
                flaw = np.where(flaw > 0, flaw, found.flaw)
        yield pa.RecordBatch.from_arrays([*arrays, pa.array(flaw)], schema=schema)


def _open_postgresql(source: SqlQuery, workspace: Workspace) -> Input:
    secrets = _check_address(source.database)
    driver = _driver("adbc_driver_postgresql")
    reader = _stream(
        source,
        lambda: driver.connect(source.database, autocommit=True),
        setup=("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",),
        secrets=secrets,
        workspace=workspace,
    )
    opened = open_stream(reader, workspace, label=_LABEL)

    def select(uses: Sequence[Use]) -> Relation:
        numeric = {
            use.alias: NUMERIC for use in uses if _is_numeric(reader.schema.field(use.position))
        }
        return Relation(opened.select(uses).sql, numeric)

    return replace(opened, kind="sql", select=select)


def _is_numeric(field: pa.Field) -> bool:
    """Whether text holds PostgreSQL's exact decimals, which Arrow has no type for."""
    metadata = field.metadata or {}
    declared = metadata.get(b"ADBC:postgresql:typname") or getattr(field.type, "type_name", None)
    return declared in {b"numeric", "numeric"}


def _driver(module: str) -> Any:
    try:
        return import_module(f"{module}.dbapi")
    except ImportError:
        raise MissingExtraError(
            f"reading from a database needs {module.replace('_', '-')}; "
            "install it with: pip install 'inftda[sql]'"
        ) from None


def _parse(address: str) -> re.Match[str] | None:
    """The parts of a PostgreSQL address; None if it can be read in more than one way.

    With a raw @, / or ? in the password, libpq takes a piece of the password for a port or
    a host and says so in its message.
    """
    parts = _ADDRESS.fullmatch(address)
    if (
        parts is None
        or _STRAY_PERCENT.search(address)
        or not all(_HOST.fullmatch(host) for host in parts["hosts"].split(","))
        or not all("=" in pair for pair in (parts["parameters"] or "=").split("&"))
    ):
        return None
    return parts


def _check_address(address: str) -> tuple[str, ...]:
    """Refuse what a driver would misread and then quote; gives the secrets in the address."""
    parts = _parse(address)
    if parts is None:
        raise IngestError(
            "the database address cannot be understood; write it as "
            "postgresql://user:password@host:port/name with special characters of the password "
            "percent-encoded (@ as %40, / as %2F, ? as %3F, % as %25, space as %20)"
        )
    secrets = [parts["password"] or ""]
    secrets += [
        value
        for key, value in parse_qsl(parts["parameters"] or "", keep_blank_values=True)
        if key in _SECRET_PARAMETERS
    ]
    written = {form for secret in secrets for form in (secret, unquote(secret), quote(secret, ""))}
    return tuple(sorted(filter(None, written), key=len, reverse=True))


def _one_query(source: SqlQuery) -> str:
    query = source.query.strip().rstrip(";").rstrip()
    if not query:
        raise IngestError("the SQL query is empty; give a SELECT statement")
    return query


def _stream(
    source: SqlQuery,
    connect: Callable[[], Any],
    *,
    setup: Iterable[str],
    secrets: tuple[str, ...],
    workspace: Workspace,
) -> pa.RecordBatchReader:
    query = _one_query(source)
    # The errors below are raised outside of `except`, so that the driver's own error, which
    # may quote an address or a row, is not even their context.
    connection, failure = _attempt(connect)
    if failure is not None:
        raise IngestError(
            f"cannot open {source.public_address}: {_mask(_first_line(failure), secrets)}; "
            "check address, user and password, and that the server runs"
        )
    resources = ExitStack()
    resources.callback(connection.close)
    cursor = connection.cursor()
    resources.callback(cursor.close)
    workspace.on_close(resources.close)
    reader, failure = _attempt(lambda: _execute(cursor, setup, query))
    if failure is not None:
        raise IngestError(
            f"{source.public_address} refuses the query: {_mask(_cause(failure), secrets)}"
        )
    return reader


def _execute(cursor: Any, setup: Iterable[str], query: str) -> pa.RecordBatchReader:
    for statement in setup:
        cursor.execute(statement)
    cursor.execute(query)
    return cursor.fetch_record_batch()


def _attempt(action: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return action(), None
    except Exception as failure:  # noqa: BLE001 - drivers raise many kinds; none may pass unmasked
        return None, failure


def _cause(failure: Exception) -> str:
    """What the database says, unless it may be quoting a value from a row."""
    state = getattr(failure, "sqlstate", None)
    text = _first_line(failure)
    if state is None:
        return _FAILED
    if state.startswith(_ABOUT_THE_QUERY):
        return text
    return f"it failed while running (SQLSTATE {state}); try it in the database"


def _first_line(failure: Exception) -> str:
    lines = str(failure).strip().splitlines()
    return lines[0] if lines else type(failure).__name__


def _mask(text: str, secrets: tuple[str, ...]) -> str:
    for secret in secrets:
        text = text.replace(secret, "***")
    return text
