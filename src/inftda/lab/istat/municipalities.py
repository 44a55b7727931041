"""ISTAT's matrix between municipalities: one text file, cells separated by blanks.

15 cells per row, no header. Rows of kind S carry exact numbers by residence, sex, reason and
destination; rows of kind L carry estimates that add means of transport, departure and duration.
The two are the same people twice, so one kind is read, never both.
"""

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from inftda.bars import Progress
from inftda.errors import IngestError
from inftda.lab.istat.sections import BLOCK, Counted

N_CELLS = 15
#: Indices of the cells of a row.
HOME, PLACE, AWAY, ESTIMATE, NUMBER = (2, 3), 6, (7, 8), 13, 14
SAME_TOWN, ABROAD = "1", "3"
#: The value for "not known" in a row, and the code for it on a further axis.
MISSING = ("+", "ND", "000", "")
MISSING_CODE = "missing"


@dataclass(frozen=True, slots=True)
class FurtherAxis:
    """One more attribute of a trip.

    Attributes:
        cell: its index in a row.
        codes: the public list of its codes.
        is_sampled: whether only a sample was asked, so that there are estimates only.
    """

    cell: int
    codes: tuple[str, ...]
    is_sampled: bool


def _numbered(n: int, width: int) -> tuple[str, ...]:
    return tuple(f"{code:0{width}d}" for code in range(1, n + 1))


#: Further axes by name. Sex: 1 male, 2 female; reason: 1 study, 2 work.
AXES: Mapping[str, FurtherAxis] = MappingProxyType(
    {
        "sex": FurtherAxis(4, _numbered(2, 1), is_sampled=False),
        "reason": FurtherAxis(5, _numbered(2, 1), is_sampled=False),
        "transport": FurtherAxis(10, (*_numbered(12, 2), MISSING_CODE), is_sampled=True),
        "departure": FurtherAxis(11, (*_numbered(4, 1), MISSING_CODE), is_sampled=True),
        "duration": FurtherAxis(12, (*_numbered(4, 1), MISSING_CODE), is_sampled=True),
    }
)


def check_axes(names: Sequence[str]) -> None:
    """Refuse unknown axes.

    Raises:
        IngestError: a name is unknown or given twice.
    """
    for name in names:
        if name not in AXES:
            raise IngestError(f"there is no axis {name!r}; there are {', '.join(AXES)}")
        if list(names).count(name) > 1:
            raise IngestError(f"the axis {name!r} is given twice; name each once")


def find_member(archive: zipfile.ZipFile) -> zipfile.ZipInfo | None:
    """The matrix among the files of a zip: text whose first row has the right shape."""
    for info in sorted(archive.infolist(), key=lambda info: -info.file_size):
        if info.filename.lower().endswith(".txt") and "__MACOSX" not in info.filename:
            with archive.open(info) as stream:
                cells = stream.readline(1000).split()
            if len(cells) == N_CELLS and cells[0] in {b"L", b"S"}:
                return info
    return None


@dataclass
class Municipalities:
    """The flows of the matrix, and the areas seen in it.

    Attributes:
        archive: the zip as downloaded.
        member: the matrix in it.
        axes: further axes to keep.
        progress: called with the file being read, bytes read and bytes in all.
    """

    archive: zipfile.ZipFile
    member: zipfile.ZipInfo
    axes: tuple[str, ...]
    progress: Progress
    layout: str = "municipalities"
    _towns: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))

    def batches(self) -> Iterator[pa.Table]:
        """Origin, destination (null if abroad or unknown), further axes and count; all at once.

        Raises:
            IngestError: the file is not as ISTAT publishes it.
        """
        keys = ["origin", "destination", *self.axes]
        parts = [_summed(self._flows(rows), keys) for rows in self._rows()]
        if not parts:
            raise IngestError(f"{self.member.filename!r} has no rows of kind {self._kind}")
        flows = _summed(pa.concat_tables(parts), keys).sort_by([(key, "ascending") for key in keys])
        ends = [flows[name].combine_chunks().drop_null() for name in keys[:2]]
        self._towns = pc.unique(pa.concat_arrays(ends))
        counts = pa.array(_whole(np.asarray(flows["count"], np.float64)))
        flows = flows.set_column(flows.num_columns - 1, "count", counts)
        yield flows.filter(pc.greater(flows["count"], 0))

    def areas(self) -> pa.Table:
        """Province and municipality of every municipality seen."""
        return pa.table(
            {"province": pc.utf8_slice_codeunits(self._towns, 0, 3), "municipality": self._towns}
        )

    @property
    def _is_sampled(self) -> bool:
        return any(AXES[name].is_sampled for name in self.axes)

    @property
    def _kind(self) -> str:
        return "L" if self._is_sampled else "S"

    def _rows(self) -> Iterator[pa.Array]:
        """Rows of the wanted kind as lists of cells, some at a time."""
        with self.archive.open(self.member) as stream:
            name, size = self.member.filename, self.member.file_size
            reader = pa_csv.open_csv(
                pa.PythonFile(Counted(stream, lambda n: self.progress(name, n, size)), mode="r"),
                read_options=pa_csv.ReadOptions(
                    column_names=["row"], block_size=BLOCK, encoding="latin-1"
                ),
                # A separator that never occurs: whole rows.
                parse_options=pa_csv.ParseOptions(delimiter="\x01", quote_char=False),
                convert_options=pa_csv.ConvertOptions(column_types={"row": pa.string()}),
            )
            for batch in reader:
                rows = pc.ascii_trim_whitespace(batch.column(0))
                cells = pc.ascii_split_whitespace(rows.filter(pc.starts_with(rows, self._kind)))
                if len(cells) == 0:
                    continue
                if not pc.all(pc.equal(pc.list_value_length(cells), N_CELLS)).as_py():
                    raise IngestError(
                        f"a row of {name!r} does not have {N_CELLS} cells; download the matrix "
                        "again"
                    )
                yield cells

    def _flows(self, cells: pa.Array) -> pa.Table:
        home, away = (_town(cells, indices) for indices in (HOME, AWAY))
        if home.null_count:
            raise IngestError(f"a row of {self.member.filename!r} has no place of residence")
        place = pc.list_element(cells, PLACE)
        nowhere = pa.scalar(None, pa.string())
        away = pc.if_else(pc.equal(place, ABROAD), nowhere, away)
        columns = {
            "origin": home,
            "destination": pc.if_else(pc.equal(place, SAME_TOWN), home, away),
            **{name: _codes(cells, name) for name in self.axes},
            "count": self._numbers(cells),
        }
        return pa.table(columns)

    def _numbers(self, cells: pa.Array) -> pa.Array:
        text = pc.list_element(cells, ESTIMATE if self._is_sampled else NUMBER)
        try:
            numbers = pc.replace_substring(text, ",", ".").cast(pa.float64())
        except pa.ArrowInvalid:
            numbers = None
        if numbers is None or not pc.min(numbers).as_py() >= 0:
            raise IngestError(
                f"a row of kind {self._kind} of {self.member.filename!r} has no number from 0 up; "
                "download the matrix again"
            )
        return numbers


def _town(cells: pa.Array, indices: tuple[int, int]) -> pa.Array:
    """Province and municipality as one code, null if either is missing."""
    parts = [pc.list_element(cells, index) for index in indices]
    known = [pc.invert(pc.is_in(part, value_set=pa.array(MISSING))) for part in parts]
    code = pc.binary_join_element_wise(
        *(pc.utf8_lpad(part, width=3, padding="0") for part in parts), ""
    )
    return pc.if_else(pc.and_(*known), code, pa.scalar(None, pa.string()))


def _codes(cells: pa.Array, name: str) -> pa.Array:
    """Codes of a further axis, checked against its list."""
    axis = AXES[name]
    code = pc.list_element(cells, axis.cell)
    if MISSING_CODE in axis.codes:
        is_missing = pc.is_in(code, value_set=pa.array(MISSING))
        code = pc.if_else(is_missing, MISSING_CODE, code)
        code = pc.if_else(is_missing, code, pc.utf8_lpad(code, len(axis.codes[0]), padding="0"))
    unknown = pc.invert(pc.is_in(code, value_set=pa.array(axis.codes)))
    if pc.any(unknown).as_py():
        found = code.filter(unknown)[0].as_py()
        raise IngestError(f"the matrix has {name} {found!r}; its codes are {', '.join(axis.codes)}")
    return code


def _summed(flows: pa.Table, keys: list[str]) -> pa.Table:
    summed = flows.group_by(keys).aggregate([("count", "sum")])
    return summed.select([*keys, "count_sum"]).rename_columns([*keys, "count"])


def _whole(
    estimates: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Rounded so that the sum of any successive ones is at most 1 off: no drift, no loss."""
    sums = np.rint(np.cumsum(estimates)).astype(np.int64)
    return np.diff(sums, prepend=0)
