"""Numbers packed for a page: small, and quick to unpack by a browser.

Area numbers are stored as gaps, all numbers as 7 bits per byte (most gaps and flows take one),
the whole is compressed and written in the 64 letters that HTML leaves alone. 400,000 flows are
about a megabyte. The browser's own decompressor reads it; see assets/1-tools.js.
"""

import base64
import gzip
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def varints(numbers: NDArray[np.int64]) -> bytes:
    """Non-negative numbers, 7 bits per byte, low end first; a set top bit says that more follow.

    >>> varints(np.array([1, 127, 128])).hex(" ")
    '01 7f 80 01'
    """
    left = np.asarray(numbers, np.int64).astype(np.uint64)
    n_bytes = np.ones(len(left), np.int64)
    rest = left >> np.uint64(7)
    while rest.any():
        n_bytes += rest > 0
        rest >>= np.uint64(7)
    first = np.cumsum(n_bytes) - n_bytes
    out = np.zeros(int(n_bytes.sum()), np.uint8)
    for byte in range(int(n_bytes.max(initial=0))):
        here = n_bytes > byte
        low = (left[here] >> np.uint64(7 * byte)) & np.uint64(127)
        more = np.where(n_bytes[here] > byte + 1, 128, 0).astype(np.uint64)
        out[first[here] + byte] = (low | more).astype(np.uint8)
    return out.tobytes()


def zigzag(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Signed numbers as non-negative ones: 0, -1, 1, -2 become 0, 1, 2, 3."""
    return (numbers << 1) ^ (numbers >> 63)


class Pack:
    """A header and named sections of bytes on their way into a page."""

    def __init__(self, header: dict[str, Any]) -> None:
        self.header = header
        self._sections: dict[str, bytes] = {}

    def add(self, name: str, content: bytes) -> None:
        """Add a section."""
        self._sections[name] = content

    def add_flows(
        self,
        n_rows: int,
        areas: Sequence[NDArray[np.int64]],
        value: NDArray[np.int64],
        truth: NDArray[np.int64] | None = None,
        *,
        name: str = "flows",
    ) -> None:
        """Add a table of flows; cells must be different, in any order.

        Args:
            n_rows: number of areas on the first axis.
            areas: area numbers on each axis: rows, columns, and further ones to filter by.
            value: the flow.
            truth: the true flow, on confidential pages only.
            name: what the page calls this table.
        """
        order = np.lexsort(tuple(reversed(areas)))
        row, column, *further = (area[order] for area in areas)
        value = value[order]
        gap = column.astype(np.int64).copy()
        follows = np.flatnonzero(row[1:] == row[:-1]) + 1
        gap[follows] = column[follows] - column[follows - 1]
        is_signed = bool(len(value)) and bool(value.min() < 0)
        self.header[name] = {"n": len(value), "signed": is_signed}
        sections = {
            "rows": np.bincount(row, minlength=n_rows),
            "gaps": gap,
            "values": zigzag(value) if is_signed else value,
            **{f"further{number}": area for number, area in enumerate(further)},
        }
        if truth is not None:
            sections["truth"] = truth[order]
        for section, numbers in sections.items():
            self.add(f"{name}-{section}", varints(numbers))

    def add_intervals(
        self,
        name: str,
        number: NDArray[np.int64],
        low: NDArray[np.int64],
        high: NDArray[np.int64],
    ) -> None:
        """Add what the true numbers of some cells lie between.

        Args:
            name: of the section.
            number: of each cell, ascending.
            low: lower ends, none negative.
            high: upper ends, none below the lower ones.
        """
        parts = (np.diff(number, prepend=0), low, high - low)
        self.add(name, b"".join(map(varints, parts)))

    def text(self) -> str:
        """Everything, encoded for the page."""
        spans, first = {}, 0
        for name, content in self._sections.items():
            spans[name] = [first, len(content)]
            first += len(content)
        header = json.dumps(
            {**self.header, "sections": spans}, ensure_ascii=False, separators=(",", ":")
        ).encode()
        plain = b"".join([len(header).to_bytes(4, "little"), header, *self._sections.values()])
        # No time stamp: the same release gives the same page.
        return base64.b64encode(gzip.compress(plain, compresslevel=9, mtime=0)).decode()
