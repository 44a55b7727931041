"""From a table to its leaves on a cluster: the SQL of `inftda.reading`, part by part.

Spark reads the files, moves rows and adds up. The same SQL as on one machine interprets the rows:
executors run it on their parts of the table, each in a DuckDB of its own, in memory. The result
for a part depends on its rows alone, so a task that runs twice gives the same rows, and equal seeds
give equal leaves on one machine and on many.

Messages of Spark and DuckDB quote rows, and Spark writes errors of tasks to its logs. This module
passes none of these messages on.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import StorageLevel, TaskContext
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

from inftda.errors import IngestError, quietly
from inftda.noise.bits import RandomSource
from inftda.privacy.unit import Unit
from inftda.reading import Columns, SqlQuery, TableFile, bounding
from inftda.reading import read_leaves as read_here
from inftda.reading.rows import Rows
from inftda.reading.sources import ARROW_INPUT, Source, files_at, label_of, not_utf8
from inftda.reading.truth import MAX_TOTAL, check_total
from inftda.reading.workspace import Workspace
from inftda.spark import tasks
from inftda.spark.session import SPARK_ERRORS, Shared, broadcast, is_local
from inftda.spark.tasks import Batches, Made
from inftda.tree import Axis, Cells
from inftda.util.stores import STORES, ZIP, is_remote
from inftda.util.tabular import PARQUET, format_of

T = TypeVar("T")
#: Function that executors apply to the rows of a partition.
Work = Callable[["Parts", Batches], Made]

#: Message of an executor about a flaw of its part.
NOT_UTF8: Final = "inftda: a cell is not UTF-8"
#: Schema of the output of `pack_leaves`.
_LEAF_CELLS: Final = f"flaw int, total decimal(38, 0), {tasks.CELLS}"


@dataclass(frozen=True, eq=False)
class SparkLeaves:
    """The confidential leaf counts: a row for each leaf with trips, which may repeat, in any order.

    The executors keep `frame`: cells (see `tasks`) with the columns area_0, area_1, ... (int32,
    numbers of the finest areas) and `n` (int64, above zero), until they `forget` it.
    """

    frame: DataFrame
    total: int
    forget: Callable[[], object]

    def __repr__(self) -> str:
        return "SparkLeaves(confidential)"


def read_leaves(  # noqa: PLR0913 - as on one machine
    session: SparkSession,
    source: Any,
    columns: Columns,
    axes: Sequence[Axis],
    *,
    unit: Unit,
    random_source: RandomSource,
    say: Callable[[str], object] | None = None,
) -> SparkLeaves:
    """Read trips or flows and count them per leaf, as `inftda.reading.read_leaves` does.

    The source is a Spark frame, a path, folder or glob of Parquet files wherever Spark reads them,
    the name of a table in Spark's catalogue, or a `TableFile`. All others are read by the driver:
    tables in memory, files of other formats, zip files, and all files where there is no cluster.
    """
    columns.check(axes, unit)
    if isinstance(source, SqlQuery):
        raise IngestError(
            "Spark cannot read trips from a SqlQuery; read the table with Spark (spark.read.jdbc) "
            "and give the frame, or leave out the engine"
        )
    table = open_table(session, source)
    if table is None:
        leaves = read_here(
            source, columns, axes, unit=unit,
            random_source=random_source, say=say,
        )  # fmt: skip
        return _ship(session, leaves)
    with Workspace(threads=1, can_spill=False) as workspace:
        rows = Rows.of(table.described(workspace), columns, axes, workspace)
    rows.tell(unit, say)
    key = b"" if columns.person is None else bounding.draw_key(random_source)
    with ExitStack() as stack:
        # Kept as long as the leaves are: Spark recomputes what is lost with an executor.
        parts = stack.enter_context(broadcast(session, Parts(rows, unit, key)))
        raw = table.select(rows.positions)
        counted = _counted(raw, rows, parts, unit).persist(StorageLevel.MEMORY_AND_DISK)
        stack.callback(counted.unpersist)
        found: Counter[int] = Counter()
        for row in attempt(table.label, counted.select("flaw", "total").collect):
            found[int(row["flaw"])] += int(row["total"])
        has_rows, total = 0 in found, found.pop(0, 0)

        def lost() -> list[Any]:
            return attempt(
                table.label, _map(raw, parts, Parts.lost, "axis int, code string").collect
            )

        rows.check(found, unit, lost, has_rows=has_rows, has_trips=total > 0)
        check_total(total)
        cells = counted.where(F.col(tasks.PACKED).isNotNull()).select(tasks.PACKED)
        if rows.is_compared and _may_repeat(cells, rows, table.label):
            rows.check_repeated(_repeated_lines(raw, parts, table.label), say)
        return SparkLeaves(cells, total, stack.pop_all().close)


def _ship(session: SparkSession, leaves: Cells) -> SparkLeaves:
    """Leaves of a table that was in the driver's memory."""
    names = [*tasks.area_names(len(leaves.areas)), "n"]
    table = pa.table([*leaves.areas, leaves.value], names=names)
    frame = session.createDataFrame(tasks.cell_table(table), tasks.CELLS)
    frame = frame.persist(StorageLevel.MEMORY_AND_DISK)
    return SparkLeaves(frame, int(leaves.value.sum()), frame.unpersist)


def _counted(raw: DataFrame, rows: Rows, parts: Shared["Parts"], unit: Unit) -> DataFrame:
    """Trips per leaf in cells, zeros and flaws included."""
    areas = ", ".join(f"{area} int" for area in rows.numbers)
    frame, work = raw, Parts.count
    if rows.has_person:
        personal = _map(raw, parts, Parts.gather, f"person string, {areas}, n bigint")
        # All rows of a person in one partition, one after the other.
        order = bounding.sort_keys(rows.numbers, rows.once(unit))
        frame, work = personal.repartition("person").sortWithinPartitions(*order), Parts.bound
    if rows.count_name is not None and not rows.has_person:
        # Flows hardly repeat in many parts, and are not worth a shuffle.
        return _map(frame, parts, lambda *given: pack_leaves(work(*given)), _LEAF_CELLS)
    counted = _map(frame, parts, work, f"{areas}, n bigint")
    most = F.lit(MAX_TOTAL + 1)
    capped = F.least(F.coalesce(F.try_sum("n"), most), most)  # NULL beyond 64 bits
    return (
        counted.groupBy(*rows.numbers).agg(capped.alias("n")).mapInArrow(pack_leaves, _LEAF_CELLS)
    )


def _may_repeat(cells: DataFrame, rows: Rows, label: str) -> bool:
    """Return whether a leaf is listed several times."""
    schema = ", ".join([*(f"{area} int" for area in rows.numbers), "n bigint"])
    leaves = cells.mapInArrow(tasks.unpack, schema).groupBy(*rows.numbers).count()
    return bool(attempt(label, leaves.where("count > 1").head))


def _repeated_lines(raw: DataFrame, parts: Shared["Parts"], label: str) -> dict[str, Any]:
    """Find repeated lines, as `Rows.repeated_lines` does."""
    lines = _map(raw, parts, Parts.lines, "line string, n bigint, same bigint")
    lines = lines.groupBy("line", "n").agg(F.sum("same").alias("same"))
    sums = lines.agg(F.sum(F.col("same") - 1), F.count("line"), F.count_distinct("line"))
    again, n_lines, n_keys = attempt(label, sums.collect)[0]
    return {"again": int(again or 0), "split": n_lines > n_keys}


def _map(frame: DataFrame, parts: Shared["Parts"], work: Work, schema: str) -> DataFrame:
    """Apply a function to the rows of a frame on the executors."""
    return frame.mapInArrow(lambda batches: work(parts.value, batches), schema)


# --- on executors


def pack_leaves(batches: Batches) -> Made:
    """Leaves in cells, and what the driver may know of them: flaws, and sums.

    A flawed row has minus the flaw as first area.
    """
    for table in tasks.gather(batches):
        flaw = np.maximum(-table.column(0).to_numpy(), 0)
        kinds, totals, cells = np.unique(flaw).tolist(), [], []
        for kind in kinds:
            rows = table.filter(pa.array(flaw == kind))
            # Sums of int64 may need more than 64 bits.
            totals.append(pc.sum(rows["n"].cast(pa.decimal128(38))).as_py())
            kept = rows.filter(pc.greater(rows["n"], 0))
            cells.append(tasks.pack_table(kept) if kind == 0 else None)
        yield pa.record_batch(
            {
                "flaw": pa.array(kinds, pa.int32()),
                "total": pa.array(totals, pa.decimal128(38)),
                tasks.PACKED: pa.array(cells, pa.binary()),
            }
        )


class PartError(Exception):
    """A part could not be read; the message quotes nothing of it."""


@dataclass(frozen=True)
class Parts:
    """Queries that executors run on parts of the table, which SQL calls `ARROW_INPUT`."""

    rows: Rows
    unit: Unit
    key: bytes = field(repr=False)

    def count(self, batches: Batches) -> Made:
        """Raw rows to leaves, which other parts may have as well."""
        return self._each(tasks.gather(batches), self.rows.count)

    def gather(self, batches: Batches) -> Made:
        """Raw rows to persons' trips, of which other parts may have more."""
        columns = ", ".join(["CAST(person AS VARCHAR) AS person", *self.rows.numbers, "n"])
        trips = bounding.gathered(self.rows.placed(), self.rows.numbers)
        sql = f"SELECT {columns} FROM ({trips})"  # noqa: S608 - our own names
        return self._each(tasks.gather(batches), lambda workspace: workspace.fetch(sql))

    def bound(self, batches: Batches) -> Made:
        """Persons' trips, sorted by `bounding.sort_keys` and all of each, to leaves."""
        work = partial(
            bounding.bounded, areas=self.rows.numbers, once=self.rows.once(self.unit),
            unit=self.unit, key=self.key,
        )  # fmt: skip
        for part in bounding.by_person(batches):
            yield from _silent(partial(work, part)).to_batches()

    def lost(self, batches: Batches) -> Made:
        """Raw rows to the first few unknown codes of each part."""
        sql = self.rows.lost()
        return self._each(tasks.gather(batches), lambda workspace: workspace.fetch(sql))

    def lines(self, batches: Batches) -> Made:
        """Raw rows to the lines of each part, of which other parts may have more."""
        sql = self.rows.lines()
        return self._each(tasks.gather(batches), lambda workspace: workspace.fetch(sql))

    def _each(self, parts: Iterable[pa.Table], fetch: Callable[[Workspace], pa.Table]) -> Made:
        """Run a query on each part."""
        context = TaskContext.get()
        threads = context.cpus() if context else 1
        with Workspace(threads=threads, can_spill=False) as workspace:
            self.rows.register(workspace)
            for part in parts:
                workspace.register(ARROW_INPUT, _checked(part))
                yield from _silent(partial(fetch, workspace)).to_batches()


def _silent(work: Callable[[], pa.Table]) -> pa.Table:
    """Suppress messages of DuckDB and Arrow, which may quote cells."""
    return quietly(
        work,
        lambda problem: PartError(f"a part of the table cannot be read ({type(problem).__name__})"),
        (duckdb.Error, pa.ArrowException, ValueError, RuntimeError),
    )


def _checked(part: pa.Table) -> pa.Table:
    """A part without bytes that are not text."""
    quietly(partial(part.validate, full=True), lambda _: PartError(NOT_UTF8), pa.ArrowInvalid)
    return part


# --- input tables


@dataclass(frozen=True)
class SparkTable:
    """Input table in Spark: columns named by position, c0, c1, ..."""

    label: str
    names: tuple[str, ...]
    frame: DataFrame

    @classmethod
    def of(cls, frame: DataFrame, label: str) -> "SparkTable":
        """A frame whose columns have their own names."""
        names = tuple(frame.columns)
        return cls(label, names, frame.toDF(*(f"c{i}" for i in range(len(names)))))

    def select(self, positions: Sequence[int]) -> DataFrame:
        """Some of the columns, called c0, c1, ..."""
        return self.frame.select(
            *(F.col(f"c{at}").alias(f"c{i}") for i, at in enumerate(positions))
        )

    def described(self, workspace: Workspace) -> Source:
        """The table as DuckDB sees it on an executor, without its rows."""

        def select(positions: Sequence[int]) -> str:
            empty = attempt(self.label, self.select(positions).limit(0).toArrow)
            workspace.register(ARROW_INPUT, empty)
            return f"FROM {ARROW_INPUT}"

        unread = f"cannot read {self.label}"
        return Source(self.label, self.names, select, lambda _: unread)


def attempt(label: str, action: Callable[[], T]) -> T:
    """Do something that reads the table called `label`; Spark's own error quotes rows."""
    return quietly(action, lambda problem: IngestError(_explain(label, problem)), SPARK_ERRORS)


def _explain(label: str, problem: Exception) -> str:
    said = str(problem)
    if isinstance(problem, AnalysisException):
        said = str(problem.getCondition())
    if said.startswith(("PATH_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND")):
        return f"there is no file or table {label}; check the path"
    if said.startswith("UNABLE_TO_INFER_SCHEMA"):
        return (
            f"there is no table {label}, and no Parquet file in a folder of that name; check the "
            "path, or read other formats with Spark, all columns as text, and give the frame"
        )
    if NOT_UTF8 in said:
        return not_utf8(label)
    return (
        f"Spark cannot read {label}: it is damaged or not readable, or has columns that Spark "
        "does not know or whose types differ from file to file; files that are read as one table "
        "need the same types (Spark's log has the reason, and may quote rows)"
    )


def open_table(session: SparkSession, source: Any) -> SparkTable | None:
    """A source as a frame; None if it is read on the driver."""
    if isinstance(source, DataFrame):
        return SparkTable.of(source, "the table")
    path = source.path if isinstance(source, TableFile) else source
    if not isinstance(path, str | Path):
        return None
    name, label = str(path), label_of(path)
    kind = format_of(name)
    if kind is None and not name.lower().endswith(ZIP):
        # A path is not a table name, and Spark's parser says so with an error.
        with suppress(*SPARK_ERRORS):
            if session.catalog.tableExists(name):
                return SparkTable.of(session.table(name), label)
    files = [] if is_remote(name) else files_at(name)
    kinds = {format_of(file.name) for file in files} or {kind}
    is_elsewhere = name.startswith("https:") or name.lower().endswith(ZIP)
    if is_elsewhere or not all(one is None or one.is_read_by_spark for one in kinds):
        return None
    # Spark would take every row apart to hand it to Python, and without a cluster for nothing. Nor
    # does it bring what reads stores.
    is_here = files or name.startswith(tuple(f"{one}://" for one in STORES))
    if is_here and is_local(session.sparkContext.master):
        return None
    if isinstance(source, TableFile):
        source.check(PARQUET)
    # All files are asked for their types: otherwise Spark takes those of one, and what it makes
    # of cells of another type is anybody's guess.
    reader = session.read.option("mergeSchema", True)
    return SparkTable.of(attempt(label, lambda: reader.parquet(name)), label)
