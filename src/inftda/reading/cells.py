"""Cells of columns that have no type of their own, each converted by itself.

A list of Python objects, a pandas column of objects or of numbers with blanks, and a column
of SQLite may hold anything. Arrow would look for one type that fits all cells, so that one
cell could change what the others mean. Here text stays as it is, whole numbers are written
out (1.0 as well, because pandas turns numbers into floats when one of them is missing), and
any other cell is a flaw of its own row only.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from types import NoneType
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from inftda.reading.flaws import Flaw

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from inftda.reading.sources import Purpose

#: Below this, different whole numbers are different doubles; 2^53 + 1 is the double 2^53.
EXACT_DOUBLE: Final = 2.0**53


@dataclass(frozen=True, slots=True)
class Cells:
    """A column as Arrow.

    Attributes:
        values: text or whole numbers; of counts any type that counts may have.
        flaw: int8, the `Flaw` of each cell, 0 if there is none; None if no cell has one.
    """

    values: pa.Array | pa.ChunkedArray
    flaw: NDArray[np.int8] | None = None


def convert(cells: Sequence[object], purpose: Purpose) -> Cells:
    """Untyped cells: text as in a CSV file, and what else may stand for it.

    Args:
        cells: the cells.
        purpose: area codes and persons are text or whole numbers; counts and degrees may be any
            numbers, time stamps may be dates and times of Python.
    """
    # No type but text holds times as they were written: a column of nothing but numbers would be
    # refused as a whole, and the same numbers beside a text are flaws of their rows.
    kinds = _KINDS[:1] if purpose == "times" else _KINDS
    return _typed(cells, kinds) or _each(cells, _CONVERTERS[purpose])


def codes_from_floats(numbers: NDArray[np.float64]) -> Cells:
    """Codes from whole numbers among blanks, which pandas and numpy hold as doubles.

    Args:
        numbers: NaN where a code is missing.
    """
    is_whole = (np.abs(numbers) < EXACT_DOUBLE) & (np.floor(numbers) == numbers)
    flaw = np.where(is_whole | np.isnan(numbers), 0, Flaw.KIND).astype(np.int8)
    whole = np.where(is_whole, numbers, 0).astype(np.int64)
    return Cells(pa.array(whole, mask=~is_whole), flaw if flaw.any() else None)


#: Types of Python that a column may be of as a whole, and what Arrow has for them.
_KINDS: Final = ((str, pa.string()), (int, pa.int64()))


def _typed(cells: Sequence[object], kinds: Sequence[tuple[type, pa.DataType]]) -> Cells | None:
    """Cells that are all text, or all whole numbers of 64 bits, without looking at each."""
    found = {*map(type, cells)} - {NoneType}
    for kind, arrow in kinds:
        if found <= {kind}:
            try:
                return Cells(pa.array(cells, arrow))
            except (UnicodeEncodeError, OverflowError, pa.ArrowInvalid):
                return None  # a cell that Arrow cannot hold
    return None


def _each(cells: Sequence[object], convert: Callable[[object], str | Flaw | None]) -> Cells:
    found = [_missing_or(convert, cell) for cell in cells]
    texts = [None if isinstance(text, Flaw) else text for text in found]
    flaw = np.array([text if isinstance(text, Flaw) else 0 for text in found], np.int8)
    return Cells(pa.array(texts, pa.string()), flaw if flaw.any() else None)


def _missing_or(convert: Callable[[object], str | Flaw | None], cell: object) -> str | Flaw | None:
    if cell is None or type(cell).__name__ in {"NAType", "NaTType"}:  # pandas' own
        return None
    if isinstance(cell, str):
        return str(cell) if _is_unicode(cell) else Flaw.KIND
    if isinstance(cell, int | np.integer) and not isinstance(cell, bool):
        return _digits(int(cell))
    return convert(cell)


def _code(cell: object) -> str | Flaw | None:
    """A whole number among floats, as `codes_from_floats` has it: pandas changes types at will."""
    if not isinstance(cell, float | np.floating):
        return Flaw.KIND
    number = float(cell)
    if number != number:  # noqa: PLR0124 - NaN
        return None
    is_whole = abs(number) < EXACT_DOUBLE and number == int(number)
    return str(int(number)) if is_whole else Flaw.KIND


def _count(cell: object) -> str | Flaw | None:
    """A number that is not a Python integer, as digits, or what is wrong with it."""
    if not isinstance(cell, float | np.floating | Decimal):
        return Flaw.KIND
    number = cell if isinstance(cell, Decimal) else Decimal(float(cell))
    if number.is_nan():
        return None  # pandas' missing value, reported as missing
    if not number.is_finite():
        return Flaw.NOT_FINITE
    if number < 0:
        return Flaw.NEGATIVE
    if number >= 2**63:  # checked before a large exponent is written out as a million digits
        return Flaw.TOO_LARGE
    return _digits(int(number)) if number == int(number) else Flaw.FRACTIONAL


def _degrees(cell: object) -> str | Flaw | None:
    """Any number, as text that is read as the same one."""
    if not isinstance(cell, float | np.floating | Decimal):
        return Flaw.KIND
    return str(cell) if isinstance(cell, Decimal) else repr(float(cell))


def _time(cell: object) -> str | Flaw | None:
    """A time of Python as it is written; what is counted is what the clock shows there."""
    return cell.isoformat() if isinstance(cell, dt.date) else Flaw.KIND


_CONVERTERS: Final[dict[Purpose, Callable[[object], str | Flaw | None]]] = {
    "codes": _code,
    "counts": _count,
    "degrees": _degrees,
    "times": _time,
}


def _digits(number: int) -> str | Flaw:
    # Python refuses to write out integers of many thousand digits.
    return str(number) if abs(number) < 10**1000 else Flaw.KIND


def _is_unicode(text: str) -> bool:
    """Whether it can be written as UTF-8: half of a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
