"""Totals of areas across the tree: one number for each, and an interval.

Such a total is known twice: as the sum of the flows that are listed, and as it was measured. The
published number weighs both by their variances. The variance of the measurement is public; that of
the sum is estimated from how far the two are apart, in classes of size, since a sum of many small
flows that were lost is far too small where others are good.

Then numbers are made to add up: going down the levels of an axis, those of the areas inside an area
are moved in proportion to their variances until their sum is the number of that area.

Post-processing: nothing but the release goes in.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from inftda.errors import ReleaseError
from inftda.groupings import MIXED, Grouping
from inftda.inference.measured import Floats, NoisyTable
from inftda.inference.noise_intervals import (
    Ends,
    NoiseSums,
    containing,
    measured_ends,
)
from inftda.publication.manifest import DAMAGED, MEASUREMENTS_FILE
from inftda.publication.query import FLOW, LISTED
from inftda.tables import as_arrow, repeated
from inftda.tree import Tree

Numbers = NDArray[np.int64]

#: Classes of size, and areas that each of several has.
_MOST_CLASSES: Final = 8
_LEAST_AREAS: Final = 30
#: The least variance of a sum, as a part of that of the measurement: sums are fitted to it, so
#: that they seem to agree better than they do.
_LEAST_VARIANCE: Final = 0.1


class AreaTotals(NamedTuple):
    """Totals of all areas of one level of an axis.

    Attributes:
        flow: the published numbers.
        listed: sums of the flows that are listed.
        low: lower ends of their intervals.
        high: upper ends.
        sigma: noise scale of their measurement.
    """

    flow: Numbers
    listed: Numbers
    low: Numbers
    high: Numbers
    sigma: float


def totals_by_level(
    tree: Tree, number: int, listed: Numbers, measured: Mapping[int, NoisyTable]
) -> dict[int, AreaTotals]:
    """Totals of an axis by its levels, from the first that was measured across the tree.

    Args:
        tree: the tree.
        number: of the axis.
        listed: int64[finest areas], sums of the flows that are listed.
        measured: by level; all levels from the first on that split an area.
    """
    hierarchy, found = tree.axes[number].hierarchy, dict[int, AreaTotals]()
    first = min(measured, default=hierarchy.depth + 1)
    above = hierarchy.sum_up(listed, first - 1)
    for depth in range(first, hierarchy.depth + 1):
        if depth in measured:
            table, sums = measured[depth], hierarchy.sum_up(listed, depth)
            if len(table.value) != len(sums):
                raise ReleaseError(f"{MEASUREMENTS_FILE} lacks totals of some areas; {DAMAGED}")
            offsets, sigma = hierarchy.child_offsets(depth - 1), table.noise.sigma
            guess, variance = _weighed(sums, table.value, sigma**2)
            low, high = measured_ends(table.value, table.noise)
            if tree.impossible is not None:
                never = ~tree.impossible.is_possible(table.depths, table.areas)
                guess[never] = variance[never] = low[never] = high[never] = 0
            flow = _divided(above, offsets, guess, variance)
            low, high = containing(flow, (low, high))
            if depth > first:  # an only child is its parent by another name
                is_alone, parent = np.diff(offsets) == 1, found[depth - 1]
                only = offsets[:-1][is_alone]
                low[only], high[only] = parent.low[is_alone], parent.high[is_alone]
            found[depth] = AreaTotals(flow, sums, low, high, sigma)
        else:  # the areas of the level above, by other names
            found[depth] = found[depth - 1]
        above = found[depth].flow
    return found


def _weighed(listed: Numbers, measured: Numbers, sigma2: float) -> tuple[Floats, Floats]:
    """Sums and measurements weighed by their variances, and the variance of the result."""
    apart = measured.astype(float) - listed
    tau2 = np.empty(len(listed))
    n_classes = max(1, min(_MOST_CLASSES, len(listed) // _LEAST_AREAS))
    for alike in np.array_split(np.argsort(listed, kind="stable"), n_classes):
        # Less one standard error: few areas may be apart by chance.
        noise = sigma2 * (1 + math.sqrt(2 / len(alike)))
        tau2[alike] = max(np.square(apart[alike]).mean() - noise, _LEAST_VARIANCE * sigma2)
    part = tau2 / (tau2 + sigma2)
    return listed + part * apart, part * sigma2


def _divided(
    above: Numbers, offsets: NDArray[np.int32], guess: Floats, variance: Floats
) -> Numbers:
    """Whole numbers, none negative, as near to the guesses as adding up allows.

    Args:
        above: int64[parents], what the numbers of the children of each add up to.
        offsets: int32[parents + 1], slices of the children.
        guess: float64[children].
        variance: float64[children], of the guesses; 0 for what cannot be otherwise.
    """
    start, parent = offsets[:-1], np.repeat(np.arange(len(above)), np.diff(offsets))
    is_left = np.ones(len(guess), bool)
    while True:
        # Of those that are left; all that a step makes negative are 0 in the end.
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
    whole = np.clip(np.floor(inside + 0.5), 0, above[parent]).astype(np.int64)
    end = (last - above)[parent] + whole
    end[offsets[1:] - 1] = last
    return np.asarray(np.diff(end, prepend=0))


def asked_total(tree: Tree, asked: Sequence[Grouping]) -> int | None:
    """The axis whose totals across the tree are asked for; None where other numbers are.

    Only one axis may have groups that tell its areas apart.
    """
    used = [number for number, axis in enumerate(asked) if axis.needed]
    if len(used) != 1 or tuple(axis.needed for axis in asked) in tree.on_tree:
        return None
    return used[0]


def sum_totals(asked: Sequence[Grouping], number: int, finest: AreaTotals) -> pa.Table:
    """Totals of an axis summed up as `sum_flows` does, with a further column `listed`.

    Args:
        asked: what is summed up, for each axis.
        number: of the axis.
        finest: totals of its finest areas.
    """
    own = asked[number]
    sums = {name: own.sum_up(of) for name, of in ((FLOW, finest.flow), (LISTED, finest.listed))}
    shown = {
        # Of any other axis there is one area.
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


def total_ends(
    own: Grouping, totals: Mapping[int, AreaTotals], measured: Mapping[int, NoisyTable]
) -> Ends:
    """Intervals of the totals of all groups of an axis.

    A group that is no area is made of areas that were measured, as large ones as lie in it as a
    whole. All areas were measured, so nothing was selected, and the noise of the sum is known.

    Args:
        own: what is summed up.
        totals: of the axis, by level.
        measured: the same as they were measured.
    """
    for depth, area in own.areas.items():
        if depth in totals:
            return totals[depth].low[area], totals[depth].high[area]
    sums, hierarchy = NoiseSums(len(own.codes)), own.axis.hierarchy
    is_part = np.ones(hierarchy.n_areas(min(measured) - 1), bool)
    for depth in range(min(measured), hierarchy.depth + 1):
        above, group = hierarchy.ancestor(depth, depth - 1), own.at(depth)
        is_here = is_part[above] & (group >= 0)
        if depth in measured:
            sums.add(group[is_here], measured[depth].value[is_here], measured[depth].noise)
        is_part = is_part[above] & (group == MIXED)
    return sums.ends()
