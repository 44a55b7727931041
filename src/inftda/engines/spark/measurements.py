"""Noisy values as Parquet files: made by the task that draws them, kept by the driver.

A step's task gives cells of two kinds, released children and files of measurements. Spark keeps
both, so nothing is drawn again; and if it did run a task again, the values would be the same.
"""

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql.types import BinaryType, BooleanType, StructType

from inftda.engines.spark.flows import FILE_ROWS
from inftda.engines.spark.packing import PACKED, Batches, Made, pack
from inftda.engines.spark.tasks import Division, divide
from inftda.publication.measurements import MeasurementsFile

if TYPE_CHECKING:
    from inftda.mechanisms.step import Drawn
    from inftda.tree import Axis

#: Whether a cell is a file of measurements, or packed rows of released children.
IS_FILE: Final = "is_file"
KINDS: Final = StructType().add(IS_FILE, BooleanType()).add(PACKED, BinaryType())


def divide_and_keep(division: Division, batches: Batches) -> Made:
    """Released children of one task, packed, and its noisy values in files."""
    files = _Files(division.step.level.axes)
    for cells in pack(divide(division, batches, files)):
        yield from (_of_kind(cell, is_file=False) for cell in cells.column(PACKED))
        yield from (_of_kind(file, is_file=True) for file in files.taken())
    files.close()
    yield from (_of_kind(file, is_file=True) for file in files.taken())


def _of_kind(cell: bytes | pa.Scalar, *, is_file: bool) -> pa.RecordBatch:
    columns = [pa.array([is_file]), pa.array([cell], pa.binary())]
    return pa.RecordBatch.from_arrays(columns, names=KINDS.names)


class _Files:
    """Keeps noisy values in files: one for each task, unless there are very many."""

    def __init__(self, axes: "tuple[Axis, ...]") -> None:
        self._axes = axes
        self._done: list[bytes] = []
        self._sink: pa.BufferOutputStream | None = None
        self._file: MeasurementsFile | None = None

    def keep_total(self, value: int) -> None:
        """Never: the driver draws the total."""
        raise NotImplementedError

    def keep(self, drawn: "Drawn") -> None:
        """Take the next counts of a table, in group order."""
        if not len(drawn.value):
            return
        if self._file is None:
            self._sink = pa.BufferOutputStream()
            self._file = MeasurementsFile(self._sink, self._axes)
        self._file.write(drawn.depths, drawn.cells(), drawn.value)
        if self._file.n_values >= FILE_ROWS:
            self.close()

    def keep_file(self, file: bytes) -> None:
        """Take counts that are in a file already."""
        self._done.append(file)

    def close(self) -> None:
        """End the last file."""
        if self._file is not None and self._sink is not None:
            self._file.close()
            self.keep_file(bytes(self._sink.getvalue()))
        self._file = self._sink = None

    def taken(self) -> list[bytes]:
        """Files that are ready, which are then forgotten here."""
        done, self._done = self._done, []
        return done
