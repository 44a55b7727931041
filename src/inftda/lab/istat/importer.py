"""Importer for ISTAT's two commuting matrices of the 2011 census, as downloaded.

- Census sections: a zip with one zip per region, each with a CSV; five levels of areas.
- Municipalities: a zip with one text file; three levels, and optional further axes.

Both give `flows.parquet` and tables of areas that `inftda release` takes as they are. The
files hold no list of areas, so those that occur in them are taken: fine for matrices that are
published already. The areas of a confidential table must come from an official list instead.

Destinations abroad or unknown go to an explicit public area "outside" of the destinations, so
that no trip is lost and their number stays public; or they are dropped, and their number reported.
"""

import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from inftda.bars import Progress, no_progress
from inftda.errors import IngestError
from inftda.files import whole_folder
from inftda.hierarchy import OUTSIDE, Hierarchy
from inftda.lab.istat.municipalities import AXES, Municipalities, check_axes, find_member
from inftda.lab.istat.sections import Sections

Abroad = Literal["outside", "drop"]

#: Provinces of each region at the census (ISTAT's codes), as a half-open range and single ones.
_PROVINCES: Mapping[int, tuple[range, tuple[int, ...]]] = MappingProxyType(
    {
        1: (range(1, 7), (96, 103)),
        2: (range(7, 8), ()),
        3: (range(12, 21), (97, 98, 108)),
        4: (range(21, 23), ()),
        5: (range(23, 30), ()),
        6: (range(30, 33), (93,)),
        7: (range(8, 12), ()),
        8: (range(33, 41), (99,)),
        9: (range(45, 54), (100,)),
        10: (range(54, 56), ()),
        11: (range(41, 45), (109,)),
        12: (range(56, 61), ()),
        13: (range(66, 70), ()),
        14: (range(70, 71), (94,)),
        15: (range(61, 66), ()),
        16: (range(71, 76), (110,)),
        17: (range(76, 78), ()),
        18: (range(78, 81), (101, 102)),
        19: (range(81, 90), ()),
        20: (range(90, 93), (95, 104, 105, 106, 107)),
    }
)
#: Province to region, as codes.
REGION_OF: Mapping[str, str] = MappingProxyType(
    {
        f"{province:03d}": f"{region:02d}"
        for region, (span, others) in _PROVINCES.items()
        for province in (*span, *others)
    }
)


class Matrix(Protocol):
    """What the two layouts have in common."""

    @property
    def layout(self) -> str:
        """Name of the layout."""

    @property
    def axes(self) -> tuple[str, ...]:
        """Further axes that are read."""

    def batches(self) -> Iterator[pa.Table]:
        """Origin, destination (null if outside), further axes and count, some rows at a time."""

    def areas(self) -> pa.Table:
        """Codes from province to the finest area of all areas in the batches read."""


@dataclass(frozen=True)
class Imported:
    """What was written.

    Attributes:
        folder: where.
        layout: "sections" or "municipalities".
        areas: the hierarchy of the origins.
        axes: further axes, name to file.
        n_flows: rows of flows.parquet.
        n_trips: trips in it.
        n_outside: trips whose destination is abroad or unknown.
        is_dropping: whether these were left out.
    """

    folder: Path
    layout: str
    areas: Hierarchy
    axes: Mapping[str, str]
    n_flows: int
    n_trips: int
    n_outside: int
    is_dropping: bool

    @property
    def next_command(self) -> str:
        """The command that releases what was imported."""
        parts = [f"inftda release {self.folder / 'flows.parquet'}"]
        if self.is_dropping:
            parts.append(f"--areas {self.folder / 'areas.csv'}")
        else:
            parts.append(f"--origin-areas {self.folder / 'areas.csv'}")
            parts.append(f"--destination-areas {self.folder / 'destinations.csv'}")
        parts += [f"--axis {name}={self.folder / file}" for name, file in self.axes.items()]
        return " ".join([*parts, "--epsilon 1 --delta 1e-8 --out RELEASE"])


def import_istat(
    path: str | Path,
    out: str | Path,
    *,
    axes: Sequence[str] = (),
    abroad: Abroad = "outside",
    progress: Progress | None = None,
) -> Imported:
    """Turn a matrix as downloaded into flows and areas.

    Args:
        path: the zip file; its contents say which of the two it is.
        out: folder to write; it must not be there yet.
        axes: further axes of the municipality matrix: sex, reason, transport, departure,
            duration. The last three were asked of a sample only: with one of them, flows are
            ISTAT's estimates for people in families, rounded so that every sum over successive
            rows is at most 1 off; without, they are exact numbers.
        abroad: destinations abroad or unknown: "outside" keeps them as one area, "drop" drops them.
        progress: called with the file being read, bytes read and bytes in all.

    Raises:
        IngestError: the file is not one of the two, or not as ISTAT publishes it.
    """
    path, out = Path(path), Path(out)
    if abroad not in {"outside", "drop"}:
        raise IngestError(f"abroad must be 'outside' or 'drop', got {abroad!r}")
    check_axes(axes)
    if out.exists():
        raise IngestError(f"{str(out)!r} exists already; choose another folder")
    try:
        with zipfile.ZipFile(path) as archive:
            source = _open(archive, tuple(axes), progress or no_progress)
            with whole_folder(out) as folder:
                return _write(source, folder, out, is_dropping=abroad == "drop")
    except FileNotFoundError:
        raise IngestError(f"there is no file {str(path)!r}; check the path") from None
    except (zipfile.BadZipFile, zlib.error, EOFError):
        raise IngestError(
            f"{str(path)!r} is not a zip file, or damaged; download it again"
        ) from None


def _open(archive: zipfile.ZipFile, axes: tuple[str, ...], progress: Progress) -> Matrix:
    member = find_member(archive)
    if member is not None:
        return Municipalities(archive, member, axes, progress)
    if axes:
        raise IngestError(
            f"this is not the municipality matrix, and only that one has {', '.join(axes)}; "
            "import it without further axes"
        )
    return Sections(archive, progress)


def _write(source: Matrix, folder: Path, out: Path, *, is_dropping: bool) -> Imported:
    tally = _write_flows(source, folder / "flows.parquet", is_dropping=is_dropping)
    areas = Hierarchy.read(_with_regions(source.areas()))
    pa_csv.write_csv(areas.to_table(), folder / "areas.csv")
    if not is_dropping:
        pa_csv.write_csv(areas.with_outside(OUTSIDE).to_table(), folder / "destinations.csv")
    for name in source.axes:
        codes = pa.table({name: list(AXES[name].codes)})
        pa_csv.write_csv(codes, folder / f"{name}.csv")
    files = {name: f"{name}.csv" for name in source.axes}
    return Imported(out, source.layout, areas, files, *tally, is_dropping=is_dropping)


def _write_flows(source: Matrix, path: Path, *, is_dropping: bool) -> tuple[int, int, int]:
    """Write batches as they come; gives numbers of flows, of trips, and of those outside."""
    columns = ["origin", "destination", *source.axes]
    schema = pa.schema([*((name, pa.string()) for name in columns), ("count", pa.int64())])
    n_flows = n_trips = n_outside = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in source.batches():
            is_outside = pc.is_null(batch["destination"])
            n_outside += pc.sum(batch["count"].filter(is_outside)).as_py() or 0
            ends = pc.fill_null(batch["destination"], OUTSIDE)
            kept = batch.set_column(1, "destination", ends)
            kept = kept.filter(pc.invert(is_outside)) if is_dropping else kept
            n_flows += kept.num_rows
            n_trips += pc.sum(kept["count"]).as_py() or 0
            writer.write_table(kept.select([*columns, "count"]).cast(schema))
    if n_flows == 0:
        raise IngestError("the matrix has no trips; download it again")
    return n_flows, n_trips, n_outside


def _with_regions(areas: pa.Table) -> pa.Table:
    """Put the region before the first column, the province."""
    provinces = areas.column(0)
    known = pa.array(list(REGION_OF))
    index = pc.index_in(provinces, value_set=known)
    if index.null_count:
        unknown = provinces.filter(pc.is_null(index))[0].as_py()
        raise IngestError(
            f"there was no province {unknown!r} in 2011; this importer reads matrices of the "
            "2011 census only"
        )
    return areas.add_column(0, "region", pa.array(list(REGION_OF.values())).take(index))
