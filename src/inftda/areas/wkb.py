"""Outlines as they are kept: polygons in well-known binary, little-endian, in two dimensions.

They are read without any library, so that a release can be checked wherever it is read.
"""

import struct
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inftda.errors import HierarchyError
from inftda.tree.places import MAX_LAT, MAX_LON

_POLYGON, _MULTIPOLYGON = 3, 6
_HEAD: Final = struct.Struct("<BII")
_SIZE: Final = struct.Struct("<I")
_CORNER: Final = 16
#: Corners of the smallest ring: a triangle, and its first corner again.
_FEWEST: Final = 4


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
