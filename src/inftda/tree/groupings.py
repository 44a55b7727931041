"""Groups of areas for an answer: by a level, by a filter, or by the user's own zones.

All of it is public. A grouping defines which finest areas of an axis are summed up together, and
which are left out. Areas are named by code or by name.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from inftda.errors import HierarchyError, ReleaseError
from inftda.tree import Axis, Tree
from inftda.tree.hierarchy import Hierarchy
from inftda.util.tabular import as_numpy, find_texts, read_strings

#: In place of a group: the area is left out, or it has parts of several groups.
LEFT_OUT, MIXED = -1, -2
#: Areas of the same name that an error lists.
_MOST_LISTED: Final = 8

Named = str | Sequence[str] | None


@dataclass(frozen=True, eq=False)
class Grouping:
    """Groups of the finest areas of an axis, as an answer shows them.

    Attributes:
        axis: the axis.
        level: name of the level, or of the zones; "all" if they are summed up and not shown.
        codes: codes of the groups.
        group: int32[finest areas], the group of each, or `LEFT_OUT`.
        order: int64[groups], the order in which groups are shown.
        named: the finest level that the question names; None if it names zones.
    """

    axis: Axis
    level: str
    codes: pa.StringArray
    group: NDArray[np.int32]
    order: NDArray[np.int64]
    named: int | None = None

    @property
    def name(self) -> str:
        """Name of the axis."""
        return self.axis.name

    @property
    def is_shown(self) -> bool:
        """Whether an answer has a column for it."""
        return self.level != "all"

    @property
    def depth(self) -> int | None:
        """The level that is shown, by its number; None for zones."""
        names = ("all", *self.axis.hierarchy.level_names)
        return names.index(self.level) if self.level in names else None

    def at(self, depth: int) -> NDArray[np.int32]:
        """int32[areas of a level]: the group of each, `LEFT_OUT`, or `MIXED`."""
        hierarchy = self.axis.hierarchy
        starts = hierarchy.descendant_offsets(depth, hierarchy.depth)[:-1]
        low, high = (of.reduceat(self.group, starts) for of in (np.minimum, np.maximum))
        return np.where(low == high, low, np.int32(MIXED))

    @cached_property
    def needed(self) -> int:
        """The level that the question is about: the coarsest that has the areas that it names.

        For zones it is the coarsest whose areas each lie in one zone, or in none.
        """
        if self.named is not None:
            return self.axis.coarsest[self.named]
        every = range(self.axis.hierarchy.depth + 1)
        return next(depth for depth in every if (self.at(depth) != MIXED).all())

    @cached_property
    def areas(self) -> Mapping[int, NDArray[np.int32]]:
        """int32[groups], by level: the area that each group is; only levels where all are one.

        Groups of which nothing is left have any number.
        """
        found = {}
        for depth in range(self.needed, self.axis.hierarchy.depth + 1):
            group = self.at(depth)
            area = np.flatnonzero(group >= 0).astype(np.int32)
            if len(np.unique(group[area])) == len(area):
                found[depth] = np.zeros(len(self.codes), np.int32)
                found[depth][group[area]] = area
        return found

    def sum_up(self, finest: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64[groups]: sums of a number for each finest area."""
        sums = np.zeros(len(self.codes) + 1, np.int64)
        np.add.at(sums, self.group, finest)  # areas that are left out are added to the last
        return sums[:-1]

    def numbers(self, table: pa.Table) -> NDArray[np.int32]:
        """int32: group of each row of an answer."""
        if not self.is_shown:
            return np.zeros(len(table), np.int32)
        return find_texts(table.column(self.name).combine_chunks(), self.codes)


class Zones(NamedTuple):
    """Zones of finest areas, from a table of two columns.

    Attributes:
        finest: name of the level of the areas: the name of the first column.
        level: name of the zones: the name of the second column.
        area: codes of areas, each once.
        zone: code of the zone of each area.
    """

    finest: str
    level: str
    area: pa.StringArray
    zone: pa.StringArray

    @classmethod
    def read(cls, source: Any) -> "Zones":
        """Read zones from a file, or from any pandas, polars or pyarrow table.

        Raises:
            ReleaseError: the table has other columns, blanks, or an area twice.
        """
        table = read_strings(source, what="zones table", error=ReleaseError)
        if table.num_columns != 2:
            raise ReleaseError(
                "the zones table must have two columns, the finest area and its zone; it has "
                f"{', '.join(table.column_names)}"
            )
        for name, column in zip(table.column_names, table.columns, strict=True):
            if column.null_count or pc.any(pc.equal(pc.utf8_trim_whitespace(column), "")).as_py():
                raise ReleaseError(
                    f"column {name!r} of the zones table has a blank; leave out areas of no zone"
                )
        (finest, level), (area, zone) = (
            table.column_names,
            (column.combine_chunks() for column in table.columns),
        )
        counts = pc.value_counts(area).to_pylist()
        if again := [one["values"] for one in counts if one["counts"] > 1]:
            raise ReleaseError(
                f"{finest} {again[0]!r} is in the zones table twice; give each area one zone"
            )
        return cls(finest, level, area, zone)

    def fits(self, axis: Axis) -> bool:
        """Tell whether the zones are made of the areas of an axis."""
        return axis.hierarchy.level_names[-1] == self.finest

    def on(self, axis: Axis) -> Grouping:
        """Group the areas of an axis by zone, in the order of the table; others are left out."""
        hierarchy = axis.hierarchy
        if self.level in ("all", *hierarchy.level_names):
            raise ReleaseError(
                f"the zones are called {self.level!r}, as a level of the areas is; give the second "
                "column of the zones table another name"
            )
        number = find_texts(self.area, hierarchy.codes(hierarchy.depth))
        if (number < 0).any():
            unknown = self.area[int(np.argmin(number))].as_py()
            raise ReleaseError(
                f"{axis.name}: the zones table names {self.finest} {unknown!r}, which the release "
                "does not have"
            )
        zone = self.zone.dictionary_encode()
        group = np.full(hierarchy.n_areas(hierarchy.depth), LEFT_OUT, np.int32)
        group[number] = as_numpy(zone.indices)
        return Grouping(axis, self.level, zone.dictionary, group, np.arange(len(zone.dictionary)))


def groupings(
    tree: Tree,
    levels: Mapping[str, str],
    where: Mapping[str, Named] | None = None,
    zones: Zones | None = None,
) -> list[Grouping]:
    """Make a grouping for each axis; an axis without a level is summed up completely.

    `where` names the area or areas of an axis to which the answer is restricted.
    """
    return [
        _grouping(axis, levels.get(axis.name, "all"), (where or {}).get(axis.name), zones)
        for axis in tree.axes
    ]


def asked_for(
    tree: Tree,
    levels: tuple[Mapping[str, str | None], Mapping[str, str] | None],
    where: tuple[Mapping[str, Named], Mapping[str, Named] | None],
    zones: Any = None,
) -> list[Grouping]:
    """Make a grouping for each axis from options for the two ends and for axes by name.

    By default axes are shown by their zones, and without zones at their finest level.
    """
    chosen = _together("level", *levels)
    filters = _together("area", *where)
    for name in {*chosen, *filters}:
        _check_axis(tree, name)
    read = None if zones is None else Zones.read(zones)
    if read is not None and not any(map(read.fits, tree.axes)):
        finest = " or ".join(dict.fromkeys(axis.hierarchy.level_names[-1] for axis in tree.axes))
        raise ReleaseError(
            f"the first column of the zones table is {read.finest!r}; it must have the name of "
            f"the finest level, {finest}"
        )
    for axis in tree.axes:
        default = read.level if read and read.fits(axis) else axis.hierarchy.level_names[-1]
        chosen.setdefault(axis.name, default)
    return groupings(tree, chosen, filters, read)


def _check_axis(tree: Tree, name: str) -> None:
    names = [axis.name for axis in tree.axes]
    if name not in names:
        raise ReleaseError(f"the release has no axis {name!r}; its axes are {', '.join(names)}")


def _together(what: str, ends: Mapping[str, Any], axes: Mapping[str, Any] | None) -> dict[str, Any]:
    """Merge options for the two ends with options for axes by name; each axis at most once."""
    given = {name: value for name, value in ends.items() if value is not None}
    for name in axes or {}:
        if name in given:
            raise ReleaseError(
                f"the {what} of axis {name!r} is given twice, for the {name} and by the name of "
                "the axis; give it once"
            )
    return given | dict(axes or {})


def _grouping(axis: Axis, level: str, named: Named, zones: Zones | None) -> Grouping:
    own = zones.on(axis) if zones is not None and zones.fits(axis) else None
    whole = own if own is not None and level == own.level else _by_level(axis, level)
    if named is None:
        return whole
    kept, finest = np.zeros(len(whole.group), bool), whole.named
    for name in [named] if isinstance(named, str) else named:
        inside, at = _inside(axis, name, own)
        kept |= inside
        finest = None if finest is None or at is None else max(finest, at)
    group = np.where(kept, whole.group, np.int32(LEFT_OUT))
    return replace(whole, group=group, named=finest)


def _by_level(axis: Axis, level: str) -> Grouping:
    hierarchy = axis.hierarchy
    try:
        depth = hierarchy.level_of(level)
    except HierarchyError as problem:
        raise ReleaseError(f"{axis.name}: {problem}") from None
    group = hierarchy.ancestor(hierarchy.depth, depth)
    return Grouping(axis, level, hierarchy.codes(depth), group, hierarchy.as_read(depth), depth)


def _inside(axis: Axis, name: str, own: Grouping | None) -> tuple[NDArray[np.bool_], int | None]:
    """bool[finest areas]: which lie in the area of this name, and its level; or in the zone."""
    if own is not None:
        code = name.removeprefix(f"{own.level}:")
        number = own.codes.index(code).as_py()
        if number >= 0 and (code != name or not _by_code(axis.hierarchy, name)):
            return np.asarray(own.group == number), None
    level, area = find_area(axis, name)
    return np.asarray(axis.hierarchy.ancestor(axis.hierarchy.depth, level) == area), level


def find_area(axis: Axis, name: str) -> tuple[int, int]:
    """Level and number of an area: its code, its name, or either after its level and a colon.

    Raises:
        ReleaseError: no area, or more than one, has the name; the error lists them.
    """
    hierarchy = axis.hierarchy
    found = _by_code(hierarchy, name) or _by_name(hierarchy, name)
    if not found:
        raise ReleaseError(f"{axis.name}: there is no area {_similar(hierarchy, name)}")
    depth = hierarchy.depth
    # A single child has the same cells as its parent.
    different = {
        tuple(hierarchy.descendant_offsets(level, depth)[[area, area + 1]].tolist()): (level, area)
        for level, area in reversed(found)
    }
    if len(different) > 1:
        listed = [_described(hierarchy, *one) for one in found]
        more = len(listed) - _MOST_LISTED
        listed[_MOST_LISTED:] = [f"{more:,} more"] if more > 0 else []
        raise ReleaseError(
            f"{axis.name}: {name!r} is more than one area: {'; '.join(listed)}. Write its level "
            "and its code"
        )
    return found[0]


def _split(hierarchy: Hierarchy, name: str) -> tuple[Sequence[int], str]:
    """Split a name into the levels that it may belong to, coarse to fine, and the name alone."""
    level, colon, rest = name.partition(":")
    if colon and level in hierarchy.level_names:
        return [hierarchy.level_of(level)], rest
    return range(1, hierarchy.depth + 1), name


def _by_code(hierarchy: Hierarchy, name: str) -> list[tuple[int, int]]:
    levels, code = _split(hierarchy, name)
    numbers = ((level, hierarchy.codes(level).index(code).as_py()) for level in levels)
    return [(level, number) for level, number in numbers if number >= 0]


def _by_name(hierarchy: Hierarchy, name: str) -> list[tuple[int, int]]:
    levels, wanted = _split(hierarchy, name)
    wanted = wanted.strip().casefold()
    return [(level, area) for level, area, known in _names(hierarchy, levels) if known == wanted]


def _names(hierarchy: Hierarchy, levels: Sequence[int]) -> Iterator[tuple[int, int, str]]:
    """Yield level, number and lower-case name of every area that has a name."""
    for level in levels:
        names = hierarchy.places.names.get(hierarchy.level_name(level), ())
        for area, name in enumerate(names.to_pylist() if names else ()):
            if name is not None:
                yield level, area, name.casefold()


def _described(hierarchy: Hierarchy, level: int, area: int) -> str:
    """Describe an area: how to write it, its name, and the area that contains it."""
    texts = [f"{hierarchy.level_name(level)}:{hierarchy.codes(level)[area].as_py()}"]
    if name := hierarchy.places.name(hierarchy.level_name(level), area):
        texts.append(repr(name))
    if level > 1:
        above = int(hierarchy.ancestor(level, level - 1)[area])
        known = hierarchy.places.name(hierarchy.level_name(level - 1), above)
        code = hierarchy.codes(level - 1)[above].as_py()
        texts.append(f"in {hierarchy.level_name(level - 1)} {code}{f' ({known})' if known else ''}")
    return " ".join(texts)


def _similar(hierarchy: Hierarchy, name: str) -> str:
    """Explain that no area has a name, with similar names if there are any."""
    levels, wanted = _split(hierarchy, name)
    known = {text: (level, area) for level, area, text in _names(hierarchy, levels)}
    near = get_close_matches(wanted.casefold(), known, n=3, cutoff=0.75)
    near = near or [text for text in known if wanted.strip().casefold() in text][:3]
    at = "any level" if len(levels) != 1 else f"level {hierarchy.level_name(levels[0])!r}"
    meant = " or ".join(_described(hierarchy, *known[one]) for one in near)
    return f"{wanted!r} at {at}" + (f"; did you mean {meant}?" if meant else "")
