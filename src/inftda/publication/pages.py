"""Pages of a Parquet file: what lies between the offsets that its footer states.

A footer may be false: readers go by the header of each page, stop at the last row, and never look
at what comes after it. So headers are walked here before anything is unpacked. They are written
in Thrift's compact protocol, of which headers and footers need a small part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO, Final, TypeAlias

from inftda.publication.frames import is_one_frame

#: Kinds of pages.
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
#: Fields of a page header: kind, sizes, and for each kind the field whose first is the number of
#: values.
_KIND, _EXPANDED, _PACKED = 1, 2, 3
_DETAILS: Final = {_DATA: 5, _DICTIONARY: 7, _DATA_V2: 8}
#: Of a page of the second version: bytes before those that are packed, and whether any are.
_LEVELS, _IS_PACKED = (5, 6), 7
#: Longest header besides texts: it has smallest and largest text of its page.
_HEADER: Final = 1 << 10
#: Fields of a footer: columns in row groups, what is said of each; its physical type, encodings
#: and compression, and how many kinds of these there are.
_SCHEMA, _GROUPS, _COLUMNS, _ABOUT = 2, 4, 1, 3
_TYPE, _ENCODINGS, _CODEC, _KINDS = 1, 2, 4, 9
#: Likewise: how large its values are, by how often they are repeated and defined.
_SIZES, _REPEATED, _DEFINED, _PRESENCE = 16, 2, 3, 3
#: Field of a footer with the name of its writer; and what depends on how values were packed: of a
#: row group size once unpacked, offset and size; of a column of it size, size once unpacked and
#: offsets of its first pages; of a page its checksum.
_WRITER: Final = 6
_GROUP_EXPANDED, _GROUP_OFFSET, _GROUP_SIZE = 2, 5, 6
_SIZE_EXPANDED, _SIZE, _OFFSETS = 6, 7, (9, 11)
_CHECKSUM: Final = 4
#: Signature at both ends of a file; before the last one stands the size of the footer.
_MAGIC: Final = 4
_TAIL: Final = 8
#: Structs in structs, at most.
_DEPTH: Final = 8
_MORE, _SEVEN = 0x80, 0x7F
_LONGEST_NUMBER: Final = 10
#: Bytes of a number as the smallest or largest of a page.
_NUMBER: Final = 8
#: Size of a list that has its size in the next bytes.
_LONG: Final = 15
#: A field that comes no farther than this after the one before it does not state its number.
_FARTHEST: Final = 15

Value: TypeAlias = "int | bytes | Fields | list[Value]"
Fields: TypeAlias = dict[int, Value]


@dataclass(frozen=True)
class Pages:
    """What the pages of a column chunk come to.

    Attributes:
        n_values: rows, as the headers state them.
        expanded: bytes once they are unpacked, with headers.
        is_filled: whether they fill the chunk to its last byte, none with more than it needs.
    """

    n_values: int
    expanded: int
    is_filled: bool


def walk(file: BinaryIO, start: int, end: int, *, longest: int) -> Pages:
    """Go from header to header.

    Args:
        file: the Parquet file.
        start: offset of the first page of a column chunk.
        end: offset after its last.
        longest: bytes of the longest text of the column.

    Raises:
        ValueError: something is not a header of a page.
    """
    n_values = expanded = n_empty = 0
    is_filled, at = True, start
    while at < end:
        file.seek(at)
        texts = max(longest, _NUMBER)
        header = _Header(file.read(min(_HEADER + 4 * texts, end - at)), longest=texts)
        fields = header.struct()
        kind, larger, packed = (_number(fields, key) for key in (_KIND, _EXPANDED, _PACKED))
        details = fields.get(_DETAILS.get(kind, 0))
        if not isinstance(details, dict) or (kind == _DICTIONARY and at != start):
            raise ValueError("no page of a release")
        if kind != _DICTIONARY:
            n_values += (here := _number(details, 1))
            n_empty += here == 0
        expanded += header.at + larger
        levels = sum(_number(details, key) for key in _LEVELS) if kind == _DATA_V2 else 0
        first, at = at + header.at + levels, at + header.at + packed
        # Packing never takes more than this: the rest would be something else.
        is_filled &= packed <= larger + larger // 128 + 64
        is_plain = kind == _DATA_V2 and details.get(_IS_PACKED) is False
        is_filled &= is_plain or is_one_frame(file, first, at, expanded=larger - levels)
    # Only a chunk without rows may have a page without any, and only one.
    is_filled &= n_empty <= (n_values == 0) and at == end
    return Pages(n_values, expanded, is_filled)


def skeleton(file: bytes | memoryview) -> tuple[Value, list[Value]]:
    """The writer of a file, and all that stands in it but its values and their packed sizes.

    Two builds of one compression may pack the same values into different numbers of bytes; all
    else follows from the values, the order in which they come, and the writer.

    Raises:
        ValueError: it is not a Parquet file, or has something else between its pages.
    """
    size = int.from_bytes(file[-_TAIL:-_MAGIC], "little")
    end = len(file) - _TAIL - size
    whole = _Header(file[end:-_TAIL])
    footer = whole.struct()
    found: list[Value] = [bytes(file[:_MAGIC]), bytes(file[-_MAGIC:]), footer, [*whole.kinds]]
    at = _MAGIC
    for group in map(_struct, _list(footer, _GROUPS)):
        first, expanded = at, 0
        for column in map(_struct, _list(group, _COLUMNS)):
            about = _struct(column.get(_ABOUT))
            start, at = at, at + _number(about, _SIZE)
            starts, headers, here = _headers(file, start, at)
            found += headers
            expanded += here
            about[_SIZE] = 0
            _compare(about, _SIZE_EXPANDED, here)
            for key in _OFFSETS:  # by which page begins there
                if key in about:
                    about[key] = starts.index(_number(about, key))
        _compare(group, _GROUP_EXPANDED, expanded)
        _compare(group, _GROUP_OFFSET, first)
        _compare(group, _GROUP_SIZE, at - first)
    if at != end:
        raise ValueError("something between the pages and the footer")
    return footer.get(_WRITER, b""), found


def _headers(file: bytes | memoryview, start: int, end: int) -> tuple[list[int], list[Value], int]:
    """Where the pages of a column chunk begin, what their headers say, and their unpacked size."""
    starts: list[int] = []
    found: list[Value] = []
    expanded, at = 0, start
    while at < end:
        header = _Header(file[at:end])
        fields = header.struct()
        starts.append(at)
        found += [fields, [*header.kinds]]
        expanded += header.at + _number(fields, _EXPANDED)
        at += header.at + _number(fields, _PACKED)
        fields[_PACKED] = 0
        if _CHECKSUM in fields:  # of what is packed
            fields[_CHECKSUM] = 0
    return starts, found, expanded


def _compare(fields: Fields, key: int, expected: int) -> None:
    """Replace a number, if it is there, by its difference from what it must be."""
    if key in fields:
        fields[key] = _number(fields, key) - expected


def is_answerable(footer: bytes) -> bool:
    """Whether Arrow can be asked about columns; where it cannot, it ends the process.

    So it does where a column has two physical types, or anything is of an unknown kind.

    Raises:
        ValueError: it is not a footer of a Parquet file.
    """
    fields = _Header(footer).struct()
    schema = [_struct(column) for column in _list(fields, _SCHEMA)[1:]]
    types = [column.get(_TYPE) for column in schema]
    # By how often a value is repeated, which none is, and whether it is there.
    levels = [(1, 2 if column.get(_PRESENCE) else 1) for column in schema]
    for group in _list(fields, _GROUPS):
        columns = [_struct(column) for column in _list(_struct(group), _COLUMNS)]
        about = [_struct(column.get(_ABOUT)) for column in columns]
        kinds = [_number(column, _CODEC) for column in about]
        for column in about:
            kinds += [_number({0: kind}, 0) for kind in _list(column, _ENCODINGS)]
        if [column.get(_TYPE) for column in about] != types or max(kinds, default=0) > _KINDS:
            return False
        sizes = [_struct(column.get(_SIZES, {})) for column in about]
        for of_column, expected in zip(sizes, levels, strict=True):
            for key, size in zip((_REPEATED, _DEFINED), expected, strict=True):
                if len(_list(of_column, key)) not in {0, size}:
                    return False
    return True


def _struct(value: Value | None) -> Fields:
    if not isinstance(value, dict):
        raise ValueError("no struct")  # noqa: TRY004 - of the file, not of the caller
    return value


def _list(fields: Fields, key: int) -> list[Value]:
    value = fields.get(key, [])
    if not isinstance(value, list):
        raise ValueError("no list")  # noqa: TRY004 - likewise
    return value


def _number(fields: Fields, key: int) -> int:
    value = fields.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError("a number is missing")
    return value


class _Header:
    """Reads a struct from its first byte; `at` is where it has ended, `kinds` are of its values.

    What could have been written shorter, or in another order, is refused: there is one way to
    write what is said.
    """

    def __init__(self, data: bytes | memoryview, *, longest: int | None = None) -> None:
        self._data = data
        self._longest = len(data) if longest is None else longest
        self.at = 0
        self.kinds: list[int] = []

    def struct(self, depth: int = 0) -> Fields:
        """Numbers, texts, lists and structs by their field."""
        if depth > _DEPTH:
            raise ValueError("nested too deep")
        fields: Fields = {}
        key = 0
        while first := self._byte():
            step, kind = first >> 4, first & 0xF
            before, key = key, key + step if step else self._signed()
            if key <= before or (not step and key - before <= _FARTHEST):
                raise ValueError("a field twice, out of order, or written longer than it is")
            fields[key] = self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Value:
        self.kinds.append(kind)
        if kind in {1, 2}:  # true and false
            return kind == 1
        if kind == 3:  # a byte
            return self._byte()
        if kind in {4, 5, 6}:
            return self._signed()
        if kind == 8:  # a text, such as the smallest of a page
            length = self._unsigned()
            if length > self._longest:
                raise ValueError("a text that no row has")
            if self.at + length > len(self._data):
                raise ValueError("cut off")
            self.at += length
            return bytes(self._data[self.at - length : self.at])
        if kind == 9:  # a list
            return self._items(depth)
        if kind == 12:
            return self.struct(depth + 1)
        raise ValueError("no field of a header or footer")

    def _items(self, depth: int) -> list[Value]:
        """What a list holds."""
        first = self._byte()
        size, kind = first >> 4, first & 0xF
        is_long = size == _LONG
        size = self._unsigned() if is_long else size
        self.kinds.append(kind)
        if size > len(self._data) or kind in {1, 2} or is_long > (size >= _LONG):
            raise ValueError("a list without end, or written longer than it is")
        return [self._value(kind, depth) for _ in range(size)]

    def _byte(self) -> int:
        if self.at >= len(self._data):
            raise ValueError("cut off")
        self.at += 1
        return self._data[self.at - 1]

    def _unsigned(self) -> int:
        value = 0
        for number in range(_LONGEST_NUMBER):
            byte = self._byte()
            value |= (byte & _SEVEN) << (7 * number)
            if byte == 0 and number:
                raise ValueError("a number written longer than it is")
            if byte < _MORE:
                return value
        raise ValueError("a number without end")

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)
