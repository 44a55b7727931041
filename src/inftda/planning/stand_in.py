"""A public stand-in for the confidential table, on which settings are compared.

It is a table that is public already: an older one, or a coarser one, which is spread over the finer
areas. How it was made is kept in words, because the figures of a preview hold for its stand-in
only.

A coarse table is spread over finer areas by a rule that is stated and needs nothing else:

- An area's trips are shared by the finer areas in it by Zipf's law: the second in the order of
  codes gets half as many as the first, the third a third.
- Of trips that stay in a coarse area, a part stays in the finer area where it starts: that of the
  made-up country of `inftda.demo`.
- Trips of a coarse flow go in equal steps, from a random start: each number is less than 1 from
  its share, and coarse flows stay exactly as they are.

This module must never get the confidential table.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from inftda.errors import InftdaError, IngestError
from inftda.reading import Columns, read_leaves
from inftda.reading.columns import NO_GUARANTEE
from inftda.reading.truth import Truth
from inftda.tree import DESTINATION, ORIGIN, Axis, Tree
from inftda.tree.hierarchy import Hierarchy
from inftda.util.tabular import distinct

#: Share of the trips that stay in an area of level 0 (the country), 1, 2, ... but not in a finer
#: one; the finest level takes what is left.
SURROUNDINGS: Final = (0.004, 0.02, 0.33, 0.31, 0.22, 0.116)


@dataclass(frozen=True)
class StandIn:
    """A public table in the place of the confidential one.

    Attributes:
        counts: its counts, by the tree of the release to come.
        words: how it was made, for people.
    """

    counts: Truth
    words: str


def from_flows(
    tree: Tree,
    flows: Any,
    *,
    level: str | None = None,
    columns: Columns | None = None,
    seed: int = 1,
) -> StandIn:
    """A public table of flows in the place of the confidential one.

    Args:
        tree: of the release to come.
        flows: the public table, anything a release takes.
        level: name of the level of its origins and destinations, if it is coarser than the
            areas; then it is spread.
        columns: meaning of its columns.
        seed: of the rounding.
    """
    columns = columns or Columns()
    depths = [_depth_of(axis.name, axis.hierarchy, level) for axis in tree.axes]
    axes = [
        Axis(axis.name, coarsened(axis.hierarchy, depth))
        for axis, depth in zip(tree.axes, depths, strict=True)
    ]
    try:
        leaves = read_leaves(flows, columns, axes, unit=NO_GUARANTEE)
    except IngestError as problem:
        hint = "" if level else "; if it is coarser than the areas, say at which level it is"
        raise InftdaError(f"the public table: {problem}{hint}") from None
    if all(depth == axis.hierarchy.depth for axis, depth in zip(tree.axes, depths, strict=True)):
        words = "a public table of flows between the same areas"
        return StandIn(Truth.of(tree, leaves), words)
    areas, counts = _spread(
        tree, depths, list(leaves.areas), leaves.value, np.random.default_rng(seed)
    )
    words = (
        f"a public table of flows by {level}, spread over finer areas by Zipf's law in the order "
        "of their codes"
    )
    return StandIn(Truth.from_leaves(tree, areas, counts), words)


def coarsened(hierarchy: Hierarchy, depth: int) -> Hierarchy:
    """The first levels of a hierarchy; areas keep their numbers."""
    if depth == hierarchy.depth:
        return hierarchy
    columns = list(hierarchy.level_names[:depth])
    return Hierarchy.read(distinct(hierarchy.to_table().select(columns)))


def _depth_of(axis: str, hierarchy: Hierarchy, level: str | None) -> int:
    if level is None or (axis not in {ORIGIN, DESTINATION} and level not in hierarchy.level_names):
        return hierarchy.depth
    depth = hierarchy.level_of(level)
    if depth == 0:
        raise InftdaError("the public table must have areas, not only one total; name its level")
    return depth


def _spread(
    tree: Tree,
    depths: list[int],
    areas: list[NDArray[np.int32]],
    counts: NDArray[np.int64],
    random: np.random.Generator,
) -> tuple[list[NDArray[np.int32]], NDArray[np.int64]]:
    """Spread axis by axis; trips that stay at home are set aside before destinations are spread."""
    aside: tuple[list[NDArray[np.int32]], NDArray[np.int64]] | None = None
    for number, (axis, depth) in enumerate(zip(tree.axes, depths, strict=True)):
        if depth == axis.hierarchy.depth:
            continue
        if axis.name == DESTINATION and _has_home(tree, depths):
            above = axis.hierarchy.ancestor(axis.hierarchy.depth, depth)
            is_within = above[areas[0]] == areas[number]
            share = home_share(depth, axis.hierarchy.depth)
            wanted = np.floor(share * counts + random.random(len(counts))).astype(np.int64)
            home = np.where(is_within, np.minimum(wanted, counts), 0)
            kept = list(areas)
            kept[number] = areas[0]
            aside = kept, home
            counts = counts - home
        offsets = axis.hierarchy.descendant_offsets(depth, axis.hierarchy.depth)
        areas, counts = spread_axis(areas, counts, number, offsets, random)
    if aside is not None:
        areas = [np.concatenate(pair) for pair in zip(areas, aside[0], strict=True)]
        counts = np.concatenate([counts, aside[1]])
    return areas, counts


def _has_home(tree: Tree, depths: list[int]) -> bool:
    """Whether both ends are the same areas, spread alike, the origin before the destination."""
    names = [axis.name for axis in tree.axes]
    if names[:2] != [ORIGIN, DESTINATION]:
        return False
    return tree.axes[0].hierarchy == tree.axes[1].hierarchy and depths[0] == depths[1]


def spread_axis(
    areas: Sequence[NDArray[np.int32]],
    counts: NDArray[np.int64],
    number: int,
    offsets: NDArray[np.int32],
    random: np.random.Generator,
) -> tuple[list[NDArray[np.int32]], NDArray[np.int64]]:
    """Cells with one axis taken from coarse to finest areas, trip by trip in equal steps.

    Args:
        areas: for each axis, the area of each cell.
        counts: of each cell.
        number: of the axis that is spread.
        offsets: finest areas of each coarse one.
        random: where the steps of each cell start.
    """
    rank = 1 + np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))
    before = np.concatenate([[0.0], np.cumsum(1 / rank)])
    cell = np.repeat(np.arange(len(counts)), counts)
    nth = np.arange(1, len(cell) + 1) - np.repeat(np.cumsum(counts) - counts, counts)
    part = (nth - random.random(len(counts))[cell]) / counts[cell]
    low, high = (offsets[areas[number][cell] + end] for end in (0, 1))
    at = before[low] + part * (before[high] - before[low])
    area = np.clip(np.searchsorted(before, at) - 1, low, high - 1).astype(np.int32)
    is_new = (np.diff(cell, prepend=-1) != 0) | (np.diff(area, prepend=-1) != 0)
    first = np.flatnonzero(is_new)
    spread = [axis[cell[first]] for axis in areas]
    spread[number] = area[first]
    return spread, np.diff(first, append=len(cell))


def home_share(level: int, depth: int) -> float:
    """Of trips that stay in an area of a level, the share that stays in a finest one."""
    looking = 1.0
    for finer in range(depth, level, -1):
        looking *= 1 - share_that_stays(finer, depth)
    # Those who find nothing finer stay in the area itself with a probability of its own.
    stays = share_that_stays(depth, depth)
    found = 1 - looking + looking * share_that_stays(level, depth)
    return stays / found if found else 1.0


def share_that_stays(level: int, depth: int) -> float:
    """Share of those who look for a job in an area of this level that take one there."""
    shares = list(SURROUNDINGS[:depth]) + [0.0] * max(0, depth - len(SURROUNDINGS))
    shares.append(1.0 - sum(shares))
    return 1.0 if level == 0 else shares[level] / sum(shares[: level + 1])
