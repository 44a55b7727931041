"""Polygons of areas, checked: whole, in degrees, not on top of each other.

They are arrays of shapely's geometries, None where there is none. Libraries of the extra `geo` are
loaded when they are first needed.

Outlines are kept as polygons in well-known binary, little-endian, in two dimensions. These are read
without any library, so that a release can be checked wherever it is read.
"""

import re
import struct
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inftda.errors import HierarchyError, MissingExtraError
from inftda.tree.places import MAX_LAT, MAX_LON
from inftda.util.tabular import find_texts

Geometries = NDArray[Any]

_POLYGON, _MULTIPOLYGON = 3, 6
_HEAD: Final = struct.Struct("<BII")
_SIZE: Final = struct.Struct("<I")
_CORNER: Final = 16
#: Corners of the smallest ring: a triangle, and its first corner again.
_FEWEST: Final = 4
#: Part of an area that another may overlap: generalised borders differ by a few hundredths.
_OVERLAP: Final = 0.1
#: Coordinate systems that are degrees already.
_DEGREES: Final = frozenset({"EPSG:4326", "OGC:CRS84"})
_NUMBERED: Final = re.compile(r"(\w+):(\w+)")
#: Parts of a definition that make PROJ open other files.
_READS_FILES: Final = re.compile(r"grids=(?!@null)|file=|init=|PARAMETERFILE", re.IGNORECASE)


def library(name: str, *, needed_for: str) -> Any:
    """A library of the extra `geo`."""
    try:
        return import_module(name)
    except ImportError:
        raise MissingExtraError(
            f"{needed_for} need {name.partition('.')[0]}, which is not installed; "
            "pip install 'inftda-od[geo]'"
        ) from None


def shapely() -> Any:
    """The library that knows geometry."""
    return library("shapely", needed_for="polygons")


def from_wkt(texts: Sequence[str | None]) -> Geometries | None:
    """Polygons in degrees that are written as text; None if all are blank."""
    plain = [None if text is None or not text.strip() else text for text in texts]
    if not any(plain):
        return None
    found: Geometries = shapely().from_wkt(plain, on_invalid="ignore")
    for row, (text, geometry) in enumerate(zip(plain, found, strict=True), start=1):
        if text is not None and geometry is None:
            raise HierarchyError(
                f"row {row} of the areas table has no polygon in its column of outlines; write it "
                "as POLYGON((lon lat, ...)), or leave it blank"
            )
    return in_degrees(found, "EPSG:4326", "the areas table")


def in_degrees(geometries: Geometries, crs: str | None, label: str) -> Geometries:
    """Geometries in longitude and latitude, from a system such as "EPSG:3035" or its definition."""
    if crs is None:
        raise HierarchyError(
            f"{label} does not say in which coordinate system it is; save it with one, best in "
            "degrees (EPSG:4326)"
        )
    if crs.upper() not in _DEGREES:
        geometries = _converted(geometries, crs, label)
    bounds = shapely().bounds(geometries)
    known = bounds[~np.isnan(bounds).any(axis=1)]
    if len(known) and not (np.abs(known) <= (MAX_LON, MAX_LAT, MAX_LON, MAX_LAT)).all():
        raise HierarchyError(
            f"{label} is not in degrees, longitude first: its coordinates go beyond {MAX_LAT:g} "
            "degrees of latitude. Are longitude and latitude swapped, or is it in metres and does "
            "not say so?"
        )
    return geometries


def _converted(geometries: Geometries, crs: str, label: str) -> Geometries:
    pyproj = library("pyproj", needed_for="coordinate systems other than degrees")
    try:
        by_number = _NUMBERED.fullmatch(crs)
        if by_number is None and _READS_FILES.search(crs):
            raise pyproj.exceptions.CRSError("it names other files")
        # Not from_user_input, which also takes definitions that open files.
        system = (
            pyproj.CRS.from_authority(*by_number.groups())
            if by_number
            else pyproj.CRS.from_wkt(crs)
        )
        transformer = pyproj.Transformer.from_crs(system, "EPSG:4326", always_xy=True)
    except pyproj.exceptions.ProjError:
        raise HierarchyError(
            f"{label} is in a coordinate system that is not known ({crs[:60]!r}); save it in "
            "degrees (EPSG:4326)"
        ) from None
    return shapely().transform(  # type: ignore[no-any-return] # untyped library
        geometries, transformer.transform, interleaved=False
    )


def _checked(geometries: Geometries, names: Sequence[str], label: str) -> Geometries:
    """Polygons of two dimensions that are whole; None where there is none."""
    library_ = shapely()
    found = library_.force_2d(geometries)
    found[library_.is_missing(found) | library_.is_empty(found)] = None
    kinds = library_.get_type_id(found)
    for number in np.flatnonzero(~np.isin(kinds, (-1, _POLYGON, _MULTIPOLYGON)))[:1]:
        raise HierarchyError(
            f"{label} has a {found[number].geom_type} for {names[number]!r}; areas are polygons"
        )
    # A missing one is not valid, either.
    for number in np.flatnonzero((kinds >= 0) & ~library_.is_valid(found))[:1]:
        reason = library_.is_valid_reason(found[number])
        raise HierarchyError(
            f"the polygon of {names[number]!r} in {label} is broken ({reason}); repair it (in "
            "QGIS: Fix geometries)"
        )
    return found  # type: ignore[no-any-return] # untyped library


def whole_areas(
    geometries: Geometries, area: pa.StringArray, codes: pa.StringArray, label: str
) -> Geometries:
    """One polygon, perhaps of several parts, for each of the codes; None where there is none.

    `area` is the code that each geometry is of.
    """
    parts = _checked(geometries, area.to_pylist(), label)
    whole = np.full(len(codes), None, object)
    members: dict[int, list[Any]] = {}
    for number, part in zip(find_texts(area, codes).tolist(), parts, strict=True):
        if part is not None:
            members.setdefault(number, []).append(part)
    for number, found in members.items():
        whole[number] = found[0] if len(found) == 1 else shapely().union_all(found)
    if not members:
        raise HierarchyError(f"{label} has no polygon in it; areas are polygons")
    _check_apart(whole, codes.to_pylist(), label)
    return whole


def _check_apart(geometries: Geometries, names: Sequence[str], label: str) -> None:
    """Refuse polygons that overlap by more than borders that were drawn twice."""
    library_ = shapely()
    is_known = ~library_.is_missing(geometries)
    known = geometries[is_known]
    if len(known) < 2 or library_.coverage_is_valid(known):
        return
    first, second = library_.STRtree(known).query(known, predicate="intersects")
    is_pair = first < second
    first, second = first[is_pair], second[is_pair]
    common = library_.area(library_.intersection(known[first], known[second]))
    smaller = np.minimum(library_.area(known[first]), library_.area(known[second]))
    for pair in np.flatnonzero(common > _OVERLAP * smaller)[:1]:
        own = np.flatnonzero(is_known)
        one, other = names[own[first[pair]]], names[own[second[pair]]]
        raise HierarchyError(
            f"the polygons of {one!r} and {other!r} in {label} overlap; a point must lie in one "
            "area, so cut one of them back"
        )


def as_outlines(geometries: Geometries) -> pa.BinaryArray:
    """Convert to the WKB that `rings` reads."""
    return pa.array(shapely().to_wkb(geometries, byte_order=1), pa.binary())


def inner_points(geometries: Geometries) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Longitude and latitude of a point inside of each, NaN where there is none."""
    points = shapely().point_on_surface(geometries)
    return shapely().get_x(points), shapely().get_y(points)


# --- outlines


def rings(outline: bytes) -> list[NDArray[np.float64]]:
    """The rings of a polygon or of several, float64[corners, 2] each, closed."""
    kind, n_parts, at = _head(outline, 0)
    if kind == _POLYGON:
        found, at = _polygon(outline, 0)
    elif kind == _MULTIPOLYGON:
        found = []
        for _ in range(n_parts):
            part, at = _polygon(outline, at)
            found += part
    else:
        raise ValueError("no polygon")
    if at != len(outline) or not found:
        raise ValueError("no polygon, or more than one")
    return found


def check_outlines(outlines: pa.BinaryArray) -> None:
    """Refuse geometries that are no polygons in degrees, except null."""
    for outline in outlines.to_pylist():
        if outline is None:
            continue
        try:
            corners = np.concatenate(rings(outline))
        except (ValueError, struct.error):
            raise HierarchyError("an outline is not a polygon") from None
        # Written so that not-a-number is refused, too.
        if not (np.abs(corners) <= (MAX_LON, MAX_LAT)).all():
            raise HierarchyError("an outline is not in degrees")


def _head(data: bytes, at: int) -> tuple[int, int, int]:
    """Kind, number of parts, and where they begin."""
    order, kind, n_parts = _HEAD.unpack_from(data, at)
    if order != 1:
        raise ValueError("not little-endian")
    return kind, n_parts, at + _HEAD.size


def _polygon(data: bytes, at: int) -> tuple[list[NDArray[np.float64]], int]:
    """The rings of one polygon, and where it ends."""
    kind, n_rings, at = _head(data, at)
    if kind != _POLYGON:
        raise ValueError("no polygon")
    found = []
    for _ in range(n_rings):
        (n_points,) = _SIZE.unpack_from(data, at)
        at += _SIZE.size
        if n_points < _FEWEST or at + n_points * _CORNER > len(data):
            raise ValueError("no ring")
        ring = np.frombuffer(data, "<f8", 2 * n_points, at).reshape(-1, 2)
        if (ring[0] != ring[-1]).any():
            raise ValueError("not closed")
        found.append(ring)
        at += n_points * _CORNER
    return found, at
