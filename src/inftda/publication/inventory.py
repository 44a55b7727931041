"""What belongs in the folder of a release, as its manifest states it, and what does not."""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from inftda.errors import ReleaseError
from inftda.files import FLOWS_FILE, MANIFEST_FILE, is_plain

if TYPE_CHECKING:
    from inftda.publication.manifest import Manifest


MEASUREMENTS_FILE: Final = "measurements.parquet"
#: Signature of the manifest, if the release is signed.
SIGNATURE_FILE: Final = "manifest.sig"
#: Tables that may be folders of parts, as many machines write them.
IN_PARTS: Final = (FLOWS_FILE, MEASUREMENTS_FILE)
#: What to do about a release that is not as it was published.
GET_AGAIN: Final = "get the release again from its publisher"
#: Likewise, and why.
DAMAGED: Final = f"it was edited or damaged: {GET_AGAIN}"


def areas_names(fingerprints: Sequence[str]) -> tuple[str, ...]:
    """File with the areas of each axis: one for all if they have the same areas.

    >>> areas_names(["a", "a"]), areas_names(["a", "b"])
    (('areas.csv', 'areas.csv'), ('areas-1.csv', 'areas-2.csv'))
    """
    if len(set(fingerprints)) == 1:
        return ("areas.csv",) * len(fingerprints)
    return tuple(f"areas-{number}.csv" for number in range(1, len(fingerprints) + 1))


def places_name(areas_file: str) -> str:
    """File with names, locations and outlines of the areas that a file lists, if there is one.

    >>> places_name("areas.csv"), places_name("areas-2.csv")
    ('places.parquet', 'places-2.parquet')
    """
    return areas_file.removesuffix(".csv").replace("areas", "places", 1) + ".parquet"


def own_files(manifest: "Manifest") -> frozenset[str]:
    """Names of all files that a release may have; some may be folders of parts.

    A manifest that names any other file for its areas does not make it one of these.
    """
    areas = areas_names([axis.fingerprint for axis in manifest.axes])
    further = {MEASUREMENTS_FILE} if manifest.measurements != "none" else set()
    further |= {
        places_name(file)
        for file, axis in zip(areas, manifest.axes, strict=True)
        if axis.places_sha256
    }
    return frozenset({MANIFEST_FILE, SIGNATURE_FILE, FLOWS_FILE, *areas, *further})


def strangers(folder: Path, manifest: "Manifest") -> list[str]:
    """What is in a folder, by paths relative to it, and is not a plain file of its release."""
    own = own_files(manifest)
    found = []
    for path in sorted(folder.iterdir()):
        if path.name in own.intersection(IN_PARTS) and _is_real_folder(path):
            found += _not_parts(path)
        elif path.name not in own or not is_plain(path):
            found.append(path)
    return [path.relative_to(folder).as_posix() for path in found]


def part_name(number: int) -> str:
    """Name of a file of a table that many machines wrote."""
    return f"part-{number:05d}.parquet"


def _not_parts(folder: Path) -> list[Path]:
    """What is in a folder of parts and is not one; it must have one at least."""
    inside = sorted(folder.iterdir())
    parts = {part_name(number) for number in range(len(inside))}
    return [path for path in inside if path.name not in parts or not is_plain(path)]


def check_plain(folder: Path, names: Iterable[str]) -> None:
    """Refuse files that are links, pipes or anything else that must not be read.

    Raises:
        ReleaseError: one of those that are there is not a plain file.
    """
    for name in names:
        path = folder / name
        is_in_parts = name in IN_PARTS and _is_real_folder(path)
        parts = sorted(path.iterdir()) if is_in_parts else [path]
        for part in parts:
            if (part.exists() or part.is_symlink()) and not is_plain(part):
                shown = part.relative_to(folder).as_posix()
                kind = "a link" if part.is_symlink() else "not a plain file"
                raise ReleaseError(
                    f"{shown!r} of the release {str(folder)!r} is {kind}, which no release has; "
                    f"{GET_AGAIN}"
                )


def _is_real_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def digest(path: Path) -> str:
    """SHA-256 of a file, or of the names and digests of all files of a folder.

    It finds damage and mistakes, not forgery: whoever changes the flows can change the digest as
    well, unless the manifest is signed.
    """
    if path.is_file():
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    together = hashlib.sha256()
    for part in sorted(path.rglob("*")):
        if part.is_file():
            together.update(f"{part.relative_to(path).as_posix()}\0{digest(part)}\n".encode())
    return together.hexdigest()


def check_digest(path: Path, stated: str) -> None:
    """Compare a file, or a folder of parts, with the digest that the manifest states.

    Raises:
        ReleaseError: it is another one.
    """
    if digest(path) != stated:
        raise ReleaseError(
            f"{path.name} is not what the manifest was written for; it was damaged or changed: "
            f"{GET_AGAIN}"
        )
