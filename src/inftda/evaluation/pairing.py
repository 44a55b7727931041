"""The truth beside the release: at every level, each cell that is not zero in both.

Both tables are non-zero runs in tree order, so two children lists under one parent are merged
by the index of the child, from the root down (the paper's section 3 has the tree). A cell that
is missing on one side is 0 there. Time and memory follow the number of non-zero cells.

What comes out holds the truth: it must never get into a release.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inftda.counts import Counts, LevelCounts
from inftda.errors import TreeError
from inftda.kernels import kernel
from inftda.tree import TreeLevel

#: No such node on this side.
MISSING = -1


@dataclass(frozen=True)
class PairedLevel:
    """Cells of one level that are in the truth or in the release, in tree order.

    Attributes:
        level: the level of the tree.
        true: int64, true count of each cell.
        released: int64, released count of each cell.
    """

    level: TreeLevel
    true: NDArray[np.int64]
    released: NDArray[np.int64]


def pair_levels(truth: Counts, released: Counts) -> Iterator[PairedLevel]:
    """Every level of the tree from the root to the leaves, one at a time.

    A level that splits nothing has the cells of the level above.

    Raises:
        TreeError: the two are not counts of the same tree.
    """
    tree = truth.tree
    if released.tree != tree:
        raise TreeError("truth and release must be counts of the same tree")
    splitting = {
        true.level.index: (true, made)
        for true, made in zip(truth.levels, released.levels, strict=True)
    }
    node = (_roots(truth), _roots(released))
    values = (np.array([truth.total]), np.array([released.total]))
    for level in tree.levels:
        if level.index in splitting:
            node, values = _merge(node, *splitting[level.index])
        yield PairedLevel(level, *values)


def _roots(counts: Counts) -> NDArray[np.int64]:
    return np.array([0 if counts.n_roots else MISSING])


_Sides = tuple[NDArray[np.int64], NDArray[np.int64]]


def _merge(parent: _Sides, true: LevelCounts, released: LevelCounts) -> tuple[_Sides, _Sides]:
    room = len(true.count) + len(released.count)
    # Large enough for all; memory pages that are never written to cost nothing.
    node, value = np.empty((2, room), np.int64), np.empty((2, room), np.int64)
    n = merge_children_kernel(parent, _runs(true), _runs(released), node, value)
    return (node[0, :n], node[1, :n]), (value[0, :n], value[1, :n])


_Runs = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]


def _runs(level: LevelCounts) -> _Runs:
    return level.offsets, level.ordinal, level.count


@kernel
def merge_children_kernel(
    parent: _Sides,
    true: _Runs,
    released: _Runs,
    node: NDArray[np.int64],
    value: NDArray[np.int64],
) -> int:
    """Children of paired parents, paired by their index under the parent.

    Args:
        parent: two int64[n]: the parent's index in the truth and in the release, or -1.
        true: offsets, ordinal and count of the true children, as in `LevelCounts`.
        released: likewise of the released ones.
        node: int64[2, room], written: index of each cell in the truth and in the release, or -1.
        value: int64[2, room], written: its counts; `room` is the number of children of both.

    Returns:
        Number of cells.
    """
    t_offsets, t_ordinal, t_count = true
    r_offsets, r_ordinal, r_count = released
    n = 0
    for i in range(parent[0].size):
        t_parent, r_parent = parent[0][i], parent[1][i]
        t, t_end, r, r_end = 0, 0, 0, 0
        if t_parent >= 0:
            t, t_end = t_offsets[t_parent], t_offsets[t_parent + 1]
        if r_parent >= 0:
            r, r_end = r_offsets[r_parent], r_offsets[r_parent + 1]
        while t < t_end or r < r_end:
            in_truth = t < t_end and (r == r_end or t_ordinal[t] <= r_ordinal[r])
            in_release = r < r_end and (t == t_end or r_ordinal[r] <= t_ordinal[t])
            node[0, n], value[0, n] = -1, 0
            node[1, n], value[1, n] = -1, 0
            if in_truth:
                node[0, n], value[0, n] = t, t_count[t]
            if in_release:
                node[1, n], value[1, n] = r, r_count[r]
            t += in_truth
            r += in_release
            n += 1
    return n
