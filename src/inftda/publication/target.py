"""The file or folder a command is asked to write: checked before any work is done."""

import os
from collections.abc import Iterable
from pathlib import Path

from inftda.errors import InftdaError, ReleaseError
from inftda.publication.folder import Check, check_writable, release_around

#: Longest name that file systems take, in bytes.
_MAX_NAME = 255


def check_target(out: Path, *, force: bool = False, reads: Iterable[Path | None] = ()) -> None:
    """Refuse a file that cannot, or must not, be written.

    Args:
        out: the file to write.
        force: replace it if it is there.
        reads: what the same command reads, which is never replaced.

    Raises:
        ReleaseError: it lies in a release.
        InftdaError: it cannot be written, is being read, or is there and `force` is not given.
    """
    _check_place(out)
    check_no_release(out)
    if not out.exists():
        return
    if any(path is not None and path.exists() and out.samefile(path) for path in reads):
        raise InftdaError(f"{str(out)!r} is being read; write to another file")
    if not out.is_file():
        raise InftdaError(f"{str(out)!r} is not a plain file; write to another one")
    if not force:
        raise InftdaError(
            f"{str(out)!r} exists already; choose another file or use --force to replace it"
        )


def check_folder(out: Path, *, force: bool, check: Check, around: Path | None = None) -> None:
    """Refuse a folder that cannot, or must not, be written; it is not a release itself.

    Args:
        out: the folder to write.
        force: replace it if it is there.
        check: complains about a folder that must not be replaced.
        around: as for `check_no_release`.

    Raises:
        ReleaseError: it lies in a release or cannot be written, or is there and must not be
            replaced.
    """
    check_no_release(out, around=around)
    check_writable(out, force=force, check=check)


def check_no_release(out: Path, *, around: Path | None = None) -> None:
    """Refuse to write into a release or an estimate.

    Args:
        out: the file or folder to write.
        around: where to look for one; `out` itself, unless that may be one to be replaced.

    Raises:
        ReleaseError: it is one, or lies in one.
    """
    folder = release_around(around or out)
    if folder is not None:
        raise ReleaseError(
            f"{str(out)!r} lies in the release folder or estimate {str(folder)!r}, which stays "
            "as it was published; write it elsewhere"
        )


def _check_place(out: Path) -> None:
    parent = out.absolute().parent
    if any(len(os.fsencode(part)) > _MAX_NAME for part in out.parts):
        raise InftdaError(
            f"the name of the file to write must be at most {_MAX_NAME} bytes; choose a shorter one"
        )
    if out.is_symlink():
        raise InftdaError(f"{str(out)!r} is a link; give a file that is not a link")
    if out.is_dir():
        raise InftdaError(f"{str(out)!r} is a folder; give the name of a file")
    if not parent.is_dir():
        raise InftdaError(f"there is no folder {str(parent)!r} to write into; make it first")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise InftdaError(f"the folder {str(parent)!r} may not be written to; choose another")
