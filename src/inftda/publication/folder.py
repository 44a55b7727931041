"""The folder of a release: its public files, and unexpected files beside them.

`areas.csv` lists the finest areas with the areas that contain them. `places.parquet` exists if
names, locations or outlines are known: one row for each area of every level, coarse to fine, in the
order of the hierarchy. Locations and outlines are those of finest areas. Unknown entries are an
empty text or not-a-number, so every cell has a value. Readers need not trust these files: their
bytes follow from the areas, and nothing else fits into them.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from inftda.areas.polygons import check_outlines
from inftda.errors import HierarchyError, InftdaError, ReleaseError
from inftda.publication.manifest import (
    DAMAGED,
    SIGNATURE_FILE,
    AxisEntry,
    Manifest,
    areas_names,
    check_digest,
    check_plain,
    digest,
    places_name,
)
from inftda.publication.parquet import row_groups
from inftda.tree import Axis, Tree
from inftda.tree.hierarchy import Hierarchy
from inftda.tree.places import MAX_NAME, Places
from inftda.util.files import JUNK, MANIFEST_FILE, check_own, is_plain
from inftda.util.formats import GET_AGAIN
from inftda.util.tabular import as_arrow, repeated

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
#: Largest size of all outlines of a release together, in bytes.
MAX_OUTLINES: Final = 256 << 20
_TEXTS: Final = ["level", "code", "name"]


def save_places(path: Path | pa.NativeFile, hierarchy: Hierarchy) -> None:
    """Write names, locations and outlines; the file follows from the hierarchy and its places."""
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
    """Read names, locations and outlines from a file, which must hold nothing else."""
    levels, codes = _areas(hierarchy)
    listed = [levels, codes, repeated("x" * MAX_NAME, 1)]
    parts = row_groups(path, SCHEMA, listed, most_rows=len(codes), most_bytes=2 * MAX_OUTLINES)
    # Texts come as lists and numbers.
    table = pa.concat_tables([SCHEMA.empty_table(), *(part.cast(SCHEMA) for part in parts)])
    if len(table) != len(codes):
        raise ReleaseError(f"{path.name} does not have one row for each area; {DAMAGED}")
    try:
        known = hierarchy.with_places(_from_table(table.combine_chunks(), hierarchy))
    except HierarchyError as problem:
        raise ReleaseError(
            f"{path.name} does not say what it should ({problem}); {DAMAGED}"
        ) from None
    # The file is written again from these columns, so any other content is found.
    again = _as_table(known)
    is_same = all(
        np.array_equal(found, expected, equal_nan=True)
        if found.type == pa.float64()
        else found.equals(expected)
        for found, expected in zip(table.columns, again.columns, strict=True)
    )
    if known.places.is_empty or not is_same:
        raise ReleaseError(f"{path.name} does not hold the places of these areas; {DAMAGED}")
    return known.places


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
    degrees = np.full((2, len(codes)), np.nan)
    if places.lon is not None and places.lat is not None:
        degrees[:, n_others:] = places.lon, places.lat
    outlines = pa.nulls(n_finest, pa.binary()) if places.outlines is None else places.outlines
    columns = [
        levels,
        codes,
        pc.fill_null(pa.concat_arrays(names), ""),
        *map(as_arrow, degrees),
        pc.fill_null(pa.concat_arrays([pa.nulls(n_others, pa.binary()), outlines]), b""),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


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


def axis_entries(tree: Tree) -> tuple[AxisEntry, ...]:
    """Entries of a manifest for the axes of a tree."""
    files = areas_names([axis.hierarchy.fingerprint for axis in tree.axes])
    return tuple(
        AxisEntry(name=axis.name, levels=axis.hierarchy.level_names, file=file)
        for axis, file in zip(tree.axes, files, strict=True)
    )


def areas_text(hierarchy: Hierarchy) -> bytes:
    """Contents of the file of a hierarchy, in the order of its rows."""
    import pyarrow.csv as pa_csv  # noqa: PLC0415 - only whole releases need it

    sink = pa.BufferOutputStream()
    pa_csv.write_csv(hierarchy.to_table().take(as_arrow(hierarchy.as_read(hierarchy.depth))), sink)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return] # untyped library


def write_areas(folder: Path, tree: Tree) -> list[str]:
    """Write the areas of all axes and their places; return the names of their files."""
    names = []
    for entry, axis in zip(axis_entries(tree), tree.axes, strict=True):
        (folder / entry.file).write_bytes(areas_text(axis.hierarchy))
        places = folder / places_name(entry.file)
        # If axes have the same areas, places come from the first axis that has any.
        if not axis.hierarchy.places.is_empty and not places.exists():
            save_places(places, axis.hierarchy)
        names += [path for path in (entry.file, places.name) if (folder / path).exists()]
    return names


def digests(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """SHA-256 of files of a folder, by name, as a manifest lists them."""
    return {name: digest(folder / name) for name in sorted({*names})}


def read_tree(
    folder: Path, axes: Sequence[AxisEntry], order: Sequence[str], files: Mapping[str, str]
) -> Tree:
    """Read the tree of a release or an estimate from the areas in its folder."""
    names = [axis.file for axis in axes]
    with_places = {name for name in names if places_name(name) in files}
    own = sorted({*names, *map(places_name, with_places)})
    check_plain(folder, own)
    for name in own:
        check_digest(folder / name, files)
    read = {name: _read_areas(folder / name) for name in names}
    found = [read[name] for name in names]
    if areas_names([one.fingerprint for one in found]) != tuple(names):
        raise ReleaseError(
            "the manifest names other files for the areas than a release does; it was edited"
        )
    for axis, hierarchy in zip(axes, found, strict=True):
        if hierarchy.level_names != axis.levels:
            raise ReleaseError(
                f"{axis.file} does not have the levels that the manifest of {str(folder)!r} states "
                f"for axis {axis.name!r}; {GET_AGAIN}"
            )
    for name in with_places:
        read[name] = read[name].with_places(read_places(folder / places_name(name), read[name]))
    return Tree.build([Axis(axis.name, read[axis.file]) for axis in axes], order)


def _read_areas(file: Path) -> Hierarchy:
    try:
        return Hierarchy.read(file)
    except InftdaError as error:
        raise ReleaseError(
            f"{file.name} does not hold the areas of a release ({error}); {GET_AGAIN}"
        ) from error


def check_release(folder: Path) -> None:
    """Refuse a folder that is no release or holds other files, and so must not be replaced."""
    try:
        manifest = Manifest.read(folder / MANIFEST_FILE)
    except ReleaseError as problem:
        raise ReleaseError(
            f"{str(folder)!r} is not replaced: {problem}; choose another folder, or remove this "
            "one yourself if nobody needs it"
        ) from None
    check_own(folder, {MANIFEST_FILE, SIGNATURE_FILE, *manifest.files, *JUNK}, "a release")


def write_public_files(folder: Path, tree: Tree, manifest: Manifest) -> None:
    """Write all files of a release except its numbers, which are written before."""
    files = digests(folder, [*manifest.tables, *write_areas(folder, tree)])
    manifest = msgspec.structs.replace(manifest, files=files)
    (folder / MANIFEST_FILE).write_text(manifest.to_text(), encoding="utf-8")


def own_files(folder: Path, manifest: Manifest) -> list[Path]:
    """Plain files in a folder that belong to its release."""
    own = {MANIFEST_FILE, SIGNATURE_FILE, *manifest.files}
    return [path for path in sorted(folder.iterdir()) if path.name in own and is_plain(path)]


def unexpected_files(folder: Path, manifest: Manifest) -> list[str]:
    """Names of unexpected files: neither a plain file of the release nor junk of the system."""
    others = {*folder.iterdir()} - {*own_files(folder, manifest)}
    return sorted(path.name for path in others if not (path.name in JUNK and is_plain(path)))
