"""DuckDB as it is used everywhere here: it prints nothing."""

from contextlib import suppress
from typing import Any


def silence(connection: Any) -> None:
    """Switch off DuckDB's progress bar, which goes to standard output: that is for results."""
    import duckdb  # noqa: PLC0415 - 0.1 s that writing a release need not pay

    # In a notebook that cannot show a bar, DuckDB does not even let it be switched off.
    with suppress(duckdb.Error):
        connection.execute("SET enable_progress_bar = false")
