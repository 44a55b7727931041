"""What a column means: area codes as text, counts as whole numbers, persons as groups.

Codes are text or whole numbers, and a column that is declared as anything else is refused
before a cell of it is read: casting a date or a decimal to text would make the text of one
cell depend on the type of all others. Every expression here is SQL, and what it makes of a
cell depends on that cell alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from inftda.areas.clock import WEEKDAYS, ClockPart
from inftda.errors import IngestError
from inftda.reading.flaws import Flaw
from inftda.reading.workspace import quote

MAX_INT64: Final = 2**63 - 1
_SMALL: Final = frozenset({
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER",
})  # fmt: skip
_LARGE: Final = frozenset({"UBIGINT", "HUGEINT", "UHUGEINT"})
_STAMPS: Final = frozenset({"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"})
#: Time stamps as text: 2026-05-17, T08:30, and what may follow.
_DATE, _TIME = "[0-9]{4}-[0-9]{2}-[0-9]{2}", "[T ][0-9]{2}:[0-9]{2}"
_REST: Final = r"(:[0-9]{2}([.,][0-9]*)?)?\s*(Z|UTC|[+-][0-9]{2}(:?[0-9]{2})?)?"
_FLOATS: Final = frozenset({"FLOAT", "DOUBLE"})
#: A column of nothing but missing values has this type, with its quotes.
_NOTHING: Final = '"NULL"'
#: What PostgreSQL's exact decimals are called here: they arrive as text.
NUMERIC: Final = "NUMERIC"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the input.

    Attributes:
        name: as it is written.
        sql: what it is called in SQL.
        type: its DuckDB type, or `NUMERIC`.
    """

    name: str
    sql: str
    type: str

    @property
    def is_text(self) -> bool:
        """Whether it is declared as text."""
        return self.type == "VARCHAR" or self.type.startswith("ENUM")

    @property
    def is_whole(self) -> bool:
        """Whether it is declared as whole numbers."""
        return self.type in _SMALL or self.type in _LARGE

    @property
    def kind(self) -> str:
        """What columns of several files must have in common to be read as one."""
        if self.is_text:
            return "text"
        return "whole numbers" if self.is_whole else self.type


def area_text(column: Column, label: str) -> str:
    """SQL for an area code as text.

    Whole numbers are written out, so codes with leading zeros must come as text.

    Raises:
        IngestError: the column cannot hold codes.
    """
    _check_codes(column, label, what="area codes")
    if column.type == "VARCHAR":
        return column.sql  # no cast: DuckDB keeps the dictionary of a Parquet column
    return f"CAST({column.sql} AS VARCHAR)"


def degrees_value(column: Column, label: str) -> str:
    """SQL for a coordinate; NULL if it is missing or not a number.

    Raises:
        IngestError: the column cannot hold coordinates.
    """
    if column.type in _FLOATS or column.is_whole:
        return f"CAST({column.sql} AS DOUBLE)"
    if column.is_text or column.type == _NOTHING or column.type in {NUMERIC, "UUID"}:
        return f"TRY_CAST({column.sql} AS DOUBLE)"
    if column.type.startswith("DECIMAL"):
        # As text: the number of decimals of a column must not decide how a cell is rounded.
        return f"TRY_CAST(CAST({column.sql} AS VARCHAR) AS DOUBLE)"
    raise IngestError(
        f"column {column.name!r} of {label} holds {column.type} values; coordinates are numbers, "
        "in degrees"
    )


def clock_code(column: Column, part: ClockPart, label: str) -> str:
    """SQL for the hour or weekday of a time stamp, as `inftda.areas.clock` has it.

    It is what the clock shows where the stamp was written: a time zone after it changes nothing.

    Raises:
        IngestError: the column cannot hold time stamps, or not as they were written.
    """
    is_date = column.type == "DATE"
    if column.is_text or column.type == _NOTHING:
        pattern = _DATE + ("" if part == "weekday" else _TIME)
        rest = f"({_TIME}{_REST})?" if part == "weekday" else _REST
        found = rf"regexp_extract({column.sql}, '^\s*({pattern}){rest}\s*$', 1)"
        stamp = f"TRY_CAST({found} AS TIMESTAMP)"
    elif column.type in _STAMPS or (is_date and part == "weekday"):
        # Days and seconds go further than time stamps do: such a cell is a flaw of its own row.
        stamp = f"TRY_CAST({column.sql} AS TIMESTAMP)"
    else:
        hint = ", which depend on where they are read" if "ZONE" in column.type else ""
        raise IngestError(
            f"column {column.name!r} of {label} holds {column.type} values{hint}; for --{part}-of "
            "give time stamps without time zone, as the clock showed them there, or text such as "
            "2026-05-17 08:30:00"
        )
    if part == "hour":
        return f"lpad(CAST(hour({stamp}) AS VARCHAR), 2, '0')"
    days = ", ".join(quote(day) for day in WEEKDAYS)
    return f"list_extract([{days}], isodow({stamp}))"


def person_group(column: Column, label: str) -> str:
    """SQL for a person; NULL if it is missing.

    Raises:
        IngestError: the column cannot identify persons.
    """
    _check_codes(column, label, what="persons")
    return f"nullif({column.sql}, '')" if column.is_text else column.sql


def _check_codes(column: Column, label: str, *, what: str) -> None:
    if column.is_text or column.is_whole or column.type in {_NOTHING, "UUID"}:
        return
    hint = (
        " (a column with blanks often turns into decimals: read it as text)"
        if column.type in _FLOATS
        else ""
    )
    raise IngestError(
        f"column {column.name!r} of {label} holds {column.type} values; {what} are text or whole "
        f"numbers{hint}"
    )


def count_value(column: Column, label: str) -> tuple[str, str]:
    """SQL for a count (0 where there is a flaw), and for its `Flaw` (0 where there is none).

    Raises:
        IngestError: the column cannot hold counts.
    """
    name = column.sql
    value = f"TRY_CAST({name} AS BIGINT)"
    if column.type in _SMALL:
        value = f"CAST({name} AS BIGINT)"
        flaw = _first_of((f"{name} IS NULL", Flaw.MISSING), (f"{name} < 0", Flaw.NEGATIVE))
    elif column.type in _LARGE:
        flaw = _first_of(
            (f"{name} IS NULL", Flaw.MISSING),
            (f"{name} < 0", Flaw.NEGATIVE),
            (f"{name} > {MAX_INT64}", Flaw.TOO_LARGE),
        )
    elif column.type.startswith("DECIMAL"):
        flaw = _first_of(
            (f"{name} IS NULL", Flaw.MISSING),
            (f"{name} < 0", Flaw.NEGATIVE),
            (f"{name} <> floor({name})", Flaw.FRACTIONAL),
            (f"{name} > {MAX_INT64}", Flaw.TOO_LARGE),
        )
    elif column.type in _FLOATS:
        flaw = _first_of(
            (f"{name} IS NULL", Flaw.MISSING),
            (f"NOT isfinite({name})", Flaw.NOT_FINITE),
            (f"{name} < 0", Flaw.NEGATIVE),
            (f"{name} <> floor({name})", Flaw.FRACTIONAL),
            (f"{name} >= {float(2**63)}::DOUBLE", Flaw.TOO_LARGE),
        )
    elif column.is_text or column.type in {NUMERIC, _NOTHING}:
        return _count_from_text(f"CAST({name} AS VARCHAR)", is_exact=column.type == NUMERIC)
    else:
        raise IngestError(
            f"column {column.name!r} of {label} holds {column.type} values; counts are whole "
            "numbers (choose another count column)"
        )
    return f"CASE WHEN {flaw} = 0 THEN {value} ELSE 0 END", flaw


def _count_from_text(text: str, *, is_exact: bool) -> tuple[str, str]:
    """SQL for a count written as text.

    DuckDB's cast alone is too lenient: it rounds 12.5, and reads 0x1F and 1_000.

    Args:
        text: SQL for the text.
        is_exact: whether it is a database's exact decimal, in which a point is a decimal point.
            Elsewhere 12.000 may be twelve or twelve thousand, so no point is allowed.
    """
    value = f"TRY_CAST({text} AS BIGINT)"
    whole = r"\+?[0-9]+" + (r"(\.0*)?" if is_exact else "")
    # Almost all counts are plain digits: writing the number again costs less than a pattern.
    is_plain = f"CAST({value} AS VARCHAR) = {text} AND {value} >= 0"
    flaw = _first_of(
        (f"{text} IS NULL", Flaw.MISSING),
        (is_plain, None),
        (f"trim({text}) = ''", Flaw.MISSING),
        (_matches(text, r"[+-]?(nan|inf|infinity)"), Flaw.NOT_FINITE),
        (_matches(text, r"-([0-9]+\.?[0-9]*|\.[0-9]+)"), Flaw.NEGATIVE),
        (_matches(text, whole) + f" AND {value} IS NULL", Flaw.TOO_LARGE),
        (_matches(text, whole), None),
        (
            _matches(text, r"\+?([0-9]+(\.[0-9]*)+|\.[0-9]+)"),
            Flaw.FRACTIONAL if is_exact else Flaw.SEPARATOR,
        ),
        ("true", Flaw.TEXT),
    )
    return f"CASE WHEN {flaw} = 0 THEN {value} ELSE 0 END", flaw


def _matches(text: str, pattern: str) -> str:
    return rf"regexp_full_match({text}, '\s*{pattern}\s*', 'i')"


def _first_of(*cases: tuple[str, Flaw | None]) -> str:
    whens = " ".join(f"WHEN {condition} THEN {flaw or 0:d}" for condition, flaw in cases)
    return f"(CASE {whens} ELSE 0 END)"
