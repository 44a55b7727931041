# ruff: noqa: S608 - the SQL here is made of names that this package gives, never of input
"""The rows of the input in SQL: chosen columns, area numbers, trips, and what is wrong.

The same SQL counts the rows of a table on one machine and those of a part of it on a Spark
executor.

How rows are counted was chosen by measuring. Trips repeat, so they are grouped by the codes
as they are written and only the groups are looked up in the hierarchy: that costs about what
a plain GROUP BY costs. Flows hardly repeat, and grouping them takes four times as long as
looking them up, so they are left as they are: whoever sorts leaves adds up equal ones anyway.
Only where that would take much memory their numbers are grouped. A stream can be read once only,
so it is grouped as it is written into a temporary table, from which a message can still quote
unknown codes.

Nothing here leaves DuckDB except the codes of unknown areas.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from inftda.areas.placing import placer_of
from inftda.errors import IngestError
from inftda.places import Places
from inftda.reading.columns import (
    Column,
    area_text,
    clock_code,
    count_value,
    degrees_value,
    person_group,
)
from inftda.reading.flaws import Flaw
from inftda.reading.sources import RAW_FLAW, Input, Relation, Use
from inftda.reading.spec import Clock, Point, columns_of
from inftda.tables import as_arrow
from inftda.truth import MAX_TOTAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from inftda.areas.placing import Placer
    from inftda.hierarchy import Hierarchy
    from inftda.reading.roles import Roles
    from inftda.reading.spec import TableSpec
    from inftda.reading.workspace import Workspace

#: How many unknown codes a message shows, and how much of each.
SHOWN_CODES: Final = 5
SHOWN_CHARACTERS: Final = 40
_MOST_CODES: Final = SHOWN_CODES + 2
#: More rows than this, half a gigabyte of leaves, are grouped.
MANY: Final = 1 << 25


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis in SQL.

    Attributes:
        name: its column, as it is written, or columns.
        hierarchy: where its codes come from, without names and outlines.
        text: SQL for the code in a row of the input.
        code: name of the column with the code.
        number: name of the column with the number of the area.
        lookup: name of the table that turns the one into the other.
        fallback: number of the area for codes that are not in the hierarchy, or None.
        missing: what is wrong with a row without a code.
        placer: finds the areas of points; None if there are codes. A point's code is the number
            of its area.
    """

    name: str
    hierarchy: Hierarchy
    text: str
    code: str
    number: str
    lookup: str
    fallback: int | None
    missing: str
    placer: Placer | None = None


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of the input in SQL: codes, `n` trips, their `flaw`, and `r` input rows.

    Attributes:
        axes: the axes.
        sql: SQL for the rows.
        has_person: whether they have a column `person`.
        is_trips: whether every row of the input is one trip.
        is_dropping: whether rows that cannot be placed are left out.
        is_grouped: whether each combination of codes occurs only once, or once for every flaw.
    """

    axes: tuple[Axis, ...]
    sql: str
    has_person: bool
    is_trips: bool
    is_dropping: bool
    is_grouped: bool = False

    @classmethod
    def of(cls, table: Input, roles: Roles, spec: TableSpec, workspace: Workspace) -> Rows:
        """Choose the columns; no row is read.

        Raises:
            IngestError: a column cannot hold what it should.
        """
        relation = table.select(roles.uses)
        types = _types(table, relation, workspace)
        axes = _make_axes(roles.areas, types, spec, table.label)
        _register_placers(axes, workspace)
        selected = [f"{axis.text} AS {axis.code}" for axis in axes]
        n, flaw = "1", "0"
        if roles.count is not None:
            n, flaw = count_value(_column(roles.count, types), table.label)
        if roles.person is not None:
            group = person_group(_column(roles.person, types), table.label)
            selected.append(f"{group} AS person")
            flaw = f"CASE WHEN {group} IS NULL THEN {Flaw.NOBODY:d} ELSE {flaw} END"
        if RAW_FLAW in types:
            flaw = f"CASE WHEN {RAW_FLAW} > 0 THEN {RAW_FLAW} ELSE {flaw} END"
        selected += [f"{n} AS n", f"{flaw} AS flaw", "1 AS r"]
        rows = cls(
            axes,
            f"SELECT {', '.join(selected)} FROM ({relation.sql})",
            has_person=roles.person is not None,
            is_trips=roles.count is None,
            is_dropping=spec.is_dropping,
        )
        return rows._grouped(table, workspace, is_flawless=flaw == "0")

    def _grouped(self, table: Input, workspace: Workspace, *, is_flawless: bool) -> Rows:
        """The rows grouped by codes as they are written, if that is faster or they are a stream."""
        if table.is_repeatable and not (self.is_trips and not self.has_person):
            return self
        keys = [axis.code for axis in self.axes] + (["person"] if self.has_person else [])
        n = "count(*)" if self.is_trips else "sum(n)"
        # If no row can have a flaw, it need not be a key.
        flaw = "0 AS flaw" if is_flawless else "flaw"
        sql = f"SELECT {', '.join(keys)}, {flaw}, {n} AS n, count(*) AS r FROM ({self.sql}) "
        sql += f"GROUP BY {', '.join(keys)}" + ("" if is_flawless else ", flaw")
        if not table.is_repeatable:
            statement = f"CREATE TEMP TABLE grouped AS {sql}"
            table.attempt(lambda: workspace.run(statement))
            sql = "FROM grouped"
        return replace(self, sql=sql, is_grouped=not self.has_person)

    @property
    def numbers(self) -> list[str]:
        """Names of the columns with area numbers."""
        return [axis.number for axis in self.axes]

    def register_lookups(self, workspace: Workspace) -> None:
        """Make the codes of all areas known to a workspace, and what finds those of points."""
        for axis in {axis.lookup: axis for axis in self.axes}.values():
            workspace.register(axis.lookup, area_lookup(axis))
        _register_placers(self.axes, workspace)

    def placed(self) -> str:
        """SQL for rows with area numbers, `person` if there is one, and `n`.

        A row with a flaw has minus the flaw as first area, 0 as the others, NULL as person
        and its number of input rows as `n`.
        """
        numbers = [
            axis.number if axis.fallback is None else f"coalesce({axis.number}, {axis.fallback:d})"
            for axis in self.axes
        ]
        lost = " OR ".join(f"{number} IS NULL" for number in numbers)
        flaw = f"CASE WHEN flaw > 0 THEN flaw WHEN {lost} THEN {Flaw.UNPLACEABLE:d} ELSE 0 END"
        named = [f"{number} AS at_{i}" for i, number in enumerate(numbers)]
        person = ["person"] if self.has_person else []
        inner = f"SELECT {', '.join([*named, *person])}, n, r, {flaw} AS status "
        inner += f"FROM ({self._looked_up()})"
        columns = ["CASE WHEN status = 0 THEN person END AS person"] if self.has_person else []
        columns += [
            f"CAST(CASE WHEN status = 0 THEN at_{i} ELSE {'-status' if i == 0 else '0'} END "
            f"AS INTEGER) AS {axis.number}"
            for i, axis in enumerate(self.axes)
        ]
        columns += ["CASE WHEN status = 0 THEN n ELSE r END AS n"]
        kept = f" WHERE status <> {Flaw.UNPLACEABLE:d}" if self.is_dropping else ""
        return f"SELECT {', '.join(columns)} FROM ({inner}){kept}"

    def count(self, workspace: Workspace) -> pa.Table:
        """Area numbers and trips `n` of the leaves, some of which may be there several times.

        A flawed row is one as `placed` says.
        """
        n = f"CAST(least(n, {MAX_TOTAL + 1}) AS BIGINT) AS n"
        listed = f"SELECT {', '.join(self.numbers)}, {n} FROM ({self.placed()})"
        if self.is_grouped:
            return workspace.fetch(listed)
        found = workspace.fetch(f"{listed} LIMIT {MANY + 1:d}")
        if len(found) <= MANY:
            return found
        del found
        return workspace.fetch(merged(self.placed(), self.numbers))

    def lost(self) -> str:
        """SQL for unknown codes: number of the axis and code, the first few of each axis.

        On an axis that has an area for them nothing is wrong.
        """
        parts = [
            f"(SELECT {i} AS axis, CAST(code AS VARCHAR) AS code "
            f"FROM (SELECT DISTINCT {axis.code} AS code "
            f"FROM ({self._looked_up()}) WHERE {axis.number} IS NULL) "
            f"ORDER BY code NULLS FIRST LIMIT {_MOST_CODES})"
            for i, axis in enumerate(self.axes)
            if axis.fallback is None
        ]
        return " UNION ALL ".join(parts)

    def describe_lost(self, found: Iterable[tuple[int, str | None]]) -> str:
        """Which codes are unknown, the first few of each axis in order, and which are missing.

        Args:
            found: what `lost` gives, of any number of parts of the table.
        """
        said: list[str] = []
        lost = {*found}
        for i, axis in enumerate(self.axes):
            codes = {code for number, code in lost if number == i}
            unknown = sorted(code for code in codes if code)
            if unknown:
                shown = ", ".join(repr(code[:SHOWN_CHARACTERS]) for code in unknown[:SHOWN_CODES])
                more = ", ..." if len(unknown) > SHOWN_CODES else ""
                said.append(f"unknown {axis.name} {shown}{more}{_hint(axis, unknown)}")
            if len(unknown) < len(codes):
                said.append(axis.missing)
        return "; ".join(said)

    def _looked_up(self) -> str:
        """SQL for the rows with the number of each area, NULL if it is unknown."""
        joins = " ".join(
            f"LEFT JOIN {axis.lookup} AS at_{axis.code} ON at_{axis.code}.code = {axis.code}"
            for axis in self.axes
        )
        numbers = ", ".join(f"at_{axis.code}.number AS {axis.number}" for axis in self.axes)
        return f"SELECT part.*, {numbers} FROM ({self.sql}) AS part {joins}"


def merged(rows: str, areas: Sequence[str]) -> str:
    """SQL for the counts per leaf, capped just above the largest total.

    Args:
        rows: SQL for rows with the columns of `areas`, and `n` trips.
        areas: names of the area columns.
    """
    leaf = ", ".join(areas)
    total = f"CAST(least(sum(n), {MAX_TOTAL + 1}) AS BIGINT)"
    return f"SELECT {leaf}, {total} AS n FROM ({rows}) GROUP BY {leaf}"


def area_lookup(axis: Axis) -> pa.Table:
    """`code` and `number` of every finest area."""
    codes = axis.hierarchy.codes(axis.hierarchy.depth)
    numbers = as_arrow(np.arange(len(codes), dtype=np.int32))
    return pa.Table.from_arrays(
        [codes if axis.placer is None else numbers, numbers], names=["code", "number"]
    )


def _register_placers(axes: Sequence[Axis], workspace: Workspace) -> None:
    """Make a function of SQL known that finds the areas of points."""
    for axis in axes:
        if axis.placer is not None:
            workspace.register_function(_placing(axis.lookup), axis.placer.place)


def _placing(lookup: str) -> str:
    """What such a function is called."""
    return f"place_{lookup}"


def _types(table: Input, relation: Relation, workspace: Workspace) -> Mapping[str, str]:
    """DuckDB types of a relation by column."""
    sql = f"FROM ({relation.sql})"
    names = table.attempt(lambda: workspace.names(sql))
    types = table.attempt(lambda: workspace.types(sql))
    return dict(zip(names, types, strict=True)) | relation.types


def _column(use: Use, types: Mapping[str, str]) -> Column:
    return Column(use.name, use.alias, types[use.alias])


def _make_axes(
    uses: Sequence[Sequence[Use]], types: Mapping[str, str], spec: TableSpec, label: str
) -> tuple[Axis, ...]:
    lookups: dict[tuple[int, bool], str] = {}
    placers: dict[str, Placer] = {}
    made = []
    for i, (of_axis, (axis, hierarchy)) in enumerate(zip(uses, spec.axes, strict=True)):
        # Origin and destination often share one.
        lookup = lookups.setdefault((id(hierarchy), isinstance(axis, Point)), f"lookup_{i}")
        is_outside = spec.has_outside(i)
        columns = [_column(use, types) for use in of_axis]
        name = ", ".join(columns_of(axis))
        missing = f"missing {name}"
        if isinstance(axis, Point):
            if lookup not in placers:
                placers[lookup] = placer_of(hierarchy)
            degrees = ", ".join(degrees_value(column, label) for column in columns)
            text = f"nullif({_placing(lookup)}({degrees}), -1)"
            missing = (
                f"no area at the point ({name}), in degrees, longitude first: are they swapped?"
            )
        elif isinstance(axis, Clock):
            text = clock_code(columns[0], axis.part, label)
            missing = f"no time stamp such as 2026-05-17 08:30:00 in {name}"
        else:
            text = area_text(columns[0], label)
        made.append(
            Axis(
                name=name,
                hierarchy=replace(hierarchy, places=Places.none()),
                text=text,
                code=f"code_{i}",
                number=f"area_{i}",
                lookup=lookup,
                fallback=_find_outside(name, hierarchy, spec.outside) if is_outside else None,
                missing=missing,
                placer=placers.get(lookup),
            )
        )
    return tuple(made)


def _find_outside(name: str, hierarchy: Hierarchy, outside: str) -> int:
    """Number of the area for rows that cannot be placed.

    Raises:
        IngestError: there is none.
    """
    number = int(pc.index(hierarchy.codes(hierarchy.depth), outside).as_py())
    if number < 0:
        raise IngestError(
            f"the hierarchy of axis {name!r} has no area {outside!r} for rows that cannot be "
            "placed; add it with Hierarchy.with_outside()"
        )
    return number


def _hint(axis: Axis, unknown: Sequence[str]) -> str:
    """What may be wrong with the areas, or with the codes: what often is."""
    hierarchy = axis.hierarchy
    shown = pa.array(unknown[:SHOWN_CODES], pa.string())
    for level in range(hierarchy.depth - 1, 0, -1):
        is_coarser = pc.is_in(shown, value_set=hierarchy.codes(level))
        if pc.any(is_coarser).as_py():
            code = shown.filter(is_coarser)[0].as_py()
            return (
                f" ({code!r} is of level {hierarchy.level_name(level)!r}, and the finest level of "
                f"the areas is {hierarchy.level_name(hierarchy.depth)!r}: is that one a column of "
                "names? Say which columns are levels: --levels, or levels= in Python)"
            )
    return _zeros_hint(axis, unknown)


def _zeros_hint(axis: Axis, unknown: Sequence[str]) -> str:
    """Whether unknown codes differ from known ones by leading zeros only, lost on either side."""
    codes = axis.hierarchy.codes(axis.hierarchy.depth)
    for code in unknown[:SHOWN_CODES]:
        if code.startswith("0") and pc.index(codes, code.lstrip("0")).as_py() >= 0:
            known = code.lstrip("0")
            return f" (did the areas lose their leading zeros? {code!r} is {known!r} there)"
        is_longer = pc.and_(pc.ends_with(codes, code), pc.greater(pc.utf8_length(codes), len(code)))
        for known in codes.filter(is_longer).to_pylist():
            if known == code.zfill(len(known)):
                return f" (did the codes lose their leading zeros? {code!r} would be {known!r})"
    return ""
