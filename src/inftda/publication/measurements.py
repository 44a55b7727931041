"""Every noisy value that was drawn for a release, as it is published in `measurements.parquet`.

The release follows from these and from nothing else, so publishing them costs no privacy
(docs/proofs/measurements.md). They are all there, never a selection: a reader who sees only
some of them would be misled by which.

A row is one count of one table of the lattice: the name of the table, an area on every axis
("all" where the table sums it up) and what was measured, unbiased and often negative. Tables
come in the order in which they were drawn (in parts that many machines wrote, in stretches), and
the counts of a table in group order: by the parent of the refined area, then by the other areas,
the longest axis first, then by the area.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from inftda.errors import InftdaError, ReleaseError
from inftda.growing import Growing
from inftda.mechanisms.description import Description
from inftda.privacy.spending import ReleasePlan
from inftda.publication.folder import CODE, ROW_GROUP, in_use
from inftda.publication.inventory import MEASUREMENTS_FILE, part_name
from inftda.publication.parquet_file import (
    Rewritten,
    Shape,
    encoded,
    lists_others,
    numbers_of,
    opened,
    row_groups,
)
from inftda.tables import as_arrow, as_numpy, repeated, texts
from inftda.tree import Axis, Tree, TreeLevel

if TYPE_CHECKING:
    from inftda.mechanisms.step import Drawn

#: Columns besides those of the axes.
TABLE, MEASURED = "table", "measured"
#: Depths of a table, areas of some of its values on each axis, and the values.
_Block = tuple[tuple[int, ...], tuple[NDArray[np.int32], ...], NDArray[np.int64]]


@dataclass(frozen=True)
class NoisyTable:
    """One table of the lattice as it was measured: every value that was drawn.

    Attributes:
        depths: level of each axis's hierarchy, 0 where the axis is summed up.
        sigma2: variance parameter of its discrete Gaussian noise.
        areas: int32[values] for each axis, number of the area at that level.
        value: int64[values], noisy, in group order.
    """

    depths: tuple[int, ...]
    sigma2: Fraction
    areas: tuple[NDArray[np.int32], ...]
    value: NDArray[np.int64]


@dataclass(frozen=True)
class Measurements:
    """All that was measured for a release.

    Attributes:
        tables: the noised total if there is one, then for each level of the tree its table and
            after it those off the tree that were measured with it.
        levels: number of the level that each table is of; None for those off the tree.
    """

    tables: tuple[NoisyTable, ...]
    levels: tuple[int | None, ...]

    def level(self, index: int) -> NoisyTable:
        """The table of a level of the tree.

        Raises:
            ReleaseError: it was not measured: it splits nothing, or its total is public.
        """
        if index not in self.levels:
            raise ReleaseError(f"level {index} of the tree was not measured")
        return self.tables[self.levels.index(index)]

    @property
    def n_values(self) -> int:
        """Number of all values."""
        return sum(len(table.value) for table in self.tables)


class PlannedMeasurement(NamedTuple):
    """A table that a plan measures.

    Attributes:
        name: in the file and in the manifest.
        depths: see `NoisyTable`.
        sigma2: likewise.
        level: of the tree, whose table it is or whose step it belongs to.
        is_on_tree: which of these.
    """

    name: str
    depths: tuple[int, ...]
    sigma2: Fraction
    level: TreeLevel
    is_on_tree: bool

    @property
    def is_one_way(self) -> bool:
        """Whether all axes but one are summed up."""
        return sum(depth > 0 for depth in self.depths) == 1


def planned_measurements(tree: Tree, plan: ReleasePlan) -> tuple[PlannedMeasurement, ...]:
    """All that a plan measures, in the order of `Measurements.tables`."""
    found = []
    for planned in plan.levels:
        level = tree.levels[planned.index]
        on_tree = [(planned.name, level.depths, planned.sigma2, level, True)]
        across = [
            (table.name, table.depths, table.sigma2, level, False)
            for table in plan.tables
            if table.index == planned.index
        ]
        for name, depths, sigma2, at, is_on_tree in on_tree + across:
            if sigma2 is not None:
                found.append(PlannedMeasurement(name, depths, sigma2, at, is_on_tree))
    return tuple(found)


def check_publishable(
    description: Description, mechanism: str, tree: Tree, plan: ReleasePlan
) -> None:
    """Complain about what has no measurements of its own, or no room in their file.

    Args:
        description: of the mechanism.
        mechanism: its name.
        tree: the public tree.
        plan: what is measured.

    Raises:
        InftdaError: the mechanism has no level steps, an axis has the name of another column, or
            two tables have the same name.
    """
    if not description.is_top_down:
        raise InftdaError(
            f"{mechanism} makes its flows of noisy leaves alone and has no measurements to publish "
            "beside them; leave out measurements"
        )
    for axis in tree.axes:
        if axis.name.casefold() in {TABLE, MEASURED}:
            raise InftdaError(
                f"an axis must not be called {axis.name!r} where measurements are published: it is "
                "a column of their file; give the axis another name, or leave out measurements"
            )
    names = [table.name for table in planned_measurements(tree, plan)]
    for name in names:
        if names.count(name) > 1:
            raise InftdaError(
                f"two tables would be called {name!r} in the file of measurements; give the levels "
                "of the areas other names, or leave out measurements"
            )


class MeasurementsFile:
    """Writes noisy values to a Parquet file, in the order they come.

    Args:
        path: the file, or where to write it to.
        axes: of the tree.
    """

    def __init__(self, path: Path | pa.NativeFile, axes: tuple[Axis, ...]) -> None:
        self.n_values = 0
        self._axes = axes
        self._schema = _schema(axes)
        self._writer = pq.ParquetWriter(path, self._schema, **_written(self._schema))
        self._waiting: list[_Block] = []
        self._n_waiting = 0

    def write(
        self,
        depths: tuple[int, ...],
        areas: tuple[NDArray[np.int32], ...],
        value: NDArray[np.int64],
    ) -> None:
        """Add values of one table; written once enough have come."""
        self.n_values += len(value)
        self._n_waiting += len(value)
        self._waiting.append((depths, areas, value))
        while self._n_waiting >= ROW_GROUP:
            self._flush()

    def close(self) -> None:
        """Write what waits and end the file."""
        if self._n_waiting or not self.n_values:
            self._flush()
        self._writer.close()

    def _flush(self) -> None:
        """Write a row group.

        Privacy:
            Of a fixed number of rows, each table in it in one piece, so that the file follows
            from its rows alone.
        """
        batches, rest, left = [], [], ROW_GROUP
        for depths, blocks in groupby(self._waiting, itemgetter(0)):
            _, parts, values = zip(*blocks, strict=True)
            value = np.concatenate(values)
            areas = [np.concatenate(numbers) for numbers in zip(*parts, strict=True)]
            if left and len(value):
                batches.append(self._batch(depths, [one[:left] for one in areas], value[:left]))
            if len(value) > left:
                rest.append((depths, tuple(one[left:] for one in areas), value[left:]))
            left = max(left - len(value), 0)
        group = pa.Table.from_batches(batches, schema=self._schema).unify_dictionaries()
        self._writer.write_table(group, row_group_size=ROW_GROUP)
        self._waiting, self._n_waiting = rest, sum(len(value) for _, _, value in rest)

    def _batch(
        self, depths: tuple[int, ...], areas: list[NDArray[np.int32]], value: NDArray[np.int64]
    ) -> pa.RecordBatch:
        """Rows of one table."""
        name = repeated(TreeLevel(0, None, self._axes, depths).name, 1)
        nowhere = as_arrow(np.zeros(len(value), np.int32))
        columns = [pa.DictionaryArray.from_arrays(nowhere, name)]
        for axis, depth, numbers in zip(self._axes, depths, areas, strict=True):
            columns.append(in_use(numbers, axis.hierarchy.codes(depth)))
        return pa.record_batch([*columns, as_arrow(value)], schema=self._schema)


class MeasurementsWriter:
    """Keeps every noisy value of a release: in a file, or in a folder if it comes in files.

    Args:
        path: what to make.
        tree: the public tree.
    """

    def __init__(self, path: Path, tree: Tree) -> None:
        self._path, self._axes = path, tree.axes
        self._file: MeasurementsFile | None = None
        self._n_files = 0

    def keep_total(self, value: int) -> None:
        """Take the noisy total."""
        areas = tuple(np.zeros(1, np.int32) for _ in self._axes)
        self._opened().write((0,) * len(areas), areas, np.array([value], np.int64))

    def keep(self, drawn: "Drawn") -> None:
        """Take the next counts of a table, in group order."""
        self._opened().write(drawn.depths, drawn.cells(), drawn.value)

    def keep_file(self, file: bytes) -> None:
        """Take counts that are in a file already."""
        self._end_file()
        self._next_path().write_bytes(file)

    def close(self) -> None:
        """End the last file."""
        if not self._n_files:
            self._opened()
        self._end_file()

    def _opened(self) -> MeasurementsFile:
        if self._file is None:
            self._file = MeasurementsFile(self._next_path(), self._axes)
        return self._file

    def _end_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _next_path(self) -> Path:
        """The file itself is the first; with the second they are parts in a folder."""
        number = self._n_files
        self._n_files += 1
        if number == 0:
            return self._path
        if number == 1:
            alone = self._path.rename(self._path.with_suffix(".first"))
            self._path.mkdir(mode=0o700)
            alone.rename(self._path / part_name(0))
        return self._path / part_name(number)


def save_measurements(path: Path, table: pa.Table, tree: Tree, plan: ReleasePlan) -> None:
    """Write values that are in memory, as a release on one machine writes them.

    Args:
        path: the file.
        table: all rows.
        tree: of the release.
        plan: of the release.
    """
    tables = planned_measurements(tree, plan)
    shape = shape_of(tree, tables)
    file = MeasurementsFile(path, tree.axes)
    for rows in _batches(table):
        for stretch in split(rows, tree, tables, shape):
            file.write(tables[stretch.table].depths, stretch.areas, stretch.value)
    file.close()


def read_measurements(
    source: pa.Table | Path,
    tree: Tree,
    plan: ReleasePlan,
    *,
    n_flows: int,
    rewritten: list[Rewritten] | None = None,
) -> Measurements:
    """All that was measured, from its file, folder of files, or table in memory.

    Args:
        source: of the values.
        tree: of the release.
        plan: of the release.
        n_flows: rows of the release, so that a file with far too many values is not read.
        rewritten: if it is given, whatever else may be in a file is refused, too, and what writing
            the rows of each file again gives is added to it, for `check_written_again`.

    Raises:
        ReleaseError: it cannot be read, or names tables or areas that the release does not have.
    """
    tables = planned_measurements(tree, plan)
    shape = shape_of(tree, tables)
    most = sum(_most_values(table, n_flows) for table in tables)
    areas = [[Growing() for _ in tree.axes] for _ in tables]
    value = [Growing(np.int64) for _ in tables]
    n_rows = 0
    for part in [source] if isinstance(source, pa.Table) else files_of(source):
        sink = pa.BufferOutputStream()
        again = None if rewritten is None else MeasurementsFile(sink, tree.axes)
        for rows in _groups(part, shape, most=most - n_rows, is_strict=again is not None):
            n_rows += len(rows)
            for stretch in split(rows, tree, tables, shape):
                value[stretch.table].add(stretch.value)
                for column, numbers in zip(areas[stretch.table], stretch.areas, strict=True):
                    column.add(numbers)
                if again is not None:
                    again.write(tables[stretch.table].depths, stretch.areas, stretch.value)
        if rewritten is not None and again is not None:
            again.close()
            rewritten.append((part, sink.getvalue(), shape))
    # Arrow keeps what it has read with for the next time; there is none.
    pa.default_memory_pool().release_unused()
    return Measurements(
        tuple(
            NoisyTable(
                table.depths, table.sigma2, tuple(column.cut() for column in columns), noisy.cut()
            )
            for table, columns, noisy in zip(tables, areas, value, strict=True)
        ),
        tuple(table.level.index if table.is_on_tree else None for table in tables),
    )


def _most_values(table: PlannedMeasurement, n_flows: int) -> int:
    """Values that a table can have: as many as it has cells, or as the rows of parents have."""
    level = TreeLevel(table.level.index, table.level.step, table.level.axes, table.depths)
    if level.step is None or table.is_one_way:
        return level.n_nodes
    return min(level.n_nodes, n_flows * level.max_children)


class _Stretch(NamedTuple):
    """Values of one table, as they stand in the file."""

    table: int
    areas: tuple[NDArray[np.int32], ...]
    value: NDArray[np.int64]


def files_of(path: Path) -> list[Path]:
    """The file or files of measurements.

    Raises:
        ReleaseError: there is none.
    """
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    if not files or not path.exists():
        raise ReleaseError(
            f"the release has no {MEASUREMENTS_FILE}, which its manifest states; get it again from "
            "its publisher"
        )
    return files


def shape_of(tree: Tree, tables: Iterable[PlannedMeasurement]) -> Shape:
    """What a file of measurements must hold.

    Args:
        tree: of the release.
        tables: that are measured.
    """
    return Shape.of(MEASUREMENTS_FILE, _schema(tree.axes), _listed(tree, tables), ROW_GROUP)


def _listed(tree: Tree, tables: Iterable[PlannedMeasurement]) -> list[pa.StringArray]:
    """What the columns of text may hold: names of tables, codes of all levels."""
    found = [texts(table.name for table in tables)]
    for axis in tree.axes:
        depths = range(axis.hierarchy.depth + 1)
        found.append(pa.concat_arrays([axis.hierarchy.codes(depth) for depth in depths]))
    return found


def split(
    rows: pa.Table, tree: Tree, tables: tuple[PlannedMeasurement, ...], shape: Shape
) -> Iterator[_Stretch]:
    """Some rows of a file, by table.

    Raises:
        ReleaseError: a table or an area is not known.
    """
    names = texts(table.name for table in tables)
    number = numbers_of(*encoded(rows.column(TABLE)), names)
    if (number < 0).any() or any(map(lists_others, rows.columns, _listed(tree, tables))):
        raise shape.fail("names tables or areas that the release does not have")
    columns = [encoded(rows.column(axis.name)) for axis in tree.axes]
    value = as_numpy(rows.column(MEASURED).combine_chunks())
    starts = np.flatnonzero(np.diff(number, prepend=-1)).tolist()
    for low, high in pairwise([*starts, len(number)]):
        table = int(number[low])
        areas = tuple(
            numbers_of(indices[low:high], codes, axis.hierarchy.codes(depth))
            for (indices, codes), axis, depth in zip(
                columns, tree.axes, tables[table].depths, strict=True
            )
        )
        if any((numbers < 0).any() for numbers in areas):
            raise shape.fail("names tables or areas that the release does not have")
        yield _Stretch(table, areas, value[low:high])


def _groups(
    source: pa.Table | Path, shape: Shape, *, most: int, is_strict: bool
) -> Iterator[pa.Table]:
    """Rows, some at a time; of a file one row group at a time."""
    if isinstance(source, pa.Table):
        yield from _batches(source)
        return
    with opened(source, shape) as file:
        if file.metadata.num_rows > most:
            raise shape.fail("has more rows than such a release can have")
        yield from row_groups(file, shape) if is_strict else _plain_groups(file, shape)


def _batches(table: pa.Table) -> Iterator[pa.Table]:
    return (pa.Table.from_batches([batch]) for batch in table.to_batches())


def _plain_groups(file: pq.ParquetFile, shape: Shape) -> Iterator[pa.Table]:
    for number in range(file.num_row_groups):
        rows = file.read_row_group(number)
        if any(column.null_count for column in rows.columns):
            raise shape.fail("has rows without a number or an area")
        yield rows


def _schema(axes: tuple[Axis, ...]) -> pa.Schema:
    names = [TABLE, *(axis.name for axis in axes)]
    fields = [pa.field(name, CODE, nullable=False) for name in names]
    return pa.schema([*fields, pa.field(MEASURED, pa.int64(), nullable=False)])


def _written(schema: pa.Schema) -> dict[str, Any]:
    """How files are written: differences of noisy values take less than half of their room."""
    return {
        "compression": "zstd",
        "use_dictionary": schema.names[:-1],
        "column_encoding": {MEASURED: "DELTA_BINARY_PACKED"},
    }
