"""The folder of a release."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from inftda.errors import ReleaseError
from inftda.files import FLOWS_FILE, MANIFEST_FILE
from inftda.hierarchy import Hierarchy
from inftda.publication.inventory import (
    MEASUREMENTS_FILE,
    areas_names,
    digest,
    places_name,
    strangers,
)
from inftda.publication.manifest import AxisEntry, Manifest
from inftda.publication.places_file import save_places
from inftda.tree import Tree


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
    has_measurements = manifest.measurements != "none"
    manifest = replace(
        manifest,
        axes=axes,
        flows_sha256=digest(folder / FLOWS_FILE),
        measurements_sha256=digest(folder / MEASUREMENTS_FILE) if has_measurements else "",
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
