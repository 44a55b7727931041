"""Sums of released flows over areas of any level, as Arrow, pandas, polars or geopandas.

Every coarser number is the sum of the finest ones, so all answers are consistent. DuckDB sums
them up, in the same workspace as tables are read in: it opens the flows and no other file.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from inftda.areas.locations import Gazetteer, short_way
from inftda.areas.polygons import shapely
from inftda.errors import HierarchyError, MissingExtraError, ReleaseError
from inftda.files import FLOWS_FILE
from inftda.inference.measured import Areas
from inftda.inference.noise_intervals import Ends, containing
from inftda.publication.manifest import DAMAGED
from inftda.publication.trust import GRADES, LevelUse, grades
from inftda.tables import find_texts
from inftda.tree import DESTINATION, ORIGIN, Axis, Tree

if TYPE_CHECKING:
    from inftda.reading.workspace import Workspace

FLOW, LISTED, LOW, HIGH, GRADE = "flow", "listed", "low", "high", "grade"
TableFormat = Literal["arrow", "pandas", "polars"]
#: Flows can lie on a map; other tables cannot.
FlowFormat = Literal["arrow", "pandas", "polars", "geopandas"]


def sum_flows(
    table: pa.Table | Path,
    tree: Tree,
    levels: Mapping[str, str],
    where: Mapping[str, str | Sequence[str]],
    values: Sequence[str] = (FLOW,),
) -> pa.Table:
    """Flows summed up to a level on each axis; one that has no level is summed up altogether.

    `table` has the leaf flows, and `values` are its columns to sum up; `where` says which area or
    areas of an axis to keep to.
    """
    with open_flows(table) as workspace:
        shown, joins, kept = [], [], ["true"]
        for number, axis in enumerate(tree.axes):
            level, named = level_on(axis, levels.get(axis.name, "all")), where.get(axis.name)
            if level == 0 and named is None:
                continue
            view = f"axis_{number}"
            workspace.register(view, _lookup(axis, level, named))
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
        return workspace.fetch(query)


def asked_for(
    tree: Tree,
    levels: tuple[Mapping[str, str | None], Mapping[str, str] | None],
    where: tuple[Mapping[str, Any], Mapping[str, Any] | None],
) -> tuple[dict[str, str], dict[str, Any]]:
    """Level and filter of each axis, from what is given for the two ends and for axes by name."""
    chosen = _together("level", *levels)
    filters = _together("area", *where)
    for name in {*chosen, *filters}:
        axis_named(tree, name)
    finest = {axis.name: axis.hierarchy.level_name(axis.hierarchy.depth) for axis in tree.axes}
    return finest | chosen, filters


def axis_named(tree: Tree, name: str) -> Axis:
    """The axis with this name."""
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
def open_flows(table: pa.Table | Path) -> "Iterator[Workspace]":
    """A workspace that knows the leaf flows as `flows`."""
    import duckdb  # noqa: PLC0415 - 0.1 s that writing a release need not pay

    from inftda.reading.workspace import Workspace, pattern, quote  # noqa: PLC0415 - likewise

    files = [] if isinstance(table, pa.Table) else [table.absolute()]
    try:
        with Workspace(files) as workspace:
            if isinstance(table, pa.Table):
                workspace.register("flows", table)
            for file in files:
                rows = f"read_parquet({quote(pattern(file))})"
                workspace.run(f"CREATE TEMP VIEW flows AS SELECT * FROM {rows}")  # noqa: S608 - quoted
            yield workspace
    except (duckdb.Error, RuntimeError):  # the latter for names that are not text
        raise ReleaseError(
            f"{FLOWS_FILE} cannot be read as flows between these areas; {DAMAGED}"
        ) from None


def level_on(axis: Axis, name: str) -> int:
    """Number of the level of an axis with this name."""
    try:
        return axis.hierarchy.level_of(name)
    except HierarchyError as problem:
        raise ReleaseError(f"{axis.name}: {problem}") from None


def _lookup(axis: Axis, level: int, named: str | Sequence[str] | None) -> pa.Table:
    """For each finest area: its code, the code of its area at `level`, and whether it is kept."""
    hierarchy = axis.hierarchy
    shown = hierarchy.codes(level).take(pa.array(hierarchy.ancestor(hierarchy.depth, level)))
    kept = kept_areas(axis, named)
    return pa.table({"finest": hierarchy.codes(hierarchy.depth), "shown": shown, "kept": kept})


def kept_areas(axis: Axis, named: str | Sequence[str] | None) -> NDArray[np.bool_]:
    """bool[finest areas]: which a filter keeps."""
    hierarchy = axis.hierarchy
    kept = np.full(hierarchy.n_areas(hierarchy.depth), named is None)
    for at, area in named_areas(axis, named):
        offsets = hierarchy.descendant_offsets(at, hierarchy.depth)
        kept[offsets[area] : offsets[area + 1]] = True
    return kept


def named_areas(axis: Axis, named: str | Sequence[str] | None) -> set[tuple[int, int]]:
    """Level and number of each area of a filter."""
    return {find_area(axis, name) for name in ([named] if isinstance(named, str) else named or ())}


def cells_of(
    table: pa.Table, tree: Tree, levels: Mapping[str, str], where: Mapping[str, Any]
) -> tuple[list[int], Areas] | None:
    """Level of each axis, and areas of the rows of a table of `sum_flows`, which took the others.

    None if rows have parts of several areas together.
    """
    depths, areas = [], []
    for axis in tree.axes:
        depth = axis.hierarchy.level_of(levels.get(axis.name, "all"))
        number = np.zeros(len(table), np.int32)
        if depth:
            number = axis.hierarchy.find(depth, table.column(axis.name).to_pylist())
        inside = named_areas(axis, where.get(axis.name))
        if any(at > depth for at, _ in inside):
            if len(inside) > 1:
                return None
            ((depth, only),) = inside
            number = np.full(len(table), only, np.int32)
        depths.append(depth)
        areas.append(number)
    return depths, tuple(areas)


def find_area(axis: Axis, name: str) -> tuple[int, int]:
    """Level and number of the area called "code" or "level:code".

    A code that is used at two levels for different areas is refused without its level.
    """
    hierarchy = axis.hierarchy
    levels, at = range(1, hierarchy.depth + 1), "any level"
    level_name, colon, code = name.partition(":")
    if colon and level_name in hierarchy.level_names:
        only = hierarchy.level_of(level_name)
        levels, at, name = range(only, only + 1), f"level {level_name!r}", code
    numbers = ((level, hierarchy.codes(level).index(name).as_py()) for level in levels)
    found = [(level, number) for level, number in numbers if number >= 0]
    if not found:
        raise ReleaseError(f"{axis.name}: there is no area {name!r} at {at}")
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
    """A table of `sum_flows` with a column of names after the codes of each axis that has any.

    `levels` says which level of each axis is shown.
    """
    axes = {axis.name: axis.hierarchy for axis in tree.axes}
    found: dict[str, pa.ChunkedArray] = {}
    for column, values in zip(table.column_names, table.columns, strict=True):
        found[column] = values
        if column in axes and (names := axes[column].places.names.get(levels[column])) is not None:
            codes = axes[column].codes(axes[column].level_of(levels[column]))
            numbers = pc.index_in(values, value_set=codes).combine_chunks()
            found[f"{column}_name"] = names.take(numbers)
    if len(found) == len(table.columns):
        raise ReleaseError(
            "the release has no names of the areas that are shown; leave out names, or ask for "
            "another level"
        )
    return pa.table(found)


def with_intervals(
    table: pa.Table, ends: Ends | None, number: str = FLOW, *, use: LevelUse | None = None
) -> pa.Table:
    """A table with columns `low`, `high` and `grade`; null where no interval is known.

    Intervals hold the number beside them, whose column is called `number`. Numbers of a level of
    the tree have the grades of its noise, `use`; others those of their intervals.
    """
    columns: list[Any] = [
        pa.nulls(len(table), kind) for kind in (pa.int64(), pa.int64(), pa.string())
    ]
    if ends is not None:
        value = table.column(number).to_numpy()
        low, high = containing(value, ends)
        off = np.maximum(value - low, high - value)
        grade = grades(value, off) if use is None else use.grades(value)
        columns = [pa.array(low, pa.int64()), pa.array(high, pa.int64()), grade]
    for name, values in zip((LOW, HIGH, GRADE), columns, strict=True):
        table = table.append_column(name, values)
    return table


def graded(table: pa.Table, at_least: str | None) -> pa.Table:
    """The rows of a table of `with_intervals` whose grade is known and as good."""
    if at_least is None:
        return table
    best = [*GRADES]
    if at_least not in best:
        raise ReleaseError(f"`at_least=` must be one of {', '.join(best)}, got {at_least!r}")
    good = pa.array(best[: best.index(at_least) + 1])
    return table.filter(pc.is_in(table.column(GRADE), value_set=good))


def converted(table: pa.Table, as_: TableFormat) -> Any:
    """A table in the form that was asked for."""
    if as_ == "arrow":
        return table
    if as_ not in get_args(TableFormat):
        raise ReleaseError(
            f"as_ must be 'arrow', 'pandas' or 'polars', or for flows 'geopandas', got {as_!r}"
        )
    library = _library(as_)
    return table.to_pandas() if as_ == "pandas" else library.from_arrow(table)


def converted_flows(table: pa.Table, as_: FlowFormat, tree: Tree, levels: Mapping[str, str]) -> Any:
    """A table of `sum_flows` in the form that was asked for; in geopandas, with geometries."""
    if as_ != "geopandas":
        return converted(table, as_)
    library = _library(as_)
    shapes = library.GeoSeries(shapes_of(table, tree, levels), crs="EPSG:4326")
    return library.GeoDataFrame(table.to_pandas(), geometry=shapes)


def _library(name: str) -> Any:
    """A library that is brought by the user who asks for it."""
    try:
        return import_module(name)
    except ImportError:
        raise MissingExtraError(
            f"flows as {name} need {name}, which is not installed; install it, or leave out as_"
        ) from None


def shapes_of(table: pa.Table, tree: Tree, levels: Mapping[str, str]) -> NDArray[Any]:
    """A geometry for each row, in degrees: a line if both ends are shown, otherwise the area.

    Trips inside one area are lines of no length. An area is its outline at the finest level,
    where it has one, and a point otherwise. There is none where an end has no place.
    """
    known = Gazetteer.of(axis.hierarchy for axis in tree.axes)
    axes = {axis.name: (number, axis) for number, axis in enumerate(tree.axes)}
    ends = [
        (*axes[name], axes[name][1].hierarchy.level_of(levels[name]))
        for name in (ORIGIN, DESTINATION)
        if name in axes and name in table.column_names
    ]
    if not ends or not known.has(number for number, _, _ in ends):
        raise ReleaseError(
            "flows as geopandas need an origin or a destination, and areas with outlines or with "
            "lon and lat, which this release does not have; take as_='pandas', or inftda "
            "export --centroids"
        )
    areas, at = [], []
    for number, axis, level in ends:
        codes = table.column(axis.name).combine_chunks().cast(pa.string())
        areas.append(find_texts(codes, axis.hierarchy.codes(level)))
        lon, lat = known.at(number, level)
        at.append((lon[areas[-1]], lat[areas[-1]]))
    if len(ends) > 1:
        return lines(*at)
    shapes = np.full(len(areas[0]), None, object)
    is_known = ~np.isnan(at[0][0])
    shapes[is_known] = shapely().points(np.stack(at[0], axis=1)[is_known])
    _, axis, level = ends[0]
    outlines = axis.hierarchy.places.outlines
    if level == axis.hierarchy.depth and outlines is not None:
        whole = shapely().from_wkb(np.array(outlines.to_pylist(), object))[areas[0]]
        return np.where(shapely().is_missing(whole), shapes, whole)
    return shapes


def lines(
    start: tuple[NDArray[np.float64], NDArray[np.float64]],
    end: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> NDArray[Any]:
    """Straight lines between places, the short way round; None where a place is not known."""
    corners = np.stack([*start, short_way(start[0], end[0]), end[1]], axis=1).reshape(-1, 2, 2)
    is_known = ~np.isnan(corners).any(axis=(1, 2))
    found = np.full(len(corners), None, object)
    found[is_known] = shapely().linestrings(corners[is_known])
    return found
