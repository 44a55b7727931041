"""The workspace: an in-memory DuckDB that spills to a private directory, removed at the end.

Spilled data is confidential, so the directory is readable by its owner only (0700) and removed at
the end. DuckDB's own messages quote rows of the input, so none is ever passed on: a failure is
reported by its kind.

DuckDB opens the files that it is given and no others: no extension is loaded, nothing goes over
a network, and none of that can be changed again.
"""

from __future__ import annotations

import glob
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import duckdb
import numpy as np
import pyarrow as pa

from inftda.errors import IngestError
from inftda.util.files import scratch_folder
from inftda.util.tabular import as_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

T = TypeVar("T")

#: Prefix of private folders; unlocked folders with it are removed, so it must be unique.
SPILL_PREFIX: Final = "inftda-spill-"
#: Seconds between requests to DuckDB to stop.
_MOMENT: Final = 0.05


class Workspace(ExitStack):
    """A DuckDB connection with a private directory to spill to; use it in a `with` statement.

    Other resources to close at the end, such as a database, are registered with `callback`. It
    opens only the given files, by their absolute paths.
    """

    def __init__(
        self,
        files: Sequence[Path] = (),
        *,
        memory_limit: str | None = None,
        threads: int | None = None,
        can_spill: bool = True,
    ) -> None:
        super().__init__()
        self._files = files
        self._settings = {"memory_limit": memory_limit, "threads": threads}
        self._can_spill = can_spill
        self._known: dict[pa.DataType, bool] = {}

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            directory = ""
            if self._can_spill:
                directory = str(stack.enter_context(scratch_folder(SPILL_PREFIX, IngestError)))
            self._connection = self._connect(directory)
            stack.callback(self._connection.close)
            self.push(stack.pop_all())
        return self

    def _connect(self, directory: str) -> duckdb.DuckDBPyConnection:
        config: dict[str, Any] = {
            "temp_directory": directory,
            "preserve_insertion_order": "false",  # order is irrelevant here and costs memory
            "autoinstall_known_extensions": "false",  # nothing is downloaded at run time
            "autoload_known_extensions": "false",
            "python_enable_replacements": "false",  # a name in SQL is never a Python variable
        }
        config |= {name: str(value) for name, value in self._settings.items() if value is not None}
        connection = duckdb.connect(":memory:", config=config)
        # Its bar would go to standard output, which is for results. In a notebook that cannot show
        # one, DuckDB does not even let it be switched off.
        with suppress(duckdb.Error):
            connection.execute("SET enable_progress_bar = false")
        # It turns "the first m of each group" into an aggregate that does not spill to disk.
        # Versions of DuckDB that do not have it do not know its name, either.
        with suppress(duckdb.Error):
            connection.execute("SET disabled_optimizers = 'top_n_window_elimination'")
        # DuckDB asks first whether the pattern is allowed, then whether the file is.
        paths = {path for file in self._files for path in (str(file), pattern(file))}
        connection.execute(f"SET allowed_paths = [{', '.join(map(quote, sorted(paths)))}]")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        return connection

    def register(self, name: str, table: Any) -> None:
        """Make an Arrow table or reader known to SQL by this name."""
        self._connection.register(name, table)

    def register_function(self, name: str, function: Callable[..., NDArray[np.int32]]) -> None:
        """Make a function of columns of numbers known to SQL; of NULL it is NULL."""

        def on_vectors(*vectors: pa.Array) -> pa.Array:
            return as_arrow(function(*map(np.asarray, vectors)))

        # Its types came late to DuckDB, and are too narrow.
        self._connection.create_function(  # type: ignore[call-overload]
            name, on_vectors, None, "INTEGER", type="arrow"
        )

    def knows(self, kind: pa.DataType) -> bool:
        """Whether DuckDB knows this type of Arrow."""
        if kind not in self._known:
            self._known[kind] = True
            try:
                self._connection.register("sample", pa.schema({"sample": kind}).empty_table())
            except duckdb.NotImplementedException:
                self._known[kind] = False
        return self._known[kind]

    def describe(self, sql: str) -> list[tuple[str, str]]:
        """Name and DuckDB type of each column of a query, without running it."""
        found = self._connection.sql(sql)
        return [(name, str(kind)) for name, kind in zip(found.columns, found.types, strict=True)]

    def run(self, sql: str) -> None:
        """Run a statement that gives nothing back."""
        self._wait_for(lambda: self._connection.execute(sql))

    def fetch(self, sql: str) -> pa.Table:
        """The rows of a query."""
        return self._wait_for(self._connection.sql(sql).to_arrow_table)

    def stream(self, sql: str) -> Iterator[pa.RecordBatch]:
        """The rows of a query, batch by batch."""
        query = self._connection.sql(sql)
        reader = self._wait_for(lambda: pa.RecordBatchReader.from_stream(query))
        while (batch := self._wait_for(lambda: next(reader, None))) is not None:
            yield batch

    def _wait_for(self, action: Callable[[], T]) -> T:
        """Do something long in another thread: in this one, DuckDB does not always hear Ctrl-C."""
        with ThreadPoolExecutor(1) as pool:
            result = pool.submit(action)
            try:
                return result.result()
            except KeyboardInterrupt:
                # DuckDB may not have begun when it is told to stop, so it is told again.
                while not result.done():
                    self._connection.interrupt()
                    wait([result], _MOMENT)
                raise


def quote(text: str) -> str:
    """A string as an SQL literal.

    >>> quote("l'Aquila")
    "'l''Aquila'"
    """
    return "'" + text.replace("'", "''") + "'"


def pattern(file: Path) -> str:
    """A path as a DuckDB pattern that matches nothing but itself."""
    return glob.escape(str(file))
