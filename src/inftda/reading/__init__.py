"""Confidential tables in, leaf counts out: the only door the truth comes in by.

`read_leaves` takes trips (one row per trip) or flows (with a count column) from files, tables
of any library that speaks Arrow, or an SQL query, and gives the non-zero leaf counts of a
table whose axes are hierarchies (design of the data model: the paper's section 3). Executors
of a Spark cluster run the same SQL on their parts of a table (`inftda.engines.spark.reading`).

What a cell means depends on that cell alone: no row can change how another one is read.

Nothing here writes anywhere but to a private temporary directory that is removed again, and
no message contains a count, a person's id, or a password.
"""

from inftda.reading.csv_file import CsvFile
from inftda.reading.reader import read_leaves
from inftda.reading.spec import TableSpec, Unplaceable
from inftda.reading.sql_query import SqlQuery

__all__ = ["CsvFile", "SqlQuery", "TableSpec", "Unplaceable", "read_leaves"]
