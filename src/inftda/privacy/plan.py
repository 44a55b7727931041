"""The plan: how much noise every level gets, and what that costs (paper, section 4.1).

This is the plan of mechanisms with Gaussian noise. A plan needs no data; making one spends
nothing. How it is spent is in `spending`.

Must never be made from the trips.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, cast, get_args

from inftda.errors import BudgetError, PrivacyError
from inftda.privacy.accounting import (
    Accountant,
    calibrate,
    check_offered,
    checked_accountant,
    delta_of,
    epsilon_of,
    privacy_curve,
    resolve,
)
from inftda.privacy.levels import (
    Measured,
    Share,
    check_drawable,
    checked_delta,
    checked_epsilon,
    checked_rho,
    levels_at,
    rounded_up,
    total_rho,
)
from inftda.privacy.records import decode
from inftda.privacy.spending import Spending
from inftda.privacy.split import Split, weights_of
from inftda.privacy.unit import Level, Levels, PrivacyUnit, with_unit

Scope = Literal["levels", "leaves"]


@dataclass(frozen=True, slots=True)
class LevelPlan:
    """One measured level.

    Attributes:
        index: number of the level in the tree; 0 is the root.
        name: for people.
        cells: number of possible nodes.
        squared_sensitivity: square of its l2 sensitivity.
        sigma2: variance parameter of its discrete Gaussian noise, exact.
        rho: what it costs in zCDP: squared_sensitivity / (2 sigma2), exact.
    """

    index: int
    name: str
    cells: int
    squared_sensitivity: int
    sigma2: Fraction
    rho: Fraction

    @property
    def sigma(self) -> float:
        """Noise scale, to the nearest float; the noise itself is drawn from `sigma2`."""
        return math.sqrt(self.sigma2)

    @property
    def sensitivity(self) -> float:
        """Its l2 sensitivity, to the nearest float."""
        return math.sqrt(self.squared_sensitivity)

    @property
    def noise(self) -> str:
        """Its noise in a few words."""
        return f"discrete Gaussian, σ = {self.sigma:.5g}"  # noqa: RUF001 - a Greek letter

    def to_dict(self) -> dict[str, Any]:
        """As it is written to a manifest; `sigma` and `sensitivity` are for people."""
        return {
            "index": self.index,
            "name": self.name,
            "cells": self.cells,
            "sensitivity": self.sensitivity,
            "squared_sensitivity": self.squared_sensitivity,
            "sigma": self.sigma,
            "sigma2": str(self.sigma2),
            "rho": str(self.rho),
        }


@dataclass(frozen=True)
class Plan:
    """Noise for every measured level, and the guarantee that follows.

    Attributes:
        unit: who is protected.
        accountant: how epsilon and delta follow from the noise.
        epsilon: promised with `delta`; None if only rho is promised.
        delta: likewise.
        rho: cost in zCDP, exact: the sum over levels.
        levels: the measured ones, root first (only if it is noised); trivial ones are absent.
        scope: "levels" if every level that splits is measured, "leaves" if only the finest.

    Privacy:
        Built by hand it promises nothing before `verify` has passed.
    """

    unit: PrivacyUnit
    accountant: str
    epsilon: float | None
    delta: float | None
    rho: Fraction
    levels: tuple[LevelPlan, ...]
    scope: Scope = "levels"

    def spending(self) -> Spending[LevelPlan]:
        """A fresh account of what has been drawn: use one for each release."""
        return Spending(self.levels)

    def verify(self, tree: Levels | None = None) -> None:
        """Recompute everything: costs, their sum, epsilon and delta; with a tree, its levels.

        Raises:
            BudgetError: the plan promises more than its noise gives.
        """
        if not self.levels:
            raise BudgetError("the plan has no measured level, so it promises nothing")
        self._verify_costs()
        if tree is not None:
            self._verify_levels(tree)
        self._verify_promise()

    def _verify_costs(self) -> None:
        indices = [level.index for level in self.levels]
        if indices != sorted(set(indices)) or indices[0] < 0:
            raise BudgetError(f"levels must be in order and each named once, got {indices}")
        if self.scope == "leaves":
            if len(indices) != 1 or indices[0] == 0:
                raise BudgetError(f"the plan measures only the leaves, but has levels {indices}")
        elif (indices[0] == 0) == self.unit.root_is_public:
            state = "public" if self.unit.root_is_public else "not public"
            raise BudgetError(f"the total is {state} for this unit, but the plan has it otherwise")
        for level in self.levels:
            if level.sigma2 <= 0 or not self._allows(level):
                raise BudgetError(
                    f"level {level.name!r} has sigma2 {level.sigma2} and squared sensitivity "
                    f"{level.squared_sensitivity}, which does not fit the unit: "
                    f"{self.unit.describe()}"
                )
            if level.rho != level.squared_sensitivity / (2 * level.sigma2):
                raise BudgetError(
                    f"level {level.name!r} states rho {level.rho}, but its noise costs "
                    f"{level.squared_sensitivity / (2 * level.sigma2)}"
                )
        total = sum((level.rho for level in self.levels), Fraction(0))
        if total != self.rho:
            raise BudgetError(f"the plan states rho {self.rho}, but its levels cost {total}")

    def _allows(self, level: LevelPlan) -> bool:
        """Whether some level of that index can have that sensitivity for this unit."""
        sides = 2 if self.unit.is_substitute and level.index else 1
        most = self.unit.trips**2
        # With distinct trips the figure depends on the tree, which only `verify(tree)` has.
        least = 1 if self.unit.distinct else most
        return least * sides <= level.squared_sensitivity <= most * sides

    def _verify_levels(self, tree: Levels) -> None:
        expected = measured_levels(tree, self.unit, self.scope)
        if [level.index for level in expected] != [level.index for level in self.levels]:
            raise BudgetError(
                "the plan does not measure the levels of this tree: it has "
                f"{[level.index for level in self.levels]}, the tree needs "
                f"{[level.index for level in expected]}"
            )
        for level, planned in zip(expected, self.levels, strict=True):
            facts = level.name, level.n_nodes, self.unit.squared_sensitivity(level)
            if facts != (planned.name, planned.cells, planned.squared_sensitivity):
                raise BudgetError(
                    f"level {planned.name!r} of the plan is not the one of the tree: "
                    f"name, cells and squared sensitivity must be {facts}"
                )

    def _verify_promise(self) -> None:
        if self.epsilon is None and self.delta is None:
            return
        if self.epsilon is None or self.delta is None:
            raise BudgetError("epsilon and delta are promised together or not at all")
        delta = checked_delta(self.delta)
        check_offered(self.accountant, delta)
        if not 0 <= self.epsilon < math.inf:
            raise BudgetError(f"epsilon must be a number of at least 0, got {self.epsilon}")
        found = privacy_curve(self.accountant, self.measured)(self.epsilon)
        if found > delta:
            raise BudgetError(
                f"the plan promises delta {delta:g} at epsilon {self.epsilon:g}, but by the "
                f"accountant {self.accountant!r} its noise gives {found:g}"
            )

    @property
    def measured(self) -> tuple[Measured, ...]:
        """The levels as accounting sees them."""
        return tuple(
            Measured(
                level.sigma2,
                level.squared_sensitivity,
                level.squared_sensitivity if self.unit.is_single_trip else 0,
            )
            for level in self.levels
        )

    def describe(self) -> str:
        """The promise in one line."""
        cost = f"rho = {rounded_up(self.rho)} (zCDP)"
        if self.epsilon is None or self.delta is None:
            return cost
        return (
            f"epsilon = {rounded_up(self.epsilon)}, delta = {rounded_up(self.delta)} "
            f"by the accountant '{self.accountant}'; {cost}"
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON: fractions as text, so nothing is rounded."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "rho": str(self.rho),
            "accountant": self.accountant,
            **self.unit.to_dict(),
            "scope": self.scope,
            "levels": [level.to_dict() for level in self.levels],
        }

    @classmethod
    def from_dict(cls, data: Any) -> "Plan":
        """Read back what `to_dict` gives, and recompute the guarantee.

        Raises:
            BudgetError: the plan promises more than its noise gives, or is not readable.
            PrivacyError: a parameter is out of range.
        """
        plan = decode(cls, with_unit(data), what="the plan", error=BudgetError)
        if checked_accountant(plan.accountant) == "auto":
            raise BudgetError("a plan must name the accountant it was made with, not 'auto'")
        plan.verify()
        return plan


def make_plan(  # noqa: PLR0913 - three ways to state a budget
    tree: Levels,
    unit: PrivacyUnit,
    *,
    epsilon: Fraction | float | str | None = None,
    delta: Fraction | float | str | None = None,
    rho: Fraction | float | str | None = None,
    accountant: str = "auto",
    split: Split = "uniform",
    scope: Scope = "levels",
) -> Plan:
    """Noise for every level of a tree that keeps a promise.

    Args:
        tree: what is released; its levels, not its data.
        unit: who is protected.
        epsilon: strength of the guarantee; with `delta`, the noise follows.
        delta: odds that it does not hold.
        rho: strength in zCDP, instead; with `delta`, epsilon follows, and the other way round.
        accountant: "auto" for the tightest that is valid.
        split: of the budget over measured levels: "uniform", "geometric:RATIO" (each level
            RATIO times the one above), weights in order, or weights by level name or index.
        scope: "levels" to measure every level that splits, and the root unless it is
            public; "leaves" to measure the finest level only.

    Returns:
        The plan, verified.

    Raises:
        PrivacyError: a parameter is out of range, or the accountant not valid for the unit.
        BudgetError: the plan does not keep the promise.

    Privacy:
        All levels, measured with this noise, are (epsilon, delta)-differentially private
        for the unit. See docs/proofs/accounting.md.
    """
    measured = measured_levels(tree, unit, checked_scope(scope))
    if not measured:
        raise PrivacyError(
            "there is nothing to measure: no level of the tree has two areas and the total "
            "is public; give areas that are split at some level"
        )
    shares = [
        Share(weight, unit.squared_sensitivity(level), unit.n_shifts(level))
        for weight, level in zip(weights_of(split, measured, tree), measured, strict=True)
    ]
    if rho is None:
        epsilon, delta = _both(epsilon, delta)
        used, total = calibrate(accountant, epsilon=epsilon, delta=delta, parts=shares)
        levels = levels_at(total, shares)
    else:
        levels = levels_at(checked_rho(rho), shares)
        used, epsilon, delta = _implied(accountant, levels, epsilon=epsilon, delta=delta)
    check_drawable(max(level.sigma2 for level in levels))
    plan = Plan(
        unit=unit,
        accountant=used,
        epsilon=None if epsilon is None else float(epsilon),
        delta=None if delta is None else float(delta),
        rho=total_rho(levels),
        levels=tuple(
            LevelPlan(
                level.index,
                level.name,
                level.n_nodes,
                noise.squared_sensitivity,
                noise.sigma2,
                noise.rho,
            )
            for level, noise in zip(measured, levels, strict=True)
        ),
        scope=scope,
    )
    plan.verify(tree)
    return plan


def measured_levels(tree: Levels, unit: PrivacyUnit, scope: Scope = "levels") -> list[Level]:
    """Levels that get noise: those that split something, and the root unless it is public."""
    root, *others = tree.levels
    below = [level for level in others if not level.is_trivial]
    if scope == "leaves":
        return below[-1:]
    return below if unit.root_is_public else [root, *below]


def checked_scope(scope: Any) -> Scope:
    """`scope` itself.

    Raises:
        PrivacyError: it is not a scope.
    """
    if scope not in get_args(Scope):
        raise PrivacyError(f"scope must be 'levels' or 'leaves', got {scope!r}")
    return cast("Scope", scope)


def _both(
    epsilon: Fraction | float | str | None, delta: Fraction | float | str | None
) -> tuple[float, float]:
    if epsilon is None or delta is None:
        raise PrivacyError(
            "a budget is either epsilon and delta, or rho; got "
            f"epsilon = {epsilon}, delta = {delta}"
        )
    return checked_epsilon(epsilon), checked_delta(delta)


def _implied(
    accountant: str,
    levels: Iterable[Measured],
    *,
    epsilon: Fraction | float | str | None,
    delta: Fraction | float | str | None,
) -> tuple[Accountant, float | None, float | None]:
    """What a given rho promises: the accountant, epsilon and delta."""
    levels = tuple(levels)
    if epsilon is not None and delta is not None:
        raise PrivacyError("give epsilon and delta, or rho with at most one of them, not all")
    if epsilon is not None:
        used = resolve(accountant, levels)
        at = checked_epsilon(epsilon)
        found = delta_of(used, epsilon=at, levels=levels)
        if found >= 1:
            raise PrivacyError(f"this rho promises nothing at epsilon {at:g}; give a larger one")
        return used, at, found
    if delta is not None:
        target = checked_delta(delta)
        used = resolve(accountant, levels, delta=target)
        return used, epsilon_of(used, delta=target, levels=levels), target
    asked = checked_accountant(accountant)
    return ("zcdp" if asked == "auto" else asked), None, None
