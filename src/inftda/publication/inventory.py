"""Files of a release: their names, that they are plain, and their digests."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from inftda.errors import ReleaseError
from inftda.files import FLOWS_FILE, is_plain

MEASUREMENTS_FILE: Final = "measurements.parquet"
#: Signature of the manifest, if the release is signed.
SIGNATURE_FILE: Final = "manifest.sig"
#: Tables that may be folders of parts, as many machines write them.
IN_PARTS: Final = (FLOWS_FILE, MEASUREMENTS_FILE)
#: What to do about a release that is not as it was published.
GET_AGAIN: Final = "get the release again from its publisher"
#: Likewise, and why.
DAMAGED: Final = f"it was edited or damaged: {GET_AGAIN}"


def part_name(number: int) -> str:
    """Name of a file of a table that many machines wrote."""
    return f"part-{number:05d}.parquet"


def check_plain(folder: Path, names: Iterable[str]) -> None:
    """Refuse files that are links, pipes or anything else that must not be read.

    Raises:
        ReleaseError: one of those that are there is not a plain file.
    """
    for name in names:
        path = folder / name
        is_in_parts = name in IN_PARTS and is_real_folder(path)
        parts = sorted(path.iterdir()) if is_in_parts else [path]
        for part in parts:
            if (part.exists() or part.is_symlink()) and not is_plain(part):
                shown = part.relative_to(folder).as_posix()
                kind = "a link" if part.is_symlink() else "not a plain file"
                raise ReleaseError(
                    f"{shown!r} of the release {str(folder)!r} is {kind}, which no release has; "
                    f"{GET_AGAIN}"
                )


def is_real_folder(path: Path) -> bool:
    """Whether it is a folder, and not a link to one."""
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
