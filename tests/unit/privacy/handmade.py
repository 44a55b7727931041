"""Tiny trees built by hand, with every contribution a person can make written out."""

import itertools
from collections import Counter
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class HandmadeLevel:
    """A level given by the node each leaf lies under."""

    index: int
    name: str
    node_of_leaf: tuple[int, ...]
    parent_of_leaf: tuple[int, ...]

    @property
    def n_nodes(self):
        return len(set(self.node_of_leaf))

    @property
    def max_children(self):
        pairs = set(zip(self.parent_of_leaf, self.node_of_leaf, strict=True))
        return max(Counter(parent for parent, _ in pairs).values())

    @property
    def is_trivial(self):
        return self.index > 0 and self.max_children == 1

    def leaf_capacities(self, only=None):
        assert only is None
        sizes = Counter(Counter(self.node_of_leaf).values())
        return iter(sorted(sizes.items(), reverse=True))


@dataclass(frozen=True)
class HandmadeTree:
    """Levels from the root to the leaves."""

    levels: tuple[HandmadeLevel, ...]

    @classmethod
    def of(cls, *rows):
        """From, for each level below the root, the node every leaf lies under."""
        rows = [(0,) * len(rows[0]), *(tuple(row) for row in rows)]
        above = [rows[0], *rows]
        return cls(
            tuple(
                HandmadeLevel(index, f"level {index}", row, parents)
                for index, (row, parents) in enumerate(zip(rows, above, strict=False))
            )
        )

    @property
    def n_leaves(self):
        return len(self.levels[-1].node_of_leaf)

    def counts(self, contributions):
        """Counts of every level for each row of leaf counts."""
        found = []
        for level in self.levels:
            nodes = sorted(set(level.node_of_leaf))
            under = np.array([[node == n for n in nodes] for node in level.node_of_leaf])
            found.append(contributions @ under)
        return found


def contributions(tree, unit):
    """Leaf counts of everything one person may contribute, one row each."""
    least = unit.trips if unit.exactly else 0
    choose = itertools.combinations if unit.distinct else itertools.combinations_with_replacement
    rows = []
    for size in range(least, unit.trips + 1):
        for chosen in choose(range(tree.n_leaves), size):
            row = [0] * tree.n_leaves
            for leaf in chosen:
                row[leaf] += 1
            rows.append(row)
    return np.array(rows, dtype=np.int64)


def changes(tree, unit):
    """Difference of two neighbouring tables at every level, for all pairs of neighbours.

    What the other people contribute cancels, so the pairs of one person's contributions
    are all there is.
    """
    own = contributions(tree, unit)
    other = own if unit.is_substitute else np.zeros((1, tree.n_leaves), np.int64)
    pairs = (own[:, None, :] - other[None, :, :]).reshape(-1, tree.n_leaves)
    if not unit.is_substitute:
        pairs = np.concatenate([pairs, -pairs])
    return tree.counts(pairs)


#: Two areas on either side: destination, then origin within destination.
DESTINATION_TREE = HandmadeTree.of((0, 0, 1, 1), (0, 1, 2, 3))
#: Halves of halves of halves: every node has a twin of the same size.
BINARY_TREE = HandmadeTree.of(
    (0, 0, 0, 0, 1, 1, 1, 1), (0, 0, 1, 1, 2, 2, 3, 3), (0, 1, 2, 3, 4, 5, 6, 7)
)
#: Nodes of all sizes, and a level that splits nothing.
UNEVEN_TREE = HandmadeTree.of((0, 1, 1, 1, 2, 2), (0, 1, 1, 1, 2, 2), (0, 1, 2, 3, 4, 5))
#: One large node and one leaf beside it.
LOPSIDED_TREE = HandmadeTree.of((0, 0, 0, 1), (0, 1, 2, 3))
