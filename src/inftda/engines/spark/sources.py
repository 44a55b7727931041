"""The confidential table as a Spark frame: frames, files, tables of the catalogue.

Columns are found by the names as they are written and addressed by position, as on one
machine. Spark's own messages quote rows, so none is ever passed on.
"""

import csv
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial, reduce
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeVar
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it
from pyspark.sql.types import StringType, StructField, StructType

from inftda.engines.spark.files import LocalParquet, find_parquet, list_files
from inftda.engines.spark.packing import Batches
from inftda.engines.spark.parts import NOT_UTF8
from inftda.engines.spark.session import SPARK_ERRORS
from inftda.errors import IngestError
from inftda.reading.csv_file import CsvFile, refuse_parquet
from inftda.reading.flaws import Flaw
from inftda.reading.layouts import check_types, locate
from inftda.reading.sources import ARROW_INPUT, RAW_FLAW, Input, Relation, Use, label_of, not_utf8
from inftda.reading.workspace import Workspace
from inftda.tables import CSV_ENDINGS, PARQUET_ENDINGS, split_header

T = TypeVar("T")

#: Column of a CSV line that does not have as many cells as the header.
MALFORMED: Final = "malformed"
#: A character that stands in no CSV file, to read a line as one cell.
_NO_SEPARATOR: Final = "\x01"
_ENCODINGS: Final = {"utf-8": "UTF-8", "utf-16": "UTF-16", "latin-1": "ISO-8859-1"}


class Raw(NamedTuple):
    """Rows on the way to executors.

    Attributes:
        frame: the rows, or what to read them by.
        open: called on an executor with the frame's batches: the columns in use by their
            aliases, and `RAW_FLAW` for lines that are malformed.
    """

    frame: DataFrame
    open: Callable[[Batches], Batches]


def as_they_are(batches: Batches) -> Batches:
    """Rows that Spark has read."""
    return batches


@dataclass(frozen=True)
class Layout:
    """Rows with the same columns: a frame, or files that were written alike.

    Attributes:
        file: the first of the files, for messages.
        names: the columns as they are written.
        frame: the rows, columns named by position: c0, c1, ...; for CSV also `MALFORMED`.
    """

    file: str
    names: tuple[str, ...]
    frame: DataFrame

    def select(self, uses: Sequence[Use]) -> DataFrame:
        """The columns in use by their aliases, and `RAW_FLAW` for lines that are malformed."""
        columns = [F.col(f"c{use.position}").alias(use.alias) for use in uses]
        if MALFORMED in self.frame.columns:
            flaw = F.when(F.col(MALFORMED).isNotNull(), int(Flaw.LINE)).otherwise(0)
            columns.append(flaw.cast("tinyint").alias(RAW_FLAW))
        return self.frame.select(*columns)


@dataclass(frozen=True)
class SparkTable:
    """What is read, in Spark.

    Attributes:
        label: what to call it in messages.
        kind: what it is made of.
        layouts: its rows; several only for files that were not written alike.
    """

    label: str
    kind: Literal["csv", "parquet", "table"]
    layouts: tuple[Layout, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Its columns as they are written."""
        return self.layouts[0].names

    def select(self, uses: Sequence[Use]) -> DataFrame:
        """The columns in use by their aliases, and `RAW_FLAW` for lines that are malformed."""
        return reduce(DataFrame.unionAll, self._parts(uses))

    def _parts(self, uses: Sequence[Use]) -> list[DataFrame]:
        first = self.layouts[0].file
        return [
            layout.select(locate(uses, layout.names, layout.file, first)) for layout in self.layouts
        ]

    def raw(self, uses: Sequence[Use]) -> Raw:
        """The columns in use on the way to an executor."""
        return Raw(self.select(uses), as_they_are)

    def described(self, workspace: Workspace) -> Input:
        """The table as DuckDB sees it on an executor, without its rows."""

        def types(part: DataFrame) -> tuple[str, ...]:
            workspace.register(ARROW_INPUT, self.attempt(part.limit(0).toArrow))
            return workspace.types(f"FROM {ARROW_INPUT}")

        def select(uses: Sequence[Use]) -> Relation:
            if len(self.layouts) > 1:
                found = [types(part)[: len(uses)] for part in self._parts(uses)]
                files = [layout.file for layout in self.layouts]
                check_types(uses, list(zip(files, found, strict=True)))
            types(self.select(uses))
            return Relation(f"FROM {ARROW_INPUT}", {})

        return Input(self.label, self.kind, self.names, select)

    def attempt(self, action: Callable[[], T]) -> T:
        """Do something that reads the table; see `attempt`."""
        return attempt(self.label, action)


@dataclass(frozen=True)
class LocalTable:
    """Parquet files of this machine, which Spark does not read.

    Attributes:
        label: what to call them in messages.
        session: where they are read.
        files: the files.
    """

    label: str
    session: SparkSession
    files: LocalParquet

    @property
    def names(self) -> tuple[str, ...]:
        """The columns as they are written."""
        return tuple(self.files.schema.names)

    def raw(self, uses: Sequence[Use]) -> Raw:
        """The columns in use on the way to an executor, which reads them."""
        n_tasks = len(self.files.tasks)
        return Raw(self.session.range(0, n_tasks, 1, n_tasks), partial(self.files.rows, uses))

    def described(self, workspace: Workspace) -> Input:
        """The table as DuckDB sees it on an executor, without its rows."""

        def select(uses: Sequence[Use]) -> Relation:
            workspace.register(ARROW_INPUT, self.files.empty(uses))
            return Relation(f"FROM {ARROW_INPUT}", {})

        return Input(self.label, "parquet", self.names, select)

    def attempt(self, action: Callable[[], T]) -> T:
        """Do something that reads the table; see `attempt`."""
        return attempt(self.label, action)


def attempt(label: str, action: Callable[[], T]) -> T:
    """Do something that reads the table called `label`.

    Raises:
        IngestError: Spark could not. Its own error quotes rows, so it is neither passed
            on nor kept as the context of this one.
    """
    try:
        return action()
    except AnalysisException as problem:
        condition, is_text = str(problem.getCondition()), True
    except SPARK_ERRORS as problem:
        condition, is_text = "", NOT_UTF8 not in str(problem)
    if condition.startswith(("PATH_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND")):
        raise IngestError(f"there is no file or table {label}; check the path")
    if not is_text:
        raise IngestError(not_utf8(label))
    raise IngestError(
        f"Spark cannot read {label}: it is damaged or not readable, or has columns that Spark "
        "does not know or that differ from file to file; try to read it with Spark alone (Spark's "
        "log has the reason, and may quote rows)"
    )


def open_table(session: SparkSession, source: Any) -> SparkTable | LocalTable | None:
    """Make a source a frame, if it is one of Spark's; None if it is in the driver's memory.

    Args:
        session: where to read it.
        source: a Spark frame, a path, folder or glob of Parquet or CSV files wherever Spark
            reads them, the name of a table in Spark's catalogue, or a `CsvFile`.

    Raises:
        IngestError: it cannot be read.
    """
    if isinstance(source, DataFrame):
        return _positional(source, label="the table", kind="table")
    if isinstance(source, CsvFile):
        return _from_csv(session, source)
    if isinstance(source, str | Path):
        return _from_name(session, str(source))
    return None


def _positional(frame: DataFrame, *, label: str, kind: Literal["parquet", "table"]) -> SparkTable:
    if not frame.columns:
        raise IngestError(f"{label} has no columns; give a table with a row per trip or flow")
    return SparkTable(label, kind, (_layout(frame, label),))


def _layout(frame: DataFrame, file: str) -> Layout:
    names = tuple(frame.columns)
    return Layout(file, names, frame.toDF(*(f"c{i}" for i in range(len(names)))))


def _from_name(session: SparkSession, name: str) -> SparkTable | LocalTable:
    label = label_of(name)
    kind = _kind(name)
    if kind != "csv" and (files := find_parquet(session, name)) is not None:
        return LocalTable(label, session, files)
    if kind is None and attempt(label, lambda: _is_table(session, name)):
        return _positional(session.table(name), label=label, kind="table")
    if kind is None:
        kind = _kind_inside(session, name)
    if kind == "csv":
        return _from_csv(session, CsvFile(name))
    return _from_parquet(session, name, label)


def _from_parquet(session: SparkSession, name: str, label: str) -> SparkTable:
    """All files are asked for their types.

    Without that Spark takes those of one, and what it makes of cells of another type is
    anybody's guess.
    """
    with suppress(*SPARK_ERRORS):
        frame = session.read.option("mergeSchema", True).parquet(name)
        return _positional(frame, label=label, kind="parquet")
    # They differ in some column, perhaps in one that nobody uses.
    return SparkTable(label, "parquet", _layouts(session, name, label))


def _layouts(session: SparkSession, name: str, label: str) -> tuple[Layout, ...]:
    """Parquet files in groups that were written alike.

    Raises:
        IngestError: one cannot be read.
    """
    whole = session.read.format("binaryFile")  # to list files; nothing is read
    files = attempt(label, lambda: sorted(whole.load(name).inputFiles()))
    # Columns in folder names (origin=001) are those below the folder that was named.
    reader = session.read.option("basePath", _before_wildcards(name))
    groups: dict[str, list[str]] = {}
    for file in files:
        one = attempt(repr(_file_name(file)), partial(reader.parquet, file))
        groups.setdefault(one.schema.json(), []).append(file)
    return tuple(_layout(reader.parquet(*some), _file_name(some[0])) for some in groups.values())


def _before_wildcards(name: str) -> str:
    """The folder that all files of a glob are in."""
    whole = list(takewhile(lambda part: not set(part) & set("*?[{"), name.split("/")))
    return "/".join(whole)


def _file_name(url: str) -> str:
    return unquote(url.rsplit("/", 1)[-1])


def _kind(name: str) -> str | None:
    ending = name.lower().rstrip("/")
    if ending.endswith(PARQUET_ENDINGS):
        return "parquet"
    return "csv" if ending.endswith(CSV_ENDINGS) else None


def _is_table(session: SparkSession, name: str) -> bool:
    # A path is not a table name, and Spark's parser says so with an error.
    with suppress(*SPARK_ERRORS):
        return session.catalog.tableExists(name)
    return False


def _kind_inside(session: SparkSession, folder: str) -> str:
    files = [Path(file) for file in attempt(label_of(folder), lambda: list_files(session, folder))]
    kinds = {_kind(file.name) for file in files if not file.name.startswith((".", "_"))} - {None}
    if len(kinds) > 1:
        raise IngestError(f"{folder!r} holds both CSV and Parquet files; keep one kind")
    if not kinds:
        raise IngestError(
            f"there is no table {folder!r}, and no CSV or Parquet file in a folder of that name; "
            "check the path"
        )
    return str(kinds.pop())


def _from_csv(session: SparkSession, source: CsvFile) -> SparkTable:
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
        encoding=_ENCODINGS[source.encoding],
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
    fields = [StructField(name, StringType()) for name in written]
    reader = reader.schema(StructType([*fields, StructField(MALFORMED, StringType())]))
    frame = attempt(label, lambda: reader.csv(path))
    frame = frame.toDF(*(f"c{i}" for i in range(len(names))), MALFORMED)
    return SparkTable(label, "csv", (Layout(label, tuple(names), frame),))


def _read_header(session: SparkSession, source: CsvFile, label: str) -> str:
    """The first line of the first file."""
    lines = session.read.options(
        sep=_NO_SEPARATOR, quote="", encoding=_ENCODINGS[source.encoding], maxCharsPerColumn=1 << 20
    )
    row = attempt(label, lambda: lines.csv(str(source.path)).head())
    if row is None or not (row[0] or "").strip():
        raise IngestError(f"{label} is empty; give a table with a header and rows")
    refuse_parquet(row[0], label)
    return str(row[0]).lstrip("\ufeff")
