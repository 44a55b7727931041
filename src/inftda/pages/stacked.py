"""A series of releases as one table with the additional dimension `edition`, for the explorer."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from inftda.errors import HierarchyError, ReleaseError
from inftda.pages.explorer import MAX_INTERVALS, Depths, Quality, Table
from inftda.publication.measured import CellIntervals
from inftda.publication.release import Release
from inftda.series.series import EDITION, Series
from inftda.tree import Areas, Axis
from inftda.tree.hierarchy import Hierarchy
from inftda.util.tabular import as_arrow


def stacked(series: Series) -> tuple[Table, Quality]:
    """All numbers of a series, between areas of all editions, and the quality of each edition.

    Raises:
        ReleaseError: areas or levels of the editions do not fit together.
    """
    releases = list(series.editions.values())
    axes = [_axis(axis.name, releases) for axis in releases[-1].tree.axes]
    editions = [_Edition.of(number, one, axes) for number, one in enumerate(releases)]
    numbers, values = [], []
    uses: dict[Depths, list[str]] = defaultdict(lambda: [""] * len(releases))
    totals, intervals = (defaultdict[Depths, list[CellIntervals]](list) for _ in range(2))
    unknown, summed = list[str](), set[Depths]()
    for edition, release in zip(editions, releases, strict=True):
        areas, value = release.leaves()
        finest = tuple(axis.hierarchy.depth for axis in release.tree.axes)
        numbers.append(edition.areas(finest, areas))
        values.append(value)
        own = Quality.of(release, room=MAX_INTERVALS // len(releases))
        for found, known in ((totals, own.totals), (intervals, own.intervals)):
            for depths, (areas, *ends) in known.items():
                found[edition.depths(depths)].append(
                    CellIntervals(edition.areas(depths, areas), *ends)
                )
        for depths, (words,) in own.uses.items():
            uses[edition.depths(depths)][edition.number] = words
        unknown += own.unknown
        summed |= {edition.depths(depths) for depths in own.summed}
    table = Table(
        (*axes, Axis(EDITION, Hierarchy.read({EDITION: [*series.editions]}))),
        _joined(numbers),
        np.concatenate(values),
        what=releases[-1].manifest.counts,
        is_series=True,
    )
    return table, Quality(_together(totals), uses, _together(intervals), unknown, frozenset(summed))


@dataclass(frozen=True)
class _Edition:
    """How the areas of an edition are numbered in its series.

    Attributes:
        number: of the edition.
        order: for each axis of the series its number in the release.
        known: for each axis of the release, by level, the numbers of its areas in the series.
    """

    number: int
    order: list[int]
    known: list[list[NDArray[np.int32]]]

    @classmethod
    def of(cls, number: int, release: Release, axes: Sequence[Axis]) -> "_Edition":
        """The areas of a release in terms of the axes of its series."""
        whole = {axis.name: axis.hierarchy for axis in axes}
        own = release.tree.axes
        known = [
            [
                whole[axis.name].find(level, axis.hierarchy.codes(level))
                for level in range(axis.hierarchy.depth + 1)
            ]
            for axis in own
        ]
        names = [axis.name for axis in own]
        return cls(number, [names.index(axis.name) for axis in axes], known)

    def depths(self, depths: Depths) -> Depths:
        """Levels on each axis of the series, which are never those of several editions."""
        return (*(depths[axis] for axis in self.order), 1)

    def areas(self, depths: Depths, areas: Areas) -> Areas:
        """Areas of these levels of the release, as numbered in the series."""
        found = [self.known[axis][depths[axis]][areas[axis]] for axis in self.order]
        return (*found, np.full(len(areas[0]), self.number, np.int32))


def _together(found: dict[Depths, list[CellIntervals]]) -> dict[Depths, CellIntervals]:
    return {
        depths: CellIntervals(
            _joined([one.areas for one in parts]),
            *(np.concatenate(column) for column in zip(*(one[1:] for one in parts), strict=True)),
        )
        for depths, parts in found.items()
    }


def _joined(parts: Iterable[Areas]) -> Areas:
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def _axis(name: str, releases: Sequence[Release]) -> Axis:
    """An axis with the areas of all editions; places are those of the last edition."""
    every = [axis.hierarchy for one in releases for axis in one.tree.axes if axis.name == name]
    last = every[-1]
    if all(one == last for one in every):
        return Axis(name, last)
    levels = {one.level_names for one in every}
    if len(levels) > 1:
        named = " and ".join(sorted(", ".join(one) for one in levels))
        raise ReleaseError(f"the levels of {name} differ between editions: {named}")
    listed = [one.to_table().take(as_arrow(one.as_read(one.depth))) for one in reversed(every)]
    rows = dict.fromkeys(tuple(row.values()) for table in listed for row in table.to_pylist())
    columns = zip(last.level_names, zip(*rows, strict=True), strict=True)
    try:
        union = Hierarchy.read({level: list(codes) for level, codes in columns})
    except HierarchyError as error:
        raise ReleaseError(
            f"the areas of {name} in different editions do not fit on one page: {error}"
        ) from None
    if last.places.is_empty:
        return Axis(name, union)
    numbers = {
        level: pc.index_in(union.codes(number), value_set=last.codes(number))
        for number, level in enumerate(last.level_names, start=1)
    }
    return Axis(name, union.with_places(last.places.take(numbers, last.level_names[-1])))
