"""Tables of a release as Parquet files, whose bytes follow from their rows.

Flows stand in one order, that of the last step down the tree: by the parent of the area on the
axis that is refined last, then by the areas on the other axes, the one with most areas first,
then by the area itself. Row groups have a fixed size and list the codes that occur in them. So a
file reveals nothing about how the release was made, and anybody can check it by writing it again
from its rows.

Files may be forged, so their metadata is checked before their rows are read.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from inftda.errors import ReleaseError
from inftda.publication.manifest import DAMAGED
from inftda.publication.query import FLOW
from inftda.tree import Areas, Cells, Tree, TreeLevel
from inftda.util.formats import GET_AGAIN
from inftda.util.tabular import as_arrow, as_numpy, find_texts

#: Rows of a row group; large, because the codes in use are written once for each.
ROW_GROUP: Final = 1 << 20
#: Type of columns of codes: numbers in a dictionary of the codes that occur.
CODE: Final = pa.dictionary(pa.int32(), pa.string())
#: Largest number of bytes of a number in a row, and of the metadata of a column chunk.
_NUMBER, _CHUNK = 16, 1 << 12


def write_flows(path: Path | pa.NativeFile, tree: Tree, flows: Cells) -> None:
    """Write released leaves, in the order of the format."""
    keys = order_keys(tree, flows.areas)
    if not is_ascending(keys):
        order = np.lexsort(keys[::-1])
        flows = flows.take(order)
    schema = schema_of((axis.name for axis in tree.axes), FLOW)
    codes = [axis.hierarchy.codes(axis.hierarchy.depth) for axis in tree.axes]
    with pq.ParquetWriter(
        path, schema, compression="zstd", use_dictionary=schema.names[:-1]
    ) as writer:
        for start in range(0, max(len(flows.value), 1), ROW_GROUP):
            part = slice(start, start + ROW_GROUP)
            areas = [
                in_use(*pair) for pair in zip((of[part] for of in flows.areas), codes, strict=True)
            ]
            columns = [*areas, as_arrow(flows.value[part])]
            writer.write_batch(pa.record_batch(columns, schema), row_group_size=ROW_GROUP)


def read_flows(source: pa.Table | Path, tree: Tree, *, n_flows: int = 0) -> Cells:
    """Read released leaves from a table or its file; see `flow_parts`."""
    return join_flows(tree, flow_parts(source, tree, n_flows))


def join_flows(tree: Tree, parts: Iterable[Cells]) -> Cells:
    """Released leaves of some parts, or of none."""
    return Cells.join([Cells(_nowhere(tree), np.zeros(0, np.int64)), *parts])


def flow_parts(source: pa.Table | Path, tree: Tree, n_flows: int) -> Iterator[Cells]:
    """Yield the released leaves of a table, or by row group of its file, which hold nothing else.

    A file with more rows than the manifest states (`n_flows`) is refused unread.
    """
    groups: Iterable[tuple[pa.Table, Areas]] = (
        flow_groups(source, tree, n_flows)
        if isinstance(source, Path)
        else ((table, known_areas(tree, table)) for table in (source,))
    )
    for rows, areas in groups:
        yield Cells(areas, as_numpy(rows.column(FLOW).combine_chunks()))


def check_flows(path: Path, tree: Tree, n_flows: int) -> None:
    """Compare the metadata of a file of flows with the manifest; no row is read."""
    n_cells = tree.levels[-1].n_nodes
    if n_flows > n_cells:
        raise ReleaseError(
            f"the manifest states {n_flows:,} flows, but its areas have {n_cells:,} cells; it was "
            f"edited: {GET_AGAIN}"
        )
    with _opened(path, *_expected(tree), most_rows=n_flows, most_bytes=0) as file:
        n_rows = file.metadata.num_rows
    if n_rows != n_flows:
        raise ReleaseError(
            f"{path.name} has {n_rows:,} rows and the manifest states {n_flows:,}; {DAMAGED}"
        )


def flow_groups(path: Path, tree: Tree, n_flows: int) -> Iterator[tuple[pa.Table, Areas]]:
    """Yield the rows of a file of flows and their areas by row group; each cell once, in order."""
    last = _nowhere(tree)
    for rows in row_groups(path, *_expected(tree), most_rows=n_flows):
        areas = known_areas(tree, rows)
        cells = tuple(map(np.append, last, areas))
        if not is_ascending(order_keys(tree, cells)):
            raise ReleaseError(f"{path.name} does not have each cell once and in order; {DAMAGED}")
        last = tuple(numbers[-1:] for numbers in cells)
        yield rows, areas


def known_areas(tree: Tree, rows: pa.Table) -> Areas:
    """int32 for each axis: finest areas of some rows, all of which must be areas of the tree."""
    areas = []
    for axis in tree.axes:
        codes = axis.hierarchy.codes(axis.hierarchy.depth)
        areas.append(numbers_of(rows.column(axis.name), codes))
        if (areas[-1] < 0).any():
            raise ReleaseError(
                f"the released table has a code on axis {axis.name!r} that is not among its "
                f"areas; {DAMAGED}"
            )
    return tuple(areas)


def _expected(tree: Tree) -> tuple[pa.Schema, list[pa.StringArray]]:
    """Schema of a file of flows, and the allowed codes of its axes."""
    codes = [axis.hierarchy.codes(axis.hierarchy.depth) for axis in tree.axes]
    return schema_of((axis.name for axis in tree.axes), FLOW), codes


def _nowhere(tree: Tree) -> Areas:
    return tuple(np.zeros(0, np.int32) for _ in tree.axes)


def order_keys(tree: Tree, areas: Areas) -> list[NDArray[Any]]:
    """Sort keys of flows, most significant first."""
    return group_keys(tree.splitting_levels[-1] if tree.splitting_levels else tree.levels[0], areas)


def group_keys(level: TreeLevel, areas: Areas) -> list[NDArray[Any]]:
    """Sort keys of the cells of a step in group order, most significant first."""
    if level.refined is None:
        return list(areas)
    return [level.keys(level.parents(areas)), areas[level.axis]]


def is_ascending(keys: Sequence[NDArray[Any]]) -> bool:
    """Whether rows are in strictly ascending order of their keys."""
    n = max(len(keys[0]) - 1, 0)
    is_after, is_same = np.zeros(n, bool), np.ones(n, bool)
    for numbers in keys:
        is_after |= is_same & (numbers[1:] > numbers[:-1])
        is_same &= numbers[1:] == numbers[:-1]
    return bool(is_after.all())


def in_use(numbers: NDArray[np.int32], codes: pa.StringArray) -> pa.DictionaryArray:
    """Codes by number, with a dictionary of the codes that occur."""
    used = np.zeros(len(codes), bool)
    used[numbers] = True
    index = np.cumsum(used, dtype=np.int32) - np.int32(1)
    return pa.DictionaryArray.from_arrays(
        as_arrow(index[numbers]), codes.take(as_arrow(np.flatnonzero(used)))
    )


def numbers_of(column: pa.ChunkedArray, codes: pa.StringArray) -> NDArray[np.int32]:
    """int32: number of each text of a row group among known codes, -1 if unknown.

    An unknown text that is only in the dictionary counts for the first row, because tools show
    dictionaries.
    """
    if not len(column):
        return np.zeros(0, np.int32)
    texts = column.combine_chunks()
    if not pa.types.is_dictionary(texts.type):
        texts = texts.dictionary_encode()
    known = find_texts(texts.dictionary, codes)
    found: NDArray[np.int32] = known[as_numpy(texts.indices)]
    if (known < 0).any():
        found[:1] = -1
    return found


def row_groups(
    path: Path,
    schema: pa.Schema,
    texts: Sequence[pa.StringArray],
    *,
    most_rows: int,
    most_bytes: int = 0,
) -> Iterator[pa.Table]:
    """Yield the rows of a file by row group, with dictionary columns; no cell is empty.

    Columns of text come first in the schema; `texts` has the allowed values of each, which bound
    its size. `most_bytes` bounds columns that are neither text nor numbers.
    """
    with _opened(path, schema, texts, most_rows=most_rows, most_bytes=most_bytes) as file:
        for number in range(file.num_row_groups):
            rows = file.read_row_group(number)
            rows.validate(full=True)  # indices and characters were not checked before
            if any(column.null_count for column in rows.columns):
                raise ReleaseError(f"{path.name} has empty cells; {DAMAGED}")
            yield rows


@contextmanager
def _opened(
    path: Path,
    schema: pa.Schema,
    texts: Sequence[pa.StringArray],
    *,
    most_rows: int,
    most_bytes: int,
) -> Iterator[pq.ParquetFile]:
    """Open a file after checking its columns, rows and sizes for `row_groups`."""

    def fail(what: str) -> ReleaseError:
        return ReleaseError(f"{path.name} {what}; {DAMAGED}")

    if not path.exists():
        raise ReleaseError(f"the release has no {path.name}; {GET_AGAIN}")
    try:
        found = pq.read_schema(path)
        if not found.equals(schema):
            columns = (f"{of.name} ({of.type})" for of in found)
            raise fail(f"has other columns than it should: {', '.join(columns)[:500]}")
        with pq.ParquetFile(path, read_dictionary=schema.names[: len(texts)]) as file:
            stated = {*(file.metadata.metadata or {})} - {b"ARROW:schema"}
            at_columns = {key for of in found for key in of.metadata or {}} - {b"PARQUET:field_id"}
            if stated | {*(found.metadata or {})} | at_columns:
                raise fail("has metadata, which no release has")
            if file.metadata.num_rows > most_rows:
                raise fail(f"has {file.metadata.num_rows:,} rows, more than it can have")
            _check_size(file.metadata, schema, texts, most_bytes, fail)
            yield file
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise fail("cannot be read") from None


def schema_of(codes: Iterable[str], number: str) -> pa.Schema:
    """Schema with columns of codes, and one of whole numbers."""
    fields = [pa.field(name, CODE, nullable=False) for name in codes]
    return pa.schema([*fields, pa.field(number, pa.int64(), nullable=False)])


def _check_size(
    metadata: pq.FileMetaData,
    schema: pa.Schema,
    texts: Sequence[pa.StringArray],
    most_bytes: int,
    fail: Callable[[str], ReleaseError],
) -> None:
    """Refuse row groups that are larger than their rows can be, before anything is unpacked."""
    n_groups = metadata.num_row_groups
    if n_groups > metadata.num_rows // ROW_GROUP + 1:
        raise fail("has rows in other groups than releases have")
    lengths = [pc.binary_length(known) for known in texts]
    of_all = sum(int(pc.sum(known).as_py() or 0) + 4 * len(known) for known in lengths)
    longest = sum(int(pc.max(known).as_py() or 0) for known in lengths)
    a_row = _NUMBER * len(schema) + longest
    besides = of_all + most_bytes + _CHUNK * len(schema)
    for group in map(metadata.row_group, range(n_groups)):
        if group.num_rows > ROW_GROUP:
            raise fail("has rows in other groups than releases have")
        if group.total_byte_size > a_row * group.num_rows + besides:
            raise fail("would expand beyond what its rows need")
