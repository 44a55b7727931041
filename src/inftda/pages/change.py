"""Changes between two editions, as a table and as a page."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import pyarrow as pa

from inftda.estimates.estimate import Estimate, open_estimate
from inftda.options import Centroids, Names, Option, Outlines, Zones, documented, pairs
from inftda.options import names as texts
from inftda.pages.explorer import located
from inftda.pages.html import render, script, write_page
from inftda.pages.packing import Pack
from inftda.pages.shapes import read_places
from inftda.publication.release import Release, open_release
from inftda.publication.reliability import NOT_PRIVATE
from inftda.publication.summary import default_title
from inftda.series.changes import FELL, ROSE, UNKNOWN, Changes, changes
from inftda.series.common import read_crosswalk
from inftda.tree import DESTINATION, ORIGIN
from inftda.tree.groupings import asked_for
from inftda.util.files import check_file
from inftda.util.tabular import find_texts

#: Rows of a list and lines on a map, at most.
MOST_ROWS, MOST_LINES = 12, 80
#: A change of more than this part of the old number has a strong shade.
STRONG: Final = 0.25
#: Headings of the totals of each axis.
_TOTALS: Final = {ORIGIN: "By where they start", DESTINATION: "By where they end"}


class _Places:
    """Names and places of the areas of a release, also from files, and numbers in terms of them."""

    def __init__(self, release: Release, files: Sequence[Path | None]) -> None:
        self.tree = release.tree
        self._known, self.shapes = read_places(self.tree.axes, files)

    def map(self, axis: int) -> dict[str, Any] | None:
        """Places of the finest areas of an axis; None if unknown."""
        if not self._known.has([axis]):
            return None
        hierarchy, shapes = self.tree.axes[axis].hierarchy, self.shapes
        is_outlined = (
            shapes is not None
            and shapes.level == hierarchy.depth
            and self.tree.axes[shapes.axis].hierarchy == hierarchy
        )
        places = located(self._known, axis, hierarchy.depth)
        return {"places": places, "isOutlined": is_outlined}

    def areas(self, axis: int, codes: pa.ChunkedArray, level: str | None = None) -> list[int]:
        """Areas of a level, by default the finest, by their codes; -1 where there is none."""
        hierarchy = self.tree.axes[axis].hierarchy
        depth = hierarchy.depth if level is None else hierarchy.level_of(level)
        found = find_texts(codes.combine_chunks(), hierarchy.codes(depth))
        return [int(area) for area in found]

    def labels(self, table: pa.Table, levels: Mapping[str, str]) -> list[str]:
        """Labels of the rows of a table: the names of their areas."""
        columns = []
        for number, axis in enumerate(self.tree.axes):
            if axis.name not in table.column_names:
                continue
            column, level = table.column(axis.name), levels[axis.name]
            labels = column.to_pylist()
            if level in axis.hierarchy.level_names:  # zones have no names
                known = self._known.name(number, axis.hierarchy.level_of(level)).to_pylist()
                pairs = zip(self.areas(number, column, level), labels, strict=True)
                labels = [known[at] if at >= 0 else code for at, code in pairs]
            columns.append(labels)
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
            "those of the measurements.",
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
    """Compare two editions of a table, with an interval and a verdict for each number.

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
    """The page of changes: the map first. `compared` gives changes at other levels."""
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
            areas = _shaded(places, number, made)
            maps.append({**drawn, "title": heading, "areas": areas, "lines": []})
    finest = {axis.name: axis.hierarchy.level_names[-1] for axis in places.tree.axes}
    ends = [axis.hierarchy for axis in places.tree.axes]
    if maps and places.tree.is_od and whole.levels == finest and ends[0] == ends[1]:
        maps[0]["lines"] = _lines(places, whole)
    lists.insert(0, {"title": whole.cells.capitalize(), **_listed(places, whole, whole.levels)})
    pack = Pack({"maps": maps})
    if places.shapes is not None:
        pack.add_shapes(places.shapes, places.shapes.axis)
    facts = {
        "is_private": all(release.manifest.private for release in both),
        "not_private": NOT_PRIVATE,
        "changes": whole,
        "lists": lists,
        "has_lines": bool(maps and maps[0]["lines"]),
        "packed": pack.text() if maps else "",
        "guarantees": whole.guarantees,
    }
    return render(
        "change.html",
        facts,
        title=title or f"{default_title(both[1])}: what changed",
        style="style.css changes.css",
        script=script("changes.mjs") if maps else "",
    )


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


def _shaded(places: _Places, axis: int, made: Changes) -> list[tuple[int, str, str, str]]:
    """Number, shade, name and words of each area: rose or fell, and by which part of the old one.

    Changes that are not significant come first, then smaller changes before larger ones.
    """
    found = []
    areas = places.areas(axis, made.table.column(places.tree.axes[axis].name))
    labels = places.labels(made.table, places.totals(places.tree.axes[axis].name))
    rows = zip(areas, labels, made.table.to_pylist(), strict=True)
    for area, label, row in rows:
        strong = 2 if abs(row["change"]) > STRONG * max(row["old"], 1) else 1
        kind = "same" if row["verdict"] == UNKNOWN else f"{row['verdict']}{strong}"
        found.append((area, kind, label, _in_words(label, row)))
    return [one for one in reversed(found) if one[0] >= 0]


def _in_words(label: str, row: Mapping[str, Any]) -> str:
    """Word one change for the page."""
    within = "" if row["low"] is None else f" ({row['low']:+,} to {row['high']:+,})"
    old, new = f"{row['old']:,}", f"{row['new']:,}"
    return f"{label}: from {old} to {new}, {row['change']:+,}{within}, {row['verdict']}"


def _lines(places: _Places, made: Changes) -> list[tuple[int, int, str, str]]:
    """Ends, shade and words of the largest changes of flows between two areas, small ones first."""
    rows = made.table.slice(0, min(made.count(ROSE) + made.count(FELL), MOST_LINES))
    ends = [places.areas(axis, rows.column(end)) for axis, end in enumerate((ORIGIN, DESTINATION))]
    labels = places.labels(rows, made.levels) if len(rows) else []
    every = zip(*ends, labels, rows.to_pylist(), strict=True)
    return [
        (start, end, f"{row['verdict']}2", _in_words(label, row))
        for start, end, label, row in reversed([*every])
        if start >= 0 and end >= 0 and start != end
    ]
