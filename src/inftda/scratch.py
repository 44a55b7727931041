"""Private temporary folders, and files that are written atomically.

What is in the folders may be confidential, so only their owner can read them. A process that is
killed cannot clean up after itself, so whoever makes the next folder of the same kind does:
each folder in use is locked by its process, and the system releases the locks of dead processes.
"""

import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    HAS_LOCKS = False  # leave all other folders alone
else:
    HAS_LOCKS = True

#: Prefix of the folders in which files are written before they are moved to their own folder.
_PARTIAL = ".inftda-partial-"


@contextmanager
def private_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """A new folder (0700) in `parent`, removed at the end unless it was moved away.

    Args:
        parent: an existing folder.
        prefix: of its name; folders with this prefix that no process holds are removed first.

    Raises:
        OSError: it cannot be made.
    """
    _clear_abandoned(parent, prefix)
    # Named before it is made, so that it is removed at whatever moment an interrupt comes.
    path = parent / f"{prefix}{secrets.token_hex(16)}"
    lock = None
    try:
        lock = _make(path)
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        if lock is not None:
            os.close(lock)


@contextmanager
def whole_file(path: Path, *, mode: int | None = None) -> Iterator[Path]:
    """A file to write, which replaces `path` atomically if the block succeeds.

    Whatever interrupts the block, `path` is either as it was before or complete. A link is
    replaced and not followed.

    Args:
        path: the file to write, in an existing folder.
        mode: rights of the file; by default those of any new file.

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


def _make(path: Path) -> int:
    """Make a folder and lock it."""
    while True:
        path.mkdir(mode=0o700)
        # Between making and locking it, another process may have taken it for abandoned.
        with suppress(FileNotFoundError):
            lock = os.open(path, os.O_RDONLY)
            try:
                is_taken = _take(lock)
            except OSError:  # no locks on this file system, so nothing here is ever cleared
                is_taken = True
            if is_taken and path.exists():
                return lock
            os.close(lock)
            path.rmdir()


def _clear_abandoned(parent: Path, prefix: str) -> None:
    if not HAS_LOCKS:
        return
    for name in os.listdir(parent):  # noqa: PTH208 - names with wildcards are names, too
        if name.startswith(prefix):
            with suppress(OSError):
                _remove_if_abandoned(parent / name)


def _remove_if_abandoned(path: Path) -> None:
    # In a temporary directory anybody can put a link where we look: never follow one.
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        found = os.fstat(descriptor)
        is_ours = found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o077
        if is_ours and _take(descriptor):
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(descriptor)


def _take(descriptor: int) -> bool:
    """Lock a folder; False if another process holds it."""
    if not HAS_LOCKS:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
