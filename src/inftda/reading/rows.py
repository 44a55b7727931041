# ruff: noqa: S608 - the SQL here is made of names that this package gives, never of input
"""The rows of a table in SQL: chosen columns, area numbers, trips, and flaws.

The same SQL counts the rows of a table on one machine and those of a part of it on a Spark
executor.

Measurements decided how rows are counted. Trips repeat, so they are grouped by their codes and only
the groups are looked up in the hierarchy, which takes about as long as a plain GROUP BY. Flows
hardly repeat, and grouping them takes four times as long as looking them up, so they are not
grouped, because `Truth` adds up equal leaves. Only if this would need much memory, they are grouped
by area numbers. A stream can be read only once, so it is written into a temporary table, trips in
groups, from which a message can still quote unknown codes.

A row of flows that repeats another one, with the same areas and the same count, is more often a
copy than a second number, so such rows are refused unless the custodian has them added up. Leaves
are sorted to find out whether any of them repeats; rows are compared only if one does.

Nothing here leaves DuckDB except leaf counts, numbers of rows with a flaw, and some unknown codes.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from inftda.areas.placing import placer_of
from inftda.errors import IngestError
from inftda.noise.bits import RandomSource, SecureSource
from inftda.reading import bounding, meaning
from inftda.reading.columns import Columns, find_columns, may_be_empty
from inftda.reading.meaning import SENTENCES, Column, Flaw
from inftda.reading.sources import local_files, open_source
from inftda.reading.sql_source import SqlQuery, open_query
from inftda.reading.truth import MAX_TOTAL, leaf_counts, may_repeat
from inftda.reading.workspace import Workspace, quote
from inftda.tree.hierarchy import OUTSIDE
from inftda.tree.places import Places
from inftda.util.tabular import as_arrow, as_numpy
from inftda.util.threads import ThreadPool, available_cores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from inftda.areas.placing import Placer
    from inftda.privacy.unit import Unit
    from inftda.reading.sources import Source
    from inftda.tree import Axis, Cells
    from inftda.tree.hierarchy import Hierarchy

#: Number of unknown codes of an axis that are compared with known ones.
LOOKED_AT: Final = 100
#: Number of unknown codes in a message, and their largest length.
SHOWN_CODES: Final = 5
SHOWN_CHARACTERS: Final = 40
#: More rows than this, half a gigabyte of leaves, are grouped.
MANY: Final = 1 << 25
#: A whole number written as a decimal number.
_DECIMAL: Final = re.compile(r"[0-9]+\.0*")
#: Possible causes of unknown codes that resemble known ones.
_DECIMALS: Final = "are the codes decimal numbers? {!r} would be {!r}; write codes as text"
_SPELLING: Final = (
    "codes are compared as they are written, blanks and capitals included: {!r} would be {!r}"
)
_NAMES: Final = "are these names? {!r} is the name of {!r}; give the column of the codes"
_SUMS: Final = (
    "{!r} looks like a total: take rows and columns of totals out of the table, or what they sum "
    "up is counted twice"
)
#: Usual names of totals, in small letters.
TOTALS: Final = (
    "all", "celkem", "ensemble", "gesamt", "i alt", "insgesamt", "ogółem", "razem", "sum", "suma",
    "summe", "sums", "totaal", "total", "totale", "totals", "totalt", "yhteensä",
)  # fmt: skip
#: Message about a table that seems to contain totals. It states neither number nor names.
LIKE_TOTALS: Final = (
    "rows without a known area look like totals, by a name such as Total or All; if they are, take "
    "them out of the table, or what they sum up is counted twice"
)
#: Whether a leaf stands for several rows, where rows were added up as they were read.
SEVERAL: Final = "several"
#: Message about a table of counts whose cells repeat with different counts, without their number.
SPLIT_CELLS: Final = (
    "some rows have the same areas and different counts, which are added up; if one of them "
    "corrects or includes another, take that one out of the table"
)


def read_leaves(  # noqa: PLR0913 - each option is one decision of the custodian
    source: Any,
    columns: Columns,
    axes: Sequence[Axis],
    *,
    unit: Unit | None = None,
    random_source: RandomSource | None = None,
    say: Callable[[str], object] | None = None,
    memory_limit: str | None = None,
    threads: int | None = None,
) -> Cells:
    """Read trips or flows and count them per leaf.

    The source is a path of a file of any of the `FORMATS`, a folder or glob of them, a `TableFile`,
    an `SqlQuery`, a pandas, polars or pyarrow table, a mapping of columns, or any Arrow stream. The
    unit is needed for a person column and for dropping rows. A person's trips are chosen by a
    secure source unless another is given. `say` receives how rows are interpreted, and
    `memory_limit` is the memory that DuckDB may use before it spills to disk, as "4GB".

    >>> from inftda.tree.hierarchy import Hierarchy
    >>> from inftda.tree import Axis
    >>> towns = Hierarchy.read({"town": ["001", "002"]})
    >>> trips = {"origin": ["001", "001", "002"], "destination": ["002", "002", "002"]}
    >>> axes = [Axis("origin", towns), Axis("destination", towns)]
    >>> leaves = read_leaves(trips, Columns(), axes)
    >>> sorted(zip(*(axis.tolist() for axis in leaves.areas), leaves.value.tolist()))
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
        rows = Rows.of(table, columns, axes, workspace)
        rows.tell(unit, say)
        fetch = partial(rows.count, workspace)
        if columns.person is not None and unit is not None:
            key = bounding.draw_key(random_source or SecureSource())
            fetch = partial(rows.count_bounded, workspace, unit, key)
        result = table.attempt(fetch)
        pool = ThreadPool(threads or available_cores())
        has_merged = SEVERAL in result.column_names and pc.any(result[SEVERAL]).as_py()
        *areas, counts = pool.map(_joined, result.select([*rows.numbers, "n"]).columns)
        del result
        rows.check(
            _flaws(areas[0], counts),
            unit,
            lambda: table.attempt(partial(workspace.fetch, rows.lost())).to_pylist(),
            has_rows=len(counts) > 0,
            has_trips=bool((counts > 0).any()),
        )
        leaves = leaf_counts(areas, counts)
        del areas, counts
        if rows.is_compared and (has_merged or may_repeat(leaves)):
            lines = table.attempt(partial(workspace.fetch, rows.repeated_lines()))
            rows.check_repeated(lines.to_pylist()[0], say)
        if say is not None:
            sought = rows.like_totals(columns)
            if sought and table.attempt(partial(workspace.fetch, sought)).column(0)[0].as_py():
                say(LIKE_TOTALS)
    return leaves


def _joined(column: pa.ChunkedArray) -> NDArray[Any]:
    """The numbers of a column in one array."""
    if column.num_chunks < 2:
        return as_numpy(column.combine_chunks())
    # Not with Arrow, which would take the memory from its own pool and keep it.
    return np.concatenate([as_numpy(chunk) for chunk in column.chunks])


def _flaws(first: NDArray[np.int32], counts: NDArray[np.int64]) -> dict[int, int]:
    """Count rows by flaw; the first area of a flawed row is minus its flaw."""
    is_flawed = first < 0
    if not is_flawed.any():
        return {}
    tally = np.zeros(len(Flaw) + 1, np.int64)
    np.add.at(tally, -first[is_flawed], counts[is_flawed])
    return {int(flaw): int(tally[flaw]) for flaw in np.flatnonzero(tally)}


@dataclass(frozen=True, slots=True)
class AxisCode:
    """The code of one axis in SQL, and its translation to the number of an area.

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
    `row` is the noun for a row of the input; in a matrix it is a cell. `keys` are the columns of
    the axes as they are written; repeated rows are found by them unless `is_adding`.
    """

    label: str
    axes: tuple[AxisCode, ...]
    positions: tuple[int, ...]
    sql: str
    count_name: str | None
    has_person: bool
    is_dropping: bool
    is_adding: bool
    keys: tuple[str, ...]
    is_grouped: bool = False
    row: str = "row"

    @classmethod
    def of(
        cls, table: Source, columns: Columns, axes: Sequence[Axis], workspace: Workspace
    ) -> Rows:
        """Choose the columns by `find_columns`; no row is read unless the table is a stream."""
        uses, count = find_columns(table, columns, axes)
        sql = table.select([position for position, _ in uses])
        if not table.is_repeatable and count is not None and columns.person is None:
            statement = f"CREATE TEMP TABLE streamed AS {sql}"
            table.attempt(lambda: workspace.run(statement))
            table, sql = replace(table, is_repeatable=True), "FROM streamed"
        types = [kind for _, kind in table.attempt(lambda: workspace.describe(f"FROM ({sql})"))]
        found = [
            Column(name, f"c{i}", kind)
            for i, ((_, name), kind) in enumerate(zip(uses, types, strict=True))
        ]
        codes = _axis_codes(iter(found), columns, axes, table)
        selected = [f"{axis.value.sql} AS code_{i}" for i, axis in enumerate(codes)]
        n_keys = len(uses) - (count is not None) - (columns.person is not None)
        keys = tuple(f"c{i}" for i in range(n_keys))
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
        # The first flaw of a row; "0" if it cannot have any.
        firsts = [f"nullif({one}, 0)" for one in flaws if one != "0"]
        flaw = f"coalesce({', '.join(firsts)}, 0)" if firsts else "0"
        selected += [*keys, f"{n} AS n", f"{flaw} AS flaw", "1 AS r"]
        rows = cls(
            table.label,
            codes,
            tuple(position for position, _ in uses),
            f"SELECT {', '.join(selected)} FROM ({sql})",
            count_name=count,
            has_person=columns.person is not None,
            is_dropping=columns.policy == "drop",
            is_adding=columns.repeated_rows == "add",
            keys=keys,
            row="cell" if table.header else "row",
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
        """State how a row of the table is interpreted."""
        if self.count_name is None:
            return "every row as one"
        return "by cell" if self.row == "cell" else f"by column {self.count_name!r}"

    def tell(self, unit: Unit | None, say: Callable[[str], object] | None) -> None:
        """Report how rows are interpreted, and what the custodian must ensure."""
        if say is None:
            return
        say(self.words)
        if unit is not None and unit.trips > 1 and not self.has_person:
            bound = "exactly" if unit.exactly else "at most"
            say(
                f"without a column of persons nothing checks that everybody has {bound} "
                f"{unit.contribution()}; the guarantee holds only if that is so (`person=`)"
            )

    @property
    def numbers(self) -> list[str]:
        """Names of the columns with area numbers."""
        return [f"area_{i}" for i in range(len(self.axes))]

    def once(self, unit: Unit) -> str | None:
        """The column of the axis that a person has one trip for each area of."""
        by_name = {axis.name: f"area_{i}" for i, axis in enumerate(self.axes)}
        return None if unit.once_per is None else by_name[unit.once_per]

    def register(self, workspace: Workspace) -> None:
        """Register the codes of all areas in a workspace, and the function that places points."""
        for axis in {axis.lookup: axis for axis in self.axes}.values():
            codes = axis.hierarchy.codes(axis.hierarchy.depth)
            numbers = as_arrow(np.arange(len(codes), dtype=np.int32))
            columns = [codes if axis.placer is None else numbers, numbers]
            table = pa.Table.from_arrays(columns, names=["code", "number"])
            workspace.register(axis.lookup, table)
            if axis.placer is not None:
                workspace.register_function(f"place_{axis.lookup}", axis.placer.place)

    def placed(self) -> str:
        """SQL for rows with area numbers, `person` if there is one, and `n`.

        A row with a flaw has minus the flaw as first area, 0 as the others, NULL as person
        and its number of input rows as `n`.
        """
        columns = ["CASE WHEN status = 0 THEN person END AS person"] * self.has_person
        columns += [
            f"CAST(CASE WHEN status = 0 THEN at_{i} ELSE {'-status' if i == 0 else '0'} END "
            f"AS INTEGER) AS {name}"
            for i, name in enumerate(self.numbers)
        ]
        columns += ["CASE WHEN status = 0 THEN n ELSE r END AS n"]
        kept = f" WHERE status <> {Flaw.UNPLACEABLE:d}" if self.is_dropping else ""
        return f"SELECT {', '.join(columns)} FROM ({self._located()}){kept}"

    def _located(self) -> str:
        """SQL for rows with the areas that they are counted in, and their flaw as `status`."""
        at = [
            name if axis.fallback is None else f"coalesce({name}, {axis.fallback:d})"
            for name, axis in zip(self.numbers, self.axes, strict=True)
        ]
        lost = " OR ".join(f"{number} IS NULL" for number in at)
        flaw = f"CASE WHEN flaw > 0 THEN flaw WHEN {lost} THEN {Flaw.UNPLACEABLE:d} ELSE 0 END"
        named = [f"{number} AS at_{i}" for i, number in enumerate(at)]
        named += ["person"] * self.has_person + [*self.keys] * self.is_compared
        return f"SELECT {', '.join(named)}, n, r, {flaw} AS status FROM ({self._looked_up()})"

    def count(self, workspace: Workspace) -> pa.Table:
        """Count rows per leaf: area numbers and trips `n`; leaves may be listed several times.

        Flawed rows are marked as in `placed`.
        """
        n = f"CAST(least(n, {MAX_TOTAL + 1}) AS BIGINT) AS n"
        listed = f"SELECT {', '.join(self.numbers)}, {n} FROM ({self.placed()})"
        if self.is_grouped:
            return workspace.fetch(listed)
        found = workspace.fetch(f"{listed} LIMIT {MANY + 1:d}")
        if len(found) <= MANY:
            return found
        del found
        leaf = ", ".join(self.numbers)
        total = f"CAST(least(sum(n), {MAX_TOTAL + 1}) AS BIGINT) AS n, count(*) > 1 AS {SEVERAL}"
        return workspace.fetch(f"SELECT {leaf}, {total} FROM ({self.placed()}) GROUP BY {leaf}")

    def count_bounded(self, workspace: Workspace, unit: Unit, key: bytes) -> pa.Table:
        """Area numbers and trips `n` of the leaves, after bounding, of rows that have persons."""
        once = self.once(unit)
        person, *others = bounding.sort_keys(self.numbers, once)
        order = ", ".join([f"{person} NULLS FIRST", *others])
        n = f"CAST(least(n, {meaning.MAX_INT64}) AS BIGINT) AS n"
        columns = ", ".join(["person", *self.numbers, n])
        batches = workspace.stream(f"SELECT {columns} FROM ({self.placed()}) ORDER BY {order}")
        made = [
            bounding.bounded(part, self.numbers, once=once, unit=unit, key=key)
            for part in bounding.by_person(batches)
        ]
        nothing = pa.schema([*((name, pa.int32()) for name in self.numbers), ("n", pa.int64())])
        return pa.concat_tables([nothing.empty_table(), *made])

    @property
    def is_compared(self) -> bool:
        """Whether repeated rows are searched: in tables of counts, not of persons."""
        return self.count_name is not None and not self.has_person and not self.is_adding

    def lines(self) -> str:
        """SQL for the counted rows: keys as one `line`, `n`, and the number of equal rows `same`.

        Keys are cells as they are written, so two points in one area are different lines.
        """
        texts = [f"CAST({key} AS VARCHAR)" for key in self.keys]
        # With their lengths, so that different cells give different text.
        line = ", ".join(f"coalesce(length({text}), -1), ':', {text}" for text in texts)
        return (
            f"SELECT concat({line}) AS line, n, count(*) AS same FROM ({self._located()}) "
            "WHERE status = 0 AND n > 0 GROUP BY ALL"
        )

    def repeated_lines(self) -> str:
        """SQL for the number of repeated rows, and whether lines have several counts."""
        return (
            "SELECT CAST(sum(same - 1) AS BIGINT) AS again, count(*) > count(DISTINCT line) AS "
            f"split FROM ({self.lines()})"
        )

    def check_repeated(self, found: Mapping[str, Any], say: Callable[[str], object] | None) -> None:
        """Refuse rows that repeat another, and say if lines have several counts.

        `found` is the result of `repeated_lines`.

        Privacy:
            Both are for the screen of the custodian, as for other rows that are refused.
        """
        if again := found["again"]:
            rows = f"1 {self.row}" if again == 1 else f"{again:,} {self.row}s"
            verb = "repeats" if again == 1 else "repeat"
            names = ", ".join(axis.name for axis in self.axes)
            raise IngestError(
                f"{rows} of {self.label} {verb} another one, with the same {names} and the same "
                "count; if another column distinguishes them, make it a dimension (`axis=`); if "
                "they are copies, remove them; if each stands for trips of its own, have them "
                "added up: `repeated_rows='add'`"
            )
        if found["split"] and say is not None:
            say(SPLIT_CELLS)

    def check(
        self,
        flaws: Mapping[int, int],
        unit: Unit | None,
        lost: Callable[[], Iterable[Mapping[str, Any]]],
        *,
        has_rows: bool,
        has_trips: bool,
    ) -> None:
        """Refuse flawed rows, and an empty table if the error reveals nothing.

        `flaws` has the number of rows with each flaw, and `lost` returns the result of the SQL of
        `lost`.
        """
        if flaws:
            flaw, n = min(flaws.items())
            is_matrix = self.row == "cell"
            raise IngestError(
                SENTENCES[Flaw(flaw)].format(
                    rows=f"1 {self.row}" if n == 1 else f"{n:,} {self.row}s",
                    have="has" if n == 1 else "have",
                    label=self.label,
                    place="" if is_matrix else f" in column {self.count_name!r}",
                    instead="" if is_matrix else " (or choose another count column)",
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
        """SQL for whether rows that cannot be placed are named like totals; empty if none can be.

        Only flows can be totals, not trips or rows of persons.

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

        Axes with an area `outside` are left out.
        """
        parts = [
            f"(SELECT {i} AS axis, CAST(code AS VARCHAR) AS code FROM (SELECT DISTINCT code_{i} "
            f"AS code FROM ({self._looked_up()}) WHERE area_{i} IS NULL) "
            f"ORDER BY code NULLS FIRST LIMIT {LOOKED_AT:d})"
            for i, axis in enumerate(self.axes)
            if axis.fallback is None
        ]
        return " UNION ALL ".join(parts)

    def _describe_lost(self, found: Iterable[Mapping[str, Any]]) -> str:
        """Return which codes are unknown on each axis, if they resemble known ones, or missing."""
        said: list[str] = []
        lost = {(row["axis"], row["code"]) for row in found}
        for i, axis in enumerate(self.axes):
            codes = {code for number, code in lost if number == i}
            unknown = sorted(code for code in codes if code)
            if unknown:
                alike, hint = _resembling(axis.hierarchy, unknown)
                shown = ", ".join(repr(code[:SHOWN_CHARACTERS]) for code in alike[:SHOWN_CODES])
                shown += ", ..." if alike and len(unknown) > min(len(alike), SHOWN_CODES) else ""
                nothing = "(not shown, as none resembles a code of the areas)"
                said.append(f"unknown {axis.name} {f'{shown} ({hint})' if alike else nothing}")
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
    found: Iterable[Column], columns: Columns, axes: Sequence[Axis], table: Source
) -> tuple[AxisCode, ...]:
    """Make the codes of each axis from its columns."""
    label = table.label
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
        missing = f"missing {name}{table.blanks}"
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
                hierarchy=replace(hierarchy, places=Places(hierarchy.places.names)),
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


def _resembling(hierarchy: Hierarchy, unknown: Sequence[str]) -> tuple[list[str], str]:
    """Return the unknown codes that differ from a known one in form only, and what is wrong.

    Any other cell may be anything, such as a person, if the wrong column was named.
    """
    for level in range(hierarchy.depth - 1, 0, -1):
        coarser = {*unknown} & {*hierarchy.codes(level).to_pylist()}
        if coarser:
            return sorted(coarser), (
                f"{min(coarser)!r} is of level {hierarchy.level_name(level)!r}, and the finest "
                f"level of the areas is {hierarchy.level_name(hierarchy.depth)!r}: is that one a "
                "column of names? Say which columns are levels: `levels=`"
            )
    finest = hierarchy.codes(hierarchy.depth).to_pylist()
    names = hierarchy.places.names.get(hierarchy.level_name(hierarchy.depth))
    named = zip([] if names is None else names.to_pylist(), finest, strict=False)
    by_number = {_unpadded(code): code for code in finest}
    ways: list[tuple[Callable[[str], str | None], Mapping[str, str], str]] = [
        (_unpadded, by_number, ""),
        (_undecimal, by_number, _DECIMALS),
        (_folded, {_folded(code): code for code in finest}, _SPELLING),
        (_folded, {_folded(name): code for name, code in named if name is not None}, _NAMES),
        (_folded, {name: name for name in TOTALS}, _SUMS),
    ]
    for key, known, hint in ways:
        meant = {code: known[key(code) or ""] for code in unknown if key(code) in known}
        if meant:
            first, code = next(iter(meant.items()))
            if hint:
                return [*meant], hint.format(first, code)
            who, verb = ("areas", "is") if len(code) < len(first) else ("codes", "would be")
            there = " there" if who == "areas" else ""
            zeros = f"did the {who} lose their leading zeros? {first!r} {verb} {code!r}{there}"
            return [*meant], zeros
    return [], ""


def _unpadded(code: str) -> str:
    return code.lstrip("0")


def _undecimal(code: str) -> str | None:
    return _unpadded(code.partition(".")[0]) if _DECIMAL.fullmatch(code) else None


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
