"""A Spark cluster with two worker processes on this machine, started once."""

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

#: Two workers with one core and 1 GB each, and a Java process for every one of them.
MASTER = "local-cluster[2,1,1024]"
#: For short-lived Java processes with little work: compile less. A release takes half the time.
LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def why_not() -> str | None:
    """What Spark lacks here, if anything."""
    if find_spec("pyspark") is None:
        return "SPARK IS NOT TESTED: pyspark is missing (pip install 'inftda-od[spark]')"
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "SPARK IS NOT TESTED: Java is missing (install a JRE, version 17 or newer)"
    return None


@pytest.fixture(scope="session")
def spark():
    """A session on the cluster."""
    if reason := why_not():
        pytest.skip(reason)
    from pyspark.sql import SparkSession  # noqa: PLC0415 - it may be missing

    from inftda.spark.session import (  # noqa: PLC0415 - likewise
        QUIET,
        SETTINGS,
        without_pandas_warning,
    )

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_SUBMIT_OPTS"] = f"-Dlog4j2.configurationFile={QUIET} {LIGHT}"
    builder = SparkSession.builder.master(MASTER).appName("inftda tests")
    own = {
        "spark.driver.host": "127.0.0.1",
        "spark.executor.extraJavaOptions": LIGHT,
        "spark.sql.shuffle.partitions": "2",
        "spark.task.maxFailures": "3",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.adaptive.enabled": "false",
    }
    for name, value in (SETTINGS | own).items():
        builder = builder.config(name, value)
    with without_pandas_warning():
        session = builder.getOrCreate()
    logs = logs_of(session)  # while it runs: the matrix stops the same session
    yield session
    session.stop()
    shutil.rmtree(logs, ignore_errors=True)


def logs_of(session) -> Path:
    """Where the executors of a cluster on this machine write what they print."""
    home = os.environ.get("SPARK_HOME") or Path(sys.modules["pyspark"].__file__).parent
    return Path(home) / "work" / session.sparkContext.applicationId


@pytest.fixture
def executor_logs(spark):
    """A folder for each executor, with its standard output and error."""
    return logs_of(spark)
