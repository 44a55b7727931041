"""ISTAT's matrix between census sections: one zip per region, each with one CSV.

Cells are separated by `;`, text is ISO-8859-1, columns are found by name. A region's zip is
unpacked to a private temporary file, its CSV is never: rows are read as they are unpacked.
"""

import csv
import io
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from inftda.bars import Progress
from inftda.errors import IngestError

ENCODING, DELIMITER = "iso-8859-1", ";"
#: Read at a time.
BLOCK = 1 << 24
#: Sections remembered before repeated ones are forgotten; many times what there are.
MOST_SEEN = 1 << 23
#: Section numbers have 7 digits after the municipality's 6, section areas 3.
SECTION_DIGITS, MUNICIPALITY_DIGITS, ACE_DIGITS = 7, 6, 3
_SECTION = 10**SECTION_DIGITS
_ACE = 10**4
_ENDS = ("ORIG", "DEST")
_COLUMNS = (*(f"{name}_{end}" for end in _ENDS for name in ("PROCOM", "ACE", "NSEZ")), "TOTALE")


@dataclass
class Sections:
    """The flows of the matrix, and the areas seen in it so far.

    Attributes:
        archive: the zip as downloaded.
        progress: called with the file being read, bytes read and bytes in all.
    """

    archive: zipfile.ZipFile
    progress: Progress
    axes: tuple[str, ...] = ()
    layout: str = "sections"
    _seen: list[NDArray[np.int64]] = field(default_factory=list)

    def batches(self) -> Iterator[pa.Table]:
        """Origin, destination (null if unknown) and count, some rows at a time.

        Raises:
            IngestError: the files are not as ISTAT publishes them.
        """
        regions = [info for info in self.archive.infolist() if _is(info, ".zip")]
        plain = [info for info in self.archive.infolist() if _is(info, ".csv")]
        if not regions and not plain:
            raise IngestError(
                "the zip holds neither a municipality matrix nor matrices of census sections; "
                "give one of ISTAT's files of 2011 as downloaded"
            )
        total, done = sum(info.file_size for info in regions + plain), 0
        for info in regions:
            with _unpacked(self.archive, info) as inner:
                tables = [table for table in inner.infolist() if _is(table, ".csv")]
                share = info.file_size / max(sum(table.file_size for table in tables), 1)
                for table in tables:
                    counted = self._counter(table.filename, done, share, total)
                    yield from self._read(inner, table, counted)
            done += info.file_size
            self.progress(info.filename, done, total)
        for info in plain:
            yield from self._read(self.archive, info, self._counter(info.filename, done, 1, total))
            done += info.file_size

    def areas(self) -> pa.Table:
        """Province, municipality, section area and section of every section seen.

        Raises:
            IngestError: a section lies in two section areas.
        """
        self._forget_repeats()
        section, ace = np.divmod(self._seen[0], _ACE)
        # Sorted by section, then section area: where it is missing (0) at one end, it is taken
        # from the other.
        is_last = np.append(section[1:] != section[:-1], True)
        clash = ~is_last & (ace > 0)
        if clash.any():
            code = _padded(section[clash][:1], MUNICIPALITY_DIGITS + SECTION_DIGITS)[0].as_py()
            raise IngestError(
                f"section {code} lies in two section areas (ACE); the matrix is not as published"
            )
        section, ace = section[is_last], ace[is_last]
        town = section // _SECTION
        return pa.table(
            {
                "province": _padded(town // 1000, 3),
                "municipality": _padded(town, MUNICIPALITY_DIGITS),
                "ace": _padded(town * 10**ACE_DIGITS + ace, MUNICIPALITY_DIGITS + ACE_DIGITS),
                "section": _padded(section, MUNICIPALITY_DIGITS + SECTION_DIGITS),
            }
        )

    def _counter(self, name: str, done: int, share: float, total: int) -> Callable[[int], None]:
        return lambda n: self.progress(name, done + int(n * share), total)

    def _read(
        self, archive: zipfile.ZipFile, info: zipfile.ZipInfo, counted: Callable[[int], None]
    ) -> Iterator[pa.Table]:
        with archive.open(info) as stream:
            names = _header(stream.readline(), info.filename)
            try:
                for batch in _rows(Counted(stream, counted), names):
                    yield self._flows(pa.Table.from_batches([batch]), info.filename)
            except pa.ArrowInvalid:  # its message quotes the row
                raise IngestError(
                    f"a row of {info.filename!r} has a different number of cells from the header, "
                    "or an invalid code or number; download the matrix again"
                ) from None

    def _flows(self, rows: pa.Table, name: str) -> pa.Table:
        ends = [self._sections(rows, end, name) for end in _ENDS]
        if ends[0].null_count:
            raise IngestError(f"a row of {name!r} has no place of residence; correct the matrix")
        width = MUNICIPALITY_DIGITS + SECTION_DIGITS
        codes = [pc.utf8_lpad(end.cast(pa.string()), width=width, padding="0") for end in ends]
        count = pc.fill_null(rows["TOTALE"].combine_chunks(), 0)
        if pc.min(count).as_py() < 0:
            raise IngestError(f"a row of {name!r} has a number below 0; correct the matrix")
        return pa.table({"origin": codes[0], "destination": codes[1], "count": count})

    def _sections(self, rows: pa.Table, end: str, name: str) -> pa.Array:
        """Section numbers of one end, null where it is unknown; remembers the areas."""
        town, number = (rows[f"{column}_{end}"].combine_chunks() for column in ("PROCOM", "NSEZ"))
        section = pc.add(pc.multiply(town, _SECTION), number)
        ace = np.asarray(pc.fill_null(rows[f"ACE_{end}"].combine_chunks(), 0))
        is_known = np.asarray(pc.greater(pc.fill_null(section, 0), _SECTION))
        known = np.asarray(pc.fill_null(section, 0))[is_known]
        number, ace = np.asarray(pc.fill_null(number, 0))[is_known], ace[is_known]
        largest = (10 ** (MUNICIPALITY_DIGITS + SECTION_DIGITS), _SECTION, 10**ACE_DIGITS)
        for codes, limit in zip((known, number, ace), largest, strict=True):
            if len(codes) and not 0 <= codes.min() <= codes.max() < limit:
                raise IngestError(
                    f"a row of {name!r} has a code with too many digits; "
                    "the matrix is not as published"
                )
        self._seen.append(_distinct(known * _ACE + ace))
        if sum(map(len, self._seen)) > MOST_SEEN:
            self._forget_repeats()
        return pc.if_else(pa.array(is_known), section, pa.scalar(None, pa.int64()))

    def _forget_repeats(self) -> None:
        self._seen = [_distinct(np.concatenate([np.zeros(0, np.int64), *self._seen]))]


def _rows(stream: "Counted", names: list[str]) -> pa_csv.CSVStreamingReader:
    return pa_csv.open_csv(
        pa.PythonFile(stream, mode="r"),
        read_options=pa_csv.ReadOptions(column_names=names, block_size=BLOCK, encoding=ENCODING),
        parse_options=pa_csv.ParseOptions(delimiter=DELIMITER),
        convert_options=pa_csv.ConvertOptions(
            include_columns=list(_COLUMNS),
            column_types=dict.fromkeys(_COLUMNS, pa.int64()),
            null_values=["", "+", "ND"],
        ),
    )


class Counted(io.RawIOBase):
    """A stream that tells how many bytes were read from it."""

    def __init__(self, stream: IO[bytes], counted: Callable[[int], None]) -> None:
        self._stream, self._counted, self._n = stream, counted, 0

    def readable(self) -> bool:
        """It can be read, and nothing else."""
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        block = self._stream.read(size)
        self._n += len(block)
        self._counted(self._n)
        return block


@contextmanager
def _unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[zipfile.ZipFile]:
    """A zip inside a zip, by way of a private temporary file without a name."""
    with tempfile.TemporaryFile() as file:
        with archive.open(info) as packed:
            shutil.copyfileobj(packed, file, 1 << 20)
        with zipfile.ZipFile(file) as inner:
            yield inner


def _is(info: zipfile.ZipInfo, ending: str) -> bool:
    # Metadata that macOS adds to zips is not data.
    return info.filename.lower().endswith(ending) and "__MACOSX" not in info.filename


def _header(line: bytes, name: str) -> list[str]:
    text = line.decode(ENCODING).removeprefix("\xef\xbb\xbf").strip()
    names = [cell.strip().upper() for cell in next(csv.reader([text], delimiter=DELIMITER), [])]
    missing = [column for column in _COLUMNS if column not in names]
    if missing:
        raise IngestError(
            f"{name!r} has no column {missing[0]}; a matrix of census sections has "
            f"{', '.join(_COLUMNS)}, separated by ;"
        )
    return names


def _padded(numbers: NDArray[np.int64], width: int) -> pa.Array:
    return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width=width, padding="0")


def _distinct(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The distinct numbers, ascending: by sorting, several times as fast as by hashing."""
    numbers = np.sort(numbers)
    is_new = np.ones(len(numbers), bool)
    is_new[1:] = numbers[1:] != numbers[:-1]
    return numbers[is_new]
