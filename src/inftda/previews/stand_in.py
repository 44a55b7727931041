"""Something public that stands in for the confidential table while settings are chosen.

Either a table that is public already (an older one, or a coarser one, which is spread over the
finer areas), or flows made up so that they have public totals. How it was made is kept in
words, since what a preview says is true of its stand-in and of nothing else.

Must never see the confidential table.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inftda.areas.locations import Gazetteer
from inftda.bars import Progress
from inftda.errors import InftdaError, IngestError
from inftda.hierarchy import Hierarchy
from inftda.previews.gravity import gravity_flows
from inftda.previews.public_totals import read_area_numbers
from inftda.previews.spreading import home_share, keep_at_home, spread_axis, zipf
from inftda.previews.surroundings import Flows, apportion, match_trips
from inftda.reading import Columns, read_leaves
from inftda.reading.columns import UNPROMISED
from inftda.tree import DESTINATION, ORIGIN, Axis, Tree
from inftda.truth import Truth

#: Columns of a table of totals, besides the finest areas; the last may be missing.
OUT, IN, WITHIN = "out", "in", "within"


@dataclass(frozen=True)
class StandIn:
    """A public table in the place of the confidential one.

    Attributes:
        counts: its counts, by the tree of the release to come.
        words: how it was made, for people.
    """

    counts: Truth
    words: str


def from_flows(  # noqa: PLR0913 - what is read, and how it is spread
    tree: Tree,
    flows: Any,
    *,
    level: str | None = None,
    totals: Any = None,
    columns: Columns | None = None,
    seed: int = 1,
) -> StandIn:
    """A public table of flows in the place of the confidential one.

    Args:
        tree: what is to be released.
        flows: the public table, anything a release takes.
        level: name of the level of its origins and destinations, if it is coarser than the
            areas; then it is spread, see `inftda.previews.spreading`.
        totals: public totals of the finest areas, to spread by.
        columns: what its columns mean.
        seed: of the rounding.

    Raises:
        InftdaError: the table cannot be read by the areas.
    """
    columns = columns or Columns()
    depths = [_depth_of(axis.name, axis.hierarchy, level) for axis in tree.axes]
    axes = [
        Axis(axis.name, coarsened(axis.hierarchy, depth))
        for axis, depth in zip(tree.axes, depths, strict=True)
    ]
    try:
        leaves = read_leaves(flows, columns, axes, unit=UNPROMISED)
    except IngestError as problem:
        hint = "" if level else "; if it is coarser than the areas, say at which level it is"
        raise InftdaError(f"the public table: {problem}{hint}") from None
    is_spread = any(
        depth < axis.hierarchy.depth for axis, depth in zip(tree.axes, depths, strict=True)
    )
    if not is_spread:
        if totals is not None:
            raise InftdaError(
                "totals only say how a coarser table is spread; this one is as fine as the "
                "areas: leave out the totals, or say the level of the table"
            )
        return StandIn(Truth.of(tree, leaves), "a public table of flows between the same areas")
    weights, words = _weights(tree, depths, totals)
    areas, counts = _spread(
        tree, depths, list(leaves.areas), leaves.counts, weights, np.random.default_rng(seed)
    )
    told = f"a public table of flows by {level}, spread over finer areas {words}"
    return StandIn(Truth.from_leaves(tree, areas, counts), told)


def from_totals(  # noqa: PLR0913 - what a model is made of
    tree: Tree,
    totals: Any,
    *,
    centroids: Path | None = None,
    decay: float | None = None,
    seed: int = 1,
    progress: Progress | None = None,
) -> StandIn:
    """Flows made up so that public totals come out right.

    Args:
        tree: what is to be released: origins and destinations of the same areas.
        totals: a column named after the finest level, `out` and `in`, and, if it is known,
            `within`: the trips that stay in the area, which are part of both.
        centroids: locations of areas; with them flows fall off with distance, without them
            with the levels that both ends share.
        decay: kilometres over which flows fall to 1 / e; a law of commuting by default.
        seed: same seed, same flows.
        progress: called with what is done, how much of it, and how much in all.

    Raises:
        InftdaError: the totals do not fit the areas, or the table has other axes.
    """
    hierarchy = _one_hierarchy(tree)
    random = np.random.default_rng(seed)
    out, into, within = _whole_totals(totals, hierarchy)
    if centroids is not None:
        lon, lat = _located(tree, hierarchy, centroids)
        flows, decay = gravity_flows(
            out - within, into - within, lon, lat, random,
            decay=decay, is_home_free=not within.any(), progress=progress,
        )  # fmt: skip
        how = f"a gravity model that falls to a third over {decay:.3g} km"
    else:
        if decay is not None:
            raise InftdaError("a decay is in kilometres; give the centroids of areas with it")
        flows = match_trips(
            hierarchy, out - within, into - within, random, progress,
            is_home_first=not within.any(),
        )  # fmt: skip
        how = "a gravity model of nested surroundings"
    stay = np.flatnonzero(within).astype(np.int32)
    together = Flows(
        np.concatenate([flows.origin, stay]),
        np.concatenate([flows.destination, stay]),
        np.concatenate([flows.count, within[stay]]),
    )
    kept = "out-, in- and inner totals" if within.any() else "out- and in-totals"
    counts = Truth.from_leaves(tree, [together.origin, together.destination], together.count)
    return StandIn(counts, f"made-up flows with the public {kept} of {len(out):,} areas ({how})")


def coarsened(hierarchy: Hierarchy, depth: int) -> Hierarchy:
    """The first levels of a hierarchy; areas keep their numbers."""
    if depth == hierarchy.depth:
        return hierarchy
    columns = list(hierarchy.level_names[:depth])
    return Hierarchy.read(hierarchy.to_table().select(columns).group_by(columns).aggregate([]))


def _depth_of(axis: str, hierarchy: Hierarchy, level: str | None) -> int:
    if level is None or (axis not in {ORIGIN, DESTINATION} and level not in hierarchy.level_names):
        return hierarchy.depth
    depth = hierarchy.level_of(level)
    if depth == 0:
        raise InftdaError("the public table must have areas, not only one total; name its level")
    return depth


def _weights(tree: Tree, depths: list[int], totals: Any) -> tuple[list[NDArray[np.float64]], str]:
    """Weight of every finest area on each axis, and the rule in words."""
    if totals is None:
        weights = [
            zipf(axis.hierarchy, depth) for axis, depth in zip(tree.axes, depths, strict=True)
        ]
        return weights, "by Zipf's law in the order of their codes"
    hierarchy = _one_hierarchy(tree)
    found = read_area_numbers(totals, hierarchy, (OUT, IN), optional=(WITHIN,))
    return [found[name].astype(np.float64) for name in (OUT, IN)], "by their public totals"


def _spread(  # noqa: PLR0913, PLR0917 - private
    tree: Tree,
    depths: list[int],
    areas: list[NDArray[np.int32]],
    counts: NDArray[np.int64],
    weights: list[NDArray[np.float64]],
    random: np.random.Generator,
) -> tuple[list[NDArray[np.int32]], NDArray[np.int64]]:
    """Axis by axis; what stays at home is set aside before destinations are spread."""
    names = [axis.name for axis in tree.axes]
    aside: tuple[list[NDArray[np.int32]], NDArray[np.int64]] | None = None
    for number, (axis, depth) in enumerate(zip(tree.axes, depths, strict=True)):
        if depth == axis.hierarchy.depth:
            continue
        if axis.name == DESTINATION and _has_home(tree, depths):
            at = names.index(ORIGIN)
            above = axis.hierarchy.ancestor(axis.hierarchy.depth, depth)
            is_within = above[areas[at]] == areas[number]
            share = home_share(depth, axis.hierarchy.depth)
            home = keep_at_home(areas[at], counts, is_within, share, random)
            kept = list(areas)
            kept[number] = areas[at]
            aside = kept, home
            counts = counts - home
        offsets = axis.hierarchy.descendant_offsets(depth, axis.hierarchy.depth)
        areas, counts = spread_axis(areas, counts, number, offsets, weights[number], random)
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


def _one_hierarchy(tree: Tree) -> Hierarchy:
    if not tree.is_od or tree.axes[0].hierarchy != tree.axes[1].hierarchy:
        raise InftdaError(
            "public totals make up flows from origins to destinations of the same areas; for "
            "other tables give a public table to stand in"
        )
    return tree.axes[0].hierarchy


def _whole_totals(
    totals: Any, hierarchy: Hierarchy
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Trips that start, end and stay; whole numbers, of which as many start as end."""
    found = read_area_numbers(totals, hierarchy, (OUT, IN), optional=(WITHIN,))
    out, into = found[OUT], found[IN]
    if not out.any() or not into.any():
        raise InftdaError(f"the totals table has no trips in column {OUT!r} or {IN!r}")
    within = np.round(found.get(WITHIN, np.zeros(len(out)))).astype(np.int64)
    start = apportion(out, round(float(out.sum())))
    # Both ends are often published by different sources: destinations follow origins.
    end = apportion(into, int(start.sum()))
    within = np.minimum(within, np.minimum(start, end))
    return start, end, within


def _located(
    tree: Tree, hierarchy: Hierarchy, path: Path
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Degrees of every finest area; where one is missing, the middle of the smallest around it."""
    known = Gazetteer.of((axis.hierarchy for axis in tree.axes), centroids=path)
    for level in range(hierarchy.depth - 1, -1, -1):
        known.locate(0, level, np.arange(hierarchy.n_areas(level)), known.at(0, level))
    return known.finest[0]
