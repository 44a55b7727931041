"""What a column means, as Spark expressions: the same rules as `inftda.ingest.columns`.

A count that is not a whole number from 0 up does not stop the reading; it is marked with a
flaw. No cast here can fail, because Spark's message would quote the cell.
"""

from typing import Final

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

from inftda.errors import IngestError
from inftda.ingest.columns import MAX_INT64, Flaw
from inftda.ingest.sources import Column

_INTEGERS: Final = frozenset({"tinyint", "smallint", "int", "bigint"})
_FLOATS: Final = frozenset({"float", "double"})
_NOT_CODES: Final = ("struct", "map", "array", "binary", "variant", "interval", "geo")
_WHOLE: Final = r"\+?([0-9]+)(\.0*)?"


def area_text(column: Column, label: str) -> Expression:
    """An area code as text; whole numbers are written out.

    Raises:
        IngestError: the column cannot hold codes.
    """
    _refuse_floats(column, label, what="area codes")
    if column.type.startswith(_NOT_CODES):
        raise IngestError(
            f"column {column.name!r} of {label} holds {column.type} values; area codes are text"
        )
    return F.col(column.sql).cast("string")


def person_group(column: Column, label: str) -> Expression:
    """A person; null if it is missing.

    Raises:
        IngestError: the column cannot tell persons apart.
    """
    _refuse_floats(column, label, what="persons")
    if column.type.startswith(_NOT_CODES):
        raise IngestError(
            f"column {column.name!r} of {label} holds {column.type} values; persons are told "
            "apart by text or whole numbers"
        )
    person = F.col(column.sql)
    return F.nullif(person, F.lit("")) if _is_text(column) else person


def count_value(column: Column, label: str) -> tuple[Expression, Expression]:
    """A count (0 where there is a flaw), and its `Flaw` (0 where there is none).

    Raises:
        IngestError: the column cannot hold counts.
    """
    count = F.col(column.sql)
    cases: list[tuple[Expression, Flaw | None]] = [(count.isNull(), Flaw.MISSING)]
    value = count.try_cast("bigint")
    if column.type in _INTEGERS:
        cases += [(count < 0, Flaw.NEGATIVE)]
    elif column.type.startswith("decimal"):
        cases += [
            (count < 0, Flaw.NEGATIVE),
            (count != F.floor(count), Flaw.FRACTIONAL),
            (count > MAX_INT64, Flaw.TOO_LARGE),
        ]
    elif column.type in _FLOATS:
        cases += [
            (F.isnan(count) | (F.abs(count) == float("inf")), Flaw.NOT_FINITE),
            (count < 0, Flaw.NEGATIVE),
            (count >= float(2**63), Flaw.TOO_LARGE),
            (count != F.floor(count), Flaw.FRACTIONAL),
        ]
    elif _is_text(column):
        value = F.regexp_extract(count, _full(_WHOLE), 1).try_cast("bigint")
        cases += [
            (value.isNotNull(), None),
            (F.trim(count) == "", Flaw.MISSING),
            (count.rlike(_full(r"[+-]?(nan|inf|infinity)")), Flaw.NOT_FINITE),
            (count.rlike(_full(r"-([0-9]+\.?[0-9]*|\.[0-9]+)")), Flaw.NEGATIVE),
            (count.rlike(_full(_WHOLE)), Flaw.TOO_LARGE),
            (count.rlike(_full(r"\+?([0-9]+\.[0-9]*|\.[0-9]+)")), Flaw.FRACTIONAL),
            (F.lit(True), Flaw.TEXT),
        ]
    else:
        raise IngestError(
            f"column {column.name!r} of {label} holds {column.type} values; counts are whole "
            "numbers (choose another count column)"
        )
    flaw = _first_of(cases)
    return F.when(flaw == 0, value).otherwise(F.lit(0)), flaw


def _is_text(column: Column) -> bool:
    return column.type.startswith(("string", "char", "varchar"))


def _full(pattern: str) -> str:
    return rf"(?i)^\s*{pattern}\s*$"


def _first_of(cases: list[tuple[Expression, Flaw | None]]) -> Expression:
    chain = F.when(cases[0][0], int(cases[0][1] or 0))
    for condition, flaw in cases[1:]:
        chain = chain.when(condition, int(flaw or 0))
    return chain.otherwise(0)


def _refuse_floats(column: Column, label: str, *, what: str) -> None:
    if column.type in _FLOATS:
        raise IngestError(
            f"column {column.name!r} of {label} holds decimal numbers; {what} are text or whole "
            "numbers (a column with blanks often turns into decimals: read it as text)"
        )
