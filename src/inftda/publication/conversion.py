"""Tables for people: as Arrow, pandas, polars or geopandas, whichever they have."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inftda.areas.locations import Gazetteer, short_way
from inftda.areas.polygons import shapely
from inftda.errors import MissingExtraError, ReleaseError
from inftda.tables import find_texts
from inftda.tree import DESTINATION, ORIGIN, Tree

TableFormat = Literal["arrow", "pandas", "polars"]
#: Flows can lie on a map; other tables cannot.
FlowFormat = Literal["arrow", "pandas", "polars", "geopandas"]


def converted(table: pa.Table, as_: TableFormat) -> Any:
    """A table in the form that was asked for.

    Raises:
        ReleaseError: there is no such form.
        MissingExtraError: its library is not installed.
    """
    if as_ == "arrow":
        return table
    if as_ in {"pandas", "polars"}:
        library = _library(as_)
        return table.to_pandas() if as_ == "pandas" else library.from_arrow(table)
    raise ReleaseError(f"as_ must be 'arrow', 'pandas' or 'polars', got {as_!r}")


def converted_flows(table: pa.Table, as_: FlowFormat, tree: Tree, levels: Mapping[str, str]) -> Any:
    """Flows in the form that was asked for; with geopandas, as lines between areas.

    Args:
        table: what `sum_flows` gives.
        as_: the form.
        tree: the tree of the release.
        levels: axis name to the level that is shown.

    Raises:
        ReleaseError: there is no such form, or nobody knows where the areas lie.
        MissingExtraError: its library is not installed.
    """
    if as_ not in get_args(FlowFormat):
        raise ReleaseError(f"as_ must be 'arrow', 'pandas', 'polars' or 'geopandas', got {as_!r}")
    if as_ != "geopandas":
        return converted(table, as_)
    library = _library("geopandas")
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

    Args:
        table: what `sum_flows` gives.
        tree: the tree of the release.
        levels: axis name to the level that is shown.

    Raises:
        ReleaseError: neither end is shown, or the release does not say where areas lie.
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
