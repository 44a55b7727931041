"""A public stand-in for the confidential table, on which settings are compared.

Either a table that is public already (an older one, or a coarser one, which is spread over the
finer areas), or flows made up so that they have public totals. How it was made is kept in
words, because the figures of a preview hold for its stand-in only.

A coarse table is spread over finer areas by a rule that is stated and needs nothing else:

- An area's trips are shared by the finer areas in it by their public totals if there are any,
  else by Zipf's law: the second in the order of codes gets half as many as the first, the third
  a third.
- Of trips that stay in a coarse area, the share of the nested model
  (`inftda.planning.nested_gravity`) stays in the finer area where it starts.
- Trips of a coarse flow go in equal steps, from a random start: each number is less than 1 from
  its share, and coarse flows stay exactly as they are.

This module must never get the confidential table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from inftda.errors import InftdaError, IngestError
from inftda.planning.nested_gravity import apportion, match_trips, share_that_stays
from inftda.reading import Columns, read_leaves
from inftda.reading.columns import NO_GUARANTEE
from inftda.reading.truth import Truth
from inftda.tree import DESTINATION, ORIGIN, Axis, Tree
from inftda.tree.hierarchy import Hierarchy
from inftda.util.screen import Progress
from inftda.util.tabular import distinct, find_texts, read_strings

Numbers = NDArray[np.int64] | NDArray[np.float64]

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
        tree: of the release to come.
        flows: the public table, anything a release takes.
        level: name of the level of its origins and destinations, if it is coarser than the
            areas; then it is spread.
        totals: public totals of the finest areas, to spread by.
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
        if totals is not None:
            raise InftdaError(
                "totals only say how a coarser table is spread; this one is as fine as the "
                "areas: leave out the totals, or say the level of the table"
            )
        words = "a public table of flows between the same areas"
        return StandIn(Truth.of(tree, leaves), words)
    weights, words = _weights(tree, depths, totals)
    areas, counts = _spread(
        tree, depths, list(leaves.areas), leaves.value, weights, np.random.default_rng(seed)
    )
    told = f"a public table of flows by {level}, spread over finer areas {words}"
    return StandIn(Truth.from_leaves(tree, areas, counts), told)


def from_totals(
    tree: Tree, totals: Any, *, seed: int = 1, progress: Progress | None = None
) -> StandIn:
    """Make up flows with given public totals; see `inftda.planning.nested_gravity`.

    Args:
        tree: of the release to come: origins and destinations of the same areas.
        totals: a column named after the finest level, `out` and `in`, and, if it is known,
            `within`: the trips that stay in the area, which are part of both.
        seed: same seed, same flows.
        progress: called with the name of the step, the work done and the work in all.
    """
    hierarchy = _one_hierarchy(tree)
    out, into, within = _whole_totals(totals, hierarchy)
    *ends, count = match_trips(
        hierarchy, out - within, into - within, np.random.default_rng(seed), progress,
        is_home_first=not within.any(),
    )  # fmt: skip
    stay = np.flatnonzero(within).astype(np.int32)
    areas = [np.concatenate([end, stay]) for end in ends]
    counts = np.concatenate([count, within[stay]])
    kept = "out-, in- and inner totals" if within.any() else "out- and in-totals"
    words = (
        f"made-up flows with the public {kept} of {len(out):,} areas (a gravity model of nested "
        "surroundings)"
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


def _weights(tree: Tree, depths: list[int], totals: Any) -> tuple[list[NDArray[np.float64]], str]:
    """Weight of every finest area on each axis, and the rule in words."""
    if totals is None:
        weights = [
            zipf(axis.hierarchy, depth) for axis, depth in zip(tree.axes, depths, strict=True)
        ]
        return weights, "by Zipf's law in the order of their codes"
    found = read_totals(totals, _one_hierarchy(tree))
    return [found[name].astype(np.float64) for name in (OUT, IN)], "by their public totals"


def _spread(  # noqa: PLR0913, PLR0917 - private
    tree: Tree,
    depths: list[int],
    areas: list[NDArray[np.int32]],
    counts: NDArray[np.int64],
    weights: list[NDArray[np.float64]],
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
    found = read_totals(totals, hierarchy)
    out, into = found[OUT], found[IN]
    if not out.any() or not into.any():
        raise InftdaError(f"the totals table has no trips in column {OUT!r} or {IN!r}")
    within = np.round(found.get(WITHIN, np.zeros(len(out)))).astype(np.int64)
    start = apportion(out, round(float(out.sum())))
    # Both ends are often published by different sources: destinations follow origins.
    end = apportion(into, int(start.sum()))
    within = np.minimum(within, np.minimum(start, end))
    return start, end, within


def spread_axis(  # noqa: PLR0913, PLR0917 - what is spread, over what, how
    areas: Sequence[NDArray[np.int32]],
    counts: NDArray[np.int64],
    number: int,
    offsets: NDArray[np.int32],
    weights: NDArray[np.float64],
    random: np.random.Generator,
) -> tuple[list[NDArray[np.int32]], NDArray[np.int64]]:
    """Cells with one axis taken from coarse to finest areas, trip by trip in equal steps.

    Args:
        areas: for each axis, the area of each cell.
        counts: of each cell.
        number: of the axis that is spread.
        offsets: finest areas of each coarse one.
        weights: of each finest area; where all are 0, they count alike.
        random: where the steps of each cell start.
    """
    sums = np.add.reduceat(weights, offsets[:-1])
    weights = np.where(np.repeat(sums, np.diff(offsets)) > 0, weights, 1.0)
    before = np.concatenate([[0.0], np.cumsum(weights)])
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


def read_totals(source: Any, areas: Hierarchy) -> dict[str, Numbers]:
    """Columns `out`, `in` and perhaps `within`: a number for each finest area, in their order.

    Args:
        source: a file or table with a column named after the finest level.
        areas: the areas; the table must have a row for each, and no other.

    Returns:
        Each column: whole numbers if all are written so.
    """
    finest = areas.level_name(areas.depth)
    if isinstance(source, Mapping):
        source = pa.table(dict(source))
    if isinstance(source, pa.Table):  # decimal numbers are totals here, and not codes
        is_decimal = [pa.types.is_floating(column.type) for column in source.columns]
        columns = zip(source.column_names, source.columns, is_decimal, strict=True)
        source = pa.table({name: col.cast(pa.string()) if d else col for name, col, d in columns})
    table = read_strings(source, what="totals table", error=InftdaError)
    for name in (finest, OUT, IN):
        if name not in table.column_names:
            raise InftdaError(
                f"the totals table has no column {name!r}; it must have {finest}, {OUT}, {IN}, "
                f"and has {', '.join(table.column_names)}"
            )
    row = find_texts(areas.codes(areas.depth), table.column(finest).combine_chunks())
    if (row < 0).any() or table.num_rows != len(row):
        raise InftdaError(
            f"the totals table must have one row for each of the {len(row):,} areas of level "
            f"{finest!r}, and no other"
        )
    wanted = [name for name in (OUT, IN, WITHIN) if name in table.column_names]
    return {name: _numbers(table.column(name).combine_chunks().take(row), name) for name in wanted}


def _numbers(cells: pa.StringArray, name: str) -> Numbers:
    try:
        whole = not pc.any(pc.match_substring_regex(cells, "[.eE]")).as_py()
        numbers = np.asarray(cells.cast(pa.int64() if whole else pa.float64()))
    except pa.ArrowInvalid:
        raise InftdaError(f"column {name!r} of the totals table must be numbers") from None
    if cells.null_count or not np.isfinite(numbers).all() or (numbers < 0).any():
        raise InftdaError(f"column {name!r} of the totals table must be numbers from 0 up")
    return numbers
