"""What is exported, whatever the kind of file: numbers of each level, intervals, places.

A release that was published with all measurements brings intervals. Of others only totals have
them, and what is guaranteed of each level is said.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inftda.areas.locations import Gazetteer
from inftda.errors import InftdaError, ReleaseError
from inftda.estimates import Estimate
from inftda.evaluation.stated import BETA, guaranteed
from inftda.publication.query import FLOW, GRADE, HIGH, LISTED, LOW
from inftda.publication.release import Release
from inftda.tables import find_texts
from inftda.tree import DESTINATION, ORIGIN, Tree

#: Columns that are not codes, if they are there; the first or second is the number of a row.
MEASURES: Final = (FLOW, "estimate", LISTED, LOW, HIGH, GRADE)
#: What intervals are, for readers of the export.
MEASURED: Final = (
    "95 % of the published numbers of a size have the true number in theirs, as tested: from what "
    "was measured, with known noise, narrowed by the model that estimates are made with; not a "
    "guarantee for each number"
)
TOTALS: Final = (
    "95 %, for each total by itself: by what was measured, with known noise, extended to hold the "
    "number"
)
ESTIMATED: Final = (
    "95 % of the estimates of a size have the true number in theirs, as tested: by the model of "
    "the estimate, not guaranteed"
)
NONE: Final = "none are stated"
_MEDIA: Final = {
    "csv": "text/csv",
    "geojson": "application/geo+json",
    "gpkg": "application/geopackage+sqlite3",
    "json": "application/json",
    "omx": "application/x-hdf5",
}
#: The entry of one file in `datapackage.json`.
Resource = dict[str, Any]
#: Longest part of a file name that a level's name becomes.
_LONGEST: Final = 40


@dataclass(frozen=True)
class ExportLevel:
    """One level of every axis.

    Attributes:
        number: counting from 1, coarse to fine.
        name: for people and options: "municipality", or "region-state" where axes differ.
        depths: level of each axis's hierarchy, 0 where the axis is summed up.
        shown: axis name to level name, as `flows` takes it.
    """

    number: int
    name: str
    depths: tuple[int, ...]
    shown: dict[str, str]

    @property
    def file(self) -> str:
        """The level in the name of a file, whatever its own name is.

        >>> ExportLevel(2, "LAU/2 <new>", (2, 2), {}).file
        '2-LAU-2-new'
        """
        return file_part(self.number, self.name)


def file_part(number: int, name: str) -> str:
    """A name as part of the name of a file; the number keeps equal names apart."""
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
) -> tuple[ExportLevel, ...]:
    """All axes at their first level, at their second, and so on, or those with these names.

    An axis with fewer levels than others stays at its finest. With `pairs_only`, other axes than
    origin and destination are summed up.
    """
    used = [not pairs_only or axis.name in {ORIGIN, DESTINATION} for axis in tree.axes]
    finest = [axis.hierarchy.depth * is_used for axis, is_used in zip(tree.axes, used, strict=True)]
    known = {}
    for number in range(1, max(finest) + 1):
        depths = tuple(min(number, depth) for depth in finest)
        pairs = list(zip(tree.axes, depths, strict=True))
        shown = {axis.name: axis.hierarchy.level_name(depth) for axis, depth in pairs}
        name = "-".join(dict.fromkeys(shown[axis.name] for axis, depth in pairs if depth))
        known[name] = ExportLevel(number, name, depths, shown)
    for name in names or ():
        if name not in known:
            raise InftdaError(f"there is no level {name!r} to export; there are {', '.join(known)}")
    return tuple(level for name, level in known.items() if not names or name in names)


@dataclass(frozen=True)
class LevelTable:
    """The numbers of one level.

    Attributes:
        level: which.
        table: codes of the shown axes, the number, and `low`, `high` and `grade` where they are
            known.
        facts: what is known of errors: what the intervals are and from what size on numbers can be
            used, in words, and the error that no number exceeds and with which probability, if it
            is proven.
    """

    level: ExportLevel
    table: pa.Table
    facts: dict[str, Any]

    @property
    def measures(self) -> list[str]:
        """Names of the columns that are not codes; the first holds the numbers."""
        return [name for name in MEASURES if name in self.table.column_names]

    def areas(self, tree: Tree, axis: int) -> NDArray[np.int32]:
        """Number of the area of each row on one axis."""
        name, hierarchy = tree.axes[axis].name, tree.axes[axis].hierarchy
        codes = self.table.column(name).combine_chunks().cast(pa.string())
        found = find_texts(codes, hierarchy.codes(self.level.depths[axis]))
        if (found < 0).any():
            raise ReleaseError(
                f"the table has a code on axis {name!r} that is not among its areas; check it "
                "with `inftda verify`"
            )
        return found


@dataclass(frozen=True)
class ExportData:
    """All that is exported.

    Attributes:
        source: a release or an estimate.
        levels: coarse to fine.
        places: where areas lie and what they are called.
        title: for people.
        description: what is promised and what readers must know, in a few sentences.
        keep_formulas: whether cells are left as they are that a spreadsheet would run.
        intervals: whether numbers get intervals.
    """

    source: Release | Estimate
    levels: tuple[ExportLevel, ...]
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
        """What the numbers count, in the plural."""
        if isinstance(self.source, Release):
            return self.source.manifest.counted.what
        return self.source.manifest.counts

    @property
    def ends(self) -> tuple[int, int]:
        """Numbers of the axes of origins and destinations."""
        names = [axis.name for axis in self.tree.axes]
        return names.index(ORIGIN), names.index(DESTINATION)

    @property
    def shares_areas(self) -> bool:
        """Whether origins and destinations have the same areas."""
        origin, destination = (self.tree.axes[end].hierarchy for end in self.ends)
        return origin == destination

    def numbers(self) -> Iterator[LevelTable]:
        """Level by level, coarse to fine; one is in memory at a time."""
        for level in self.levels:
            table = self._table(level)
            use = self.source.use_at(level.depths) if isinstance(self.source, Release) else None
            facts = {
                "intervals": self._describe(table),
                "guaranteed": self._guaranteed(level),
                "use": use and use.describe(),
            }
            yield LevelTable(level, table, facts)

    def _table(self, level: ExportLevel) -> pa.Table:
        """Numbers of one level, with `low`, `high` and `grade` where they are known."""
        are_known = isinstance(self.source, Estimate) or self.source.has_measurements
        return self.source.flows(level=level.shown, intervals=self.intervals and are_known)

    def totals(self) -> Iterator[tuple[int, LevelTable]]:
        """Totals across the tree of each axis, at the levels that are exported."""
        if not isinstance(self.source, Release):
            return
        done: set[tuple[int, int]] = set()
        for level in self.levels:
            for number, axis in enumerate(self.tree.axes):
                depth = level.depths[number]
                if (number, depth) in done or depth not in self.source.totals_of(axis.name):
                    continue
                done.add((number, depth))  # which an axis with fewer levels than others has again
                shown = dict.fromkeys(level.shown, "all") | {axis.name: level.shown[axis.name]}
                table = self.source.flows(level=shown, intervals=self.intervals)
                words = TOTALS if self.intervals else NONE
                one = replace(level, name=level.shown[axis.name], shown=shown)
                yield number, LevelTable(one, table, {"intervals": words})

    def _describe(self, table: pa.Table) -> str:
        """What the intervals in the table of a level are."""
        if LOW not in table.column_names:
            return NONE
        return MEASURED if isinstance(self.source, Release) else ESTIMATED

    def _guaranteed(self, level: ExportLevel) -> dict[str, Any] | None:
        """The error that no number of the level exceeds, where one is proven."""
        if not isinstance(self.source, Release):
            return None
        bounds = guaranteed(self.source)
        for tree_level in self.tree.levels:
            if tree_level.depths == level.depths and tree_level.index in bounds:
                return {"error": bounds[tree_level.index], "probability": 1 - BETA}
        return None

    def require_places(self, kind: str) -> None:
        """Complain unless it is known where the areas of both ends lie."""
        if not self.places.has(self.ends):
            raise InftdaError(
                f"an export to {kind} needs to know where the areas lie, which the release does "
                "not say; give `centroids=`, a file with a column named after a level, lon and lat"
            )
