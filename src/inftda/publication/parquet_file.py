"""Parquet files of a release, read without trusting them.

A Parquet file has room for more than its table: metadata, statistics that tools believe without
reading the rows, gaps between its parts, and rows that expand to a thousand times the file. All
of it is compared with what a release has before, or while, its rows are read.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from inftda.errors import ReleaseError
from inftda.publication.inventory import DAMAGED
from inftda.publication.pages import is_answerable, skeleton, walk
from inftda.tables import as_numpy, find_texts

#: What Arrow puts into a file besides the table: its schema, and what wrote it.
_ARROW: Final = b"ARROW:schema"
_WRITER: Final = re.compile(r"parquet-cpp-arrow version [0-9A-Za-z.+_-]{1,40}")
#: Signature at both ends of a file; before the last one stands the length of the footer.
_MAGIC, _FOOTER_LENGTH = 4, 4
#: Bytes of a number, at most: written out, or listed with its place in the list.
_NUMBER: Final = 12
#: Room for page headers and encodings of a column chunk, for a footer, and for what a footer says
#: of a column chunk besides its smallest and largest text, which it has up to four times.
_PAGES, _FOOTER, _FOOTER_CHUNK = 1 << 12, 2048, 512
_CODEC: Final = "ZSTD"
_KINDS: Final = {
    pa.int64(): "64-bit integers",
    pa.float64(): "64-bit decimal numbers",
    pa.binary(): "binary",
}


@dataclass(frozen=True)
class Shape:
    """What a file must hold.

    Attributes:
        name: what it is called in messages.
        fields: columns, in order; text may be dictionary-encoded.
        code_bytes: bytes of all different texts of each column, 0 for numbers; of a column of
            anything else (binary) the bytes of all of it, at most.
        longest: bytes of the longest text of each column, 0 for all others.
        group_rows: rows of every row group but the last, which has no more; None if they may be
            any.
        again: what to do about a file that is not like that.
    """

    name: str
    fields: tuple[pa.Field, ...]
    code_bytes: tuple[int, ...]
    longest: tuple[int, ...]
    group_rows: int | None = None
    again: str = DAMAGED

    @classmethod
    def of(
        cls,
        name: str,
        schema: pa.Schema,
        texts: Sequence[pa.StringArray],
        group_rows: int | None = None,
    ) -> "Shape":
        """Of a file with texts in its first columns and numbers in all others.

        Args:
            name: see above.
            schema: of the columns.
            texts: what each column of text may hold.
            group_rows: see above.
        """
        numbers = [(0, 0)] * (len(schema) - len(texts))
        of_all, longest = zip(*map(text_size, texts), *numbers, strict=True)
        fields = tuple(pa.field(field.name, _plain(field.type)) for field in schema)
        return cls(name, fields, of_all, longest, group_rows)

    @property
    def text_columns(self) -> list[str]:
        """Names of the columns that do not hold numbers."""
        return [field.name for field in self.fields if field.type == pa.string()]

    def fail(self, what: str) -> ReleaseError:
        """An error that says what is wrong with the file."""
        return ReleaseError(f"{self.name} {what}; {self.again}")

    def most_bytes(self, column: int, n_rows: int) -> int:
        """Bytes of a column of that many rows: numbers, or every text written out and listed."""
        longest = self.longest[column]
        if not longest:
            return _NUMBER * n_rows + self.code_bytes[column] + _PAGES
        return (longest + 9) * n_rows + self.code_bytes[column] + 8 * longest + _PAGES


def _plain(kind: Any) -> Any:
    """The type of what a column holds, whether it lists its texts or not."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


#: A file, what writing its rows again gives, and what it must hold.
Rewritten = tuple[Path, pa.Buffer, Shape]


@contextmanager
def opened(path: Path, shape: Shape) -> Iterator[pq.ParquetFile]:
    """A file whose header and footer are those of a release; no row is read yet.

    Raises:
        ReleaseError: they are not, or the block cannot read the file.
    """
    try:
        _check_columns(pq.read_schema(path), shape)
        # As lists of texts and numbers: what is listed is seen, also if no row has it.
        with pq.ParquetFile(path, read_dictionary=shape.text_columns) as file:
            _check_types(file.metadata, path, shape)
            _check_metadata(file, shape)
            _check_sizes(file.metadata, shape)
            _check_footer(file.metadata, shape)
            _check_no_gaps(file.metadata, path, shape)
            _check_pages(file.metadata, path, shape)
            yield file
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise shape.fail("cannot be read") from None


def row_groups(file: pq.ParquetFile, shape: Shape) -> Iterator[pa.Table]:
    """The rows, group by group; what the footer says of each is true.

    Raises:
        ReleaseError: a cell is empty, or a statistic is false.
    """
    for number in range(file.num_row_groups):
        table = file.read_row_group(number)
        stated = file.metadata.row_group(number)
        for column, field in enumerate(shape.fields):
            values = table.column(column)
            if values.null_count:
                raise shape.fail(f"has rows without {field.name}")
            _check_statistics(stated.column(column).statistics, values, field.name, shape)
        yield table


def check_written_again(path: Path, again: pa.Buffer, shape: Shape) -> None:
    """Check that a file is what writing its rows again gives: nothing in it is left to choice.

    Where another version of Arrow wrote it, headers and footers may hold more and other things,
    and what `opened` checks has to be enough.

    Args:
        path: the file, after all other checks.
        again: the same rows in the same order, written as a release writes them.
        shape: what it must hold.

    Raises:
        ReleaseError: it was written in another way.
    """
    with pa.memory_map(str(path)) as source:
        found = source.read_buffer()
        if found.equals(again):
            return
        try:
            writer, is_there = skeleton(memoryview(found).cast("B"))
            known, expected = skeleton(memoryview(again).cast("B"))
        except ValueError:
            raise shape.fail("cannot be read") from None
        if writer == known and is_there != expected:
            raise shape.fail("is not written as inftda writes it")


def _check_columns(found: pa.Schema, shape: Shape) -> None:
    names = [field.name for field in shape.fields]
    if found.names != names:
        raise shape.fail(f"has the columns {', '.join(found.names)}, not {', '.join(names)}")
    for field, expected in zip(found, shape.fields, strict=True):
        is_text = expected.type == pa.string()
        if (_plain(field.type) if is_text else field.type) != expected.type:
            words = "text" if is_text else _KINDS[expected.type]
            raise shape.fail(f"cannot be read as a release: {field.name} must be {words}")


def _check_types(metadata: pq.FileMetaData, path: Path, shape: Shape) -> None:
    """Before Arrow is asked about a column: it would not survive the answer."""
    size = metadata.serialized_size
    with path.open("rb") as file:
        file.seek(-(size + _FOOTER_LENGTH + _MAGIC), os.SEEK_END)
        footer = file.read(size)
    try:
        is_right = is_answerable(footer)
    except ValueError:
        is_right = False
    if not is_right:
        raise shape.fail("cannot be read")


def _check_metadata(file: pq.ParquetFile, shape: Shape) -> None:
    """Nothing beside the table but what writers always add."""
    metadata = file.metadata
    for key in metadata.metadata or {}:
        if key != _ARROW:
            raise shape.fail(f"has metadata {key[:60].decode(errors='replace')!r}")
    if not _WRITER.fullmatch(metadata.created_by or ""):
        raise shape.fail("was not written by inftda: its footer names another writer")
    schema = file.schema_arrow
    if any({*(field.metadata or {})} - {b"PARQUET:field_id"} for field in schema):
        raise shape.fail("has metadata at its columns")
    if schema.metadata and {*schema.metadata} - {_ARROW}:
        raise shape.fail("has metadata in its schema")
    # Arrow's schema was read above; it is no longer than a schema has to be.
    plain = schema.remove_metadata().serialize().size
    if len((metadata.metadata or {}).get(_ARROW, b"")) > 2 * plain + 256:
        raise shape.fail("has more in its metadata than its columns")


def _check_sizes(metadata: pq.FileMetaData, shape: Shape) -> None:
    """Before anything is unpacked: no column is larger than its rows can be."""
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    if sum(group.num_rows for group in groups) != metadata.num_rows:
        raise shape.fail("states two different numbers of rows")
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        is_last = number == metadata.num_row_groups - 1
        wanted = shape.group_rows or group.num_rows
        if group.num_rows > wanted or (group.num_rows < wanted and not is_last):
            raise shape.fail("has rows in other groups than releases have")
        for column in range(group.num_columns):
            most = shape.most_bytes(column, group.num_rows)
            chunk = group.column(column)
            if chunk.total_uncompressed_size > most or chunk.num_values != group.num_rows:
                raise shape.fail("would expand beyond what its rows need")
            if chunk.compression != _CODEC:
                raise shape.fail(f"is not compressed by {_CODEC}, as releases are")


def _check_footer(metadata: pq.FileMetaData, shape: Shape) -> None:
    """The footer is no longer than what it has to say."""
    stated = sum(len(key) + len(value) for key, value in (metadata.metadata or {}).items())
    chunk = sum(
        _FOOTER_CHUNK + 2 * len(field.name.encode()) + 4 * longest
        for field, longest in zip(shape.fields, shape.longest, strict=True)
    )
    if metadata.serialized_size > _FOOTER + stated + (metadata.num_row_groups + 1) * chunk:
        raise shape.fail("has more in its footer than its columns")


def _check_no_gaps(metadata: pq.FileMetaData, path: Path, shape: Shape) -> None:
    """Every byte before the footer belongs to a column."""
    end = _MAGIC
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for column in range(group.num_columns):
            chunk = group.column(column)
            size = chunk.total_compressed_size
            if size < 0 or _first_page(chunk, end) != end or (size and not _has_pages(chunk)):
                raise shape.fail("has bytes that belong to none of its columns")
            end += size
    footer = path.stat().st_size - _MAGIC - _FOOTER_LENGTH - metadata.serialized_size
    if footer != end:
        raise shape.fail("has bytes that belong to none of its columns")


def _check_pages(metadata: pq.FileMetaData, path: Path, shape: Shape) -> None:
    """Pages are what the footer says of them, and there is nothing beside them."""
    with path.open("rb") as file:
        end = _MAGIC
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            for column in range(group.num_columns):
                start, end = end, end + group.column(column).total_compressed_size
                try:
                    pages = walk(file, start, end, longest=shape.longest[column])
                except ValueError:
                    raise shape.fail("cannot be read") from None
                if not pages.is_filled or pages.n_values != group.num_rows:
                    raise shape.fail("has bytes that belong to none of its columns")
                if pages.expanded > shape.most_bytes(column, group.num_rows):
                    raise shape.fail("would expand beyond what its rows need")


def _has_pages(chunk: pq.ColumnChunkMetaData) -> bool:
    return bool(chunk.data_page_offset or chunk.has_dictionary_page)


def _first_page(chunk: pq.ColumnChunkMetaData, otherwise: int) -> int:
    """Where a column chunk begins; one without rows has no page of data, and perhaps none."""
    pages = {chunk.data_page_offset, chunk.dictionary_page_offset} - {0, None}
    return min(pages, default=otherwise)


def _check_statistics(stated: Any, values: pa.ChunkedArray, name: str, shape: Shape) -> None:
    """Tools skip rows by these without reading them."""
    if stated is None:
        return
    if stated.has_null_count and stated.null_count:
        raise shape.fail(f"has false statistics of {name}")
    if not stated.has_min_max or not len(values):
        return
    if {"min": stated.min, "max": stated.max} != pc.min_max(_distinct(values)).as_py():
        raise shape.fail(f"has false statistics of {name}")


def _distinct(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """What a column holds: of a column of texts each but once."""
    if not pa.types.is_dictionary(values.type):
        return values
    held = [chunk.dictionary.take(chunk.indices.unique()) for chunk in values.chunks]
    return pa.chunked_array(held, values.type.value_type)


def encoded(column: pa.ChunkedArray) -> tuple[NDArray[np.int32], pa.StringArray]:
    """Index of each text of a row group, and the texts that it lists."""
    texts = column.combine_chunks()
    if isinstance(texts, pa.ChunkedArray):  # of no chunks at all
        texts = pa.array([], pa.dictionary(pa.int32(), pa.string()))
    return as_numpy(texts.indices), texts.dictionary


def numbers_of(
    indices: NDArray[np.int32], texts: pa.StringArray, known: pa.StringArray
) -> NDArray[np.int32]:
    """int32: number of each text among known ones, -1 where it is not."""
    return find_texts(texts, known)[indices]


def lists_others(column: pa.ChunkedArray, texts: pa.StringArray) -> bool:
    """Whether a column holds or lists anything but these texts; tools show what is listed."""
    listed = [
        chunk.dictionary if pa.types.is_dictionary(chunk.type) else chunk for chunk in column.chunks
    ]
    return any(pc.index_in(values, value_set=texts).null_count for values in listed)


def text_size(codes: pa.StringArray) -> tuple[int, int]:
    """Bytes of all texts of a list together, as Parquet writes them, and of the longest."""
    lengths = pc.binary_length(codes)
    return int(pc.sum(lengths).as_py() or 0) + 4 * len(codes), int(pc.max(lengths).as_py() or 0)
