"""Flows as Parquet files: made by the executors, put into the release folder by the driver.

Released leaves are kept by the executors when files are made of them, so nothing is drawn
again; what the manifest says of the flows is read back from the files. One part at a time goes
through the driver, which needs no disk that executors reach.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, StructType

from inftda.engines.spark.packing import Batches, Made
from inftda.engines.spark.session import carry_out
from inftda.mechanisms.base import Written
from inftda.publication.inventory import part_name
from inftda.publication.query import FLOW
from inftda.publication.tables import join_flows, write_flows
from inftda.tree import Tree

#: Flows of a file, about: it is a cell of Spark, which has at most 2 GB.
FILE_ROWS: Final = 1 << 24
FILES: Final = StructType().add("file", BinaryType())


def make_files(tree: Tree, batches: Batches) -> Made:
    """Released leaves as Parquet files: one for each task, unless there are very many."""
    left = iter(batches)
    while (file := _make_file(tree, left)) is not None:
        yield pa.RecordBatch.from_arrays([pa.array([file], pa.binary())], names=FILES.names)


def _make_file(tree: Tree, batches: Iterator[pa.RecordBatch]) -> bytes | None:
    blocks, n_flows = [], 0
    for batch in batches:
        *areas, flow = (column.to_numpy() for column in batch.columns)
        blocks.append((tuple(areas), flow))
        n_flows += len(flow)
        if n_flows >= FILE_ROWS:
            break
    if not n_flows:
        return None
    write_flows(sink := pa.BufferOutputStream(), tree, join_flows(tree, blocks))
    return bytes(sink.getvalue())


def write_files(files: DataFrame, folder: Path) -> None:
    """Put files of executors into a folder, named by their order.

    Args:
        files: made all at once, and then brought here one by one.
        folder: what to make.
    """
    folder.mkdir(mode=0o700)
    kept = files.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        carry_out(kept.count)
        for number, file in enumerate(one_by_one(kept)):
            (folder / part_name(number)).write_bytes(file)
    finally:
        kept.unpersist()


def one_by_one(files: DataFrame) -> Iterator[bytes]:
    """Files that executors keep, in the order of their tasks."""
    cells = carry_out(files.toLocalIterator)
    while (row := carry_out(lambda: next(cells, None))) is not None:
        yield row[0]


def read_back(folder: Path, tree: Tree) -> Written:
    """Sum and number of the flows in the files; a table without rows gets one empty file."""
    total = n_flows = 0
    for file in sorted(folder.iterdir()):
        with pq.ParquetFile(file) as part:
            for batch in part.iter_batches(columns=[FLOW]):
                total += pc.sum(batch.column(0)).as_py() or 0
                n_flows += len(batch)
    if not any(folder.iterdir()):
        write_flows(folder / part_name(0), tree, join_flows(tree, []))
    return Written(total, n_flows)
