"""The Spark session: found or started, with settings that keep the truth to itself.

A session that is started here shows no web page and keeps no event log, because both hold row
counts of the confidential table; what it writes to disk only its owner can read, and on one
machine it listens on the loopback address only. A session that the caller brings is the caller's
to set up.

When Spark shuffles, spills and caches, rows of the confidential table go to disk, with the
permissions that the user's mask gives: mostly every local user can read them. Nobody else gets past
a closed folder, whatever the permissions of what is in it. So the mask of the Java process, which
Python workers and their cache of compiled kernels would inherit, is left alone.
"""

import atexit
import os
import pickle
import shlex
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Generic, TypeVar, cast
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError  # type: ignore[import-untyped] # ships no types
from pyspark import SparkConf, SparkContext
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
#: For those of them that run in one process, whatever is configured for clusters: the driver
#: hands out blocks of the table to whoever asks, so neither other machines nor other users of
#: this one may ask. Files are encrypted because removing them leaves their content on the disk;
#: it takes no time that could be measured.
ALONE: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Python processes are forked from one that has loaded what they need.
    "spark.python.daemon.module": "inftda.engines.spark.daemon",
    # By secrets that Spark makes up and keeps in memory.
    "spark.authenticate": "true",
    "spark.io.encryption.enabled": "true",
}
#: In force while a release is made, whatever the session says otherwise.
WHILE_RELEASING: Final = {
    # Fewer, larger batches: the work of a batch should outweigh the call.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "262144",
    # Cells (see `packing`) are large, and a batch holds at most 2 GB.
    "spark.sql.execution.arrow.maxBytesPerBatch": "67108864",
    # A sum that overflows is an error, never a wrapped number.
    "spark.sql.ansi.enabled": "true",
    # Codes in folder names (origin=001) are text.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.parquet.binaryAsString": "true",
}
#: Into how many partitions Spark shuffles.
PARTITIONS: Final = "spark.sql.shuffle.partitions"
#: For Java processes that live for one release: most of what they run they run once, so it is
#: hardly worth compiling well, and two cores have other things to do.
SHORT_LIVED: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:MetaspaceSize=256m")
#: Warnings about failed tasks quote rows of the input, so the driver of a session that is
#: started here logs nothing.
QUIET: Final = Path(__file__).with_name("quiet.properties").as_uri()

#: Folders with this prefix that no process holds are removed, so it must be nobody else's.
PREFIX: Final = "inftda-spark-"

_made = ExitStack()
atexit.register(_made.close)


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
    if master is None or master.startswith("local"):
        # Workers on this machine need the same libraries.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    own = PRIVATE | ({} if master is None else {"spark.master": master})
    try:
        with without_pandas_warning():
            conf = _start_java(own)
            own |= _alone(conf)
            return _start_session(conf.setAll(list(own.items())), own)
    except (*SPARK_ERRORS, OSError) as problem:
        kind = type(problem).__name__
    raise InftdaError(
        f"Spark does not start ({kind}); it needs Java 17 or newer on the path or in JAVA_HOME, "
        f"and a master it can reach, got {master or 'none'}"
    )


def _start_java(own: Mapping[str, str]) -> SparkConf:
    """All settings, with those that are configured outside: only Java knows where these are."""
    with _environment(_for_java(own.get("spark.master"))):
        conf = SparkConf().setAll(list(own.items()))
        SparkContext._ensure_initialized(conf=conf)  # noqa: SLF001 - else it starts with a session
    return SparkConf().setAll(list(own.items()))


def _for_java(master: str | None) -> dict[str, str]:
    """Variables for a Java process that starts."""
    # Also where Spark keeps blocks if nothing else is configured.
    options = [f"-Djava.io.tmpdir={private_place(tempfile.gettempdir())}", *SHORT_LIVED]
    if not os.environ.get("INFTDA_DEBUG"):
        options.append(f"-Dlog4j2.configurationFile={QUIET}")
    given = os.environ.get("SPARK_SUBMIT_OPTS", "")
    variables = {"SPARK_SUBMIT_OPTS": f"{given} {shlex.join(options)}".strip()}
    # It goes before all settings. Some clusters take it for their executors, too: left alone.
    if (places := os.environ.get("SPARK_LOCAL_DIRS")) and (master is None or _is_alone(master)):
        variables["SPARK_LOCAL_DIRS"] = inside(places)
    return variables


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Variables of this process for a while."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                del os.environ[name]
            else:
                os.environ[name] = old


def _start_session(conf: SparkConf, own: Mapping[str, str]) -> SparkSession:
    """A session with folders for blocks that are closed before there is anything in them.

    The user may have a place for them that is not private: one for all machines of a cluster,
    or one that Java was started with.
    """
    java: Any = SparkContext._jvm  # noqa: SLF001 - pyspark does not tell what places Spark takes
    places = list(java.org.apache.spark.util.Utils.getConfiguredLocalDirs(conf._jconf))  # noqa: SLF001 - likewise
    before = block_folders(places)
    builder = SparkSession.builder.appName("inftda")
    for name, value in own.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    close_folders(block_folders(places) - before)
    return session


def _alone(conf: SparkConf) -> dict[str, str]:
    """What a session in one process gets besides; nothing on a cluster, which others set up."""
    if not _is_alone(conf.get("spark.master", "")):
        return {}
    places = conf.get("spark.local.dir", tempfile.gettempdir())
    return ALONE | {"spark.local.dir": inside(places)}


def _is_alone(master: str) -> bool:
    """Does Spark run in one process? "local-cluster" has several."""
    return master == "local" or master.startswith("local[")


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
class Sent(Generic[T]):
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
def sent(session: SparkSession, value: T) -> Iterator[Sent[T]]:
    """A value on every executor, taken back at the end: it may hold secrets."""
    broadcast = session.sparkContext.broadcast(pickle.dumps(value, protocol=5))
    try:
        yield Sent(broadcast)
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


def inside(places: str) -> str:
    """Private folders in the ones that are named, all with commas between, as Spark has them."""
    return ",".join(private_place(place) for place in places.split(","))


@cache
def private_place(parent: str) -> str:
    """A private folder in another one, for as long as this process lives.

    Not for a session only: the Java process is used again by the next one, and where the first
    has put some of its files it goes on putting them, even if it has to make that folder anew.
    """
    place = Path(parent).absolute()
    try:
        place.mkdir(parents=True, exist_ok=True)
        return str(_made.enter_context(private_folder(place, PREFIX)))
    except OSError:
        return parent  # Spark does without a disk that is broken, or says so


def block_folders(places: Iterable[str]) -> set[Path]:
    """Where drivers and executors keep blocks of rows, in these places."""
    found = {folder for place in places for folder in Path(place).glob("blockmgr-*")}
    # Where others can write they can put links to folders that are none of ours.
    return {folder for folder in found if not folder.is_symlink()}


def close_folders(folders: Iterable[Path]) -> None:
    """Lock other users out of folders."""
    for folder in folders:
        # Others, too, may have just started Spark here, or stopped it, or put a link there.
        with suppress(PermissionError, FileNotFoundError, NotADirectoryError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                os.fchmod(descriptor, 0o700)
            finally:
                os.close(descriptor)
