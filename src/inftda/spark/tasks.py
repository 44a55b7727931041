"""Tasks that run on executors: batches of Arrow rows in, batches of Arrow rows out.

Between two tasks rows travel as Arrow streams in a few large cells of bytes, which Spark moves,
keeps and encrypts as they are: it takes rows apart and puts them together one by one, several
times per step, and that took most of the time of a release.

A task may run more than once; every run gives the same rows, because rows are sorted before
they are used and noise follows from a secret (see `inftda.noise.bits.Secret`). Nothing here
prints or logs, because the executors' logs are not part of the release.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import TaskContext

from inftda import __version__
from inftda.errors import ReleaseError
from inftda.mechanism.topdown import Division, divide_all
from inftda.reading.truth import Children
from inftda.tree import Areas, Cells, Ints, Marginal, TreeLevel
from inftda.util.threads import ThreadPool

Batches = Iterable[pa.RecordBatch]
Made = Iterator[pa.RecordBatch]

#: Columns: the cell, and the task that its rows go to.
PACKED, TASK = "packed", "task"
#: Rows of a cell, about: some 20 MB, as Spark holds several cells of a task at once.
CELL_ROWS: Final = 1 << 20
#: Compressed, as Java is slow at encrypting; a task has its own cores, and no others.
_WRITTEN: Final = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_READ: Final = pa.ipc.IpcReadOptions(use_threads=False)
#: Settings while rows are cells, in place of those of the session.
FOR_CELLS: Final = {
    # A few cells at a time, not thousands.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "8",
    # Spark must not choose partitions by the size of the truth.
    "spark.sql.adaptive.enabled": "false",
    # Nothing is gained by compiling code for a hundred rows.
    "spark.sql.codegen.wholeStage": "false",
}

#: Schema of the output of `pack`.
CELLS: Final = f"{PACKED} binary"
#: Columns of rows on their way to a task, besides the areas and `TASK`: whether the row is a
#: released parent (its count is released) or a true child (its count is true).
IS_PARENT, COUNT = "is_parent", "n"
#: Kinds of rows: released children, or counts of one of several marginals (0, 1, ...). Noisy
#: counts of a step are those of the tables that are measured by rows, the level's first.
KIND: Final = "kind"
CHILDREN: Final = -1


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


# --- level steps


def area_names(n_axes: int) -> list[str]:
    """Names of the columns of area numbers."""
    return [f"area_{axis}" for axis in range(n_axes)]


def sum_up(marginals: Sequence[Marginal], batches: Batches) -> Made:
    """True counts of each marginal, as far as they are in these leaves; they may repeat."""
    for batch in batches:
        *leaves, n = _columns(batch)
        for kind, marginal in enumerate(marginals):
            areas, sums = marginal.sum_up(leaves, n)
            yield _of_kind(kind, as_batch(areas, sums))


@dataclass(frozen=True, repr=False)
class SharedDivision:
    """One level step: everything a task needs but its rows. It holds the secret, as the division.

    Attributes:
        division: how parents are divided.
        n_tasks: number of tasks.
        version: of this package on the driver.
    """

    division: Division
    n_tasks: int
    version: str = __version__

    def __repr__(self) -> str:
        return "SharedDivision(confidential)"

    @property
    def level(self) -> TreeLevel:
        """The level of the children."""
        return self.division.step.level

    def check_version(self) -> None:
        """Complain if this executor has another version of this package than the driver."""
        if __version__ != self.version:
            raise ReleaseError(
                f"an executor has inftda {__version__}, the driver {self.version}; install the "
                "same version everywhere"
            )

    def task_of(self, parents: Areas) -> NDArray[np.int32]:
        """int32: the task that each parent belongs to, released or not.

        Whole groups go to a task, neighbouring ones together, so that what the tasks give one
        after the other is in group order.
        """
        level = self.level
        offsets = level.child_offsets.astype(np.int64)
        task = offsets[parents[level.axis]] * self.n_tasks // offsets[-1]
        return np.asarray(task, np.int32)


def send_parents(division: SharedDivision, batches: Batches) -> Made:
    """Released parents with the task that divides them."""
    for batch in batches:
        *areas, value = _columns(batch)
        yield _routed(division.task_of(tuple(areas)), areas, value, is_parent=True)


def send_truth(division: SharedDivision, batches: Batches) -> Made:
    """True children, as rows that may repeat, with the task that divides their parent."""
    level = division.level
    for batch in batches:
        *leaves, n = _columns(batch)
        areas, sums = level.sum_up(leaves, n)
        yield _routed(division.task_of(level.parents(areas)), areas, sums, is_parent=False)


def _routed(
    task: NDArray[np.int32], areas: Sequence[NDArray[np.int32]], n: Ints, *, is_parent: bool
) -> pa.RecordBatch:
    rows = as_batch(areas, n)
    rows = rows.append_column(IS_PARENT, pa.array(np.full(len(n), is_parent)))
    return rows.append_column(TASK, pa.array(task))


def divide(division: SharedDivision, batches: Batches) -> Made:
    """Cells of released children of the parents of one task, and of noisy counts.

    It takes what `send_parents` and `send_truth` give for this task, in any order.
    """
    division.check_version()
    held = [_columns(batch) for batch in batches]
    if not held:
        return
    level = division.level
    *areas, n, is_parent, _ = (np.concatenate(column) for column in zip(*held, strict=True))
    del held  # dividing takes the room again
    context = TaskContext.get()
    pool = ThreadPool(1 if context is None else context.cpus())
    true = Cells(tuple(of[~is_parent] for of in areas), n[~is_parent])
    truth = Children.of(level, true, pool)
    parents = Cells(tuple(of[is_parent] for of in areas), n[is_parent])
    del areas, n, true
    children, noisy = divide_all(division.division, parents, truth, pool=pool)
    yield from (
        _of_kind(CHILDREN, cell) for cell in pack([as_batch(children.areas, children.value)])
    )
    # The driver has the totals that it measured.
    for kind, one in enumerate(division.division.step.by_rows):
        here = (as_batch(some.cells(), some.value) for some in noisy if some.depths == one.depths)
        yield from (_of_kind(kind, cell) for cell in pack(here))


def _of_kind(kind: int, rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows.add_column(0, KIND, pa.array(np.full(rows.num_rows, kind, np.int32)))


def as_batch(areas: Sequence[NDArray[np.int32]], n: Ints) -> pa.RecordBatch:
    """Areas and counts as rows."""
    columns = [pa.array(column) for column in (*areas, n)]
    return pa.RecordBatch.from_arrays(columns, names=[*area_names(len(areas)), COUNT])


def as_cells(batch: pa.RecordBatch) -> Cells:
    """Rows as areas and counts: the inverse of `as_batch`."""
    *areas, value = _columns(batch)
    return Cells(tuple(areas), value)


def _columns(batch: pa.RecordBatch) -> list[NDArray[Any]]:
    return [column.to_numpy(zero_copy_only=False) for column in batch.columns]
