"""What a column means: area codes as text, counts as whole numbers, persons as groups.

Every expression here is SQL. A count that is not a whole number from 0 up does not stop the
reading; it is marked with a flaw, so that one pass over the rows finds how many there are of
each kind.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from inftda.errors import IngestError

if TYPE_CHECKING:
    from inftda.ingest.sources import Column

MAX_INT64: Final = 2**63 - 1
_SMALL_INTEGERS: Final = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT")
_SMALL: Final = frozenset((*_SMALL_INTEGERS, "UINTEGER"))
_LARGE: Final = frozenset({"UBIGINT", "HUGEINT", "UHUGEINT"})
_FLOATS: Final = frozenset({"FLOAT", "DOUBLE"})
_NOT_CODES: Final = ("STRUCT", "MAP", "UNION", "BLOB", "BIT", "GEOMETRY", "VARIANT")


class Flaw(IntEnum):
    """Why a row cannot be counted; the order is the order in which they are reported."""

    MISSING = 1
    TEXT = 2
    NOT_FINITE = 3
    NEGATIVE = 4
    FRACTIONAL = 5
    TOO_LARGE = 6
    NOBODY = 7
    UNPLACEABLE = 8


#: What is wrong with a count, for people.
COUNT_FLAWS: Final = {
    Flaw.MISSING: "no count",
    Flaw.TEXT: "text that is not a number as count",
    Flaw.NOT_FINITE: "NaN or infinity as count",
    Flaw.NEGATIVE: "a negative count",
    Flaw.FRACTIONAL: "a fractional count",
    Flaw.TOO_LARGE: "a count beyond 2^63 - 1",
}


def area_text(column: Column, label: str) -> str:
    """SQL for an area code as text.

    Whole numbers are written out, so codes with leading zeros must come as text.

    Raises:
        IngestError: the column cannot hold codes.
    """
    if column.type == "VARCHAR":
        return column.sql  # no cast: DuckDB keeps the dictionary of a Parquet column
    _refuse_floats(column, label, what="area codes")
    if column.type.startswith(_NOT_CODES) or column.type.endswith("]"):
        raise IngestError(
            f"column {column.name!r} of {label} holds {column.type} values; area codes are text"
        )
    return f"CAST({column.sql} AS VARCHAR)"


def person_group(column: Column, label: str) -> str:
    """SQL for a person; NULL if it is missing.

    Raises:
        IngestError: the column cannot tell persons apart.
    """
    _refuse_floats(column, label, what="persons")
    if column.type.startswith(_NOT_CODES) or column.type.endswith("]"):
        raise IngestError(
            f"column {column.name!r} of {label} holds {column.type} values; persons are told "
            "apart by text or whole numbers"
        )
    return f"nullif({column.sql}, '')" if column.type == "VARCHAR" else column.sql


def count_value(column: Column, label: str) -> tuple[str, str]:
    """SQL for a count (0 where there is a flaw), and for its `Flaw` (0 where there is none).

    Raises:
        IngestError: the column cannot hold counts.
    """
    name = column.sql
    if column.type in _SMALL:
        value = f"CAST({name} AS BIGINT)"
        flaw = _first_of((f"{name} IS NULL", Flaw.MISSING), (f"{name} < 0", Flaw.NEGATIVE))
    elif column.type in _LARGE or column.type.startswith("DECIMAL"):
        value = f"TRY_CAST({name} AS BIGINT)"
        flaw = _first_of(
            (f"{name} IS NULL", Flaw.MISSING),
            (f"{name} < 0", Flaw.NEGATIVE),
            (f"{name} <> floor({name})" if column.type not in _LARGE else "false", Flaw.FRACTIONAL),
            (f"{name} > {MAX_INT64}", Flaw.TOO_LARGE),
        )
    elif column.type in _FLOATS:
        value = f"TRY_CAST({name} AS BIGINT)"
        flaw = _first_of(
            (f"{name} IS NULL", Flaw.MISSING),
            (f"NOT isfinite({name})", Flaw.NOT_FINITE),
            (f"{name} < 0", Flaw.NEGATIVE),
            (f"{name} <> floor({name})", Flaw.FRACTIONAL),
            (f"{name} >= {float(2**63)}::DOUBLE", Flaw.TOO_LARGE),
        )
    elif column.type == "VARCHAR" or column.type.startswith("ENUM"):
        return _count_from_text(f"CAST({name} AS VARCHAR)")
    else:
        raise IngestError(
            f"column {column.name!r} of {label} holds {column.type} values; counts are whole "
            "numbers (choose another count column)"
        )
    return f"CASE WHEN {flaw} = 0 THEN {value} ELSE 0 END", flaw


def _count_from_text(text: str) -> tuple[str, str]:
    """SQL for a count written as text: from CSV, or a database's exact decimals.

    DuckDB's cast alone is too kind: it rounds 12.5, and reads 0x1F and 1_000.
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
        (_matches(text, r"\+?[0-9]+(\.0*)?") + f" AND {value} IS NULL", Flaw.TOO_LARGE),
        (_matches(text, r"\+?[0-9]+(\.0*)?"), None),
        (_matches(text, r"\+?([0-9]+\.[0-9]*|\.[0-9]+)"), Flaw.FRACTIONAL),
        ("true", Flaw.TEXT),
    )
    return f"CASE WHEN {flaw} = 0 THEN {value} ELSE 0 END", flaw


def _matches(text: str, pattern: str) -> str:
    return rf"regexp_full_match({text}, '\s*{pattern}\s*', 'i')"


def _first_of(*cases: tuple[str, Flaw | None]) -> str:
    whens = " ".join(f"WHEN {condition} THEN {flaw or 0:d}" for condition, flaw in cases)
    return f"(CASE {whens} ELSE 0 END)"


def _refuse_floats(column: Column, label: str, *, what: str) -> None:
    if column.type in _FLOATS:
        raise IngestError(
            f"column {column.name!r} of {label} holds decimal numbers; {what} are text or whole "
            "numbers (a column with blanks often turns into decimals: read it as text)"
        )
