"""Which area a point lies in, many points at once: by polygons here, by H3 codes in `cells`.

The plane is cut into rows. In its row, a point is inside of an area if a ray from it crosses the
area's borders an odd number of times. Holes and several polygons of one area need nothing else.
For a million points among 260 taxi zones this takes a tenth of the time of a search tree of
shapely.

A point on a border is placed once. Every stretch of a border is walked in one direction, whichever
area it belongs to, and owns its lower end only; so of two areas with a common border exactly one
has the point. Two areas may also draw their common border differently, for instance where one of
them has a corner that the other lacks, and leave gaps. A point in no area that is within a
centimetre of a border belongs to the area whose border it is. Where areas overlap, a point belongs
to the first of them. Longitudes that differ by 360 degrees are the same.
"""

from typing import Any, Final, NamedTuple, Protocol, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inftda.areas.grids import CellPlacer, resolution_of
from inftda.areas.polygons import rings
from inftda.errors import HierarchyError
from inftda.tree.hierarchy import Hierarchy
from inftda.util.kernels import inlined_kernel, kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

#: Degrees from a border, about a centimetre: points in no area that are no further belong to it.
NEAR: Final = 1e-7
#: Degrees around a border that are searched: more than `NEAR`, and more than rounding errors.
_REACH: Final = 2 * NEAR
_MOST_ROWS: Final = 1024


class Placer(Protocol):
    """Finds the areas of points, many at once."""

    def place(self, lon: Floats, lat: Floats) -> Ints:
        """The number of the finest area of each point, -1 for points in none.

        Privacy:
            Where a point is placed depends on that point and on public areas alone.
        """


def placer_of(hierarchy: Hierarchy) -> Placer:
    """Make the function that finds the finest areas of a hierarchy."""
    resolution = resolution_of(hierarchy)
    if resolution is not None:
        return CellPlacer.of(hierarchy, resolution)
    if hierarchy.places.outlines is None:
        raise HierarchyError(
            "points cannot be placed into these areas, which have no outlines; give areas with "
            "polygons (GeoJSON, GeoPackage, shapefile, a table with a column wkt), or cells "
            "(inftda areas h3, inftda areas grid)"
        )
    return Polygons.of(hierarchy.places.outlines)


class Polygons(NamedTuple):
    """Areas by their borders, row by row: ready to place points.

    Attributes:
        south: where the first row begins.
        per_degree: rows in a degree.
        row_offsets: int32[rows + 1]: the runs of each row, a run being an area's borders in it.
        run_area: int32[runs]: the area of each, ascending in a row.
        run_ends: float64[2, runs]: its west and east end.
        run_offsets: int32[runs + 1]: its edges.
        edges: float64[4, edges]: x and y of the lower end of each stretch of a border, then of
            its upper end; repeated in every row that it reaches.
    """

    south: float
    per_degree: float
    row_offsets: Ints
    run_area: Ints
    run_ends: Floats
    run_offsets: Ints
    edges: Floats

    @classmethod
    def of(cls, outlines: pa.BinaryArray) -> Self:
        """Prepare outlines: WKB in the order of the areas, null for areas without."""
        edges, area = _edges(outlines)
        south, north = edges[1].min() - _REACH, edges[3].max() + _REACH
        n_rows = min(len(area), _MOST_ROWS)
        per_degree = n_rows / (north - south)
        first, last = (
            np.clip(((y - south) * per_degree).astype(np.int64), 0, n_rows - 1)
            for y in (edges[1] - _REACH, edges[3] + _REACH)
        )
        # Each edge in every row that it reaches, by row and area.
        sizes = last - first + 1
        which = np.repeat(np.arange(len(area)), sizes)
        row = np.arange(len(which)) - np.repeat(np.cumsum(sizes) - sizes - first, sizes)
        order = np.lexsort((area[which], row))
        row, area, edges = row[order], area[which[order]], edges[:, which[order]]
        start = np.flatnonzero((np.diff(row, prepend=-1) != 0) | (np.diff(area, prepend=-1) != 0))
        west = np.minimum.reduceat(np.minimum(edges[0], edges[2]), start) - _REACH
        east = np.maximum.reduceat(np.maximum(edges[0], edges[2]), start) + _REACH
        return cls(
            south=float(south),
            per_degree=float(per_degree),
            row_offsets=np.searchsorted(row[start], np.arange(n_rows + 1)).astype(np.int32),
            run_area=area[start],
            run_ends=np.stack([west, east]),
            run_offsets=np.append(start, len(area)).astype(np.int32),
            edges=np.ascontiguousarray(edges),
        )

    def place(self, lon: Floats, lat: Floats) -> Ints:
        """The area of each point, -1 for points in none: not in degrees, or not a number."""
        found = np.empty(len(lon), np.int32)
        _place_kernel(np.ascontiguousarray(lon), np.ascontiguousarray(lat), self, found)
        return found


def _edges(outlines: pa.BinaryArray) -> tuple[Floats, Ints]:
    """float64[4, edges], lower end first, and the area of each."""
    parts, areas = [], []
    for area, outline in enumerate(outlines.to_pylist()):
        for ring in rings(outline) if outline is not None else []:
            parts.append(np.concatenate([ring[:-1], ring[1:]], axis=1))
            areas.append(np.full(len(ring) - 1, area, np.int32))
    stretches = np.concatenate(parts).T
    # One direction for all: two areas must not differ in how they round their common border.
    is_turned = (stretches[1] > stretches[3]) | (
        (stretches[1] == stretches[3]) & (stretches[0] > stretches[2])
    )
    return np.where(is_turned, stretches[[2, 3, 0, 1]], stretches), np.concatenate(areas)


@inlined_kernel
def _is_inside(edges: Floats, start: int, end: int, x: float, y: float) -> bool:
    """Whether a ray to the east crosses an odd number of edges."""
    is_odd = False
    for edge in range(start, end):
        x0, y0, x1, y1 = edges[0, edge], edges[1, edge], edges[2, edge], edges[3, edge]
        if y0 <= y < y1 and x < x0 + (y - y0) * ((x1 - x0) / (y1 - y0)):
            is_odd = not is_odd
    return is_odd


@inlined_kernel
def _is_near(edges: Floats, start: int, end: int, x: float, y: float) -> bool:
    """Whether a point is on one of the edges, or within `NEAR` of it."""
    for edge in range(start, end):
        x0, y0 = edges[0, edge], edges[1, edge]
        along_x, along_y = edges[2, edge] - x0, edges[3, edge] - y0
        squared = along_x * along_x + along_y * along_y
        part = 0.0
        if squared > 0.0:
            part = min(max(((x - x0) * along_x + (y - y0) * along_y) / squared, 0.0), 1.0)
        off_x, off_y = x - x0 - part * along_x, y - y0 - part * along_y
        if off_x * off_x + off_y * off_y <= NEAR * NEAR:
            return True
    return False


@kernel
def _find_kernel(x: float, y: float, areas: Polygons) -> Any:
    """The area of one point, -1 if it is in none."""
    up, n_rows = (y - areas.south) * areas.per_degree, len(areas.row_offsets) - 1
    if not 0.0 <= up <= n_rows:
        return -1
    row = min(int(up), n_rows - 1)
    ends, offsets, edges = areas.run_ends, areas.run_offsets, areas.edges
    first, last = areas.row_offsets[row], areas.row_offsets[row + 1]
    for run in range(first, last):
        is_there = ends[0, run] <= x <= ends[1, run]
        if is_there and _is_inside(edges, offsets[run], offsets[run + 1], x, y):
            return areas.run_area[run]
    for run in range(first, last):
        is_there = ends[0, run] <= x <= ends[1, run]
        if is_there and _is_near(edges, offsets[run], offsets[run + 1], x, y):
            return areas.run_area[run]
    return -1


@kernel
def _place_kernel(lon: Floats, lat: Floats, areas: Polygons, found: Ints) -> None:
    """Write the area of each point to `found`, -1 for points in none."""
    for point in range(len(lon)):
        x, y = lon[point], lat[point]
        found[point] = -1
        # Written so that not-a-number is in no area.
        if not (-360.0 <= x <= 360.0 and -90.0 <= y <= 90.0):
            continue
        found[point] = _find_kernel(x, y, areas)
        if found[point] < 0:
            found[point] = _find_kernel(x - 360.0 if x > 0.0 else x + 360.0, y, areas)
