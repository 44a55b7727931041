"""Flows written by the executors, each part once, and brought into the release folder.

Spark's file committer lets one run of a task put its file in place, whichever runs Spark
starts, and a file in place is never written again. Nothing is computed after the noise but
this write, so no other job can evaluate it anew; what the manifest says of the flows is read
back from the files.
"""

import secrets
import shutil
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from inftda.engines.spark.files import fetch_file, list_files, remove_folder
from inftda.engines.spark.session import carry_out
from inftda.mechanisms.base import Written
from inftda.publication.folder import FlowsWriter
from inftda.publication.inventory import part_name
from inftda.publication.query import FLOW
from inftda.tree import Tree

#: How Spark is to write: the first committer, whose files appear all together at the end.
OPTIONS: Final = {
    "compression": "zstd",
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}


def write_flows(flows: DataFrame, folder: Path, staging: str | None) -> None:
    """Evaluate the flows once and put them into a folder of Parquet files.

    Args:
        flows: released leaves; evaluated here and nowhere else.
        folder: what to make, on a disk of the driver.
        staging: address of a private folder that executors and driver both reach; without
            it `folder` itself must be on a disk that they share.
    """
    session = flows.sparkSession
    place = f"{staging.rstrip('/')}/inftda-{secrets.token_hex(8)}" if staging else None
    shared = folder.with_name(folder.name + ".staging")
    url = place or shared.absolute().as_uri()
    try:
        carry_out(lambda: flows.write.options(**OPTIONS).parquet(url))
        _bring_in(session, url, folder, is_shared=place is None)
    finally:
        if place is None:
            shutil.rmtree(shared, ignore_errors=True)
        else:
            carry_out(lambda: remove_folder(session, url))


def _bring_in(session: SparkSession, url: str, folder: Path, *, is_shared: bool) -> None:
    """Only the files with flows, named by their order: Spark's names tell of its runs."""
    folder.mkdir(mode=0o700)
    files = [file for file in list_files(session, url) if Path(file).name.startswith("part-")]
    for number, file in enumerate(files):
        target = folder / part_name(number)
        if is_shared:
            _local(file).rename(target)
        else:
            carry_out(partial(fetch_file, session, file, target))


def _local(url: str) -> Path:
    """The path of a file on this machine."""
    return Path(url2pathname(urlsplit(url).path))


def read_back(folder: Path, tree: Tree) -> Written:
    """Sum and number of the flows in the files; a table without rows gets one empty file."""
    total = n_flows = 0
    for file in sorted(folder.iterdir()):
        with pq.ParquetFile(file) as part:
            for batch in part.iter_batches(columns=[FLOW]):
                total += pc.sum(batch.column(0)).as_py() or 0
                n_flows += len(batch)
    if not any(folder.iterdir()):
        FlowsWriter(folder / part_name(0), tree).close()
    return Written(total, n_flows)
