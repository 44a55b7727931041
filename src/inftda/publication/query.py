"""Sums of released flows over areas of any level, as Arrow, pandas, polars or geopandas.

Every coarser number is the sum of the finest ones, so all answers are consistent.
"""

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from inftda.areas.locations import Gazetteer, short_way
from inftda.areas.polygons import shapely
from inftda.errors import MissingExtraError, ReleaseError
from inftda.publication.measured import Ends, keys_of
from inftda.publication.reliability import GRADES, grades
from inftda.tree import DESTINATION, ORIGIN, Areas, Ints
from inftda.tree.groupings import LEFT_OUT, Grouping
from inftda.util.tabular import as_arrow

FLOW, LISTED, LOW, HIGH, GRADE = "flow", "listed", "low", "high", "grade"
TableFormat = Literal["arrow", "pandas", "polars"]
#: Formats of flows, which can be on a map; other tables cannot.
FlowFormat = Literal["arrow", "pandas", "polars", "geopandas"]


def sum_flows(
    parts: Iterable[tuple[Areas, Sequence[Ints]]], names: Sequence[str], asked: Sequence[Grouping]
) -> pa.Table:
    """Sum up numbers between finest areas by the groups of each axis, in their order.

    Parts have finest areas for each axis, and a column of numbers for each of the names.
    """
    shown = [axis for axis in asked if axis.is_shown]
    known = [_added(*_placed(areas, values, asked)) for areas, values in parts]
    # One row if no axis is shown, and the sum of no numbers is 0.
    none = (
        [np.zeros(0, np.int32)] * len(shown),
        [np.zeros(0 if shown else 1, np.int64)] * len(names),
    )
    places, sums = (
        [np.concatenate(of) for of in zip(*some, strict=True)]
        for some in zip(none, *known, strict=True)
    )
    places, sums = _added(places, sums)
    codes = {
        axis.name: axis.codes.take(as_arrow(axis.order[place]))
        for axis, place in zip(shown, places, strict=True)
    }
    return pa.table(codes | dict(zip(names, map(as_arrow, sums), strict=True)))


def _placed(
    areas: Areas, values: Sequence[Ints], asked: Sequence[Grouping]
) -> tuple[list[NDArray[np.int32]], list[Ints]]:
    """Cells that are not left out: places of their groups on the shown axes, and numbers."""
    is_kept, shown = np.ones(len(areas[0]), bool), []
    for axis, finest in zip(asked, areas, strict=True):
        place = np.empty(len(axis.order) + 1, np.int32)
        place[axis.order], place[LEFT_OUT] = np.arange(len(axis.order)), LEFT_OUT
        here = place[axis.group][finest]
        is_kept &= here >= 0
        shown += [here] if axis.is_shown else []
    rows = slice(None) if is_kept.all() else is_kept
    return [here[rows] for here in shown], [of[rows] for of in values]


def _added(
    places: Sequence[NDArray[np.int32]], values: Sequence[Ints]
) -> tuple[list[NDArray[np.int32]], list[Ints]]:
    """Cells of the same places added up, in the order of places."""
    key = keys_of(places) if places else np.zeros(len(values[0]), np.int64)
    if key.max(initial=0) < 1 << 16:
        key = key.astype(np.uint16)  # numpy sorts these by their digits
    order = np.argsort(key, kind="stable")
    first = np.flatnonzero(np.diff(key[order].astype(np.int64), prepend=-1))
    sums = [np.add.reduceat(of[order], first) if len(first) else of[:0] for of in values]
    return [of[order[first]] for of in places], sums


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
