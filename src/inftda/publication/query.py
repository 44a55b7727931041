"""Sums of released flows over areas of any level, as Arrow, pandas, polars or geopandas.

Every coarser number is the sum of the finest ones, so all answers are consistent. DuckDB sums them
up in a `Workspace`, which can open the flows and no other file.
"""

from collections.abc import Iterator, Sequence
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
from inftda.errors import MissingExtraError, ReleaseError
from inftda.publication.manifest import DAMAGED
from inftda.publication.measured import Ends
from inftda.publication.reliability import GRADES, grades
from inftda.tree import DESTINATION, ORIGIN
from inftda.tree.groupings import LEFT_OUT, Grouping
from inftda.util.files import FLOWS_FILE
from inftda.util.tabular import as_arrow

if TYPE_CHECKING:
    from inftda.reading.workspace import Workspace

FLOW, LISTED, LOW, HIGH, GRADE = "flow", "listed", "low", "high", "grade"
TableFormat = Literal["arrow", "pandas", "polars"]
#: Formats of flows, which can be on a map; other tables cannot.
FlowFormat = Literal["arrow", "pandas", "polars", "geopandas"]


def sum_flows(
    table: pa.Table | Path, asked: Sequence[Grouping], values: Sequence[str] = (FLOW,)
) -> pa.Table:
    """Sum up flows by the groups of each axis, in their order.

    `table` has the leaf flows, and `values` are the columns to sum up.
    """
    with open_flows(table) as workspace:
        shown, joins, kept = [], [], ["true"]
        for number, axis in enumerate(asked):
            if not axis.is_shown and not (axis.group < 0).any():
                continue
            view = f"axis_{number}"
            workspace.register(view, _lookup(axis))
            joins.append(f'JOIN {view} ON flows.{quoted(axis.name)} = {view}."finest"')
            kept.append(f'{view}."place" >= 0')
            if axis.is_shown:
                shown.append(f'{view}."place" AS {quoted(axis.name)}')
        # If no axis is shown, the answer has one row, and the sum of no rows is 0.
        sums = [f"coalesce(sum({name}), 0)::BIGINT AS {name}" for name in map(quoted, values)]
        columns = ", ".join([*shown, *sums])
        query = (
            f"SELECT {columns} FROM flows {' '.join(joins)} "  # noqa: S608 - names are quoted
            f"WHERE {' AND '.join(kept)} GROUP BY ALL ORDER BY ALL"
        )
        found = workspace.fetch(query)
    codes = {axis.name: axis.codes.take(as_arrow(axis.order)) for axis in asked if axis.is_shown}
    return pa.table(
        {
            name: codes[name].take(column.combine_chunks()) if name in codes else column
            for name, column in zip(found.column_names, found.columns, strict=True)
        }
    )


@contextmanager
def open_flows(table: pa.Table | Path) -> "Iterator[Workspace]":
    """Open a workspace with the leaf flows as the table `flows`."""
    import duckdb  # noqa: PLC0415 - 0.1 s that writing a release need not pay

    from inftda.reading.workspace import Workspace, pattern, quote  # noqa: PLC0415 - slow to import

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


def _lookup(axis: Grouping) -> pa.Table:
    """Table of finest areas: code, and position of the group in the order of groups."""
    hierarchy = axis.axis.hierarchy
    place = np.empty(len(axis.order) + 1, np.int32)
    place[axis.order], place[LEFT_OUT] = np.arange(len(axis.order)), LEFT_OUT
    return pa.table(
        {"finest": hierarchy.codes(hierarchy.depth), "place": as_arrow(place[axis.group])}
    )


def quoted(name: str) -> str:
    """Quote a column name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def with_names(table: pa.Table, asked: Sequence[Grouping]) -> pa.Table:
    """Insert a column of names after the codes of each axis with names."""
    axes = {axis.name: axis for axis in asked}
    found: dict[str, pa.ChunkedArray] = {}
    for column, values in zip(table.column_names, table.columns, strict=True):
        found[column] = values
        if axis := axes.get(column):
            names = axis.axis.hierarchy.places.names.get(axis.level)
            if names is not None:
                found[f"{column}_name"] = names.take(as_arrow(axis.numbers(table)))
    if len(found) == len(table.columns):
        raise ReleaseError(
            "the release has no names of the areas that are shown; leave out names, or ask for "
            "another level"
        )
    return pa.table(found)


def with_intervals(table: pa.Table, ends: Ends | None, number: str = FLOW) -> pa.Table:
    """Add the columns `low`, `high` and `grade`; null where no interval is known.

    Intervals contain the number of their row, which is in the column `number`.
    """
    columns: list[Any] = [
        pa.nulls(len(table), kind) for kind in (pa.int64(), pa.int64(), pa.string())
    ]
    if ends is not None:
        graded_by = grades(table.column(number).to_numpy(), *ends)
        columns = [*(pa.array(end, pa.int64()) for end in ends), graded_by]
    for name, values in zip((LOW, HIGH, GRADE), columns, strict=True):
        table = table.append_column(name, values)
    return table


def graded(table: pa.Table, at_least: str | None) -> pa.Table:
    """Keep rows of a table of `with_intervals` with this grade or a better one."""
    if at_least is None:
        return table
    best = [*GRADES]
    if at_least not in best:
        raise ReleaseError(f"`at_least=` must be one of {', '.join(best)}, got {at_least!r}")
    good = pa.array(best[: best.index(at_least) + 1])
    return table.filter(pc.is_in(table.column(GRADE), value_set=good))


def largest(table: pa.Table, top: int | None, number: str = FLOW) -> pa.Table:
    """Keep the rows with the largest numbers; with intervals, only rows that cannot be zero."""
    if top is None:
        return table
    if top < 1:
        raise ReleaseError(f"`top=` must be at least 1, got {top}")
    if LOW in table.column_names:
        is_there = pc.greater(table.column(LOW), 0)
        table = table.filter(pc.fill_null(is_there, fill_value=True))
    return table.sort_by([(number, "descending")]).slice(0, top)


def converted(table: pa.Table, as_: TableFormat) -> Any:
    """Convert a table to the requested format."""
    if as_ == "arrow":
        return table
    if as_ not in get_args(TableFormat):
        raise ReleaseError(
            f"as_ must be 'arrow', 'pandas' or 'polars', or for flows 'geopandas', got {as_!r}"
        )
    library = _library(as_)
    return table.to_pandas() if as_ == "pandas" else library.from_arrow(table)


def converted_flows(table: pa.Table, as_: FlowFormat, asked: Sequence[Grouping]) -> Any:
    """Convert a table of `sum_flows` to the requested format; geopandas gets geometries."""
    if as_ != "geopandas":
        return converted(table, as_)
    library = _library(as_)
    shapes = library.GeoSeries(shapes_of(table, asked), crs="EPSG:4326")
    return library.GeoDataFrame(table.to_pandas(), geometry=shapes)


def _library(name: str) -> Any:
    """Import an optional library, or explain how to install it."""
    try:
        return import_module(name)
    except ImportError:
        raise MissingExtraError(
            f"flows as {name} need {name}, which is not installed; install it, or leave out as_"
        ) from None


def shapes_of(table: pa.Table, asked: Sequence[Grouping]) -> NDArray[Any]:
    """Make a geometry for each row, in degrees: a line if both ends are shown, otherwise the area.

    Trips inside one area are lines of length zero. An area is its outline at the finest level, if
    it has one, and otherwise a point. A row has no geometry if an end has no location.
    """
    known = Gazetteer.of(axis.axis.hierarchy for axis in asked)
    ends = [
        (number, axis)
        for end in (ORIGIN, DESTINATION)
        for number, axis in enumerate(asked)
        if axis.name == end and axis.is_shown
    ]
    if any(axis.depth is None for _, axis in ends):
        raise ReleaseError("zones of your own have no places; take as_='pandas'")
    if not ends or not known.has(number for number, _ in ends):
        raise ReleaseError(
            "flows as geopandas need an origin or a destination, and areas with outlines or with "
            "lon and lat, which this release does not have; take as_='pandas', or inftda "
            "export --centroids"
        )
    areas, at = [], []
    for number, axis in ends:
        areas.append(axis.numbers(table))
        lon, lat = known.at(number, axis.depth or 0)
        at.append((lon[areas[-1]], lat[areas[-1]]))
    if len(ends) > 1:
        return lines(*at)
    shapes = np.full(len(areas[0]), None, object)
    is_known = ~np.isnan(at[0][0])
    shapes[is_known] = shapely().points(np.stack(at[0], axis=1)[is_known])
    hierarchy = ends[0][1].axis.hierarchy
    outlines = hierarchy.places.outlines
    if ends[0][1].depth == hierarchy.depth and outlines is not None:
        whole = shapely().from_wkb(np.array(outlines.to_pylist(), object))[areas[0]]
        return np.where(shapely().is_missing(whole), shapes, whole)
    return shapes


def lines(
    start: tuple[NDArray[np.float64], NDArray[np.float64]],
    end: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> NDArray[Any]:
    """Make straight lines between places, by the shorter way; None if a place is not known."""
    corners = np.stack([*start, short_way(start[0], end[0]), end[1]], axis=1).reshape(-1, 2, 2)
    is_known = ~np.isnan(corners).any(axis=(1, 2))
    found = np.full(len(corners), None, object)
    found[is_known] = shapely().linestrings(corners[is_known])
    return found
