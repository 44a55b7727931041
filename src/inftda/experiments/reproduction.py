"""How the published figures were made, for comparison only. NOT PRIVATE AS STATED.

The code behind the paper divides its budget over twice the number of levels, so its
top-down mechanisms spend half of it; and it ran the stability histogram with an l1
sensitivity of sqrt(2) instead of 2, which costs 1.41 epsilon. These settings live here,
where no release can reach them: they make a `Spending`, never a plan with a promise.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import floor, log, sqrt

from inftda.errors import InftdaError
from inftda.mechanisms.base import Mechanism
from inftda.mechanisms.stability_histogram import StabilityHistogram
from inftda.mechanisms.topdown import TopDown
from inftda.privacy.accounting import max_rho
from inftda.privacy.levels import Share
from inftda.privacy.plan import Spending, make_plan
from inftda.privacy.stability import StabilityLevel, StabilityPlan, StabilitySpending
from inftda.privacy.unit import PrivacyUnit
from inftda.tree import Tree


@dataclass(frozen=True)
class Published:
    """The published settings for one tree and strength."""

    tree: Tree
    epsilon: float
    delta: float

    def spending(self, mechanism: Mechanism) -> Spending | StabilitySpending:
        """Scales as the paper's code took them.

        Raises:
            InftdaError: the paper has no such mechanism.
        """
        if isinstance(mechanism, StabilityHistogram):
            return self._stability()
        unit = PrivacyUnit()
        whole = max_rho(
            "paper", epsilon=self.epsilon, delta=self.delta, parts=[Share(Fraction(1), 2, 2)]
        )
        if isinstance(mechanism, TopDown):
            return make_plan(self.tree, unit, rho=whole / 2).spending()
        if mechanism.name.startswith("vanilla-gauss"):
            return make_plan(self.tree, unit, rho=whole, scope="leaves").spending()
        raise InftdaError(f"nothing was published for the mechanism {mechanism.name!r}")

    def _stability(self) -> StabilitySpending:
        sensitivity = sqrt(2)
        leaves = self.tree.levels[-1]
        level = StabilityLevel(
            leaves.index,
            leaves.name,
            leaves.n_nodes,
            Fraction(sensitivity / self.epsilon),
            floor(1 + sensitivity * log(2 / self.delta) / self.epsilon),
        )
        plan = StabilityPlan(PrivacyUnit(), self.epsilon, self.delta, (level,))
        return plan.spending()
