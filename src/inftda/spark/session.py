"""The Spark session: the active one, or a new one with settings that protect the table.

A session that is started here shows no web page and keeps no event log, because both hold row
counts of the confidential table, and its driver logs nothing, because warnings about failed tasks
quote rows. On one machine it listens on the loopback address only, asks for a secret, and encrypts
its working files. The caller sets up a session of their own.
"""

import os
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, TypeVar, cast
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError  # type: ignore[import-untyped] # ships no types
from pyspark.core.broadcast import Broadcast
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from inftda.errors import InftdaError, ReleaseError, quietly

T = TypeVar("T")

#: Exceptions of Spark; their messages may quote rows.
SPARK_ERRORS: Final = (PySparkException, Py4JError)
#: Configuration of a driver that logs nothing.
QUIET: Final = Path(__file__).with_name("quiet.properties").as_uri()
#: Settings of sessions that are started here.
SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.eventLog.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
#: More settings if Spark runs in one process: by default, its driver sends blocks of the table to
#: any caller and puts them into files that others may read.
LOCAL_SETTINGS: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.authenticate": "true",
    "spark.io.encryption.enabled": "true",
}
#: Settings while a release is made, in place of those of the session.
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
#: Number of partitions of a shuffle.
PARTITIONS: Final = "spark.sql.shuffle.partitions"
#: Files with the memory that a container may use, in bytes.
CONTAINER_LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


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
    own = SETTINGS | {"spark.master": master}
    if not os.environ.get("INFTDA_DEBUG"):
        own["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile={QUIET}"
    if is_local(master):
        own |= LOCAL_SETTINGS
        if "SPARK_DRIVER_MEMORY" not in os.environ:
            own["spark.driver.memory"] = f"{quarter_of_memory()}m"
        # Workers on this machine need the same libraries.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("inftda").config(map={**own})
    with without_pandas_warning():
        return quietly(
            builder.getOrCreate,
            lambda problem: InftdaError(
                f"Spark does not start ({type(problem).__name__}); it needs Java 17 or newer on "
                f"the path or in JAVA_HOME, and a master it can reach, got {master}"
            ),
            (*SPARK_ERRORS, OSError),
        )


def quarter_of_memory() -> int:
    """Memory for Java, in MiB; the default of Spark, 1 GiB, is too little for a country.

    A container may have less than the machine.
    """
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for file in CONTAINER_LIMITS:
        with suppress(OSError, ValueError):  # no such file, or "max"
            size = min(size, int(file.read_text(encoding="ascii")))
    return max(1024, size // (4 << 20))


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


#: Values that this process has unpacked, kept for as long as Spark keeps the broadcast it came by.
_unpacked: WeakKeyDictionary[Broadcast[bytes], object] = WeakKeyDictionary()


@dataclass(frozen=True)
class Shared(Generic[T]):
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
def broadcast(session: SparkSession, value: T) -> Iterator[Shared[T]]:
    """A value on every executor, taken back at the end: it may hold secrets."""
    packed = session.sparkContext.broadcast(pickle.dumps(value, protocol=5))
    try:
        yield Shared(packed)
    finally:
        packed.destroy()


def carry_out(job: Callable[[], T]) -> T:
    """Run a job on the cluster without passing on Spark's error, which may hold rows of a task."""
    return quietly(
        job,
        lambda problem: ReleaseError(
            f"Spark could not carry out the release ({type(problem).__name__}); nothing was "
            "published. The reason is in the executors' logs, which are confidential"
        ),
        SPARK_ERRORS,
    )
