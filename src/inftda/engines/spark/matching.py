"""From leaves up to their nodes, and finding nodes by their area numbers, many at a time."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from inftda.tree import TreeLevel

Areas = tuple[NDArray[np.int32], ...]


class Ascent:
    """From leaves to the nodes of one level that they lie below."""

    def __init__(self, level: TreeLevel) -> None:
        self.level = level

    def __call__(self, leaves: Areas) -> Areas:
        """Area numbers at the level, from int32 numbers of finest areas, one array per axis."""
        return tuple(table[numbers] for table, numbers in zip(self._tables, leaves, strict=True))

    @cached_property
    def _tables(self) -> list[NDArray[np.int32]]:
        """For each axis, the area at the level of every finest area; made where it is used."""
        return [
            axis.hierarchy.ancestor(axis.hierarchy.depth, depth)
            for axis, depth in zip(self.level.axes, self.level.depths, strict=True)
        ]


class Matcher:
    """Finds nodes of one level among a given set of different nodes.

    Axis by axis, what is known so far of a node is one number below the size of the set, so
    that number times the number of areas stays far below 2^63, whatever the size of the tree.
    """

    def __init__(self, level: TreeLevel, nodes: Areas) -> None:
        self._ascend = Ascent(level)
        self._sizes = [
            axis.hierarchy.n_areas(depth)
            for axis, depth in zip(level.axes, level.depths, strict=True)
        ]
        self._known: list[NDArray[np.int64]] = []
        place = np.zeros(len(nodes[0]), np.int64)
        for size, numbers in zip(self._sizes, nodes, strict=True):
            key = place * size + numbers
            known, place = np.unique(key, return_inverse=True)
            self._known.append(known)
        self._node = np.empty(len(place), np.int64)
        self._node[place] = np.arange(len(place))

    def find(self, areas: Areas) -> NDArray[np.int64]:
        """int64: place of each node in the set, -1 if it is not there.

        Args:
            areas: int32 area numbers at the level of the set, one array per axis.
        """
        n = len(areas[0])
        if not len(self._node):
            return np.full(n, -1, np.int64)
        place = np.zeros(n, np.int64)
        is_there = np.ones(n, bool)
        for size, known, numbers in zip(self._sizes, self._known, areas, strict=True):
            key = place * size + numbers
            place = np.minimum(np.searchsorted(known, key), len(known) - 1)
            is_there &= known[place] == key
        return np.where(is_there, self._node[place], -1)

    def find_leaves(self, leaves: Areas) -> NDArray[np.int64]:
        """int64: place of the node that each leaf lies below, -1 if it is not there.

        Args:
            leaves: int32 numbers of finest areas, one array per axis.
        """
        return self.find(self._ascend(leaves))


def first_leaves(level: TreeLevel, nodes: Areas) -> Areas:
    """Numbers of the finest areas of the first leaf below each node of `level`."""
    return tuple(
        axis.hierarchy.descend(depth, axis.hierarchy.depth)[numbers]
        for axis, depth, numbers in zip(level.axes, level.depths, nodes, strict=True)
    )
