"""Outlines of areas, from the release or from a file, coarse enough for a page.

Coordinates are rounded to a grid that no screen shows finer, and points that fall together
are dropped; a file of tens of megabytes becomes a few hundred kilobytes. Which attribute
holds the codes is found by trying: the one that names most areas of some level.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inftda.areas.features import read_features
from inftda.areas.locations import Gazetteer, from_seam
from inftda.areas.polygons import as_outlines, inner_points, shapely
from inftda.areas.polygons import rings as rings_of
from inftda.errors import InftdaError
from inftda.tree import Axis
from inftda.tree.hierarchy import Hierarchy
from inftda.util.tabular import find_texts

#: Steps of the grid along the longer side of the map, at first and at least.
FINEST_GRID, COARSEST_GRID = 8192, 512
#: More points than this make a page heavy and slow; the grid is made coarser until they fit.
MAX_POINTS = 150_000
_POLYGONS = (3, 6)

Ring = NDArray[np.float64]


@dataclass(frozen=True)
class Shapes:
    """Rings of areas of one level.

    Attributes:
        axis: the axis whose areas these are.
        level: their level.
        areas: area number of each ring.
        rings: int64[points, 2] on the grid, first point not repeated.
        scale: steps of the grid in a degree.
    """

    axis: int
    level: int
    areas: list[int]
    rings: list[NDArray[np.int64]]
    scale: float

    def numbers(self) -> NDArray[np.int64]:
        """Each ring as its number of points and their steps from one to the next."""
        parts = [np.empty(0, np.int64)]
        for ring in self.rings:
            steps = np.diff(ring, axis=0, prepend=np.zeros((1, 2), np.int64))
            parts += [np.array([len(ring)], np.int64), steps.ravel()]
        return np.concatenate(parts)


def read_places(
    axes: Iterable[Axis], files: Sequence[Path | None] = (None, None, None)
) -> tuple[Gazetteer, Shapes | None]:
    """Names, locations and outlines of areas; those of the areas themselves fill the gaps.

    `files` are those of names, locations and outlines, where there are any.

    Raises:
        InftdaError: a file cannot be read or does not fit the areas.
    """
    names, centroids, geojson = files
    places = Gazetteer.of((axis.hierarchy for axis in axes), names=names, centroids=centroids)
    return places, known_shapes(places) if geojson is None else read_shapes(places, geojson)


def read_shapes(places: Gazetteer, path: Path) -> Shapes:
    """Read a file of polygons; areas of `places` without a location get one inside of them."""
    label, table, geometries = read_features(path)
    axis, level, area = _match(places.hierarchies, label, table)
    is_used = (area >= 0) & np.isin(shapely().get_type_id(geometries), _POLYGONS)
    if not is_used.any():
        raise InftdaError(
            f"the areas of {label} have no polygons; give outlines, or points with `centroids=`"
        )
    area, geometries = area[is_used], shapely().force_2d(geometries[is_used])
    for number, hierarchy in enumerate(places.hierarchies):
        if hierarchy == places.hierarchies[axis]:
            places.locate(number, level, area, inner_points(geometries))
    return _on_grid(axis, level, zip(area.tolist(), as_outlines(geometries), strict=True), places)


def known_shapes(places: Gazetteer) -> Shapes | None:
    """Outlines that came with the areas, of the first axis that has any."""
    for axis, hierarchy in enumerate(places.hierarchies):
        outlines = hierarchy.places.outlines
        if outlines is not None and outlines.null_count < len(outlines):
            return _on_grid(axis, hierarchy.depth, enumerate(outlines), places)
    return None


def _match(
    hierarchies: tuple[Hierarchy, ...], label: str, table: pa.Table
) -> tuple[int, int, NDArray[np.int32]]:
    """Axis, level, and the area of each feature, by the attribute that names most areas."""
    columns = [
        pa.array([None if cell is None else str(cell) for cell in column.to_pylist()], pa.string())
        for column in table.columns
    ]
    best, most = None, 0
    for axis, hierarchy in enumerate(hierarchies):
        for level in range(hierarchy.depth, 0, -1):
            for column in columns:
                area = find_texts(column, hierarchy.codes(level))
                n_named = len(np.unique(area[area >= 0]))
                if n_named > most:
                    best, most = (axis, level, area), n_named
    if best is None:
        raise InftdaError(
            f"no attribute of {label} holds codes of this release's areas; add one that does"
        )
    return best


def _on_grid(
    axis: int, level: int, outlines: Iterable[tuple[int, Any]], places: Gazetteer
) -> Shapes:
    """Outlines (area and WKB) on the finest grid with few enough points."""
    rings = [
        (area, _beyond_seam(ring, places.seam))
        for area, outline in outlines
        if outline.is_valid
        for ring in rings_of(outline.as_py())
    ]
    low = np.min([ring.min(axis=0) for _, ring in rings], axis=0)
    high = np.max([ring.max(axis=0) for _, ring in rings], axis=0)
    side, grid = max(float((high - low).max()), 1e-6), FINEST_GRID
    while True:
        scale = grid / side
        areas, rounded = _rounded(rings, scale)
        if grid <= COARSEST_GRID or sum(map(len, rounded)) <= MAX_POINTS:
            return Shapes(axis, level, areas, rounded, scale)
        grid //= 2


def _rounded(
    rings: list[tuple[int, Ring]], scale: float
) -> tuple[list[int], list[NDArray[np.int64]]]:
    """Rings on the grid without repeated points; rings that shrink to a line are dropped."""
    areas, rounded = [], []
    for area, ring in rings:
        points = np.rint(ring * scale).astype(np.int64)
        is_new = (points != np.roll(points, 1, axis=0)).any(axis=1)
        if is_new.sum() >= 3:
            areas.append(area)
            rounded.append(points[is_new])
    return areas, rounded


def _beyond_seam(ring: Ring, seam: float) -> Ring:
    """A ring where the map has it: whole, and shifted by 360 degrees if it lies before the seam."""
    middle = (ring[:, 0].min() + ring[:, 0].max()) / 2
    return np.asarray(ring + np.array([from_seam(middle, seam) - middle, 0.0]))
