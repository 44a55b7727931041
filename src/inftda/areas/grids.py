"""Cells that cover a public outline: hexagons of H3, or squares; and the H3 cells of points.

Coarser cells follow from the finest one, never from the point: some points lie in a hexagon whose
parent is not the coarser hexagon around them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inftda.areas.features import ENDINGS, read_features
from inftda.areas.polygons import library, shapely
from inftda.errors import HierarchyError
from inftda.tree.hierarchy import OUTSIDE, Hierarchy

#: More cells than any hierarchy should have.
MAX_CELLS: Final = 2_000_000
FINEST: Final = 15
#: How H3 writes a cell: the second digit is its resolution.
_CODE: Final = re.compile(r"8[0-9a-f]{14}")
#: Metres in a degree of latitude.
_DEGREE: Final = 111_195.0
_MAX_LAT: Final = 85.0
_HALF_TURN: Final = 180.0
_WHY: Final = (
    "cells must cover an outline that is known without the trips, never the points that were "
    "seen, because which cells there are is published: give polygons"
)


def h3_areas(outline: Any, resolutions: Sequence[int]) -> pa.Table:
    """The hexagons that cover an outline, as a table of areas.

    Args:
        outline: area that the cells cover, which must be known without the trips: a file of
            polygons, or shapely's, in degrees.
        resolutions: of the levels, from coarse (0) to fine (15).

    Returns:
        A column of codes for each level, called h3_5 for resolution 5; location and outline of the
        finest cells.

    Raises:
        HierarchyError: the resolutions do not grow, there would be too many cells, or the outline
            is anything but polygons.
    """
    h3 = library("h3", needed_for="H3 cells")
    outline = _as_outline(outline)
    listed = ",".join(map(str, resolutions)) or "none"
    if not resolutions or list(resolutions) != sorted({*resolutions}):
        raise HierarchyError(
            f"resolutions must grow from coarse to fine, such as 5,7,9; got {listed}"
        )
    if not all(0 <= resolution <= FINEST for resolution in resolutions):
        raise HierarchyError(f"resolutions of H3 are between 0 and {FINEST}; got {listed}")
    finest = resolutions[-1]
    if _rough_share(outline) * h3.get_num_cells(finest) > MAX_CELLS:
        raise HierarchyError(
            f"there would be more than {MAX_CELLS:,} cells of resolution {finest} in this "
            "outline; choose a coarser one"
        )
    shape = h3.geo_to_h3shape(outline)
    # Once each: a cell may overlap more than one part of an outline.
    cells = sorted({*h3.h3shape_to_cells_experimental(shape, finest, contain="overlap")})
    lat, lon = np.array([h3.cell_to_latlng(cell) for cell in cells]).T
    hexagons = [_hexagon(h3.cell_to_boundary(cell)) for cell in cells]
    return pa.table(
        {f"h3_{at}": [h3.cell_to_parent(cell, at) for cell in cells] for at in resolutions}
        | {"lon": lon.round(6), "lat": lat.round(6)}
        | {"wkt": shapely().to_wkt(hexagons, rounding_precision=7)}
    )


def _rough_share(outline: Any) -> float:
    """About which part of the globe an outline covers."""
    west, south, east, north = outline.bounds
    height = np.sin(np.radians(north)) - np.sin(np.radians(south))
    cover = outline.area / max((east - west) * (north - south), 1e-300)
    return float(cover * (east - west) / 360.0 * height / 2.0)


def _hexagon(corners: Any) -> Any:
    """Outline of a cell; one that crosses the antimeridian goes beyond 180 degrees."""
    at = np.array(corners)[:, ::-1].copy()
    if np.ptp(at[:, 0]) > _HALF_TURN:
        at[at[:, 0] < 0, 0] += 2 * _HALF_TURN
    return shapely().Polygon(at)


def grid_areas(outline: Any, sizes: Sequence[int]) -> pa.Table:
    """The squares of a grid that cover an outline, as a table of areas.

    Squares are counted from longitude and latitude 0 and have their size at the whole degree of
    latitude next to the outline's middle. So outlines around the same degree share their cells.

    Args:
        outline: area that the cells cover, which must be known without the trips: a file of
            polygons, or shapely's, in degrees.
        sizes: side of the cells of each level in metres, from coarse to fine, each a multiple of
            the next.

    Returns:
        A column of codes for each level, called grid_500 for cells of 500 m; location and outline
        of the finest cells. The code x3y4 is column 3 to the east and row 4 to the north.

    Raises:
        HierarchyError: the sizes do not nest, there would be too many cells, or the outline is
            anything but polygons.
    """
    outline = _as_outline(outline)
    _check_sizes(sizes)
    _, south, _, north = outline.bounds
    if max(abs(south), abs(north)) > _MAX_LAT:
        raise HierarchyError("a grid of squares does not fit near the poles; use inftda areas h3")
    side = sizes[-1]
    step_y = side / _DEGREE
    step_x = step_y / np.cos(np.radians(round((south + north) / 2)))
    # Part by part: those on both sides of 180 degrees have nothing between them.
    steps = shapely().bounds(shapely().get_parts([outline])) / (step_x, step_y, step_x, step_y)
    ends = np.column_stack([np.floor(steps[:, :2]), np.ceil(steps[:, 2:])]).astype(np.int64)
    n = int(np.prod(ends[:, 2:] - ends[:, :2], axis=1, dtype=float).sum())
    if n > MAX_CELLS:
        raise HierarchyError(
            f"there would be up to {n:,} cells of {side:,} m around this outline; choose larger "
            "ones"
        )
    around = [np.mgrid[x0:x1, y0:y1].reshape(2, -1) for x0, y0, x1, y1 in ends.tolist()]
    # As complex numbers, which are sorted by x and then by y: each cell once.
    cells = np.unique(np.concatenate([x + 1j * y for x, y in around]))
    x, y = cells.real.astype(np.int64), cells.imag.astype(np.int64)
    boxes = shapely().box(x * step_x, y * step_y, (x + 1) * step_x, (y + 1) * step_y)
    shapely().prepare(outline)
    is_kept = shapely().intersects(outline, boxes)
    x, y, boxes = x[is_kept], y[is_kept], boxes[is_kept]
    codes = {}
    for size in sizes:
        columns, rows = x // (size // side), y // (size // side)
        codes[f"grid_{size}"] = [f"x{i}y{j}" for i, j in zip(columns, rows, strict=True)]
    return pa.table(
        codes
        | {"lon": ((x + 0.5) * step_x).round(6), "lat": ((y + 0.5) * step_y).round(6)}
        | {"wkt": shapely().to_wkt(boxes, rounding_precision=9)}
    )


def _check_sizes(sizes: Sequence[int]) -> None:
    is_falling = len(sizes) > 0 and list(sizes) == sorted({*sizes}, reverse=True)
    if not is_falling or sizes[-1] < 1:
        raise HierarchyError(
            "sizes are metres from coarse to fine, such as 4000,1000,500; got "
            f"{','.join(map(str, sizes)) or 'none'}"
        )
    for coarse, fine in pairwise(sizes):
        if coarse % fine:
            raise HierarchyError(
                f"cells of {fine:,} m do not fill one of {coarse:,} m; let each size be a multiple "
                "of the next"
            )


def _as_outline(source: Any) -> Any:
    """One public outline: all polygons of a file, or one geometry of shapely."""
    geometries, label = np.array([source], object), "the outline"
    if isinstance(source, str | Path):
        if not str(source).lower().endswith(ENDINGS):
            raise HierarchyError(
                f"{Path(source).name!r} is not a file of polygons, which end in "
                f"{', '.join(ENDINGS)}; {_WHY}"
            )
        label, _, geometries = read_features(source)
    kinds = {getattr(geometry, "geom_type", "nothing") for geometry in geometries}
    if not kinds <= {"Polygon", "MultiPolygon"}:
        raise HierarchyError(f"{label} has {', '.join(sorted(kinds))} in it; {_WHY}")
    # Outlines are often drawn by hand, and no point is placed by them, so broken ones are repaired.
    it = shapely()
    whole = it.union_all(it.make_valid(it.force_2d(geometries)))
    # A polygon that collapses to a line is repaired to one.
    parts = it.get_parts(it.get_parts([whole]))
    outline = it.union_all(parts[it.area(parts) > 0])
    if outline.is_empty:
        raise HierarchyError(f"the polygons in {label} enclose nothing; {_WHY}")
    return outline


def resolution_of(hierarchy: Hierarchy) -> int | None:
    """The resolution of finest areas that are H3 cells, all of one; None if they are not."""
    codes = [code for code in hierarchy.codes(hierarchy.depth).to_pylist() if code != OUTSIDE]
    if not codes or not all(_CODE.fullmatch(code) for code in codes):
        return None
    resolutions = {int(code[1], 16) for code in codes}
    return resolutions.pop() if len(resolutions) == 1 else None


@dataclass(frozen=True, eq=False)
class CellPlacer:
    """Finds the H3 cells of points: all cells, ascending, and the area that each is."""

    resolution: int
    cells: NDArray[np.uint64]
    area: NDArray[np.int32]

    @classmethod
    def of(cls, hierarchy: Hierarchy, resolution: int) -> Self:
        """Prepare the finest areas of a hierarchy, which are cells of one resolution."""
        h3 = library("h3", needed_for="H3 cells")
        known = []
        for area, code in enumerate(hierarchy.codes(hierarchy.depth).to_pylist()):
            if code == OUTSIDE:
                continue
            if not h3.is_valid_cell(code):
                raise HierarchyError(f"{code!r} is not a cell of H3; correct the areas table")
            known.append((int(code, 16), area))
        cells, areas = zip(*sorted(known), strict=True)
        return cls(resolution, np.array(cells, np.uint64), np.array(areas, np.int32))

    def place(self, lon: NDArray[np.float64], lat: NDArray[np.float64]) -> NDArray[np.int32]:
        """The area of each point, -1 for points in none."""
        cell_at = library("h3.api.basic_int", needed_for="H3 cells").latlng_to_cell
        found = np.full(len(lon), -1, np.int32)
        # Written so that not-a-number is in no area.
        known = np.flatnonzero((np.abs(lon) <= 2 * _HALF_TURN) & (np.abs(lat) <= _HALF_TURN / 2))
        points = zip(lat[known].tolist(), lon[known].tolist(), strict=True)
        cells = np.array([cell_at(y, x, self.resolution) for y, x in points], np.uint64)
        at = np.minimum(np.searchsorted(self.cells, cells), len(self.cells) - 1)
        found[known] = np.where(self.cells[at] == cells, self.area[at], -1)
        return found
