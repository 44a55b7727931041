"""InfTDA: noise and integer optimisation, level by level from the root (paper, section 4).

The loop over the levels; what is done to one level is `inftda.mechanisms.step`, and where it is
done is the engine's business. The work is the number of children of surviving parents.

Privacy:
    Level l is the discrete Gaussian mechanism on all its nodes at the scale the plan
    states; nodes below a dropped parent, and only children, are not drawn because the
    release does not depend on them (post-processing). See docs/privacy-guarantee.md.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from inftda.mechanisms.base import AnyNodes, AnyTruth, Setting
from inftda.mechanisms.description import TOP_DOWN, Description
from inftda.mechanisms.step import ITEM_CHILDREN, LevelStep
from inftda.optimize.segments import Optimizer, optimize_intopt
from inftda.privacy.plan import Plan, make_plan
from inftda.privacy.unit import PrivacyUnit
from inftda.tree import Tree, TreeLevel


@dataclass(frozen=True)
class TopDown:
    """The top-down loop with one of the integer optimisers.

    Attributes:
        name: of the mechanism.
        objective: name of the optimiser.
        optimize: the optimiser, for many parents at once.
        item_children: children in an item of work; a slow optimiser wants few.
        description: what the mechanism states about itself.
    """

    name: str = "inftda"
    objective: str = "intopt"
    optimize: Optimizer = optimize_intopt
    item_children: int = ITEM_CHILDREN
    description: Description = TOP_DOWN

    @property
    def options(self) -> Mapping[str, Any]:
        """Which optimiser is used."""
        return {"objective": self.objective}

    def plan(self, tree: Tree, unit: PrivacyUnit, **budget: Any) -> Plan:
        """Every level that splits is measured, and the root where the unit needs it."""
        return make_plan(tree, unit, **budget)

    def run(self, truth: AnyTruth, setting: Setting[AnyTruth, AnyNodes]) -> Iterator[AnyNodes]:
        """Released leaves."""
        nodes = setting.engine.root(truth, release_total(truth.total, setting))
        for level in truth.tree.splitting_levels:
            step = self.step_to(level, setting)
            nodes = setting.engine.step(nodes, truth, step, setting.progress)
        setting.spending.finish()
        yield nodes

    def step_to(self, level: TreeLevel, setting: Setting[AnyTruth, AnyNodes]) -> LevelStep:
        """The step to a level, charged."""
        return LevelStep(
            level=level,
            sampler=setting.make_sampler(setting.spending.charge(level.index).sigma2),
            optimize=self.optimize,
            source=setting.source,
            item_children=self.item_children,
        )


#: The mechanism of this package.
INFTDA: Final = TopDown()


def release_total(total: int, setting: Setting[AnyTruth, AnyNodes]) -> int:
    """The root: public where the unit makes it so, otherwise noised and clamped at 0."""
    if not setting.spending.is_planned(0):
        return total
    noise = np.empty(1, np.int64)
    sampler = setting.make_sampler(setting.spending.charge(0).sigma2)
    sampler.fill(noise, setting.source.stream(0, 0))
    return max(total + int(noise[0]), 0)
