"""Outlines of areas, from the release or from a GeoJSON file, coarse enough for a page.

Coordinates are rounded to a grid that no screen shows finer, and points that fall together
are dropped; a file of tens of megabytes becomes a few hundred kilobytes. Which property
holds the codes is found by trying: the one that names most areas of some level.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inftda.areas.wkb import rings as rings_of
from inftda.errors import InftdaError
from inftda.reports.labels import Labels
from inftda.tree import Tree

#: Steps of the grid along the longer side of the map, at first and at least.
FINEST_GRID, COARSEST_GRID = 8192, 512
#: More points than this make a page heavy and slow; the grid is made coarser until they fit.
MAX_POINTS = 150_000

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


def read_shapes(tree: Tree, path: Path, labels: Labels) -> Shapes:
    """Read a GeoJSON file; areas without a location get the centre of their outline.

    Raises:
        InftdaError: it is not GeoJSON in degrees, or none of its areas is in the release.
    """
    features = _features(path)
    axis, level, area = _match(tree, path, features)
    rings: list[tuple[int, Ring]] = []
    for number, feature in zip(area, features, strict=True):
        rings += [(number, ring) for ring in _rings(feature.get("geometry")) if number >= 0]
    if not rings:
        raise InftdaError(
            f"the areas of {path.name!r} (the GeoJSON file) have no polygons; give outlines, or "
            "points with --centroids"
        )
    _check_degrees(path, rings)
    _locate(tree, labels, axis, level, rings)
    return _on_grid(axis, level, rings)


def known_shapes(tree: Tree, labels: Labels) -> Shapes | None:
    """Outlines that the release itself has, of the first axis that has any.

    Areas without a location get the centre of their outline.
    """
    for number, axis in enumerate(tree.axes):
        outlines = axis.hierarchy.places.outlines
        if outlines is None:
            continue
        found = [
            (area, ring)
            for area, outline in enumerate(outlines.to_pylist())
            if outline is not None
            for ring in rings_of(outline)
        ]
        if found:
            _locate(tree, labels, number, axis.hierarchy.depth, found)
            return _on_grid(number, axis.hierarchy.depth, found)
    return None


def _features(path: Path) -> list[Mapping[str, Any]]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        features = content["features"] if content["type"] == "FeatureCollection" else [content]
        return [feature for feature in features if isinstance(feature, dict)]
    except OSError as problem:
        raise InftdaError(f"cannot read {str(path)!r}: {problem.strerror}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InftdaError(
            f"{path.name!r} is not GeoJSON; give a FeatureCollection of polygons in degrees"
        ) from None


def _match(tree: Tree, path: Path, features: list[Mapping[str, Any]]) -> tuple[int, int, list[int]]:
    """Axis, level, and the area of each feature, by the property that names most areas."""
    columns: dict[str, list[str]] = defaultdict(lambda: [""] * len(features))
    for row, feature in enumerate(features):
        properties = feature.get("properties")
        for key, value in (properties if isinstance(properties, dict) else {}).items():
            columns[str(key)][row] = str(value)
        if feature.get("id") is not None:
            columns["id"][row] = str(feature["id"])
    best: tuple[int, int, int, list[int]] = (0, 0, 0, [])
    for number, axis in enumerate(tree.axes):
        for level in range(axis.hierarchy.depth, 0, -1):
            codes = {code: i for i, code in enumerate(axis.hierarchy.codes(level).to_pylist())}
            for column in columns.values():
                area = [codes.get(code, -1) for code in column]
                hits = len(set(area) - {-1})
                if hits > best[0]:
                    best = (hits, number, level, area)
    if not best[0]:
        raise InftdaError(
            f"no property of {path.name!r} (the GeoJSON file) holds codes of this release's "
            "areas; add one that does"
        )
    return best[1], best[2], best[3]


def _rings(geometry: Any) -> Iterator[Ring]:
    """Outer and inner rings of a polygon or of several."""
    if not isinstance(geometry, dict):
        return
    kind, coordinates = geometry.get("type"), geometry.get("coordinates") or []
    if kind == "GeometryCollection":
        for part in geometry.get("geometries") or []:
            yield from _rings(part)
    polygons = {"Polygon": [coordinates], "MultiPolygon": coordinates}.get(str(kind), [])
    for polygon in polygons:
        for ring in polygon:
            try:
                points = np.array([point[:2] for point in ring], np.float64)
            except (TypeError, ValueError):
                continue
            if points.ndim == 2 and len(points) >= 4 and np.isfinite(points).all():
                yield points


def _check_degrees(path: Path, rings: list[tuple[int, Ring]]) -> None:
    largest = np.max([np.abs(ring).max(axis=0) for _, ring in rings], axis=0)
    if largest[0] > 180 or largest[1] > 90:
        raise InftdaError(
            f"{path.name!r} (the GeoJSON file) must be in degrees of longitude and latitude "
            f"(WGS 84), got a coordinate of {largest.max():g}; reproject it"
        )


def _locate(
    tree: Tree, labels: Labels, axis: int, level: int, rings: list[tuple[int, Ring]]
) -> None:
    """The centre of an area is that of its largest ring."""
    middles: dict[int, tuple[float, float, float]] = {}
    for area, ring in rings:
        size, lon, lat = _middle(ring)
        if size >= middles.get(area, (0.0, 0.0, 0.0))[0]:
            middles[area] = (size, lon, lat)
    numbers = np.array(list(middles), np.int64)
    at = np.array(list(middles.values()), np.float32)
    for number, entry in enumerate(tree.axes):
        if entry.hierarchy == tree.axes[axis].hierarchy:
            labels.place_areas(entry.hierarchy, number, level, numbers, (at[:, 1], at[:, 2]))


def _middle(ring: Ring) -> tuple[float, float, float]:
    """Size and centre of mass of a ring (shoelace formula)."""
    # Seen from the first point, so that small areas far from zero keep their digits.
    x, y = (ring - ring[0]).T
    cross = x[:-1] * y[1:] - x[1:] * y[:-1]
    doubled = cross.sum()
    if abs(doubled) < 1e-15:
        return 0.0, *ring.mean(axis=0)
    lon = ((x[:-1] + x[1:]) * cross).sum() / (3 * doubled) + ring[0, 0]
    lat = ((y[:-1] + y[1:]) * cross).sum() / (3 * doubled) + ring[0, 1]
    return abs(float(doubled)), float(lon), float(lat)


def _on_grid(axis: int, level: int, rings: list[tuple[int, Ring]]) -> Shapes:
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
    """Rings on the grid without repeated points; what shrinks to a line is dropped."""
    areas, rounded = [], []
    for area, ring in rings:
        points = np.rint(ring * scale).astype(np.int64)
        is_new = (points != np.roll(points, 1, axis=0)).any(axis=1)
        if is_new.sum() >= 3:
            areas.append(area)
            rounded.append(points[is_new])
    return areas, rounded
