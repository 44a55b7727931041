"""Releases as Apache Spark jobs, for tables that do not fit one machine.

Rows are read, bounded and counted by executors; the first levels are divided on the driver;
then every level is one shuffle, after which tasks divide their groups by the same compiled
kernels as on one machine. The driver holds true leaves only where it has read them itself: tables
in its memory, and files where there is no cluster. Released leaves come to it part by part.

True counts leave only through the mechanism. docs/guides/scale.md describes the confidential data
in Spark's own files (shuffle files, spills, logs).
"""

from importlib.util import find_spec

from inftda.errors import MissingExtraError

if find_spec("pyspark") is None:
    raise MissingExtraError(
        "the Spark engine needs pyspark, which is not installed; pip install 'inftda-od[spark]'"
    )

from inftda.spark.engine import SparkEngine

__all__ = ["SparkEngine"]
