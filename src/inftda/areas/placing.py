"""Which area a point lies in, many points at once: by polygons here, by H3 codes in `cells`.

The plane is cut into rows and columns of small cells. Most cells have no border in them: they
belong to one area, or to none, which is looked up. In the others crossings with the borders of the
few areas concerned are counted: a point is inside of an area if a ray from it crosses the area's
borders an odd number of times. Holes and several polygons of one area need nothing else.

A point on a border is placed once. Every stretch of a border is walked in one direction, whichever
area it belongs to, and owns its lower end only; so of two areas with a common border exactly one
has the point. On the outer border of all areas, where the point might have none, it belongs to
the area whose border it is on. Where areas overlap it belongs to the first of those with a border
nearby. Longitudes that differ by 360 degrees are the same.
"""

from dataclasses import dataclass
from typing import Final, Protocol, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inftda.areas.placing_kernels import Raster, centre_kernel, place_kernel
from inftda.areas.wkb import rings
from inftda.errors import HierarchyError
from inftda.hierarchy import Hierarchy

#: Cells for each stretch of a border, fewest, and most along one side.
_CELLS_PER_EDGE, _FEWEST, _MOST_SIDE = 8, 256, 1024
#: Part of a cell that borders are widened by when cells are marked: rounding must not hide one.
_MARGIN: Final = 1e-6


@dataclass(frozen=True, eq=False)
class Polygons:
    """Areas by their borders, ready to place points."""

    raster: Raster

    @classmethod
    def of(cls, outlines: pa.BinaryArray) -> Self:
        """Prepare areas.

        Args:
            outlines: polygons as WKB, in the order of the areas; null for areas without.
        """
        edges, area = _edges(outlines)
        x0, y0, x1, y1 = edges
        west, south, east, north = (
            min(x0.min(), x1.min()),
            y0.min(),
            max(x0.max(), x1.max()),
            y1.max(),
        )
        side = int(np.clip(np.sqrt(_CELLS_PER_EDGE * len(area)), np.sqrt(_FEWEST), _MOST_SIDE))
        box = np.array([west, south, side / (east - west), side / (north - south)])
        edges, area, row = _by_row(edges, area, box, side)
        is_first = np.ones(len(area), bool)
        is_first[1:] = (np.diff(row) != 0) | (np.diff(area) != 0)
        first = np.flatnonzero(is_first)
        run_offsets = np.append(first, len(area)).astype(np.int32)
        run_area, run_row = area[first], row[first]
        cell_offsets, cell_runs = _marks(edges, row, np.cumsum(is_first) - 1, box, side)
        row_offsets = np.searchsorted(run_row, np.arange(side + 1)).astype(np.int32)
        raster = Raster(
            box,
            side,
            edges,
            run_offsets,
            run_area,
            cell_offsets,
            cell_runs,
            cell_area=np.full(side * side, -1, np.int32),
            cell_run=np.full(side * side, -1, np.int32),
        )
        centre_kernel(raster, row_offsets)
        return cls(raster)

    def place(self, lon: NDArray[np.float64], lat: NDArray[np.float64]) -> NDArray[np.int32]:
        """The area of each point, -1 for points in none: not in degrees, or not a number."""
        found = np.empty(len(lon), np.int32)
        place_kernel(np.ascontiguousarray(lon), np.ascontiguousarray(lat), self.raster, found)
        return found


def _edges(outlines: pa.BinaryArray) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
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
    stretches = np.where(is_turned, stretches[[2, 3, 0, 1]], stretches)
    return np.ascontiguousarray(stretches), np.concatenate(areas)


def _by_row(
    edges: NDArray[np.float64], area: NDArray[np.int32], box: NDArray[np.float64], side: int
) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.int32]]:
    """Edges, their areas and rows: each edge in every row that it crosses, by row and area."""
    _, south, _, per_degree = box
    low, high = (
        np.clip(((y - south) * per_degree).astype(np.int64), 0, side - 1)
        for y in (edges[1], edges[3])
    )
    which, row = _ranges(low, high)
    order = np.lexsort((area[which], row))
    which, row = which[order], row[order]
    return np.ascontiguousarray(edges[:, which]), area[which], row.astype(np.int32)


def _marks(
    edges: NDArray[np.float64],
    row: NDArray[np.int32],
    run: NDArray[np.int64],
    box: NDArray[np.float64],
    side: int,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Runs with an edge in each cell: int32[cells + 1] offsets, and the runs."""
    west, south, columns, rows = box
    x0, y0, x1, y1 = edges
    # The part of each edge in its row, a little wider.
    rise = np.where(y1 > y0, y1 - y0, 1.0)
    ends = [
        np.clip((south + (row + beyond) / rows - y0) / rise, 0.0, 1.0)
        for beyond in (-_MARGIN, 1 + _MARGIN)
    ]
    is_level = y1 <= y0
    xs = [
        np.where(is_level, x, x0 + end * (x1 - x0)) for x, end in zip((x0, x1), ends, strict=True)
    ]
    low, high = (np.minimum(*xs) - west) * columns, (np.maximum(*xs) - west) * columns
    first = np.clip(np.floor(low - _MARGIN), 0, side - 1).astype(np.int64)
    last = np.clip(np.floor(high + _MARGIN), 0, side - 1).astype(np.int64)
    which, column = _ranges(first, last)
    cell = row[which].astype(np.int64) * side + column
    pairs = np.unique(cell * np.int64(len(run) + 1) + run[which])
    cell, runs = np.divmod(pairs, len(run) + 1)
    offsets = np.searchsorted(cell, np.arange(side * side + 1))
    return offsets.astype(np.int32), runs.astype(np.int32)


def _ranges(
    first: NDArray[np.int64], last: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All whole numbers from first to last of each pair, and the pair that each is of."""
    sizes = last - first + 1
    which = np.repeat(np.arange(len(first)), sizes)
    starts = np.cumsum(sizes) - sizes
    return which, np.arange(len(which)) - starts[which] + first[which]


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
    from inftda.areas.cells import CellPlacer, resolution_of  # noqa: PLC0415 - it uses `Polygons`

    if resolution_of(hierarchy) is not None:
        return CellPlacer.of(hierarchy)
    if hierarchy.places.outlines is None:
        raise HierarchyError(
            "points cannot be placed into these areas, which have no outlines; give areas with "
            "polygons (GeoJSON, GeoPackage, shapefile, a table with a column wkt), or cells "
            "(inftda areas h3, inftda areas grid)"
        )
    return Polygons.of(hierarchy.places.outlines)
