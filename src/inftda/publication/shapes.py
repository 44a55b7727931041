"""Rows of flows on a map: lines between two areas, or the areas themselves.

Where areas lie are public facts that came with them, and not part of any guarantee.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from inftda.areas.wkb import Ends, points_or_lines
from inftda.errors import ReleaseError
from inftda.hierarchy import Hierarchy
from inftda.tree import DESTINATION, ORIGIN, Tree


def shapes_of(table: pa.Table, tree: Tree, levels: Mapping[str, str]) -> list[bytes | None]:
    """A shape for each row (WKB, degrees): a line if both ends are shown, otherwise the area.

    Trips inside one area are lines of no length. An area is its outline at the finest level,
    where it has one, and a point otherwise. There is no shape where an end has no place.

    Args:
        table: what `sum_flows` gives.
        tree: the tree of the release.
        levels: axis name to the level that is shown.

    Raises:
        ReleaseError: neither end is shown, or the release does not say where areas lie.
    """
    axes = {axis.name: axis.hierarchy for axis in tree.axes}
    shown = [name for name in (ORIGIN, DESTINATION) if name in axes and name in table.column_names]
    finest = {name: places for name in shown if (places := _finest(axes[name])) is not None}
    if not shown or len(finest) < len(shown):
        raise ReleaseError(
            "flows as geopandas need an origin or a destination, and areas with outlines or with "
            "lon and lat, which this release does not have; take as_='pandas', or inftda "
            "export --centroids"
        )
    depths = [axes[name].level_of(levels[name]) for name in shown]
    areas = [
        pc.index_in(table.column(name), value_set=axes[name].codes(depth)).combine_chunks()
        for name, depth in zip(shown, depths, strict=True)
    ]
    at = []
    for name, depth, area in zip(shown, depths, areas, strict=True):
        lon, lat = places_at(axes[name], depth, finest[name])
        at.append((lon[area], lat[area]))
    if len(at) > 1:
        at[1] = (short_way(at[0][0], at[1][0]), at[1][1])
    is_known = ~np.isnan(np.sum([lon + lat for lon, lat in at], axis=0))
    shapes = [
        shape if known else None
        for shape, known in zip(points_or_lines(tuple(at)), is_known, strict=True)
    ]
    hierarchy, depth = axes[shown[0]], depths[0]
    if len(shown) > 1 or depth < hierarchy.depth or hierarchy.places.outlines is None:
        return shapes
    outlines = hierarchy.places.outlines.take(areas[0]).to_pylist()
    return [outline or shape for outline, shape in zip(outlines, shapes, strict=True)]


def places_at(hierarchy: Hierarchy, level: int, finest: Ends) -> Ends:
    """Longitudes and latitudes of the areas of a level, from those of the finest.

    NaN where nothing is known.
    """
    lon, lat = finest
    return finest if level == hierarchy.depth else _middles(hierarchy, level, lon, lat)


def _finest(hierarchy: Hierarchy) -> Ends | None:
    lon, lat = hierarchy.places.lon, hierarchy.places.lat
    return None if lon is None or lat is None else (lon, lat)


def short_way(start: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.float64]:
    """Longitudes of ends, so that lines go over 180 degrees and not the long way round."""
    return np.asarray(end + 360 * np.round((start - end) / 360))


def _middles(
    hierarchy: Hierarchy, level: int, lon: NDArray[np.float64], lat: NDArray[np.float64]
) -> Ends:
    """Middle of the finest areas of each area, on the sphere: at 180 degrees nothing jumps."""
    above = hierarchy.ancestor(hierarchy.depth, level)
    is_known = ~(np.isnan(lon) | np.isnan(lat))
    angle, height = np.radians(lon[is_known]), np.radians(lat[is_known])
    directions = (
        np.cos(height) * np.cos(angle),
        np.cos(height) * np.sin(angle),
        np.sin(height),
    )
    n = hierarchy.n_areas(level)
    x, y, z = (np.bincount(above[is_known], part, minlength=n) for part in directions)
    count = np.bincount(above[is_known], minlength=n)
    middle = np.degrees(np.arctan2(y, x)), np.degrees(np.arctan2(z, np.hypot(x, y)))
    return (np.where(count > 0, middle[0], np.nan), np.where(count > 0, middle[1], np.nan))
