"""What lies in the folder of a release, as its manifest states it, and what does not."""

from dataclasses import replace
from pathlib import Path

from inftda.errors import ReleaseError
from inftda.files import FLOWS_FILE, MANIFEST_FILE, is_plain
from inftda.publication.areas import areas_names, places_name, write_areas
from inftda.publication.manifest import MEASUREMENTS_FILE, SIGNATURE_FILE, Manifest, digest
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


def write_public_files(folder: Path, tree: Tree, manifest: Manifest) -> None:
    """Everything of a release but its numbers, which are there."""
    axes = write_areas(folder, tree, manifest.tree.axes)
    has_measurements = manifest.measurements != "none"
    manifest = replace(
        manifest,
        tree=replace(manifest.tree, axes=axes),
        flows_sha256=digest(folder / FLOWS_FILE),
        measurements_sha256=digest(folder / MEASUREMENTS_FILE) if has_measurements else "",
    )
    (folder / MANIFEST_FILE).write_text(manifest.to_text(), encoding="utf-8")


def own_files(manifest: Manifest) -> frozenset[str]:
    """Names of all files that a release may have.

    A manifest that names any other file for its areas does not make it one of these.
    """
    areas = areas_names([axis.fingerprint for axis in manifest.tree.axes])
    further = {MEASUREMENTS_FILE} if manifest.measurements != "none" else set()
    further |= {
        places_name(file)
        for file, axis in zip(areas, manifest.tree.axes, strict=True)
        if axis.places_sha256
    }
    return frozenset({MANIFEST_FILE, SIGNATURE_FILE, FLOWS_FILE, *areas, *further})


def strangers(folder: Path, manifest: Manifest) -> list[str]:
    """Names of what is in a folder and is not a plain file of its release."""
    own = own_files(manifest)
    return [
        path.name for path in sorted(folder.iterdir()) if path.name not in own or not is_plain(path)
    ]
