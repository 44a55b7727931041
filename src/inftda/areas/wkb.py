"""Shapes in well-known binary, little-endian, two dimensions: outlines as they are kept, and lines.

Read and written here without any library, so that a release can be checked wherever it is read.
"""

import struct
from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inftda.errors import HierarchyError
from inftda.places import MAX_LAT, MAX_LON

_POINT, _LINE, _POLYGON, _MULTIPOLYGON = 1, 2, 3, 6
_HEAD: Final = struct.Struct("<BII")
_SIZE: Final = struct.Struct("<I")
_CORNER: Final = 16
#: Corners of the smallest ring: a triangle, and its first corner again.
_FEWEST: Final = 4

#: Longitudes and latitudes.
Ends = tuple[NDArray[np.float64], NDArray[np.float64]]


def rings(outline: bytes) -> list[NDArray[np.float64]]:
    """The rings of a polygon or of several, float64[corners, 2] each, closed.

    Raises:
        ValueError: it is anything else.
    """
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
    """Refuse what is not a polygon in degrees.

    Args:
        outlines: null where there is none.

    Raises:
        HierarchyError: one of them is not.
    """
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


def points_or_lines(ends: tuple[Ends, ...], *, head: bytes = b"") -> Iterator[bytes]:
    """Points, or lines from one to the next.

    Args:
        ends: longitudes and latitudes: one pair for points, two for lines.
        head: what stands before each shape.
    """
    is_line = len(ends) > 1
    counted = [("count", "<u4")] if is_line else []
    record = np.dtype(
        [
            ("head", f"V{len(head)}"),
            ("order", "u1"),
            ("kind", "<u4"),
            *counted,
            ("place", "<f8", (len(ends), 2)),
        ]
    )
    rows = np.zeros(len(ends[0][0]), record)
    rows["head"] = np.void(head)
    rows["order"], rows["kind"] = 1, _LINE if is_line else _POINT
    if is_line:
        rows["count"] = len(ends)
    for number, (lon, lat) in enumerate(ends):
        rows["place"][:, number, 0], rows["place"][:, number, 1] = lon, lat
    data, size = rows.tobytes(), record.itemsize
    return (data[start : start + size] for start in range(0, len(data), size))


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
