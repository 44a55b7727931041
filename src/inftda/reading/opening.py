"""Any source, opened: its header is known, and none of its rows are read yet."""

from pathlib import Path

from inftda.reading.csv_file import CsvFile
from inftda.reading.files import open_csv, open_path
from inftda.reading.memory import open_table
from inftda.reading.sources import Input, Source
from inftda.reading.sql_query import SqlQuery, open_query
from inftda.reading.workspace import Workspace


def open_source(source: Source, workspace: Workspace) -> Input:
    """Make any source known to the workspace.

    Raises:
        IngestError: it cannot be read.
        MissingExtraError: it needs an optional library.
    """
    if isinstance(source, SqlQuery):
        return open_query(source, workspace)
    if isinstance(source, CsvFile):
        return open_csv(source)
    if isinstance(source, str | Path):
        return open_path(source, workspace)
    return open_table(source, workspace)
