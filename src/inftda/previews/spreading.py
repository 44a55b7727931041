"""A coarse table spread over finer areas, by a rule that is stated and needs nothing else.

- An area's trips are shared by the finer areas in it by their public totals if there are any,
  else by Zipf's law: the second in the order of codes gets half as many as the first, the third
  a third.
- Of trips that stay in a coarse area, the share that the nested model says
  (`inftda.previews.surroundings`) stays in the finer area where it starts.
- Running sums are rounded down, from a random start: each number is less than 1 from its
  share, and coarse flows stay exactly as they are.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inftda.hierarchy import Hierarchy
from inftda.kernels import kernel
from inftda.previews.surroundings import share_that_stays

Areas = list[NDArray[np.int32]]


def spread_axis(  # noqa: PLR0913, PLR0917 - what is spread, over what, how
    areas: Sequence[NDArray[np.int32]],
    counts: NDArray[np.int64],
    number: int,
    offsets: NDArray[np.int32],
    weights: NDArray[np.float64],
    random: np.random.Generator,
) -> tuple[Areas, NDArray[np.int64]]:
    """Cells with one axis taken from coarse to finest areas.

    Args:
        areas: for each axis, the area of each cell.
        counts: int64, of each cell.
        number: of the axis that is spread.
        offsets: int32, finest areas of each coarse one, as `Hierarchy.descend` gives them.
        weights: float64, of each finest area.
        random: where the running sums start.
    """
    coarse = areas[number]
    room = int(np.minimum(np.diff(offsets)[coarse], counts).sum())
    cell, area = np.empty(room, np.int64), np.empty(room, np.int32)
    value = np.empty(room, np.int64)
    start = random.random(len(counts))
    found = spread_kernel(coarse, counts, offsets, weights, start, cell, area, value)
    spread = [axis[cell[:found]] for axis in areas]
    spread[number] = area[:found].copy()
    return spread, value[:found].copy()


def keep_at_home(
    origin: NDArray[np.int32],
    counts: NDArray[np.int64],
    is_within: NDArray[np.bool_],
    share: float,
    random: np.random.Generator,
) -> NDArray[np.int64]:
    """How many trips of each cell end in the finest area where they start."""
    wanted = np.floor(share * counts + random.random(len(origin))).astype(np.int64)
    return np.where(is_within, np.minimum(wanted, counts), 0)


def zipf(hierarchy: Hierarchy, level: int) -> NDArray[np.float64]:
    """Weight of each finest area: one over its rank in its area of a level."""
    offsets = hierarchy.descendant_offsets(level, hierarchy.depth)
    rank = np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))
    return np.asarray(1 / (1 + rank), np.float64)


def home_share(level: int, depth: int) -> float:
    """Of trips that stay in an area of a level, the share that stays in a finest one."""
    looking = 1.0
    for finer in range(depth, level, -1):
        looking *= 1 - share_that_stays(finer, depth)
    # Those who find nothing finer stay in the area itself with a probability of its own.
    stays = share_that_stays(depth, depth)
    found = 1 - looking + looking * share_that_stays(level, depth)
    return stays / found if found else 1.0


@kernel
def spread_kernel(  # noqa: PLR0913, PLR0917 - a kernel takes plain arrays
    coarse: NDArray[np.int32],
    counts: NDArray[np.int64],
    offsets: NDArray[np.int32],
    weights: NDArray[np.float64],
    start: NDArray[np.float64],
    cell: NDArray[np.int64],
    area: NDArray[np.int32],
    value: NDArray[np.int64],
) -> int:
    """Share out every cell over the finest areas of its coarse one.

    Args:
        coarse: int32[n], coarse area of each cell.
        counts: int64[n].
        offsets: int32, finest areas of each coarse area.
        weights: float64, of each finest area, not below 0.
        start: float64[n], from 0 to 1: where running sums begin.
        cell: int64[room], written: the cell each result comes from.
        area: int32[room], written: its finest area.
        value: int64[room], written: its count.

    Returns:
        Number of results.
    """
    found = 0
    for i in range(counts.size):
        low, high = offsets[coarse[i]], offsets[coarse[i] + 1]
        total = 0.0
        for j in range(low, high):
            total += weights[j]
        running, given = start[i], 0
        for j in range(low, high):
            share = weights[j] / total if total > 0 else 1.0 / (high - low)
            running += counts[i] * share
            here = min(int(running), counts[i]) - given
            if j == high - 1:
                here = counts[i] - given
            if here > 0:
                cell[found], area[found], value[found] = i, j, here
                found += 1
                given += here
    return found
