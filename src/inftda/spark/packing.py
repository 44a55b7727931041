"""Rows packed into a few large cells, which Spark moves, keeps and encrypts as they are.

Spark takes rows apart and puts them together one by one, several times per step; that took most
of the time of a release. What is done to rows is done by compiled kernels on arrays, so
between two tasks they travel as Arrow streams in cells of bytes.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql.types import BinaryType, IntegerType, StructType

Batches = Iterable[pa.RecordBatch]
Made = Iterator[pa.RecordBatch]

#: Columns: the cell, and the task that its rows go to.
PACKED, TASK = "packed", "task"
#: Rows of a cell, about: some 20 MB, as Spark holds several cells of a task at once.
CELL_ROWS: Final = 1 << 20
#: Compressed, as Java is slow at encrypting; a task has its own cores, and no others.
_WRITTEN: Final = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_READ: Final = pa.ipc.IpcReadOptions(use_threads=False)
#: In force while rows are cells, whatever the session says.
FOR_CELLS: Final = {
    # A few cells at a time, not thousands.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "8",
    # Spark must not choose partitions by the size of the truth.
    "spark.sql.adaptive.enabled": "false",
    # Nothing is gained by compiling code for a hundred rows.
    "spark.sql.codegen.wholeStage": "false",
}

#: What `pack` gives.
CELLS: Final = StructType().add(PACKED, BinaryType())


def addressed_cells(name: str) -> StructType:
    """What `pack_by` gives."""
    return StructType().add(name, IntegerType()).add(PACKED, BinaryType())


def pack(batches: Batches) -> Made:
    """Rows in cells."""
    for table in gather(batches):
        yield pa.record_batch({PACKED: [pack_table(table)]})


def pack_by(name: str, batches: Batches) -> Made:
    """Rows in cells, each with the rows that have one value in an int32 column, and the value."""
    for table in gather(batches):
        key = table[name].to_numpy()
        order = np.argsort(key, kind="stable")
        ordered, key = table.take(pa.array(order)), key[order]
        starts = np.flatnonzero(np.diff(key, prepend=-1))
        cells = [
            pack_table(ordered.slice(low, high - low))
            for low, high in pairwise([*starts.tolist(), len(key)])
        ]
        yield pa.record_batch({name: pa.array(key[starts], pa.int32()), PACKED: cells})


def pack_table(table: pa.Table) -> bytes:
    """The rows of a table as a cell."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_WRITTEN) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def cell_table(table: pa.Table) -> pa.Table:
    """The rows of a table on the driver in cells, at least one."""
    starts = range(0, max(table.num_rows, 1), CELL_ROWS)
    return pa.table({PACKED: [pack_table(table.slice(start, CELL_ROWS)) for start in starts]})


def unpack(batches: Batches) -> Made:
    """The rows of cells."""
    for batch in batches:
        for cell in batch.column(PACKED):
            yield from unpack_cell(cell.as_buffer())


def unpack_cell(cell: "bytes | pa.Buffer") -> Made:
    """The rows of one cell."""
    with pa.ipc.open_stream(cell, options=_READ) as stream:
        yield from stream


def gather(batches: Batches) -> Iterator[pa.Table]:
    """Batches joined until there are enough rows for a cell; no row, no table."""
    held: list[pa.RecordBatch] = []
    n_rows = 0
    for batch in batches:
        held.append(batch)
        n_rows += batch.num_rows
        if n_rows >= CELL_ROWS:
            yield pa.Table.from_batches(held)
            held, n_rows = [], 0
    if n_rows:
        yield pa.Table.from_batches(held)
