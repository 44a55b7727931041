"""The truth on a cluster: non-zero leaf counts as a Spark frame that is kept by the executors.

This is the only place of the Spark engine that holds the truth. Of it the driver sees sums
over the first levels, which it noises, and whether rows are flawed; the leaves stay where
they are.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

from inftda.counts import MAX_TOTAL
from inftda.engines.spark.bounding import group_by_person, keep_bounded
from inftda.engines.spark.rows import BAD_LINE, Rows, area_columns
from inftda.engines.spark.table import Table, open_table
from inftda.errors import IngestError
from inftda.hierarchy import OUTSIDE, Hierarchy
from inftda.ingest.bounding import Bounding
from inftda.ingest.columns import Flaw
from inftda.ingest.leaves import (
    all_zero_message,
    check_policy,
    flaw_message,
    may_be_empty,
    no_rows_message,
    too_many_message,
)
from inftda.ingest.rows import how_counted
from inftda.noise.entropy import RandomSource
from inftda.privacy.unit import PrivacyUnit


@dataclass(frozen=True, eq=False)
class SparkLeaves:
    """The confidential leaf counts: one row per leaf with trips, in any order.

    Attributes:
        frame: the columns of `area_columns` (int, depth-first numbers of the finest areas)
            and `n` (bigint, above zero), kept by the executors.
        kept: what to let go of in the end.
    """

    frame: DataFrame
    kept: DataFrame

    @property
    def areas(self) -> list[str]:
        """Names of the area columns."""
        return self.frame.columns[:-1]

    @property
    def total(self) -> int:
        return int(self.frame.agg(F.sum("n")).head()[0] or 0)

    def close(self) -> None:
        """Let the executors forget the leaves."""
        self.kept.unpersist()

    def __repr__(self) -> str:
        return f"SparkLeaves({len(self.areas)} axes, confidential)"


def read_leaves(  # noqa: PLR0913 - each option is one decision of the custodian
    session: SparkSession,
    source: Any,
    axes: Sequence[tuple[str, Hierarchy]],
    *,
    count: str | None,
    person: str | None,
    unit: PrivacyUnit,
    unplaceable: str,
    random_source: RandomSource,
    say: Callable[[str], object] | None = None,
) -> SparkLeaves:
    """Read trips or flows and count them per leaf; see `inftda.ingest.read_leaves`.

    Raises:
        IngestError: the source cannot be read as counts; the message says why.
        PrivacyError: the options would break the privacy promise.
    """
    check_policy(axes, person=person, unit=unit, unplaceable=unplaceable)
    table = open_table(session, source)
    outside = OUTSIDE if unplaceable == "outside" else None
    rows = Rows.of(table, axes, count=count, person=person, outside=outside)
    if say is not None:
        say(how_counted(rows.count_name))
    areas = area_columns(len(axes))
    placed = rows.placed(is_dropping=unplaceable == "drop")
    if person is None:
        return _count(placed, areas, rows, unit, is_dropping=unplaceable == "drop")
    personal = group_by_person(placed, areas, unit).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        _check(table.attempt(lambda: _summary(personal, areas)), rows)
        bounding = Bounding(unit, random_source)
        bounded = keep_bounded(personal, areas, table=table, bounding=bounding)
        return _count(bounded, areas, rows, unit, is_dropping=unplaceable == "drop")
    finally:
        personal.unpersist()


def _count(
    placed: DataFrame, areas: list[str], rows: Rows, unit: PrivacyUnit, *, is_dropping: bool
) -> SparkLeaves:
    """Trips per leaf, kept by the executors and checked."""
    counted = placed.groupBy(*areas).agg(F.try_sum("n").alias("n"))
    counted = counted.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        summary = rows.table.attempt(lambda: _summary(counted, areas))
        _check(summary, rows)
        _check_total(summary, rows.table)
        if not may_be_empty(unit):
            _check_not_empty(summary, rows.table, is_dropping=is_dropping)
    except BaseException:
        counted.unpersist()
        raise
    return SparkLeaves(counted.where(F.col("n") > 0).select(*areas, "n"), counted)


@dataclass(frozen=True)
class _Summary:
    """What the driver may know of the leaves before any noise: enough to refuse them.

    Attributes:
        flaws: number of rows of each flaw.
        total: sum of all counts, None if one of them is beyond 64 bits.
        has_rows: whether there are any leaves, zeros included.
    """

    flaws: dict[int, int]
    total: int | None
    has_rows: bool


def _summary(frame: DataFrame, areas: list[str]) -> _Summary:
    flaw = F.greatest(-F.col(areas[0]), F.lit(0)).alias("flaw")
    total = F.sum(F.col("n").cast("decimal(20,0)")).alias("total")
    beyond = F.count_if(F.col("n").isNull()).alias("beyond")
    found = {row["flaw"]: row for row in frame.groupBy(flaw).agg(total, beyond).collect()}
    fine = found.pop(0, None)
    is_beyond = fine is not None and fine["beyond"] > 0
    return _Summary(
        flaws={int(flaw): int(row["total"]) for flaw, row in found.items()},
        total=None if is_beyond else int(fine["total"] if fine else Decimal(0)),
        has_rows=fine is not None,
    )


def _check(summary: _Summary, rows: Rows) -> None:
    """Report the first kind of flaw there is, with the number of rows that have it."""
    if BAD_LINE in summary.flaws:
        n = summary.flaws[BAD_LINE]
        found = (
            f"1 line of {rows.table.label} has"
            if n == 1
            else f"{n:,} lines of {rows.table.label} have"
        )
        raise IngestError(
            f"{found} another number of cells than the header, or an open quote; mend the file"
        )
    if summary.flaws:
        flaw = Flaw(min(summary.flaws))
        lost = rows.describe_lost() if flaw is Flaw.UNPLACEABLE else ""
        raise IngestError(
            flaw_message(
                flaw,
                summary.flaws[flaw],
                label=rows.table.label,
                count_name=rows.count_name,
                lost=lost,
            )
        )


def _check_not_empty(summary: _Summary, table: Table, *, is_dropping: bool) -> None:
    if not summary.has_rows:
        raise IngestError(no_rows_message(table.label, is_dropping=is_dropping))
    if summary.total == 0:
        raise IngestError(all_zero_message(table.label))


def _check_total(summary: _Summary, table: Table) -> None:
    if summary.total is None or summary.total >= 2**63:
        raise IngestError(too_many_message(table.label))
    if summary.total > MAX_TOTAL:
        raise IngestError("the total number of trips is beyond 2^60; split the table into parts")
