"""Confidential tables in, leaf counts out: the only door the truth comes in by.

`read_leaves` takes trips (one row per trip) or flows (with a count column) from files, tables
of any library that speaks Arrow, or an SQL query, and gives the non-zero leaf counts of a
table whose axes are hierarchies (design of the data model: the paper's section 3). Executors
of a Spark cluster run the same SQL on their parts of a table (`inftda.spark.reading`).

What a cell means depends on that cell alone: no row can change how another one is read.

Nothing here writes anywhere but to a private temporary directory that is removed again, and
no message contains a count, a person's id, or a password.
"""

from typing import Annotated, Any

from inftda.errors import IngestError
from inftda.options import TABLE, Group, Option
from inftda.reading.columns import Columns, Unplaceable
from inftda.reading.rows import read_leaves
from inftda.reading.sources import CsvFile
from inftda.reading.sql_source import SqlQuery

__all__ = ["Columns", "CsvFile", "SqlQuery", "Unplaceable", "read_leaves", "table_from"]


def table_from(
    path: Any = None,
    *,
    encoding: Annotated[
        str | None,
        Option("Encoding of a CSV file.", metavar="utf-8|utf-16|latin-1", panel=TABLE),
    ] = None,
    sql: Annotated[
        str | None,
        Option("Query that gives the rows, in place of a file.", metavar="QUERY", panel=TABLE),
    ] = None,
    database: Annotated[
        str | None,
        Option(
            "Where to run it: postgresql://... or sqlite:///FILE.", metavar="ADDRESS", panel=TABLE
        ),
    ] = None,
) -> Any:
    """The table that options of the command line describe: one, and not two."""
    if sql is None and database is None:
        return path if encoding is None or path is None else CsvFile(path, encoding=encoding)
    if path is not None or encoding is not None or sql is None or database is None:
        raise IngestError(
            "give either a file, with `encoding=` if it is CSV, or both `sql=` and `database=`"
        )
    return SqlQuery(sql, database)


#: What is released: a table of trips or flows.
Flows = Annotated[
    Any,
    Option(
        "Trips (one row each) or flows (with a column of counts): a CSV, Parquet or Excel file, or "
        "a folder or glob of CSV or Parquet files. In Python also any table that speaks Arrow, a "
        "`CsvFile`, an `SqlQuery`, or with Spark whatever it reads.",
        metavar="FLOWS",
        is_argument=True,
    ),
    Group(table_from),
]
