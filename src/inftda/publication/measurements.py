"""Measurements of a release as published in `measurements.parquet`.

By default the file has every noisy value that was drawn; with `measurements='totals'` only the
cross tables with totals of areas. The release follows from these values, so publishing them uses no
budget (docs/proofs/measurements.md). A table is always complete, because a selection of its values
would be biased.

A row is one count of one marginal: the name of the table, an area on every axis ("all" where the
table sums it up) and the noisy count, which is unbiased and often negative. Tables come in the
order in which they were drawn, and the counts of a table in group order: by the parent of the
refined area, then by the other areas, the longest axis first, then by the area.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import groupby, pairwise
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from inftda.errors import InftdaError, ReleaseError
from inftda.mechanism.data import MeasuredTable
from inftda.privacy.measurement import Measurement
from inftda.privacy.noise_plan import Plan
from inftda.publication.manifest import DAMAGED, MEASUREMENTS_FILE
from inftda.publication.measured import Measurements, NoisyTable
from inftda.publication.parquet import (
    ROW_GROUP,
    group_keys,
    in_use,
    is_ascending,
    row_groups,
    schema_of,
)
from inftda.tree import Axis, Cells, Tree
from inftda.util.tabular import as_arrow, as_numpy, find_texts, repeated, texts

#: Columns besides those of the axes.
TABLE, MEASURED = "table", "measured"


def planned_measurements(
    tree: Tree, plan: Plan, *, only_totals: bool = False
) -> tuple[Measurement, ...]:
    """Measurements of a plan, in the order of `Measurements.tables`, or of totals of areas only."""
    known = {part.key: part for part in plan.parts}
    found = [replace(known[one.key], of_tree=one) for one in tree.marginals if one.key in known]
    return tuple(table for table in found if table.is_total or not only_totals)


def check_publishable(tables: Sequence[Measurement]) -> None:
    """Refuse names of axes that are columns of the file of measurements."""
    for axis in tables[0].level.axes if tables else ():
        if axis.name.casefold() in {TABLE, MEASURED}:
            raise InftdaError(
                f"an axis must not be called {axis.name!r} where measurements are published: it is "
                "a column of their file; give the axis another name, or publish none "
                "(`cross_tables=0`, `measurements='totals'`)"
            )
    names = [table.name for table in tables]
    for name in names:
        if names.count(name) > 1:
            raise InftdaError(
                f"two tables would be called {name!r} in the file of measurements; give the levels "
                "of the areas other names, or publish none (`cross_tables=0`, "
                "`measurements='totals'`)"
            )


def write_measurements(
    path: Path | pa.NativeFile, tree: Tree, measured: Iterable[NoisyTable]
) -> None:
    """Write noisy values in the given order; a table may come in several parts.

    A row group is written while the next one is prepared.

    Privacy:
        Row groups have a fixed number of rows, each table in one piece, so that the file follows
        from its rows alone.
    """
    schema = schema_of([TABLE, *(axis.name for axis in tree.axes)], MEASURED)
    with (
        pq.ParquetWriter(
            path,
            schema,
            compression="zstd",
            use_dictionary=schema.names[:-1],
            # Differences of noisy values take less than half of the space.
            column_encoding={MEASURED: "DELTA_BINARY_PACKED"},
            # Statistics would take as long as all other work.
            write_statistics=False,
        ) as writer,
        ThreadPoolExecutor(1, thread_name_prefix="inftda") as behind,
    ):

        def write(group: Sequence[NoisyTable]) -> None:
            batches = [
                _batch(schema, list(parts)) for _, parts in groupby(group, attrgetter("depths"))
            ]
            table = pa.Table.from_batches(batches, schema=schema).unify_dictionaries()
            writer.write_table(table, row_group_size=ROW_GROUP)

        last: Future[None] | None = None
        for group in _cut(measured):
            if last is not None:
                last.result()
            last = behind.submit(write, group)
        if last is not None:
            last.result()


def _cut(measured: Iterable[NoisyTable]) -> Iterator[list[NoisyTable]]:
    """Cut values into groups of a fixed size, except the last; at least one group."""
    group, room, is_empty = list[NoisyTable](), ROW_GROUP, True
    for table in measured:
        left = table
        while len(left.value) >= room:
            yield [*group, left.take(slice(room))]
            left = left.take(slice(room, None))
            group, room, is_empty = [], ROW_GROUP, False
        if len(left.value):
            group.append(left)
            room -= len(left.value)
    if group or is_empty:
        yield group


def _batch(schema: pa.Schema, parts: Sequence[NoisyTable]) -> pa.RecordBatch:
    """Make the rows of one table."""
    marginal = parts[0].measurement.marginal
    areas, value = Cells.join([part.cells for part in parts])
    nowhere = as_arrow(np.zeros(len(value), np.int32))
    columns = [pa.DictionaryArray.from_arrays(nowhere, repeated(marginal.name, 1))]
    for axis, depth, numbers in zip(marginal.axes, marginal.depths, areas, strict=True):
        columns.append(in_use(numbers, axis.hierarchy.codes(depth)))
    return pa.record_batch([*columns, as_arrow(value)], schema=schema)


def read_measurements(
    source: pa.Table | Path,
    tree: Tree,
    tables: Sequence[Measurement],
    *,
    n_flows: int,
    only_totals: bool = False,
) -> Measurements:
    """Read measurements from their file or a table in memory; `only_totals` saves memory.

    Only values of the published tables are allowed, in their order, each once. A file with far more
    values than a release of `n_flows` rows can have is refused unread.
    """
    found = [[Cells.root(len(tree.axes), 0)] for _ in tables]
    last = 0
    for rows in measured_groups(source, tree, tables, n_flows):
        names = [texts(table.name for table in tables)]
        number = _Column.of(rows.column(TABLE), names, {0}).numbers(0, slice(None))
        value = as_numpy(rows.column(MEASURED).combine_chunks())
        if (number[:1] < last).any() or (number[1:] < number[:-1]).any():
            raise ReleaseError(f"{MEASUREMENTS_FILE} has tables in another order; {DAMAGED}")
        ends = np.searchsorted(number, np.arange(len(tables) + 1)).tolist()
        here = [
            table for table, (low, high) in zip(tables, pairwise(ends), strict=True) if low < high
        ]
        # The dictionary of a column may have codes of any level, a row only those of the table's
        # level.
        columns = [
            _Column.of(rows.column(axis.name), _codes(axis), {table.depths[at] for table in here})
            for at, axis in enumerate(tree.axes)
        ]
        for table, parts, (low, high) in zip(tables, found, pairwise(ends), strict=True):
            if low == high or (only_totals and not table.is_total):
                continue
            areas = tuple(
                column.numbers(depth, slice(low, high))
                for column, depth in zip(columns, table.depths, strict=True)
            )
            if any((numbers < 0).any() for numbers in areas):
                raise _unknown()
            checked = tuple(
                np.append(of[-1:], here) for of, here in zip(parts[-1].areas, areas, strict=True)
            )
            if not is_ascending(group_keys(table.level, checked)):
                raise ReleaseError(
                    f"{MEASUREMENTS_FILE} does not have each cell of the table {table.name!r} once "
                    f"and in order; {DAMAGED}"
                )
            parts.append(Cells(areas, value[low:high]))
        last = int(number[-1]) if len(number) else last
    # Arrow keeps its buffers for further reading; there is none.
    pa.default_memory_pool().release_unused()
    return Measurements(tuple(map(_joined, tables, found)))


def noisy_table(drawn: MeasuredTable) -> NoisyTable:
    """Noisy counts as they are published."""
    return NoisyTable(drawn.measurement, Cells(drawn.cells(), drawn.value))


def measurements_of(tree: Tree, plan: Plan, drawn: Iterable[NoisyTable]) -> Measurements:
    """Join the noisy counts of a release, whose tables may come in several consecutive parts."""
    tables = planned_measurements(tree, plan)
    parts = {table.depths: [Cells.root(len(tree.axes), 0)] for table in tables}
    for one in drawn:
        parts[one.depths].append(one.cells)
    return Measurements(tuple(_joined(table, parts[table.depths]) for table in tables))


def _joined(table: Measurement, parts: list[Cells]) -> NoisyTable:
    """Make a table from the cells of its parts, which are emptied."""
    cells = Cells.join(parts)
    parts.clear()  # frees arrays that are much larger than the release
    return NoisyTable(table, cells)


class _Column(NamedTuple):
    """A column of texts of several lists, such as the codes of all levels.

    Attributes:
        entry: int32[rows], entry of the dictionary.
        known: for some lists int32[entries], number of each entry in the list; -1 if not in it.
    """

    entry: NDArray[np.int32]
    known: Mapping[int, NDArray[np.int32]]

    @classmethod
    def of(
        cls, column: pa.ChunkedArray, lists: Sequence[pa.StringArray], used: Collection[int]
    ) -> "_Column":
        """Look up a column in the lists that are used; its other texts must be in other lists."""
        encoded = column.combine_chunks()
        if isinstance(encoded, pa.ChunkedArray):  # if it has no chunks
            return cls(np.zeros(0, np.int32), {})
        known = {at: find_texts(encoded.dictionary, lists[at]) for at in used}
        is_known = np.max([*known.values()], axis=0, initial=-1) >= 0
        for others in (lists[at] for at in range(len(lists)) if at not in used):
            if not np.all(is_known):
                is_known |= find_texts(encoded.dictionary, others) >= 0
        if not np.all(is_known):
            raise _unknown()
        return cls(as_numpy(encoded.indices), known)

    def numbers(self, at: int, rows: slice) -> NDArray[np.int32]:
        """Number of the text of each of some rows in a list; -1 if it is not in it."""
        return self.known[at][self.entry[rows]] if len(self.entry) else self.entry


def _unknown() -> ReleaseError:
    return ReleaseError(
        f"{MEASUREMENTS_FILE} names tables or areas that the release does not have; {DAMAGED}"
    )


def _codes(axis: Axis) -> list[pa.StringArray]:
    """Codes of each level, from the whole to the finest."""
    return [axis.hierarchy.codes(depth) for depth in range(axis.hierarchy.depth + 1)]


def measured_groups(
    source: pa.Table | Path, tree: Tree, tables: Sequence[Measurement], n_flows: int
) -> Iterator[pa.Table]:
    """The rows of a file, one row group at a time, or of a table in memory."""
    if isinstance(source, pa.Table):
        yield from (pa.Table.from_batches([batch]) for batch in source.to_batches())
        return
    listed = [texts(table.name for table in tables)] if tables else []
    listed += [pa.concat_arrays(_codes(axis)) for axis in tree.axes]
    most = sum(table.most_values(n_flows) for table in tables)
    schema = schema_of([TABLE, *(axis.name for axis in tree.axes)], MEASURED)
    yield from row_groups(source, schema, listed, most_rows=most)
