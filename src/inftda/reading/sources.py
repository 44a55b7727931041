"""Sources of rows: files, tables in memory, Arrow streams; each becomes SQL for DuckDB.

Columns are found by their exact names, case-sensitively, and addressed by position: DuckDB
itself would take `Origin` for `origin` and rename the second of two columns with one name. Only
the columns in use are ever read, and a column that Arrow or DuckDB cannot read is refused.

Nothing is guessed from rows. Every cell of a CSV file stays the text that is written, so "001001"
keeps its zeros; only the separator is inferred, from the header. Files that are read as one table
must have the same columns; otherwise the meaning of a cell would depend on the first file.
"""

from __future__ import annotations

import codecs
import glob
import gzip
import io
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from itertools import chain
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final, TypeVar

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from inftda.errors import IngestError, first_few, quietly
from inftda.reading.columns import COUNT
from inftda.reading.workspace import pattern, quote
from inftda.tree import DESTINATION, ORIGIN
from inftda.util.stores import ZIP, fetched, name_of, unpacked
from inftda.util.tabular import (
    FORMAT_NAMES,
    FORMATS,
    TABLE_ENDINGS,
    Format,
    format_of,
    read_sheet,
    split_header,
)

if TYPE_CHECKING:
    from inftda.reading.workspace import Workspace

T = TypeVar("T")

#: Name of the table in the workspace.
ARROW_INPUT: Final = "arrow_input"
#: Names of encodings in Python and in DuckDB, which has no others built in.
ENCODINGS: Final = ("utf-8", "utf-16", "latin-1")
#: Largest length of a line in bytes, quoted line ends included; DuckDB reads as much at once.
MAX_LINE: Final = 32_000_000
_MAX_HEADER: Final = 1 << 20
#: Number of cells of a matrix in one list.
_BLOCK: Final = 64
#: Extension types that DuckDB reads correctly; the last is text of PostgreSQL.
_KNOWN_EXTENSIONS: Final = frozenset({"arrow.uuid", "arrow.opaque"})
_TABLE: Final = "the table"
_MERGED: Final = (
    " (merged cells of a sheet have a value in the first of them only: fill in the others)"
)
_DAMAGED: Final = "it is damaged or cut off, or not readable; check the file and its permissions"
#: Largest number of columns in a message.
_SHOWN: Final = 12


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file with options for reading it.

    Attributes:
        path: file, folder or glob, here or in a store; `.gz` and `.zip` are unpacked on the way.
        encoding: of CSV: utf-8 (with or without a byte order mark), utf-16 or latin-1.
        delimiter: of CSV, one character; by default the one of , ; tab | that splits the header
            most.
        sheet: of Excel, its name; by default the only one that is not empty.
        skip_rows: how many lines of CSV, or rows of Excel, stand above the header.
        matrix: whether it is a matrix of counts: origins in the first column, destinations in the
            header. An empty cell and a dash are zero.
        transposed: whether a matrix has destinations in the first column, origins in the header.

    >>> TableFile("trips.csv", delimiter=";", encoding="ISO-8859-1").encoding
    'latin-1'
    """

    path: str | Path
    encoding: str | None = None
    delimiter: str | None = None
    sheet: str = ""
    skip_rows: int = 0
    matrix: bool = False
    transposed: bool = False

    def __post_init__(self) -> None:
        """Check the options without opening the file."""
        if self.encoding is not None:
            object.__setattr__(self, "encoding", _encoding_named(self.encoding))
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise IngestError(f"delimiter must be one character, got {self.delimiter!r}")
        if not isinstance(self.sheet, str):
            raise IngestError(
                f"`sheet=` must be the name of one sheet, got {self.sheet!r}; put the rows of "
                "several sheets into one"
            )
        if self.skip_rows < 0:
            raise IngestError(f"`skip_rows=` must be at least 0, got {self.skip_rows}")
        if self.transposed and not self.matrix:
            raise IngestError("`transposed=` is for a matrix; give `matrix=` as well")

    def check(self, kind: Format) -> None:
        """Refuse options that do not apply to files of this format."""
        for name in ("encoding", "delimiter", "sheet", "skip_rows", "matrix"):
            if getattr(self, name) and name not in kind.options:
                fitting = " or ".join(one.name for one in FORMATS if name in one.options)
                raise IngestError(
                    f"{label_of(self.path)} is not a file of {fitting}; leave out `{name}=`"
                )


def _encoding_named(name: str) -> str:
    """The one of `ENCODINGS` for any of the names an encoding goes by."""
    with suppress(LookupError, TypeError, ValueError):
        meant = codecs.lookup(name)
        for known in ENCODINGS:
            if codecs.lookup(known).name == meant.name:
                return known
    raise IngestError(
        f"encoding must be one of {', '.join(ENCODINGS)}, got {name!r}; convert the file to UTF-8 "
        "(for example with iconv)"
    )


@dataclass(frozen=True, slots=True)
class Source:
    """One table that can be read; only its header is known so far.

    `select` makes SQL for the columns at some positions, named c0, c1, ..., and `explain` turns a
    message of DuckDB into an explanation without any cell of the table. A stream is not repeatable:
    it can be read once. If names are the header of a file, they may be a person's row. A matrix has
    `header`, the areas of axis `across`, and each of its cells is a row. `blanks` says why cells
    may be missing.
    """

    label: str
    names: tuple[str, ...]
    select: Callable[[Sequence[int]], str]
    explain: Callable[[str], str] = field(repr=False)
    is_repeatable: bool = True
    has_header: bool = False
    header: tuple[str, ...] = ()
    across: str = DESTINATION
    blanks: str = ""

    def __post_init__(self) -> None:
        if not self.names:
            raise IngestError(
                f"{self.label} has no columns; give a table with a row per trip or flow"
            )

    def position(self, name: str, role: str, option: str) -> int:
        """Position of the column with this name; `role` and `option` are for messages."""
        if self.names.count(name) > 1:
            raise IngestError(
                f"{self.label} has {self.names.count(name)} columns {name!r}; rename the others"
            )
        if name in self.names:
            return self.names.index(name)
        near = self.nearest(name, cutoff=0.5)
        hint = f"did you mean {near!r}? If so, " if near else ""
        listed = first_few(self.names, _SHOWN)
        more = f" ({len(self.names)} in all)" if len(self.names) > _SHOWN else ""
        raise IngestError(
            f"{self.label} has no column {name!r} for the {role}; {hint}say which it is: {option}. "
            f"Its columns are {listed}{more}"
        )

    def nearest(self, name: str, *, cutoff: float) -> str | None:
        """The column that is spelt most like this name, if the likeness (0 to 1) is enough."""
        by_folded = {written.casefold(): written for written in reversed(self.names)}
        near = get_close_matches(name.casefold(), by_folded, n=1, cutoff=cutoff)
        return by_folded[near[0]] if near else None

    def attempt(self, action: Callable[[], T]) -> T:
        """Run an action that reads the table."""
        return attempt(action, self.label, self.explain)


def attempt(action: Callable[[], T], label: str, explain: Callable[[str], str]) -> T:
    """Run an action that reads a table; messages of libraries are handled by `quietly`."""

    def refuse(problem: Exception) -> IngestError:
        if isinstance(problem, duckdb.OutOfMemoryException):
            return IngestError(
                f"memory or disk space ran out while reading {label}; set TMPDIR to a folder "
                "on a disk with more space, or use a machine with more memory"
            )
        return IngestError(explain(str(problem)))

    # The last two for streams that break off, and for column names that are not valid text.
    failures = (duckdb.Error, pa.ArrowException, OSError, RuntimeError, UnicodeDecodeError)
    return quietly(action, refuse, failures)


def open_source(source: Any, files: Sequence[Path], workspace: Workspace) -> Source:
    """Register a table in the workspace; `files` is the result of `local_files` for it."""
    if isinstance(source, str | Path):
        source = TableFile(source)
    if not isinstance(source, TableFile):
        return _open_table(source, workspace)
    kind = _kind(files[0])
    source.check(kind)
    opened = _OPENERS.get(kind.name, _open_arrow)(files, source, workspace)
    return _unfolded(opened, is_transposed=source.transposed) if source.matrix else opened


def label_of(path: str | Path) -> str:
    """Name of a file or folder in messages."""
    return repr(name_of(path))


# --- files


@contextmanager
def local_files(source: Any) -> Iterator[list[Path]]:
    """The files of a path, folder or glob: all of one kind, sorted; none of other sources.

    Those that are in a store, or packed into zip files, are copied to a private folder first.
    """
    path = source.path if isinstance(source, TableFile) else source
    if not isinstance(path, str | Path):
        yield []
        return
    with (
        fetched(path, IngestError, is_wanted=_is_data) as here,
        unpacked(_find_files(here), TABLE_ENDINGS, IngestError) as files,
    ):
        kinds = sorted({_kind(file).name for file in files})
        if len(kinds) > 1:
            raise IngestError(f"{label_of(path)} holds both {' and '.join(kinds)} files; keep one")
        yield files


def _find_files(path: str | Path) -> list[Path]:
    files = files_at(path)
    if not files and Path(path).exists() and not Path(path).is_dir():
        raise IngestError(
            f"{str(path)!r} is a pipe or a device, and a table is read more than once; write it to "
            "a file first"
        )
    if not files:
        is_folder = Path(path).is_dir()
        what = f"no {FORMAT_NAMES} file in the folder" if is_folder else "no file"
        raise IngestError(f"there is {what} {str(path)!r}; check the path")
    return files


def files_at(path: str | Path) -> list[Path]:
    """The file of a path, or those of a folder or glob that are meant to be read, sorted."""
    root = Path(os.path.abspath(path))  # noqa: PTH100 - Path.absolute() keeps "..", DuckDB does not
    if root.is_file():
        return [root]
    if root.is_dir():
        inside = (file for file in sorted(root.rglob("*")) if file.is_file())
        return [file for file in inside if _is_data(str(file.relative_to(root)))]
    found = sorted(Path(name) for name in glob.glob(str(root), recursive=True))  # noqa: PTH207 - Path.glob refuses absolute patterns
    return [file for file in found if file.is_file()]


def _is_data(name: str) -> bool:
    """Whether a file in a folder is meant to be read: not hidden, not `_SUCCESS` and the like."""
    is_hidden = any(part.startswith((".", "_")) for part in PurePath(name).parts)
    return not is_hidden and name.lower().endswith((*TABLE_ENDINGS, ZIP))


def _kind(file: Path) -> Format:
    kind = format_of(file.name)
    if kind is not None:
        return kind
    listed = ", ".join((*TABLE_ENDINGS, ZIP))
    raise IngestError(f"{file.name!r} has an unknown ending; use one of {listed}")


def _listed(files: Sequence[Path]) -> str:
    return f"[{', '.join(quote(pattern(file)) for file in files)}]"


def _by_position(relation: str, n_columns: int, positions: Sequence[int]) -> str:
    """SQL for some columns of a relation."""
    columns = ", ".join(f"at_{i}" for i in range(n_columns))
    chosen = ", ".join(f"at_{position} AS c{i}" for i, position in enumerate(positions))
    return f"SELECT {chosen} FROM {relation} AS input_row({columns})"  # noqa: S608 - our own names


def _open_csv(files: Sequence[Path], options: TableFile, _: Workspace) -> Source:
    encoding = options.encoding or ENCODINGS[0]
    headers = [_read_header(file, options) for file in files]
    names, delimiter = headers[0]
    for file, header in zip(files, headers, strict=True):
        if header != headers[0]:
            raise _other_columns(file, files[0])
    columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(names)))
    relation = (
        f"read_csv({_listed(files)}, auto_detect = false, header = true, "
        f"delim = {quote(delimiter)}, quote = '\"', escape = '\"', "
        f"encoding = {quote(encoding)}, skip = {options.skip_rows:d}, "
        f"max_line_size = {MAX_LINE:d}, buffer_size = {MAX_LINE:d}, columns = {{{columns}}})"
    )
    label = label_of(options.path)
    return Source(
        label,
        tuple(names),
        partial(_by_position, relation, len(names)),
        partial(_explain_csv, label, encoding),
        has_header=True,
    )


def _read_header(path: Path, options: TableFile) -> tuple[list[str], str]:
    """Column names of a CSV file, and the separator."""
    label = repr(path.name)
    opener = gzip.open if path.name.lower().endswith(".gz") else open
    encoding = options.encoding or ENCODINGS[0]
    codec = "utf-8-sig" if encoding == "utf-8" else encoding
    try:
        with opener(path, "rb") as raw, io.TextIOWrapper(raw, codec) as handle:
            above = [handle.readline(_MAX_HEADER) for _ in range(options.skip_rows)]
            line = handle.readline(_MAX_HEADER)
    except UnicodeError:
        raise IngestError(_wrong_encoding(label, encoding)) from None
    except (OSError, EOFError, zlib.error):
        raise IngestError(f"cannot read {label}: {_DAMAGED}") from None
    if len(line) == _MAX_HEADER:
        raise IngestError(f"the first line of {label} has no end; is this a CSV file?")
    if not line.strip():
        where = f" from line {options.skip_rows + 1} on" if options.skip_rows else ""
        raise IngestError(f"{label} is empty{where}; give a table with a header and rows")
    names, delimiter = split_header(line.rstrip("\r\n"), options.delimiter)
    # DuckDB would skip all lines up to the end of a quote that these leave open.
    cell = rf'(^|{re.escape(delimiter)})"([^"]|"")*"(?={re.escape(delimiter)}|$)'
    if any('"' in re.sub(cell, r"\1", text.rstrip("\r\n")) for text in above):
        raise IngestError(
            f"the lines above the header of {label} have a quote that does not end where its cell "
            "ends; remove these lines, and leave out `skip_rows=`"
        )
    return names, delimiter


def _explain_csv(label: str, encoding: str, message: str) -> str:
    if "nicode" in message or "not utf-8" in message:
        return _wrong_encoding(label, encoding)
    line = re.search(r"CSV Error on Line: (\d+)", message)
    if line is None:
        return f"cannot read {label}: {_DAMAGED}"
    flaws = {
        "Maximum line size": f"is longer than {MAX_LINE // 10**6} MB; shorten its cells, leave out "
        "the column that holds so much, or write the table as Parquet",
        "unterminated quote": "opens a quote that is never closed; close it",
        "Expected Number of Columns": "has a different number of cells from the header; correct "
        "that line",
    }
    said = (what for sign, what in flaws.items() if sign in message)
    return f"line {line[1]} of {label} {next(said, 'is not valid CSV; correct that line')}"


def _wrong_encoding(label: str, encoding: str) -> str:
    return (
        f"{label} is not {encoding} text; give its encoding ({', '.join(ENCODINGS)}) with "
        "`encoding=`, or convert it to UTF-8"
    )


def _other_columns(file: Path, first: Path) -> IngestError:
    return IngestError(
        f"{file.name!r} has a different header from {first.name!r}; files that are read as one "
        "table need the same columns in the same order"
    )


def _other_types(file: Path, first: Path, column: str) -> IngestError:
    return IngestError(
        f"{file.name!r} has another type of values in column {column!r} than {first.name!r}; files "
        "that are read as one table need the same types: write them again, codes as text"
    )


def _open_workbooks(files: Sequence[Path], options: TableFile, workspace: Workspace) -> Source:
    label = label_of(options.path)
    sheets = [
        read_sheet(
            file,
            what=label,
            error=IngestError,
            sheet=options.sheet,
            skip_rows=options.skip_rows,
            is_matrix=options.matrix,
        )
        for file in files
    ]
    names = sheets[0][0]
    for file, (others, _) in zip(files, sheets, strict=True):
        if others != names:
            raise _other_columns(file, files[0])
    columns = [list(chain(*parts)) for parts in zip(*(of for _, of in sheets), strict=True)]
    if options.matrix:
        # Each cell becomes text independently of all others.
        columns = [
            pa.array((None if cell is None else str(cell) for cell in column), pa.string())
            for column in columns
        ]
    opened = _open_columns(names, columns, workspace, label, has_header=True)
    return replace(opened, blanks=_MERGED)


def _unfolded(matrix: Source, *, is_transposed: bool) -> Source:
    """A matrix of text as flows: a row for each of its cells.

    Blank cells of a row or a column without a name are no cells of the matrix.
    """
    _, *header = matrix.names
    named = [code for code in header if code]
    down, across = (DESTINATION, ORIGIN) if is_transposed else (ORIGIN, DESTINATION)
    if not named or len({*named}) < len(named):
        # The message names no area: without a header, the first line holds counts.
        flaw = f"names the same {across} twice" if named else f"names no {across}"
        raise IngestError(
            f"the header of {matrix.label} {flaw}; a matrix has {down}s in its first column and "
            f"{across}s in its header, each once, and `skip_rows=` says how many lines of titles "
            "are above it"
        )

    def select(positions: Sequence[int]) -> str:
        inside = matrix.select(range(len(matrix.names)))
        cells = _in_blocks([f"c{i}" for i in range(1, len(matrix.names))])
        codes = _in_blocks([quote(code) for code in header])
        # DuckDB takes short lists apart faster than long ones: 5,000 columns in 4 s, not 58.
        blocks = f"SELECT c0, unnest({codes}) AS codes, unnest({cells}) AS cells FROM ({inside})"  # noqa: S608 - our own names, and quoted ones
        rows = f"SELECT c0, unnest(codes) AS code, unnest(cells) AS cell FROM ({blocks})"  # noqa: S608 - quoted names only
        n = "CASE WHEN cell IS NULL OR trim(cell) IN ('', '-') THEN '0' ELSE cell END"
        chosen = ", ".join(f"{('c0', 'code', n)[at]} AS c{i}" for i, at in enumerate(positions))
        is_margin = "coalesce(trim(cell), '') = '' AND (code = '' OR coalesce(trim(c0), '') = '')"
        return f"SELECT {chosen} FROM ({rows}) WHERE NOT ({is_margin})"  # noqa: S608 - quoted names only

    return replace(
        matrix,
        names=(down, across, COUNT),
        select=select,
        has_header=False,
        header=tuple(named),
        across=across,
    )


def _in_blocks(items: Sequence[str]) -> str:
    """SQL for a list of lists."""
    blocks = (", ".join(items[i : i + _BLOCK]) for i in range(0, len(items), _BLOCK))
    return f"[{', '.join(f'[{block}]' for block in blocks)}]"


def _open_parquet(files: Sequence[Path], options: TableFile, workspace: Workspace) -> Source:
    label = label_of(options.path)
    explain = partial(_explain_parquet, label)

    def relation(some: Sequence[Path]) -> str:
        # Codes in folder names (origin=001) are also text; they come after those in the file.
        options = "hive_types_autocast = false, binary_as_string = true"
        return f"read_parquet({_listed(some)}, {options})"

    def describe(some: Sequence[Path]) -> list[tuple[str, str]]:
        return attempt(lambda: workspace.describe(f"FROM {relation(some)}"), label, explain)

    # DuckDB would rename the second of two columns with one name.
    names = attempt(lambda: [pq.read_schema(file).names for file in files], label, explain)
    for file, here in zip(files, names, strict=True):
        if here != names[0]:
            raise _other_columns(file, files[0])
    n = len(names[0])
    types = [[kind for _, kind in describe([file])[:n]] for file in files]
    written = [*names[0], *(name for name, _ in describe(files)[n:])]

    def select(positions: Sequence[int]) -> str:
        for file, here in zip(files, types, strict=True):
            for i in positions:
                if i < n and here[i] != types[0][i]:
                    raise _other_types(file, files[0], written[i])
        return _by_position(relation(files), len(written), positions)

    return Source(label, tuple(written), select, explain)


def _explain_parquet(label: str, message: str) -> str:
    if "UTF8" in message:
        return not_utf8(label)
    return (
        f"cannot read {label} as Parquet: it is damaged or cut off, is not readable, or has no "
        "columns, or columns that are in another file; write it again"
    )


def _open_arrow(files: Sequence[Path], options: TableFile, workspace: Workspace) -> Source:
    """Files that become Arrow tables in memory."""
    label = label_of(options.path)

    def read(file: Path) -> pa.Table:
        return _kind(file).read(file, label, IngestError)

    def explain(message: str) -> str:
        if "UTF8" in message:
            return not_utf8(label)
        name = _kind(files[0]).name
        return f"cannot read {label} as a file of {name}: it is damaged or cut off; write it again"

    tables = [attempt(partial(read, file), label, explain) for file in files]
    first = tables[0].schema
    for file, table in zip(files, tables, strict=True):
        if table.column_names != first.names:
            raise _other_columns(file, files[0])
        for here, there in zip(table.schema, first, strict=True):
            if here.type != there.type:
                raise _other_types(file, files[0], here.name)
    whole = pa.concat_tables(table.cast(first) for table in tables)
    return _open_columns(whole.column_names, whole.columns, workspace, label)


#: Functions that open formats that DuckDB reads, or whose errors can be explained.
_OPENERS: Final = {"CSV": _open_csv, "Parquet": _open_parquet, "Excel": _open_workbooks}


def not_utf8(label: str) -> str:
    """Message about bytes that are not text."""
    return (
        f"a cell of {label} is not UTF-8 text, in a column that holds area codes, persons or "
        "counts; write the column as text or whole numbers"
    )


# --- memory


def _open_table(table: Any, workspace: Workspace) -> Source:
    """A table in memory, or an Arrow stream."""
    if isinstance(table, Mapping):
        return _open_columns(list(map(str, table)), list(table.values()), workspace)
    library = type(table).__module__.partition(".")[0]
    if library == "polars" and hasattr(table, "collect"):
        raise IngestError(f"a {type(table).__name__} is not computed yet; collect() it first")
    if library in {"pandas", "geopandas"} and hasattr(table, "iloc"):
        index = [i for i, name in enumerate(table.index.names) if name is not None]
        columns = [table.iloc[:, i] for i in range(len(table.columns))]
        columns += [table.index.get_level_values(i) for i in index]
        names = [*table.columns, *(table.index.names[i] for i in index)]
        return _open_columns(list(map(str, names)), columns, workspace)
    if isinstance(table, pa.Table | pa.RecordBatch) or library == "polars":
        held = pa.table(table)
        return _open_columns(held.column_names, held.columns, workspace)
    if hasattr(table, "__arrow_c_stream__"):
        return open_stream(pa.RecordBatchReader.from_stream(table), workspace)
    raise IngestError(
        f"cannot read trips from a {type(table).__name__}; give a path, a pandas, polars or "
        "pyarrow table, an Arrow stream, or an SqlQuery"
    )


def _open_columns(
    names: Sequence[str],
    columns: Sequence[Any],
    workspace: Workspace,
    label: str = _TABLE,
    *,
    has_header: bool = False,
) -> Source:
    """Columns in memory, of which those in use are converted to Arrow."""

    def select(positions: Sequence[int]) -> str:
        arrays: list[Any] = []
        for position in positions:
            # Arrow's message quotes the cell it stumbled over, so the error is raised outside of
            # `except`, where it has no context.
            array = None
            with suppress(pa.ArrowException, TypeError, ValueError, OverflowError):
                array = _as_arrow(columns[position])
            if array is None or _is_foreign(array.type, workspace):
                raise _unfit(names[position], label)
            arrays.append(array)
            if len(array) != len(arrays[0]):
                raise _unfit(names[position], label)
        table = pa.table(arrays, names=[f"c{i}" for i in range(len(arrays))])
        workspace.register(ARROW_INPUT, table)
        return f"FROM {ARROW_INPUT}"

    return Source(
        label, tuple(names), select, partial(_explain_table, label), has_header=has_header
    )


def _as_arrow(column: Any) -> pa.Array | pa.ChunkedArray:
    """A column of any library as Arrow.

    A column of Python's objects may mix text and whole numbers, as Excel does; each cell becomes
    text by itself. Arrow refuses other mixtures, or finds a type that is refused later.
    """
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return column
    if hasattr(column, "to_arrow"):  # of polars
        return column.to_arrow()
    if isinstance(column, str | bytes):
        raise TypeError
    if str(getattr(column, "dtype", "object")) != "object":
        return pa.array(column, from_pandas=True)
    cells = list(column)
    kinds = {*map(type, cells)}
    if float in kinds and str in kinds:  # pandas has NaN for missing values
        cells = [None if cell != cell else cell for cell in cells]  # noqa: PLR0124
        kinds = {*map(type, cells)}
    if kinds <= {str, int, type(None)}:
        with suppress(pa.ArrowException, OverflowError):
            return pa.array(cells)
        cells = [None if cell is None else str(cell) for cell in cells]
    return pa.array(cells, from_pandas=True)


def open_stream(reader: pa.RecordBatchReader, workspace: Workspace, label: str = _TABLE) -> Source:
    """A stream of Arrow batches, whose columns have types."""

    def select(positions: Sequence[int]) -> str:
        for position in positions:
            if _is_foreign(reader.schema.field(position).type, workspace):
                raise _unfit(reader.schema.names[position], label)
        fields = [
            reader.schema.field(position).with_name(f"c{i}") for i, position in enumerate(positions)
        ]
        schema = pa.schema(fields)
        batches = (
            pa.record_batch([batch.column(position) for position in positions], schema=schema)
            for batch in reader
        )
        workspace.register(ARROW_INPUT, pa.RecordBatchReader.from_batches(schema, batches))
        return f"FROM {ARROW_INPUT}"

    return Source(
        label,
        tuple(reader.schema.names),
        select,
        partial(_explain_table, label),
        is_repeatable=False,
    )


def _is_foreign(kind: pa.DataType, workspace: Workspace) -> bool:
    """Whether DuckDB does not know the type, or may mistake its storage for its meaning."""
    if isinstance(kind, pa.BaseExtensionType):
        return kind.extension_name not in _KNOWN_EXTENSIONS
    return not workspace.knows(kind)


def _unfit(name: str, label: str) -> IngestError:
    return IngestError(
        f"column {name!r} of {label} cannot be read: its cells are of several kinds, or of one "
        "that tables do not have; give codes as text or whole numbers, counts and degrees as "
        "numbers, times as time stamps, as many in each column"
    )


def _explain_table(label: str, _message: str) -> str:
    return f"cannot read {label}; pass it as a pyarrow table, or write it to Parquet"
