"""The folder of a release."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from inftda.errors import ReleaseError
from inftda.files import FLOWS_FILE, MANIFEST_FILE
from inftda.hierarchy import Hierarchy
from inftda.publication.inventory import (
    OPTIONAL_FILES,
    areas_names,
    digest,
    places_name,
    strangers,
)
from inftda.publication.manifest import AxisEntry, Manifest
from inftda.publication.places_file import save_places
from inftda.publication.query import FLOW
from inftda.tables import as_arrow
from inftda.tree import Tree

#: Rows of a row group: enough that the codes in use are written few times.
ROW_GROUP = 1 << 20
#: Codes of areas, as columns hold them: the number of each in a list of those that occur.
CODE = pa.dictionary(pa.int32(), pa.string())


def check_release(folder: Path, name: Path) -> None:
    """Complain unless a folder is a release with nothing else in it, and may be replaced.

    Args:
        folder: where it is.
        name: what it is called in messages.
    """
    if not (folder / MANIFEST_FILE).exists():
        raise ReleaseError(
            f"{str(name)!r} is not a release: it has no {MANIFEST_FILE}; it is not replaced, "
            "choose another folder"
        )
    try:
        others = strangers(folder, Manifest.read(folder / MANIFEST_FILE))
    except ReleaseError as problem:
        raise ReleaseError(
            f"{str(name)!r} is not replaced: {problem}; choose another folder, or remove this one "
            "yourself if nobody needs it"
        ) from None
    if others:
        raise ReleaseError(
            f"{str(name)!r} is not replaced: {others[0]!r} in it is not part of a release; "
            "move it elsewhere or choose another folder"
        )


def areas_files(tree: Tree) -> dict[str, str]:
    """File for the areas of each axis: one for all that share a hierarchy."""
    files = areas_names([axis.hierarchy.fingerprint for axis in tree.axes])
    return dict(zip((axis.name for axis in tree.axes), files, strict=True))


def axis_entries(tree: Tree) -> tuple[AxisEntry, ...]:
    """What a manifest states about the axes of a tree."""
    files = areas_files(tree)
    return tuple(
        AxisEntry(
            axis.name, axis.hierarchy.level_names, files[axis.name], axis.hierarchy.fingerprint
        )
        for axis in tree.axes
    )


def areas_text(hierarchy: Hierarchy) -> bytes:
    """The file of a hierarchy: it follows from the hierarchy, to the bit."""
    import pyarrow.csv as pa_csv  # noqa: PLC0415 - only whole releases need it

    sink = pa.BufferOutputStream()
    pa_csv.write_csv(hierarchy.to_table(), sink)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return] # untyped library


def write_public_files(folder: Path, tree: Tree, manifest: Manifest) -> None:
    """Everything of a release but its numbers, which are there."""
    axes = write_areas(folder, tree, manifest.axes)
    further: dict[str, Any] = {
        field: digest(folder / name) if (folder / name).exists() else ""
        for name, field in OPTIONAL_FILES.items()
    }
    manifest = replace(
        manifest,
        axes=axes,
        flows_sha256=digest(folder / FLOWS_FILE),
        **further,
    )
    (folder / MANIFEST_FILE).write_text(manifest.to_text(), encoding="utf-8")


def write_areas(folder: Path, tree: Tree, entries: Iterable[AxisEntry]) -> tuple[AxisEntry, ...]:
    """Write the areas of all axes, and what else is said of them; their entries for the manifest.

    Args:
        folder: to write to.
        tree: with the axes.
        entries: of the axes, in their order.
    """
    files = areas_files(tree)
    for file, hierarchy in {files[axis.name]: axis.hierarchy for axis in tree.axes}.items():
        (folder / file).write_bytes(areas_text(hierarchy))
    for axis in tree.axes:
        places = folder / places_name(files[axis.name])
        # Of axes with the same areas the first that knows more of them says it.
        if not axis.hierarchy.places.is_empty and not places.exists():
            save_places(places, axis.hierarchy)
    return tuple(_with_places(axis, folder) for axis in entries)


def _with_places(axis: AxisEntry, folder: Path) -> AxisEntry:
    """The entry of an axis, with the digest of what else is said of its areas, if anything is."""
    places = folder / places_name(axis.file)
    return replace(axis, places_sha256=digest(places) if places.exists() else "")


def flows_schema(tree: Tree) -> pa.Schema:
    """Columns of the flows: one for each axis, and the number."""
    fields = [pa.field(axis.name, CODE, nullable=False) for axis in tree.axes]
    return pa.schema([*fields, pa.field(FLOW, pa.int64(), nullable=False)])


class FlowsWriter:
    """Writes blocks of released leaves to a Parquet file, in the order they come."""

    def __init__(self, path: Path | pa.NativeFile, tree: Tree) -> None:
        self.total = 0
        self.n_flows = 0
        self._finest = [axis.hierarchy.codes(axis.hierarchy.depth) for axis in tree.axes]
        self._schema = flows_schema(tree)
        self._writer = pq.ParquetWriter(
            path, self._schema, compression="zstd", use_dictionary=self._schema.names[:-1]
        )
        self._waiting: list[tuple[tuple[NDArray[np.int32], ...], NDArray[np.int64]]] = []
        self._n_waiting = 0

    def write(self, areas: tuple[NDArray[np.int32], ...], flow: NDArray[np.int64]) -> None:
        """Add a block; written once enough have come."""
        self.total += int(flow.sum())
        self.n_flows += len(flow)
        self._waiting.append((areas, flow))
        self._n_waiting += len(flow)
        while self._n_waiting >= ROW_GROUP:
            self._flush()

    def close(self) -> None:
        """Write what waits and end the file."""
        if self._n_waiting or not self.n_flows:
            self._flush()
        self._writer.close()

    def _flush(self) -> None:
        """Write a row group.

        Privacy:
            Of a fixed number of rows, so that the file follows from the released rows alone:
            where a mechanism's blocks end may follow from the truth.
        """
        if not self._waiting:
            return
        areas = [
            np.concatenate([axes[axis] for axes, _ in self._waiting])
            for axis in range(len(self._finest))
        ]
        flow = np.concatenate([flow for _, flow in self._waiting])
        columns = [
            in_use(numbers[:ROW_GROUP], codes)
            for numbers, codes in zip(areas, self._finest, strict=True)
        ]
        columns.append(as_arrow(flow[:ROW_GROUP]))
        batch = pa.record_batch(columns, schema=self._schema)
        self._writer.write_batch(batch, row_group_size=ROW_GROUP)
        rest = flow[ROW_GROUP:]
        self._waiting = [(tuple(axis[ROW_GROUP:] for axis in areas), rest)] if len(rest) else []
        self._n_waiting = len(rest)


def write_flows(path: Path, tree: Tree, table: pa.Table) -> None:
    """Write released leaves that are in memory, as they were or would be written by a release."""
    import pyarrow.compute as pc  # noqa: PLC0415 - only releases in memory need it

    codes = [axis.hierarchy.codes(axis.hierarchy.depth) for axis in tree.axes]
    columns = [table.column(axis.name).cast(pa.string()) for axis in tree.axes]
    areas = map(pc.index_in, columns, codes)
    writer = FlowsWriter(path, tree)
    writer.write(tuple(area.to_numpy() for area in areas), table.column(FLOW).to_numpy())
    writer.close()


def in_use(numbers: NDArray[np.int32], codes: pa.StringArray) -> pa.DictionaryArray:
    """Codes by number, with a dictionary of only those that occur: it is written each time."""
    used = np.zeros(len(codes), bool)
    used[numbers] = True
    index = np.cumsum(used, dtype=np.int32) - np.int32(1)
    return pa.DictionaryArray.from_arrays(
        as_arrow(index[numbers]), codes.take(as_arrow(np.flatnonzero(used)))
    )


def as_table(
    tree: Tree, blocks: Iterable[tuple[tuple[NDArray[np.int32], ...], NDArray[np.int64]]]
) -> pa.Table:
    """Blocks of released leaves as one table in memory."""
    blocks = list(blocks)
    columns: dict[str, pa.Array] = {}
    for number, axis in enumerate(tree.axes):
        numbers = np.concatenate([areas[number] for areas, _ in blocks])
        codes = axis.hierarchy.codes(axis.hierarchy.depth)
        columns[axis.name] = pa.DictionaryArray.from_arrays(as_arrow(numbers), codes)
    columns[FLOW] = as_arrow(np.concatenate([flow for _, flow in blocks]))
    return pa.Table.from_arrays(list(columns.values()), names=list(columns))
