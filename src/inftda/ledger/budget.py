"""The budget of a data set: what all its releases together may cost.

Releases that are zCDP draw on one pool, and their costs add up exactly. Releases that are
only (epsilon, delta), such as a stability histogram, draw on a second pool that is set aside
beforehand and where epsilons and deltas add up. Both pools are fixed before the first
release, so the promise also holds when what is released next depends on what was released
before: `docs/proofs/ledger.md`.

Costs are per unit of privacy; adding up the costs of different units means nothing.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, Literal

from inftda.errors import LedgerError, PrivacyError
from inftda.privacy.accounting import Share, epsilon_of, max_rho, noise_at, total_rho
from inftda.privacy.numbers import (
    checked_delta,
    checked_epsilon,
    checked_rho,
    exact_number,
    rounded_down,
    rounded_up,
)
from inftda.privacy.spending import ReleasePlan

#: Which pool a release is taken from; "alone" is a first release that takes all of the first.
Pool = Literal["zcdp", "approximate", "alone"]
Number = Fraction | float | str

_ZERO: Final = Fraction(0)


@dataclass(frozen=True, slots=True)
class Cost:
    """What one release costs.

    Attributes:
        rho: in zCDP; None if only epsilon and delta are promised.
        epsilon: what is promised with `delta`, or None.
        delta: likewise.
    """

    rho: Fraction | None
    epsilon: Fraction | None
    delta: Fraction | None

    @classmethod
    def of(cls, plan: ReleasePlan) -> "Cost":
        """What a plan costs, exactly."""
        return cls(plan.rho, _exact(plan.epsilon), _exact(plan.delta))

    @classmethod
    def stated(
        cls,
        *,
        rho: Number | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
    ) -> "Cost":
        """What a custodian says that a release by other means has cost.

        Raises:
            PrivacyError: it is neither rho alone nor epsilon with delta, or out of range.
        """
        if rho is not None and epsilon is None and delta is None:
            return cls(checked_rho(rho), None, None)
        if rho is None and epsilon is not None and delta is not None:
            checked_epsilon(epsilon)
            checked_delta(delta)
            return cls(None, _exact(epsilon), _exact(delta))
        raise PrivacyError("a cost is either rho, or epsilon and delta; give one of the two")

    def describe(self) -> str:
        """The cost in a few words."""
        if self.rho is not None:
            return f"rho = {rounded_up(self.rho)}"
        return f"epsilon = {_shown(self.epsilon)}, delta = {_shown(self.delta)}"


@dataclass(frozen=True, slots=True)
class Spent:
    """What has been taken from each pool.

    Attributes:
        rho: sum of the costs of zCDP releases.
        epsilon: sum over the others.
        delta: likewise.
        releases: how many there were.
        alone: what the first release costs, if it took all of the first pool.
    """

    rho: Fraction = _ZERO
    epsilon: Fraction = _ZERO
    delta: Fraction = _ZERO
    releases: int = 0
    alone: Cost | None = None

    def plus(self, pool: Pool, cost: Cost) -> "Spent":
        """After one more release."""
        releases = self.releases + 1
        if pool == "approximate":
            epsilon = self.epsilon + (cost.epsilon or _ZERO)
            delta = self.delta + (cost.delta or _ZERO)
            return Spent(self.rho, epsilon, delta, releases, self.alone)
        alone = cost if pool == "alone" else self.alone
        rho = self.rho + (cost.rho or _ZERO)
        return Spent(rho, self.epsilon, self.delta, releases, alone)


@dataclass(frozen=True, slots=True)
class Budget:
    """Two pools that releases draw on; build one with `Budget.make`.

    Attributes:
        rho: the pool of zCDP releases.
        epsilon: what both pools come to at `delta`; None if the budget was given as rho.
        delta: None if the budget was given as rho and nothing is said about epsilon.
        approximate_epsilon: the pool of releases that are only (epsilon, delta).
        approximate_delta: likewise.
    """

    rho: Fraction
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    approximate_epsilon: Fraction = field(default=_ZERO)
    approximate_delta: Fraction = field(default=_ZERO)

    @classmethod
    def make(
        cls,
        *,
        rho: Number | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        approximate_epsilon: Number | None = None,
        approximate_delta: Number | None = None,
    ) -> "Budget":
        """A budget from what a custodian says.

        Args:
            rho: the pool of zCDP releases, or
            epsilon: what everything may come to, at `delta`.
            delta: with `rho` it only says at which delta epsilon is stated.
            approximate_epsilon: how much of epsilon is set aside for releases that are not
                zCDP; none by default.
            approximate_delta: how much of delta is.

        Raises:
            PrivacyError: a number is missing or out of range, or more is set aside than
                there is.
        """
        aside = _set_aside(approximate_epsilon, approximate_delta)
        if (rho is None) == (epsilon is None):
            raise PrivacyError("a budget is either rho, or epsilon and delta; give one of the two")
        if rho is not None:
            if delta is not None:
                _rest("delta", delta, aside[1])
            elif any(aside):
                raise PrivacyError("a part set aside needs a delta for the whole; give delta")
            return cls(checked_rho(rho), None, _exact(delta), *aside)
        if delta is None or epsilon is None:
            raise PrivacyError("a budget of epsilon needs a delta; give both")
        left = _rest("epsilon", epsilon, aside[0]), _rest("delta", delta, aside[1])
        return cls(_largest_rho(*left), _exact(epsilon), _exact(delta), *aside)

    def pool_for(self, spent: Spent, cost: Cost) -> Pool:
        """Where a release is taken from.

        Raises:
            LedgerError: there is not enough left.

        Privacy:
            All releases this lets pass are together as private as the budget says, for the
            one unit of privacy that all their costs refer to. See docs/proofs/ledger.md.
        """
        if cost.rho is None:
            self._check_approximate(spent, cost)
            return "approximate"
        if spent.alone is not None:
            raise LedgerError(
                "the first release of the data set took its whole budget (it was accounted for "
                "alone, by its own accountant); no other fits"
            )
        if spent.rho + cost.rho <= self.rho:
            return "zcdp"
        if spent.releases == 0 and self._is_enough_for(cost):
            return "alone"
        left = self.rho - spent.rho
        advice = "nothing is left" if left <= 0 else f"at most --rho {rounded_down(left)} fits"
        raise LedgerError(
            f"the budget is rho = {float(self.rho):.6g}{self._at_delta()}, of which "
            f"{rounded_up(spent.rho)} is spent; this release costs {rounded_up(cost.rho)}, "
            f"but {advice}"
        )

    def _is_enough_for(self, cost: Cost) -> bool:
        """Whether a release keeps the whole promise by itself, by its own accountant.

        Composition by rho is a little wasteful, so without this a budget of epsilon would
        refuse the one release that promises exactly that epsilon.
        """
        if None in {self.epsilon, self.delta, cost.epsilon, cost.delta}:
            return False
        epsilon, delta = self.epsilon or _ZERO, self.delta or _ZERO
        return (
            cost.epsilon is not None
            and cost.delta is not None
            and cost.epsilon <= epsilon - self.approximate_epsilon
            and cost.delta <= delta - self.approximate_delta
        )

    def _check_approximate(self, spent: Spent, cost: Cost) -> None:
        epsilon, delta = cost.epsilon or _ZERO, cost.delta or _ZERO
        if not self.approximate_epsilon:
            raise LedgerError(
                "this release is not zCDP, only (epsilon, delta), and the data set has nothing "
                "set aside for such releases; use another mechanism, or a data set made with "
                "--approximate-epsilon and --approximate-delta"
            )
        left = self.approximate_epsilon - spent.epsilon, self.approximate_delta - spent.delta
        if epsilon > left[0] or delta > left[1]:
            raise LedgerError(
                f"for releases that are not zCDP epsilon = {_shown(self.approximate_epsilon)} "
                f"and delta = {_shown(self.approximate_delta)} are set aside, of which "
                f"{_shown(left[0])} and {_shown(left[1])} are left; this release costs "
                f"{_shown(epsilon)} and {_shown(delta)}"
            )

    def epsilon_at_delta(self, spent: Spent) -> float | None:
        """What has been spent as epsilon at the budget's delta, rounded up.

        None if the budget has no delta.
        """
        if self.delta is None:
            return None
        approximate = float(spent.epsilon) * (1 + 2.0**-50)
        if spent.alone is not None and spent.alone.epsilon is not None:
            return approximate + float(spent.alone.epsilon)
        if not spent.rho:
            return approximate
        delta = self.delta - self.approximate_delta
        noise = [(1 / (2 * spent.rho), 1, 0)]
        return approximate + epsilon_of("zcdp", delta=delta, noise=noise)

    def describe(self) -> str:
        """The budget in one line."""
        if self.epsilon is None:
            text = f"rho = {float(self.rho):.6g} (zCDP)"
            if self.delta is not None:
                text += f", stated as epsilon at delta = {_shown(self.delta)}"
        else:
            text = (
                f"epsilon = {_shown(self.epsilon)} at delta = {_shown(self.delta)}, "
                f"which is rho = {float(self.rho):.6g} (zCDP)"
            )
        if self.approximate_epsilon:
            text += (
                f"; set aside for releases that are not zCDP: epsilon = "
                f"{_shown(self.approximate_epsilon)}, delta = {_shown(self.approximate_delta)}"
            )
        return text

    def _at_delta(self) -> str:
        if self.epsilon is None:
            return ""
        return f" (epsilon = {_shown(self.epsilon)} at delta = {_shown(self.delta)})"


def _set_aside(epsilon: Number | None, delta: Number | None) -> tuple[Fraction, Fraction]:
    if epsilon is None and delta is None:
        return _ZERO, _ZERO
    if epsilon is None or delta is None:
        raise PrivacyError(
            "what is set aside has an epsilon and a delta; give approximate_epsilon and "
            "approximate_delta"
        )
    checked_epsilon(epsilon)
    checked_delta(delta)
    return exact_number(epsilon), exact_number(delta)


def _rest(name: str, whole: Number, aside: Fraction) -> Fraction:
    """What is left for zCDP releases."""
    checked = checked_epsilon if name == "epsilon" else checked_delta
    checked(whole)
    left = exact_number(whole) - aside
    if left <= 0:
        raise PrivacyError(
            f"the {name} set aside must be below the {name} of the budget, got {_shown(aside)} "
            f"of {_shown(exact_number(whole))}"
        )
    checked(left)
    return left


def _largest_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho, rounded down, that implies (epsilon, delta)."""
    share = Share(Fraction(1), 1, 0)
    rho = max_rho("zcdp", epsilon=epsilon, delta=delta, shares=[share])
    # Noise is rounded up when it is planned; what it costs is what was found to be safe.
    return total_rho(noise_at(rho, [share]))


def _exact(value: Number | None) -> Fraction | None:
    return None if value is None else exact_number(value)


def _shown(value: Fraction | None) -> str:
    return "none" if value is None else f"{float(value):.6g}"
