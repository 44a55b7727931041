"""The truth beside the release: at every level, each cell that is not zero in both.

Both tables are children by parent in one order, so they are merged by parent and index of the
child. A cell that is missing on one side is 0 there. Time and memory follow the number of non-zero
cells.

What comes out holds the truth: it must never get into a release.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inftda.errors import TreeError
from inftda.kernels import kernel
from inftda.tree import TreeLevel
from inftda.truth import Children, Truth


@dataclass(frozen=True)
class PairedLevel:
    """Cells of one level that are in the truth or in the release.

    Attributes:
        level: the level of the tree.
        true: int64, true count of each cell.
        released: int64, released count of each cell.
    """

    level: TreeLevel
    true: NDArray[np.int64]
    released: NDArray[np.int64]


def pair_levels(truth: Truth, released: Truth) -> Iterator[PairedLevel]:
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
    values = np.array([truth.total]), np.array([released.total])
    for level in tree.levels:
        if level.index in splitting:
            values = _merge(*splitting[level.index])
        yield PairedLevel(level, *values)


def _merge(true: Children, released: Children) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    # Large enough for all; memory pages that are never written to cost nothing.
    value = np.empty((2, len(true.count) + len(released.count)), np.int64)
    n = merge_children_kernel(true[1:], released[1:], value)
    return value[0, :n], value[1, :n]


@kernel
def merge_children_kernel(true: Any, released: Any, value: NDArray[np.int64]) -> int:
    """Children of both sides, paired by their parent and their index under it.

    Args:
        true: key, offsets, ordinal and count of the true children, as in `Children`.
        released: those of the released ones.
        value: int64[2, children of both], written: the two counts of each cell.

    Returns:
        Number of cells.
    """
    t_key, t_offsets, t_ordinal, t_count = true
    r_key, r_offsets, r_ordinal, r_count = released
    n = t_parent = r_parent = 0
    while t_parent < t_key.size or r_parent < r_key.size:
        t = t_end = r = r_end = 0
        is_true = r_parent == r_key.size or (
            t_parent < t_key.size and t_key[t_parent] <= r_key[r_parent]
        )
        is_released = t_parent == t_key.size or (
            r_parent < r_key.size and r_key[r_parent] <= t_key[t_parent]
        )
        if is_true:
            t, t_end = t_offsets[t_parent], t_offsets[t_parent + 1]
            t_parent += 1
        if is_released:
            r, r_end = r_offsets[r_parent], r_offsets[r_parent + 1]
            r_parent += 1
        while t < t_end or r < r_end:
            in_truth = t < t_end and (r == r_end or t_ordinal[t] <= r_ordinal[r])
            in_release = r < r_end and (t == t_end or r_ordinal[r] <= t_ordinal[t])
            value[0, n] = t_count[t] if in_truth else 0
            value[1, n] = r_count[r] if in_release else 0
            t += in_truth
            r += in_release
            n += 1
    return n
