"""The budget of a data set, and how much of it releases have spent.

Costs are kept in rho (zCDP), in which they add up exactly. The budget is fixed before the first
release, so the guarantee also holds if later releases depend on earlier ones:
`docs/proofs/ledger.md`. Costs are per privacy unit; costs of different units cannot be added.
"""

import re
from datetime import date
from fractions import Fraction
from typing import Any, Final

import msgspec

from inftda.errors import LedgerError, PrivacyError
from inftda.privacy.accounting import Number, epsilon_of_rho, rho_of
from inftda.privacy.noise_plan import Plan
from inftda.privacy.unit import Unit
from inftda.util.exact_numbers import (
    checked_delta,
    checked_epsilon,
    checked_rho,
    exact_number,
    rounded_down,
    rounded_up,
)

#: Mechanism of entries for releases, and for other publications.
RELEASE: Final = "inftda"
BY_HAND: Final = "stated by hand"
#: Forms of a period. Two different periods of one form never overlap.
_FORMS: Final = {
    "YYYY": r"[0-9]{4}",
    "YYYY-MM": r"[0-9]{4}-(0[1-9]|1[0-2])",
    "YYYY-Qn": r"[0-9]{4}-Q[1-4]",
    "YYYY-MM-DD": r"[0-9]{4}-[0-9]{2}-[0-9]{2}",
}
PERIOD_RULE: Final = (
    f"periods must not overlap: write all of them as {', '.join([*_FORMS][:-1])} or {[*_FORMS][-1]}"
)


class Cost(msgspec.Struct, frozen=True):
    """Cost of one release: rho (zCDP), and its own epsilon and delta if the plan states them."""

    rho: Fraction
    epsilon: Fraction | None = None
    delta: Fraction | None = None

    def __post_init__(self) -> None:
        if self.rho <= 0 or (self.delta is not None and self.delta < 0):
            raise ValueError("an amount must be above 0")

    @staticmethod
    def of(plan: Plan) -> "Cost":
        """Cost of a release that is made by a plan."""
        stated = [None if x is None else exact_number(x) for x in (plan.epsilon, plan.delta)]
        return Cost(plan.rho, *stated)

    def describe(self) -> str:
        """The cost in one line."""
        rho = f"rho = {rounded_up(self.rho)} (zCDP)"
        if self.epsilon is None or self.delta is None:
            return rho
        return f"epsilon = {rounded_up(self.epsilon)}, delta = {rounded_up(self.delta)}; {rho}"


def charged_words(dataset: str, cost: Cost) -> str:
    """Statement that a ledger was charged, with cost and data set."""
    return f"the ledger was charged (data set {dataset!r}, {cost.describe()})"


class Budget(Cost, frozen=True):
    """Budget of all releases of a data set together; build one with `Budget.make`.

    If only rho was given, `delta` is the delta at which epsilon is stated, or None.
    """

    @classmethod
    def make(
        cls,
        *,
        rho: Number | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
    ) -> "Budget":
        """Make a budget from rho, or from epsilon and delta.

        With rho, delta is only used to state an epsilon.
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
        return cls(rho_of(epsilon=epsilon, delta=delta), exact_number(epsilon), at)

    def describe(self) -> str:
        """The budget in one line."""
        if self.epsilon is not None:
            return f"{self.as_epsilon()}, which is rho = {float(self.rho):.6g} (zCDP)"
        at = f", stated as epsilon at delta = {float(self.delta):.6g}" if self.delta else ""
        return f"rho = {float(self.rho):.6g} (zCDP){at}"

    def as_epsilon(self) -> str:
        """Epsilon and delta of the budget, in words."""
        return f"epsilon = {float(self.epsilon or 0):.6g} at delta = {float(self.delta or 0):.6g}"


class Entry(Cost, frozen=True, kw_only=True):
    """One release as it was charged, in UTC, before its noise was drawn.

    `published` is None if the release crashed, was interrupted or is under way. The note is the
    custodian's, or the name of the output folder. `period` is the month or year that the release is
    about, if one was given.
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
        """Epsilon of all releases at the budget's delta, rounded up; None without a delta."""
        if self.budget.delta is None:
            return None
        if not self.entries:
            return 0.0
        if self.is_taken_alone:
            return float(self.entries[0].epsilon or 0)
        return epsilon_of_rho(self.spent, delta=self.budget.delta)

    def check(self, cost: Cost, whose: str) -> None:
        """Refuse a release that costs too much.

        Privacy:
            All releases that pass this check satisfy the budget together (docs/proofs/ledger.md).
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
        """Whether a single release satisfies the budget by its own accountant.

        Composition by rho is not tight, so without this rule a budget of epsilon would refuse a
        single release with exactly that epsilon.
        """
        pairs = [(cost.epsilon, self.budget.epsilon), (cost.delta, self.budget.delta)]
        return all(of is not None and most is not None and of <= most for of, most in pairs)

    def words(self) -> str:
        """Budget spent, in one line; rounded up."""
        n = len(self.entries)
        text = f"rho = {rounded_up(self.spent)} by {n} release{'' if n == 1 else 's'}"
        if self.epsilon is None or self.budget.delta is None:
            return text
        at = f"delta = {float(self.budget.delta):.6g}"
        text = f"{text}; all together epsilon = {rounded_up(self.epsilon)} at {at}"
        if not self.is_taken_alone:
            return text
        return (
            f"{text} by its own accountant, which is tighter than a sum of rho; so its rho may "
            "exceed that of the budget, and no other release fits"
        )


class Dataset(msgspec.Struct, frozen=True):
    """A data set: its privacy unit, its budget, and all charged releases.

    `each_period` is an additional budget for the releases about one period. It protects a person's
    rows of one period; `budget` protects a person's rows of all periods.
    """

    name: str
    created: str
    unit: Unit
    budget: Budget
    entries: tuple[Entry, ...]
    each_period: Budget | None = None

    @property
    def spending(self) -> Spending:
        """Spending of all releases together."""
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
        """Refuse a release that costs too much or has another privacy unit.

        Privacy:
            All releases that pass this check satisfy `budget` together, and those about one period
            satisfy `each_period` (docs/proofs/ledger.md).
        """
        if not _is_same(unit, self.unit):
            raise LedgerError(
                f"the data set {self.name!r} has one privacy unit ({self.unit.describe()}), "
                f"this release another ({unit.describe()}); costs for different units "
                "do not add up: use the data set's unit, or another data set"
            )
        if self.each_period is not None and not period:
            raise LedgerError(
                f"the data set {self.name!r} has a budget for each period; say which period "
                "the release is about, such as `edition='2024-05'`"
            )
        if self.each_period is not None:
            self._check_form(period)
        self.spending.check(cost, f"data set {self.name!r}")
        if self.each_period is not None:
            whose = f"data set {self.name!r}, period {period!r}"
            self._about(self.each_period, period).check(cost, whose)

    def _check_form(self, period: str) -> None:
        """Refuse a period of another form: it would have a budget of its own, and may overlap."""
        form = _form_of(period)
        other = next((one.period for one in self.entries if _form_of(one.period) != form), None)
        if form is not None and other is None:
            return
        if other is None:
            raise LedgerError(
                f"the data set {self.name!r} has a budget for each period, and {PERIOD_RULE}; "
                f"got {period!r}"
            )
        used = _form_of(other) or f"{other!r}"
        raise LedgerError(
            f"the data set {self.name!r} has a budget for each period, and its periods are written "
            f"as {used}, such as {other!r}; got {period!r}, which may overlap one of them"
        )

    def spent_words(self) -> list[str]:
        """Budget spent, in lines; the second is about the period that has spent most."""
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


def _form_of(period: str) -> str | None:
    """The form of a period; None if it has none of them, or is not in the calendar."""
    form = next((form for form, sign in _FORMS.items() if re.fullmatch(sign, period)), None)
    if form == "YYYY-MM-DD":
        try:
            date.fromisoformat(period)
        except ValueError:
            return None
    return form


def _amounts(spending: Spending) -> dict[str, Any]:
    return {
        "releases": len(spending.entries),
        "rho": str(spending.spent),
        "epsilon_at_delta": spending.epsilon,
    }


def _is_same(unit: Unit, other: Unit) -> bool:
    """Whether two units are equal; a single trip is always distinct."""
    if unit.is_single_trip and other.is_single_trip:
        return (unit.neighbours, unit.exactly) == (other.neighbours, other.exactly)
    return unit == other
