"""The table of an estimate, read without trusting its file."""

from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from inftda.files import ESTIMATE_FILE
from inftda.publication.folder import ROW_GROUP
from inftda.publication.parquet_file import (
    Shape,
    encoded,
    numbers_of,
    opened,
    row_groups,
    text_size,
)
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
    shape, found = _shape(tree), 0
    before = tuple(np.full(1, -1, np.int32) for _ in tree.axes)
    with opened(path, shape) as file:
        if file.metadata.num_rows != n_rows:
            raise shape.fail("does not have the rows that its manifest states")
        for rows in row_groups(file, shape):
            areas = _areas(rows, tree)
            if any((numbers < 0).any() for numbers in areas):
                raise shape.fail("names areas that it does not list")
            cells = tuple(map(np.append, before, areas))
            if not _is_ascending(cells):
                raise shape.fail("does not have each cell once and in order")
            value, low, high = (as_numpy(rows.column(name).combine_chunks()) for name in VALUES)
            if not ((value > 0) & (low >= 0) & (low <= value) & (value <= high)).all():
                raise shape.fail("has numbers that cannot be estimates with their intervals")
            # As decimal numbers: numbers made for it would sum to anything in 64 bits.
            found += int(pc.sum(rows.column(ESTIMATE).cast(pa.decimal128(38))).as_py() or 0)
            before = tuple(numbers[-1:] for numbers in cells)
    if found != total:
        raise shape.fail("does not sum to what its manifest states")


def _shape(tree: Tree) -> Shape:
    codes = [axis.hierarchy.codes(axis.hierarchy.depth) for axis in tree.axes]
    fields = [pa.field(axis.name, pa.string()) for axis in tree.axes]
    fields += [pa.field(name, pa.int64()) for name in VALUES]
    of_all, longest = zip(*map(text_size, codes), *((0, 0) for _ in VALUES), strict=True)
    return Shape(ESTIMATE_FILE, tuple(fields), of_all, longest, ROW_GROUP, AGAIN)


def _areas(rows: pa.Table, tree: Tree) -> tuple[NDArray[np.int32], ...]:
    """Numbers of the areas on each axis, -1 where there is none."""
    return tuple(
        numbers_of(*encoded(rows.column(axis.name)), axis.hierarchy.codes(axis.hierarchy.depth))
        for axis in tree.axes
    )


def _is_ascending(cells: tuple[NDArray[np.int32], ...]) -> bool:
    """Whether each cell comes after the one before it, by its areas on one axis after the other."""
    n = len(cells[0]) - 1
    is_after, is_same = np.zeros(n, bool), np.ones(n, bool)
    for numbers in cells:
        is_after |= is_same & (numbers[1:] > numbers[:-1])
        is_same &= numbers[1:] == numbers[:-1]
    return bool(is_after.all())
