"""The table of an estimate, read without trusting its file."""

from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from inftda.errors import ReleaseError
from inftda.files import ESTIMATE_FILE
from inftda.publication.tables import CODE, is_ascending, numbers_of, row_groups
from inftda.tables import as_numpy
from inftda.tree import Tree

#: Columns besides those of the axes.
ESTIMATE, LOW, HIGH = VALUES = ("estimate", "low", "high")
AGAIN: Final = "it was edited or damaged: make it again with `inftda estimate`"


def check_table(path: Path, tree: Tree, *, n_rows: int, total: int) -> None:
    """Refuse a file that does not hold what an estimate does.

    Args:
        path: the file.
        tree: of the estimate.
        n_rows: how many rows it must have.
        total: sum of its estimates.

    Raises:
        ReleaseError: it cannot be read, an area is unknown or a cell out of order, or numbers are
            not those of an estimate.
    """
    codes = [axis.hierarchy.codes(axis.hierarchy.depth) for axis in tree.axes]
    fields = [pa.field(axis.name, CODE) for axis in tree.axes]
    schema = pa.schema([*fields, *(pa.field(name, pa.int64()) for name in VALUES)])
    before = tuple(np.full(1, -1, np.int32) for _ in tree.axes)
    n_found = found = 0
    for rows in row_groups(path, schema, codes, most_rows=n_rows, again=AGAIN):
        n_found += len(rows)
        areas = tuple(map(numbers_of, rows.columns, codes))
        if any((numbers < 0).any() for numbers in areas):
            raise _fail("names areas that it does not list")
        cells = tuple(map(np.append, before, areas))
        if not is_ascending(cells):
            raise _fail("does not have each cell once and in order")
        value, low, high = (as_numpy(rows.column(name).combine_chunks()) for name in VALUES)
        if not ((value > 0) & (low >= 0) & (low <= value) & (value <= high)).all():
            raise _fail("has numbers that cannot be estimates with their intervals")
        # As decimal numbers: numbers made for it would sum to anything in 64 bits.
        found += int(pc.sum(rows.column(ESTIMATE).cast(pa.decimal128(38))).as_py() or 0)
        before = tuple(numbers[-1:] for numbers in cells)
    if (n_found, found) != (n_rows, total):
        raise _fail("does not have the rows, or the sum, that its manifest states")


def _fail(what: str) -> ReleaseError:
    return ReleaseError(f"{ESTIMATE_FILE} {what}; {AGAIN}")
