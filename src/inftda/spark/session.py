"""The Spark session: found or started, with settings that keep the truth to itself.

A session that is started here shows no web page and keeps no event log, because both hold row
counts of the confidential table. Its driver logs nothing, because warnings about failed tasks quote
rows, and keeps its working files in a folder that only its owner can open: nobody else gets past a
closed folder, whatever the permissions of what is in it. On one machine it listens on the loopback
address only. A session that the caller brings is the caller's to set up.
"""

import atexit
import os
import pickle
import shlex
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Generic, TypeVar, cast
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError  # type: ignore[import-untyped] # ships no types
from pyspark.core.broadcast import Broadcast
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from inftda.errors import InftdaError, ReleaseError
from inftda.files import private_folder

T = TypeVar("T")

#: How Spark says that something went wrong; messages may quote rows.
SPARK_ERRORS: Final = (PySparkException, Py4JError)
#: For sessions that are started here.
PRIVATE: Final = {
    "spark.ui.enabled": "false",
    "spark.eventLog.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
#: For those of them that run in one process: the driver hands out blocks of the table to whoever
#: asks, so neither other machines nor other users of this one may ask. Files are encrypted because
#: removing them leaves their content on the disk; it takes no time that could be measured.
ALONE: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # By secrets that Spark makes up and keeps in memory.
    "spark.authenticate": "true",
    "spark.io.encryption.enabled": "true",
}
#: For Java in one process: most of what it runs for a release it runs once, so it is hardly worth
#: compiling well.
SHORT_LIVED: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
#: In force while a release is made, whatever the session says otherwise.
WHILE_RELEASING: Final = {
    # Fewer, larger batches: the work of a batch should outweigh the call.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "262144",
    # Cells (see `tasks`) are large, and a batch holds at most 2 GB.
    "spark.sql.execution.arrow.maxBytesPerBatch": "67108864",
    # A sum that overflows is an error, never a wrapped number.
    "spark.sql.ansi.enabled": "true",
    # Codes in folder names (origin=001) are text.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.parquet.binaryAsString": "true",
}
#: Into how many partitions Spark shuffles.
PARTITIONS: Final = "spark.sql.shuffle.partitions"
#: Configuration of a driver that logs nothing.
QUIET: Final = Path(__file__).with_name("quiet.properties").as_uri()
#: Folders with this prefix that no process holds are removed, so it must be nobody else's.
PREFIX: Final = "inftda-spark-"

_made = ExitStack()
atexit.register(_made.close)


def is_local(master: str | None) -> bool:
    """Whether a master is one process; "local-cluster" has several."""
    return master is not None and master.partition("[")[0] == "local"


@contextmanager
def opened(master: str | None) -> Iterator[SparkSession]:
    """The active session, or a new one that is stopped at the end; local without a `master`."""
    active = SparkSession.getActiveSession()
    if active is not None:
        if master is not None and active.sparkContext.master != master:
            raise InftdaError(
                f"there is a Spark session on {active.sparkContext.master!r} already; stop it "
                f"or leave out the master {master!r}"
            )
        yield active
        return
    session = _start(master or "local[*]")
    try:
        yield session
    finally:
        session.stop()


def _start(master: str) -> SparkSession:
    place = _private_place()
    options = [f"-Djava.io.tmpdir={place}"]
    if not os.environ.get("INFTDA_DEBUG"):
        options.append(f"-Dlog4j2.configurationFile={QUIET}")
    own = PRIVATE | {"spark.master": master}
    if is_local(master):
        own |= ALONE
        options += SHORT_LIVED
        # Where blocks are kept; the variable goes before all settings.
        os.environ["SPARK_LOCAL_DIRS"] = place
        # Workers on this machine need the same libraries.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # On a cluster the driver keeps its blocks in the private place, unless another is configured.
    own["spark.driver.extraJavaOptions"] = shlex.join(options)
    builder = SparkSession.builder.appName("inftda").config(map={**own})
    try:
        with without_pandas_warning():
            return builder.getOrCreate()
    except (*SPARK_ERRORS, OSError) as problem:
        kind = type(problem).__name__
    raise InftdaError(
        f"Spark does not start ({kind}); it needs Java 17 or newer on the path or in JAVA_HOME, "
        f"and a master it can reach, got {master}"
    )


@cache
def _private_place() -> str:
    """A private folder for as long as this process lives.

    Not for a session only: the Java process is used again by the next one, and where the first
    has put some of its files it goes on putting them. It is where the user lets Spark keep its
    files (the first of SPARK_LOCAL_DIRS), or in the temporary folder.
    """
    parent = os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0] or tempfile.gettempdir()
    try:
        Path(parent).mkdir(parents=True, exist_ok=True)
        return str(_made.enter_context(private_folder(Path(parent).absolute(), PREFIX)))
    except OSError as problem:
        raise InftdaError(
            f"cannot make a folder for Spark's working files in {parent!r}: {problem.strerror}; "
            "set SPARK_LOCAL_DIRS or TMPDIR to a folder on a disk with room for the table"
        ) from None


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
    """Without pyspark's warning about pandas, which is not used here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
        yield


#: What this process has unpacked, for as long as Spark keeps the broadcast it came by.
_unpacked: WeakKeyDictionary[Broadcast[bytes], object] = WeakKeyDictionary()


@dataclass(frozen=True)
class Parcel(Generic[T]):
    """A value that every executor has; unpacked once in each of their processes.

    It travels as bytes: where files are encrypted, pyspark cannot send objects with arrays of
    more than 64 KiB.
    """

    packed: Broadcast[bytes]

    @property
    def value(self) -> T:
        """The value."""
        if self.packed not in _unpacked:
            _unpacked[self.packed] = pickle.loads(self.packed.value)  # noqa: S301 - our own bytes
        return cast("T", _unpacked[self.packed])


@contextmanager
def parcel(session: SparkSession, value: T) -> Iterator[Parcel[T]]:
    """A value on every executor, taken back at the end: it may hold secrets."""
    broadcast = session.sparkContext.broadcast(pickle.dumps(value, protocol=5))
    try:
        yield Parcel(broadcast)
    finally:
        broadcast.destroy()


def carry_out(job: Callable[[], T]) -> T:
    """Run a job on the cluster.

    Spark's own error may hold what a task had in hand, so it is neither passed on nor kept as
    context.
    """
    try:
        return job()
    except SPARK_ERRORS as problem:
        kind = type(problem).__name__
    raise ReleaseError(
        f"Spark could not carry out the release ({kind}); nothing was published. The reason is in "
        "the executors' logs, which are confidential"
    )
