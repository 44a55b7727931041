"""Contents of the explorer of a page: areas, flows, intervals, locations.

The whole table is embedded and summed up in the browser: two axes are laid out, additional
dimensions are filters. If that would make the page too heavy, finest levels are left out until it
fits, and the page states so.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from inftda.areas.locations import Gazetteer, from_seam
from inftda.pages.html import sentence_case
from inftda.pages.packing import Pack
from inftda.pages.shapes import Shapes
from inftda.publication.manifest import TRIPS
from inftda.publication.measured import CellIntervals
from inftda.publication.release import Release
from inftda.publication.reliability import (
    GRADES,
    UNLISTED,
    WHOLE,
    part_off,
    smallest_usable,
    unknown_intervals,
)
from inftda.tree import DESTINATION, ORIGIN, Areas, Axis, Ints, Marginal, Tree
from inftda.tree.hierarchy import Hierarchy
from inftda.util.tabular import FORMULA, PLAIN_NUMBER

#: Characters of packed data in a page, at most; with all else it stays below 15 MB.
MAX_LETTERS = 13_000_000
#: Cells that have intervals in a page, over all levels: some bytes each.
MAX_INTERVALS: Final = 1_500_000
#: A page opens with no more areas of an axis than this.
FINE_AREAS: Final = 1500
_NO_ROOM: Final = (
    "This page has no room for intervals of these numbers; “inftda query --intervals” has them."
)
#: Cells that a browser can number.
_MAX_NUMBER: Final = 1 << 53
#: Axes that are laid out, as rows and columns.
LAID_OUT: Final = 2

Depths = tuple[int, ...]
#: Longitude and latitude of each area; None where it is not known.
Places = list[tuple[float, float] | None]
Item = TypeVar("Item")


@dataclass(frozen=True)
class Layout:
    """The order of axes in a page: two that are laid out, then those to filter by.

    `order` has the numbers of the axes of the table, those that are laid out first.

    An origin and a destination are laid out wherever they stand in the tree; otherwise the first
    two axes are.
    """

    given: tuple[Axis, ...]
    order: tuple[int, ...]

    @classmethod
    def of(cls, axes: tuple[Axis, ...]) -> "Layout":
        """Origin and destination first, if there are both."""
        names = [axis.name for axis in axes]
        has_trips = {ORIGIN, DESTINATION} <= {*names}
        first = [names.index(ORIGIN), names.index(DESTINATION)] if has_trips else []
        rest = (number for number in range(len(names)) if number not in first)
        return cls(axes, (*first, *rest))

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes in the order of the page."""
        return tuple(self.arranged(self.given))

    @property
    def has_trips(self) -> bool:
        """Whether the table has origins and destinations."""
        return {ORIGIN, DESTINATION} <= {axis.name for axis in self.axes}

    @property
    def is_shared(self) -> bool:
        """Whether rows and columns are the same areas."""
        first = self.axes[:LAID_OUT]
        return len(first) == LAID_OUT and first[0].hierarchy == first[1].hierarchy

    def arranged(self, items: Sequence[Item]) -> list[Item]:
        """Items of all axes of the tree, in the order of the page."""
        return [items[number] for number in self.order]

    def key(self, depths: Sequence[int]) -> str:
        """Key of a level of each axis of the tree in the data of the page."""
        return ",".join(map(str, self.arranged(depths)))

    def number(self, depths: Sequence[int], areas: Sequence[NDArray[Any]]) -> Ints:
        """Number of each cell in the page, where the last axis runs fastest."""
        return Marginal(self.axes, tuple(self.arranged(depths))).numbers(self.arranged(areas))


@dataclass(frozen=True)
class Table:
    """A table to explore: its leaves, and beside it the true ones on confidential pages only.

    Attributes:
        axes: of the table.
        areas: numbers of finest areas on each axis.
        value: the released flows.
        truth: areas and counts of the true leaves; None on public pages.
        keeps_formulas: whether downloads keep cells that a spreadsheet would run as formulas.
        estimated: estimates beside the published numbers; None if there are none.
        what: the counted things, in the plural.
        is_series: whether the last axis is the edition: numbers of editions are never added up.
    """

    axes: tuple[Axis, ...]
    areas: Areas
    value: Ints
    truth: tuple[Areas, Ints] | None = None
    keeps_formulas: bool = False
    estimated: CellIntervals | None = None
    what: str = TRIPS
    is_series: bool = False

    def cells(self, depths: Sequence[int]) -> tuple[Areas, dict[str, Ints]]:
        """Areas of all cells of a level that are not empty; released and true sums."""
        marginal, value = Marginal(self.axes, tuple(depths)), self.value
        if self.truth is None:
            areas, value = marginal.sum_up(self.areas, value)
            return areas, {"value": value}
        here, true = self.truth
        leaves = [np.concatenate(pair) for pair in zip(self.areas, here, strict=True)]
        areas, shown = marginal.sum_up(leaves, np.concatenate([value, np.zeros_like(true)]))
        _, counted = marginal.sum_up(leaves, np.concatenate([np.zeros_like(value), true]))
        return areas, {"value": shown, "truth": counted}


@dataclass(frozen=True)
class Quality:
    """Intervals, totals and notes on the errors of published numbers.

    Attributes:
        totals: measured marginal totals of all areas, with their intervals, by level on each axis.
        uses: the smallest usable count in words, by level on each axis; only where not all numbers
            can be used. Of a series one text for each edition; else one.
        intervals: of the true numbers, cell by cell, for levels on each axis; those of
            totals are among them.
        unknown: why other numbers have no interval, in a sentence; of each edition.
        summed: levels on each axis whose numbers are sums that are no level of the tree.
    """

    totals: Mapping[Depths, CellIntervals] = field(default_factory=dict)
    uses: Mapping[Depths, Sequence[str]] = field(default_factory=dict)
    intervals: Mapping[Depths, CellIntervals] = field(default_factory=dict)
    unknown: Sequence[str] = ("",)
    summed: frozenset[Depths] = frozenset()

    @classmethod
    def of(cls, release: Release, *, room: int = MAX_INTERVALS) -> "Quality":
        """The quality of a release; intervals of no more numbers than a page has room for."""
        totals = release_totals(release)
        return cls(
            totals,
            uses={use.level.depths: [use.describe()] for use in release.uses if not use.is_all},
            intervals=_release_intervals(release, room) | totals,
            unknown=[unknown_intervals(release) or _NO_ROOM],
            summed=summed_levels(release.tree),
        )


def release_totals(release: Release) -> dict[Depths, CellIntervals]:
    """Published marginal totals, by level on each axis."""
    found: dict[Depths, CellIntervals] = {}
    for depths in _every_level(release.tree):
        used = [number for number, depth in enumerate(release.tree.coarsest(depths)) if depth]
        if len(used) != 1:
            continue
        known = release.totals_of(release.tree.axes[used[0]].name).get(depths[used[0]])
        if known is not None:
            areas = [np.zeros(len(known.flow), np.int32) for _ in depths]
            areas[used[0]] = np.arange(len(known.flow), dtype=np.int32)
            ends = release.intervals().of(depths, tuple(areas), known.flow)
            found[depths] = CellIntervals(tuple(areas), known.flow, *ends)
    return found


def summed_levels(tree: Tree) -> frozenset[Depths]:
    """Levels on each axis whose numbers are sums that are no level of the tree."""
    return frozenset(at for at in _every_level(tree) if tree.coarsest(at) not in tree.on_tree)


def _every_level(tree: Tree) -> Iterator[Depths]:
    return product(*(range(axis.hierarchy.depth + 1) for axis in tree.axes))


def _release_intervals(release: Release, room: int) -> dict[Depths, CellIntervals]:
    """Intervals of all levels for which the release has them.

    Without measurements only a total that is public has one.
    """
    if not release.has_measurements:
        if not release.manifest.plan.unit.root_is_public:
            return {}
        depths, total = release.tree.levels[0].depths, np.array([release.total])
        return {depths: CellIntervals(tuple(np.zeros((len(depths), 1), np.int32)), *[total] * 3)}
    known, leaves = release.intervals(), release.leaves()
    found: dict[Depths, CellIntervals] = {}
    for depths in _every_level(release.tree):
        marginal = Marginal(release.tree.axes, depths)
        if marginal.n_nodes > _MAX_NUMBER:
            continue
        areas, value = marginal.sum_up(*leaves)
        if len(value) > room:
            continue
        found[depths] = CellIntervals(areas, value, *known.of(depths, areas, value))
        room -= len(value)
    return found


def pack_explorer(
    table: Table, places: Gazetteer, shapes: Shapes | None, quality: Quality
) -> tuple[str, Depths]:
    """Packed data of the explorer, and the finest level on each axis that fits into a page."""
    layout = Layout.of(table.axes)
    depths = tuple(axis.hierarchy.depth for axis in table.axes)
    while True:
        coarser = _coarser(layout, depths, is_series=table.is_series)
        if coarser is None or Marginal(table.axes, depths).n_nodes <= _MAX_NUMBER:
            packed = _packed(layout, table, places, shapes, quality, depths)
            if coarser is None or len(packed) <= MAX_LETTERS:
                return packed, depths
        depths = coarser


def _coarser(layout: Layout, depths: Depths, *, is_series: bool) -> Depths | None:
    """Drop a level where there are most; at last, sum up additional dimensions. None at the end."""
    last = len(depths) - 1 if is_series else None
    deepest = max(depths)
    if deepest > 1:
        return tuple(depth - 1 if depth == deepest else depth for depth in depths)
    for number in reversed(layout.order[LAID_OUT:]):
        if depths[number] and number != last:
            return tuple(0 if i == number else depth for i, depth in enumerate(depths))
    return None


def _packed(  # noqa: PLR0913, PLR0917 - private
    layout: Layout,
    table: Table,
    places: Gazetteer,
    shapes: Shapes | None,
    quality: Quality,
    depths: Depths,
) -> str:
    pack = Pack(_header(table, layout, places, quality, depths))
    areas, columns = table.cells(depths)
    pack.add_cells("flows", layout.number(depths, areas), **columns)
    for at, ends in quality.intervals.items():
        if _is_within(at, depths):
            _add_intervals(pack, "intervals", layout, at, ends)
    for at, known in quality.totals.items():
        if _is_within(at, depths):
            number = layout.number(at, known.areas)
            pack.add_cells(f"totals-{layout.key(at)}", number, value=known.value)
    if table.estimated is not None:
        _add_estimated(pack, layout, table.estimated, depths)
    if places.finest:
        pack.header["places"] = _places(layout, places, depths)
    if shapes is not None and shapes.level <= depths[shapes.axis]:
        pack.add_shapes(shapes, layout.order.index(shapes.axis))
    return pack.text()


def _add_estimated(pack: Pack, layout: Layout, estimated: CellIntervals, depths: Depths) -> None:
    """Estimates down to the finest level of the page, with intervals if that is their own."""
    areas, value = Marginal(layout.given, depths).sum_up(estimated.areas, estimated.value)
    pack.add_cells("estimated", layout.number(depths, areas), value=value)
    if depths == tuple(axis.hierarchy.depth for axis in layout.given):
        _add_intervals(pack, "estimated-intervals", layout, depths, estimated)


def _add_intervals(pack: Pack, name: str, layout: Layout, at: Depths, ends: CellIntervals) -> None:
    low = np.maximum(ends.low, 0)
    width = np.maximum(ends.high, low) - low
    number = layout.number(at, ends.areas)
    pack.add_cells(f"{name}-{layout.key(at)}", number, low=low, width=width)


def _header(
    table: Table, layout: Layout, places: Gazetteer, quality: Quality, depths: Depths
) -> dict[str, Any]:
    is_shared = layout.is_shared
    return {
        "confidential": table.truth is not None,
        "formulas": None
        if table.keeps_formulas
        else {"formula": FORMULA.pattern, "number": PLAIN_NUMBER.pattern},
        "grades": _grades(),
        "unlisted": UNLISTED,
        "shared": is_shared,
        "words": _words(layout, table.what),
        "axes": [
            # Both ends of a trip usually have the same areas; they are in the page once.
            {
                **_titles(layout, axis),
                "levels": None
                if is_shared and index == 1
                else _levels(axis.hierarchy, number, places, depths[number]),
            }
            for index, (number, axis) in enumerate(zip(layout.order, layout.axes, strict=True))
        ],
        "graded": any(map(any, quality.intervals.keys() - quality.totals.keys())),
        "unknown": list(quality.unknown),
        "summed": [layout.key(at) for at in sorted(quality.summed) if _is_within(at, depths)],
        "opens": _opens(layout, quality, depths, is_series=table.is_series),
        "editions": layout.order.index(len(depths) - 1) if table.is_series else None,
        "uses": {
            layout.key(at): [words and f"{sentence_case(words)}." for words in texts]
            for at, texts in quality.uses.items()
            if _is_within(at, depths)
        },
    }


def _grades() -> list[dict[str, Any]]:
    """The grades of numbers: limits of the relative error, and their labels."""
    below, found = 0, []
    for name, part in GRADES.items():
        most = None if math.isinf(part) else round(100 * part)
        label = (
            f"\N{PLUS-MINUS SIGN}{below} to {most} %"
            if below
            else f"within \N{PLUS-MINUS SIGN}{most} %"
        )
        if most is None:
            label = f"beyond \N{PLUS-MINUS SIGN}{below} %"
        found.append({"name": name, "upTo": most and part, "label": label})
        below = most or below
    return found


def _opens(layout: Layout, quality: Quality, depths: Depths, *, is_series: bool) -> Depths:
    """Levels at which a page opens, of the axes that are laid out: the finest that can be used.

    There, the areas are not too many, and nearly all counted entries are in usable numbers.
    Other axes are summed up; of a series it is the last edition.
    """
    axes = layout.axes[:LAID_OUT]
    most = [
        max(
            (level for level in range(1, depth + 1) if axis.hierarchy.n_areas(level) <= FINE_AREAS),
            default=1,
        )
        for axis, depth in zip(axes, layout.arranged(depths), strict=False)
    ]
    for finest in range(max(most), 1, -1):
        levels = tuple(min(finest, level) for level in most)
        at = [0] * (len(depths) - is_series) + [1] * is_series
        for number, level in zip(layout.order, levels, strict=False):
            at[number] = level
        known = quality.intervals.get(tuple(at))
        if known is None:
            return levels
        smallest = smallest_usable(known.value, part_off(*known[1:]) > GRADES["C"])
        is_usable = known.value >= (math.inf if smallest is None else smallest)
        if known.value[is_usable].sum() >= WHOLE * known.value.sum():
            return levels
    return (1,) * len(most)


def _words(layout: Layout, what: str) -> dict[str, str]:
    """Words of the explorer for this kind of table."""
    counted = {"unit": sentence_case(what), "units": what}
    if layout.has_trips:
        return {
            "row": "From",
            "column": "To",
            "from": "From",
            "to": "to",
            "cells": "flows",
            **counted,
        }
    first, second, *_ = [*(axis.name for axis in layout.axes), ""]
    ends = {"row": first, "column": second, "from": f"{first}:", "to": f"· {second}:"}
    return {**ends, "cells": "cells", **counted}


def _titles(layout: Layout, axis: Axis) -> dict[str, str]:
    ends = {
        ORIGIN: ("From (origin)", "All origins"),
        DESTINATION: ("To (destination)", "All destinations"),
    }
    is_end = layout.has_trips and axis.name in ends
    title, whole = ends[axis.name] if is_end else (axis.name, "All")
    return {"name": axis.name, "title": title, "whole": whole}


def _levels(
    hierarchy: Hierarchy, number: int, places: Gazetteer, depth: int
) -> list[dict[str, Any]]:
    """Levels of an axis down to the finest that the page holds."""
    return [
        {
            "name": hierarchy.level_name(level),
            "codes": hierarchy.codes(level).to_pylist(),
            "names": places.names.get((number, level)),
            "rank": _rank(hierarchy, level),
            "children": np.diff(hierarchy.child_offsets(level - 1)).tolist(),
        }
        for level in range(1, depth + 1)
    ]


def _rank(hierarchy: Hierarchy, level: int) -> list[int] | None:
    """Place of each area of a level in the order of the areas table; None if areas are in order."""
    order = hierarchy.as_read(level)
    is_ordered = (order == np.arange(len(order))).all()
    return None if is_ordered else np.argsort(order).tolist()


def _is_within(depths: Sequence[int], most: Sequence[int]) -> bool:
    return all(at <= finest for at, finest in zip(depths, most, strict=True))


def _places(layout: Layout, places: Gazetteer, depths: Depths) -> list[list[Places] | None]:
    """Locations of the areas of every level in the page."""
    found: list[list[Places] | None] = []
    for number in layout.order[:LAID_OUT]:
        if not places.has([number]):
            found.append(None)
            continue
        found.append([located(places, number, level) for level in range(depths[number] + 1)])
    return found


def located(places: Gazetteer, axis: int, level: int) -> Places:
    """Locations of the areas of a level, on a map cut at its seam."""
    lon, lat = places.at(axis, level)
    pairs = zip(from_seam(lon, places.seam).tolist(), lat.tolist(), strict=True)
    return [None if math.isnan(x) else (round(x, 5), round(y, 5)) for x, y in pairs]
