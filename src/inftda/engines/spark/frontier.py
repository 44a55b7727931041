"""Released subtrees that wait to be refined, in tree order, cut into groups of equal work.

The subtrees stand at different levels: where many trips are, the driver has gone deeper.
Everything here is released or public.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from inftda.engines.spark.cost import CostModel
from inftda.engines.spark.matching import Areas, Ascent, Matcher, first_leaves
from inftda.tree import Tree, TreeLevel


@dataclass(frozen=True)
class Frontier:
    """Disjoint released subtrees, in tree order.

    Attributes:
        tree: the public tree.
        level: int32, index of the tree level that each subtree's root stands at.
        areas: int32 area numbers at that level, one array per axis.
        value: int64 released counts, positive.
        group_start: int64[groups + 1], subtrees of group g are group_start[g]..group_start[g+1].
    """

    tree: Tree
    level: NDArray[np.int32]
    areas: Areas
    value: NDArray[np.int64]
    group_start: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        model: CostModel,
        parts: Sequence[tuple[TreeLevel, Areas, NDArray[np.int64]]],
        *,
        groups: int,
    ) -> "Frontier":
        """Put subtrees of several levels in tree order and cut them into groups.

        Args:
            model: what subtrees cost.
            parts: level, areas and released counts of the subtrees of each level.
            groups: the most groups; each has at least one subtree.
        """
        tree = model.tree
        level = np.concatenate([np.full(len(value), at.index, np.int32) for at, _, value in parts])
        n_axes = range(len(tree.axes))
        areas = tuple(np.concatenate([numbers[axis] for _, numbers, _ in parts]) for axis in n_axes)
        value = np.concatenate([value for _, _, value in parts])
        cost = np.concatenate([model.subtrees(*part) for part in parts])
        leaves = [first_leaves(at, numbers) for at, numbers, _ in parts]
        order = _tree_order(
            tree, tuple(np.concatenate([leaf[axis] for leaf in leaves]) for axis in n_axes)
        )
        return cls(
            tree,
            level[order],
            tuple(numbers[order] for numbers in areas),
            value[order],
            _cut(cost[order], groups),
        )

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.group_start) - 1

    @property
    def total(self) -> int:
        """Sum of the released counts."""
        return int(self.value.sum())

    def group_of(self, node: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64: group of each subtree by its place."""
        return np.searchsorted(self.group_start, node, side="right") - 1

    def find(self, leaves: Areas) -> NDArray[np.int64]:
        """int64: place of the subtree that each leaf lies in, -1 if it lies in none."""
        found = np.full(len(leaves[0]), -1, np.int64)
        for places, matcher in self._matchers:
            here = matcher.find_leaves(leaves)
            np.copyto(found, places[here], where=here >= 0)
        return found

    @cached_property
    def _matchers(self) -> list[tuple[NDArray[np.int64], Matcher]]:
        """For each level: places of its subtrees, and what finds them."""
        matchers = []
        for index in np.unique(self.level):
            places = np.flatnonzero(self.level == index)
            nodes = tuple(numbers[places] for numbers in self.areas)
            matchers.append((places, Matcher(self.tree.levels[index], nodes)))
        return matchers


def _tree_order(tree: Tree, leaves: Areas) -> NDArray[np.intp]:
    """Order of leaves by their refinement path."""
    path = [Ascent(level)(leaves)[level.axis] for level in tree.splitting_levels]
    return np.lexsort(path[::-1]) if path else np.arange(len(leaves[0]))


def _cut(cost: NDArray[np.float64], groups: int) -> NDArray[np.int64]:
    """Where each of at most so many groups of about equal cost starts; none is empty."""
    before = np.concatenate([[0.0], np.cumsum(cost)])
    middle = (before[:-1] + before[1:]) / 2
    # A subtree belongs to the group that its middle falls into.
    group = np.minimum((middle * (groups / max(before[-1], 1.0))).astype(np.int64), groups - 1)
    return np.append(np.flatnonzero(np.diff(group, prepend=-1)), len(cost)).astype(np.int64)
