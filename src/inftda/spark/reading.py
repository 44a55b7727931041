"""From a table to its leaves on a cluster: the SQL of `inftda.reading`, part by part.

Spark reads the files, moves rows and adds up; what a row means is decided by the same SQL as
on one machine, which executors run on their parts of the table, each in a DuckDB of its own, in
memory. What a part gives depends on its rows alone, so a task that runs twice gives the same, and
equal seeds give equal leaves on one machine and on many.

Messages of Spark and DuckDB quote rows, and Spark writes errors of tasks to its logs: none of
these messages gets out of here.
"""

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
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
from pyspark.sql.types import StringType, StructField, StructType

from inftda.errors import IngestError
from inftda.noise.bits import RandomSource
from inftda.privacy.unit import Unit
from inftda.reading import Columns, SqlQuery, TableFile, bounding
from inftda.reading import read_leaves as read_here
from inftda.reading.rows import Rows
from inftda.reading.sources import ARROW_INPUT, Source, label_of, not_utf8
from inftda.reading.workspace import Workspace
from inftda.spark import tasks
from inftda.spark.session import SPARK_ERRORS, Parcel, is_local, parcel
from inftda.spark.tasks import Batches, Made
from inftda.stores import STORES, ZIP
from inftda.tables import CSV_ENDINGS, EXCEL_ENDINGS, PARQUET_ENDINGS, split_header
from inftda.tree import Axis, Impossible
from inftda.truth import MAX_TOTAL, Leaves, check_total

T = TypeVar("T")
#: What executors do to the rows of a partition.
Work = Callable[["Parts", Batches], Made]

#: Column of a CSV line that does not have as many cells as the header.
MALFORMED: Final = "malformed"
#: How a part says what is wrong with it.
NOT_UTF8: Final = "inftda: a cell is not UTF-8"
BAD_LINE: Final = "inftda: a line is malformed"
#: A character that stands in no CSV file, to read a line as one cell.
_NO_SEPARATOR: Final = "\x01"
#: What `pack_leaves` gives.
_LEAF_CELLS: Final = f"flaw int, total decimal(38, 0), {tasks.CELLS}"
_ENCODINGS: Final = {"utf-8": "UTF-8", "utf-16": "UTF-16", "latin-1": "ISO-8859-1"}


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
    impossible: Impossible | None = None,
    say: Callable[[str], object] | None = None,
) -> SparkLeaves:
    """Read trips or flows and count them per leaf; see `inftda.reading.read_leaves`.

    The source is a Spark frame, a path, folder or glob of Parquet or CSV files wherever Spark
    reads them, the name of a table in Spark's catalogue, or a `TableFile`. What only the driver can
    read is read there: tables in memory, workbooks, matrices, zip files, files with lines above
    their header, and all files where there is no cluster.
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
            source, columns, axes, unit=unit, impossible=impossible, random_source=random_source,
            say=say,
        )  # fmt: skip
        return _ship(session, leaves)
    with Workspace(threads=1, can_spill=False) as workspace:
        rows = Rows.of(table.described(workspace), columns, axes, workspace, impossible)
    if say is not None:
        say(rows.words)
    secret = "" if columns.person is None else bounding.draw_secret(random_source)
    with ExitStack() as stack:
        # Kept as long as the leaves are: Spark recomputes what is lost with an executor.
        parts = stack.enter_context(parcel(session, Parts(rows, unit, secret)))
        raw = table.select(rows.positions)
        counted = _counted(raw, rows, parts).persist(StorageLevel.MEMORY_AND_DISK)
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
        return SparkLeaves(cells, total, stack.pop_all().close)


def _ship(session: SparkSession, leaves: Leaves) -> SparkLeaves:
    """Leaves of a table that was in the driver's memory."""
    names = [*tasks.area_names(len(leaves.areas)), "n"]
    table = pa.table([*leaves.areas, leaves.counts], names=names)
    frame = session.createDataFrame(tasks.cell_table(table), tasks.CELLS)
    frame = frame.persist(StorageLevel.MEMORY_AND_DISK)
    return SparkLeaves(frame, int(leaves.counts.sum()), frame.unpersist)


def _counted(raw: DataFrame, rows: Rows, parts: Parcel["Parts"]) -> DataFrame:
    """Trips per leaf in cells, zeros and flaws included."""
    areas = ", ".join(f"{area} int" for area in rows.numbers)
    frame, work = raw, Parts.count
    if rows.has_person:
        personal = _map(raw, parts, Parts.gather, f"person string, {areas}, n bigint")
        # All rows of a person in one partition, one after the other.
        frame, work = personal.repartition("person").sortWithinPartitions("person"), Parts.bound
    if rows.count_name is not None and not rows.has_person:
        # Flows hardly repeat in many parts, and are not worth a shuffle.
        return _map(frame, parts, lambda *given: pack_leaves(work(*given)), _LEAF_CELLS)
    counted = _map(frame, parts, work, f"{areas}, n bigint")
    most = F.lit(MAX_TOTAL + 1)
    capped = F.least(F.coalesce(F.try_sum("n"), most), most)  # NULL beyond 64 bits
    return (
        counted.groupBy(*rows.numbers).agg(capped.alias("n")).mapInArrow(pack_leaves, _LEAF_CELLS)
    )


def _map(frame: DataFrame, parts: Parcel["Parts"], work: Work, schema: str) -> DataFrame:
    """What executors make of the rows of a frame."""
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
    """A part could not be read; without a word of what is in it."""


@dataclass(frozen=True)
class Parts:
    """What executors do with parts of the table, which SQL calls `ARROW_INPUT`."""

    rows: Rows
    unit: Unit
    secret: str = field(repr=False)

    def count(self, batches: Batches) -> Made:
        """Raw rows to leaves, which other parts may have as well."""
        return self._each(tasks.gather(batches), self.rows.count)

    def gather(self, batches: Batches) -> Made:
        """Raw rows to persons' trips, of which other parts may have more."""
        areas = self.rows.numbers
        columns = ", ".join(["CAST(person AS VARCHAR) AS person", *areas, "n"])
        trips = bounding.gathered(self.rows.placed(), areas, self.unit)
        sql = f"SELECT {columns} FROM ({trips})"  # noqa: S608 - our own names
        return self._each(tasks.gather(batches), lambda workspace: workspace.fetch(sql))

    def bound(self, batches: Batches) -> Made:
        """Persons' trips, sorted by person and all of each, to leaves."""
        fetch = partial(
            bounding.fetch_bounded, f"FROM {ARROW_INPUT}", self.rows.numbers,
            once=self.rows.once(self.unit), unit=self.unit, secret=self.secret,
        )  # fmt: skip
        return self._each(by_person(batches), lambda workspace: fetch(workspace=workspace))

    def lost(self, batches: Batches) -> Made:
        """Raw rows to the first few unknown codes of each part."""
        sql = self.rows.lost()
        return self._each(tasks.gather(batches), lambda workspace: workspace.fetch(sql))

    def _each(self, parts: Iterable[pa.Table], fetch: Callable[[Workspace], pa.Table]) -> Made:
        """What a query gives for each part."""
        context = TaskContext.get()
        threads = context.cpus() if context else 1
        with _quietly(), Workspace(threads=threads, can_spill=False) as workspace:
            self.rows.register(workspace)
            for part in parts:
                workspace.register(ARROW_INPUT, _checked(part))
                yield from fetch(workspace).to_batches()


@contextmanager
def _quietly() -> Iterator[None]:
    """Whatever DuckDB or Arrow say of a cell stays here."""
    try:
        yield
    except (duckdb.Error, pa.ArrowException, ValueError, RuntimeError) as problem:
        kind = type(problem).__name__
        raise PartError(f"a part of the table cannot be read ({kind})") from None


def _checked(part: pa.Table) -> pa.Table:
    """A part without lines that are malformed, and without bytes that are not text."""
    if MALFORMED in part.column_names:
        if part[MALFORMED].null_count < part.num_rows:
            raise PartError(BAD_LINE)
        part = part.drop_columns(MALFORMED)
    try:
        part.validate(full=True)
    except pa.ArrowInvalid:
        raise PartError(NOT_UTF8) from None
    return part


def by_person(batches: Batches) -> Iterator[pa.Table]:
    """Parts that no person has rows in two of; batches are sorted by `person`, nulls first."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(part.num_rows for part in held) < tasks.CELL_ROWS:
            continue
        table = pa.Table.from_batches(held)
        last = table["person"][-1]
        # Rows of nobody are flaws, which may be cut anywhere.
        cut = pc.index(table["person"], last).as_py() if last.is_valid else table.num_rows
        if cut:
            yield table.slice(0, cut)
            held = table.slice(cut).to_batches()
    if held:
        yield pa.Table.from_batches(held)


# --- what is read


@dataclass(frozen=True)
class SparkTable:
    """What is read, in Spark: columns named by position, c0, c1, ...; of CSV also `MALFORMED`."""

    label: str
    names: tuple[str, ...]
    frame: DataFrame

    @classmethod
    def of(cls, frame: DataFrame, label: str) -> "SparkTable":
        """A frame whose columns have their own names."""
        names = tuple(frame.columns)
        return cls(label, names, frame.toDF(*(f"c{i}" for i in range(len(names)))))

    @property
    def is_csv(self) -> bool:
        """Whether its names are the first line of a file."""
        return MALFORMED in self.frame.columns

    def select(self, positions: Sequence[int]) -> DataFrame:
        """Some of the columns, called c0, c1, ..., and `MALFORMED` if it is there."""
        chosen = [F.col(f"c{at}").alias(f"c{i}") for i, at in enumerate(positions)]
        return self.frame.select(*chosen, *([MALFORMED] if self.is_csv else []))

    def described(self, workspace: Workspace) -> Source:
        """The table as DuckDB sees it on an executor, without its rows."""

        def select(positions: Sequence[int]) -> str:
            empty = attempt(self.label, self.select(positions).limit(0).toArrow)
            workspace.register(ARROW_INPUT, empty.select([f"c{i}" for i in range(len(positions))]))
            return f"FROM {ARROW_INPUT}"

        unread = f"cannot read {self.label}"
        return Source(self.label, self.names, select, lambda _: unread, has_header=self.is_csv)


def attempt(label: str, action: Callable[[], T]) -> T:
    """Do something that reads the table called `label`.

    Spark's own error quotes rows, so it is neither passed on nor kept as context.
    """
    try:
        return action()
    except AnalysisException as problem:
        said = str(problem.getCondition())
    except SPARK_ERRORS as problem:
        said = str(problem)
    if said.startswith(("PATH_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND")):
        raise IngestError(f"there is no file or table {label}; check the path")
    if NOT_UTF8 in said:
        raise IngestError(not_utf8(label))
    if BAD_LINE in said:
        raise IngestError(
            f"a line of {label} has a different number of cells from the header, or an open "
            "quote; correct the file"
        )
    raise IngestError(
        f"Spark cannot read {label}: it is damaged or not readable, or has columns that Spark "
        "does not know or whose types differ from file to file; files that are read as one table "
        "need the same types (Spark's log has the reason, and may quote rows)"
    )


def open_table(session: SparkSession, source: Any) -> SparkTable | None:  # noqa: PLR0911 - many kinds
    """A source as a frame; None if it is read on the driver."""
    if isinstance(source, DataFrame):
        return SparkTable.of(source, "the table")
    path = source.path if isinstance(source, TableFile) else source
    if not isinstance(path, str | Path):
        return None
    name, label = str(path), label_of(path)
    is_said = isinstance(source, TableFile) and not source.is_plain
    if is_said or name.startswith("https:") or name.lower().endswith((ZIP, *EXCEL_ENDINGS)):
        return None
    kind = "CSV" if isinstance(source, TableFile) else _kind(name)
    if kind is None:
        # A path is not a table name, and Spark's parser says so with an error.
        with suppress(*SPARK_ERRORS):
            if session.catalog.tableExists(name):
                return SparkTable.of(session.table(name), label)
    # Spark would take every row apart to hand it to Python, and without a cluster for nothing. Nor
    # does it bring what reads stores.
    is_here = Path(name).exists() or name.startswith(tuple(f"{one}://" for one in STORES))
    if is_here and is_local(session.sparkContext.master):
        return None
    if (kind or _kind_inside(session, name)) == "CSV":
        return _from_csv(session, source if isinstance(source, TableFile) else TableFile(name))
    # All files are asked for their types: otherwise Spark takes those of one, and what it makes
    # of cells of another type is anybody's guess.
    reader = session.read.option("mergeSchema", True)
    return SparkTable.of(attempt(label, lambda: reader.parquet(name)), label)


def _kind(name: str) -> str | None:
    ending = name.lower().rstrip("/")
    if ending.endswith(PARQUET_ENDINGS):
        return "Parquet"
    return "CSV" if ending.endswith(CSV_ENDINGS) else None


def _kind_inside(session: SparkSession, folder: str) -> str:
    """What kind of files a folder or glob has; they are listed, and none is read."""
    lister = session.read.format("binaryFile").option("recursiveFileLookup", True)
    files: list[str] = []
    with suppress(*SPARK_ERRORS):
        files = lister.load(folder).inputFiles()
    names = [url.rsplit("/", 1)[-1] for url in files]
    kinds = {_kind(name) for name in names if not name.startswith((".", "_"))} - {None}
    if len(kinds) > 1:
        raise IngestError(f"{folder!r} holds both CSV and Parquet files; keep one")
    if not kinds:
        raise IngestError(
            f"there is no table {folder!r}, and no CSV or Parquet file in a folder of that name; "
            "check the path"
        )
    return str(kinds.pop())


def _from_csv(session: SparkSession, source: TableFile) -> SparkTable:
    """All cells as text; nothing is guessed but the separator, from the header."""
    path, label = str(source.path), label_of(source.path)
    header = _read_header(session, source, label)
    names, separator = split_header(header, source.delimiter)
    if len({name.casefold() for name in names}) < len(names):
        # Not which: without a header, the first line is somebody's row.
        raise IngestError(
            f"{label} has two columns of the same name; rename one of them, or add a header if "
            "there is none"
        )
    reader = session.read.options(
        header=True,
        sep=separator,
        encoding=_ENCODINGS[source.encoding or "utf-8"],
        quote='"',
        escape='"',
        ignoreLeadingWhiteSpace=False,
        ignoreTrailingWhiteSpace=False,
        # Every file must have this header, and every line as many cells.
        enforceSchema=False,
        columnPruning=False,
        mode="PERMISSIVE",
        columnNameOfCorruptRecord=MALFORMED,
    )
    # Spark compares headers with these names, blanks and all.
    written = next(csv.reader([header], delimiter=separator))
    fields = [StructField(name, StringType()) for name in [*written, MALFORMED]]
    frame = attempt(label, lambda: reader.schema(StructType(fields)).csv(path))
    return SparkTable(
        label, tuple(names), frame.toDF(*(f"c{i}" for i in range(len(names))), MALFORMED)
    )


def _read_header(session: SparkSession, source: TableFile, label: str) -> str:
    """The first line of the first file."""
    lines = session.read.options(
        sep=_NO_SEPARATOR,
        quote="",
        encoding=_ENCODINGS[source.encoding or "utf-8"],
        maxCharsPerColumn=1 << 20,
    )
    row = attempt(label, lambda: lines.csv(str(source.path)).head())
    if row is None or not (row[0] or "").strip():
        raise IngestError(f"{label} is empty; give a table with a header and rows")
    return str(row[0]).lstrip("\ufeff")
