"""Where rows come from: files, tables in memory, SQL; each becomes one relation in DuckDB.

Columns are found by their exact names, case-sensitively, and addressed
by position: DuckDB itself would take `Origin` for `origin` and rename the second of two
columns with one name. Only the columns in use are ever read.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import duckdb

from inftda.errors import IngestError
from inftda.reading import csv_file

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")

#: A path, folder or glob, a `CsvFile`, an `SqlQuery`, a mapping of columns, or anything with
#: the Arrow stream interface.
Source = Any

#: What a column is for: the codes of areas or persons, counts, degrees of a point, time stamps.
Purpose = Literal["codes", "counts", "degrees", "times"]

#: Column of a relation with the `Flaw` of each row that was found on the way, 0 if none.
RAW_FLAW: Final = "raw_flaw"
#: Name of what is registered in the workspace.
ARROW_INPUT: Final = "arrow_input"
#: Columns that a message lists.
_SHOWN: Final = 12


@dataclass(frozen=True, slots=True)
class Use:
    """A column of the input that is in use.

    Attributes:
        position: in the table.
        name: as it is written.
        alias: what it is called in the relation.
        purpose: what it holds.
    """

    position: int
    name: str
    alias: str
    purpose: Purpose


@dataclass(frozen=True, slots=True)
class Relation:
    """Rows of the input in SQL.

    Attributes:
        sql: a query for the columns in use by their aliases, and perhaps `RAW_FLAW`.
        types: DuckDB types that the relation does not show itself, by alias.
    """

    sql: str
    types: dict[str, str]


@dataclass(frozen=True, slots=True)
class Input:
    """One table that can be read; only its header is known so far.

    Attributes:
        label: what to call it in messages.
        kind: what it is made of.
        names: its columns as they are written.
        select: makes a relation of some of its columns.
        is_repeatable: whether it can be read more than once; a stream cannot.
        encoding: of a CSV file.
    """

    label: str
    kind: Literal["csv", "parquet", "table", "sql", "xlsx"]
    names: tuple[str, ...]
    select: Callable[[Sequence[Use]], Relation]
    is_repeatable: bool = True
    encoding: str = "utf-8"

    def position(self, name: str, *, role: str, option: str) -> int:
        """Where the column with this name is.

        Args:
            name: as it is written in the table.
            role: what it is for, for messages.
            option: how to say which column it is.

        Raises:
            IngestError: there is none, or more than one.
        """
        found = [i for i, written in enumerate(self.names) if written == name]
        if len(found) > 1:
            raise IngestError(f"{self.label} has {len(found)} columns {name!r}; rename the others")
        if found:
            return found[0]
        near = self.nearest(name, cutoff=0.5)
        hint = f"did you mean {near!r}? If so, {option}" if near else option
        raise IngestError(
            f"{self.label} has no column {name!r} for the {role}; {hint} "
            f"Its columns are {_listed(self.names)}"
        )

    def nearest(self, name: str, *, cutoff: float) -> str | None:
        """The column that is spelt most like this name, if the likeness (0 to 1) is enough."""
        by_folded = {written.casefold(): written for written in reversed(self.names)}
        near = get_close_matches(name.casefold(), by_folded, n=1, cutoff=cutoff)
        return by_folded[near[0]] if near else None

    def attempt(self, action: Callable[[], T]) -> T:
        """Do something that reads the table; see `attempt`."""
        return attempt(action, self.explain)

    def explain(self, failure: Exception) -> str:
        """What went wrong while reading, without a cell of the table in it."""
        if isinstance(failure, duckdb.OutOfMemoryException):
            return (
                f"memory or disk space ran out while reading {self.label}; set TMPDIR to a folder "
                "on a disk with more space, or use a machine with more memory"
            )
        if self.kind == "csv":
            return csv_file.explain(str(failure), self.label, self.encoding)
        if self.kind == "parquet" and "UTF8" in str(failure):
            return not_utf8(self.label)
        if self.kind == "parquet":
            return (
                f"cannot read {self.label} as Parquet: it is damaged or cut off, is not "
                "readable, or its files differ in their columns; write it again"
            )
        if self.kind == "sql":
            return f"{self.label} failed while its rows were read; try it in the database"
        return f"cannot read {self.label}; pass it as a pyarrow table, or write it to Parquet"


def attempt(action: Callable[[], T], explain: Callable[[Exception], str]) -> T:
    """Do something that reads the table.

    Raises:
        IngestError: DuckDB could not. Its own error quotes rows, so it is neither passed
            on nor kept as the context of this one.
    """
    try:
        return action()
    except (duckdb.Error, RuntimeError, UnicodeDecodeError) as problem:
        failure = problem  # the last two for column names that are not valid text
    raise IngestError(explain(failure))


def not_utf8(label: str) -> str:
    """What to say about bytes that are not text."""
    return (
        f"a cell of {label} is not UTF-8 text, in a column that holds area codes, persons or "
        "counts; write the column as text or whole numbers"
    )


def select_positions(uses: Sequence[Use], relation: str, n_columns: int) -> str:
    """SQL for some columns of a relation by their aliases."""
    columns = ", ".join(f"c{i}" for i in range(n_columns))
    chosen = ", ".join(f"c{use.position} AS {use.alias}" for use in uses)
    return f"SELECT {chosen} FROM {relation} AS input_row({columns})"  # noqa: S608 - our own names


def label_of(path: str | Path) -> str:
    """What a file or folder is called in messages."""
    return repr(Path(path).name)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown}, ... ({len(names)} in all)"
