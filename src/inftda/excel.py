"""Sheets of Excel, each cell by itself.

A cell is text, a number, or something else; the format it is shown in changes nothing, except
that dates are not numbers. Excel does not distinguish whole numbers from others, so 12.0 is 12.
Codes that were typed as numbers have lost their leading zeros, and nobody can bring them back.
"""

import warnings
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from inftda.errors import InftdaError, MissingExtraError

ENDINGS: Final = (".xlsx", ".xlsm")

Sheet = tuple[list[str], list[list[Any]]]


def read_sheet(path: Path, *, what: str, error: type[InftdaError]) -> Sheet:
    """Names and cells of the columns of the only sheet that is not empty.

    Empty rows are left out.

    Args:
        path: the file.
        what: what to call it in messages.
        error: the class of error to raise.

    Raises:
        MissingExtraError: openpyxl is not installed.
    """
    try:
        library = import_module("openpyxl")
    except ImportError:
        raise MissingExtraError(
            f"{what} is a workbook of Excel, which needs openpyxl: pip install 'inftda[xlsx]', or "
            "save the sheet as CSV (UTF-8)"
        ) from None
    try:
        sheets = _sheets(library, path)
    except Exception:  # noqa: BLE001 - of the library, which has no class of its own; may quote cells
        sheets = None
    if sheets is None:
        raise error(
            f"cannot read {what} as a workbook of Excel: it is damaged, locked by a password, or "
            "something else; save it again as .xlsx, or as CSV (UTF-8)"
        )
    if len(sheets) != 1:
        found = "no sheet with anything in it" if not sheets else f"{len(sheets)} sheets"
        raise error(f"{what} has {found}; keep one table, in one sheet")
    (header, *rows), *_ = sheets
    names = [_name(cell) for cell in header]
    longest = max(map(len, rows), default=0)
    while len(names) > longest and not names[-1]:
        names.pop()
    if longest > len(names) or "" in names:
        raise error(f"{what} has a column without a name; its first row must name all columns")
    return names, [
        [_whole(row[i]) if i < len(row) else None for row in rows] for i in range(len(names))
    ]


def _sheets(library: Any, path: Path) -> list[list[tuple[Any, ...]]]:
    """Rows of every sheet that is not empty."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about styles and the like
        book = library.load_workbook(path, read_only=True, data_only=True)
        try:
            found = [_rows(sheet) for sheet in book.worksheets]
        finally:
            book.close()
    return [rows for rows in found if rows]


def _rows(sheet: Any) -> list[tuple[Any, ...]]:
    """Rows that are not empty, each up to its last cell.

    A row may go on for 16,384 empty cells that have a colour; others must not become as long.
    """
    sheet.reset_dimensions()  # what the file says of its size may be wrong
    return [row for row in map(_filled, sheet.iter_rows(values_only=True)) if row]


def _filled(row: tuple[Any, ...]) -> tuple[Any, ...]:
    length = len(row)
    while length and row[length - 1] is None:
        length -= 1
    return row[:length]


def _name(cell: Any) -> str:
    return "" if cell is None else str(_whole(cell)).strip()


def _whole(cell: Any) -> Any:
    """A number without the .0 that only some programs write."""
    return int(cell) if isinstance(cell, float) and cell.is_integer() else cell


def as_texts(cells: list[Any]) -> list[str] | None:
    """Public codes as text; None if one is neither text nor a whole number.

    >>> as_texts(["001", 2, None])
    ['001', '2', '']
    """
    kinds = {type(cell) for cell in cells if cell is not None}
    if not kinds <= {str, int}:
        return None
    return ["" if cell is None else str(cell) for cell in cells]
