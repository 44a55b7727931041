"""The confidential table as a Spark frame: frames, files, catalogue tables, tables in memory.

Columns are found by the names as they are written and addressed by position, as on one
machine. Spark's own messages quote rows, so none is ever passed on.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from inftda.engines.spark.files import list_files
from inftda.engines.spark.session import SPARK_ERRORS
from inftda.errors import IngestError
from inftda.ingest.csv_file import CsvFile, refuse_parquet, split_header
from inftda.ingest.sources import Column, Input
from inftda.tables import CSV_ENDINGS, PARQUET_ENDINGS

T = TypeVar("T")

#: Column of a CSV line that does not have as many cells as the header.
MALFORMED: Final = "malformed"
#: A character that stands in no CSV file, to read a line as one cell.
_NO_SEPARATOR: Final = "\x01"
_ENCODINGS: Final = {"utf-8": "UTF-8", "utf-16": "UTF-16", "latin-1": "ISO-8859-1"}


@dataclass(frozen=True)
class Table:
    """What is read, in Spark.

    Attributes:
        described: its name, column names and types, for finding columns and for messages.
        frame: its rows, columns named by position: c0, c1, ...; for CSV also `MALFORMED`.
    """

    described: Input
    frame: DataFrame

    @property
    def label(self) -> str:
        """What to call it in messages."""
        return self.described.label

    @property
    def is_csv(self) -> bool:
        """Whether lines may be malformed."""
        return MALFORMED in self.frame.columns

    def column(self, name: str, *, role: str) -> Column:
        """The column with this name.

        Raises:
            IngestError: there is none, or more than one.
        """
        return self.described.column(name, role=role)

    def attempt(self, action: Callable[[], T]) -> T:
        """Do something that reads the table.

        Raises:
            IngestError: Spark could not. Its own error quotes rows, so it is neither passed
                on nor kept as the context of this one.
        """
        return attempt(self.label, action)


def attempt(label: str, action: Callable[[], T]) -> T:
    """Do something that reads the table called `label`; see `Table.attempt`."""
    try:
        return action()
    except AnalysisException as problem:
        condition = str(problem.getCondition())
    except SPARK_ERRORS:
        condition = ""
    if condition.startswith(("PATH_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND")):
        raise IngestError(f"there is no file or table {label}; check the path")
    raise IngestError(
        f"Spark cannot read {label}: it is damaged, may not be read, or its files differ in their "
        "columns; try to read it with Spark alone (Spark's log has the reason, and may quote rows)"
    )


def open_table(session: SparkSession, source: Any) -> Table:
    """Make any source a frame.

    Args:
        session: where to read it.
        source: a Spark frame, a path, folder or glob of Parquet or CSV files wherever Spark
            reads them, the name of a table in Spark's catalogue, a `CsvFile`, or a pandas,
            polars or pyarrow table.

    Raises:
        IngestError: it cannot be read.
    """
    if isinstance(source, DataFrame):
        return _positional(source, label="the table")
    if isinstance(source, CsvFile):
        return _from_csv(session, source)
    if isinstance(source, str | Path):
        return _from_name(session, str(source))
    if isinstance(source, Mapping) or hasattr(source, "__arrow_c_stream__"):
        return _from_arrow(session, source)
    raise IngestError(
        f"Spark cannot read trips from a {type(source).__name__}; give a Spark frame, a path, the "
        "name of a table, or a pandas, polars or pyarrow table"
    )


def _positional(frame: DataFrame, *, label: str) -> Table:
    names = tuple(frame.columns)
    if not names:
        raise IngestError(f"{label} has no columns; give a table with a row per trip or flow")
    types = tuple(field.dataType.simpleString() for field in frame.schema.fields)
    described = Input(label, "table", "", names, types)
    return Table(described, frame.toDF(*(f"c{i}" for i in range(len(names)))))


def _from_name(session: SparkSession, name: str) -> Table:
    label = repr(Path(name).name)
    kind = _kind(name)
    if kind is None and attempt(label, lambda: _is_table(session, name)):
        return _positional(session.table(name), label=label)
    if kind is None:
        kind = _kind_inside(session, name)
    if kind == "csv":
        return _from_csv(session, CsvFile(name))
    return _positional(attempt(label, lambda: session.read.parquet(name)), label=label)


def _kind(name: str) -> str | None:
    ending = name.lower().rstrip("/")
    if ending.endswith(PARQUET_ENDINGS):
        return "parquet"
    return "csv" if ending.endswith(CSV_ENDINGS) else None


def _is_table(session: SparkSession, name: str) -> bool:
    # A path is no table name, and Spark's parser says so with an error.
    with suppress(*SPARK_ERRORS):
        return session.catalog.tableExists(name)
    return False


def _kind_inside(session: SparkSession, folder: str) -> str:
    label = repr(Path(folder).name)
    files = [Path(file) for file in attempt(label, lambda: list_files(session, folder))]
    kinds = {_kind(file.name) for file in files if not file.name.startswith((".", "_"))} - {None}
    if len(kinds) > 1:
        raise IngestError(f"{folder!r} holds both CSV and Parquet files; keep one kind")
    if not kinds:
        raise IngestError(
            f"there is no table {folder!r}, and no CSV or Parquet file in a folder of that name; "
            "check the path"
        )
    return str(kinds.pop())


def _from_csv(session: SparkSession, source: CsvFile) -> Table:
    """All cells as text; nothing is guessed but the separator, from the header."""
    path, label = str(source.path), repr(Path(source.path).name)
    names, separator = _read_header(session, source, label)
    if len({name.casefold() for name in names}) < len(names):
        # Not which: without a header, the first line is somebody's row.
        raise IngestError(
            f"{label} has two columns of the same name; rename one of them, or add a header if "
            "there is none"
        )
    fields = [StructField(name, StringType()) for name in names]
    reader = session.read.options(
        header=True,
        sep=separator,
        encoding=_ENCODINGS[source.encoding],
        quote='"',
        escape='"',
        # Every file must have this header, and every line as many cells.
        enforceSchema=False,
        columnPruning=False,
        mode="PERMISSIVE",
        columnNameOfCorruptRecord=MALFORMED,
    ).schema(StructType([*fields, StructField(MALFORMED, StringType())]))
    frame = attempt(label, lambda: reader.csv(path))
    described = Input(label, "csv", "", tuple(names), ("string",) * len(names))
    return Table(described, frame.toDF(*(f"c{i}" for i in range(len(names))), MALFORMED))


def _read_header(session: SparkSession, source: CsvFile, label: str) -> tuple[list[str], str]:
    lines = session.read.options(
        sep=_NO_SEPARATOR, quote="", encoding=_ENCODINGS[source.encoding], maxCharsPerColumn=1 << 20
    )
    row = attempt(label, lambda: lines.csv(str(source.path)).head())
    if row is None or not (row[0] or "").strip():
        raise IngestError(f"{label} is empty; give a table with a header and rows")
    refuse_parquet(row[0], label)
    return split_header(row[0].lstrip("\ufeff"), source.delimiter)


def _from_arrow(session: SparkSession, source: Any) -> Table:
    # Arrow's and Spark's messages quote cells, so the error is raised outside of `except`.
    with suppress(pa.ArrowException, *SPARK_ERRORS, TypeError, ValueError):
        table = pa.table(dict(source) if isinstance(source, Mapping) else source)
        names = [f"c{i}" for i in range(table.num_columns)]
        frame = session.createDataFrame(table.rename_columns(names))
        opened = _positional(frame, label="the table")
        described = Input(
            "the table", "table", "", tuple(table.column_names), opened.described.types
        )
        return Table(described, opened.frame)
    raise IngestError(
        "the table cannot be turned into a Spark frame; each column needs one type for all its "
        "cells (text for area codes, whole numbers for counts)"
    )
