"""Files that are read as one table must agree in the columns that are in use.

If one file holds numbers and another text, what a cell means would depend on the file that
happens to come first. So files are asked for their types before a value is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inftda.errors import IngestError
from inftda.reading.columns import Column
from inftda.reading.sources import Use

if TYPE_CHECKING:
    from collections.abc import Sequence


def locate(uses: Sequence[Use], names: Sequence[str], file: str, other: str) -> list[Use]:
    """The columns in use by their positions in another file.

    Args:
        uses: the columns by their positions in the first file.
        names: columns of the other file as they are written.
        file: the other file, for messages.
        other: the first file, likewise.

    Raises:
        IngestError: the file lacks one of them, or has two of that name.
    """
    return [
        Use(_position(use.name, names, file, other), use.name, use.alias, use.purpose)
        for use in uses
    ]


def _position(name: str, names: Sequence[str], file: str, other: str) -> int:
    found = [i for i, written in enumerate(names) if written == name]
    if len(found) != 1:
        raise IngestError(
            f"{file!r} and {other!r} differ in their columns: one of them has no column {name!r}, "
            "or two of them; write them again"
        )
    return found[0]


def check_types(uses: Sequence[Use], layouts: Sequence[tuple[str, Sequence[str]]]) -> None:
    """Refuse files that differ in the kinds of the columns in use.

    Whole numbers may differ in their widths; the widest is taken.

    Args:
        uses: the columns.
        layouts: for each group of files with the same columns, one file, and the DuckDB types
            of the columns in use.

    Raises:
        IngestError: they differ.
    """
    first, before = layouts[0]
    for file, types in layouts[1:]:
        for use, kind, other in zip(uses, types, before, strict=True):
            if Column(use.name, use.alias, kind).kind != Column(use.name, use.alias, other).kind:
                raise IngestError(
                    f"{file!r} holds {kind} values in column {use.name!r} and {first!r} holds "
                    f"{other}; files that are read as one table need the same types: write them "
                    "again, codes as text"
                )
