"""How much work lies below released nodes: from what is released and the public tree alone.

Which subtrees go to which executor decides which flows stand in which file, so it must not
depend on the truth.
"""

import numpy as np
from numpy.typing import NDArray

from inftda.tree import Tree, TreeLevel

#: What moving, sorting and writing one leaf costs, in draws.
LEAF_COST = 8.0


def subtree_cost(
    tree: Tree,
    level: TreeLevel,
    areas: tuple[NDArray[np.int32], ...],
    value: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Draws below each released node, about: no more nodes can survive than there are trips.

    Args:
        tree: the public tree.
        level: where the nodes stand.
        areas: int32 area numbers of the nodes, one array per axis.
        value: int64, their released counts.

    Returns:
        float64, one number a node, in draws; leaves cost what writing them does.
    """
    cost = np.zeros(len(value))
    parents = np.ones(len(value))
    for deeper in levels_below(tree, level):
        children = n_descendants(level, deeper, areas)
        cost += np.minimum(value, parents) * (children / parents)
        parents = children
    cost += LEAF_COST * np.minimum(value, parents)
    return cost


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
