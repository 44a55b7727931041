"""Names, locations and outlines of areas, as they are published in `places.parquet`.

One row for each area of every level, coarse to fine, in the order of the hierarchy. Locations and
outlines are those of finest areas. What is not known is an empty text or not-a-number, so that
every cell has a value. Whoever gets such a file need not trust it: nothing else fits into it.
"""

from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from inftda.areas.wkb import check_outlines
from inftda.errors import HierarchyError, ReleaseError
from inftda.hierarchy import Hierarchy
from inftda.places import MAX_NAME, Places
from inftda.publication.inventory import DAMAGED, GET_AGAIN
from inftda.publication.tables import row_groups
from inftda.tables import as_arrow, repeated

SCHEMA: Final = pa.schema(
    [
        pa.field("level", pa.string(), nullable=False),
        pa.field("code", pa.string(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("lon", pa.float64(), nullable=False),
        pa.field("lat", pa.float64(), nullable=False),
        pa.field("outline", pa.binary(), nullable=False),
    ]
)
#: Bytes of all outlines of a release together, at most.
MAX_OUTLINES: Final = 256 << 20
_TEXTS: Final = ["level", "code", "name"]


def save_places(path: Path | pa.NativeFile, hierarchy: Hierarchy) -> None:
    """Write the file: it follows from the hierarchy and its places.

    Raises:
        HierarchyError: the outlines are too detailed to be published.
    """
    table = _as_table(hierarchy)
    if table.column("outline").nbytes > MAX_OUTLINES:
        raise HierarchyError(
            f"the outlines of the areas take more than {MAX_OUTLINES >> 20} MB, far more than a "
            "map can show; simplify them"
        )
    pq.write_table(
        table,
        path,
        compression="zstd",
        use_dictionary=_TEXTS,
        # Tools skip rows by the smallest and largest value, which outlines do not have.
        write_statistics=[*_TEXTS, "lon", "lat"],
    )


def read_places(path: Path, hierarchy: Hierarchy) -> Places:
    """What a file says of the areas of a hierarchy.

    Raises:
        ReleaseError: it cannot be read, or holds anything else.
    """
    levels, codes = _areas(hierarchy)
    if not path.exists():
        raise ReleaseError(f"there is no {path.name}, which the manifest states; {GET_AGAIN}")
    longest = repeated("x" * MAX_NAME, 1)
    parts = [
        part.cast(SCHEMA)
        for part in row_groups(
            path,
            SCHEMA,
            [levels, codes, longest],
            most_rows=len(codes),
            most_bytes=2 * MAX_OUTLINES,
        )
    ]
    table = (pa.concat_tables(parts) if parts else SCHEMA.empty_table()).combine_chunks()
    if len(table) != len(codes):
        raise _fail(path, "does not have one row for each area")
    try:
        places = _from_table(table, hierarchy)
        hierarchy.with_places(places)
    except HierarchyError as problem:
        raise _fail(path, f"does not say what it should ({problem})") from None
    # Whatever was left out above stands in no file that is written from what was read.
    again = _as_table(hierarchy.with_places(places))
    if places.is_empty or any(not _is_same(table[name], again[name]) for name in SCHEMA.names):
        raise _fail(path, "does not hold the places of these areas, or is not written as they are")
    return places


def _fail(path: Path, what: str) -> ReleaseError:
    return ReleaseError(f"{path.name} {what}; {DAMAGED}")


def _areas(hierarchy: Hierarchy) -> tuple[pa.StringArray, pa.StringArray]:
    """Level and code of every row."""
    every = range(1, hierarchy.depth + 1)
    levels = [repeated(hierarchy.level_name(of), hierarchy.n_areas(of)) for of in every]
    return pa.concat_arrays(levels), pa.concat_arrays([hierarchy.codes(of) for of in every])


def _as_table(hierarchy: Hierarchy) -> pa.Table:
    places = hierarchy.places
    levels, codes = _areas(hierarchy)
    n_finest = hierarchy.n_areas(hierarchy.depth)
    n_others = len(codes) - n_finest
    names = [
        places.names.get(name, pa.nulls(hierarchy.n_areas(level), pa.string()))
        for level, name in enumerate(hierarchy.level_names, start=1)
    ]
    outlines = pa.nulls(n_finest, pa.binary()) if places.outlines is None else places.outlines
    columns = [
        levels,
        codes,
        pc.fill_null(pa.concat_arrays(names), ""),
        *(as_arrow(_degrees(of, n_others, n_finest)) for of in (places.lon, places.lat)),
        pc.fill_null(pa.concat_arrays([pa.nulls(n_others, pa.binary()), outlines]), b""),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def _degrees(
    known: NDArray[np.float64] | None, n_others: int, n_finest: int
) -> NDArray[np.float64]:
    degrees = np.full(n_others + n_finest, np.nan)
    if known is not None:
        degrees[n_others:] = known
    return degrees


def _from_table(table: pa.Table, hierarchy: Hierarchy) -> Places:
    names = {}
    start = 0
    for level, of in enumerate(hierarchy.level_names, start=1):
        part = table.column("name").slice(start, hierarchy.n_areas(level)).combine_chunks()
        start += hierarchy.n_areas(level)
        known = pc.if_else(pc.equal(part, ""), pa.scalar(None, pa.string()), part)
        if known.null_count < len(known):
            names[of] = known
    finest = table.slice(len(table) - hierarchy.n_areas(hierarchy.depth)).combine_chunks()
    lon, lat = (np.array(finest.column(name)) for name in ("lon", "lat"))
    outline = finest.column("outline").combine_chunks()
    outlines = pc.if_else(pc.equal(outline, b""), pa.scalar(None, pa.binary()), outline)
    check_outlines(outlines)
    is_located = not np.isnan(lon).all() or not np.isnan(lat).all()
    return Places(
        names,
        lon if is_located else None,
        lat if is_located else None,
        outlines if outlines.null_count < len(outlines) else None,
    )


def _is_same(found: pa.ChunkedArray, expected: pa.ChunkedArray) -> bool:
    """Whether two columns are equal, not-a-number being equal to itself."""
    if found.type == pa.float64():
        return np.array_equal(np.array(found), np.array(expected), equal_nan=True)
    return bool(found.equals(expected))
