"""Which files a data set was read from, so that they are not taken for public ones.

A ledger must hold nothing that is computed from the trips, so files are known by where they lie
(path, and number on their disk), never by what is in them. A copy, an export to another format,
a table in memory or a query to a database is not recognised.
"""

import glob
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple


class FileMark(NamedTuple):
    """A file or folder, by where it lies.

    Attributes:
        path: absolute, links followed.
        disk: number of the disk; empty if the file is not there.
        number: of the file on it.
    """

    path: bytes
    disk: str
    number: str

    def holds(self, other: "FileMark") -> bool:
        """Whether the other is this file, or lies in this folder."""
        if self.disk and (self.disk, self.number) == (other.disk, other.number):
            return True
        return other.path == self.path or other.path.startswith(self.path.rstrip(b"/") + b"/")


def file_marks(table: Any) -> tuple[FileMark, ...]:
    """The files that a table is read from; none for tables in memory and queries."""
    named = getattr(table, "path", table)
    if not isinstance(named, str | os.PathLike):
        return ()
    text = os.fspath(named)
    return tuple(_mark(path) for path in _paths(text)) if isinstance(text, str) else ()


def _paths(text: str) -> Iterator[Path]:
    """A path, or all that a pattern stands for."""
    found = [] if os.path.lexists(text) else glob.glob(text, recursive=True)  # noqa: PTH207 - absolute
    yield from map(Path, found or [text])


def _mark(path: Path) -> FileMark:
    with suppress(OSError, ValueError):
        found = path.stat()
        return FileMark(_absolute(path), str(found.st_dev), str(found.st_ino))
    return FileMark(_absolute(path), "", "")


def _absolute(path: Path) -> bytes:
    with suppress(OSError, ValueError, RuntimeError):
        return os.fsencode(path.resolve())
    return os.fsencode(path)
