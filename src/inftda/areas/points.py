"""What finds the areas of points: their outlines, or the library that their codes come from."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from inftda.areas.cell_codes import resolution_of
from inftda.errors import HierarchyError
from inftda.hierarchy import Hierarchy


class Placer(Protocol):
    """Finds the areas of points, many at once."""

    def place(self, lon: NDArray[np.float64], lat: NDArray[np.float64]) -> NDArray[np.int32]:
        """The number of the finest area of each point, -1 for points in none.

        Privacy:
            Where a point is placed depends on that point and on public areas alone.
        """


def placer_of(hierarchy: Hierarchy) -> Placer:
    """What finds the finest areas of a hierarchy.

    Raises:
        HierarchyError: the areas have neither outlines nor codes of cells.
        MissingExtraError: it needs an optional library.
    """
    if resolution_of(hierarchy) is not None:
        from inftda.areas.cells import CellPlacer  # noqa: PLC0415 - an optional library

        return CellPlacer.of(hierarchy)
    if hierarchy.places.outlines is None:
        raise HierarchyError(
            "points cannot be placed into these areas, which have no outlines; give areas with "
            "polygons (GeoJSON, GeoPackage, shapefile, a table with a column wkt), or cells "
            "(inftda areas h3, inftda areas grid)"
        )
    from inftda.areas.placing import Polygons  # noqa: PLC0415 - kernels that others need not load

    return Polygons.of(hierarchy.places.outlines)
