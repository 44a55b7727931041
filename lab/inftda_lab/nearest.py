"""Exact solvers for what the paper hands to black boxes: `tda-l2` and `tda-linf`.

Both give non-negative integers with a given sum at the least distance from noisy ones.

In Euclidean distance: with t the least integer such that sum max(0, x - t) does not exceed the
total, every optimal vector is max(0, x - t) plus 1 at as many elements with x >= t as are missing.
Which ones get the 1 is drawn uniformly.

In Chebyshev distance a general integer solver returns an arbitrary vertex. With alpha the least
distance, every element may lie anywhere in max(0, x - alpha)..x + alpha. Here elements start at
their lower ends and are raised to their upper ends in random order until the sum is reached.

Privacy:
    Post-processing of noisy values: needs no budget. It must never be given true counts.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from inftda_lab.tables import Numbers

Keys = NDArray[np.float64]


@njit(nogil=True)
def nearest_l2(x: Numbers, offsets: Numbers, total: Numbers, key: Keys) -> None:
    """Replace each family of x by the nearest integers in Euclidean distance.

    Args:
        x: noisy counts of all families, one after the other; overwritten.
        offsets: where each family starts, and the end.
        total: what each family sums to, at least 0.
        key: uniform numbers, one for each element, that break ties.
    """
    for family in range(total.size):
        part, order = x[offsets[family] : offsets[family + 1]], key[offsets[family] :]
        level = water_level(part, total[family])
        missing = total[family]
        for i in range(part.size):
            missing -= max(0, part[i] - level)
        # Elements with x >= level and the smallest keys get one more.
        last = smallest_keys(part, order, level, missing)
        for i in range(part.size):
            gets_more = part[i] >= level and order[i] <= last
            part[i] = max(0, part[i] - level) + (1 if gets_more else 0)


@njit(nogil=True)
def nearest_linf(x: Numbers, offsets: Numbers, total: Numbers, key: Keys) -> None:
    """Replace each family of x by some of the nearest integers in Chebyshev distance."""
    for family in range(total.size):
        part, order = x[offsets[family] : offsets[family + 1]], key[offsets[family] :]
        sum_of_x = part.sum()
        alpha = max(
            0,
            -((sum_of_x - total[family]) // part.size),
            -part.min(),
            water_level(part, total[family]),
        )
        room = total[family]
        for i in range(part.size):
            room -= max(0, part[i] - alpha)
        for i in np.argsort(order[: part.size]):
            floor = max(0, part[i] - alpha)
            raised = min(part[i] + alpha - floor, room)
            part[i] = floor + raised
            room -= raised


@njit(nogil=True)
def water_level(part: Numbers, total: int) -> int:
    """The least t with sum max(0, x - t) <= total; it may be negative."""
    descending = np.sort(part)[::-1]
    above = 0
    for i in range(part.size):
        above += descending[i]
        # With the i + 1 largest above the level, the sum is above - (i + 1) t.
        level = -((total - above) // (i + 1))
        if i + 1 == part.size or level >= descending[i + 1]:
            return int(level)
    return 0


@njit(nogil=True)
def smallest_keys(part: Numbers, key: Keys, level: int, wanted: int) -> float:
    """The largest of the `wanted` smallest keys among elements with x >= level; below 0 if none."""
    if wanted <= 0:
        return -1.0
    found = np.empty(part.size)
    n = 0
    for i in range(part.size):
        if part[i] >= level:
            found[n] = key[i]
            n += 1
    return float(np.sort(found[:n])[wanted - 1])
