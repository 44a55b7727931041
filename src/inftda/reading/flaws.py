"""What can be wrong with a row, and the messages for it.

A row that cannot be counted does not stop the reading: it is marked with a flaw, so that one
pass over the rows finds how many there are of each kind. A flaw depends on its row alone.
"""

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Final

from inftda.errors import IngestError
from inftda.privacy.unit import Unit


class Flaw(IntEnum):
    """Why a row cannot be counted; the order is the order in which they are reported."""

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
    #: Of persons, not of rows: not exactly the number of trips that the unit states.
    INEXACT = 11


_COUNT: Final = (
    "{rows} of {label} {have} %s in column {count!r}; counts must be whole numbers from 0 up%s "
    "(or choose another count column)"
)
_SENTENCES: Final = {
    Flaw.KIND: (
        "{rows} of {label} {have} a number that is not whole, or too large to be told from its "
        "neighbours, as code of an area or a person; write such codes as text"
    ),
    Flaw.MISSING: _COUNT % ("no count", ""),
    Flaw.TEXT: _COUNT % ("text that is not a number as count", " in digits, without separators"),
    Flaw.SEPARATOR: _COUNT
    % (
        "a count with a decimal point",
        " in digits; if the point separates thousands or decimals, remove it",
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
        "{rows} of {label} cannot be placed: {lost}. Add the areas to the hierarchy, correct the "
        "rows, or choose what to do with them (`unplaceable=`)"
    ),
    Flaw.INEXACT: (
        "the unit says exactly {trips} per person, but {label} has persons with a different "
        "number; correct the table, or choose a unit with at most that many trips"
    ),
}


def check_flaws(
    n_rows: Mapping[int, int],
    unit: Unit | None,
    lost: Callable[[], str],
    **names: str | None,
) -> None:
    """Report the first kind of flaw.

    Args:
        n_rows: how many rows have each flaw.
        unit: who is protected.
        lost: tells which codes are unknown.
        names: `label` of the table, and its column of `count`s.

    Raises:
        IngestError: there are flawed rows.
    """
    flaw = min((flaw for flaw, n in n_rows.items() if n), default=None)
    if flaw is None:
        return
    trips = "" if unit is None else f"{unit.trips} {'different ' * unit.distinct}trips"
    said = {"rows": f"{n_rows[flaw]:,} rows", "have": "have"}
    if n_rows[flaw] == 1:
        said = {"rows": "1 row", "have": "has"}
    codes = lost() if flaw == Flaw.UNPLACEABLE else ""
    raise IngestError(_SENTENCES[Flaw(flaw)].format(trips=trips, lost=codes, **said, **names))
