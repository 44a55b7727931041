"""A public stand-in for the confidential table, on which settings are compared.

It is a table that is public already: an older one, or a coarser one, which is spread over the finer
areas. How it was made is kept in words, because the figures of a preview hold for its stand-in
only.

A coarse table is spread over finer areas by a rule that is stated and needs nothing else:

- An area's trips are shared by the finer areas in it by Zipf's law: the second in the order of
  codes gets half as many as the first, the third a third.
- Of trips that stay in a coarse area, a part stays in the finer area where it starts: that of the
  made-up country of `inftda.demo`.
- The other trips of an area go to finer areas in random order and in equal steps from a random
  start: each finer area gets its share of them to less than 1 trip. Coarse flows stay exactly as
  they are.

This module must never get the confidential table.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from inftda.errors import InftdaError, IngestError
from inftda.estimates.rounding import split_trips
from inftda.reading import Columns, read_leaves
from inftda.reading.columns import NO_GUARANTEE
from inftda.reading.truth import Truth
from inftda.tree import DESTINATION, ORIGIN, Axis, Cells, Tree
from inftda.tree.hierarchy import Hierarchy
from inftda.util.tabular import distinct

#: Share of the trips that stay in an area of level 0 (the country), 1, 2, ... but not in a finer
#: one; the finest level takes what is left.
SURROUNDINGS: Final = (0.004, 0.02, 0.33, 0.31, 0.22, 0.116)


@dataclass(frozen=True)
class StandIn:
    """A public table in the place of the confidential one, and how it was made, for people."""

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

    Flows between coarser areas, those of `level`, are spread at random by the seed.
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
    spread = _spread(tree, depths, Cells(*leaves), np.random.default_rng(seed))
    words = (
        f"a public table of flows by {level}, spread over finer areas by Zipf's law in the order "
        "of their codes"
    )
    return StandIn(Truth.from_leaves(tree, *spread), words)


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


def _spread(tree: Tree, depths: list[int], trips: Cells, random: np.random.Generator) -> Cells:
    """Spread axis by axis; trips that stay at home are set aside before destinations are spread."""
    aside: list[Cells] = []
    for number, (axis, depth) in enumerate(zip(tree.axes, depths, strict=True)):
        finest = axis.hierarchy.depth
        if depth == finest:
            continue
        if axis.name == DESTINATION and _has_home(tree, depths):
            areas, counts = trips
            is_within = axis.hierarchy.ancestor(finest, depth)[areas[0]] == areas[number]
            wanted = home_share(depth, finest) * counts + random.random(len(counts))
            home = np.where(is_within, np.minimum(wanted.astype(np.int64), counts), 0)
            at_home = (*areas[:number], areas[0], *areas[number + 1 :])
            aside.append(Cells(at_home, home))
            trips = Cells(areas, counts - home)
        offsets = axis.hierarchy.descendant_offsets(depth, finest)
        rank = 1 + np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))
        trips = split_trips(trips, number, offsets, 1 / rank, random)
    return Cells.join([trips, *aside])


def _has_home(tree: Tree, depths: list[int]) -> bool:
    """Whether both ends are the same areas, spread alike, the origin before the destination."""
    names = [axis.name for axis in tree.axes]
    if names[:2] != [ORIGIN, DESTINATION]:
        return False
    return tree.axes[0].hierarchy == tree.axes[1].hierarchy and depths[0] == depths[1]


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
