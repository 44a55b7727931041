"""Confidential tables in, leaf counts out: the only door the truth comes in by.

`read_leaves` takes trips (one row per trip) or flows (with a count column) from files, tables
of any library that speaks Arrow, or an SQL query, and gives the non-zero leaf counts of a
table whose axes are hierarchies (design of the data model: the paper's section 3). Executors
of a Spark cluster run the same SQL on their parts of a table (`inftda.spark.reading`).

What a cell means depends on that cell alone: no row can change how another one is read.

Nothing here writes anywhere but to a private temporary directory that is removed again, and
no message contains a count, a person's id, or a password.
"""

from inftda.reading.columns import Columns, Unplaceable
from inftda.reading.rows import read_leaves
from inftda.reading.sources import CsvFile
from inftda.reading.sql_source import SqlQuery

__all__ = ["Columns", "CsvFile", "SqlQuery", "Unplaceable", "read_leaves"]
