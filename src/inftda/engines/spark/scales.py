"""Scales that were charged once and are used in disjoint parts of the tree.

Subtrees of one level are disjoint cells of the level's one histogram, so noising them on
different machines is the one draw of the level that the plan pays for. The driver charges
every level of the plan in the release's own account before anything is shipped; a part of
the tree then gets an account of its own, which hands out exactly the levels below the part's
top, each once, at the scales that were charged. So what is drawn below any node is what was
planned, wherever it is drawn.
"""

from dataclasses import dataclass, replace
from typing import Any

from inftda.privacy.plan import LevelPlan, Plan
from inftda.privacy.spending import Spending


@dataclass(frozen=True)
class Charged:
    """The levels of a plan, all charged. Made by `charge_all` and by nothing else."""

    plan: Plan

    def below(self, top: int) -> Spending[LevelPlan]:
        """A fresh account for one part of the tree: the levels deeper than `top`, no others."""
        levels = tuple(level for level in self.plan.levels if level.index > top)
        return replace(self.plan, levels=levels).spending()

    def whole(self) -> Spending[LevelPlan]:
        """A fresh account for the part that starts at the root, which may itself be noised."""
        return self.below(-1)


def charge_all(plan: Any, spending: Any) -> Charged:
    """Take every scale of the plan from the account of the release.

    Args:
        plan: the plan of the release.
        spending: its account; everything in it is spent afterwards.

    Raises:
        BudgetError: a level was charged before.
    """
    return Charged(
        replace(plan, levels=tuple(spending.charge(level.index) for level in plan.levels))
    )
