"""Where areas are, for distances between them: from a file, or from what a release has of them."""

from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inftda.areas.centroids import locations
from inftda.errors import InftdaError
from inftda.tables import find_texts, read_strings
from inftda.tree import DESTINATION, ORIGIN, Axis, Tree

Points = dict[str, NDArray[np.float64]]

_WHAT: Final = "centroids file"


def points_of(tree: Tree, centroids: Any = None) -> Points:
    """Unit vectors of the finest areas of both ends, by axis name; NaN where unknown.

    Args:
        tree: the public tree.
        centroids: a file or table with a column named after a level, lon and lat (degrees); without
            it what the release itself has of its areas.

    Raises:
        InftdaError: a column is missing, a coordinate is not in degrees, or no area is known.
    """
    ends = [axis for axis in tree.axes if axis.name in {ORIGIN, DESTINATION}]
    if centroids is None:
        return {axis.name: found for axis in ends if (found := _own_points(axis)) is not None}
    table = read_strings(centroids, what=_WHAT, error=InftdaError)
    at = _unit_vectors(*locations(table, f"the {_WHAT}"))
    points = {axis.name: _at_finest(axis, table, at) for axis in ends}
    if all(np.isnan(found).all() for found in points.values()):
        levels = dict.fromkeys(name for axis in ends for name in axis.hierarchy.level_names)
        raise InftdaError(
            f"no area of the {_WHAT} is in this release; it must have a column named after one of "
            f"the levels ({', '.join(levels)}) with their codes"
        )
    return points


def _own_points(axis: Axis) -> NDArray[np.float64] | None:
    """Locations that came with the areas, if any did."""
    places = axis.hierarchy.places
    if places.lon is None or places.lat is None:
        return None
    return _unit_vectors(places.lon, places.lat)


def _at_finest(axis: Axis, table: pa.Table, at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Vectors of the finest areas: their own, or else those of the area around them."""
    hierarchy = axis.hierarchy
    found = np.full((hierarchy.n_areas(hierarchy.depth), 3), np.nan)
    for level in range(hierarchy.depth, 0, -1):
        if hierarchy.level_name(level) in table.column_names:
            codes = table.column(hierarchy.level_name(level)).combine_chunks()
            area = find_texts(codes, hierarchy.codes(level))
            known = np.full((hierarchy.n_areas(level), 3), np.nan)
            known[area[area >= 0]] = at[area >= 0]
            around = known[hierarchy.ancestor(hierarchy.depth, level)]
            found = np.where(np.isnan(found), around, found)
    return found


def _unit_vectors(lon: NDArray[Any], lat: NDArray[Any]) -> NDArray[np.float64]:
    """float64[areas, 3]: points on the unit sphere."""
    east, north = np.radians(lon.astype(float)), np.radians(lat.astype(float))
    return np.stack(
        [np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)], axis=1
    )
