"""Formats of tables, and small public tables: files, DataFrames and mappings to Arrow.

Codes are strings and stay as they are written: "001001" keeps its zeros. Nothing is guessed
but the delimiter, and that from the header alone: a sniffer that skips or splits a row it does
not understand would silently change the areas. Error messages may show cells, so confidential
tables must never be read here.

Tables for people go out as CSV, in which no spreadsheet finds a formula: a name such as
`=HYPERLINK(...)` would run when the file is opened. An apostrophe in front makes it text.
"""

import csv
import re
import warnings
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from inftda.errors import InftdaError, MissingExtraError, first_few, quietly

#: Limits of an Excel sheet: rows, and cells and unpacked bytes of any table in one.
MOST_ROWS, MOST_CELLS, MOST_BYTES = 1 << 20, 1 << 26, 1 << 30
#: Possible delimiters; the most frequent one in the header is taken.
DELIMITERS = (",", ";", "\t", "|")
#: Characters that a spreadsheet may skip at the beginning of a cell: blanks, control characters,
#: and invisible ones such as a byte order mark.
_UNSEEN: Final = r"[\s\x00-\x1f\x7f-\x9f\xad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]*"
#: Where a cell begins for a spreadsheet, whichever delimiter it assumes, before a formula.
FORMULA: Final = re.compile(rf"""(^|[;,|\t\r\n"])({_UNSEEN})(?=[=+\-@\uff1d\uff0b\uff0d\uff20])""")
PLAIN_NUMBER: Final = re.compile(r"[+-]?[0-9]+([.,][0-9]+)*")

#: Names and cells of columns.
Sheet = tuple[list[str], list[list[Any]]]


def as_arrow(values: NDArray[Any]) -> pa.Array:
    """A one-dimensional array of numbers as Arrow, without copying it.

    `pyarrow.array` does the same, but first imports pandas wherever it is installed, half a
    second that a release need not pay.
    """
    values = np.ascontiguousarray(values)
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def repeated(text: str, n: int) -> pa.StringArray:
    """Make an Arrow array of one text n times, without importing pandas."""
    encoded = text.encode()
    offsets = np.arange(n + 1, dtype=np.int32) * np.int32(len(encoded))
    return pa.StringArray.from_buffers(n, pa.py_buffer(offsets), pa.py_buffer(encoded * n))


def texts(names: Iterable[str]) -> pa.StringArray:
    """Make an Arrow array of texts, at least one, without importing pandas."""
    return pa.concat_arrays([repeated(name, 1) for name in names])


def as_numpy(array: pa.Array) -> NDArray[Any]:
    """Arrow numbers as numpy; whole ones without copying them and without pandas."""
    if array.null_count or not pa.types.is_integer(array.type):
        return np.asarray(array.to_numpy(zero_copy_only=False))
    # Integer types have the same names in Arrow and numpy; Arrow's own conversion imports pandas.
    values = np.frombuffer(array.buffers()[1], np.dtype(str(array.type)))
    return values[array.offset : array.offset + len(array)]


def find_texts(texts: pa.StringArray, known: pa.StringArray) -> NDArray[np.int32]:
    """int32: number of each text among known ones, -1 where it is unknown; without pandas."""
    nowhere = as_arrow(np.full(1, -1, np.int32))[0]
    found: NDArray[np.int32] = as_numpy(pc.fill_null(pc.index_in(texts, value_set=known), nowhere))
    return found


def read_strings(
    source: Any, *, what: str, error: type[InftdaError], columns: Sequence[str] | None = None
) -> pa.Table:
    """Read a small table with all columns as strings.

    Args:
        source: path to a file of any of the `FORMATS`, any object with the Arrow stream interface
            (pandas, polars, pyarrow), or a mapping of column name to values.
        what: name of the table for error messages.
        error: the class of error to raise.
        columns: the columns to keep, in this order; all by default.
    """
    table = read_table(source, what=what, error=error)
    return as_strings(table, what=what, error=error, columns=columns)


def read_table(source: Any, *, what: str, error: type[InftdaError]) -> pa.Table:
    """Read a small table; cells of text files stay text. See `read_strings`."""
    is_path = isinstance(source, str | Path)
    try:
        return _read_file(Path(source), what, error) if is_path else _read_memory(source)
    except (OSError, EOFError, UnicodeDecodeError, csv.Error, pa.ArrowException) as problem:
        where = f"{str(source)!r} (the {what})" if is_path else f"the {what}"
        raise error(f"cannot read {where}: {_reason(problem)}") from None
    except NotImplementedError:
        raise error(
            f"the {what} is a {type(source).__name__}; give a path to a {FORMAT_NAMES} "
            "file, or a pandas, polars or pyarrow table"
        ) from None


def as_strings(
    table: pa.Table, *, what: str, error: type[InftdaError], columns: Sequence[str] | None = None
) -> pa.Table:
    """Convert some columns of a table to strings; see `read_strings`."""
    present = table.column_names
    names = present if columns is None else list(columns)
    found = []
    for name in names:
        if name not in present:
            raise error(f"the {what} has no column {name!r}; it has {', '.join(present)}")
        if names.count(name) > 1 or present.count(name) > 1:
            raise error(f"column {name!r} of the {what} is given twice; name each column once")
        column = table.column(name)
        if pa.types.is_floating(column.type):
            raise error(
                f"column {name!r} of the {what} holds decimal numbers; codes must be text or "
                "whole numbers (a column with blanks often turns into decimals: read it as text)"
            )
        try:
            if pa.types.is_dictionary(column.type):
                # Arrow cannot unpack every kind of dictionary (polars'), but can change the kind.
                column = column.cast(pa.dictionary(column.type.index_type, pa.string()))
            found.append(column.cast(pa.string()))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise error(
                f"column {name!r} of the {what} is of type {column.type}; codes must be text or "
                "whole numbers"
            ) from None
    return pa.table(found, names=names)


def distinct(table: pa.Table) -> pa.Table:
    """The different rows of a table, grouped by number: Arrow takes some names for paths."""
    numbers = [str(number) for number in range(table.num_columns)]
    found = table.rename_columns(numbers).group_by(numbers).aggregate([]).select(numbers)
    return found.rename_columns(table.column_names)


def _read_memory(source: Any) -> pa.Table:
    if isinstance(source, pa.Table):
        return source  # asked to make a table of it, Arrow would load pandas
    if isinstance(source, Mapping):
        return pa.table(dict(source))
    if not hasattr(source, "__arrow_c_stream__"):
        raise NotImplementedError
    table = pa.table(source)
    # Left over from a pandas index after rows were filtered; not a column of the user's.
    names = enumerate(table.column_names)
    return table.select([i for i, name in names if not name.startswith("__index_level_")])


def _read_file(path: Path, what: str, error: type[InftdaError]) -> pa.Table:
    if not path.is_file():
        raise error(f"there is no file {str(path)!r} (the {what}); check the path")
    found = format_of(path.name)
    if found is None:
        endings = ", ".join(TABLE_ENDINGS)
        raise error(f"{path.name!r} (the {what}) has an unknown ending; use one of {endings}")
    return found.read(path, what, error)


def _read_parquet(path: Path, *_: Any) -> pa.Table:
    import pyarrow.parquet as pq  # noqa: PLC0415 - time that other formats need not pay

    with pq.ParquetFile(path) as file:
        return file.read()


def _read_ipc(path: Path, *_: Any) -> pa.Table:
    with pa.OSFile(str(path)) as file:
        table = pa.ipc.open_file(file).read_all()
    table.validate(full=True)
    return table


def _read_excel(path: Path, what: str, error: type[InftdaError]) -> pa.Table:
    names, columns = read_sheet(path, what=f"{path.name!r} (the {what})", error=error)
    texts = []
    for column, cells in zip(names, columns, strict=True):
        if not {*map(type, cells)} <= {str, int, type(None)}:
            raise error(f"column {column!r} of the {what} must hold text or whole numbers only")
        texts.append(pa.array(["" if cell is None else str(cell) for cell in cells], pa.string()))
    return pa.Table.from_arrays(texts, names=names)


def _read_csv(path: Path, *_: Any) -> pa.Table:
    from pyarrow import csv as arrow_csv  # noqa: PLC0415 - time that other kinds need not pay

    is_packed = path.name.lower().endswith(".gz")
    with pa.input_stream(str(path), compression="gzip" if is_packed else None) as stream:
        content = stream.read_buffer()
    if content.to_pybytes().count(b'"') % 2:
        raise csv.Error('a " is not closed; close it, or write "" for one inside a quoted cell')
    header = bytes(content[: 1 << 16]).splitlines()[:1]
    line = header[0].decode("utf-8-sig") if header else ""
    if not line.strip():
        raise csv.Error("its first line is blank; start it with the names of the columns")
    names, delimiter = split_header(line, strict=True)
    return arrow_csv.read_csv(
        pa.BufferReader(content),
        # Types are given by column name, so no type is guessed.
        # One thread: only then do errors name the row.
        read_options=arrow_csv.ReadOptions(column_names=names, skip_rows=1, use_threads=False),
        parse_options=arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
        ),
    )


def split_header(
    line: str, delimiter: str | None = None, *, strict: bool = False
) -> tuple[list[str], str]:
    """Column names in the first line of a CSV file without the blanks around them; delimiter.

    Without a delimiter it is the one of `DELIMITERS` that splits the line most. If `strict`, quotes
    in the middle of a name are a `csv.Error`.

    >>> split_header("origin; destination")
    (['origin', 'destination'], ';')
    """
    outside_quotes = re.sub('"[^"]*"', "", line)
    chosen = delimiter or max(DELIMITERS, key=outside_quotes.count)
    names = next(csv.reader([line], delimiter=chosen, strict=strict))
    return [name.strip() for name in names], chosen


class Format(NamedTuple):
    """A kind of file that holds a table.

    Attributes:
        name: name for users.
        endings: endings of file names, in small letters.
        read: reads a small public table, given its path, its name for messages, and the class of
            error to raise. Messages may show cells.
        options: options of a `TableFile` that apply.
        is_read_by_spark: whether executors read it.
    """

    name: str
    endings: tuple[str, ...]
    read: Callable[[Path, str, type[InftdaError]], pa.Table]
    options: frozenset[str] = frozenset()
    is_read_by_spark: bool = False


PARQUET: Final = Format("Parquet", (".parquet", ".pq"), _read_parquet, is_read_by_spark=True)
#: All formats of tables. `inftda.reading.sources` opens large ones in its own way where DuckDB can.
FORMATS: Final = (
    Format(
        "CSV",
        (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz"),
        _read_csv,
        frozenset({"encoding", "delimiter", "skip_rows", "matrix"}),
    ),
    PARQUET,
    Format("Excel", (".xlsx", ".xlsm"), _read_excel, frozenset({"sheet", "skip_rows", "matrix"})),
    Format("Arrow", (".arrow", ".feather"), _read_ipc),
)
TABLE_ENDINGS: Final = tuple(ending for one in FORMATS for ending in one.endings)
#: Their names, for help and messages.
FORMAT_NAMES: Final = ", ".join(one.name for one in FORMATS[:-1]) + f" or {FORMATS[-1].name}"


def format_of(name: str) -> Format | None:
    """The format of a file by the ending of its name; None if no format has it."""
    return next((one for one in FORMATS if name.lower().endswith(one.endings)), None)


def _reason(problem: Exception) -> str:
    if isinstance(problem, UnicodeDecodeError) or "UTF8" in str(problem):
        return "it is not UTF-8 text; save it as UTF-8 (iconv -f latin1 -t utf-8 converts Latin-1)"
    if isinstance(problem, csv.Error):
        return str(problem)
    lines = str(problem).splitlines()
    return f"{lines[0] if lines else type(problem).__name__}; correct the table and try again"


def read_sheet(  # noqa: PLR0913 - what people say of a workbook
    path: Path,
    *,
    what: str,
    error: type[InftdaError],
    sheet: str | None = None,
    skip_rows: int = 0,
    is_matrix: bool = False,
) -> Sheet:
    """Names and cells of the columns of one sheet of Excel.

    A cell is text, a number, or something else; the format it is shown in changes nothing, except
    that dates are not numbers. Excel does not distinguish whole numbers from others, so 12.0 is
    12. Codes that were typed as numbers have lost their leading zeros. Empty rows are left out.

    Args:
        path: path of the workbook.
        what: name of the table for messages.
        error: the class of error to raise.
        sheet: name of the sheet. If empty, the only sheet that is not empty; None if users have no
            option to name one, nor to skip rows.
        skip_rows: number of rows above the names of the columns.
        is_matrix: whether the first column needs no name.
    """
    header, *rows = _chosen(path, what, error, sheet, skip_rows)
    names = ["" if cell is None else str(_whole(cell)).strip() for cell in header]
    longest = max(map(len, rows), default=0)
    while len(names) > longest and not names[-1]:
        names.pop()
    if longest > len(names) or "" in names[is_matrix:]:
        hint = "" if sheet is None else ", and `skip_rows=` says how many are above it"
        raise error(
            f"{what} has a column without a name; its first row must name all columns{hint}"
        )
    n_columns = range(len(names))
    return names, [[_whole(row[i]) if i < len(row) else None for row in rows] for i in n_columns]


def _chosen(
    path: Path, what: str, error: type[InftdaError], sheet: str | None, skip_rows: int
) -> list[tuple[Any, ...]]:
    """Rows of the named sheet, or of the only one that is not empty."""
    try:
        library = import_module("openpyxl")
    except ImportError:
        raise MissingExtraError(
            f"{what} is a workbook of Excel, which needs openpyxl: pip install 'inftda-od[xlsx]', "
            "or save the sheet as CSV (UTF-8)"
        ) from None
    flaw = (
        f"cannot read {what} as a workbook of Excel: it is damaged, locked by a password, too "
        f"large (more than {MOST_ROWS:,} rows, {MOST_CELLS:,} cells, {MOST_BYTES >> 20:,} MB) "
        "or something else; save it again as .xlsx, or as CSV (UTF-8)"
    )
    titles, filled = quietly(
        lambda: _sheets(library, path, sheet, skip_rows), lambda _: error(flaw)
    )
    listed = first_few(titles, 12)
    if sheet and sheet not in titles:
        raise error(f"{what} has no sheet {sheet!r}; its sheets are {listed}")
    if not filled:
        which = f"sheet {sheet!r} with nothing" if sheet else "no sheet with anything"
        raise error(f"{what} has {which} in it; give a table with a header and rows")
    if len(filled) > 1:
        hint = "" if sheet is None else "say which to read (`sheet=`), or "
        raise error(
            f"{what} has {len(filled)} sheets, {listed}; {hint}keep one table, in one sheet"
        )
    return filled[0]


def _sheets(
    library: Any, path: Path, sheet: str | None, skip_rows: int
) -> tuple[list[str], list[list[tuple[Any, ...]]]]:
    """Names of all sheets, and the rows of those that may be meant and are not empty."""
    with zipfile.ZipFile(path) as packed:
        if sum(member.file_size for member in packed.infolist()) > MOST_BYTES:
            raise ValueError
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about styles and the like
        # Links to other workbooks are not even read.
        book = library.load_workbook(path, read_only=True, data_only=True, keep_links=False)
        try:
            titles = [one.title for one in book.worksheets]
            meant = [one for one in book.worksheets if not sheet or one.title == sheet]
            return titles, [rows for one in meant if (rows := _rows(one, skip_rows))]
        finally:
            book.close()


def _rows(sheet: Any, skip_rows: int) -> list[tuple[Any, ...]]:
    """Rows that are not empty, each up to its last cell.

    A row may go on for 16,384 empty cells that have a colour; others must not become as long.
    """
    sheet.reset_dimensions()  # the size stated in the file may be wrong
    rows, n_cells = [], 0
    for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
        n_cells += len(row)
        if number > MOST_ROWS or n_cells > MOST_CELLS:
            raise ValueError
        length = max((i for i, cell in enumerate(row, start=1) if cell is not None), default=0)
        if length and number > skip_rows:
            rows.append(row[:length])
    return rows


def _whole(cell: Any) -> Any:
    """Convert a whole number such as 12.0 to an integer."""
    return int(cell) if isinstance(cell, float) and cell.is_integer() else cell


def disarmed(text: str) -> str:
    """Escape a cell so that no spreadsheet runs it.

    >>> disarmed("=1+1"), disarmed("a;@b"), disarmed("-12"), disarmed("Aix-en-Provence")
    ("'=1+1", "a;'@b", '-12', 'Aix-en-Provence')
    """
    return text if PLAIN_NUMBER.fullmatch(text) else FORMULA.sub(r"\1\2'", text)


def disarmed_table(table: pa.Table) -> pa.Table:
    """Escape all texts and column names of a table."""
    columns = []
    for column in table.columns:
        if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            listed = column.cast(pa.string()).combine_chunks().dictionary_encode()
            safe = [disarmed(text) for text in listed.dictionary.to_pylist()]
            column = pa.array(safe, pa.string()).take(listed.indices)  # noqa: PLW2901 - its text
        columns.append(column)
    return pa.Table.from_arrays(columns, names=[disarmed(name) for name in table.column_names])
