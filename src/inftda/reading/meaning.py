"""Meaning of a cell in SQL: area codes as text, counts as whole numbers, persons as groups.

Every expression here depends on one cell and on the declared type of its column. Codes are
text or whole numbers; a column that is declared as a date or a decimal is refused before a cell
of it is read, because as text such a cell would depend on the type of all others. Floats are
taken where they are whole, because pandas makes floats of whole numbers as soon as one is missing.
A column of any other type than its role takes is refused (`IngestError`).

A row that cannot be counted does not stop the reading: it is marked with a flaw, so that one
pass over the rows finds how many there are of each kind. A flaw depends on its row alone.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

from inftda.areas.build import WEEKDAYS, ClockPart
from inftda.errors import IngestError
from inftda.reading.workspace import quote

MAX_INT64: Final = 2**63 - 1
_WHOLE: Final = frozenset({
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
    "HUGEINT", "UHUGEINT",
})  # fmt: skip
#: Below this, different whole numbers are different floats: 2^53 + 1 is the double 2^53.
_EXACT: Final = {"FLOAT": 2**24, "DOUBLE": 2**53}
_STAMPS: Final = frozenset({"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"})
#: Type of a column with missing values only, including its quotes.
_NOTHING: Final = '"NULL"'
#: Time stamps as text: 2026-05-17, T08:30, and optional further parts.
_DATE, _TIME = "[0-9]{4}-[0-9]{2}-[0-9]{2}", "[T ][0-9]{2}:[0-9]{2}"
#: Between thousands or before decimals: points, commas, blanks that do not break, apostrophes.
_SEPARATOR: Final = r"[., \x{a0}\x{202f}''\x{2019}]"
_REST: Final = r"(:[0-9]{2}([.,][0-9]*)?)?\s*(Z|UTC|[+-][0-9]{2}(:?[0-9]{2})?)?"


class Flaw(IntEnum):
    """Reasons why a row cannot be counted, in the order in which they are reported."""

    KIND = 1
    MISSING = 2
    TEXT = 3
    SEPARATOR = 4
    NOT_FINITE = 5
    NEGATIVE = 6
    FRACTIONAL = 7
    TOO_LARGE = 8
    NOBODY = 9
    UNPLACEABLE = 10
    #: A flaw of persons, not of rows: not exactly the number of trips of the privacy unit.
    INEXACT = 11


_COUNT: Final = (
    "{rows} of {label} {have} %s{place}; counts must be whole numbers from 0 up%s{instead}"
)
SENTENCES: Final = {
    Flaw.KIND: (
        "{rows} of {label} {have} a number that is not whole, or too large to be told from its "
        "neighbours, as code of an area or a person; write such codes as text"
    ),
    Flaw.MISSING: _COUNT % ("no count", ""),
    Flaw.TEXT: _COUNT % ("text that is not a number as count", " in digits, without separators"),
    Flaw.SEPARATOR: _COUNT
    % (
        "a count with a decimal point or a separator of thousands",
        " in digits alone: write 4157 for 4,157, and 12 for 12.0",
    ),
    Flaw.NOT_FINITE: _COUNT % ("NaN or infinity as count", ""),
    Flaw.NEGATIVE: _COUNT % ("a negative count", ""),
    Flaw.FRACTIONAL: _COUNT % ("a fractional count", ""),
    Flaw.TOO_LARGE: _COUNT % ("a count beyond 2^63 - 1", ""),
    Flaw.NOBODY: (
        "{rows} of {label} {have} no person; give every row a person, or leave out the person "
        "column"
    ),
    Flaw.UNPLACEABLE: (
        "{rows} of {label} cannot be placed: {lost}. Add the areas to the areas table, correct the "
        "rows, or choose what to do with them (`unplaceable=`)"
    ),
    Flaw.INEXACT: (
        "the unit says exactly {trips} per person, but {label} has persons with a different "
        "number; correct the table, or choose a unit with at most that many trips"
    ),
}


class Column(NamedTuple):
    """One column in use: its name as it is written, its name in SQL, and its DuckDB type."""

    name: str
    sql: str
    type: str

    @property
    def is_text(self) -> bool:
        """Whether it is declared as text, or has missing values only."""
        return self.type in {"VARCHAR", _NOTHING} or self.type.startswith("ENUM")


class Value(NamedTuple):
    """SQL for the value of a cell, and for its `Flaw`: 0 where there is none."""

    sql: str
    flaw: str = "0"


def code(column: Column, label: str, *, what: str = "area codes") -> Value:
    """An area code or a person as text; NULL if it is missing.

    Whole numbers are written out, so codes with leading zeros must come as text.
    """
    name = column.sql
    if column.type == "VARCHAR":
        return Value(name)  # no cast: DuckDB keeps the dictionary of a Parquet column
    if column.is_text or column.type in _WHOLE or column.type == "UUID":
        return Value(f"CAST({name} AS VARCHAR)")
    if column.type in _EXACT:
        is_whole = f"abs({name}) < {_EXACT[column.type]:d} AND {name} = floor({name})"
        text = f"CASE WHEN {is_whole} THEN CAST(CAST({name} AS BIGINT) AS VARCHAR) END"
        is_missing = f"{name} IS NULL OR isnan({name})"
        return Value(text, _first_of((is_missing, None), (is_whole, None), ("true", Flaw.KIND)))
    raise _refusal(column, label, f"{what} are text or whole numbers")


def person(column: Column, label: str) -> Value:
    """A person; an empty text is a missing person."""
    found = code(column, label, what="persons")
    if column.type in _WHOLE:
        return Value(column.sql)  # numbers are grouped faster than text
    return found._replace(sql=f"nullif({found.sql}, '')")


def degrees(column: Column, label: str) -> str:
    """SQL for a coordinate; NULL if it is missing or not a number."""
    if column.type in _EXACT or column.type in _WHOLE:
        return f"CAST({column.sql} AS DOUBLE)"
    if column.is_text or column.type.startswith("DECIMAL"):
        # As text: the number of decimals of a column must not decide how a cell is rounded.
        return f"TRY_CAST(CAST({column.sql} AS VARCHAR) AS DOUBLE)"
    raise _refusal(column, label, "coordinates are numbers, in degrees")


def clock(column: Column, part: ClockPart, label: str) -> str:
    """SQL for the hour or weekday of a time stamp, as `inftda.areas.build` has it.

    It is the local time as written; a time zone after it is ignored.
    """
    is_date = column.type == "DATE"
    if column.is_text or column.type in _WHOLE:
        # A number is no time, but may occur beside texts that are times.
        pattern = _DATE + ("" if part == "weekday" else _TIME)
        rest = f"({_TIME}{_REST})?" if part == "weekday" else _REST
        found = rf"regexp_extract(CAST({column.sql} AS VARCHAR), '^\s*({pattern}){rest}\s*$', 1)"
        stamp = f"TRY_CAST({found} AS TIMESTAMP)"
    elif column.type in _STAMPS or (is_date and part == "weekday"):
        # Days and seconds can exceed the range of time stamps: such a cell is a flaw of its own
        # row.
        stamp = f"TRY_CAST({column.sql} AS TIMESTAMP)"
    else:
        hint = ", which depend on where they are read" if "ZONE" in column.type else ""
        raise _refusal(
            column,
            label,
            f"for `{part}=` give time stamps without time zone, as the clock showed them there, "
            "or text such as 2026-05-17 08:30:00",
            hint,
        )
    if part == "hour":
        return f"lpad(CAST(hour({stamp}) AS VARCHAR), 2, '0')"
    days = ", ".join(quote(day) for day in WEEKDAYS)
    return f"list_extract([{days}], isodow({stamp}))"


def count(column: Column, label: str) -> Value:
    """A number of trips; 0 where there is a flaw."""
    name = column.sql
    if column.is_text:
        return _count_from_text(f"CAST({name} AS VARCHAR)")
    is_decimal = column.type.startswith("DECIMAL")
    if column.type not in _WHOLE and column.type not in _EXACT and not is_decimal:
        raise _refusal(column, label, "counts are whole numbers (choose another count column)")
    cases: list[tuple[str, Flaw | None]] = [(f"{name} IS NULL", Flaw.MISSING)]
    if column.type in _EXACT:
        cases.append((f"NOT isfinite({name})", Flaw.NOT_FINITE))
    cases.append((f"{name} < 0", Flaw.NEGATIVE))
    if column.type not in _WHOLE:
        cases.append((f"{name} <> floor({name})", Flaw.FRACTIONAL))
    limit = f"{float(2**63)}::DOUBLE" if column.type in _EXACT else f"{2**63:d}"
    flaw = _first_of(*cases, (f"{name} >= {limit}", Flaw.TOO_LARGE))
    return Value(f"CASE WHEN {flaw} = 0 THEN TRY_CAST({name} AS BIGINT) ELSE 0 END", flaw)


def _count_from_text(text: str) -> Value:
    """A count that is written as text.

    DuckDB's cast alone is too lenient: it rounds 12.5, and reads 0x1F and 1_000. No point is
    allowed: 12.000 may be twelve or twelve thousand.
    """
    value = f"TRY_CAST({text} AS BIGINT)"
    # Almost all counts are plain digits: writing the number again costs less than a pattern.
    is_plain = f"CAST({value} AS VARCHAR) = {text} AND {value} >= 0"
    flaw = _first_of(
        (f"{text} IS NULL", Flaw.MISSING),
        (is_plain, None),
        (f"trim({text}) = ''", Flaw.MISSING),
        (_matches(text, r"[+-]?(nan|inf|infinity)"), Flaw.NOT_FINITE),
        (_matches(text, r"-([0-9]+\.?[0-9]*|\.[0-9]+)"), Flaw.NEGATIVE),
        (_matches(text, r"\+?[0-9]+") + f" AND {value} IS NULL", Flaw.TOO_LARGE),
        (_matches(text, r"\+?[0-9]+"), None),
        (_matches(text, rf"\+?([0-9]+({_SEPARATOR}[0-9]*)+|[.,][0-9]+)"), Flaw.SEPARATOR),
        ("true", Flaw.TEXT),
    )
    return Value(f"CASE WHEN {flaw} = 0 THEN {value} ELSE 0 END", flaw)


def _refusal(column: Column, label: str, wanted: str, hint: str = "") -> IngestError:
    return IngestError(
        f"column {column.name!r} of {label} holds {column.type} values{hint}; {wanted}"
    )


def _matches(text: str, pattern: str) -> str:
    return rf"regexp_full_match({text}, '\s*{pattern}\s*', 'i')"


def _first_of(*cases: tuple[str, Flaw | None]) -> str:
    whens = " ".join(f"WHEN {condition} THEN {flaw or 0:d}" for condition, flaw in cases)
    return f"(CASE {whens} ELSE 0 END)"
