"""The budget of a data set, and what its releases have spent of it.

Costs are kept in rho (zCDP), in which they add up exactly. The budget is fixed before the first
release, so the promise also holds when what is released next depends on what was released before:
`docs/proofs/ledger.md`. Costs are per unit of privacy; adding up those of different units means
nothing.
"""

from fractions import Fraction
from typing import Any, Final

import msgspec

from inftda.errors import LedgerError, PrivacyError
from inftda.numbers import (
    checked_delta,
    checked_epsilon,
    checked_rho,
    exact_number,
    rounded_down,
    rounded_up,
)
from inftda.privacy.accounting import Number, Share, epsilon_of, max_rho, noise_at, total_rho
from inftda.privacy.unit import Unit

#: The mechanism of entries for releases, and for what was released by other means.
RELEASE: Final = "inftda"
BY_HAND: Final = "stated by hand"


class Cost(msgspec.Struct, frozen=True):
    """What one release costs: rho (zCDP), and what it promises by itself, if not rho only."""

    rho: Fraction
    epsilon: Fraction | None = None
    delta: Fraction | None = None

    def __post_init__(self) -> None:
        if self.rho <= 0 or (self.delta is not None and self.delta < 0):
            raise ValueError("an amount must be above 0")


class Budget(Cost, frozen=True):
    """What all releases of a data set together may cost; build one with `Budget.make`.

    With rho alone, delta says at which delta epsilon is stated, if at all.
    """

    @classmethod
    def make(
        cls,
        *,
        rho: Number | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
    ) -> "Budget":
        """A budget from what a custodian says: rho, or epsilon and delta.

        With rho, delta only says at which delta epsilon is stated.
        """
        if (rho is None) == (epsilon is None):
            raise PrivacyError("a budget is either rho, or epsilon and delta; give one of the two")
        if delta is not None:
            checked_delta(delta)
        at = None if delta is None else exact_number(delta)
        if rho is not None:
            return cls(checked_rho(rho), None, at)
        if delta is None or epsilon is None:
            raise PrivacyError("a budget of epsilon needs a delta; give both")
        checked_epsilon(epsilon)
        share = Share(Fraction(1), 1, 1)
        largest = max_rho("zcdp", epsilon=epsilon, delta=delta, shares=[share])
        # Noise is rounded up when it is planned; what it costs is what was found to be safe.
        return cls(total_rho(noise_at(largest, [share])), exact_number(epsilon), at)

    def describe(self) -> str:
        """The budget in one line."""
        if self.epsilon is not None:
            return f"{self.as_epsilon()}, which is rho = {float(self.rho):.6g} (zCDP)"
        at = f", stated as epsilon at delta = {float(self.delta):.6g}" if self.delta else ""
        return f"rho = {float(self.rho):.6g} (zCDP){at}"

    def as_epsilon(self) -> str:
        """What was given as epsilon, in words."""
        return f"epsilon = {float(self.epsilon or 0):.6g} at delta = {float(self.delta or 0):.6g}"


class Entry(Cost, frozen=True, kw_only=True):
    """One release as it was charged, in UTC, before its noise was drawn.

    `published` is None if it crashed, was interrupted or is under way. The note is what the
    custodian says about it, or the name of the folder it went to. `period` is what it is about, if
    that was said: a month, a year.
    """

    number: int
    charged: str
    published: str | None
    mechanism: str
    note: str
    period: str = ""


class Spending(msgspec.Struct, frozen=True):
    """Some releases that share a budget."""

    budget: Budget
    entries: tuple[Entry, ...]

    @property
    def spent(self) -> Fraction:
        """The rho of all entries, also of releases that were never completed."""
        return sum((entry.rho for entry in self.entries), Fraction(0))

    @property
    def is_taken_alone(self) -> bool:
        """Whether the first release took the whole budget, accounted for by itself."""
        return bool(self.entries) and self.entries[0].rho > self.budget.rho

    @property
    def epsilon(self) -> float | None:
        """What they come to as epsilon at the budget's delta, rounded up; None without a delta."""
        if self.budget.delta is None:
            return None
        if not self.entries:
            return 0.0
        if self.is_taken_alone:
            return float(self.entries[0].epsilon or 0)
        return epsilon_of("zcdp", delta=self.budget.delta, noise=[(1 / (2 * self.spent), 1, 1)])

    def check(self, cost: Cost, whose: str) -> None:
        """Refuse a release that costs too much.

        Privacy:
            All releases that this lets pass are together as private as the budget says. See
            docs/proofs/ledger.md.
        """
        budget, left = self.budget, self.budget.rho - self.spent
        if self.is_taken_alone:
            raise LedgerError(
                f"{whose}: its first release took the whole budget (it was accounted for alone, "
                "by its own accountant); no other fits"
            )
        if cost.rho <= left or (not self.entries and self._fits_alone(cost)):
            return
        stated = "" if budget.epsilon is None else f" ({budget.as_epsilon()})"
        advice = "nothing is left" if left <= 0 else f"at most `rho={rounded_down(left)}` fits"
        raise LedgerError(
            f"{whose}: the budget is rho = {float(budget.rho):.6g}{stated}, of "
            f"which {rounded_up(self.spent)} is spent; this release costs "
            f"{rounded_up(cost.rho)}, but {advice}"
        )

    def _fits_alone(self, cost: Cost) -> bool:
        """Whether a release keeps the whole promise by itself, by its own accountant.

        Composition by rho is a little wasteful, so without this a budget of epsilon would
        refuse the one release that promises exactly that epsilon.
        """
        pairs = [(cost.epsilon, self.budget.epsilon), (cost.delta, self.budget.delta)]
        return all(of is not None and most is not None and of <= most for of, most in pairs)

    def words(self) -> str:
        """What is spent, in a line; rounded up."""
        n = len(self.entries)
        text = f"rho = {rounded_up(self.spent)} by {n} release{'' if n == 1 else 's'}"
        if self.epsilon is None or self.budget.delta is None:
            return text
        at = f"delta = {float(self.budget.delta):.6g}"
        return f"{text}; all together epsilon = {rounded_up(self.epsilon)} at {at}"


class Dataset(msgspec.Struct, frozen=True):
    """A data set: its unit of privacy, its budget, and every release it was charged for.

    `each_period` is a further budget, for the releases about one period: what a person has in one
    period is protected by it, and what a person has in all of them by `budget`.
    """

    name: str
    created: str
    unit: Unit
    budget: Budget
    entries: tuple[Entry, ...]
    each_period: Budget | None = None

    @property
    def spending(self) -> Spending:
        """All releases."""
        return Spending(self.budget, self.entries)

    @property
    def by_period(self) -> dict[str, Spending]:
        """The releases about each period, where periods have a budget."""
        if self.each_period is None:
            return {}
        periods = dict.fromkeys(entry.period for entry in self.entries)
        return {period: self._about(self.each_period, period) for period in periods}

    def _about(self, budget: Budget, period: str) -> Spending:
        return Spending(budget, tuple(one for one in self.entries if one.period == period))

    def check(self, cost: Cost, unit: Unit, period: str = "") -> None:
        """Refuse a release that does not fit: it costs too much, or its unit is another one.

        Privacy:
            All releases that this lets pass are together as private as the budget says, and those
            about one period as private as the budget of each period says. See
            docs/proofs/ledger.md.
        """
        if not _is_same(unit, self.unit):
            raise LedgerError(
                f"the data set {self.name!r} protects one unit of privacy ({self.unit.describe()})"
                f", this release another ({unit.describe()}); what is spent on different units "
                "does not add up: use the data set's unit, or another data set"
            )
        if self.each_period is not None and not period:
            raise LedgerError(
                f"the data set {self.name!r} has a budget for each period; say which period "
                "the release is about, such as `edition='2024-05'`"
            )
        self.spending.check(cost, f"data set {self.name!r}")
        if self.each_period is not None:
            whose = f"data set {self.name!r}, period {period!r}"
            self._about(self.each_period, period).check(cost, whose)

    def spent_words(self) -> list[str]:
        """What is spent, in lines; the second is about the period that has spent most."""
        lines = [self.spending.words()]
        if self.by_period:
            period, most = max(self.by_period.items(), key=lambda one: one[1].spent)
            lines.append(f"in one period at most {most.words()} ({period})")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """For JSON; fractions as text, epsilon spent rounded up."""
        whole = msgspec.to_builtins(self, enc_hook=str)
        periods = {period: _amounts(of) for period, of in self.by_period.items()}
        spent = {**_amounts(self.spending), **({"periods": periods} if periods else {})}
        return {"dataset": whole.pop("name"), "spent": spent, **whole}


def _amounts(spending: Spending) -> dict[str, Any]:
    return {
        "releases": len(spending.entries),
        "rho": str(spending.spent),
        "epsilon_at_delta": spending.epsilon,
    }


def _is_same(unit: Unit, other: Unit) -> bool:
    """Whether two units are one; a single trip is always distinct."""
    if unit.is_single_trip and other.is_single_trip:
        return (unit.neighbours, unit.exactly) == (other.neighbours, other.exactly)
    return unit == other
