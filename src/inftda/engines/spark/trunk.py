"""The trunk: the first levels, divided on the driver until what is left fits the executors.

One rule covers the start and the skew: a subtree with more than one group's share of the
work is divided here, the others are left whole for the executors. So the driver goes down
everywhere until there are enough subtrees, and further where one subtree (a capital city)
holds most of the trips. The level step is the one of `inftda.mechanisms.topdown`; the truth
it needs comes from Spark as sums over nodes, of which the driver holds at most `MOST_NODES`.

Shares are judged by released counts and the public tree, never by the truth.
"""

from dataclasses import dataclass, replace
from math import ceil
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inftda.counts import Counts
from inftda.engines.spark.cost import CostModel, levels_below, n_descendants
from inftda.engines.spark.frontier import Frontier
from inftda.engines.spark.matching import Areas, Ascent, Matcher, first_leaves
from inftda.mechanisms.base import Setting
from inftda.mechanisms.topdown import Nodes, TopDown, join, release_root
from inftda.tree import Tree, TreeLevel

#: True nodes that the driver takes from Spark at once: some 20 MB.
MOST_NODES = 1 << 20


class Leaves(Protocol):
    """The truth, wherever it is."""

    def sum_up(self, within: Matcher | None, ascent: Ascent) -> pa.Table:
        """True nodes of a level: area numbers on each axis, and `n`; zeros are left out.

        Args:
            within: only leaves below these nodes are counted; None counts all.
            ascent: to the level.
        """


@dataclass(frozen=True)
class Trunk:
    """What the driver needs to divide the first levels.

    Attributes:
        model: what subtrees cost, and the public tree.
        leaves: the truth.
        mechanism: how nodes are divided.
        setting: noise for the driver's part; every level is charged at most once.
        groups: the least number of groups to aim at.
        group_cost: the most work of a group to aim at, in draws.
    """

    model: CostModel
    leaves: Leaves
    mechanism: TopDown
    setting: Setting
    groups: int
    group_cost: float

    @property
    def tree(self) -> Tree:
        """The public tree."""
        return self.model.tree

    def grow(self) -> Frontier:
        """Release the first levels; returns the subtrees that are left whole."""
        at = self.tree.levels[0]
        deepest = self._reach(at, tuple(np.zeros(1, np.int32) for _ in self.tree.axes))
        counts = self._counts(at, None, deepest)
        nodes = release_root(counts, self.setting)
        whole: list[tuple[TreeLevel, Nodes]] = []
        done = 0.0  # cost of the subtrees that are left whole
        while len(nodes.value) and levels_below(self.tree, at):
            for level in counts.levels:
                if level.level.index > deepest.index:
                    break
                at = level.level
                nodes = join(list(self.mechanism.divide(nodes, level, self.setting)))
                cost = self.model.subtrees(at, nodes.areas, nodes.value)
                is_heavy = self._is_heavy(at, nodes, cost, done)
                whole.append((at, _choose(nodes, ~is_heavy)))
                done += cost[~is_heavy].sum()
                nodes = _choose(nodes, is_heavy)
            if len(nodes.value):
                deepest = self._reach(at, nodes.areas)
                counts = self._counts(at, nodes.areas, deepest)
                found = Matcher(at, counts.roots).find(nodes.areas)
                nodes = replace(nodes, truth=found)
        whole.append((at, nodes))
        return self._frontier(whole, done)

    def _frontier(self, whole: list[tuple[TreeLevel, Nodes]], cost: float) -> Frontier:
        """Only what is released goes on: the places among the true nodes stay behind."""
        parts = [(at, nodes.areas, nodes.value) for at, nodes in whole]
        groups = max(self.groups, ceil(cost / self.group_cost))
        return Frontier.of(self.model, parts, groups=groups)

    def _is_heavy(
        self, at: TreeLevel, nodes: Nodes, cost: NDArray[np.float64], done: float
    ) -> NDArray[np.bool_]:
        """Which nodes to divide here: too large for a group, and within the driver's means."""
        below = levels_below(self.tree, at)
        if not below or not len(cost):
            return np.zeros(len(cost), bool)
        share = (done + cost.sum()) / self.groups
        heavy = np.flatnonzero(cost > min(share, self.group_cost))
        heavy = heavy[np.argsort(-cost[heavy], kind="stable")]
        areas = tuple(numbers[heavy] for numbers in nodes.areas)
        fits = np.cumsum(n_descendants(at, below[0], areas)) <= MOST_NODES
        is_heavy = np.zeros(len(cost), bool)
        is_heavy[heavy[fits]] = True
        return is_heavy

    def _reach(self, at: TreeLevel, areas: Areas) -> TreeLevel:
        """The deepest level with few enough nodes below the given ones to be taken at once."""
        deepest = at
        for level in levels_below(self.tree, at):
            if deepest is not at and n_descendants(at, level, areas).sum() > MOST_NODES:
                break
            deepest = level
        return deepest

    def _counts(self, at: TreeLevel, areas: Areas | None, deepest: TreeLevel) -> Counts:
        """The truth from level `at` to `deepest`, below the given nodes or everywhere.

        A node of `deepest` is stood in for by its first leaf: levels further down are not true.
        """
        within = None if areas is None else Matcher(at, areas)
        sums = self.leaves.sum_up(within, Ascent(deepest))
        *numbers, n = (column.to_numpy() for column in sums.columns)
        true_nodes = tuple(column.astype(np.int32) for column in numbers)
        return Counts.from_leaves(
            self.tree, first_leaves(deepest, true_nodes), n.astype(np.int64), top=at.index
        )


def _choose(nodes: Nodes, where: NDArray[np.bool_]) -> Nodes:
    return Nodes(
        tuple(numbers[where] for numbers in nodes.areas), nodes.value[where], nodes.truth[where]
    )
