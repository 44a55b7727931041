"""The workspace: an in-memory DuckDB that spills to a private directory, removed at the end.

What DuckDB spills is confidential, so the directory is readable by its owner only (0700) and
removed on the way out. DuckDB's own messages quote rows of the input, so none is ever passed
on: a failure is reported by its kind.
"""

from __future__ import annotations

import tempfile
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import duckdb
import numpy as np
import pyarrow as pa

from inftda.database import silence
from inftda.errors import IngestError
from inftda.files import private_folder
from inftda.tables import as_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from numpy.typing import NDArray

T = TypeVar("T")

#: Folders with this prefix that no process holds are removed, so it must be nobody else's.
SPILL_PREFIX: Final = "inftda-spill-"
#: Name of an empty table that shows what DuckDB makes of a type.
_SAMPLE: Final = "sample"
#: Seconds until DuckDB is told again to stop.
_MOMENT: Final = 0.05


class Workspace:
    """A DuckDB connection with a private directory to spill to; use it in a `with` statement.

    Args:
        memory_limit: what DuckDB may hold in memory before it spills, for example "4GB";
            DuckDB's own default (80 % of the machine) without it.
        threads: how many threads DuckDB uses; all cores without it.
        spill_directory: where the private directory is made; the system's temporary
            directory without it.
        can_spill: whether anything goes to disk at all.
    """

    def __init__(
        self,
        *,
        memory_limit: str | None = None,
        threads: int | None = None,
        spill_directory: str | Path | None = None,
        can_spill: bool = True,
    ) -> None:
        self._can_spill = can_spill
        self._settings = {"memory_limit": memory_limit, "threads": threads}
        self._spill_parent = spill_directory
        self._stack = ExitStack()
        self._functions: set[str] = set()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            directory = str(self._make_directory(stack)) if self._can_spill else ""
            self._connection = self._connect(directory)
            stack.callback(self._connection.close)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    def _make_directory(self, stack: ExitStack) -> Path:
        parent = Path(self._spill_parent or tempfile.gettempdir())
        try:
            return stack.enter_context(private_folder(parent, SPILL_PREFIX))
        except OSError as problem:
            raise IngestError(
                f"cannot make a temporary directory in {str(parent)!r}: "
                f"{problem.strerror}; give a directory that exists and can be written to"
            ) from None

    def _connect(self, directory: str) -> duckdb.DuckDBPyConnection:
        config: dict[str, Any] = {
            "temp_directory": directory,
            "preserve_insertion_order": "false",  # order is irrelevant here and costs memory
            "autoinstall_known_extensions": "false",  # nothing is downloaded at run time
            "autoload_known_extensions": "false",
            "python_enable_replacements": "false",  # a name in SQL is never a Python variable
        }
        config |= {name: str(value) for name, value in self._settings.items() if value is not None}
        try:
            connection = duckdb.connect(":memory:", config=config)
        except duckdb.Error:
            raise IngestError(
                f"DuckDB does not accept the settings {self._settings}; memory_limit is a size "
                "such as '4GB' and threads a number from 1 up"
            ) from None
        silence(connection)
        # It turns "the first m of each group" into an aggregate that does not spill to disk.
        # Versions of DuckDB that do not have it do not know its name, either.
        with suppress(duckdb.Error):
            connection.execute("SET disabled_optimizers = 'top_n_window_elimination'")
        return connection

    def on_close(self, callback: Callable[[], object]) -> None:
        """Call something (such as closing a database) before DuckDB is closed."""
        self._stack.callback(callback)

    def register(self, name: str, table: Any) -> None:
        """Make an Arrow table or reader known to SQL by this name."""
        self._connection.register(name, table)

    def register_function(
        self,
        name: str,
        function: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.int32]],
    ) -> None:
        """Make a function of two columns of numbers known to SQL, once."""
        if name in self._functions:
            return

        def on_vectors(first: pa.Array, second: pa.Array) -> pa.Array:
            columns = (np.asarray(vector, np.float64) for vector in (first, second))
            return as_arrow(function(*columns))

        # Its types came late to DuckDB, and are too narrow.
        self._connection.create_function(  # type: ignore[call-overload]
            name, on_vectors, ["DOUBLE", "DOUBLE"], "INTEGER", type="arrow"
        )
        self._functions.add(name)

    def knows(self, kind: pa.DataType) -> bool:
        """Whether DuckDB knows this type of Arrow."""
        try:
            self._connection.register(_SAMPLE, pa.schema({_SAMPLE: kind}).empty_table())
        except duckdb.NotImplementedException:
            return False
        self._connection.unregister(_SAMPLE)
        return True

    def types(self, sql: str) -> tuple[str, ...]:
        """The DuckDB types of the columns of a query, without running it."""
        return tuple(str(kind) for kind in self._connection.sql(sql).types)

    def names(self, sql: str) -> tuple[str, ...]:
        """The names of the columns of a query, without running it."""
        return tuple(self._connection.sql(sql).columns)

    def unregister(self, name: str) -> None:
        """Forget a table again."""
        self._connection.unregister(name)

    def run(self, sql: str) -> None:
        """Run a statement that gives nothing back."""
        self._wait_for(lambda: self._connection.execute(sql))

    def fetch(self, sql: str, parameters: Sequence[str] = ()) -> pa.Table:
        """The rows of a query; `parameters` replace its question marks."""
        query = self._connection.sql(sql, params=list(parameters) or None)
        return self._wait_for(query.to_arrow_table)

    def _wait_for(self, action: Callable[[], T]) -> T:
        """Do something long in a thread of its own, so that Ctrl-C works meanwhile."""
        result: Future[T] = Future()
        thread = Thread(target=_settle, args=(result, action))
        try:
            thread.start()
            return result.result()
        except KeyboardInterrupt:
            # DuckDB may not have begun when it is told to stop, so it is told again.
            while thread.is_alive():
                self._connection.interrupt()
                thread.join(_MOMENT)
            raise


def _settle(result: Future[T], action: Callable[[], T]) -> None:
    try:
        result.set_result(action())
    except BaseException as problem:  # noqa: BLE001 - raised where the result is waited for
        result.set_exception(problem)


def quote(text: str) -> str:
    """A string as an SQL literal.

    >>> quote("l'Aquila")
    "'l''Aquila'"
    """
    return "'" + text.replace("'", "''") + "'"
