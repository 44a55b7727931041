"""Marginal totals: one number for each area.

A total has two values: the sum of the listed flows, and the measurement. The published number
weighs both by their variances. The variance of the measurement is public. That of the sum is
estimated from the differences of the two, in classes of size, because sums of many small flows that
were lost are far too small.

Then totals are made to add up: going down the levels of an axis, totals of the areas inside an area
are moved in proportion to their variances until their sum is the total of that area.

This is post-processing of the release.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from inftda.errors import ReleaseError
from inftda.publication.manifest import DAMAGED, MEASUREMENTS_FILE
from inftda.publication.measured import Floats, NoisyTable
from inftda.publication.query import FLOW, LISTED
from inftda.tree import Tree
from inftda.tree.groupings import Grouping
from inftda.util.tabular import as_arrow, repeated

Numbers = NDArray[np.int64]

#: Largest number of classes of size, and smallest number of areas of a class.
_MOST_CLASSES: Final = 8
_LEAST_AREAS: Final = 30
#: Smallest variance of a sum, as a part of that of the measurement: flows are fitted to the
#: measurement, so the differences understate the variance.
_LEAST_VARIANCE: Final = 0.1


class AreaTotals(NamedTuple):
    """Totals of all areas of one level of an axis.

    Attributes:
        flow: the published totals.
        listed: sums of the listed flows.
        sigma: standard deviation of the noise of their measurement; None for a level that was not
            measured, whose totals are sums of flows.
    """

    flow: Numbers
    listed: Numbers
    sigma: float | None


class _Noisy(NamedTuple):
    """Noisy total of each area of a level, and the variance of its noise."""

    value: Numbers
    variance: Floats


def totals_by_level(
    tree: Tree, number: int, listed: Numbers, measured: Mapping[int, NoisyTable]
) -> dict[int, AreaTotals]:
    """Compute the totals of an axis for all of its levels whose totals are no level of the tree.

    Args:
        tree: the tree.
        number: number of the axis.
        listed: int64[finest areas], sums of the listed flows.
        measured: noisy totals by level, for all levels that split an area or for the finest of them
            only. If it is empty, there are no totals besides sums of flows.
    """
    hierarchy, found = tree.axes[number].hierarchy, dict[int, AreaTotals]()
    first = _first_cross_table(tree, number) if measured else hierarchy.depth + 1
    best = _best_measurements(tree, number, measured)
    above = hierarchy.sum_up(listed, first - 1)
    for depth in range(first, hierarchy.depth + 1):
        if hierarchy.splits(depth):
            sums, offsets = hierarchy.sum_up(listed, depth), hierarchy.child_offsets(depth - 1)
            flow = sums
            if depth in measured:
                guess, variance = _weighed(sums, *best[depth])
                flow = _divided(above, offsets, guess, variance)
            sigma = measured[depth].noise.sigma if depth in measured else None
            found[depth] = AreaTotals(flow, sums, sigma)
        else:  # each area is the same as its parent
            found[depth] = found[depth - 1]
        above = found[depth].flow
    return found


def _first_cross_table(tree: Tree, number: int) -> int:
    """The coarsest level of an axis whose totals are no level of the tree."""
    depth = tree.axes[number].hierarchy.depth
    for one in range(1, depth + 1):
        if tree.coarsest(tree.one_way(number, one)) not in tree.on_tree:
            return one
    return depth + 1


def _best_measurements(
    tree: Tree, number: int, measured: Mapping[int, NoisyTable]
) -> dict[int, _Noisy]:
    """Choose, for each measured level, the noisy totals of its areas with the least noise.

    An only child and its parent are one area that was measured twice: the parent takes the
    measurement with less noise.
    """
    hierarchy, found = tree.axes[number].hierarchy, dict[int, _Noisy]()
    for depth in sorted(measured, reverse=True):
        table, n = measured[depth], hierarchy.n_areas(depth)
        if len(table.value) != n:
            raise ReleaseError(f"{MEASUREMENTS_FILE} lacks totals of some areas; {DAMAGED}")
        here = _Noisy(table.value.copy(), np.full(n, table.noise.sigma**2))
        if found:
            finer = min(found)
            above = hierarchy.ancestor(finer, depth)
            only = np.flatnonzero(np.bincount(above)[above] == 1)
            only = only[found[finer].variance[only] < here.variance[above[only]]]
            for coarse, fine in zip(here, found[finer], strict=True):
                coarse[above[only]] = fine[only]
        found[depth] = here
    return found


def _weighed(listed: Numbers, measured: Numbers, sigma2: Floats) -> tuple[Floats, Floats]:
    """Weigh sums and measurements by their variances; return the mean and its variance.

    `sigma2` is the variance of the noise of each measurement.
    """
    apart = measured.astype(float) - listed
    tau2 = np.empty(len(listed))
    n_classes = max(1, min(_MOST_CLASSES, len(listed) // _LEAST_AREAS))
    for alike in np.array_split(np.argsort(listed, kind="stable"), n_classes):
        # Minus one standard error, because few areas may differ by chance.
        noise = sigma2[alike].mean() * (1 + math.sqrt(2 / len(alike)))
        excess = np.square(apart[alike]).mean() - noise
        tau2[alike] = np.maximum(excess, _LEAST_VARIANCE * sigma2[alike])
    part = tau2 / (tau2 + sigma2)
    return listed + part * apart, part * sigma2


def _divided(
    above: Numbers, offsets: NDArray[np.int32], guess: Floats, variance: Floats
) -> Numbers:
    """Round guesses to non-negative whole numbers that add up to the totals of parents.

    Args:
        above: int64[parents], the total of each parent.
        offsets: int32[parents + 1], slices of the children.
        guess: float64[children].
        variance: float64[children], variance of the guesses; 0 for fixed numbers.
    """
    start, parent = offsets[:-1], np.repeat(np.arange(len(above)), np.diff(offsets))
    is_left = np.ones(len(guess), bool)
    while True:
        # Numbers that a step makes negative become 0, and the others are moved again.
        missing = above - np.add.reduceat(np.where(is_left, guess, 0), start)
        room = np.add.reduceat(np.where(is_left, variance, 0), start)
        moved = guess + variance * (missing / np.where(room > 0, room, 1))[parent]
        is_below = is_left & (moved < 0)
        if not is_below.any():
            break
        is_left &= ~is_below
    # Ends of running sums are rounded, so that they stay in order and the last one is exact.
    running = np.cumsum(np.where(is_left, moved, 0))
    inside = running - (np.append(0, running)[start])[parent]
    last = np.cumsum(above)
    # Compared as whole numbers, because above 2^53 a float may exceed the total of the parent.
    whole = np.clip(np.floor(inside + 0.5).astype(np.int64), 0, above[parent])
    end = (last - above)[parent] + whole
    end[offsets[1:] - 1] = last
    return np.asarray(np.diff(end, prepend=0))


def asked_total(asked: Sequence[Grouping]) -> int | None:
    """The only axis with more than one group; None if there are several such axes, or none."""
    used = [number for number, axis in enumerate(asked) if axis.needed]
    return used[0] if len(used) == 1 else None


def sum_totals(asked: Sequence[Grouping], number: int, finest: AreaTotals) -> pa.Table:
    """Sum up totals of an axis like `sum_flows`, with an additional column `listed`.

    `finest` has the totals of the finest areas of that axis.
    """
    own = asked[number]
    sums = {name: own.sum_up(of) for name, of in ((FLOW, finest.flow), (LISTED, finest.listed))}
    shown = {
        # Every other axis has one group.
        axis.name: axis.codes if axis is own else repeated(axis.codes[0].as_py(), len(own.codes))
        for axis in asked
        if axis.is_shown
    }
    table = pa.table({**shown, **sums})
    if not shown:
        return table
    table = table.take(as_arrow(own.order))
    is_there = pc.or_(pc.greater(table.column(FLOW), 0), pc.greater(table.column(LISTED), 0))
    return table.filter(is_there)
