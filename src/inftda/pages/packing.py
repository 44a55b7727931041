"""Numbers packed for a page: small, and quick to unpack by a browser.

Numbers are stored as planes of bytes: first the low byte of every number, then the next one. The
whole is compressed and written in the 64 letters that HTML leaves alone. 400,000 flows are about
a megabyte. The browser's own decompressor reads it; see assets/tools.mjs.
"""

import base64
import gzip
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inftda.pages.shapes import Shapes


class Pack:
    """A header and named arrays of whole numbers on their way into a page."""

    def __init__(self, header: dict[str, Any]) -> None:
        self.header = header
        self._spans: dict[str, tuple[int, int, int, int]] = {}
        self._planes: list[bytes] = []
        self._size = 0

    def add(self, name: str, numbers: NDArray[np.int64]) -> None:
        """Add an array; its numbers must lie within 2^53 of each other, as browsers count."""
        least = int(numbers.min(initial=0))
        above = np.ascontiguousarray(numbers - least, "<u8")
        width = (int(above.max(initial=1)).bit_length() + 7) // 8
        planes = above.view(np.uint8).reshape(-1, 8)[:, :width].T.tobytes()
        self._spans[name] = self._size, len(numbers), width, least
        self._planes.append(planes)
        self._size += len(planes)

    def add_cells(self, name: str, number: NDArray[np.int64], **columns: NDArray[Any]) -> None:
        """Add cells by their numbers, all different and in any order, with columns of theirs."""
        order = np.argsort(number, kind="stable")
        self.add(f"{name}.cells", np.diff(number[order], prepend=0))
        for column, values in columns.items():
            self.add(f"{name}.{column}", values[order])

    def add_shapes(self, shapes: Shapes, axis: int) -> None:
        """Add outlines of areas of an axis, by its number in the page."""
        self.header["shapes"] = {
            "axis": axis,
            "level": shapes.level,
            "areas": shapes.areas,
            "scale": shapes.scale,
        }
        self.add("shapes", shapes.numbers())

    def text(self) -> str:
        """Header and arrays, encoded for the page."""
        header = json.dumps(
            {**self.header, "arrays": self._spans}, ensure_ascii=False, separators=(",", ":")
        ).encode()
        plain = b"".join([len(header).to_bytes(4, "little"), header, *self._planes])
        # No time stamp: the same release gives the same page.
        return base64.b64encode(gzip.compress(plain, compresslevel=6, mtime=0)).decode()
