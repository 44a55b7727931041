"""The plan: how much noise every level gets, and what that costs (paper, section 4.1).

This is the plan of mechanisms with Gaussian noise. A plan needs no data; making one spends
nothing. How it is spent is in `spending`.

Must never be made from the trips.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, Literal, cast, get_args

from inftda.errors import BudgetError, PrivacyError
from inftda.lattice import Table, weights
from inftda.privacy.accounting import (
    Accountant,
    Noise,
    Share,
    commensurable,
    delta_of,
    epsilon_of,
    max_rho,
    noise_at,
    privacy_curve,
    resolve,
    total_rho,
)
from inftda.privacy.numbers import (
    check_drawable,
    checked_delta,
    checked_epsilon,
    checked_rho,
    rounded_up,
)
from inftda.privacy.planned import LevelPlan, TablePlan, checked_across, tables_off
from inftda.privacy.records import decode
from inftda.privacy.spending import Spending
from inftda.privacy.split import Split, weights_of
from inftda.privacy.unit import Level, Levels, PrivacyUnit, with_unit

Scope = Literal["levels", "leaves"]


#: Below this noise scale of a level nothing is gained across: no table off the tree is measured.
LEAST_SIGMA2: Final = 1
#: Variances are rounded up by less than this, so parts of the budget are that far off at most.
_ROUNDING: Final = Fraction(1, 10**8)


@dataclass(frozen=True)
class Plan:
    """Noise for every measured level, and the guarantee that follows.

    Attributes:
        unit: who is protected.
        accountant: how epsilon and delta follow from the noise.
        epsilon: promised with `delta`; None if only rho is promised.
        delta: likewise.
        rho: cost in zCDP, exact: the sum over levels and tables.
        levels: the measured ones, root first (only if it is noised); trivial ones are absent.
        scope: "levels" if every level that splits is measured, "leaves" if only the finest.
        across: part of the budget that was asked for to measure tables off the tree.
        tables: these tables, in the order of the levels they belong to; none although they were
            asked for if the tree has none, or if a level has a noise scale below 1.

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
    across: Fraction = Fraction(0)
    tables: tuple[TablePlan, ...] = ()

    def spending(self) -> Spending[LevelPlan]:
        """A fresh account of what has been drawn: use one for each release."""
        return Spending(self.levels, {table.depths: table for table in self.tables})

    def verify(self, tree: Levels | None = None) -> None:
        """Recompute everything: costs, their sum, epsilon and delta; with a tree, its levels.

        Raises:
            BudgetError: the plan promises more than its noise gives.
        """
        if not self.levels:
            raise BudgetError("the plan has no measured level, so it promises nothing")
        self._verify_order()
        self._verify_across()
        self._verify_costs()
        if tree is not None:
            self._verify_levels(tree)
            self._verify_tables(tree)
        self._verify_promise()

    @property
    def parts(self) -> tuple[LevelPlan, ...]:
        """All that is measured: levels, then tables."""
        return (*self.levels, *self.tables)

    @property
    def is_precise(self) -> bool:
        """Whether a level has so little noise that nothing is measured across."""
        return min(level.sigma2 for level in self.levels) < LEAST_SIGMA2

    def _verify_order(self) -> None:
        indices = [level.index for level in self.levels]
        if indices != sorted(set(indices)) or indices[0] < 0:
            raise BudgetError(f"levels must be in order and each named once, got {indices}")
        if self.scope == "leaves":
            if len(indices) != 1 or indices[0] == 0:
                raise BudgetError(f"the plan measures only the leaves, but has levels {indices}")
        elif (indices[0] == 0) == self.unit.root_is_public:
            state = "public" if self.unit.root_is_public else "not public"
            raise BudgetError(f"the total is {state} for this unit, but the plan has it otherwise")

    def _verify_across(self) -> None:
        """What can be known of the tables without the tree."""
        checked_across(self.across)
        if self.tables and (self.scope == "leaves" or not self.across):
            raise BudgetError(
                "the plan measures tables off the tree, but states no budget for them"
            )
        depths = [table.depths for table in self.tables]
        if len(set(depths)) != len(depths):
            raise BudgetError(f"every table must be named once, got {depths}")
        for table in self.tables:
            if table.index < 1 or not any(table.depths) or min(table.depths) < 0:
                raise BudgetError(f"table {table.name!r} of the plan is not a table off the tree")
        cost = sum((table.rho for table in self.tables), Fraction(0))
        if cost > self.across * self.rho * (1 + _ROUNDING):
            raise BudgetError(
                f"tables off the tree cost {float(cost):g}, more than the part {self.across} of "
                f"rho {float(self.rho):g} that the plan states for them"
            )

    def _verify_costs(self) -> None:
        for level in self.parts:
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
        total = sum((part.rho for part in self.parts), Fraction(0))
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

    def _verify_tables(self, tree: Levels) -> None:
        if not self.across:
            return
        expected = () if self.is_precise and not self.tables else tables_off(tree)
        if [table.depths for table in expected] != [table.depths for table in self.tables]:
            raise BudgetError(
                "the plan does not measure the tables off this tree: it has "
                f"{[table.depths for table in self.tables]}, the tree needs "
                f"{[table.depths for table in expected]}"
            )
        for table, planned in zip(expected, self.tables, strict=True):
            facts = table.index, table.name, table.n_nodes, self.unit.squared_sensitivity(table)
            stated = planned.index, planned.name, planned.cells, planned.squared_sensitivity
            if facts != stated:
                raise BudgetError(
                    f"table {planned.name!r} of the plan is not the one of the tree: "
                    f"index, name, cells and squared sensitivity must be {facts}"
                )

    def _verify_promise(self) -> None:
        if self.epsilon is None and self.delta is None:
            return
        if self.epsilon is None or self.delta is None:
            raise BudgetError("epsilon and delta are promised together or not at all")
        delta = checked_delta(self.delta)
        if not 0 <= self.epsilon < math.inf:
            raise BudgetError(f"epsilon must be a number of at least 0, got {self.epsilon}")
        found = privacy_curve(self.accountant, self.measured)(self.epsilon)
        if found > delta:
            raise BudgetError(
                f"the plan promises delta {delta:g} at epsilon {self.epsilon:g}, but by the "
                f"accountant {self.accountant!r} its noise gives {found:g}"
            )

    @property
    def measured(self) -> tuple[Noise, ...]:
        """The levels and tables as accounting sees them: each changes on its own."""
        return tuple(
            Noise(
                level.sigma2,
                level.squared_sensitivity,
                level.squared_sensitivity if self.unit.is_single_trip else 0,
            )
            for level in self.parts
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
        across: dict[str, Any] = {}
        if self.across:
            tables = [table.to_dict() for table in self.tables]
            across = {"across": str(self.across), "tables": tables}
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "rho": str(self.rho),
            "accountant": self.accountant,
            **self.unit.to_dict(),
            "scope": self.scope,
            "levels": [level.to_dict() for level in self.levels],
            **across,
        }

    @classmethod
    def from_dict(cls, data: Any) -> "Plan":
        """Read back what `to_dict` gives, and recompute the guarantee.

        Raises:
            BudgetError: the plan promises more than its noise gives, or is not readable.
            PrivacyError: a parameter is out of range.
        """
        whole = {"across": "0", "tables": [], **with_unit(data)}
        plan = decode(cls, whole, what="the plan", error=BudgetError)
        if plan.accountant == "auto":
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
    across: Fraction | float | str = 0,
) -> Plan:
    """Noise for every level of a tree that keeps a promise.

    Args:
        tree: what is released; its levels, not its data.
        unit: who is protected.
        epsilon: strength of the guarantee; with `delta`, the noise follows.
        delta: probability that it does not hold.
        rho: strength in zCDP, instead; with `delta`, epsilon follows, and the other way round.
        accountant: "auto" for the tightest that is valid.
        split: of the budget over measured levels: "uniform", "geometric:RATIO" (each level
            RATIO times the one above), weights in order, or weights by level name or index.
        scope: "levels" to measure every level that splits, and the root unless it is
            public; "leaves" to measure the finest level only.
        across: part of the budget for tables off the tree, which tell totals across it;
            0.08 serves most. None is measured where a level has a noise scale below 1
            without them: there is little to gain.

    Returns:
        The plan, verified.

    Raises:
        PrivacyError: a parameter is out of range, or the accountant not valid for the unit.
        BudgetError: the plan does not keep the promise.

    Privacy:
        All levels, measured with this noise, are (epsilon, delta)-differentially private
        for the unit. See docs/proofs/accounting.md.
    """
    share = checked_across(across)
    if share and checked_scope(scope) == "leaves":
        raise PrivacyError("only the leaves are measured, and nothing across; leave out across")
    measured = measured_levels(tree, unit, checked_scope(scope))
    if not measured:
        raise PrivacyError(
            "there is nothing to measure: no level of the tree has two areas and the total "
            "is public; give areas that are split at some level"
        )
    split_ = weights_of(split, measured, tree)
    budget = _Budget(unit, accountant, epsilon, delta, rho, scope, share)
    tables = tables_off(tree) if share else ()
    if not tables or budget.is_precise(measured, split_):
        plan = budget.plan(measured, split_)
    else:
        mean = sum(split_, Fraction(0)) / len(split_)
        each = [mean * weight for weight in weights(tables, len(measured), share)]
        plan = budget.plan(measured, split_, tables, each)
    plan.verify(tree)
    return plan


@dataclass(frozen=True)
class _Budget:
    """What `make_plan` is asked for, whatever is measured."""

    unit: PrivacyUnit
    accountant: str
    epsilon: Fraction | float | str | None
    delta: Fraction | float | str | None
    rho: Fraction | float | str | None
    scope: Scope
    across: Fraction

    def is_precise(self, levels: Sequence[Level], split: Sequence[Fraction]) -> bool:
        """Whether a level has so little noise by itself that nothing is measured across."""
        # Some accountants take seconds, and none asks for far less noise than zCDP does.
        rough = replace(self, accountant="zcdp").plan(levels, split)
        is_far_above = min(level.sigma2 for level in rough.levels) > 16 * LEAST_SIGMA2
        return not is_far_above and self.plan(levels, split).is_precise

    def plan(
        self,
        levels: Sequence[Level],
        split: Sequence[Fraction],
        tables: Sequence[Table] = (),
        table_split: Sequence[Fraction] = (),
    ) -> Plan:
        """Noise for some levels and tables, by their weights."""
        asked = [
            Share(weight, self.unit.squared_sensitivity(part), self.unit.n_shifts(part))
            for weight, part in zip((*split, *table_split), (*levels, *tables), strict=True)
        ]
        shares = commensurable(asked, len(levels))
        epsilon, delta = self.epsilon, self.delta
        if self.rho is None:
            epsilon, delta = _both(epsilon, delta)
            budget = {"epsilon": epsilon, "delta": delta}
            noise = noise_at(max_rho(self.accountant, **budget, shares=shares), shares)
            used = resolve(self.accountant, noise)
        else:
            noise = noise_at(checked_rho(self.rho), shares)
            used, epsilon, delta = _implied(self.accountant, noise, epsilon=epsilon, delta=delta)
        check_drawable(max(part.sigma2 for part in noise))
        return Plan(
            unit=self.unit,
            accountant=used,
            epsilon=None if epsilon is None else float(epsilon),
            delta=None if delta is None else float(delta),
            rho=total_rho(noise),
            levels=tuple(map(LevelPlan.of, levels, noise)),
            scope=self.scope,
            across=self.across,
            tables=tuple(map(TablePlan.at, tables, noise[len(levels) :])),
        )


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
    noise: Sequence[Noise],
    *,
    epsilon: Fraction | float | str | None,
    delta: Fraction | float | str | None,
) -> tuple[Accountant, float | None, float | None]:
    """What a given rho promises: the accountant, epsilon and delta."""
    used = resolve(accountant, noise)
    if epsilon is not None and delta is not None:
        raise PrivacyError("give epsilon and delta, or rho with at most one of them, not all")
    if epsilon is not None:
        at = checked_epsilon(epsilon)
        found = delta_of(used, epsilon=at, noise=noise)
        if found >= 1:
            raise PrivacyError(f"this rho promises nothing at epsilon {at:g}; give a larger one")
        return used, at, found
    if delta is not None:
        target = checked_delta(delta)
        return used, epsilon_of(used, delta=target, noise=noise), target
    return ("zcdp" if accountant == "auto" else used), None, None
