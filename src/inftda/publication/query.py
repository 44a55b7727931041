"""Sums of released flows over areas of any level, by DuckDB.

Every coarser number is the sum of the finest ones, so all answers are consistent.
"""

import glob
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from inftda.errors import HierarchyError, ReleaseError
from inftda.files import FLOWS_FILE, private_folder
from inftda.publication.inventory import DAMAGED
from inftda.tables import silence
from inftda.tree import Axis, Tree

FLOW = "flow"


def sum_flows(
    table: pa.Table | Path,
    tree: Tree,
    levels: Mapping[str, str],
    where: Mapping[str, str | Sequence[str]],
    values: Sequence[str] = (FLOW,),
) -> pa.Table:
    """Flows summed up to a level on each axis.

    Args:
        table: leaf flows, or the Parquet file or folder that holds them.
        tree: axes of the table.
        levels: axis name to level name; an axis that is not named is summed up altogether.
        where: axis name to the area or areas to keep to.
        values: the columns to sum up.
    """
    with open_database() as connection:
        open_flows(connection, table).create_view("flows")
        shown, joins, kept = [], [], ["true"]
        for number, axis in enumerate(tree.axes):
            level, named = _level(axis, levels), where.get(axis.name)
            if level == 0 and named is None:
                continue
            view = f"axis_{number}"
            connection.register(view, _lookup(axis, level, named))
            joins.append(f'JOIN {view} ON flows.{quoted(axis.name)} = {view}."finest"')
            kept.append(f'{view}."kept"')
            if level > 0:
                shown.append(f'{view}."shown" AS {quoted(axis.name)}')
        # With nothing shown there is one row, and the sum of no rows is 0.
        sums = [f"coalesce(sum({name}), 0)::BIGINT AS {name}" for name in map(quoted, values)]
        columns = ", ".join([*shown, *sums])
        query = (
            f"SELECT {columns} FROM flows {' '.join(joins)} "  # noqa: S608 - names are quoted
            f"WHERE {' AND '.join(kept)} GROUP BY ALL ORDER BY ALL"
        )
        return connection.sql(query).to_arrow_table()


def asked_for(
    tree: Tree,
    levels: tuple[Mapping[str, str | None], Mapping[str, str] | None],
    where: tuple[Mapping[str, Any], Mapping[str, Any] | None],
) -> tuple[dict[str, str], dict[str, Any]]:
    """Level and filter of each axis, from what is given for the two ends and for axes by name.

    Raises:
        ReleaseError: no such axis, or an axis is named twice.
    """
    chosen = _together("level", *levels)
    filters = _together("area", *where)
    for name in {*chosen, *filters}:
        axis_named(tree, name)
    finest = {axis.name: axis.hierarchy.level_name(axis.hierarchy.depth) for axis in tree.axes}
    return finest | chosen, filters


def axis_named(tree: Tree, name: str) -> Axis:
    """The axis with this name.

    Raises:
        ReleaseError: there is none.
    """
    for axis in tree.axes:
        if axis.name == name:
            return axis
    names = ", ".join(axis.name for axis in tree.axes)
    raise ReleaseError(f"the release has no axis {name!r}; its axes are {names}")


def _together(what: str, ends: Mapping[str, Any], axes: Mapping[str, Any] | None) -> dict[str, Any]:
    """What is given for the two ends and for axes by their names; each at most once."""
    given = {name: value for name, value in ends.items() if value is not None}
    for name in axes or {}:
        if name in given:
            raise ReleaseError(
                f"the {what} of axis {name!r} is given twice, for the {name} and by the name of "
                "the axis; give it once"
            )
    return given | dict(axes or {})


@contextmanager
def open_database() -> Iterator[Any]:
    """A DuckDB in memory that downloads nothing, whatever a release folder holds.

    Raises:
        ReleaseError: the flows are not a table that can be read.
    """
    import duckdb  # noqa: PLC0415 - 0.1 s that writing a release need not pay

    names = "autoinstall_known_extensions", "autoload_known_extensions"
    try:
        # By itself DuckDB would spill to a folder called .tmp, whatever that is where one works.
        with private_folder(Path(gettempdir()), "inftda-query-") as spill:
            config: dict[str, Any] = dict.fromkeys(names, "false")
            config["temp_directory"] = str(spill)
            with duckdb.connect(config=config) as connection:
                silence(connection)
                yield connection
    except (duckdb.Error, RuntimeError):  # the latter for names that are not text
        raise ReleaseError(
            f"{FLOWS_FILE} cannot be read as flows between these areas; {DAMAGED}"
        ) from None


def open_flows(connection: Any, table: pa.Table | Path) -> Any:
    """The leaf flows as a DuckDB relation."""
    if isinstance(table, pa.Table):
        return connection.from_arrow(table)
    # A folder may be called release[1]: that is a name, not a pattern.
    pattern = glob.escape(str(table))
    return connection.read_parquet(f"{pattern}/*.parquet" if table.is_dir() else pattern)


def _level(axis: Axis, levels: Mapping[str, str]) -> int:
    try:
        return axis.hierarchy.level_of(levels.get(axis.name, "all"))
    except HierarchyError as problem:
        raise ReleaseError(f"{axis.name}: {problem}") from None


def _lookup(axis: Axis, level: int, named: str | Sequence[str] | None) -> pa.Table:
    """For each finest area: its code, the code of its area at `level`, and whether it is kept."""
    hierarchy = axis.hierarchy
    shown = hierarchy.codes(level).take(pa.array(hierarchy.ancestor(hierarchy.depth, level)))
    kept = np.ones(hierarchy.n_areas(hierarchy.depth), bool)
    if named is not None:
        kept = _inside(axis, [named] if isinstance(named, str) else named)
    return pa.table({"finest": hierarchy.codes(hierarchy.depth), "shown": shown, "kept": kept})


def _inside(axis: Axis, names: Sequence[str]) -> NDArray[np.bool_]:
    """bool[finest areas]: inside any of the named areas."""
    hierarchy = axis.hierarchy
    kept = np.zeros(hierarchy.n_areas(hierarchy.depth), bool)
    for name in names:
        level, area = find_area(axis, name)
        offsets = hierarchy.descendant_offsets(level, hierarchy.depth)
        kept[offsets[area] : offsets[area + 1]] = True
    return kept


def find_area(axis: Axis, name: str) -> tuple[int, int]:
    """Level and number of the area called "code" or "level:code".

    Raises:
        ReleaseError: there is none, or the code is used at two levels for different areas.
    """
    hierarchy = axis.hierarchy
    level_name, colon, code = name.partition(":")
    if colon and level_name in hierarchy.level_names:
        level = hierarchy.level_of(level_name)
        try:
            return level, int(hierarchy.find(level, [code])[0])
        except HierarchyError as problem:
            raise ReleaseError(f"{axis.name}: {problem}") from None
    found: list[tuple[int, int]] = []
    for level in range(1, hierarchy.depth + 1):
        index = hierarchy.codes(level).index(name).as_py()
        if index >= 0:
            found.append((level, index))
    if not found:
        raise ReleaseError(f"{axis.name}: there is no area {name!r} at any level")
    level, area = found[0]
    for other, index in found[1:]:
        offsets = hierarchy.descendant_offsets(level, other)
        if (offsets[area], offsets[area + 1]) != (index, index + 1):
            first, second = (hierarchy.level_name(at) for at in (level, other))
            raise ReleaseError(
                f"{axis.name}: {name!r} is an area of level {first!r} and another of {second!r}; "
                f"write {first}:{name} or {second}:{name}"
            )
    return level, area


def quoted(name: str) -> str:
    """A column name as SQL takes it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def with_names(table: pa.Table, tree: Tree, levels: Mapping[str, str]) -> pa.Table:
    """A table of flows with a column of names after the codes of each axis that has any.

    Args:
        table: what `sum_flows` gives.
        tree: the tree of the release.
        levels: axis name to the level that is shown.

    Raises:
        ReleaseError: no area that is shown has a name.
    """
    columns = dict(zip(table.column_names, table.columns, strict=True))
    found: dict[str, pa.ChunkedArray] = {}
    for column, values in columns.items():
        found[column] = values
        axis = next((axis for axis in tree.axes if axis.name == column), None)
        if axis is None:
            continue
        names = axis.hierarchy.places.names.get(levels[column])
        if names is not None:
            codes = axis.hierarchy.codes(axis.hierarchy.level_of(levels[column]))
            found[f"{column}_name"] = names.take(
                pc.index_in(values, value_set=codes).combine_chunks()
            )
    if len(found) == len(columns):
        raise ReleaseError(
            "the release has no names of the areas that are shown; leave out names, or ask for "
            "another level"
        )
    return pa.table(found)
