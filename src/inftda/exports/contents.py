"""Contents of an export of any kind: numbers of each level, intervals, places.

A release that was published with all measurements has intervals for every number, other releases
only for totals. The guaranteed error of each level is stated for both.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inftda.areas.locations import Gazetteer
from inftda.errors import InftdaError
from inftda.estimates.estimate import Estimate
from inftda.publication.query import FLOW, GRADE, HIGH, LISTED, LOW
from inftda.publication.release import Release
from inftda.publication.summary import BETA, guaranteed
from inftda.tree import DESTINATION, ORIGIN, Tree
from inftda.util.tabular import find_texts

#: Columns that are not codes, if they are there; the first or second is the number of a row.
MEASURES: Final = (FLOW, "estimate", LISTED, LOW, HIGH, GRADE)
#: Definition of the intervals, for readers of the export.
INTERVALS: Final = (
    "For 95 % of the published numbers of similar size, and for totals with a probability of 95 % "
    "for an area chosen beforehand, the true number lies between low and high; this is not "
    "guaranteed for each number."
)
_MEDIA: Final = {
    "csv": "text/csv",
    "geojson": "application/geo+json",
    "gpkg": "application/geopackage+sqlite3",
    "omx": "application/x-hdf5",
}
#: The entry of one file in `datapackage.json`.
Resource = dict[str, Any]
#: Longest part of a file name that a level's name becomes.
_LONGEST: Final = 40


def file_part(number: int, name: str) -> str:
    """A name as part of the name of a file; the number keeps equal names apart.

    >>> file_part(2, "LAU/2 <new>")
    '2-LAU-2-new'
    """
    plain = re.sub(r"[^\w.]+", "-", name).strip("-.")[:_LONGEST]
    return f"{number}-{plain}" if plain else str(number)


def resource_entry(path: str, title: str, **facts: Any) -> Resource:
    """The entry of one file; empty facts are left out."""
    stem, _, kind = path.lower().rpartition(".")
    plain = "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in stem)
    entry = {"name": plain.strip("-"), "path": path, "title": title}
    entry |= {"format": kind, "mediatype": _MEDIA[kind]}
    return {**entry, **{key: value for key, value in facts.items() if value}}


def chosen_levels(
    tree: Tree, names: Sequence[str] | None, *, pairs_only: bool
) -> dict[str, tuple[int, ...]]:
    """All axes at their first level, at their second, and so on, or those with these names.

    An axis with fewer levels than others stays at its finest. With `pairs_only`, other axes than
    origin and destination are summed up.

    Returns:
        For each name, such as "municipality", or "region-state" where axes differ, the level of
        each axis, 0 where the axis is summed up.
    """
    used = [not pairs_only or axis.name in {ORIGIN, DESTINATION} for axis in tree.axes]
    finest = [axis.hierarchy.depth * is_used for axis, is_used in zip(tree.axes, used, strict=True)]
    known = {}
    for number in range(1, max(finest) + 1):
        depths = tuple(min(number, depth) for depth in finest)
        shown = [
            axis.hierarchy.level_name(depth)
            for axis, depth in zip(tree.axes, depths, strict=True)
            if depth
        ]
        known["-".join(dict.fromkeys(shown))] = depths
    for name in names or ():
        if name not in known:
            raise InftdaError(f"there is no level {name!r} to export; there are {', '.join(known)}")
    return {name: depths for name, depths in known.items() if not names or name in names}


@dataclass(frozen=True)
class ExportTable:
    """The numbers of one level of every axis.

    Attributes:
        tree: axes and their areas.
        name: of the level, for people and options.
        depths: level of each axis, 0 where the axis is summed up.
        table: codes of the shown axes, the number, and `low`, `high` and `grade` where they are
            known.
        facts: on errors: the definition of the intervals and the smallest usable count, in words,
            and the guaranteed error with its probability, if there is one.
    """

    tree: Tree
    name: str
    depths: tuple[int, ...]
    table: pa.Table
    facts: dict[str, Any]

    @property
    def file(self) -> str:
        """The level as part of the name of a file."""
        return file_part(max(self.depths), self.name)

    @property
    def measures(self) -> list[str]:
        """Names of the columns that are not codes; the first holds the numbers."""
        return [name for name in MEASURES if name in self.table.column_names]

    def level_name(self, axis: str) -> str:
        """Name of the level of one axis."""
        return level_names(self.tree, self.depths)[axis]

    def areas(self, axis: int) -> NDArray[np.int32]:
        """Number of the area of each row on one axis."""
        own = self.tree.axes[axis]
        codes = self.table.column(own.name).combine_chunks()
        return find_texts(codes, own.hierarchy.codes(self.depths[axis]))


def level_names(tree: Tree, depths: Sequence[int]) -> dict[str, str]:
    """Names of levels by axis, as `flows` takes them."""
    pairs = zip(tree.axes, depths, strict=True)
    return {axis.name: axis.hierarchy.level_name(depth) for axis, depth in pairs}


@dataclass(frozen=True)
class ExportData:
    """Contents of an export.

    `levels` are those of `chosen_levels`; `description` has the guarantee and warnings to readers
    in a few sentences. Numbers get intervals if `intervals` is true.
    """

    source: Release | Estimate
    levels: Mapping[str, tuple[int, ...]]
    places: Gazetteer
    title: str
    description: str
    keep_formulas: bool
    intervals: bool

    @property
    def tree(self) -> Tree:
        """Axes and their areas."""
        return self.source.tree

    @property
    def counts(self) -> str:
        """The counted things, in the plural."""
        return self.source.manifest.counts

    @property
    def ends(self) -> tuple[int, int]:
        """Numbers of the axes of origins and destinations."""
        names = [axis.name for axis in self.tree.axes]
        return names.index(ORIGIN), names.index(DESTINATION)

    @property
    def zones(self) -> dict[str, int]:
        """Axes with zones, by their part of file names; one if both ends are alike.

        None without origins and destinations.
        """
        if not {ORIGIN, DESTINATION} <= {axis.name for axis in self.tree.axes}:
            return {}
        origin, destination = self.ends
        if self.tree.axes[origin].hierarchy == self.tree.axes[destination].hierarchy:
            return {"": origin}
        return {ORIGIN: origin, DESTINATION: destination}

    def numbers(self) -> Iterator[ExportTable]:
        """Level by level, coarse to fine; one is in memory at a time."""
        return (self.numbers_at(name, depths) for name, depths in self.levels.items())

    def numbers_at(self, name: str, depths: tuple[int, ...]) -> ExportTable:
        """Numbers of one level, with `low`, `high` and `grade` where they are known."""
        source = self.source
        are_known = isinstance(source, Estimate) or source.has_intervals(depths)
        table = source.flows(
            level=level_names(self.tree, depths), intervals=self.intervals and are_known
        )
        use = source.use_at(depths) if isinstance(source, Release) else None
        facts = {
            "intervals": INTERVALS if LOW in table.column_names else "",
            "guaranteed": self._guaranteed(depths),
            "use": use and use.describe(),
        }
        return ExportTable(self.tree, name, depths, table, facts)

    def totals(self) -> Iterator[tuple[int, ExportTable]]:
        """Totals of the areas of each axis, at the levels that are exported."""
        if not isinstance(self.source, Release) or len(self.tree.axes) == 1:
            return
        done: set[tuple[int, int]] = set()
        for depths in self.levels.values():
            for number, axis in enumerate(self.tree.axes):
                depth = depths[number]
                if (number, depth) in done:
                    continue
                done.add((number, depth))  # which an axis with fewer levels than others has again
                name = axis.hierarchy.level_name(depth)
                yield number, self.numbers_at(name, self.tree.one_way(number, depth))

    def _guaranteed(self, depths: tuple[int, ...]) -> dict[str, Any] | None:
        """The guaranteed error of the level, where there is one."""
        if not isinstance(self.source, Release):
            return None
        bounds = guaranteed(self.source)
        for level in self.tree.levels:
            if level.depths == depths and level.index in bounds:
                return {"error": bounds[level.index], "probability": 1 - BETA}
        return None

    def require_places(self, kind: str) -> None:
        """Refuse an export without places of the areas of both ends."""
        if not self.places.has(self.ends):
            raise InftdaError(
                f"an export to {kind} needs the places of the areas, which the release does "
                "not hold; give `centroids=`, a file with a column named after a level, lon and lat"
            )
