# ruff: noqa: S608 - the SQL here is made of names that this package gives, never of input
"""The rows of the input in SQL: chosen columns, area numbers, trips, and what is wrong.

How rows are counted was chosen by measuring. Trips repeat, so they are grouped by the codes
as they are written and only the groups are looked up in the hierarchy: that costs about what
a plain GROUP BY costs. Flows hardly repeat, so their codes are looked up first and numbers
are grouped: less memory. A stream can be read once only, so it is grouped as it is written
into a temporary table, from which a message can still quote unknown codes.

Nothing here leaves DuckDB except the codes of unknown areas.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from inftda.errors import IngestError
from inftda.ingest.columns import MAX_INT64, Flaw, area_text, count_value, person_group
from inftda.tables import as_arrow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inftda.hierarchy import Hierarchy
    from inftda.ingest.sources import Input
    from inftda.ingest.workspace import Workspace

#: Take the column `count` if there is one, otherwise every row is one trip.
AUTO: Final = "auto"
COUNT: Final = "count"
#: The letters of other names that counts go by: such a column is not passed over in silence.
LIKE_COUNTS: Final = frozenset({
    "cnt", "count", "counts", "flow", "flows", "n", "ntrips", "number", "obsvalue", "people",
    "total", "tripcount", "trips", "value", "weight",
})  # fmt: skip
#: How many unknown codes a message shows, and how much of each.
SHOWN_CODES: Final = 5
SHOWN_CHARACTERS: Final = 40


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis in SQL.

    Attributes:
        name: its column, as it is written.
        hierarchy: where its codes come from.
        text: SQL for the code in a row of the input.
        code: name of the column with the code.
        number: name of the column with the number of the area.
        lookup: name of the table that turns the one into the other.
        fallback: number of the area for codes that are not in the hierarchy, or None.
    """

    name: str
    hierarchy: Hierarchy
    text: str
    code: str
    number: str
    lookup: str
    fallback: int | None


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of the input in SQL: codes, `n` trips, their `flaw`, and `r` input rows.

    Attributes:
        table: what is read.
        axes: the axes.
        sql: SQL for the rows.
        person: name of the person column in `sql`, or None.
        count_name: the count column of the input, or None if every row is one trip.
        is_grouped: whether each combination of codes stands once only.
    """

    table: Input
    axes: tuple[Axis, ...]
    sql: str
    person: str | None
    count_name: str | None
    is_grouped: bool = False

    @classmethod
    def of(
        cls, table: Input, axes: tuple[Axis, ...], *, count: str | None, person: str | None
    ) -> Rows:
        """Choose the columns."""
        names = [axis.name for axis in axes]
        count = count_column(table, names, count=count, person=person)
        check_roles(table, names, count=count, person=person)
        selected = [f"{axis.text} AS {axis.code}" for axis in axes]
        n, flaw = "1", "0"
        if count is not None:
            n, flaw = count_value(table.column(count, role="counts"), table.label)
        if person is not None:
            group = person_group(table.column(person, role="persons"), table.label)
            selected.append(f"{group} AS person")
            flaw = f"CASE WHEN {group} IS NULL THEN {Flaw.NOBODY:d} ELSE {flaw} END"
        selected += [f"{n} AS n", f"{flaw} AS flaw", "1 AS r"]
        sql = f"SELECT {', '.join(selected)} FROM {table.from_clause}"
        return cls(table, axes, sql, "person" if person is not None else None, count)

    def grouped_once(self, workspace: Workspace) -> Rows:
        """The rows grouped by codes as they are written, where that pays or must be."""
        is_trips = self.count_name is None
        if self.table.is_repeatable and not (is_trips and self.person is None):
            return self
        keys = [axis.code for axis in self.axes] + ([self.person] if self.person else [])
        n = "count(*)" if is_trips else "sum(n)"
        # Nothing can be wrong with trips that have no count and no person: one key less.
        flaw = "0 AS flaw" if is_trips and self.person is None else "flaw"
        sql = f"SELECT {', '.join(keys)}, {flaw}, {n} AS n, count(*) AS r FROM ({self.sql}) "
        sql += f"GROUP BY {', '.join(keys)}" + (", flaw" if flaw == "flaw" else "")
        if not self.table.is_repeatable:
            statement = f"CREATE TEMP TABLE grouped AS {sql}"
            self.table.attempt(lambda: workspace.run(statement))
            sql = "FROM grouped"
        is_grouped = self.person is None and is_trips
        return replace(self, sql=sql, is_grouped=is_grouped)

    def looked_up(self) -> str:
        """SQL for the rows with the number of each area, NULL if it is unknown."""
        joins = " ".join(
            f"LEFT JOIN {axis.lookup} AS at_{axis.code} ON at_{axis.code}.code = {axis.code}"
            for axis in self.axes
        )
        numbers = ", ".join(f"at_{axis.code}.number AS {axis.number}" for axis in self.axes)
        return f"SELECT part.*, {numbers} FROM ({self.sql}) AS part {joins}"

    def placed(self, *, is_dropping: bool) -> str:
        """SQL for rows with area numbers and `n`.

        A row with a flaw has minus the flaw as first area, 0 as the others, and the number
        of input rows it stands for as `n`.
        """
        numbers = [
            axis.number if axis.fallback is None else f"coalesce({axis.number}, {axis.fallback:d})"
            for axis in self.axes
        ]
        lost = " OR ".join(f"{number} IS NULL" for number in numbers)
        flaw = f"CASE WHEN flaw > 0 THEN flaw WHEN {lost} THEN {Flaw.UNPLACEABLE:d} ELSE 0 END"
        named = [f"{number} AS at_{i}" for i, number in enumerate(numbers)]
        person = ["person"] if self.person else []
        inner = f"SELECT {', '.join([*named, *person])}, n, r, {flaw} AS status "
        inner += f"FROM ({self.looked_up()})"
        columns = [
            f"CAST(CASE WHEN status = 0 THEN at_{i} ELSE {'-status' if i == 0 else '0'} END "
            f"AS INTEGER) AS {axis.number}"
            for i, axis in enumerate(self.axes)
        ]
        columns += [*person, "CASE WHEN status = 0 THEN n ELSE r END AS n"]
        kept = f" WHERE status <> {Flaw.UNPLACEABLE:d}" if is_dropping else ""
        return f"SELECT {', '.join(columns)} FROM ({inner}){kept}"

    def counted(self, placed: str) -> str:
        """SQL for the counts per leaf, -1 where a count is beyond 64 bits."""
        leaf = ", ".join(axis.number for axis in self.axes)
        has_outside = any(axis.fallback is not None for axis in self.axes)
        if self.is_grouped and not has_outside:
            # Different codes are different areas: nothing is left to be merged.
            return f"SELECT {leaf}, CAST(n AS BIGINT) AS n FROM ({placed})"
        total = f"CAST(CASE WHEN sum(n) > {MAX_INT64} THEN -1 ELSE sum(n) END AS BIGINT)"
        return f"SELECT {leaf}, {total} AS n FROM ({placed}) GROUP BY {leaf}"

    def describe_lost(self, workspace: Workspace) -> str:
        """Which codes are unknown, the first few of each axis in order, and which are missing."""
        found = []
        for axis in self.axes:
            sql = (
                f"SELECT DISTINCT {axis.code} AS code FROM ({self.looked_up()}) "
                f"WHERE {axis.number} IS NULL ORDER BY code NULLS FIRST LIMIT {SHOWN_CODES + 2}"
            )
            codes = self.table.attempt(partial(workspace.fetch, sql)).column(0).to_pylist()
            found += lost_codes(axis.name, codes)
        return "; ".join(found)


def lost_codes(name: str, codes: Sequence[str | None]) -> list[str]:
    """The first few unknown codes of an axis for people, and whether any is missing.

    Args:
        name: of the axis.
        codes: different codes in order, some more than are shown.
    """
    found = []
    unknown = [code for code in codes if code]
    if unknown:
        shown = ", ".join(repr(code[:SHOWN_CHARACTERS]) for code in unknown[:SHOWN_CODES])
        more = ", ..." if len(unknown) > SHOWN_CODES else ""
        found.append(f"unknown {name} {shown}{more}")
    if len(unknown) < len(codes):
        found.append(f"missing {name}")
    return found


def make_axes(
    table: Input,
    axes: Sequence[tuple[str, Hierarchy]],
    workspace: Workspace,
    *,
    outside: str | None,
) -> tuple[Axis, ...]:
    """Find each axis's column and put its codes into a table of the workspace."""
    lookups: dict[int, str] = {}
    made = []
    for i, (name, hierarchy) in enumerate(axes):
        text = area_text(table.column(name, role="area codes"), table.label)
        if id(hierarchy) not in lookups:  # origin and destination often share one
            lookups[id(hierarchy)] = f"lookup_{i}"
            workspace.register(f"lookup_{i}", area_lookup(hierarchy))
        made.append(
            Axis(
                name=name,
                hierarchy=hierarchy,
                text=text,
                code=f"code_{i}",
                number=f"area_{i}",
                lookup=lookups[id(hierarchy)],
                fallback=None if outside is None else find_outside(name, hierarchy, outside),
            )
        )
    return tuple(made)


def area_lookup(hierarchy: Hierarchy) -> pa.Table:
    """`code` and `number` of every finest area."""
    codes = hierarchy.codes(hierarchy.depth)
    return pa.Table.from_arrays(
        [codes, as_arrow(np.arange(len(codes), dtype=np.int32))], names=["code", "number"]
    )


def find_outside(name: str, hierarchy: Hierarchy, outside: str) -> int:
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


def check_header(
    table: Input, names: Sequence[str], *, count: str | None, person: str | None
) -> None:
    """Refuse a CSV file with none of the columns that are asked for.

    Its first line may be somebody's row, so nothing of that line is shown but what is spelt
    nearly like a name that is asked for.

    Raises:
        IngestError: it has none of them.
    """
    given = [name for name in (count, person) if name is not None and name != AUTO]
    asked = [*names, *given]
    if table.kind != "csv" or not {*asked, COUNT}.isdisjoint(table.names):
        return
    near = [found for name in asked if (found := table.nearest(name, cutoff=0.8)) is not None]
    hint = (
        f"did you mean {near[0]!r}?"
        if near
        else "if its first line is a header, say which columns they are; if it is not, add one"
    )
    raise IngestError(f"{table.label} has no column {' or '.join(map(repr, asked))}; {hint}")


def count_column(
    table: Input, names: Sequence[str], *, count: str | None, person: str | None
) -> str | None:
    """The column that says how many trips a row stands for, or None if every row is one trip.

    Raises:
        IngestError: nothing was said of counts, and a column that is not used looks like them.
    """
    if count != AUTO:
        return count
    unused = [name for name in table.names if name not in (*names, person)]
    if COUNT in unused:
        return COUNT
    for name in unused:
        if "".join(filter(str.isalpha, name.casefold())) in LIKE_COUNTS:
            raise IngestError(
                f"column {name!r} of {table.label} may hold counts; say which column counts trips "
                "(--count NAME, or count= in Python), or that every row is one trip (--count none, "
                "or count=None)"
            )
    return None


def how_counted(count_name: str | None) -> str:
    """What a row of the table was taken for, in words."""
    return "one row is one trip" if count_name is None else f"trips by column {count_name!r}"


def check_roles(table: Input, names: list[str], *, count: str | None, person: str | None) -> None:
    """Refuse a column that is given two roles.

    Raises:
        IngestError: there is one.
    """
    taken: dict[str, str] = {}
    roles = [(name, "axis") for name in names]
    roles += [(name, role) for name, role in ((count, "count"), (person, "person")) if name]
    for name, role in roles:
        if name in taken:
            raise IngestError(
                f"column {name!r} of {table.label} is given twice, for {taken[name]} and {role}; "
                "name another column for one of them"
            )
        taken[name] = role
