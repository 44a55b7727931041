"""Pages of a Parquet file: what lies between the offsets that its footer states.

A footer may be false: readers go by the header of each page, stop at the last row, and never look
at what comes after it. So headers are walked here before anything is unpacked. They are written
in Thrift's compact protocol, of which page headers need a small part.
"""

from dataclasses import dataclass
from typing import BinaryIO, Final

#: Kinds of pages.
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
#: Fields of a page header: kind, sizes, and for each kind the field whose first is the number of
#: values.
_KIND, _EXPANDED, _PACKED = 1, 2, 3
_DETAILS: Final = {_DATA: 5, _DICTIONARY: 7, _DATA_V2: 8}
#: Longest header besides texts: it has smallest and largest text of its page.
_HEADER: Final = 1 << 10
#: Structs in structs of a header.
_DEPTH: Final = 3
_MORE, _SEVEN = 0x80, 0x7F
_LONGEST_NUMBER: Final = 10

Fields = dict[int, "int | Fields"]


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
        ValueError: something is no header of a page.
    """
    n_values = expanded = n_empty = 0
    is_filled, at = True, start
    while at < end:
        file.seek(at)
        header = _Header(file.read(min(_HEADER + 4 * longest, end - at)))
        fields = header.struct()
        kind, larger, packed = (_number(fields, key) for key in (_KIND, _EXPANDED, _PACKED))
        details = fields.get(_DETAILS.get(kind, 0))
        if not isinstance(details, dict) or (kind == _DICTIONARY and at != start):
            raise ValueError("no page of a release")
        if kind != _DICTIONARY:
            n_values += (here := _number(details, 1))
            n_empty += here == 0
        expanded += header.at + larger
        # Packing never takes more than this: the rest would be something else.
        is_filled &= packed <= larger + larger // 128 + 64
        at += header.at + packed
    # Only a chunk without rows may have a page without any, and only one.
    is_filled &= n_empty <= (n_values == 0) and at == end
    return Pages(n_values, expanded, is_filled)


def _number(fields: Fields, key: int) -> int:
    value = fields.get(key)
    if not isinstance(value, int) or value < 0:
        raise ValueError("a number is missing")
    return value


class _Header:
    """Reads a struct from its first byte; `at` is where it has ended."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def struct(self, depth: int = 0) -> Fields:
        """Numbers and structs by their field; texts are skipped."""
        if depth > _DEPTH:
            raise ValueError("nested too deep")
        fields: Fields = {}
        key = 0
        while first := self._byte():
            step, kind = first >> 4, first & 0xF
            key = key + step if step else self._signed()
            if key in fields:
                raise ValueError("a field twice")
            value = self._value(kind, depth)
            if value is not None:
                fields[key] = value
        return fields

    def _value(self, kind: int, depth: int) -> "int | Fields | None":
        if kind in {1, 2}:  # true and false
            return None
        if kind in {4, 5, 6}:
            return self._signed()
        if kind == 8:  # a text, such as the smallest of a page
            length = self._unsigned()
            self.at += length
            return None
        if kind == 12:  # a struct
            return self.struct(depth + 1)
        raise ValueError("no field of a page header")

    def _byte(self) -> int:
        if self.at >= len(self._data):
            raise ValueError("cut off")
        self.at += 1
        return self._data[self.at - 1]

    def _unsigned(self) -> int:
        value = 0
        for place in range(_LONGEST_NUMBER):
            byte = self._byte()
            value |= (byte & _SEVEN) << (7 * place)
            if byte < _MORE:
                return value
        raise ValueError("a number without end")

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)
