"""The folder of a release: written as a whole or not at all."""

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from inftda.errors import ReleaseError
from inftda.hierarchy import Hierarchy
from inftda.publication.inventory import (
    ESTIMATE_FILE,
    FLOWS_FILE,
    MANIFEST_FILE,
    OPTIONAL_FILES,
    areas_names,
    digest,
    places_name,
    strangers,
)
from inftda.publication.manifest import AxisEntry, Manifest
from inftda.publication.places_file import save_places
from inftda.publication.query import FLOW
from inftda.scratch import abandoned, keep, private_folder, remove, sync
from inftda.tables import as_arrow
from inftda.tree import Tree

#: Longest name of a folder: what is written beside it has a longer one.
MAX_NAME = 200
#: Rows of a row group: enough that the codes in use are written few times.
ROW_GROUP = 1 << 20
#: Codes of areas, as columns hold them: the number of each in a list of those that occur.
CODE = pa.dictionary(pa.int32(), pa.string())
#: Name of a release in a private folder: a new one before it is put in place, or an old one that
#: waits for that. So it is put in place, and ceases to be a work file, by one rename.
_INSIDE = "release"
#: Name of an old release once another is in its place. Only what is being cleared away has this
#: name, so what still has the other one is whole, whether it can be read or not.
_REMOVED = "removed"
#: Complains about a folder (where it is, what it is called) that must not be replaced.
Check = Callable[[Path, Path], None]


def check_writable(out: Path, *, force: bool, check: Check | None = None) -> None:
    """Refuse an output folder that cannot, or must not, be written, before any work is done.

    Args:
        out: the folder to write.
        force: replace it if it is there.
        check: refuses a folder that must not be replaced; by default all but
            releases.

    Raises:
        ReleaseError: it exists and `force` is not given, it holds more than a release, or it
            cannot be made.
    """
    if len(os.fsencode(out.absolute().name)) > MAX_NAME:
        raise ReleaseError(
            f"the name of the output folder must be at most {MAX_NAME} bytes; choose a shorter one"
        )
    if out.is_symlink():
        raise ReleaseError(f"{str(out)!r} is a link; give a folder that is not a link")
    _restore(out)
    if out.exists() and not force:
        raise ReleaseError(
            f"{str(out)!r} exists already; choose another folder or use --force to replace it"
        )
    if out.exists():
        _check_replaceable(out, out, check)
    parent = out.absolute().parent
    if not parent.is_dir():
        raise ReleaseError(f"there is no folder {str(parent)!r} to write into; make it first")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise ReleaseError(f"the folder {str(parent)!r} may not be written to; choose another")


def _check_replaceable(folder: Path, name: Path, check: Check | None) -> None:
    """Complain unless a folder is empty, or has nothing in it but what we write.

    Args:
        folder: where it is.
        name: what it is called in messages.
        check: whether it may be replaced if it is not empty.
    """
    if not folder.is_dir():
        raise ReleaseError(f"{str(name)!r} is a file and not a folder of ours; it is not replaced")
    if any(folder.iterdir()):
        (check or _check_release)(folder, name)


def _check_release(folder: Path, name: Path) -> None:
    """Complain unless a folder is a release with nothing else in it."""
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


def release_around(path: Path, *known: str | Path) -> Path | None:
    """The release or estimate that a path is or lies in, by whatever links or relative paths.

    Args:
        path: a file or folder, there or not.
        known: folders of releases, whatever they hold.
    """
    resolved = path.resolve()
    for folder in (resolved, *resolved.parents):
        if not folder.exists():
            continue
        is_known = any(Path(release).exists() and folder.samefile(release) for release in known)
        has_table = any((folder / name).exists() for name in (FLOWS_FILE, ESTIMATE_FILE))
        if is_known or (has_table and (folder / MANIFEST_FILE).exists()):
            return folder
    return None


@contextmanager
def writing(out: Path, *, force: bool = False, check: Check | None = None) -> Iterator[Path]:
    """A private folder to fill, which becomes `out` all at once when the block ends well.

    Whatever interrupts the block, `out` is either as it was before or complete. What `force` may
    replace, `check` says; see `check_writable`.
    """
    check_writable(out, force=force, check=check)
    out = out.absolute()
    with ExitStack() as stack:
        try:
            private = stack.enter_context(private_folder(out.parent, f".{out.name}.partial-"))
            (partial := private / _INSIDE).mkdir(mode=0o700)
        except OSError as problem:
            if problem.errno == errno.ENOSPC:  # the machine's fault, not the user's
                raise
            raise ReleaseError(
                f"cannot write to {str(out.parent)!r}: {problem.strerror}; choose another folder"
            ) from None
        yield partial
        for file in partial.rglob("*"):
            if file.is_file():
                file.chmod(0o600)
                sync(file)
        sync(partial)
        # Drawing takes time: what somebody else has put there meanwhile is not ours to replace.
        check_writable(out, force=force, check=check)
        _put_in_place(partial, out, force=force, check=check)


def _put_in_place(partial: Path, out: Path, *, force: bool, check: Check | None) -> None:
    if out.exists() and force:
        # What waits there from before was brought back or cleared away with more care.
        with private_folder(
            out.parent, _waiting(out), is_clearing=False, keeps_on_error=True
        ) as waiting:
            _replace(partial, out, waiting / _INSIDE, check)
            (waiting / _INSIDE).rename(waiting / _REMOVED)
    else:
        try:
            partial.rename(out)
        except OSError as problem:  # another process has put something there in this moment
            if problem.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                raise
            raise ReleaseError(f"{str(out)!r} exists by now; it is not replaced") from None
    sync(out.parent)


def _replace(partial: Path, out: Path, old: Path, check: Check | None) -> None:
    """Put a release in the place of another, which is moved to where nobody else gets at it."""
    new = identity(partial)
    try:
        out.rename(old)
        _check_replaceable(old, out, check)
        partial.rename(out)
    except BaseException:  # an interruption, too, must not take the old release away
        if identity(out) == new:
            raise
        if old.exists() and os.path.lexists(out):
            keep(old.parent)
            raise ReleaseError(
                f"something else was put in the place of {str(out)!r} at this moment; the release "
                f"that was to be replaced is {str(old)!r}"
            ) from None
        if old.exists():
            old.rename(out)
        raise


def identities(out: Path) -> set[tuple[int, int] | None]:
    """Of a folder, and of older releases that may come back in its place."""
    places = [out]
    with suppress(OSError):
        found = (path for path in out.absolute().parent.iterdir())
        places += [path / _INSIDE for path in found if path.name.startswith(_waiting(out))]
    return {identity(place) for place in places}


def identity(folder: Path) -> tuple[int, int] | None:
    """Identifies a folder, so that another put in its place is noticed; None if it is not there."""
    try:
        found = folder.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _waiting(out: Path) -> str:
    """Prefix of the private folder in which the old release waits until the new one is in place."""
    return f".{out.absolute().name}.replaced-"


def _restore(out: Path) -> None:
    """Bring back, or clear away, an old release whose replacement was cut off."""
    with suppress(OSError):
        for waiting, descriptor in abandoned(out.absolute().parent, _waiting(out)):
            target = _REMOVED if os.path.lexists(out) else out.absolute()
            with suppress(FileNotFoundError):  # another has begun to clear it away
                os.rename(_INSIDE, target, src_dir_fd=descriptor, dst_dir_fd=descriptor)
            remove(waiting, descriptor)


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
