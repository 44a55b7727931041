"""The Spark session: found or started, with settings that keep the truth to itself.

A session that is started here shows no web page and keeps no event log, because both hold row
counts of the confidential table; a session that the caller brings is the caller's to set up.
"""

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from py4j.protocol import Py4JError  # type: ignore[import-untyped] # ships no types
from pyspark.core.broadcast import Broadcast
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from inftda.errors import InftdaError, ReleaseError

T = TypeVar("T")

#: How Spark says that something went wrong; messages may quote rows.
SPARK_ERRORS: Final = (PySparkException, Py4JError)
#: For sessions that are started here.
PRIVATE: Final = {
    "spark.ui.enabled": "false",
    "spark.eventLog.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
#: In force while a release is made, whatever the session says otherwise.
WHILE_RELEASING: Final = {
    # Fewer, larger batches: the work of a batch should outweigh the call.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    # A sum that overflows is an error, never a wrapped number.
    "spark.sql.ansi.enabled": "true",
    # Codes in folder names (origin=001) are text.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.parquet.binaryAsString": "true",
}
#: Warnings about failed tasks quote rows of the input, so the driver of a session that is
#: started here logs nothing.
QUIET: Final = Path(__file__).with_name("quiet.properties").as_uri()


@contextmanager
def opened(master: str | None) -> Iterator[SparkSession]:
    """The active session, or a new one that is stopped at the end.

    Args:
        master: URL of the cluster; what Spark is configured with by default, and if that is
            nothing, all cores of this machine.

    Raises:
        InftdaError: Spark does not start, or runs on another cluster.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        if master is not None and active.sparkContext.master != master:
            raise InftdaError(
                f"there is a Spark session on {active.sparkContext.master!r} already; stop it "
                f"or leave out the master {master!r}"
            )
        yield active
        return
    session = _start(master)
    try:
        yield session
    finally:
        session.stop()


def _start(master: str | None) -> SparkSession:
    if not os.environ.get("INFTDA_DEBUG"):
        options = f"{os.environ.get('SPARK_SUBMIT_OPTS', '')} -Dlog4j2.configurationFile={QUIET}"
        os.environ["SPARK_SUBMIT_OPTS"] = options.strip()
    if master is None or master.startswith("local"):
        # Workers on this machine need the same libraries.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("inftda")
    if master is not None:
        builder = builder.master(master)
    for name, value in PRIVATE.items():
        builder = builder.config(name, value)
    try:
        with without_pandas_warning():
            return builder.getOrCreate()
    except (*SPARK_ERRORS, OSError) as problem:
        kind = type(problem).__name__
    raise InftdaError(
        f"Spark does not start ({kind}); it needs Java 17 or newer on the path or in JAVA_HOME, "
        f"and a master it can reach, got {master or 'none'}"
    )


@contextmanager
def settings(session: SparkSession, more: Mapping[str, str] | None = None) -> Iterator[None]:
    """Settings that hold while a release is made; the caller's own come back afterwards."""
    wanted = WHILE_RELEASING | dict(more or {})
    before = {name: session.conf.get(name, None) for name in wanted}
    try:
        for name, value in wanted.items():
            session.conf.set(name, value)
        with without_pandas_warning():
            yield
    finally:
        for name, old in before.items():
            if old is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, old)


@contextmanager
def without_pandas_warning() -> Iterator[None]:
    """Without pyspark's warning about pandas, of which nothing is used here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
        yield


@contextmanager
def sent(session: SparkSession, value: T) -> Iterator[Broadcast[T]]:
    """A value on every executor, taken back at the end: it may hold secrets."""
    broadcast = session.sparkContext.broadcast(value)
    try:
        yield broadcast
    finally:
        broadcast.destroy()


def carry_out(job: Callable[[], T]) -> T:
    """Run a job on the cluster.

    Raises:
        ReleaseError: it failed. Spark's own error may hold what a task had in hand, so it is
            neither passed on nor kept as the context of this one.
    """
    try:
        return job()
    except SPARK_ERRORS as problem:
        kind = type(problem).__name__
    raise ReleaseError(
        f"Spark could not carry out the release ({kind}); nothing was published. The reason is in "
        "the executors' logs, which are confidential"
    )
