"""Find the smallest budget for a target accuracy. Needs no data.

The target of a level is its guaranteed error: with a stated probability, no number of any level
has a larger one. It is several times the error of most numbers, so the target can also be the
typical error: the bound that 95 % of the noise of the level does not exceed. Errors of published
numbers are about as large, or half more at the finest level of a sparse table; `inftda preview`
simulates them.
The target of marginal totals is the half width of the 95 % interval of each measured total.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Final, Literal

from inftda.errors import InftdaError, PrivacyError
from inftda.privacy.bounds import guaranteed_errors
from inftda.privacy.noise_plan import Plan
from inftda.publication.reliability import axis_and_level, planned_totals, totals_name
from inftda.tree import Tree

#: Candidates of the search: budgets of three digits, far below and above those in use.
_BUDGETS: Final = tuple(
    float(f"{digits}e{power}") for power, digits in product(range(-5, 0), range(100, 1000))
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """An accuracy that was asked for: how far off numbers of a level, or totals, may be."""

    name: str
    most: int
    found: int
    kind: Literal["total", "typical", "guaranteed"]

    def describe(self, held: str) -> str:
        """State target and error; `held` is the probability of guaranteed errors."""
        kept = {
            "total": f"each of these totals is measured to within {self.found:,}, with "
            "probability 95 %",
            "typical": f"95 % of the noise is within {self.found:,}; nothing is guaranteed",
            "guaranteed": f"no number is off by more than {self.found:,}, guaranteed with "
            f"probability {held}",
        }
        return f"{self.name} within {self.most:,}: {kept[self.kind]}"


def least_budget(
    tree: Tree, planned: Callable[[float], Plan], want: Mapping[str, int], beta: float | None
) -> Plan:
    """The plan with the smallest budget, of three digits, whose errors are as small as wanted.

    Args:
        tree: of the release.
        planned: from a budget, epsilon or rho, to its plan.
        want: how far off numbers may be, by name of the level or of totals.
        beta: probability that a guaranteed error is exceeded; None for typical errors.

    Raises:
        InftdaError: there is no such level, or no budget is enough.
    """
    has_totals = not want.keys() <= {level.name for level in tree.levels}

    def is_enough(budget: float) -> bool:
        try:
            plan = planned(budget)
        except PrivacyError:
            planned(_BUDGETS[-1])  # if it raises the error as well, the budget is not the reason
            return False  # the noise would be too wide to be drawn
        # Where noise is very small totals are not measured: the search goes back from there.
        if has_totals and _has_none(tree, plan):
            return True
        return all(one.found <= one.most for one in kept(tree, plan, want, beta))

    enough = bisect_left(_BUDGETS, True, key=is_enough)
    best = planned(_BUDGETS[enough]) if enough < len(_BUDGETS) else None
    if best is None or (has_totals and _has_none(tree, best)):
        raise InftdaError(
            "no budget gives the errors that are wanted, at least none with which totals are "
            "measured; allow larger errors in `want=`"
        )
    return best


def _has_none(tree: Tree, plan: Plan) -> bool:
    """Whether totals are not measured although a part of the budget is for them."""
    return bool(tree.cross_tables and plan.cross_table_share and not plan.tables)


def kept(tree: Tree, plan: Plan, want: Mapping[str, int], beta: float | None) -> list[Wanted]:
    """Compare the errors of a plan with the targets; arguments as `least_budget` takes them.

    Raises:
        InftdaError: there is no such level, or its totals are not measured.
    """
    if not want:
        return []
    errors = typical_errors(tree, plan) if beta is None else guaranteed_errors(tree, plan, beta)
    levels = {level.name: errors[level.index] for level in tree.levels}
    totals = {
        totals_name(*axis_and_level(table)): noise.half_width()
        for table, noise in planned_totals(tree, plan)
    }
    for name in want:
        if name not in levels and name not in totals:
            known = ", ".join(map(repr, [*levels, *totals]))
            raise InftdaError(
                f"`want=` names {name!r}, which is no level and no marginal totals that are "
                f"measured; there are {known}"
            )
    return [
        Wanted(name, most, totals[name], "total")
        if name in totals
        else Wanted(name, most, levels[name], "guaranteed" if beta else "typical")
        for name, most in want.items()
    ]


def typical_errors(tree: Tree, plan: Plan) -> dict[int, int]:
    """Bound on 95 % of the noise of each level; without noise, that of the level above."""
    noise = {level.index: level.noise.half_width() for level in plan.levels}
    errors, last = {}, 0
    for level in tree.levels:
        errors[level.index] = last = noise.get(level.index, last)
    return errors
