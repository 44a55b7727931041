"""DuckDB in memory, one for many tests: a fast run would spend a fifth of its time opening them.

What is made on a connection (tables, views, functions) is gone when that is closed, as ever.
`make test-all` opens every database anew, as the product does.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, Self

import duckdb
import pytest

#: As the product opens one.
CONNECT = duckdb.connect
#: What every call has its own of; a database that is to spill is not shared.
OWN = "temp_directory"
UNSHARED = {"memory_limit"}
#: Statements that cannot be taken back, nor hold for one connection only.
CLOSING = ("SET allowed_paths", "SET enable_external_access", "SET lock_configuration")


class Connection:
    """One of several to a database, but with functions of its own."""

    def __init__(self, database: duckdb.DuckDBPyConnection) -> None:
        self._cursor = database.cursor()
        self._functions: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def execute(self, sql: str, *arguments: Any) -> Any:
        """All but what closes a database to other files: it is closed once and for all."""
        if not sql.startswith(CLOSING):
            self._cursor.execute(sql, *arguments)
        return self

    def create_function(self, name: str, *arguments: Any, **options: Any) -> None:
        self._cursor.create_function(name, *arguments, **options)
        self._functions.append(name)

    def close(self) -> None:
        for name in self._functions:
            self._cursor.remove_function(name)
        self._functions.clear()
        self._cursor.close()


@contextmanager
def shared_databases(folder: str) -> Iterator[None]:
    """From here on `duckdb.connect` gives connections to few databases, which spill to a folder."""

    @cache
    def database(settings: frozenset[tuple[str, str]]) -> duckdb.DuckDBPyConnection:
        config = dict(settings)
        if config.get(OWN):
            config[OWN] = folder
        made = CONNECT(":memory:", config=config)
        # A file that another test wrote anew is read anew. Old versions do not keep files.
        with suppress(duckdb.Error):
            made.execute("SET enable_external_file_cache = false")
        return made

    def connect_shared(name: str = ":memory:", *, config: dict[str, str] | None = None) -> Any:
        if name != ":memory:" or not config or UNSHARED & config.keys():
            return CONNECT(name, config=config or {})
        has_folder = {OWN: "yes" if config[OWN] else ""} if OWN in config else {}
        return Connection(database(frozenset((config | has_folder).items())))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duckdb, "connect", connect_shared)
        yield
