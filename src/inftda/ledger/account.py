"""A data set of a ledger: its unit of privacy, its budget, and what it was charged for."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from inftda.errors import LedgerError
from inftda.ledger.budget import Budget, Cost, Pool, Spent
from inftda.privacy.numbers import rounded_up
from inftda.privacy.unit import PrivacyUnit

#: The mechanism of entries for what was released by other means.
BY_HAND: Final = "stated by hand"


@dataclass(frozen=True, slots=True)
class Entry:
    """One release as it was charged.

    Attributes:
        number: of the entry, counting up over all data sets of the ledger.
        charged: when, in UTC; before its noise was drawn.
        published: when it was complete; None if it crashed, was interrupted or is under way.
        pool: what it was taken from.
        cost: how much.
        mechanism: how it was made.
        note: what the custodian says about it.
    """

    number: int
    charged: str
    published: str | None
    pool: Pool
    cost: Cost
    mechanism: str
    note: str

    def to_dict(self) -> dict[str, Any]:
        """For JSON and CSV; fractions as text, so nothing is rounded."""
        return {
            "number": self.number,
            "charged": self.charged,
            "published": self.published,
            "pool": self.pool,
            "rho": as_text(self.cost.rho),
            "epsilon": as_text(self.cost.epsilon),
            "delta": as_text(self.cost.delta),
            "mechanism": self.mechanism,
            "note": self.note,
        }


@dataclass(frozen=True, slots=True)
class Account:
    """A data set: its unit of privacy, its budget, and every release it was charged for."""

    name: str
    created: str
    unit: PrivacyUnit
    budget: Budget
    entries: tuple[Entry, ...]

    @property
    def spent(self) -> Spent:
        """The sum of all entries, also of releases that were never completed."""
        spent = Spent()
        for entry in self.entries:
            spent = spent.plus(entry.pool, entry.cost)
        return spent

    def pool_for(self, cost: Cost, unit: PrivacyUnit) -> Pool:
        """Where a release would be taken from.

        Raises:
            LedgerError: the budget is not enough, or the unit is another one.
        """
        if not _is_same(unit, self.unit):
            raise LedgerError(
                f"the data set {self.name!r} protects one unit of privacy ({self.unit.describe()})"
                f", this release another ({unit.describe()}); what is spent on different units "
                "does not add up: use the data set's unit, or another data set"
            )
        try:
            return self.budget.pool_for(self.spent, cost)
        except LedgerError as problem:
            raise LedgerError(f"data set {self.name!r}: {problem}") from None

    def spent_words(self) -> str:
        """What is spent, in a line; rounded up."""
        spent, budget = self.spent, self.budget
        releases = "1 release" if spent.releases == 1 else f"{spent.releases} releases"
        text = f"rho = {rounded_up(spent.rho)} by {releases}"
        if spent.epsilon:
            text += (
                f"; not zCDP: epsilon = {rounded_up(spent.epsilon)}, delta = "
                f"{rounded_up(spent.delta)}"
            )
        epsilon = budget.epsilon_at_delta(spent)
        if epsilon is not None and budget.delta is not None:
            text += (
                f"; all together epsilon = {rounded_up(epsilon)} at delta = "
                f"{float(budget.delta):.6g}"
            )
        return text

    def to_dict(self) -> dict[str, Any]:
        """For JSON; fractions as text, epsilon spent rounded up."""
        spent, budget = self.spent, self.budget
        return {
            "dataset": self.name,
            "created": self.created,
            "unit": self.unit.to_dict(),
            "budget": {
                "rho": str(budget.rho),
                "epsilon": as_text(budget.epsilon),
                "delta": as_text(budget.delta),
                "approximate_epsilon": str(budget.approximate_epsilon),
                "approximate_delta": str(budget.approximate_delta),
            },
            "spent": {
                "releases": spent.releases,
                "rho": str(spent.rho),
                "approximate_epsilon": str(spent.epsilon),
                "approximate_delta": str(spent.delta),
                "epsilon_at_delta": budget.epsilon_at_delta(spent),
            },
            "entries": [entry.to_dict() for entry in self.entries],
        }


def _is_same(unit: PrivacyUnit, other: PrivacyUnit) -> bool:
    """Whether two units are one; a single trip is always distinct."""
    if unit.is_single_trip and other.is_single_trip:
        return (unit.neighbours, unit.exactly) == (other.neighbours, other.exactly)
    return unit == other


def as_text(value: Fraction | None) -> str | None:
    """An amount as it is written, exactly."""
    return None if value is None else str(value)
