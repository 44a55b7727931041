"""Hexagonal cells of H3: those that cover an outline, and the cells of points.

Coarser cells follow from the finest one, never from the point: some points lie in a cell whose
parent is not the coarser cell around them.

Codes are recognised without any library. A cell is 64 bits, written in hexadecimal digits: the
kind of thing (4 bits), its resolution, its base cell, and a digit of 3 bits for each resolution,
7 beyond its own. See https://h3geo.org.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inftda.areas.cell_names import nested_names
from inftda.areas.features import ENDINGS, read_features
from inftda.areas.placing import Polygons
from inftda.areas.polygons import library, shapely
from inftda.errors import HierarchyError
from inftda.hierarchy import OUTSIDE, Hierarchy

#: More cells than any hierarchy should have.
MAX_CELLS: Final = 2_000_000
_WHY: Final = (
    "cells must cover an outline that is known without the trips, never the points that were "
    "seen, because which cells there are is published: give polygons"
)
#: What is surely inside of a cell whose sides are not quite straight in degrees, and what surely
#: holds all of it: the cell, scaled by these factors.
_INNER, _OUTER = 0.97, 1.03
#: Resolution and latitude from which on, and up to which, that holds.
_STRAIGHT, _MAX_LAT = 4, 75.0
_HALF_TURN: Final = 180.0
FINEST: Final = 15
_KIND_AT, _CELL, _RESOLUTION_AT, _RESERVED_AT = 59, 1, 52, 56
_N_DIGITS: Final = 15


def _h3() -> Any:
    return library("h3", needed_for="H3 cells")


def h3_areas(outline: Any, resolutions: Sequence[int]) -> pa.Table:
    """The cells that cover an outline, as a table of areas.

    Args:
        outline: what the cells are to cover, which must be known without the trips: a file of
            polygons, or shapely's, in degrees.
        resolutions: of the levels, from coarse (0) to fine (15).

    Returns:
        A column of codes for each level, called h3_5 for resolution 5; their names, and location
        and outline of the finest cells.

    Raises:
        HierarchyError: the resolutions do not grow, there would be too many cells, or the outline
            is anything but polygons.
    """
    h3 = _h3()
    outline = as_outline(outline)
    if not resolutions or list(resolutions) != sorted({*resolutions}):
        raise HierarchyError(
            f"resolutions must grow from coarse to fine, such as 5,7,9; got {_listed(resolutions)}"
        )
    if not all(0 <= resolution <= FINEST for resolution in resolutions):
        raise HierarchyError(
            f"resolutions of H3 are between 0 and {FINEST}; got {_listed(resolutions)}"
        )
    finest = resolutions[-1]
    _check_number(outline, finest)
    shape = h3.geo_to_h3shape(outline)
    # Once each: of an outline in several parts, a cell may overlap more than one.
    cells = sorted({*h3.h3shape_to_cells_experimental(shape, finest, contain="overlap")})
    columns = {f"h3_{at}": [h3.cell_to_parent(cell, at) for cell in cells] for at in resolutions}
    centres = {
        name: np.array([h3.cell_to_latlng(cell) for cell in codes])
        for name, codes in columns.items()
    }
    names = nested_names(list(columns.values()), [at[:, ::-1] for at in centres.values()])
    *coarser, last = columns
    lat, lon = centres[last].T
    return pa.table(
        columns
        | {f"{name}_name": found for name, found in zip(coarser, names[:-1], strict=True)}
        | {"name": names[-1], "lon": lon.round(6), "lat": lat.round(6)}
        | {"wkt": [shapely().to_wkt(_hexagon(cell), rounding_precision=7) for cell in cells]}
    )


def as_outline(source: Any) -> Any:
    """One public outline: all polygons of a file, or one geometry of shapely.

    Raises:
        HierarchyError: it has anything but polygons, such as the points of trips.
    """
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
    # Outlines are drawn by hand, and no point is placed by them: what is broken is repaired.
    library_ = shapely()
    whole = library_.union_all(library_.make_valid(library_.force_2d(geometries)))
    # A polygon that collapses to a line is repaired to one.
    parts = library_.get_parts(library_.get_parts([whole]))
    outline = library_.union_all(parts[library_.area(parts) > 0])
    if outline.is_empty:
        raise HierarchyError(f"the polygons in {label} enclose nothing; {_WHY}")
    return outline


def _check_number(outline: Any, resolution: int) -> None:
    """Refuse too many cells before they are made, by a rough estimate of their number."""
    h3 = _h3()
    west, south, east, north = outline.bounds
    height = np.sin(np.radians(north)) - np.sin(np.radians(south))
    part = max((east - west) / 360.0 * height / 2.0, 0.0)
    cover = outline.area / max((east - west) * (north - south), 1e-300)
    if part * cover * h3.get_num_cells(resolution) > MAX_CELLS:
        raise HierarchyError(
            f"there would be more than {MAX_CELLS:,} cells of resolution {resolution} in this "
            "outline; choose a coarser one"
        )


def _hexagon(cell: str) -> Any:
    """Outline of a cell; one that crosses the antimeridian goes beyond 180 degrees."""
    corners = np.array(_h3().cell_to_boundary(cell))[:, ::-1].copy()
    if np.ptp(corners[:, 0]) > _HALF_TURN:
        corners[corners[:, 0] < 0, 0] += 2 * _HALF_TURN
    return shapely().Polygon(corners)


@dataclass(frozen=True, eq=False)
class CellPlacer:
    """Finds the cells of points as H3 does.

    Most points are well inside of a cell, which polygons tell faster than H3 does; H3 is asked
    about those near a border.

    Attributes:
        resolution: of the cells.
        cells: uint64[cells], ascending.
        area: int32[cells], the area that each is.
        inner: the middle parts of the cells, by area; None if their sides are too crooked.
        outer: likewise what is around them.
    """

    resolution: int
    cells: NDArray[np.uint64]
    area: NDArray[np.int32]
    inner: Polygons | None
    outer: Polygons | None

    @classmethod
    def of(cls, hierarchy: Hierarchy) -> Self:
        """Prepare the finest areas of a hierarchy, which are cells.

        Raises:
            HierarchyError: they are not.
        """
        cells, resolution = cells_of(hierarchy), resolution_of(hierarchy)
        if cells is None or resolution is None:
            raise HierarchyError("these areas are not cells of H3")
        area = np.argsort(cells, kind="stable").astype(np.int32)
        area = area[cells[area] > 0]
        h3 = _h3()
        codes = hierarchy.codes(hierarchy.depth)
        corners: list[NDArray[np.float64] | None] = [None] * len(codes)
        for number in area.tolist():
            code = codes[number].as_py()
            if not h3.is_valid_cell(code):
                raise HierarchyError(f"{code!r} is not a cell of H3; correct the areas table")
            corners[number] = np.array(h3.cell_to_boundary(code))[:, ::-1]
        every = [ring for ring in corners if ring is not None]
        is_around = any(np.ptp(ring[:, 0]) > _HALF_TURN for ring in every)
        reach = np.concatenate(every)
        is_straight = resolution >= _STRAIGHT and np.abs(reach[:, 1]).max() <= _MAX_LAT
        inner, outer = (
            Polygons.of(pa.array([_scaled(ring, scale) for ring in corners], pa.binary()))
            if is_straight and not is_around
            else None
            for scale in (_INNER, _OUTER)
        )
        return cls(resolution, cells[area], area, inner, outer)

    def place(self, lon: NDArray[np.float64], lat: NDArray[np.float64]) -> NDArray[np.int32]:
        """The area of each point, -1 for points in none."""
        found = np.full(len(lon), -1, np.int32)
        # Written so that not-a-number is in no area.
        is_open = (np.abs(lon) <= 2 * _HALF_TURN) & (np.abs(lat) <= _HALF_TURN / 2)
        if self.inner is not None and self.outer is not None:
            found = self.inner.place(lon, lat)
            is_open &= found < 0
            is_open[is_open] = self.outer.place(lon[is_open], lat[is_open]) >= 0
        rest = np.flatnonzero(is_open)
        if len(rest):
            cells = self._cells(lat[rest], lon[rest])
            at = np.minimum(np.searchsorted(self.cells, cells), len(self.cells) - 1)
            found[rest] = np.where(self.cells[at] == cells, self.area[at], -1)
        return found

    def _cells(self, lat: NDArray[np.float64], lon: NDArray[np.float64]) -> NDArray[np.uint64]:
        cell_at = library("h3.api.basic_int", needed_for="H3 cells").latlng_to_cell
        points = zip(lat.tolist(), lon.tolist(), strict=True)
        return np.array([cell_at(y, x, self.resolution) for y, x in points], np.uint64)


def _scaled(ring: NDArray[np.float64] | None, scale: float) -> bytes | None:
    """A cell that is larger or smaller, as WKB."""
    if ring is None:
        return None
    middle = ring.mean(axis=0)
    return bytes(
        shapely().to_wkb(shapely().Polygon(middle + scale * (ring - middle)), byte_order=1)
    )


def _listed(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers)) or "none"


def cells_of(hierarchy: Hierarchy) -> NDArray[np.uint64] | None:
    """The finest areas as cells, 0 for the area `outside`; None if one of them is not a cell."""
    codes = hierarchy.codes(hierarchy.depth).to_pylist()
    try:
        numbers = [0 if code == OUTSIDE else int(code, 16) for code in codes]
        cells = np.array(numbers, np.uint64)
    except (ValueError, OverflowError):
        return None
    is_written_so = all(
        code in {OUTSIDE, f"{number:x}"} for code, number in zip(codes, numbers, strict=True)
    )
    return cells if is_written_so else None


def resolution_of(hierarchy: Hierarchy) -> int | None:
    """The resolution of finest areas that are H3 cells, all of one; None if they are not."""
    cells = cells_of(hierarchy)
    if cells is None:
        return None
    cells = cells[cells > 0]
    if not len(cells):
        return None
    kinds = np.unique(cells >> np.uint64(_KIND_AT))
    reserved = np.unique((cells >> np.uint64(_RESERVED_AT)) & np.uint64(7))
    resolutions = np.unique((cells >> np.uint64(_RESOLUTION_AT)) & np.uint64(15))
    if kinds.tolist() != [_CELL] or reserved.tolist() != [0] or len(resolutions) != 1:
        return None
    resolution = int(resolutions[0])
    unused = np.uint64((1 << (3 * (_N_DIGITS - resolution))) - 1)
    return resolution if ((cells & unused) == unused).all() else None
