"""How much work lies below released nodes: from what is released and public parameters alone.

Which subtrees go to which executor decides which flows stand in which file, so it must not
depend on the truth.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inftda.privacy.plan import Plan
from inftda.tree import Tree, TreeLevel

#: What a true leaf costs, in draws, as far as released trips tell how many there are: it is
#: moved twice, sorted, and its flow written.
TRIP_COST = 16.0
#: Surviving nodes have this many times the noise scale on average, or more.
LEAST_SURVIVOR = 0.5


@dataclass(frozen=True)
class CostModel:
    """Estimates the work below released nodes.

    Attributes:
        tree: the public tree.
        sigma: noise scale of each measured level, by its index.
    """

    tree: Tree
    sigma: Mapping[int, float]

    @classmethod
    def of(cls, tree: Tree, plan: Plan) -> "CostModel":
        """The model for a plan."""
        return cls(tree, {level.index: level.sigma for level in plan.levels})

    def subtrees(
        self, level: TreeLevel, areas: tuple[NDArray[np.int32], ...], value: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """float64: the work below each released node, in draws; about, and never 0.

        Args:
            level: where the nodes stand.
            areas: int32 area numbers of the nodes, one array per axis.
            value: int64, their released counts.
        """
        cost, parents, possible = np.zeros(len(value)), np.ones(len(value)), np.ones(len(value))
        for deeper in levels_below(self.tree, level):
            above, possible = possible, n_descendants(level, deeper, areas)
            cost += parents * (possible / above)
            survivors = value / max(1.0, LEAST_SURVIVOR * self.sigma[deeper.index])
            parents = np.clip(survivors, 1.0, possible)
        return cost + TRIP_COST * np.minimum(value, possible)


def levels_below(tree: Tree, level: TreeLevel) -> tuple[TreeLevel, ...]:
    """Splitting levels deeper than `level`."""
    return tuple(deeper for deeper in tree.splitting_levels if deeper.index > level.index)


def n_descendants(
    level: TreeLevel, deeper: TreeLevel, areas: tuple[NDArray[np.int32], ...]
) -> NDArray[np.float64]:
    """float64: number of possible nodes of a deeper level below each node of `level`."""
    product = np.ones(len(areas[0]))
    for axis, numbers in enumerate(areas):
        start = level.axes[axis].hierarchy.descend(level.depths[axis], deeper.depths[axis])
        product *= np.diff(start)[numbers]
    return product
