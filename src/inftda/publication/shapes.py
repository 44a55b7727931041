"""Rows of flows on a map: lines between two areas, or the areas themselves.

Where areas lie are public facts that came with them, and not part of any guarantee.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inftda.areas.locations import Gazetteer, short_way
from inftda.areas.polygons import shapely
from inftda.errors import ReleaseError
from inftda.tables import find_texts
from inftda.tree import DESTINATION, ORIGIN, Tree


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
