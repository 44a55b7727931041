# ruff: noqa: S608 - the SQL here is made of names that this package gives, never of input
"""The rows of a table in SQL: chosen columns, area numbers, trips, and what is wrong.

The same SQL counts the rows of a table on one machine and those of a part of it on a Spark
executor.

How rows are counted was chosen by measuring. Trips repeat, so they are grouped by the codes
as they are written and only the groups are looked up in the hierarchy: that costs about what
a plain GROUP BY costs. Flows hardly repeat, and grouping them takes four times as long as
looking them up, so they are left as they are: the truth adds up equal leaves anyway.
Only where that would take much memory their numbers are grouped. A stream can be read once only,
so it is grouped as it is written into a temporary table, from which a message can still quote
unknown codes.

Nothing here leaves DuckDB except leaf counts and the codes of unknown areas.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from inftda.areas.placing import placer_of
from inftda.errors import IngestError
from inftda.hierarchy import OUTSIDE
from inftda.noise.bits import RandomSource, SecureSource
from inftda.places import Places
from inftda.reading import bounding, meaning
from inftda.reading.columns import Columns, find_columns, may_be_empty
from inftda.reading.meaning import SENTENCES, Column, Flaw
from inftda.reading.sources import local_files, open_source
from inftda.reading.sql_source import SqlQuery, open_query
from inftda.reading.workspace import Workspace, quote
from inftda.tables import as_arrow, as_numpy
from inftda.threads import Crew, available_cores
from inftda.truth import MAX_TOTAL, Leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from inftda.areas.placing import Placer
    from inftda.hierarchy import Hierarchy
    from inftda.privacy.unit import Unit
    from inftda.reading.sources import Source
    from inftda.tree import Axis, Impossible

#: How many unknown codes a message shows, and how much of each.
SHOWN_CODES: Final = 5
SHOWN_CHARACTERS: Final = 40
#: More rows than this, half a gigabyte of leaves, are grouped.
MANY: Final = 1 << 25
#: What totals are called, in small letters.
TOTALS: Final = (
    "all", "celkem", "ensemble", "gesamt", "i alt", "insgesamt", "ogółem", "razem", "sum", "suma",
    "summe", "sums", "totaal", "total", "totale", "totals", "totalt", "yhteensä",
)  # fmt: skip
#: Said of a table that seems to have some. It does not say how many, which, or why.
LIKE_TOTALS: Final = (
    "rows without a known area look like totals, by a name such as Total or All; if they are, take "
    "them out of the table, or what they sum up is counted twice"
)


def read_leaves(  # noqa: PLR0913 - each option is one decision of the custodian
    source: Any,
    columns: Columns,
    axes: Sequence[Axis],
    *,
    unit: Unit | None = None,
    impossible: Impossible | None = None,
    random_source: RandomSource | None = None,
    say: Callable[[str], object] | None = None,
    memory_limit: str | None = None,
    threads: int | None = None,
) -> Leaves:
    """Read trips or flows and count them per leaf.

    The source is a path of a CSV, Parquet or Excel file, a folder or glob of them, a `TableFile`,
    an `SqlQuery`, a pandas, polars or pyarrow table, a mapping of columns, or any Arrow stream. The
    unit is needed for a person column and for dropping rows; rows that are `impossible` go the way
    of those that cannot be placed; the choice of a person's trips comes
    from a secure source unless another is given. `say` is told what a row was taken for, and
    `memory_limit` is what DuckDB may hold before it spills to disk, as "4GB".

    >>> from inftda.hierarchy import Hierarchy
    >>> from inftda.tree import Axis
    >>> towns = Hierarchy.read({"town": ["001", "002"]})
    >>> trips = {"origin": ["001", "001", "002"], "destination": ["002", "002", "002"]}
    >>> axes = [Axis("origin", towns), Axis("destination", towns)]
    >>> leaves = read_leaves(trips, Columns(), axes)
    >>> sorted(zip(*(axis.tolist() for axis in leaves.areas), leaves.counts.tolist()))
    [(0, 1, 2), (1, 1, 1)]
    """
    columns.check(axes, unit)
    with (
        local_files(source) as files,
        Workspace(files, memory_limit=memory_limit, threads=threads) as workspace,
    ):
        if isinstance(source, SqlQuery):
            table = open_query(source, workspace)
        else:
            table = open_source(source, files, workspace)
        rows = Rows.of(table, columns, axes, workspace, impossible)
        if say is not None:
            say(rows.words)
        fetch = partial(rows.count, workspace)
        if columns.person is not None and unit is not None:
            secret = bounding.draw_secret(random_source or SecureSource())
            fetch = partial(
                bounding.fetch_bounded, rows.placed(), rows.numbers,
                once=rows.once(unit), workspace=workspace, unit=unit, secret=secret,
            )  # fmt: skip
        result = table.attempt(fetch)
        *areas, counts = Crew(threads or available_cores()).map(_joined, result.columns)
        del result
        rows.check(
            _flaws(areas[0], counts),
            unit,
            lambda: table.attempt(partial(workspace.fetch, rows.lost())).to_pylist(),
            has_rows=len(counts) > 0,
            has_trips=bool((counts > 0).any()),
        )
        if say is not None:
            sought = rows.like_totals(columns)
            if sought and table.attempt(partial(workspace.fetch, sought)).column(0)[0].as_py():
                say(LIKE_TOTALS)
    return Leaves.of(areas, counts)


def _joined(column: pa.ChunkedArray) -> NDArray[Any]:
    """The numbers of a column in one array."""
    if column.num_chunks < 2:
        return as_numpy(column.combine_chunks())
    # Not by Arrow, which would get the room from its own store of memory and keep it.
    return np.concatenate([as_numpy(chunk) for chunk in column.chunks])


def _flaws(first: NDArray[np.int32], counts: NDArray[np.int64]) -> dict[int, int]:
    """How many rows have each flaw: minus the flaw is their first area."""
    is_flawed = first < 0
    if not is_flawed.any():
        return {}
    tally = np.zeros(len(Flaw) + 1, np.int64)
    np.add.at(tally, -first[is_flawed], counts[is_flawed])
    return {int(flaw): int(tally[flaw]) for flaw in np.flatnonzero(tally)}


@dataclass(frozen=True, slots=True)
class AxisCode:
    """The code of one axis in SQL, and how it becomes the number of an area.

    The table `lookup` turns codes into numbers, and `fallback` is the number for those that it does
    not have, if there is one. Where columns are points, `placer` finds the numbers of their areas.
    """

    name: str
    hierarchy: Hierarchy
    value: meaning.Value
    lookup: str
    fallback: int | None
    missing: str
    placer: Placer | None = None


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of the input in SQL: `code_0`, `code_1`, ..., `n` trips, `flaw`, `r` input rows.

    There is a column `person` if `has_person`. If `is_grouped`, each combination of codes occurs
    only once, or once for every flaw. Without a `count_name` every row of the input is one trip.
    What a row of the input is called is `row`: in a matrix it is a cell.
    """

    label: str
    axes: tuple[AxisCode, ...]
    positions: tuple[int, ...]
    sql: str
    count_name: str | None
    has_person: bool
    is_dropping: bool
    is_grouped: bool = False
    row: str = "row"
    impossible: Impossible | None = None

    @classmethod
    def of(
        cls,
        table: Source,
        columns: Columns,
        axes: Sequence[Axis],
        workspace: Workspace,
        impossible: Impossible | None = None,
    ) -> Rows:
        """Choose the columns (see `find_columns`); no row is read unless the table is a stream."""
        uses, count = find_columns(table, columns, axes)
        sql = table.select([position for position, _ in uses])
        types = [kind for _, kind in table.attempt(lambda: workspace.describe(f"FROM ({sql})"))]
        found = [
            Column(name, f"c{i}", kind)
            for i, ((_, name), kind) in enumerate(zip(uses, types, strict=True))
        ]
        codes = _axis_codes(iter(found), columns, axes, table.label)
        selected = [f"{axis.value.sql} AS code_{i}" for i, axis in enumerate(codes)]
        flaws = [axis.value.flaw for axis in codes]
        n = "1"
        if columns.person is not None:
            person = meaning.person(found[-1], table.label)
            nobody = f"CASE WHEN {person.sql} IS NULL THEN {Flaw.NOBODY:d} ELSE 0 END"
            flaws += [person.flaw, nobody]
            selected.append(f"{person.sql} AS person")
        if count is not None:
            number = meaning.count(found[-1 - (columns.person is not None)], table.label)
            n = number.sql
            flaws.append(number.flaw)
        # The first that a row has; "0" if it cannot have any.
        firsts = [f"nullif({one}, 0)" for one in flaws if one != "0"]
        flaw = f"coalesce({', '.join(firsts)}, 0)" if firsts else "0"
        selected += [f"{n} AS n", f"{flaw} AS flaw", "1 AS r"]
        rows = cls(
            table.label,
            codes,
            tuple(position for position, _ in uses),
            f"SELECT {', '.join(selected)} FROM ({sql})",
            count_name=count,
            has_person=columns.person is not None,
            is_dropping=columns.policy == "drop",
            row="cell" if table.destinations else "row",
            impossible=impossible,
        )
        rows.register(workspace)
        return rows._grouped(table, workspace, is_flawless=flaw == "0")

    def _grouped(self, table: Source, workspace: Workspace, *, is_flawless: bool) -> Rows:
        """The rows grouped by codes as they are written, if that is faster or they are a stream."""
        is_trips = self.count_name is None
        if table.is_repeatable and not (is_trips and not self.has_person):
            return self
        keys = [f"code_{i}" for i in range(len(self.axes))] + ["person"] * self.has_person
        n = "count(*)" if is_trips else "sum(n)"
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
    def words(self) -> str:
        """What a row of the table was taken for."""
        if self.count_name is None:
            return "every row as one"
        return "by cell" if self.row == "cell" else f"by column {self.count_name!r}"

    @property
    def numbers(self) -> list[str]:
        """Names of the columns with area numbers."""
        return [f"area_{i}" for i in range(len(self.axes))]

    def once(self, unit: Unit) -> str | None:
        """The column of the axis that a person has one trip for each area of."""
        by_name = {axis.name: f"area_{i}" for i, axis in enumerate(self.axes)}
        return None if unit.once_per is None else by_name[unit.once_per]

    def register(self, workspace: Workspace) -> None:
        """Make the codes of all areas known to a workspace, and what finds those of points."""
        for axis in {axis.lookup: axis for axis in self.axes}.values():
            codes = axis.hierarchy.codes(axis.hierarchy.depth)
            numbers = as_arrow(np.arange(len(codes), dtype=np.int32))
            columns = [codes if axis.placer is None else numbers, numbers]
            table = pa.Table.from_arrays(columns, names=["code", "number"])
            workspace.register(axis.lookup, table)
            if axis.placer is not None:
                workspace.register_function(f"place_{axis.lookup}", axis.placer.place)
        if (known := self.impossible) is not None:
            finest = tuple(axis.hierarchy.depth for axis in self.axes)
            workspace.register_function(
                "is_impossible",
                lambda *areas: np.asarray(~known.is_possible(finest, areas), np.int32),
            )

    def placed(self) -> str:
        """SQL for rows with area numbers, `person` if there is one, and `n`.

        A row with a flaw has minus the flaw as first area, 0 as the others, NULL as person
        and its number of input rows as `n`.
        """
        at = [
            name if axis.fallback is None else f"coalesce({name}, {axis.fallback:d})"
            for name, axis in zip(self.numbers, self.axes, strict=True)
        ]
        lost = " OR ".join(f"{number} IS NULL" for number in at)
        flaw = f"CASE WHEN flaw > 0 THEN flaw WHEN {lost} THEN {Flaw.UNPLACEABLE:d} ELSE 0 END"
        named = [f"{number} AS at_{i}" for i, number in enumerate(at)]
        named += ["person"] * self.has_person
        inner = f"SELECT {', '.join(named)}, n, r, {flaw} AS status FROM ({self._looked_up()})"
        if self.impossible is not None:
            inner = self._without_impossible(inner)
        columns = ["CASE WHEN status = 0 THEN person END AS person"] * self.has_person
        columns += [
            f"CAST(CASE WHEN status = 0 THEN at_{i} ELSE {'-status' if i == 0 else '0'} END "
            f"AS INTEGER) AS {name}"
            for i, name in enumerate(self.numbers)
        ]
        columns += ["CASE WHEN status = 0 THEN n ELSE r END AS n"]
        left_out = f"{Flaw.UNPLACEABLE:d}, {Flaw.IMPOSSIBLE:d}"
        kept = f" WHERE status NOT IN ({left_out})" if self.is_dropping else ""
        return f"SELECT {', '.join(columns)} FROM ({inner}){kept}"

    def _without_impossible(self, placed: str) -> str:
        """SQL for rows of which those that cannot occur are outside, or have a flaw.

        They are outside on every axis that has such an area: what is there may be anywhere.
        """
        outside = {
            i: axis.fallback for i, axis in enumerate(self.axes) if axis.fallback is not None
        }
        never = f"is_impossible({', '.join(f'at_{i}' for i in range(len(self.axes)))}) = 1"
        moved = [
            f"CASE WHEN never THEN {area:d} ELSE at_{i} END AS at_{i}"
            for i, area in outside.items()
        ]
        if not outside:
            moved = [
                f"CASE WHEN never AND status = 0 THEN {Flaw.IMPOSSIBLE:d} ELSE status END AS status"
            ]
        return (
            f"SELECT * EXCLUDE never REPLACE ({', '.join(moved)}) FROM "
            f"(SELECT *, {never} AS never FROM ({placed}))"
        )

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
        return workspace.fetch(bounding.merged(self.placed(), self.numbers))

    def check(
        self,
        flaws: Mapping[int, int],
        unit: Unit | None,
        lost: Callable[[], Iterable[Mapping[str, Any]]],
        *,
        has_rows: bool,
        has_trips: bool,
    ) -> None:
        """Refuse flawed rows, and a table without trips where an error gives nothing away.

        `flaws` is how many rows have each flaw, and `lost` gives what the SQL of `lost` finds.
        """
        if flaws:
            flaw, n = min(flaws.items())
            raise IngestError(
                SENTENCES[Flaw(flaw)].format(
                    rows=f"1 {self.row}" if n == 1 else f"{n:,} {self.row}s",
                    have="has" if n == 1 else "have",
                    label=self.label,
                    count=self.count_name,
                    trips="" if unit is None else unit.contribution(),
                    lost=self._describe_lost(lost()) if flaw == Flaw.UNPLACEABLE else "",
                )
            )
        if has_trips or may_be_empty(unit):
            return
        if has_rows:
            raise IngestError(f"all counts of {self.label} are 0; there is nothing to count")
        rest = "no row that can be placed" if self.is_dropping else "no rows"
        raise IngestError(f"{self.label} has {rest}; there is nothing to count")

    def like_totals(self, columns: Columns) -> str:
        """SQL for whether rows that cannot be placed are called totals; empty where none can be.

        Only flows can: a trip is no total, nor is what a person does.

        Privacy:
            The answer is for the screen of the custodian, who knows the table. It goes into no
            file, and nothing that is released depends on it.
        """
        codes = [i for i, axis in enumerate(self.axes) if axis.placer is None]
        if columns.policy == "error" or self.count_name is None or self.has_person or not codes:
            return ""
        names = ", ".join(quote(name) for name in TOTALS)
        is_named = " OR ".join(
            f"(area_{i} IS NULL AND lower(trim(CAST(code_{i} AS VARCHAR))) IN ({names}))"
            for i in codes
        )
        return f"SELECT coalesce(bool_or({is_named}), false) FROM ({self._looked_up()})"

    def lost(self) -> str:
        """SQL for unknown codes: number of the axis and code, the first few of each axis.

        On an axis that has an area for them nothing is wrong.
        """
        parts = [
            f"(SELECT {i} AS axis, CAST(code AS VARCHAR) AS code FROM (SELECT DISTINCT code_{i} "
            f"AS code FROM ({self._looked_up()}) WHERE area_{i} IS NULL) "
            f"ORDER BY code NULLS FIRST LIMIT {SHOWN_CODES + 2})"
            for i, axis in enumerate(self.axes)
            if axis.fallback is None
        ]
        return " UNION ALL ".join(parts)

    def _describe_lost(self, found: Iterable[Mapping[str, Any]]) -> str:
        """Which codes are unknown, the first few of each axis in order, and which are missing."""
        said: list[str] = []
        lost = {(row["axis"], row["code"]) for row in found}
        for i, axis in enumerate(self.axes):
            codes = {code for number, code in lost if number == i}
            unknown = sorted(code for code in codes if code)
            if unknown:
                shown = ", ".join(repr(code[:SHOWN_CHARACTERS]) for code in unknown[:SHOWN_CODES])
                more = ", ..." if len(unknown) > SHOWN_CODES else ""
                hint = _hint(axis.hierarchy, unknown[:SHOWN_CODES])
                said.append(f"unknown {axis.name} {shown}{more}{hint}")
            if len(unknown) < len(codes):
                said.append(axis.missing)
        return "; ".join(said)

    def _looked_up(self) -> str:
        """SQL for the rows with the number of each area, NULL if it is unknown."""
        joins = " ".join(
            f"LEFT JOIN {axis.lookup} AS look_{i} ON look_{i}.code = code_{i}"
            for i, axis in enumerate(self.axes)
        )
        numbers = ", ".join(f"look_{i}.number AS area_{i}" for i in range(len(self.axes)))
        return f"SELECT part.*, {numbers} FROM ({self.sql}) AS part {joins}"


# --- axes


def _axis_codes(
    found: Iterable[Column], columns: Columns, axes: Sequence[Axis], label: str
) -> tuple[AxisCode, ...]:
    """How the codes of each axis are read from its columns."""
    lookups: dict[tuple[int, bool], str] = {}
    placers: dict[str, Placer] = {}
    made = []
    here = iter(found)
    for i, axis in enumerate(axes):
        kind = columns.kind_of(axis.name)
        own = [next(here) for _ in columns.of_axis(axis.name)]
        name = ", ".join(column.name for column in own)
        hierarchy = axis.hierarchy
        # Origin and destination often share one.
        lookup = lookups.setdefault((id(hierarchy), kind == "point"), f"lookup_{i}")
        missing = f"missing {name}"
        if kind == "point":
            if lookup not in placers:
                placers[lookup] = placer_of(hierarchy)
            degrees = ", ".join(meaning.degrees(column, label) for column in own)
            value = meaning.Value(f"nullif(place_{lookup}({degrees}), -1)")
            missing = (
                f"no area at the point ({name}), in degrees, longitude first: are they swapped?"
            )
        elif kind == "code":
            value = meaning.code(own[0], label)
        else:
            value = meaning.Value(meaning.clock(own[0], kind, label))
            missing = f"no time stamp such as 2026-05-17 08:30:00 in {name}"
        made.append(
            AxisCode(
                name=name,
                hierarchy=replace(hierarchy, places=Places()),
                value=value,
                lookup=lookup,
                fallback=_outside(name, hierarchy) if columns.has_outside(axis.name) else None,
                missing=missing,
                placer=placers.get(lookup),
            )
        )
    return tuple(made)


def _outside(name: str, hierarchy: Hierarchy) -> int:
    """Number of the area for rows that cannot be placed."""
    number = int(pc.index(hierarchy.codes(hierarchy.depth), OUTSIDE).as_py())
    if number < 0:
        raise IngestError(
            f"the hierarchy of axis {name!r} has no area {OUTSIDE!r} for rows that cannot be "
            "placed; add it with Hierarchy.with_outside()"
        )
    return number


def _hint(hierarchy: Hierarchy, unknown: Sequence[str]) -> str:
    """What is often wrong with the areas, or with the codes."""
    for level in range(hierarchy.depth - 1, 0, -1):
        coarser = {*unknown} & {*hierarchy.codes(level).to_pylist()}
        if coarser:
            return (
                f" ({min(coarser)!r} is of level {hierarchy.level_name(level)!r}, and the finest "
                f"level of the areas is {hierarchy.level_name(hierarchy.depth)!r}: is that one a "
                "column of names? Say which columns are levels: `levels=`)"
            )
    finest = hierarchy.codes(hierarchy.depth).to_pylist()
    by_number = {code.lstrip("0"): code for code in finest}
    for code in unknown:
        known = by_number.get(code.lstrip("0"))
        if known is not None:
            who, verb = ("areas", "is") if len(known) < len(code) else ("codes", "would be")
            there = " there" if who == "areas" else ""
            return f" (did the {who} lose their leading zeros? {code!r} {verb} {known!r}{there})"
    return ""
