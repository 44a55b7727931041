"""Read a confidential table and count it per finest cell.

`read_leaves` takes trips (one row per trip) or flows (with a count column) from files, from pandas,
polars or pyarrow tables, or from an SQL query. It returns the non-zero leaf counts of a table whose
axes are hierarchies (the paper's section 3). Executors of a Spark cluster run the same SQL on their
parts of a table (`inftda.spark.reading`).

The meaning of a cell depends on that cell alone: no row can change how another one is read.

This package writes to a private temporary directory only, which is removed again. No message
contains a count of the table, a person's id, or a password. Messages that refuse rows are for the
custodian: they state the number of flawed rows (`inftda.errors`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from inftda.errors import IngestError
from inftda.noise.bits import RandomSource
from inftda.options import TABLE, Group, Option
from inftda.privacy.unit import Unit
from inftda.reading.columns import Columns, Unplaceable
from inftda.reading.rows import read_leaves
from inftda.reading.sources import TableFile
from inftda.reading.sql_source import SqlQuery
from inftda.util.tabular import FORMAT_NAMES

__all__ = [
    "Columns",
    "Request",
    "SqlQuery",
    "TableFile",
    "Unplaceable",
    "read_leaves",
    "table_from",
]


@dataclass(frozen=True)
class Request:
    """How an engine should read a table; `say` receives how rows are interpreted."""

    columns: Columns
    unit: Unit
    source: RandomSource
    say: Callable[[str], object] | None


def table_from(  # noqa: PLR0913 - one keyword for each thing to say of a table
    path: Any = None,
    *,
    encoding: Annotated[
        str | None, Option("Encoding of a CSV file.", metavar="utf-8|utf-16|latin-1", panel=TABLE)
    ] = None,
    sheet: Annotated[
        str | None,
        Option(
            "Sheet of a workbook of Excel; by default the only one that is not empty.",
            metavar="NAME",
            panel=TABLE,
        ),
    ] = None,
    skip_rows: Annotated[
        int, Option("Lines of a CSV file, or rows of a sheet, above its header.", panel=TABLE)
    ] = 0,
    matrix: Annotated[
        bool,
        Option(
            "The table is a matrix: origins in its first column, destinations in its header, "
            "counts in its cells; empty cells and dashes are zero.",
            panel=TABLE,
        ),
    ] = False,
    transposed: Annotated[
        bool,
        Option(
            "The matrix has destinations in its first column and origins in its header.",
            panel=TABLE,
        ),
    ] = False,
    sql: Annotated[
        str | None,
        Option("Query that gives the rows, in place of a file.", metavar="QUERY", panel=TABLE),
    ] = None,
    database: Annotated[
        str | None,
        Option(
            "Where to run it: postgresql://..., sqlite:///FILE, duckdb:///FILE, DRIVER://... of "
            "any other driver of ADBC, or profile://NAME.",
            metavar="ADDRESS",
            panel=TABLE,
        ),
    ] = None,
) -> Any:
    """Combine options of the command line into one table; two tables are refused."""
    given = {
        "encoding": encoding, "sheet": sheet, "skip_rows": skip_rows, "matrix": matrix,
        "transposed": transposed,
    }  # fmt: skip
    said: dict[str, Any] = {name: value for name, value in given.items() if value}
    if sql is None and database is None:
        return TableFile(path, **said) if path is not None and said else path
    if path is not None or said or sql is None or database is None:
        raise IngestError(
            "give either a file, with what there is to say of it (`encoding=`, `sheet=`, "
            "`skip_rows=`, `matrix=`, `transposed=`), or both `sql=` and `database=`"
        )
    return SqlQuery(sql, database)


#: What is released: a table of trips or flows.
Flows = Annotated[
    Any,
    Option(
        f"Trips (one row each) or flows (with a column of counts): a {FORMAT_NAMES} file, "
        "also packed (.csv.gz, .zip), or a folder or glob of them, here or in a store (s3://, "
        "gs://, abfs://, https://). In Python also any table that "
        "speaks Arrow, a `TableFile`, an `SqlQuery`, or with Spark whatever it reads.",
        metavar="FLOWS",
        is_argument=True,
    ),
    Group(table_from),
]
