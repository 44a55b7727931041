"""Whole numbers that add up: random rounding from the root to the leaves.

Each family is rounded so that it sums to its node. Fractions are rounded up at random, the more
likely the more an area has lost by rounding so far: so totals of areas lose a few trips at most.
What is left at nodes that nothing divides goes further down trip by trip, by the shares.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from inftda.inference.balance import LayerEstimate
from inftda.inference.measured import Areas, Families, Floats, Map, Part, distinct_rows
from inftda.kernels import inlined_kernel, kernel
from inftda.tree import Tree, TreeLevel

#: How much likelier fractions are rounded up where a whole trip is lost (its logarithm), and the
#: most that counts.
_PRESSING, _MOST_LOST = 0.5, 4.0
#: Parts of the last level, each of which takes several times its own memory while it is rounded.
_PARTS: Final = 256

Finished = TypeVar("Finished")


class WholeNodes(NamedTuple):
    """Positive whole numbers.

    Attributes:
        areas: int32[numbers] for each axis.
        value: int64[numbers].
        layer: int32[numbers], the layer in which each was measured, -1 if it was not.
        child: int64[numbers], and which of its children it is.
        mean: float64[numbers], what it is expected to be.
    """

    areas: Areas
    value: NDArray[np.int64]
    layer: NDArray[np.int32]
    child: NDArray[np.int64]
    mean: Floats

    def of(self, which: NDArray[np.bool_]) -> "WholeNodes":
        """Some of the numbers."""
        areas = tuple(numbers[which] for numbers in self.areas)
        value, layer, child, mean = self.value, self.layer, self.child, self.mean
        return WholeNodes(areas, value[which], layer[which], child[which], mean[which])

    @classmethod
    def joined(cls, parts: "Sequence[WholeNodes]") -> "WholeNodes":
        """Numbers of all parts."""
        areas, *others = zip(*parts, strict=True)
        joined = tuple(map(np.concatenate, zip(*areas, strict=True)))
        return cls(joined, *map(np.concatenate, others))


def round_down_the_tree(  # noqa: PLR0913, PLR0917 - what is rounded, how, and what becomes of it
    tree: Tree,
    levels: Sequence[LayerEstimate],
    total: int,
    random: np.random.Generator,
    finish: Callable[[WholeNodes], Finished],
    map_: Map,
) -> Iterator[Finished]:
    """Whole numbers of the finest areas that sum to the total and, at every level, to each other.

    Yields:
        What `finish` makes of some of them, on their thread, until all are there.
    """
    whole = np.array([total], np.int64)
    is_divided = bool(levels) and len(levels[0].layer.first) > 0
    n = 0 if is_divided or not total else 1
    left = WholeNodes(
        areas=tuple(np.zeros(n, np.int32) for _ in tree.axes),
        value=whole[:n],
        layer=np.full(n, -1, np.int32),
        child=np.full(n, -1),
        mean=whole[:n].astype(float),
    )
    for number, level in enumerate(levels):
        layer = level.layer
        left = _divided(left, layer.level, level.shares.within(layer.level), random)
        draws, lost = random.random(len(layer.first)), np.zeros(layer.n_areas)
        work = partial(_round_part, level, number, whole[layer.parent], draws, lost)
        if level is levels[-1]:  # nearly all numbers belong to this level
            yield from map_(lambda part: finish(work(part)[1]), layer.parts(_PARTS))  # noqa: B023 - used here and now
        else:
            parts = list(map_(work, layer.parts()))
            left = WholeNodes.joined([left, *(here for _, here in parts)])
            whole = np.concatenate([whole[:0], *(numbers for numbers, _ in parts)])
    yield finish(left)


def _round_part(  # noqa: PLR0913, PLR0917 - bound to a level, called for its parts
    level: LayerEstimate,
    number: int,
    goals: NDArray[np.int64],
    draws: Floats,
    lost: Floats,
    part: Part,
) -> tuple[NDArray[np.int64], WholeNodes]:
    """All numbers of some families of a layer, and the positive ones that nothing divides."""
    layer, estimate = level.layer, level.estimate
    low, high = layer.offsets[part[0]], layer.offsets[part[1]]
    numbers, child_family = np.empty(high - low, np.int64), layer.child_family
    round_families_kernel(part, layer.families, goals, estimate, draws, lost, numbers)
    is_here = numbers > 0
    if child_family.size:
        is_here &= child_family[low:high] < 0
    at = np.flatnonzero(is_here)
    child = low + at
    ordinal = np.full(len(child), number, np.int32)
    areas = layer.child_areas(child)
    return numbers, WholeNodes(areas, numbers[at], ordinal, child, estimate[child])


def _divided(
    nodes: WholeNodes, level: TreeLevel, share: Floats, random: np.random.Generator
) -> WholeNodes:
    """Nodes that nothing divides one level further down: each trip goes its own way."""
    axis, offsets = level.axis, level.child_offsets
    is_only = np.diff(offsets)[nodes.areas[axis]] == 1
    whole, several = nodes.of(is_only), nodes.of(~is_only)
    # An only child is its parent, and was measured where that was.
    only = tuple(offsets[n].astype(np.int32) if a == axis else n for a, n in enumerate(whole.areas))
    split = _split_trips(several, axis, offsets, share, random)
    return WholeNodes.joined([whole._replace(areas=only), split])


def _split_trips(
    nodes: WholeNodes,
    axis: int,
    offsets: NDArray[np.int32],
    share: Floats,
    random: np.random.Generator,
) -> WholeNodes:
    """Trips of nodes among their children, by the shares."""
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
    nothing = np.full(len(row), -1)
    return WholeNodes(
        tuple(numbers[row] for numbers in areas),
        value,
        nothing.astype(np.int32),
        nothing,
        nodes.mean[trip[row]] * share[chosen[row]],
    )


@inlined_kernel
def _rounding_pressure(lost: float) -> float:
    """How much likelier fractions are rounded up in an area that has lost by rounding."""
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

    What whole parts leave of the node's number goes to fractions, by one random offset per family:
    a child gets one for each integer that its stretch of the running sum of fractions covers.
    `goals` are the numbers of the nodes, `draws` are uniform in [0, 1), and `lost` is what each
    area has lost by rounding so far, overwritten as `numbers` is.
    """
    offsets, firsts = families.offsets, families.first
    before = offsets[part[0]]
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
            numbers[i - before] = min(int(share), left)
            left -= numbers[i - before]
            fractions += (share - int(share)) * _rounding_pressure(lost[first + i - low])
        running, done, rest = draws[f], 0, left
        for i in range(low, high):
            k = first + i - low
            share = estimate[i] * scale
            if fractions > 0:
                pressure = _rounding_pressure(lost[k])
                running += (share - int(share)) * pressure * (rest / fractions)
            here = min(int(running), rest)
            if i == high - 1:
                here = rest
            numbers[i - before] += here - done
            done = here
            lost[k] += share - numbers[i - before]
