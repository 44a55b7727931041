"""Any small public table in, Arrow out: files, DataFrames, mappings, sheets of Excel.

Codes are strings and stay as they are written: "001001" keeps its zeros. Nothing is guessed
but the delimiter, and that from the header alone: a sniffer that skips or splits a row it does
not understand would silently change the areas. Error messages may show cells, so confidential
tables must never be read here.

Tables for people go out as CSV, in which no spreadsheet finds a formula: a name such as
`=HYPERLINK(...)` would be run when somebody opens the file. An apostrophe in front makes it text.
"""

import csv
import re
import warnings
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from inftda.errors import InftdaError, MissingExtraError

#: Endings of files that hold delimited text.
CSV_ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz")
PARQUET_ENDINGS = (".parquet", ".pq")
EXCEL_ENDINGS = (".xlsx", ".xlsm")
TABLE_ENDINGS = CSV_ENDINGS + PARQUET_ENDINGS + EXCEL_ENDINGS
#: Rows that a sheet of Excel can have, cells and unpacked bytes that any table in one has.
MOST_ROWS, MOST_CELLS, MOST_BYTES = 1 << 20, 1 << 26, 1 << 30
#: The one that occurs most often in the header is the delimiter.
DELIMITERS = (",", ";", "\t", "|")
#: What a spreadsheet may leave out where a cell begins: blanks, control characters, and others
#: that nobody sees, such as a byte order mark.
_UNSEEN: Final = r"[\s\x00-\x1f\x7f-\x9f\xad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]*"
#: Where a cell begins for a spreadsheet, whichever delimiter it assumes, before a formula.
_FORMULA: Final = re.compile(rf"""(^|[;,|\t\r\n"])({_UNSEEN})(?=[=+\-@\uff1d\uff0b\uff0d\uff20])""")
_NUMBER: Final = re.compile(r"[+-]?[0-9]+([.,][0-9]+)*")

#: Sheets that a message lists.
_SHOWN: Final = 12

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
    """The same text n times; without pandas, as above."""
    encoded = text.encode()
    offsets = np.arange(n + 1, dtype=np.int32) * np.int32(len(encoded))
    return pa.StringArray.from_buffers(n, pa.py_buffer(offsets), pa.py_buffer(encoded * n))


def texts(names: Iterable[str]) -> pa.StringArray:
    """Some texts, at least one; without pandas, likewise."""
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
    """A small table with every column as strings.

    Args:
        source: path to a CSV or Parquet file, any object with the Arrow stream interface
            (pandas, polars, pyarrow), or a mapping of column name to values.
        what: name of the table for error messages.
        error: the class of error to raise.
        columns: the columns to keep, in this order; all by default.
    """
    table = read_table(source, what=what, error=error)
    return as_strings(table, what=what, error=error, columns=columns)


def read_table(source: Any, *, what: str, error: type[InftdaError]) -> pa.Table:
    """A small table as it is, cells of text files as text; see `read_strings`."""
    is_path = isinstance(source, str | Path)
    try:
        return _read_file(Path(source), what, error) if is_path else _read_memory(source)
    except (OSError, EOFError, UnicodeDecodeError, csv.Error, pa.ArrowException) as problem:
        where = f"{str(source)!r} (the {what})" if is_path else f"the {what}"
        raise error(f"cannot read {where}: {_reason(problem)}") from None
    except NotImplementedError:
        raise error(
            f"the {what} is a {type(source).__name__}; give a path to a CSV or Parquet file, "
            "or a pandas, polars or pyarrow table"
        ) from None


def as_strings(
    table: pa.Table, *, what: str, error: type[InftdaError], columns: Sequence[str] | None = None
) -> pa.Table:
    """Some columns of a table as strings; see `read_strings`."""
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
    name = path.name.lower()
    if name.endswith(PARQUET_ENDINGS):
        import pyarrow.parquet as pq  # noqa: PLC0415 - time that other kinds need not pay

        with pq.ParquetFile(path) as file:
            return file.read()
    if name.endswith(CSV_ENDINGS):
        return _read_csv(path)
    if not name.endswith(EXCEL_ENDINGS):
        raise error(
            f"{path.name!r} (the {what}) has an unknown ending; use {', '.join(CSV_ENDINGS[:3])}, "
            f"{PARQUET_ENDINGS[0]} or {EXCEL_ENDINGS[0]}"
        )
    names, columns = read_sheets([path], what=f"{path.name!r} (the {what})", error=error)
    texts = []
    for column, cells in zip(names, columns, strict=True):
        if not {*map(type, cells)} <= {str, int, type(None)}:
            raise error(f"column {column!r} of the {what} must hold text or whole numbers only")
        texts.append(pa.array(["" if cell is None else str(cell) for cell in cells], pa.string()))
    return pa.Table.from_arrays(texts, names=names)


def _read_csv(path: Path) -> pa.Table:
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


def _reason(problem: Exception) -> str:
    if isinstance(problem, UnicodeDecodeError) or "UTF8" in str(problem):
        return "it is not UTF-8 text; save it as UTF-8"
    if isinstance(problem, csv.Error):
        return str(problem)
    lines = str(problem).splitlines()
    return f"{lines[0] if lines else type(problem).__name__}; correct the table and try again"


def read_sheets(  # noqa: PLR0913 - what people say of a workbook
    paths: Sequence[Path],
    *,
    what: str,
    error: type[InftdaError],
    sheets: Sequence[str] | None = None,
    skip_rows: int = 0,
    is_matrix: bool = False,
) -> Sheet:
    """Names and cells of the columns of some sheets of Excel, one below the other.

    A cell is text, a number, or something else; the format it is shown in changes nothing, except
    that dates are not numbers. Excel does not distinguish whole numbers from others, so 12.0 is
    12. Codes that were typed as numbers have lost their leading zeros. Empty rows are left out.

    Args:
        paths: of the workbooks.
        what: what they are called in messages.
        error: the class of error to raise.
        sheets: names of sheets, in which * and ? stand for any letters: no sheet has these in its
            name. Without any, the only sheet that is not empty; None if nobody could name one.
        skip_rows: how many rows stand above the names of the columns.
        is_matrix: whether the first column needs no name.
    """
    names: list[str] = []
    columns: list[list[Any]] = []
    first = ""
    for path in paths:
        for title, (header, *rows) in _chosen(path, what, error, sheets, skip_rows).items():
            here = ["" if cell is None else str(_whole(cell)).strip() for cell in header]
            longest = max(map(len, rows), default=0)
            while len(here) > longest and not here[-1]:
                here.pop()
            if longest > len(here) or "" in here[is_matrix:]:
                hint = "" if sheets is None else ", and `skip_rows=` says how many are above it"
                raise error(
                    f"{what} has a column without a name; its first row must name all columns{hint}"
                )
            if not columns:
                names, columns, first = here, [[] for _ in here], title
            if here != names:
                raise error(
                    f"sheet {title!r} of {what} has a different header from {first!r}; sheets that "
                    "are read as one table need the same columns in the same order"
                )
            for i, column in enumerate(columns):
                column += [_whole(row[i]) if i < len(row) else None for row in rows]
    return names, columns


def _chosen(
    path: Path,
    what: str,
    error: type[InftdaError],
    wanted: Sequence[str] | None,
    skip_rows: int,
) -> dict[str, list[tuple[Any, ...]]]:
    """Rows of the sheets of a workbook that are wanted, by their names."""
    try:
        library = import_module("openpyxl")
    except ImportError:
        raise MissingExtraError(
            f"{what} is a workbook of Excel, which needs openpyxl: pip install 'inftda-od[xlsx]', "
            "or save the sheet as CSV (UTF-8)"
        ) from None
    try:
        found = _sheets(library, path, wanted or (), skip_rows)
    except Exception:  # noqa: BLE001 - of the library, which has no class of its own; may quote cells
        found = None
    if found is None:
        raise error(
            f"cannot read {what} as a workbook of Excel: it is damaged, locked by a password, too "
            f"large (more than {MOST_ROWS:,} rows, {MOST_CELLS:,} cells, {MOST_BYTES >> 20:,} MB) "
            "or something else; save it again as .xlsx, or as CSV (UTF-8)"
        )
    titles, sheets = found
    listed = ", ".join(map(repr, titles[:_SHOWN])) + ", ..." * (len(titles) > _SHOWN)
    for name in wanted or ():
        if not any(fnmatchcase(title, name) for title in titles):
            raise error(f"{what} has no sheet {name!r}; its sheets are {listed}")
    rows = {title: rows for title, rows in sheets.items() if rows}
    empty = {*(wanted or ())} & {*sheets} - {*rows}
    if empty or not rows:
        which = f"sheet {min(empty)!r}" if empty else "no sheet"
        raise error(
            f"{what} has {which} with {'nothing' if empty else 'anything'} in it; give a table "
            "with a header and rows"
        )
    if not wanted and len(rows) > 1:
        hint = "" if wanted is None else "say which to read (`sheet=`), or "
        raise error(f"{what} has {len(rows)} sheets, {listed}; {hint}keep one table, in one sheet")
    return rows


def _sheets(
    library: Any, path: Path, wanted: Sequence[str], skip_rows: int
) -> tuple[list[str], dict[str, list[tuple[Any, ...]]]]:
    """Names of all sheets, and the rows of those that are wanted."""
    with zipfile.ZipFile(path) as packed:
        if sum(member.file_size for member in packed.infolist()) > MOST_BYTES:
            raise ValueError
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about styles and the like
        # Links to other workbooks are not even read.
        book = library.load_workbook(path, read_only=True, data_only=True, keep_links=False)
        try:
            titles = [sheet.title for sheet in book.worksheets]
            return titles, {
                sheet.title: _rows(sheet, skip_rows)
                for sheet in book.worksheets
                if not wanted or any(fnmatchcase(sheet.title, name) for name in wanted)
            }
        finally:
            book.close()


def _rows(sheet: Any, skip_rows: int) -> list[tuple[Any, ...]]:
    """Rows that are not empty, each up to its last cell.

    A row may go on for 16,384 empty cells that have a colour; others must not become as long.
    """
    sheet.reset_dimensions()  # what the file says of its size may be wrong
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
    """A number without the .0 that only some programs write."""
    return int(cell) if isinstance(cell, float) and cell.is_integer() else cell


def disarmed(text: str) -> str:
    """A cell that no spreadsheet runs.

    >>> disarmed("=1+1"), disarmed("a;@b"), disarmed("-12"), disarmed("Aix-en-Provence")
    ("'=1+1", "a;'@b", '-12', 'Aix-en-Provence')
    """
    return text if _NUMBER.fullmatch(text) else _FORMULA.sub(r"\1\2'", text)


def disarmed_table(table: pa.Table) -> pa.Table:
    """A table whose texts and column names no spreadsheet runs."""
    columns = []
    for column in table.columns:
        if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            listed = column.cast(pa.string()).combine_chunks().dictionary_encode()
            safe = [disarmed(text) for text in listed.dictionary.to_pylist()]
            column = pa.array(safe, pa.string()).take(listed.indices)  # noqa: PLW2901 - its text
        columns.append(column)
    return pa.Table.from_arrays(columns, names=[disarmed(name) for name in table.column_names])
