"""Confidential tables in, leaf counts out: the only door the truth comes in by.

`read_leaves` takes trips (one row a trip) or flows (with a count column) from files, tables
of any library that speaks Arrow, or an SQL query, and gives the non-zero leaf counts of a
table whose axes are hierarchies (design of the data model: the paper's section 3).

Nothing here writes anywhere but to a private temporary directory that is removed again, and
no message contains a count, a person's id, or a password.
"""

from inftda.ingest.csv_file import CsvFile
from inftda.ingest.leaves import Leaves, read_leaves
from inftda.ingest.sql_query import SqlQuery

__all__ = ["CsvFile", "Leaves", "SqlQuery", "read_leaves"]
