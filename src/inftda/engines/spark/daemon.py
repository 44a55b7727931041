"""The parent of Python processes on an executor: it has everything loaded before it forks.

Spark forks workers from one process, by default one that has loaded hardly anything, so each
of them would load the same libraries and compiled kernels. Named by `spark.python.daemon.module`.
"""

import pyspark.worker  # noqa: F401 - loaded for workers
from pyspark.daemon import manager

from inftda.engines.spark import flows, parquet, parts, tasks  # noqa: F401 - loaded for workers

if __name__ == "__main__":
    manager()
