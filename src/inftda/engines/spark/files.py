"""Files wherever Spark keeps them (local disk, HDFS, object stores), by Hadoop's file systems.

These are the only calls into Spark's Java side: pyspark has no public way to list
files.
"""

from typing import Any

from pyspark.sql import SparkSession


def list_files(session: SparkSession, url: str) -> list[str]:
    """Addresses of all files in a folder and its subfolders, in order; none if there is none."""
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
