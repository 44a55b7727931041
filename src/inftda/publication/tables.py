"""Tables of a release as Parquet files, each of which follows from its rows to the bit.

Flows stand in one order, that of the last step down the tree: by the parent of the area on the
axis that is refined last, then by the areas on the other axes, the one with most areas first,
then by the area itself. Row groups have a fixed size and list the codes that occur in them. So
nothing about how a release was made shows in its files, and whoever doubts a file can write it
again from its rows.

Files may come from strangers: what they state is compared with what a release can have before
their rows are read.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from inftda.errors import ReleaseError
from inftda.publication.manifest import DAMAGED, GET_AGAIN
from inftda.publication.query import FLOW
from inftda.tables import as_arrow, as_numpy, find_texts
from inftda.tree import Tree, TreeLevel, differ

#: Rows of a row group: enough that the codes in use are written few times.
ROW_GROUP: Final = 1 << 20
#: Codes of areas, as columns hold them: the number of each in a list of those that occur.
CODE: Final = pa.dictionary(pa.int32(), pa.string())
#: What Arrow puts into a file besides the table.
_ARROW: Final = b"ARROW:schema"
#: Bytes of a number in a row, at most, and of what is said of a column chunk besides its texts.
_NUMBER, _CHUNK = 16, 1 << 12
_KINDS: Final = {
    CODE: "text",
    pa.string(): "text",
    pa.int64(): "64-bit integers",
    pa.float64(): "64-bit decimal numbers",
    pa.binary(): "binary",
}

Areas = tuple[NDArray[np.int32], ...]


class Flows(NamedTuple):
    """Released leaves.

    Attributes:
        areas: int32 for each axis, finest areas by number.
        flow: int64.
    """

    areas: Areas
    flow: NDArray[np.int64]

    @property
    def total(self) -> int:
        """Sum of all flows, in halves: numbers made for it would sum to anything in 64 bits."""
        return (int((self.flow >> 32).sum()) << 32) + int((self.flow & 0xFFFFFFFF).sum())


def join_flows(tree: Tree, blocks: Iterable[tuple[Areas, NDArray[np.int64]]]) -> Flows:
    """Blocks of leaves as one."""
    blocks = list(blocks)
    if len(blocks) == 1:
        return Flows(*blocks[0])
    nothing = tuple(np.zeros(0, np.int32) for _ in tree.axes), np.zeros(0, np.int64)
    areas, flow = zip(nothing, *blocks, strict=True)
    return Flows(tuple(map(np.concatenate, zip(*areas, strict=True))), np.concatenate(flow))


def as_table(tree: Tree, flows: Flows) -> pa.Table:
    """Released leaves as a table in memory."""
    columns = [
        pa.DictionaryArray.from_arrays(
            as_arrow(numbers), axis.hierarchy.codes(axis.hierarchy.depth)
        )
        for axis, numbers in zip(tree.axes, flows.areas, strict=True)
    ]
    names = [*(axis.name for axis in tree.axes), FLOW]
    return pa.Table.from_arrays([*columns, as_arrow(flows.flow)], names=names)


def from_table(tree: Tree, table: pa.Table) -> Flows:
    """Released leaves from a table in memory."""
    return Flows(leaf_areas(tree, table), table.column(FLOW).to_numpy())


def leaf_areas(tree: Tree, table: pa.Table) -> Areas:
    """int32 for each axis: finest areas of the rows of a table by number, -1 if unknown."""
    found = []
    for axis in tree.axes:
        column = table.column(axis.name)
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        found.append(numbers_of(column, axis.hierarchy.codes(axis.hierarchy.depth)))
    return tuple(found)


def write_flows(path: Path | pa.NativeFile, tree: Tree, flows: Flows) -> None:
    """Write released leaves, in the order of the format."""
    keys = order_keys(tree, flows.areas)
    if not is_ascending(keys):
        order = np.lexsort(keys[::-1])
        flows = Flows(tuple(numbers[order] for numbers in flows.areas), flows.flow[order])
    schema = _flows_schema(tree)
    codes = [axis.hierarchy.codes(axis.hierarchy.depth) for axis in tree.axes]
    with pq.ParquetWriter(
        path, schema, compression="zstd", use_dictionary=schema.names[:-1]
    ) as writer:
        for start in range(0, max(len(flows.flow), 1), ROW_GROUP):
            part = slice(start, start + ROW_GROUP)
            columns = [
                in_use(numbers[part], known)
                for numbers, known in zip(flows.areas, codes, strict=True)
            ]
            columns.append(as_arrow(flows.flow[part]))
            writer.write_batch(pa.record_batch(columns, schema), row_group_size=ROW_GROUP)


def read_flows(path: Path, tree: Tree, *, n_flows: int) -> Flows:
    """Released leaves from their file.

    Args:
        path: the file.
        tree: of the release.
        n_flows: rows that the manifest states; a file with more is not read.

    Raises:
        ReleaseError: it cannot be read, or has anything but flows between known areas.
    """
    codes = [axis.hierarchy.codes(axis.hierarchy.depth) for axis in tree.axes]
    blocks = []
    for rows in row_groups(path, _flows_schema(tree), codes, most_rows=n_flows):
        areas = tuple(map(numbers_of, rows.columns, codes))
        for axis, numbers in zip(tree.axes, areas, strict=True):
            if (numbers < 0).any():
                raise ReleaseError(
                    f"not true of this release: every {axis.name} is a known area; {GET_AGAIN}"
                )
        blocks.append((areas, as_numpy(rows.column(FLOW).combine_chunks())))
    return join_flows(tree, blocks)


def order_keys(tree: Tree, areas: Areas) -> list[NDArray[np.int32]]:
    """What flows are ordered by, most significant first."""
    if not tree.splitting_levels:
        return list(areas)
    last = tree.splitting_levels[-1]
    refined = last.axes[last.axis].hierarchy
    parent = refined.ancestor(refined.depth, last.depths[last.axis] - 1)[areas[last.axis]]
    above = (*areas[: last.axis], parent, *areas[last.axis + 1 :])
    return [*_group_keys(last, above), areas[last.axis]]


def is_ascending(keys: Sequence[NDArray[np.int32]], *, strictly: bool = True) -> bool:
    """Whether each row comes after the one before it, by one key after the other.

    Args:
        keys: most significant first.
        strictly: whether no row may be equal to the one before it.
    """
    n = max(len(keys[0]) - 1, 0)
    is_after, is_same = np.zeros(n, bool), np.ones(n, bool)
    for numbers in keys:
        is_after |= is_same & (numbers[1:] > numbers[:-1])
        is_same &= numbers[1:] == numbers[:-1]
    return bool((is_after if strictly else is_after | is_same).all())


def sums_above(level: TreeLevel, flows: Flows) -> Flows:
    """Released nodes of a level summed up to their parents, in group order of the step.

    Sorted only where they are not in that order already, as leaves are.
    """
    areas, flow = level.parents(flows.areas), flows.flow
    keys = _group_keys(level, areas)
    if not is_ascending(keys, strictly=False):
        order = np.lexsort(keys[::-1])
        areas, flow = tuple(numbers[order] for numbers in areas), flow[order]
    first = np.flatnonzero(differ(areas))
    sums = np.add.reduceat(flow, first) if len(flow) else flow
    return Flows(tuple(numbers[first] for numbers in areas), sums)


def _group_keys(level: TreeLevel, areas: Areas) -> list[NDArray[np.int32]]:
    """Areas of nodes or of their parents in group order: the refined axis, then the longest."""
    others = [axis for axis in range(len(areas)) if axis != level.axis]
    others.sort(key=lambda axis: -level.axes[axis].hierarchy.n_areas(level.depths[axis]))
    return [areas[axis] for axis in (level.axis, *others)]


def in_use(numbers: NDArray[np.int32], codes: pa.StringArray) -> pa.DictionaryArray:
    """Codes by number, with a dictionary of only those that occur: it is written each time."""
    used = np.zeros(len(codes), bool)
    used[numbers] = True
    index = np.cumsum(used, dtype=np.int32) - np.int32(1)
    return pa.DictionaryArray.from_arrays(
        as_arrow(index[numbers]), codes.take(as_arrow(np.flatnonzero(used)))
    )


def numbers_of(column: pa.ChunkedArray, codes: pa.StringArray) -> NDArray[np.int32]:
    """int32: number of each text of a row group among known ones, -1 where it is not.

    Unknown texts that the column lists count for its first row: tools show what is listed.
    """
    texts = column.combine_chunks()
    if isinstance(texts, pa.ChunkedArray):  # of no chunks at all
        return np.zeros(0, np.int32)
    known = find_texts(texts.dictionary, codes)
    found: NDArray[np.int32] = known[as_numpy(texts.indices)]
    if (known < 0).any():
        found[:1] = -1
    return found


def row_groups(  # noqa: PLR0913 - what a file may have
    path: Path,
    schema: pa.Schema,
    texts: Sequence[pa.StringArray],
    *,
    most_rows: int,
    most_bytes: int = 0,
    again: str = DAMAGED,
) -> Iterator[pa.Table]:
    """The rows of a file, group by group, texts as lists and numbers; no cell is empty.

    Args:
        path: the file.
        schema: its columns, those of text first.
        texts: what each column of text may hold, for how large it can be.
        most_rows: rows that it can have.
        most_bytes: bytes of its columns that are neither text nor numbers.
        again: what to do about a file that is not like that.

    Raises:
        ReleaseError: it holds anything else, or states more than it can have.
    """

    def fail(what: str) -> ReleaseError:
        return ReleaseError(f"{path.name} {what}; {again}")

    if not path.exists():
        raise ReleaseError(f"the release has no {path.name}; {GET_AGAIN}")
    text_columns = [field.name for field in schema if _KINDS[field.type] == "text"]
    try:
        _check_columns(pq.read_schema(path), schema, fail)
        with pq.ParquetFile(path, read_dictionary=text_columns) as file:
            _check_metadata(file, fail)
            if file.metadata.num_rows > most_rows:
                raise fail(f"has {file.metadata.num_rows:,} rows, more than it can have")
            _check_size(file.metadata, schema, texts, most_bytes, fail)
            for number in range(file.num_row_groups):
                rows = file.read_row_group(number)
                rows.validate(full=True)  # indices and letters are not checked before
                for name, column in zip(rows.column_names, rows.columns, strict=True):
                    if column.null_count:
                        raise fail(f"has rows without {name}")
                yield rows
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise fail("cannot be read") from None


def _flows_schema(tree: Tree) -> pa.Schema:
    """Columns of the flows: one for each axis, and the number."""
    fields = [pa.field(axis.name, CODE, nullable=False) for axis in tree.axes]
    return pa.schema([*fields, pa.field(FLOW, pa.int64(), nullable=False)])


def _check_columns(
    found: pa.Schema, schema: pa.Schema, fail: Callable[[str], ReleaseError]
) -> None:
    if found.names != schema.names:
        raise fail(f"has the columns {', '.join(found.names)}, not {', '.join(schema.names)}")
    for field, expected in zip(found, schema, strict=True):
        if _KINDS.get(field.type) != _KINDS[expected.type]:
            raise fail(f"cannot be read: {field.name} must be {_KINDS[expected.type]}")


def _check_metadata(file: pq.ParquetFile, fail: Callable[[str], ReleaseError]) -> None:
    """Nothing beside the table but what Arrow always adds."""
    schema = file.schema_arrow
    for stated in (file.metadata.metadata, schema.metadata):
        for key in {*(stated or {})} - {_ARROW}:
            raise fail(f"has metadata {key[:60].decode(errors='replace')!r}")
    if any({*(field.metadata or {})} - {b"PARQUET:field_id"} for field in schema):
        raise fail("has metadata at its columns")


def _check_size(
    metadata: pq.FileMetaData,
    schema: pa.Schema,
    texts: Sequence[pa.StringArray],
    most_bytes: int,
    fail: Callable[[str], ReleaseError],
) -> None:
    """Before anything is unpacked: no row group is larger than its rows can be."""
    n_groups = metadata.num_row_groups
    if n_groups > metadata.num_rows // ROW_GROUP + 1:
        raise fail("has rows in other groups than releases have")
    lengths = [pc.binary_length(known) for known in texts]
    of_all = sum(int(pc.sum(known).as_py() or 0) + 4 * len(known) for known in lengths)
    longest = sum(int(pc.max(known).as_py() or 0) for known in lengths)
    a_row = _NUMBER * len(schema) + longest
    for number in range(n_groups):
        group = metadata.row_group(number)
        if group.total_byte_size > a_row * group.num_rows + of_all + most_bytes + _CHUNK * len(
            schema
        ):
            raise fail("would expand beyond what its rows need")
