"""Files: Parquet that executors on this machine read by themselves, and all that Spark can list.

Spark would take every row apart to hand it to Python. That is left for files elsewhere, and
for what is out of the ordinary: codes in folder names, files that differ, nested columns.

Files wherever Spark keeps them (local disk, HDFS, object stores) are listed by Hadoop's file
systems. These are the only calls into Spark's Java side: pyspark has no public way to list files.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from inftda.engines.spark.packing import Batches, Made
from inftda.reading.sources import Use

#: Tasks for each core, so that slow ones even out.
TASKS_PER_CORE: Final = 2
BATCH_ROWS: Final = 1 << 18


class RowGroup(NamedTuple):
    """A row group of a file."""

    file: str
    number: int


@dataclass(frozen=True)
class LocalParquet:
    """Files on this machine with the same columns.

    Attributes:
        schema: the columns.
        tasks: the row groups that each task reads.
    """

    schema: pa.Schema
    tasks: tuple[tuple[RowGroup, ...], ...]

    def empty(self, uses: Sequence[Use]) -> pa.Table:
        """The columns in use by their aliases, without rows."""
        empty = self.schema.empty_table().select([use.position for use in uses])
        return _as_text(empty.rename_columns([use.alias for use in uses]))

    def rows(self, uses: Sequence[Use], numbers: Batches) -> Made:
        """The columns in use by their aliases, of the tasks with the given numbers."""
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for group in self.tasks[number]:
                    yield from _read(group, uses)


def _read(group: RowGroup, uses: Sequence[Use]) -> Made:
    names, aliases = [use.name for use in uses], [use.alias for use in uses]
    # Codes repeat, so text stays in a dictionary.
    with pq.ParquetFile(group.file, read_dictionary=names) as file:
        for batch in file.iter_batches(
            BATCH_ROWS, row_groups=[group.number], columns=names, use_threads=False
        ):
            found = pa.Table.from_batches([batch]).select(names).rename_columns(aliases)
            yield from _as_text(found).to_batches()


def _as_text(table: pa.Table) -> pa.Table:
    """Bytes are text, as they are on one machine; whether they are is checked later."""
    for index, field in enumerate(table.schema):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            text = table.column(index).cast(kind).cast(pa.string(), safe=False)
            table = table.set_column(index, field.name, text)
    return table


def find_parquet(session: SparkSession, path: str) -> LocalParquet | None:
    """The files of a path, if all executors see them and they can be read without Spark."""
    root = Path(path)
    if not str(session.sparkContext.master).startswith("local") or not root.exists():
        return None
    files = [root] if root.is_file() else _plain_files(root)
    try:
        footers = [pq.read_metadata(file) for file in files]
        schemas = [footer.schema.to_arrow_schema().remove_metadata() for footer in footers]
    except (pa.ArrowException, OSError, ValueError):
        return None  # Spark will say what is wrong
    if not files or not _is_plain(schemas[0]) or any(one != schemas[0] for one in schemas):
        return None
    groups = [
        (footer.row_group(number).num_rows, RowGroup(str(file.absolute()), number))
        for file, footer in zip(files, footers, strict=True)
        for number in range(footer.num_row_groups)
    ]
    n_tasks = TASKS_PER_CORE * session.sparkContext.defaultParallelism
    return LocalParquet(schemas[0], _dealt(groups, n_tasks))


def _plain_files(folder: Path) -> list[Path]:
    """Files that are all in the folder itself; none if there are subfolders."""
    found = sorted(folder.iterdir())
    visible = [path for path in found if not path.name.startswith((".", "_"))]
    is_plain = all(path.is_file() and path.suffix == ".parquet" for path in visible)
    return visible if is_plain else []


def _is_plain(schema: pa.Schema) -> bool:
    """Whether columns can be chosen by name alone."""
    names = schema.names
    is_flat = not any(pa.types.is_nested(field.type) or "." in field.name for field in schema)
    # Categories are those of whoever wrote the file; mostly text, but not always.
    is_simple = not any(pa.types.is_dictionary(field.type) for field in schema)
    return is_flat and is_simple and len({name.casefold() for name in names}) == len(names) > 0


def _dealt(
    groups: Sequence[tuple[int, RowGroup]], n_tasks: int
) -> tuple[tuple[RowGroup, ...], ...]:
    """Row groups in order, cut into tasks of about as many rows."""
    rows = np.array([n_rows for n_rows, _ in groups], np.int64)
    middle = np.cumsum(rows) - rows / 2
    task = np.minimum(middle * n_tasks // max(rows.sum(), 1), n_tasks - 1)
    dealt = (
        tuple(group for (_, group), of in zip(groups, task, strict=True) if of == number)
        for number in range(n_tasks)
    )
    return tuple(part for part in dealt if part) or ((),)


def list_files(session: SparkSession, url: str) -> list[str]:
    """Addresses of all files in a folder and its subfolders, in order; none if it is not there."""
    path, system = _open(session, url)
    if not system.exists(path):
        return []
    found, files = [], system.listFiles(path, True)
    while files.hasNext():
        found.append(str(files.next().getPath().toString()))
    return sorted(found)


def _open(session: SparkSession, url: str) -> tuple[Any, Any]:
    """The path and the file system it lies on."""
    context = session.sparkContext
    java: Any = context._jvm  # noqa: SLF001 - the only door to Hadoop's file systems
    path = java.org.apache.hadoop.fs.Path(url)
    return path, path.getFileSystem(context._jsc.hadoopConfiguration())  # noqa: SLF001 - likewise
