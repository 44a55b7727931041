"""Divide the parents of a step into batches and parts; the release does not depend on these."""

from typing import Final

import numpy as np

from inftda.mechanism.data import Step
from inftda.reading.truth import sort_nodes
from inftda.tree import Cells, Ints, TreeLevel
from inftda.tree.cells import differ
from inftda.util.threads import ThreadPool

#: Largest number of children of a batch, unless a parent has more: enough to make the overhead of a
#: batch small, few enough to keep the buffers of a thread small.
PART_CHILDREN: Final = 1 << 19


def in_group_order(level: TreeLevel, parents: Cells, pool: ThreadPool) -> Cells:
    """Sort cells into the group order of the parents of a level."""
    numbering = level.numbering
    key, value = sort_nodes(numbering.codes, parents, numbering.bits, pool)
    return Cells(level.areas_of(key), value)


def group_offsets(level: TreeLevel, parents: Cells) -> Ints:
    """int64[groups + 1]: slices of parents in group order that share the area to be divided."""
    return np.append(np.flatnonzero(differ([parents.areas[level.axis]])), len(parents.value))


def n_children(level: TreeLevel, parents: Cells) -> Ints:
    """int64: number of children of each parent."""
    return level.n_children[parents.areas[level.axis]]


def batches(step: Step, parents: Cells) -> list[slice]:
    """Split parents in group order into batches that can be divided independently.

    Where cross tables are measured, a batch consists of whole groups. Sums have to agree with hard
    totals in all groups of a batch, or in none.
    """
    if not step.cross:
        return parts_of(step.level, parents)
    offsets = group_offsets(step.level, parents)
    is_hard, ends = np.diff(offsets) >= step.hard_from, offsets[1:]
    walls = [*ends[:-1][is_hard[1:] != is_hard[:-1]].tolist(), len(parents.value)]
    found, first = [], 0
    for wall in walls:
        some = parents.take(slice(first, wall))
        inside = ends[(ends > first) & (ends <= wall)] - first
        found += [
            slice(part.start + first, part.stop + first)
            for part in parts_of(step.level, some, inside)
        ]
        first = wall
    return found


def small_parts(level: TreeLevel, batch: Cells) -> list[slice]:
    """Split the parents of a batch into parts with few enough children to be measured at once."""
    is_large = int(n_children(level, batch).sum()) > PART_CHILDREN
    return parts_of(level, batch) if is_large else [slice(0, len(batch.value))]


def parts_of(level: TreeLevel, parents: Cells, ends: Ints | None = None) -> list[slice]:
    """Split parents into parts of decreasing work.

    A part has a quarter of the remaining work, within limits: large parts first, small ones last,
    so that no core waits long for another.

    Args:
        level: the level of the children.
        parents: in group order.
        ends: int64, ascending, where a part may end; anywhere by default.
    """
    n = len(parents.value)
    ends = np.arange(1, n + 1) if ends is None else ends
    done = np.zeros(n + 1, np.int64)
    np.cumsum(n_children(level, parents), out=done[1:])
    work, parts, first, at = done[ends], [], 0, 0
    while first < n:
        left = int(done[-1] - done[first])
        goal = int(done[first]) + min(PART_CHILDREN, max(PART_CHILDREN // 8, left // 4))
        # The last end that is not beyond the goal, or the next one.
        at = max(at, int(np.searchsorted(work, goal, side="right")) - 1)
        parts.append(slice(first, int(ends[at])))
        first, at = int(ends[at]), at + 1
    return parts
