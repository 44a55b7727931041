"""From a table to its leaves on a cluster: the SQL of `inftda.reading`, part by part.

Spark reads the files, moves rows and adds up; what a row means is decided by the same SQL as
on one machine, which executors run on their parts of the table. So equal seeds give equal
leaves on both.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it
from pyspark.sql.types import StructType

from inftda.engines.spark.packing import (
    CELLS,
    FOR_CELLS,
    PACKED,
    TASK,
    Batches,
    Made,
    addressed_cells,
    cell_table,
    pack_by,
    unpack,
)
from inftda.engines.spark.parts import Parts
from inftda.engines.spark.session import PARTITIONS, Sent, sent, settings
from inftda.engines.spark.sources import LocalTable, Raw, SparkTable, open_table
from inftda.engines.spark.truth import LEAF_CELLS, SparkLeaves, pack_leaves
from inftda.errors import IngestError
from inftda.noise.entropy import RandomSource
from inftda.reading import bounding
from inftda.reading.flaws import Complaint, Flaw, first_flaw
from inftda.reading.reader import read_leaves as read_here
from inftda.reading.roles import choose_roles
from inftda.reading.rows import Rows
from inftda.reading.spec import TableSpec
from inftda.reading.sql_query import SqlQuery
from inftda.reading.workspace import Workspace
from inftda.truth import Leaves, check_total

#: What executors do to the rows of a partition.
Work = Callable[[Parts, Batches], Made]


def read_leaves(
    session: SparkSession,
    source: Any,
    spec: TableSpec,
    *,
    random_source: RandomSource,
    say: Callable[[str], object] | None = None,
) -> SparkLeaves:
    """Read trips or flows and count them per leaf; see `inftda.reading.read_leaves`.

    Args:
        session: where to read.
        source: a Spark frame, a path, folder or glob of Parquet or CSV files wherever Spark
            reads them, the name of a table in Spark's catalogue, a `CsvFile`, or a table in
            memory, which is read where it is: on the driver.
        spec: what its columns mean.
        random_source: where the choice of a person's trips comes from.
        say: called with what a row was taken for, one trip or a count.

    Raises:
        IngestError: the source cannot be read as counts; the message says why.
    """
    if isinstance(source, SqlQuery):
        raise IngestError(
            "Spark cannot read trips from a SqlQuery; read the table with Spark (spark.read.jdbc) "
            "and give the frame, or leave out the engine"
        )
    table = open_table(session, source)
    if table is None:
        return _ship(session, read_here(source, spec, random_source=random_source, say=say))
    with Workspace(threads=1, can_spill=False) as workspace:
        described = table.described(workspace)
        roles = choose_roles(described, spec)
        rows = Rows.of(described, roles, spec, workspace)
    if say is not None:
        say(roles.describe())
    secret = "" if spec.person is None else bounding.draw_secret(random_source)
    complaint = Complaint(label=table.label, spec=spec, count_name=roles.count_name)
    reading = _Reading(table, table.raw(roles.uses), rows, complaint)
    with ExitStack() as stack:
        # Kept as long as the leaves are: Spark recomputes what is lost with an executor.
        parts = stack.enter_context(sent(session, Parts(rows, spec.unit, secret)))
        has_cells = isinstance(table, LocalTable) and not rows.has_person
        with settings(session, FOR_CELLS if has_cells else {}):
            counted, total = reading.run(parts)
        stack.callback(counted.unpersist)
        cells = counted.where(F.col(PACKED).isNotNull()).select(PACKED)
        return SparkLeaves(cells, total, stack.pop_all().close)


def _ship(session: SparkSession, leaves: Leaves) -> SparkLeaves:
    """Leaves of a table that was in the driver's memory."""
    names = [f"area_{i}" for i in range(len(leaves.areas))]
    table = pa.table([*leaves.areas, leaves.counts], names=[*names, "n"])
    frame = session.createDataFrame(cell_table(table), CELLS).persist(StorageLevel.MEMORY_AND_DISK)
    return SparkLeaves(frame, int(leaves.counts.sum()), frame.unpersist)


@dataclass(frozen=True)
class _Reading:
    """One table about to be read.

    Attributes:
        table: what it is.
        raw: its columns in use.
        rows: its rows in SQL.
        complaint: what messages need.
    """

    table: SparkTable | LocalTable
    raw: Raw
    rows: Rows
    complaint: Complaint

    def run(self, parts: Sent[Parts]) -> tuple[DataFrame, int]:
        """Trips per leaf, zeros included, kept by the executors and checked; and their sum."""
        frame, work = self.raw.frame, self._opened(Parts.count)
        if self.rows.has_person:
            frame, work = self._personal(parts), Parts.bound
        if self.complaint.count_name is None or self.rows.has_person:
            # Trips repeat in many parts; flows hardly do, and are not worth a shuffle.
            counted = _merged(frame, work, parts)
        else:
            counted = _map(frame, parts, lambda *given: pack_leaves(work(*given)), LEAF_CELLS)
        counted = counted.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            summary = self.table.attempt(lambda: _summary(counted))
            self._check(summary, parts)
        except BaseException:
            counted.unpersist()
            raise
        return counted, summary.total

    def _personal(self, parts: Sent[Parts]) -> DataFrame:
        """All rows of a person in one partition, one after the other."""
        areas = ", ".join(f"{area} int" for area in self.rows.numbers)
        gather = self._opened(Parts.gather)
        personal = _map(self.raw.frame, parts, gather, f"person string, {areas}, n bigint")
        return personal.repartition("person").sortWithinPartitions("person")

    def _opened(self, work: Work) -> Work:
        """Work on the raw rows."""
        open_ = self.raw.open
        return lambda parts, batches: work(parts, open_(batches))

    def _check(self, summary: "_Summary", parts: Sent[Parts]) -> None:
        self.complaint.check(summary.flaws)
        if first_flaw(summary.flaws) is Flaw.UNPLACEABLE:
            lost = _map(self.raw.frame, parts, self._opened(Parts.lost), "axis int, code string")
            found = self.table.attempt(lost.collect)
            said = self.rows.describe_lost((row["axis"], row["code"]) for row in found)
            raise IngestError(self.complaint.unplaceable(summary.flaws[Flaw.UNPLACEABLE], said))
        check_total(summary.total)
        if not self.complaint.spec.may_be_empty:
            if not summary.has_rows:
                raise IngestError(self.complaint.no_rows())
            if summary.total == 0:
                raise IngestError(self.complaint.all_zero())


def _merged(frame: DataFrame, work: Work, parts: Sent[Parts]) -> DataFrame:
    """One row per leaf: all rows of a leaf to one task, which adds them up by the same SQL."""
    n_tasks = int(str(frame.sparkSession.conf.get(PARTITIONS)))

    def send(given: Parts, batches: Batches) -> Made:
        return pack_by(TASK, given.addressed(n_tasks, work(given, batches)))

    def merge(given: Parts, batches: Batches) -> Made:
        return pack_leaves(given.merge(unpack(batches)))

    sent_ = _map(frame, parts, send, addressed_cells(TASK))
    return _map(sent_.repartitionById(n_tasks, F.col(TASK)), parts, merge, LEAF_CELLS)


def _map(
    frame: DataFrame,
    parts: Sent[Parts],
    work: Work,
    schema: str | StructType,
) -> DataFrame:
    """What executors make of the rows of a frame."""

    def on_executor(batches: Batches) -> Made:
        return work(parts.value, batches)

    return frame.mapInArrow(on_executor, schema)


@dataclass(frozen=True)
class _Summary:
    """What the driver may know of the leaves before any noise: enough to refuse them.

    Attributes:
        flaws: number of rows of each flaw.
        total: sum of all counts.
        has_rows: whether there are any leaves, zeros included.
    """

    flaws: dict[int, int]
    total: int
    has_rows: bool


def _summary(frame: DataFrame) -> _Summary:
    found: Counter[int] = Counter()
    for row in frame.select("flaw", "total").collect():
        found[int(row["flaw"])] += int(row["total"])
    has_rows = 0 in found
    return _Summary(flaws=found, total=found.pop(0, 0), has_rows=has_rows)
