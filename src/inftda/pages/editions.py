"""Pages of several editions: what changed between two, and all of a series."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import pyarrow as pa

from inftda.areas.locations import Gazetteer
from inftda.editions.change import FELL, ROSE, UNKNOWN, Changes, changes
from inftda.editions.common import read_crosswalk
from inftda.editions.series import Series
from inftda.estimates import Estimate, open_estimate
from inftda.evaluation.stated import default_title
from inftda.files import check_file
from inftda.groupings import asked_for
from inftda.options import Centroids, Names, Option, Outlines, Zones, documented, pairs
from inftda.options import names as texts
from inftda.pages.html import asset, render, write_page
from inftda.pages.maps import AreaMap, Curve
from inftda.pages.shapes import known_shapes, read_shapes
from inftda.publication.query import FLOW
from inftda.publication.release import Release, open_release
from inftda.publication.trust import NOT_PRIVATE
from inftda.tables import find_texts
from inftda.tree import DESTINATION, ORIGIN

#: Rows of a list, lines on a map, small curves of an axis, at most.
MOST_ROWS, MOST_LINES, MOST_CURVES = 12, 80, 24
#: Shades of areas on a map.
_SHADES: Final = 5
_STYLE: Final = "style.css charts.css editions.css"
#: What totals of an axis are called.
_TOTALS: Final = {ORIGIN: "By where they start", DESTINATION: "By where they end"}


class _Places:
    """Names and places of the areas of one release, and numbers in terms of them.

    Args:
        release: the release.
        files: names, locations and outlines, where there are any.
    """

    def __init__(self, release: Release, files: Sequence[Path | None]) -> None:
        names, centroids, geojson = files
        self.tree = release.tree
        self._known = Gazetteer.of(
            (axis.hierarchy for axis in self.tree.axes), names=names, centroids=centroids
        )
        self._shapes = (
            known_shapes(self._known) if geojson is None else read_shapes(self._known, geojson)
        )

    def map(self, axis: int) -> AreaMap | None:
        """A map of the finest areas of an axis."""
        depth = self.tree.axes[axis].hierarchy.depth
        return AreaMap.of(self._known, self._shapes, axis, depth)

    def numbers(self, axis: int, codes: Sequence[str]) -> list[int]:
        """Finest areas by their codes; -1 where there is none."""
        hierarchy = self.tree.axes[axis].hierarchy
        area = find_texts(pa.array(codes, pa.string()), hierarchy.codes(hierarchy.depth))
        return [int(number) for number in area]

    def labels(self, table: pa.Table, levels: Mapping[str, str]) -> list[str]:
        """What the rows of a table are about: names of their areas."""
        columns = []
        for number, axis in enumerate(self.tree.axes):
            if axis.name in table.column_names:
                codes = table.column(axis.name).to_pylist()
                if levels[axis.name] not in axis.hierarchy.level_names:  # zones have no names
                    columns.append(codes)
                    continue
                depth = axis.hierarchy.level_of(levels[axis.name])
                known = self._known.name(number, depth).to_pylist()
                area = find_texts(pa.array(codes, pa.string()), axis.hierarchy.codes(depth))
                pairs = zip(area.tolist(), codes, strict=True)
                columns.append([known[at] if at >= 0 else code for at, code in pairs])
        between = " \N{RIGHTWARDS ARROW} " if self.tree.is_od else ", "
        return [between.join(names) for names in zip(*columns, strict=True)]

    def totals(self, axis: str) -> dict[str, str]:
        """The levels that give the totals of the finest areas of an axis."""
        finest = {one.name: one.hierarchy.level_names[-1] for one in self.tree.axes}
        return {name: level if name == axis else "all" for name, level in finest.items()}


@documented
def change(  # noqa: PLR0913 - two editions, what to compare, and a page of it
    old: Annotated[
        Release | str | Path, Option("The older edition.", metavar="OLD", is_argument=True)
    ],
    new: Annotated[
        Release | str | Path, Option("The newer edition.", metavar="NEW", is_argument=True)
    ],
    *,
    origin_level: Annotated[
        str | None, Option("Level of the origins, or all to sum them up; by default the finest.")
    ] = None,
    destination_level: Annotated[str | None, Option("The same of the destinations.")] = None,
    level: Annotated[
        Mapping[str, str] | None,
        Option("Level of any axis, or all to sum it up.", "AXIS=LEVEL", pairs, is_repeated=True),
    ] = None,
    zones: Zones = None,
    crosswalk: Annotated[
        Any,
        Option(
            "Areas that were merged or split between the editions: a table with the columns old "
            "and new, codes of finest areas; those that stayed need not be listed.",
            metavar="FILE",
        ),
    ] = None,
    estimates: Annotated[
        Sequence[Estimate | str | Path],
        Option(
            "Estimates of the two editions, whose numbers are shown. Intervals and verdicts are "
            "those of what was measured.",
            metavar="OLD,NEW",
            parse=texts,
        ),
    ] = (),
    rate: Annotated[
        float, Option("Of all verdicts rose and fell, the part that may be false, on average.")
    ] = 0.05,
    html: Annotated[
        str | Path | None, Option("Write a page with maps and lists to this file.", metavar="FILE")
    ] = None,
    title: Annotated[str | None, Option("Heading of the page.")] = None,
    names: Names = None,
    centroids: Centroids = None,
    geojson: Outlines = None,
    force: Annotated[bool, Option("Replace a page that is there.")] = False,
) -> Changes:
    """What changed between two editions of a table, with an interval and a verdict for each number.

    Raises:
        InftdaError: the editions cannot be compared, or not at these levels; or the page cannot be
            written.

    Privacy:
        Post-processing of two releases: no cost.
    """
    both = open_release(old), open_release(new)
    files = [None if file is None else Path(file) for file in (names, centroids, geojson)]
    if html is not None:
        check_file(Path(html), force=force, reads=files)
    ends = {ORIGIN: origin_level, DESTINATION: destination_level}
    asked = asked_for(both[0].tree, (ends, level), ({}, None), zones)
    compared = partial(
        changes, both, links=[] if crosswalk is None else read_crosswalk(crosswalk), rate=rate
    )
    found = compared(
        {one.name: one.level for one in asked},
        zones=zones,
        estimates=[open_estimate(one) for one in estimates],
    )
    if html is not None:
        page = _change_page(both, found, compared, title=title, files=files)
        write_page(Path(html), page)
    return found


def _change_page(
    both: tuple[Release, Release],
    whole: Changes,
    compared: Callable[[Mapping[str, str]], Changes],
    *,
    title: str | None,
    files: Sequence[Path | None],
) -> str:
    """The page of what changed: the map first. `compared` gives changes at other levels."""
    places = _Places(both[1], files)
    maps: list[dict[str, Any]] = []
    lists: list[dict[str, Any]] = []
    for number, axis in enumerate(places.tree.axes):
        levels = places.totals(axis.name)
        made = compared(levels)
        heading = _TOTALS.get(axis.name, f"By {axis.name}")
        lists.append({"title": heading, **_listed(places, made, levels)})
        drawn = places.map(number)
        if drawn is not None:
            shades = _change_shades(places, number, made)
            maps.append({"title": heading, "map": drawn, "shades": shades, "lines": []})
    finest = {axis.name: axis.hierarchy.level_names[-1] for axis in places.tree.axes}
    if maps and places.tree.is_od and whole.levels == finest and _is_one(places):
        maps[0]["lines"] = _change_lines(places, whole, maps[0]["map"])
    lists.insert(0, {"title": whole.cells.capitalize(), **_listed(places, whole, whole.levels)})
    facts = {
        "is_private": all(release.manifest.private for release in both),
        "not_private": NOT_PRIVATE,
        "changes": whole,
        "maps": maps,
        "lists": lists,
        "promise": Series(dict(zip(whole.editions, both, strict=True))).promise(),
    }
    return render(
        "change.html",
        facts,
        title=title or f"{default_title(both[1])}: what changed",
        style=_STYLE,
    )


def _is_one(places: _Places) -> bool:
    """Whether both ends have the same areas."""
    return places.tree.axes[0].hierarchy == places.tree.axes[1].hierarchy


def _listed(places: _Places, made: Changes, levels: Mapping[str, str]) -> dict[str, Any]:
    """The largest changes with a verdict, in words, and how many there are."""
    rows, lists = made.table.slice(0, made.count(ROSE) + made.count(FELL)), {}
    labels = places.labels(rows, levels) if len(rows) else []
    for verdict in (ROSE, FELL):
        found = [
            (label, row["old"], row["new"], row["change"], row["low"], row["high"])
            for label, row in zip(labels, rows.to_pylist(), strict=True)
            if row["verdict"] == verdict
        ]
        lists[verdict] = found[:MOST_ROWS]
    return {"changes": made, "lists": lists, "n": {v: made.count(v) for v in (ROSE, FELL, UNKNOWN)}}


def _change_shades(places: _Places, axis: int, made: Changes) -> dict[int, tuple[str, str]]:
    """Class and words for each area: rose or fell, and by how much of what there was."""
    found = {}
    column = made.table.column(places.tree.axes[axis].name).to_pylist()
    labels = places.labels(made.table, places.totals(places.tree.axes[axis].name))
    rows = zip(places.numbers(axis, column), labels, made.table.to_pylist(), strict=True)
    for area, label, row in rows:
        part = abs(row["change"]) / max(row["old"], row["new"], 1)
        strong = 2 if part > 0.25 else 1
        kind = "same" if row["verdict"] == UNKNOWN else f"{row['verdict']}{strong}"
        within = "" if row["low"] is None else f" ({row['low']:+,} to {row['high']:+,})"
        found[area] = kind, f"{label}: {row['change']:+,}{within}, {row['verdict']}"
    # What can be told is drawn over what cannot.
    return dict(sorted(found.items(), key=lambda one: one[1][0] != "same"))


def _change_lines(places: _Places, made: Changes, drawn: AreaMap) -> list[tuple[str, str]]:
    """Class and path of the largest changes of flows."""
    rows = made.table.slice(0, min(made.count(ROSE) + made.count(FELL), MOST_LINES))
    ends = [
        places.numbers(axis, rows.column(end).to_pylist())
        for axis, end in enumerate((ORIGIN, DESTINATION))
    ]
    verdicts = rows.column("verdict").to_pylist()
    return [
        (verdict, path)
        for start, end, verdict in zip(*ends, verdicts, strict=True)
        if start >= 0 and end >= 0 and (path := drawn.line(start, end))
    ]


def series_page(
    series: Series,
    *,
    title: str | None = None,
    files: Sequence[Path | None] = (None, None, None),
) -> str:
    """The page of a series: a map with a slider over editions, curves of totals, the promise.

    Args:
        series: all editions.
        title: heading.
        files: names, locations and outlines of areas, where there are any.
    """
    editions = list(series.editions)
    releases = list(series.editions.values())
    places, last = _Places(releases[-1], files), releases[-1]
    views: list[dict[str, Any]] = []
    curves: list[dict[str, Any]] = []
    for number, axis in enumerate(places.tree.axes):
        levels = places.totals(axis.name)
        tables = [one.flows(level=levels, intervals=one.has_measurements) for one in releases]
        heading = _TOTALS.get(axis.name, f"By {axis.name}")
        curves.append({"title": heading, "curves": _curves(places, number, tables)})
        values = _values(places, number, tables)
        drawn = places.map(number)
        if drawn is not None:
            names = places.labels(_whole_axis(places, number), levels)
            views.append({"title": heading, "map": drawn, "values": values, "names": names})
    facts = {
        "is_private": all(release.manifest.private for release in releases),
        "not_private": NOT_PRIVATE,
        "editions": editions,
        "what": last.manifest.counted.what,
        "totals": [release.total for release in releases],
        "views": views,
        "curves": curves,
        "largest": [_largest(places, release) for release in releases],
        "data": json.dumps([_shades(view["values"]) for view in views]),
        "promise": series.promise(),
    }
    heading = title or f"{default_title(last)}, {editions[0]} to {editions[-1]}"
    script = f"(() => {{\n'use strict';\n{asset('series/slider.js')}}})();\n"
    return render("series.html", facts, title=heading, style=_STYLE, script=script)


def _whole_axis(places: _Places, axis: int) -> pa.Table:
    hierarchy = places.tree.axes[axis].hierarchy
    return pa.table({places.tree.axes[axis].name: hierarchy.codes(hierarchy.depth)})


def _values(places: _Places, axis: int, tables: Sequence[pa.Table]) -> list[list[int]]:
    """Totals of all finest areas of an axis, edition by edition."""
    hierarchy, name = places.tree.axes[axis].hierarchy, places.tree.axes[axis].name
    found = []
    for table in tables:
        here = np.zeros(hierarchy.n_areas(hierarchy.depth), np.int64)
        area = np.array(places.numbers(axis, table.column(name).to_pylist()), np.int64)
        here[area[area >= 0]] = table.column(FLOW).to_numpy()[area >= 0]
        found.append(here.tolist())
    return found


def _shades(values: list[list[int]]) -> list[list[int]]:
    """The shade of each area in each edition, by one scale for all editions."""
    every = np.array(values)
    positive = every[every > 0]
    parts = np.arange(1, _SHADES) / _SHADES
    limits = np.quantile(positive, parts) if len(positive) else np.zeros(_SHADES - 1)
    shade = np.where(every > 0, 1 + np.searchsorted(limits, every, side="right"), 0)
    return [[int(one) for one in row] for row in shade]


def _curves(places: _Places, axis: int, tables: Sequence[pa.Table]) -> list[Curve]:
    """Curves of the largest areas of an axis over editions."""
    name = places.tree.axes[axis].name
    rows: dict[str, list[dict[str, Any] | None]] = {}
    for number, table in enumerate(tables):
        for row in table.to_pylist():
            rows.setdefault(row[name], [None] * len(tables))[number] = row
    sizes = {code: sum(row[FLOW] for row in found if row) for code, found in rows.items()}
    codes = sorted(sizes, key=lambda code: -sizes[code])[:MOST_CURVES]
    labels = places.labels(pa.table({name: pa.array(codes, pa.string())}), places.totals(name))

    def over_time(code: str, key: str) -> list[int | None]:
        return [None if row is None else row.get(key) for row in rows[code]]

    return [
        Curve(label, *(over_time(code, key) for key in (FLOW, "low", "high")))
        for label, code in zip(labels, codes, strict=True)
    ]


def _largest(places: _Places, release: Release) -> list[tuple[str, int]]:
    """The largest numbers between finest areas of one edition."""
    finest = {axis.name: axis.hierarchy.level_names[-1] for axis in release.tree.axes}
    found = release.flows(top=MOST_ROWS)
    labels = places.labels(found, finest) if len(found) else []
    return list(zip(labels, found.column(FLOW).to_pylist(), strict=True))
