"""Reading on executors: batches of raw rows in, partial leaves out, by the SQL of `reading`.

Every part is counted in a DuckDB of its own, in memory and on the cores of its task. What a
part gives depends on its rows alone, so a task that runs twice gives the same. DuckDB's errors
quote cells, and Spark writes errors of tasks to its logs, so none gets out of here.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from inftda.engines.spark.packing import CELL_ROWS, TASK, Batches, Made, gather, spread
from inftda.privacy.unit import PrivacyUnit
from inftda.reading.bounding import fetch_bounded, gathered
from inftda.reading.rows import Rows, merged
from inftda.reading.sources import ARROW_INPUT
from inftda.reading.workspace import Workspace

#: How a part says that it has bytes that are not text.
NOT_UTF8: Final = "inftda: a cell is not UTF-8"


class PartError(Exception):
    """A part could not be read; without a word of what is in it."""


@dataclass(frozen=True)
class Parts:
    """What executors do with parts of the table.

    Attributes:
        rows: the rows of a part in SQL; what is read is called `ARROW_INPUT`.
        unit: who is protected.
        secret: what decides which trips of a person are kept.
    """

    rows: Rows
    unit: PrivacyUnit | None
    secret: str = field(repr=False)

    def count(self, batches: Batches) -> Made:
        """Raw rows to leaves, which other parts may have as well."""
        return _each(gather(batches), self.rows, self.rows.count)

    def gather(self, batches: Batches) -> Made:
        """Raw rows to persons' trips, of which other parts may have more."""
        areas, unit = self.rows.numbers, self._bounding_unit
        columns = ", ".join(["CAST(person AS VARCHAR) AS person", *areas, "n"])
        sql = f"SELECT {columns} FROM ({gathered(self.rows.placed(), areas, unit)})"  # noqa: S608 - our own names
        return _each(gather(batches), self.rows, lambda workspace: workspace.fetch(sql))

    def bound(self, batches: Batches) -> Made:
        """Persons' trips, sorted by person and all of each, to leaves."""
        areas, unit = self.rows.numbers, self._bounding_unit
        return _each(
            _by_person(batches),
            None,
            lambda workspace: fetch_bounded(
                f"FROM {ARROW_INPUT}", areas, workspace=workspace, unit=unit, secret=self.secret
            ),
        )

    def addressed(self, n_tasks: int, batches: Batches) -> Made:
        """Leaves with the task that merges them."""
        for batch in batches:
            areas = [batch.column(name).to_numpy() for name in self.rows.numbers]
            yield batch.append_column(TASK, pa.array(spread(areas, n_tasks)))

    def merge(self, batches: Batches) -> Made:
        """Leaves of several parts, all of each leaf, to one row per leaf."""
        held = list(batches)
        sql = merged(f"FROM {ARROW_INPUT}", self.rows.numbers)
        whole = [pa.Table.from_batches(held)] if held else []
        return _each(whole, None, lambda workspace: workspace.fetch(sql))

    def lost(self, batches: Batches) -> Made:
        """Raw rows to the first few unknown codes of each part."""
        sql = self.rows.lost()
        return _each(gather(batches), self.rows, lambda workspace: workspace.fetch(sql))

    @property
    def _bounding_unit(self) -> PrivacyUnit:
        if self.unit is None:  # `TableSpec` has seen to it
            raise PartError("there is no privacy unit")
        return self.unit


def _each(
    parts: Iterable[pa.Table], rows: Rows | None, fetch: Callable[[Workspace], pa.Table]
) -> Made:
    """What a query gives for each part."""
    context = TaskContext.get()
    with _quietly(), Workspace(threads=context.cpus() if context else 1, can_spill=False) as duck:
        if rows is not None:
            rows.register_lookups(duck)
        for part in parts:
            _check_text(part)
            duck.register(ARROW_INPUT, part)
            yield from fetch(duck).to_batches()
            duck.unregister(ARROW_INPUT)


@contextmanager
def _quietly() -> Iterator[None]:
    """Whatever DuckDB or Arrow say of a cell stays here."""
    try:
        yield
    except (duckdb.Error, pa.ArrowException, ValueError, RuntimeError) as problem:
        kind = type(problem).__name__
        raise PartError(f"a part of the table cannot be read ({kind})") from None


def _check_text(part: pa.Table) -> None:
    """Refuse bytes that are not text, before DuckDB stumbles over them."""
    try:
        part.validate(full=True)
    except pa.ArrowInvalid:
        raise PartError(NOT_UTF8) from None


def _by_person(batches: Batches) -> Iterator[pa.Table]:
    """Parts that no person has rows in two of; batches are sorted by `person`, nulls first."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(part.num_rows for part in held) < CELL_ROWS:
            continue
        table = pa.Table.from_batches(held)
        last = table["person"][-1]
        # Rows of nobody are flaws, which may be cut anywhere.
        cut = pc.index(table["person"], last).as_py() if last.is_valid else table.num_rows
        if cut:
            yield table.slice(0, cut)
            held = table.slice(cut).to_batches()
    if held:
        yield pa.Table.from_batches(held)
