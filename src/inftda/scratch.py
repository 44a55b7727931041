"""Private temporary folders, and files that are written atomically.

What is in the folders may be confidential, so only their owner can read them. A process that is
killed cannot clean up after itself, so whoever makes the next folder of the same kind does:
each folder in use is locked by its process, and the system releases the locks of dead processes.

Others may be able to write to the folder around it, and names tell nothing: no link is ever
followed, a folder is emptied through its descriptor and never by its name, and only a folder
with our mark in it is taken for one of ours. Nobody else can put the mark there, so a folder of
the same owner that was renamed by somebody else is left alone.
"""

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

try:
    import fcntl
except ImportError:  # Windows
    HAS_LOCKS = False  # leave all other folders alone
else:
    HAS_LOCKS = True

#: File that every private folder has from its first moment to its last.
MARK: Final = ".inftda-scratch"
#: Prefix of the folders in which files are written before they are moved to their own folder.
_PARTIAL: Final = ".inftda-partial-"


@contextmanager
def private_folder(
    parent: Path, prefix: str, *, is_clearing: bool = True, keeps_on_error: bool = False
) -> Iterator[Path]:
    """A new folder (0700) in `parent`, removed at the end unless it was moved away.

    Args:
        parent: an existing folder.
        prefix: of its name.
        is_clearing: whether folders with this prefix that no process holds are removed first.
        keeps_on_error: whether what is in it stays after an error, for the next run to find.

    Raises:
        OSError: it cannot be made.
    """
    if is_clearing:
        for left_over, held in abandoned(parent, prefix):
            remove(left_over, held)
    # Named before it is made, so that it is removed at whatever moment an interrupt comes.
    path = parent / f"{prefix}{secrets.token_hex(16)}"
    descriptor = None
    is_done = False
    try:
        descriptor = _make(path)
        yield path
        is_done = True
    finally:
        if descriptor is None:
            _remove_unfinished(path)
        else:
            if is_done or not keeps_on_error or _is_bare(descriptor):
                remove(path, descriptor)
            os.close(descriptor)


def keep(folder: Path) -> None:
    """Leave a private folder where it is, for people to look into; nobody clears it away."""
    (folder / MARK).unlink()


@contextmanager
def whole_file(path: Path, *, mode: int | None = None) -> Iterator[Path]:
    """A file to write, which replaces `path` atomically if the block succeeds.

    Whatever interrupts the block, `path` is either as it was before or complete. A link is
    replaced and not followed.

    Args:
        path: the file to write, in an existing folder.
        mode: permissions of the file; by default those of any new file.

    Raises:
        OSError: it cannot be written.
    """
    path = path.absolute()
    with private_folder(path.parent, _PARTIAL) as folder:
        partial = folder / path.name
        yield partial
        if mode is not None:
            partial.chmod(mode)
        sync(partial)
        partial.replace(path)
        sync(path.parent)


def sync(path: Path) -> None:
    """Flush a file, or a folder's entries, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def abandoned(parent: Path, prefix: str) -> Iterator[tuple[Path, int]]:
    """Our private folders that no process holds, each locked while it is looked at.

    Returns:
        Path and descriptor; which folder is meant is what the descriptor says.
    """
    if not HAS_LOCKS:
        return
    for name in os.listdir(parent):  # noqa: PTH208 - names with wildcards are names, too
        # A dot begins the ending of another kind of folder, of something with a longer name.
        if not name.startswith(prefix) or "." in name.removeprefix(prefix):
            continue
        with suppress(OSError):
            descriptor = open_folder(parent / name)
            try:
                if _is_private(descriptor) and _is_ours(descriptor) and _take(descriptor):
                    yield parent / name, descriptor
            finally:
                os.close(descriptor)


def remove(path: Path, descriptor: int) -> None:
    """Remove a private folder, unless it has been moved away or is to be kept.

    Args:
        path: where it was made.
        descriptor: the folder itself; what is at `path` by now may be another.
    """
    with suppress(OSError):
        if os.path.samestat(path.lstat(), os.fstat(descriptor)):
            if _is_marked(descriptor):
                _empty(descriptor)
            path.rmdir()  # fails on anything but an empty folder


def open_folder(path: Path) -> int:
    """A descriptor of a folder; an error if it is a link or anything else."""
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)


def _empty(descriptor: int) -> None:
    """Remove all that is in a folder, the mark last: an interrupted removal can be resumed."""
    for name in sorted(os.listdir(descriptor), key=lambda name: name == MARK):
        with suppress(OSError):
            kind = os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode
            if stat.S_ISDIR(kind):
                shutil.rmtree(name, ignore_errors=True, dir_fd=descriptor)
            elif name != MARK or len(os.listdir(descriptor)) == 1:
                os.unlink(name, dir_fd=descriptor)


def _make(path: Path) -> int:
    """Make, lock and mark a folder; returns its descriptor."""
    while True:
        path.mkdir(mode=0o700)
        # Another process may have taken it for abandoned already, or put another in its place.
        with suppress(FileNotFoundError):
            descriptor = open_folder(path)
            is_ours = False
            try:
                is_ours = _has_marked(descriptor)
            finally:
                if not is_ours:
                    os.close(descriptor)
            if is_ours:
                return descriptor
        with suppress(OSError):
            path.rmdir()


def _remove_unfinished(path: Path) -> None:
    """Remove a folder that an interrupt has kept from being made: it holds the mark at most."""
    with suppress(OSError):
        descriptor = open_folder(path)
        try:
            if _is_private(descriptor) and _is_bare(descriptor):
                remove(path, descriptor)
        finally:
            os.close(descriptor)


def _has_marked(descriptor: int) -> bool:
    """Lock and mark a new folder; False if somebody else was quicker.

    Raises:
        PermissionError: it is not the one that was made.
    """
    if os.fstat(descriptor).st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "somebody else's folder was put in the place of ours")
    try:
        is_taken = _take(descriptor)
    except OSError:  # no locks on this file system, so nothing here is ever cleared
        is_taken = True
    if is_taken:
        with suppress(FileNotFoundError):  # it was removed meanwhile
            os.close(os.open(MARK, os.O_CREAT | os.O_EXCL, 0o600, dir_fd=descriptor))
            return True
    return False


def _is_private(descriptor: int) -> bool:
    """Whether a folder is ours and nobody else can enter it."""
    found = os.fstat(descriptor)
    return found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o077


def _is_ours(descriptor: int) -> bool:
    """Whether a folder is marked, or was made by a process that ended before it could mark it."""
    return _is_marked(descriptor) or not os.listdir(descriptor)


def _is_bare(descriptor: int) -> bool:
    """Whether nothing but the mark is in a folder."""
    return {*os.listdir(descriptor)} <= {MARK}


def _is_marked(descriptor: int) -> bool:
    with suppress(OSError):
        return stat.S_ISREG(os.stat(MARK, dir_fd=descriptor, follow_symlinks=False).st_mode)
    return False


def _take(descriptor: int) -> bool:
    """Lock a folder; False if another process holds it."""
    if not HAS_LOCKS:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
