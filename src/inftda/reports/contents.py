"""What the explorer of a page holds: areas, flows, typical errors, locations.

A table with two axes or more is embedded whole and summed up in the browser: two axes are laid
out, further ones filter what is seen. If that would make the page too heavy, the finest level is
left out (the page says so) until it fits. Tables with one axis get their largest cells, level by
level, and so do those with too many axes to number their cells.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inftda.evaluation.cells import MAX_CELLS, Cells, LevelSums
from inftda.evaluation.measures import totals_across
from inftda.evaluation.typical import TypicalErrors
from inftda.hierarchy import Hierarchy
from inftda.inference.measured import EstimatedLeaves
from inftda.lattice import coarsest_equal, tables_on_tree
from inftda.noise.quantiles import half_width
from inftda.publication.release import Release
from inftda.publication.tables import Areas
from inftda.publication.trust import sums_up_many, unmeasured_totals
from inftda.reports.intervals import Ends, release_intervals
from inftda.reports.labels import Labels
from inftda.reports.layout import LAID_OUT, Layout
from inftda.reports.packing import Pack, varints, zigzag
from inftda.reports.shapes import Shapes
from inftda.tree import Axis, Tree, TreeLevel

#: Characters of packed data in a page, at most; with all else it stays below 15 MB.
MAX_LETTERS = 13_000_000
#: Cells of a table that is shown level by level: all up to here, else the largest of a level.
MAX_PLAIN_CELLS, LARGEST_CELLS = 60_000, 2_000


@dataclass(frozen=True)
class Table:
    """A table to explore: its leaves, and beside it the true ones on confidential pages only.

    Attributes:
        tree: axes of the table.
        areas: numbers of finest areas on each axis.
        value: the released flows.
        truth: areas and counts of the true leaves; None on public pages.
        keeps_formulas: whether downloads leave what a spreadsheet would run as it is.
        estimated: estimates beside what was published; None if there are none.
    """

    tree: Tree
    areas: Areas
    value: NDArray[np.int64]
    truth: tuple[Areas, NDArray[np.int64]] | None = None
    keeps_formulas: bool = False
    estimated: EstimatedLeaves | None = None

    def cells(
        self, depths: Sequence[int]
    ) -> tuple[tuple[NDArray[np.int64], ...], NDArray[np.int64], NDArray[np.int64] | None]:
        """Areas, released and true sums of all cells of a level that are not empty."""
        sums = LevelSums(self.tree, depths)
        released = sums.of(self.areas, self.value)
        if self.truth is None:
            return sums.areas(released.number), released.value, None
        true = sums.of(*self.truth)
        number = np.union1d(released.number, true.number)
        return sums.areas(number), _at(released, number), _at(true, number)


@dataclass(frozen=True)
class Contents:
    """Packed data of a page.

    Attributes:
        packed: as it is in the page.
        depths: the finest level on each axis that the page holds.
    """

    packed: str
    depths: tuple[int, ...]


@dataclass(frozen=True)
class Quality:
    """What is known of the errors of published numbers.

    Attributes:
        typical: errors by level and size; None if they cannot be simulated.
        measured: totals that were measured across the tree: level on each axis to how far a
            measured total is off at most (95 %), and the totals of all areas.
        noise: levels on each axis of which most published numbers are noise.
        intervals: what true numbers lie between, cell by cell, for levels on each axis.
        is_unmeasured: whether nothing tells how good long sums across the tree are.
    """

    typical: TypicalErrors | None = None
    measured: Mapping[tuple[int, ...], tuple[int, list[int]]] = field(default_factory=dict)
    noise: tuple[tuple[int, ...], ...] = ()
    is_unmeasured: bool = False
    intervals: Mapping[tuple[int, ...], Ends] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        release: Release,
        typical: TypicalErrors | None,
        noisy: Collection[TreeLevel] = (),
    ) -> "Quality":
        """What a release tells beside the simulation, and which of its levels are noise."""
        noise = tuple(level.depths for level in noisy)
        if not release.has_totals:
            is_unmeasured = bool(unmeasured_totals(release.tree, release.manifest.plan))
            return cls(
                typical,
                noise=noise,
                is_unmeasured=is_unmeasured,
                intervals=release_intervals(release),
            )
        measured = {}
        for number, axis, depth in totals_across(release.tree):
            depths = tuple(depth if i == number else 0 for i in range(len(release.tree.axes)))
            values, sigma = release.measured_totals(axis, depth)
            measured[depths] = half_width(sigma), values.tolist()
        return cls(typical, measured, noise, intervals=release_intervals(release))


def pack_contents(
    table: Table, labels: Labels, shapes: Shapes | None, quality: Quality
) -> Contents:
    """Pack what the explorer needs, at the finest level that fits."""
    finest = tuple(axis.hierarchy.depth for axis in table.tree.axes)
    depths: tuple[int, ...] | None = finest if len(finest) >= LAID_OUT else None
    while depths is not None:
        coarser = _coarser(depths)
        if TreeLevel(0, None, table.tree.axes, depths).n_nodes <= MAX_CELLS:
            packed = _explorer(table, labels, shapes, quality, depths)
            if len(packed) <= MAX_LETTERS or coarser is None:
                return Contents(packed, depths)
        depths = coarser
    return Contents(_plain(table, labels, quality), finest)


def _coarser(depths: tuple[int, ...]) -> tuple[int, ...] | None:
    """One level less on the axis that has most of them; None if there is none to spare."""
    deepest = max(depths)
    if deepest == 1:
        return None
    return tuple(depth - 1 if depth == deepest else depth for depth in depths)


def _explorer(
    table: Table,
    labels: Labels,
    shapes: Shapes | None,
    quality: Quality,
    depths: tuple[int, ...],
) -> str:
    layout = Layout.of(table.tree)
    pack = Pack(_header(table, layout, labels, quality, depths))
    areas, value, truth = table.cells(depths)
    n_rows = layout.axes[0].hierarchy.n_areas(layout.arranged(depths)[0])
    pack.add_flows(n_rows, layout.arranged(areas), value, truth)
    for at, ends in quality.intervals.items():
        if _is_within(at, depths):
            _add_ends(pack, "intervals", layout, at, ends)
    if table.estimated is not None:
        _add_estimated(pack, layout, table.estimated, depths)
    if labels.places:
        _add_places(pack, layout, labels, depths)
    if shapes is not None and shapes.level <= depths[shapes.axis]:
        numbers = shapes.numbers()
        pack.header["shapes"] = {
            "axis": layout.index_of(shapes.axis),
            "level": shapes.level,
            "areas": shapes.areas,
            "n": len(numbers),
            "scale": shapes.scale,
        }
        pack.add("shapes", varints(zigzag(numbers)))
    return pack.text()


def _add_estimated(
    pack: Pack, layout: Layout, estimated: EstimatedLeaves, depths: tuple[int, ...]
) -> None:
    """Estimates down to the finest level of the page, with intervals if that is their own."""
    sums = LevelSums(layout.tree, depths)
    cells = sums.of(estimated.areas, estimated.value)
    n_rows = layout.axes[0].hierarchy.n_areas(layout.arranged(depths)[0])
    areas = layout.arranged(sums.areas(cells.number))
    pack.add_flows(n_rows, areas, cells.value, name="estimated")
    if depths == tuple(axis.hierarchy.depth for axis in layout.tree.axes):
        ends = Ends(estimated.areas, estimated.low, estimated.high)
        _add_ends(pack, "estimated-intervals", layout, depths, ends)


def _add_ends(pack: Pack, name: str, layout: Layout, at: tuple[int, ...], ends: Ends) -> None:
    key = layout.key(at)
    pack.header.setdefault(name, {})[key] = len(ends.low)
    pack.add_intervals(f"{name}-{key}", *ends.numbered(layout, at))


def _plain(table: Table, labels: Labels, quality: Quality) -> str:
    depths = tuple(axis.hierarchy.depth for axis in table.tree.axes)
    layout = Layout(table.tree, tuple(range(len(depths))))
    header = _header(table, layout, labels, quality, depths)
    levels = [level for level in table.tree.levels[1:] if level.n_nodes <= MAX_CELLS]
    # Totals of every axis, which are asked for first, also where the tree does not have them.
    for number, _, depth in totals_across(table.tree):
        one_way = tuple(depth if i == number else 0 for i in range(len(depths)))
        levels.append(TreeLevel(0, None, table.tree.axes, one_way))
    held = [(level, table.cells(level.depths)) for level in levels]
    most = LARGEST_CELLS
    if sum(len(value) for _, (_, value, _) in held) <= MAX_PLAIN_CELLS:
        most = MAX_PLAIN_CELLS
    header["levels"] = []
    for level, (areas, value, truth) in held:
        axes = [number for number, depth in enumerate(level.depths) if depth]
        top = np.argsort(-np.abs(value), kind="stable")[:most]
        columns = [areas[number][top] for number in axes] + [value[top]]
        columns += [] if truth is None else [truth[top]]
        header["levels"].append(
            {
                "name": level.name,
                "depths": level.depths,
                "axes": axes,
                "n": len(value),
                "rows": np.stack(columns, axis=1).tolist(),
            }
        )
    return Pack(header).text()


def _header(
    table: Table, layout: Layout, labels: Labels, quality: Quality, depths: tuple[int, ...]
) -> dict[str, Any]:
    errors, is_shared = quality.typical, layout.is_shared
    across = dict.fromkeys(_across(table.tree, depths))
    unknown = [at for at in across if quality.is_unmeasured and sums_up_many(table.tree, at)]
    return {
        "confidential": table.truth is not None,
        "formulas": table.keeps_formulas,
        "shared": is_shared,
        "words": _words(layout),
        "axes": [
            # Both ends of a trip usually have the same areas; they are in the page once.
            {
                **_titles(layout, axis),
                "levels": None
                if is_shared and index == 1
                else _levels(axis.hierarchy, number, labels, depths[number]),
            }
            for index, (number, axis) in enumerate(zip(layout.order, layout.axes, strict=True))
        ],
        "errors": None if errors is None else _errors(errors, layout, unknown, depths),
        "totals": {
            layout.key(at): [half, values]
            for at, (half, values) in quality.measured.items()
            if _is_within(at, depths)
        },
        "across": [layout.key(at) for at in across],
        "unmeasured": [layout.key(at) for at in unknown],
        "noise": [layout.key(at) for at in quality.noise if _is_within(at, depths)],
    }


def _words(layout: Layout) -> dict[str, str]:
    """How the explorer speaks of this kind of table."""
    if layout.has_trips:
        return {
            "row": "From",
            "column": "To",
            "from": "From",
            "to": "to",
            "unit": "Trips",
            "units": " trips",
            "cells": "pairs",
        }
    names = [axis.name for axis in layout.axes]
    first, second = (names[i] if i < len(names) else "" for i in range(LAID_OUT))
    return {
        "row": first,
        "column": second,
        "from": f"{first}:",
        "to": f"· {second}:",
        "unit": "Count",
        "units": "",
        "cells": "cells",
    }


def _titles(layout: Layout, axis: Axis) -> dict[str, str]:
    ends = {
        "origin": ("From (origin)", "All origins"),
        "destination": ("To (destination)", "All destinations"),
    }
    is_end = layout.has_trips and axis.name in ends
    title, whole = ends[axis.name] if is_end else (axis.name, "All")
    return {"name": axis.name, "title": title, "whole": whole}


def _levels(hierarchy: Hierarchy, number: int, labels: Labels, depth: int) -> list[dict[str, Any]]:
    """Levels of an axis down to the finest that the page holds."""
    return [
        {
            "name": hierarchy.level_name(level),
            "codes": hierarchy.codes(level).to_pylist(),
            "names": labels.names.get((number, level)),
            "children": np.diff(hierarchy.child_offsets(level - 1)).tolist(),
        }
        for level in range(1, depth + 1)
    ]


def _errors(
    errors: TypicalErrors,
    layout: Layout,
    unknown: Collection[tuple[int, ...]],
    depths: tuple[int, ...],
) -> dict[str, list[list[float]]]:
    """Level to its size classes: smallest number, median, 95 % point, share of false ones.

    Those of unknown ones are left out, sums across the tree where nothing was measured: there
    simulated errors hold for as few as three in five of the largest numbers.
    """
    return {
        layout.key(level.depths): [
            [entry.low, entry.median, entry.p95, round(entry.false, 3)] for entry in level.classes
        ]
        for level in errors.levels
        if _is_within(level.depths, depths) and level.depths not in unknown
    }


def _across(tree: Tree, depths: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Levels on each axis whose numbers are sums across the tree."""
    on_tree = tables_on_tree(tree)
    equal = [coarsest_equal(axis) for axis in tree.axes]
    for at in product(*(range(depth + 1) for depth in depths)):
        if tuple(equal[axis][depth] for axis, depth in enumerate(at)) not in on_tree:
            yield at


def _is_within(depths: Sequence[int], most: Sequence[int]) -> bool:
    return all(at <= finest for at, finest in zip(depths, most, strict=True))


def _add_places(pack: Pack, layout: Layout, labels: Labels, depths: tuple[int, ...]) -> None:
    """Locations of the finest areas the page holds: the mean over the areas in them."""
    pack.header["places"] = [None] * LAID_OUT
    for index, number in enumerate(layout.order[:LAID_OUT]):
        if number not in labels.places:
            continue
        lon, lat = labels.places[number]
        hierarchy = layout.tree.axes[number].hierarchy
        above = hierarchy.ancestor(hierarchy.depth, depths[number])
        known = ~np.isnan(lon)
        n = hierarchy.n_areas(depths[number])
        weight = np.bincount(above[known], minlength=n)
        with np.errstate(invalid="ignore"):
            means = [np.bincount(above[known], at[known], n) / weight for at in (lon, lat)]
        pack.header["places"][index] = f"places{index}"
        pack.add(f"places{index}", np.concatenate(means).astype("<f4").tobytes())


def _at(cells: Cells, number: NDArray[np.int64]) -> NDArray[np.int64]:
    """Values of cells by number, 0 for those that are not there; `number` holds all of them."""
    value = np.zeros(len(number), np.int64)
    value[np.searchsorted(number, cells.number)] = cells.value
    return value
