"""Whole numbers that add up: random rounding from the root to the leaves.

Each family is rounded so that it sums to its node. Fractions are rounded up at random, the more
likely the more an area has lost by rounding so far: so totals of areas lose a few trips at most.
Counts of nodes that are not divided go further down trip by trip, by the shares.
"""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from inftda.estimates.balance import LayerEstimate
from inftda.estimates.cross_table_fit import needs_local_search, searched
from inftda.publication.measured import Families, Floats, Part, distinct_rows
from inftda.tree import Cells, Tree, TreeLevel
from inftda.util.kernels import inlined_kernel, kernel
from inftda.util.threads import ThreadPool

#: How much likelier fractions are rounded up where a whole trip is lost (its logarithm), and the
#: most that counts.
_PRESSING, _MOST_LOST = 0.5, 4.0
#: Parts of the last level, each of which takes several times its own memory while it is rounded.
_PARTS: Final = 256


def round_down_the_tree(
    tree: Tree,
    levels: Sequence[LayerEstimate],
    total: int,
    random: np.random.Generator,
    pool: ThreadPool,
) -> Iterator[Cells]:
    """Whole numbers of the finest areas that sum to the total and, at every level, to each other.

    Yields:
        Some of them, until all are there.
    """
    whole = np.array([total], np.int64)
    is_divided = bool(levels) and len(levels[0].layer.first) > 0
    n = 0 if is_divided or not total else 1
    left = Cells(tuple(np.zeros(n, np.int32) for _ in tree.axes), whole[:n])
    for level in levels:
        layer = level.layer
        left = _divided(left, layer.level, level.shares.within(layer.level), random)
        draws, lost = random.random(len(layer.first)), np.zeros(layer.n_areas)
        goals, whole = whole[layer.parent], np.empty(len(layer.noisy), np.int64)

        def round_part(part: Part) -> None:
            round_families_kernel(part, layer.families, goals, level.estimate, draws, lost, whole)  # noqa: B023 - used here and now

        pool.run(round_part, layer.parts())
        if needs_local_search(layer):
            whole, left = searched(level, whole, left, pool)
        pick = partial(_undivided, level, whole)
        if level is levels[-1]:  # nearly all numbers belong to this level
            yield from pool.map(pick, layer.parts(_PARTS))
        else:
            left = Cells.join([left, *pool.map(pick, layer.parts())])
    yield left


def _undivided(level: LayerEstimate, whole: NDArray[np.int64], part: Part) -> Cells:
    """Positive numbers of some families of a layer that nothing divides."""
    layer = level.layer
    low, high = layer.offsets[part[0]], layer.offsets[part[1]]
    is_here = whole[low:high] > 0
    if layer.child_family.size:
        is_here &= layer.child_family[low:high] < 0
    child = low + np.flatnonzero(is_here)
    return Cells(layer.child_areas(child), whole[child])


def _divided(nodes: Cells, level: TreeLevel, share: Floats, random: np.random.Generator) -> Cells:
    """Pass nodes that nothing divides one level further down, trip by trip."""
    axis, offsets = level.axis, level.child_offsets
    is_only = np.diff(offsets)[nodes.areas[axis]] == 1
    whole, several = nodes.take(is_only), nodes.take(~is_only)
    only = tuple(offsets[n].astype(np.int32) if a == axis else n for a, n in enumerate(whole.areas))
    split = split_trips(several, axis, offsets, share, random)
    return Cells.join([whole._replace(areas=only), split])


def split_trips(
    nodes: Cells,
    axis: int,
    offsets: NDArray[np.int32],
    share: Floats,
    random: np.random.Generator,
) -> Cells:
    """Trips of nodes among finer areas of an axis, by the shares of these.

    `offsets` are the first finer area of each area, and at last their number.
    """
    if not len(nodes.value):
        return nodes
    trip = random.permutation(np.repeat(np.arange(len(nodes.value)), nodes.value))
    trip = trip[np.argsort(nodes.areas[axis][trip], kind="stable")]
    area = nodes.areas[axis][trip]
    low, high = offsets[area], offsets[area + 1]
    before = np.concatenate([[0.0], np.cumsum(share)])
    # Trips of an area in equal steps: each of its parts gets its share but for one trip.
    n_trips = np.bincount(area, minlength=len(offsets) - 1)
    step = np.arange(len(trip)) - (np.cumsum(n_trips) - n_trips)[area]
    step = (step + random.random(len(n_trips))[area]) / n_trips[area]
    drawn = before[low] + step * (before[high] - before[low])
    chosen = np.clip(np.searchsorted(before, drawn, side="right") - 1, low, high - 1)
    areas = tuple(
        chosen.astype(np.int32) if a == axis else numbers[trip]
        for a, numbers in enumerate(nodes.areas)
    )
    row, value = distinct_rows(areas)
    return Cells(tuple(numbers[row] for numbers in areas), value)


@inlined_kernel
def _rounding_pressure(lost: float) -> float:
    """Factor of the odds that a fraction is rounded up in an area that has lost by rounding."""
    return math.exp(_PRESSING * min(max(lost, -_MOST_LOST), _MOST_LOST))


@kernel
def round_families_kernel(  # noqa: PLR0913, PLR0917 - what is rounded, to what, by which chance
    part: Part,
    families: Families,
    goals: NDArray[np.int64],
    estimate: Floats,
    draws: Floats,
    lost: Floats,
    numbers: NDArray[np.int64],
) -> None:
    """Round the children of each family to the whole number of its node.

    The node's number minus the whole parts goes to fractions, by one random offset per family: a
    child gets one for each integer that its interval in the running sum of fractions covers.
    `goals` are the numbers of the nodes, `draws` are uniform in [0, 1), and `lost` is the loss of
    each area by rounding so far; `lost` and `numbers` are overwritten.
    """
    offsets, firsts = families.offsets, families.first
    for f in range(part[0], part[1]):
        low, high, first = offsets[f], offsets[f + 1], firsts[f]
        goal = goals[f]
        total = 0.0
        for i in range(low, high):
            total += estimate[i]
        scale = goal / total if total > 0 else 0.0
        left, fractions = goal, 0.0
        for i in range(low, high):
            share = estimate[i] * scale
            numbers[i] = min(int(share), left)
            left -= numbers[i]
            fractions += (share - int(share)) * _rounding_pressure(lost[first + i - low])
        running, done, rest = draws[f], 0, left
        for i in range(low, high):
            k = first + i - low
            share = estimate[i] * scale
            if fractions > 0:
                pressure = _rounding_pressure(lost[k])
                running += (share - int(share)) * pressure * (rest / fractions)
            here = min(int(running), rest) if i < high - 1 else rest
            numbers[i] += here - done
            done = here
            lost[k] += share - numbers[i]
