"""Where rows come from: files, tables in memory, SQL; each becomes one relation in DuckDB.

Columns are found by the names as they are written, upper and lower case apart, and addressed
by position: DuckDB itself would take `Origin` for `origin` and rename the second of two
columns with one name.
"""

from __future__ import annotations

import glob
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import duckdb
import pyarrow as pa

from inftda.errors import IngestError
from inftda.ingest import csv_file
from inftda.ingest.csv_file import CsvFile
from inftda.ingest.sql_query import SqlQuery, open_query
from inftda.ingest.workspace import Workspace, quote
from inftda.tables import CSV_ENDINGS, PARQUET_ENDINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")

#: A path, folder or glob, a `CsvFile`, an `SqlQuery`, a mapping of columns, or anything with
#: the Arrow stream interface.
Source = Any


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the input.

    Attributes:
        name: as it is written.
        sql: what it is called in SQL, by position.
        type: its DuckDB type.
    """

    name: str
    sql: str
    type: str


@dataclass(frozen=True, slots=True)
class Input:
    """One table that DuckDB can read.

    Attributes:
        label: what to call it in messages.
        kind: what it is made of.
        relation: SQL for its rows.
        names: its columns as they are written.
        types: their DuckDB types.
        is_repeatable: whether it can be read more than once; a stream cannot.
        encoding: of a CSV file.
    """

    label: str
    kind: Literal["csv", "parquet", "table", "sql"]
    relation: str
    names: tuple[str, ...]
    types: tuple[str, ...]
    is_repeatable: bool = True
    encoding: str = "utf-8"

    @property
    def from_clause(self) -> str:
        """SQL for its rows with columns named by position."""
        columns = ", ".join(f"c{i}" for i in range(len(self.names)))
        return f"{self.relation} AS input_row({columns})"

    def column(self, name: str, *, role: str) -> Column:
        """The column with this name.

        Args:
            name: as it is written in the table.
            role: what it is for, for messages.

        Raises:
            IngestError: there is none, or more than one.
        """
        found = [i for i, written in enumerate(self.names) if written == name]
        if len(found) > 1:
            raise IngestError(f"{self.label} has {len(found)} columns {name!r}; rename the others")
        if not found:
            raise IngestError(self._no_such_column(name, role))
        return Column(name, f"c{found[0]}", self.types[found[0]])

    def _no_such_column(self, name: str, role: str) -> str:
        near = self.nearest(name, cutoff=0.5)
        hint = f"did you mean {near!r}?" if near else "say which column it is."
        return (
            f"{self.label} has no column {name!r} for the {role}; {hint} "
            f"Its columns are {_listed(self.names)}"
        )

    def nearest(self, name: str, *, cutoff: float) -> str | None:
        """The column that is spelt most like this name, if the likeness (0 to 1) is enough."""
        by_folded = {written.casefold(): written for written in reversed(self.names)}
        near = get_close_matches(name.casefold(), by_folded, n=1, cutoff=cutoff)
        return by_folded[near[0]] if near else None

    def attempt(self, action: Callable[[], T]) -> T:
        """Do something that reads the table.

        Raises:
            IngestError: DuckDB could not. Its own error quotes rows, so it is neither passed
                on nor kept as the context of this one.
        """
        try:
            return action()
        except (duckdb.Error, RuntimeError, UnicodeDecodeError) as problem:
            failure = problem  # the last two for names of columns that are no text
        raise IngestError(self.explain(failure))

    def explain(self, failure: Exception) -> str:
        """What went wrong while reading, without a cell of the table in it."""
        if isinstance(failure, duckdb.OutOfMemoryException):
            return (
                f"memory or disk space ran out while reading {self.label}; set TMPDIR to a folder "
                "on a disk with more space, or use a machine with more memory"
            )
        if self.kind == "csv":
            return csv_file.explain(str(failure), self.label, self.encoding)
        if self.kind == "parquet":
            return (
                f"cannot read {self.label} as Parquet: it is damaged or cut off, may not be "
                "read, or its files differ in their columns; write it again"
            )
        if self.kind == "sql":
            return f"{self.label} failed while its rows were read; try it in the database"
        return f"cannot read {self.label}; pass it as a pyarrow table, or write it to Parquet"


def open_source(source: Source, workspace: Workspace) -> Input:
    """Make any source a relation in the workspace.

    Raises:
        IngestError: it cannot be read.
        MissingExtraError: it needs an optional library.
    """
    if isinstance(source, SqlQuery):
        reader, close = open_query(source)
        workspace.on_close(close)
        return _from_arrow(reader, workspace, label="the SQL query", kind="sql")
    if isinstance(source, CsvFile):
        return _from_csv(_find_csv(source.path), source)
    if isinstance(source, str | Path):
        return _from_path(source, workspace)
    return _from_table(source, workspace)


def _from_path(path: str | Path, workspace: Workspace) -> Input:
    files = _find_files(path)
    if files[0].name.lower().endswith(PARQUET_ENDINGS):
        return _from_parquet(files, _label(path), workspace)
    return _from_csv(files, CsvFile(path))


def _from_table(table: Any, workspace: Workspace) -> Input:
    if isinstance(table, Mapping):
        table = _to_arrow(dict(table))
    elif isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    elif type(table).__module__.startswith(("pandas", "polars")):
        if hasattr(table, "collect"):
            raise IngestError(f"a {type(table).__name__} is not computed yet; collect() it first")
        table = _to_arrow(table)
    elif not isinstance(table, pa.Table | pa.RecordBatchReader):
        if not hasattr(table, "__arrow_c_stream__"):
            raise IngestError(
                f"cannot read trips from a {type(table).__name__}; give a path, a pandas, polars "
                "or pyarrow table, an Arrow stream, or an SqlQuery"
            )
        table = pa.RecordBatchReader.from_stream(table)
    return _from_arrow(table, workspace, label="the table", kind="table")


def _to_arrow(table: Any) -> pa.Table:
    # Arrow's message quotes the cell it stumbled over, so the error is raised outside of
    # `except`, where it has no context.
    with suppress(pa.ArrowException, TypeError, ValueError):
        return pa.table(table)
    raise IngestError(
        "the table cannot be turned into Arrow; each column needs one type for all its cells "
        "(text for area codes, whole numbers for counts) and a name of its own"
    )


def _from_arrow(
    table: pa.Table | pa.RecordBatchReader,
    workspace: Workspace,
    *,
    label: str,
    kind: Literal["table", "sql"],
) -> Input:
    names = tuple(table.schema.names)
    if not names:
        raise IngestError(f"{label} has no columns; give a table with a row per trip or flow")
    unopened = Input(label, kind, "arrow_input", names, (), isinstance(table, pa.Table))
    workspace.register(unopened.relation, table)
    types = unopened.attempt(lambda: workspace.types(f"FROM {unopened.from_clause}"))
    return replace(unopened, types=types)


def _from_csv(files: Sequence[Path], options: CsvFile) -> Input:
    label = _label(options.path)
    headers = [
        csv_file.read_header(file, delimiter=options.delimiter, encoding=options.encoding)
        for file in files
    ]
    names, delimiter = headers[0]
    for file, header in zip(files, headers, strict=True):
        if header != headers[0]:
            raise IngestError(
                f"{file.name!r} has another header than {files[0].name!r}; files that are read "
                "as one table need the same columns in the same order"
            )
    relation = csv_file.relation(
        [_escape(file) for file in files],
        n_columns=len(names),
        delimiter=delimiter,
        encoding=options.encoding,
    )
    types = ("VARCHAR",) * len(names)
    return Input(label, "csv", relation, tuple(names), types, encoding=options.encoding)


def _from_parquet(files: Sequence[Path], label: str, workspace: Workspace) -> Input:
    relation = (
        f"read_parquet([{', '.join(quote(_escape(file)) for file in files)}], "
        # Codes in folder names (origin=001) are text, too.
        "hive_types_autocast = false, binary_as_string = true)"
    )
    unopened = Input(label, "parquet", relation, (), ())
    names = unopened.attempt(lambda: _parquet_names(files[0], relation, workspace))
    types = unopened.attempt(lambda: workspace.types(f"FROM {relation}"))
    return replace(unopened, names=names, types=types)


def _parquet_names(file: Path, relation: str, workspace: Workspace) -> tuple[str, ...]:
    """Column names as they are written: those in the file, then those in folder names."""
    schema = workspace.fetch(
        f"SELECT name, num_children FROM parquet_schema({quote(_escape(file))})"  # noqa: S608 - quoted
    ).to_pylist()
    written = []
    position = 1  # behind the root
    while position < len(schema):
        written.append(schema[position]["name"])
        position = _skip(schema, position)
    return tuple(written) + workspace.names(f"FROM {relation}")[len(written) :]


def _skip(schema: list[dict[str, Any]], position: int) -> int:
    """Position behind a node of a depth-first schema and all that is nested in it."""
    pending = 1
    while pending:
        pending += (schema[position]["num_children"] or 0) - 1
        position += 1
    return position


def _find_csv(path: str | Path) -> list[Path]:
    """As `_find_files`, for what is said to be CSV.

    Raises:
        IngestError: it is something else.
    """
    files = _find_files(path)
    if _kind(files[0]) != "csv":
        raise IngestError(f"{_label(path)} is Parquet, which needs no encoding; leave it out")
    return files


def _find_files(path: str | Path) -> list[Path]:
    """The files a path, folder or glob stands for: all of one kind, in order.

    Raises:
        IngestError: there is none, or they are of an unknown kind or of two kinds.
    """
    place = Path(path)
    if place.is_file():
        files = [place]
    elif place.is_dir():
        files = [file for file in sorted(place.rglob("*")) if _is_data(file, place)]
    elif place.exists():
        raise IngestError(
            f"{str(path)!r} is a pipe or a device, and a table is read more than once; write it to "
            "a file first"
        )
    else:
        files = sorted(Path(name) for name in glob.glob(str(path), recursive=True))  # noqa: PTH207 - Path.glob refuses absolute patterns
        files = [file for file in files if file.is_file()]
    if not files:
        what = "no CSV or Parquet file in the folder" if place.is_dir() else "no file"
        raise IngestError(f"there is {what} {str(path)!r}; check the path")
    kinds = {_kind(file) for file in files}
    if len(kinds) > 1:
        raise IngestError(f"{str(path)!r} holds both CSV and Parquet files; keep one kind")
    return files


def _is_data(file: Path, folder: Path) -> bool:
    """Whether a file in a folder is meant to be read: not hidden, not `_SUCCESS` and the like."""
    is_hidden = any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)
    return not is_hidden and file.is_file() and _has_ending(file)


def _has_ending(file: Path) -> bool:
    return file.name.lower().endswith(CSV_ENDINGS + PARQUET_ENDINGS)


def _kind(file: Path) -> str:
    if not _has_ending(file):
        raise IngestError(
            f"{file.name!r} has an unknown ending; use one of "
            f"{', '.join(CSV_ENDINGS + PARQUET_ENDINGS)}"
        )
    return "parquet" if file.name.lower().endswith(PARQUET_ENDINGS) else "csv"


def _escape(file: Path) -> str:
    """A path as a DuckDB pattern that matches nothing but itself."""
    return glob.escape(str(file))


def _label(path: str | Path) -> str:
    return repr(Path(path).name)


def _listed(names: Sequence[str], *, most: int = 12) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown}, ... ({len(names)} in all)"
