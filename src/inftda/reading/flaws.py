"""What can be wrong with a row, and the messages for it.

A row that cannot be counted does not stop the reading: it is marked with a flaw, so that one
pass over the rows finds how many there are of each kind. A flaw depends on its row alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from inftda.errors import IngestError
from inftda.reading.spec import TableSpec


class Flaw(IntEnum):
    """Why a row cannot be counted; the order is the order in which they are reported."""

    LINE = 1
    KIND = 2
    MISSING = 3
    TEXT = 4
    SEPARATOR = 5
    NOT_FINITE = 6
    NEGATIVE = 7
    FRACTIONAL = 8
    TOO_LARGE = 9
    NOBODY = 10
    UNPLACEABLE = 11
    #: Of persons, not of rows: not exactly the number of trips that the unit states.
    INEXACT = 12


#: What is wrong with a count, for people.
COUNT_FLAWS: Final = {
    Flaw.MISSING: "no count",
    Flaw.TEXT: "text that is not a number as count",
    Flaw.SEPARATOR: "a count with a decimal point",
    Flaw.NOT_FINITE: "NaN or infinity as count",
    Flaw.NEGATIVE: "a negative count",
    Flaw.FRACTIONAL: "a fractional count",
    Flaw.TOO_LARGE: "a count beyond 2^63 - 1",
}
#: What to do about some of them.
_REMEDIES: Final = {
    Flaw.TEXT: " in digits, without separators",
    Flaw.SEPARATOR: " in digits; if the point separates thousands or decimals, remove it",
}


@dataclass(frozen=True, kw_only=True)
class Complaint:
    """What messages about the rows of a table need to know.

    Attributes:
        label: what the table is called.
        spec: what was read from it.
        count_name: its count column, or None if every row is one trip.
    """

    label: str
    spec: TableSpec
    count_name: str | None

    def check(self, n_rows: Mapping[int, int]) -> None:
        """Report the first kind of flaw, unless it is rows that cannot be placed.

        Args:
            n_rows: how many rows have each flaw.

        Raises:
            IngestError: there are flawed rows.
        """
        flaw = first_flaw(n_rows)
        if flaw is not None and flaw is not Flaw.UNPLACEABLE:
            raise IngestError(self._message(flaw, n_rows[flaw]))

    def unplaceable(self, n_rows: int, lost: str) -> str:
        """For rows that cannot be placed.

        Args:
            n_rows: how many.
            lost: their codes that are unknown.
        """
        return (
            f"{_rows(n_rows)} of {self.label} cannot be placed: {lost}. Add the areas to the "
            "hierarchy, correct the rows, or choose what to do with them (--unplaceable, or "
            "unplaceable= in Python)"
        )

    def no_rows(self) -> str:
        """For a table in which nothing is left to count."""
        rest = "no row that can be placed" if self.spec.is_dropping else "no rows"
        return f"{self.label} has {rest}; there is nothing to count"

    def all_zero(self) -> str:
        """For a table in which every count is 0."""
        return f"all counts of {self.label} are 0; there is nothing to count"

    def _message(self, flaw: Flaw, n_rows: int) -> str:
        is_one = n_rows == 1
        found, have = f"{_rows(n_rows)} of {self.label}", "has" if is_one else "have"
        if flaw is Flaw.LINE:
            found = found.replace("row", "line", 1)
            return (
                f"{found} {have} a different number of cells from the header, or an open quote; "
                "correct the file"
            )
        if flaw is Flaw.KIND:
            return (
                f"{found} {have} a cell that is neither text nor a whole number in "
                f"{self._used()}; convert such cells, or leave the rows out"
            )
        if flaw is Flaw.NOBODY:
            return (
                f"{found} {'names' if is_one else 'name'} no person; give every row a person, or "
                "leave out the person column"
            )
        if flaw is Flaw.INEXACT:
            return self._inexact()
        return (
            f"{found} {have} {COUNT_FLAWS[flaw]} in column {self.count_name!r}; counts must be "
            f"whole numbers from 0 up{_REMEDIES.get(flaw, '')} (or choose another count column)"
        )

    def _used(self) -> str:
        names = [*self.spec.names, self.count_name, self.spec.person]
        return f"the columns in use ({', '.join(repr(name) for name in names if name)})"

    def _inexact(self) -> str:
        unit = self.spec.unit
        if unit is None:  # bounding needs one
            return f"persons of {self.label} do not have the number of trips that the unit says"
        trips = "different trips" if unit.distinct else "trips"
        return (
            f"the unit says exactly {unit.trips} {trips} per person, but {self.label} has persons "
            "with a different number; correct the table, or choose a unit with at most that many "
            "trips"
        )


def first_flaw(n_rows: Mapping[int, int]) -> Flaw | None:
    """The flaw to report, if any row has one."""
    found = [flaw for flaw, n in n_rows.items() if n]
    return Flaw(min(found)) if found else None


def _rows(n: int) -> str:
    return "1 row" if n == 1 else f"{n:,} rows"
