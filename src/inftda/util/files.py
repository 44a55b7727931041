"""Files and folders that are written whole or not at all.

Work in progress lies in a private folder (0700) beside the target and becomes the target by one
rename. Each private folder has a lock file, held by its process. The system releases the locks of
dead processes, so the next process that makes a folder of the same kind removes the left-overs.
No link is followed, and a folder without such a lock file is never taken for a left-over.
Windows has no such locks: left-overs stay there until they are removed by hand.
"""

import errno
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from inftda.errors import InftdaError, ReleaseError

try:
    import fcntl

    _IS_POSIX = True
except ImportError:
    _IS_POSIX = False

#: Table and manifest of a release or an estimate.
FLOWS_FILE, ESTIMATE_FILE, MANIFEST_FILE = "flows.parquet", "estimate.parquet", "manifest.json"
#: Files that desktop systems leave in folders.
JUNK: Final = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})
#: Lock file of a private folder, held by its process.
LOCK: Final = ".inftda-lock"
#: In the private folder of a folder that is written: the new one, and the one that it replaces.
NEW, OLD = "new", "old"
#: Longest names that file systems take, in bytes; the private folder of a folder has a longer one.
_MAX_FILE, _MAX_FOLDER = 255, 200

#: Raises an error for a folder that must not be replaced.
Check = Callable[[Path], None]


@contextmanager
def private_folder(parent: Path, prefix: str, *, of: Path | None = None) -> Iterator[Path]:
    """Make a folder that only its owner can enter, and remove it at the end.

    Left-over folders with the same prefix are removed first. An old folder in one of them goes
    back to where it was (`of`). If the block fails and the folder cannot be removed, a note of the
    exception names the folder.
    """
    _clear(parent, prefix, of)
    lock = None
    while lock is None:
        path = parent / f"{prefix}{secrets.token_hex(16)}"
        lock = _made(path)
    try:
        yield path
    finally:
        if not _IS_POSIX:  # Windows does not remove open files
            os.close(lock)
        try:
            _remove(path, of)
            if (problem := sys.exception()) is not None and path.exists():
                problem.add_note(f"{str(path)!r} could not be removed: remove it")
        finally:
            if _IS_POSIX:
                os.close(lock)


@contextmanager
def scratch_folder(prefix: str, error: type[InftdaError]) -> Iterator[Path]:
    """Make a private folder in TMPDIR, and remove it at the end."""
    parent = Path(tempfile.gettempdir())
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(private_folder(parent, prefix))
        except OSError as problem:
            raise error(
                f"cannot make a temporary directory in {str(parent)!r}: {problem.strerror}; set "
                "TMPDIR to one that exists and can be written to"
            ) from None
        yield folder


@contextmanager
def whole_file(path: Path, *, mode: int | None = None) -> Iterator[Path]:
    """Open a file to write that replaces `path` at once if the block succeeds.

    Whatever interrupts the block, `path` is either unchanged or complete. A link is replaced and
    not followed. `mode` sets the permissions; by default they follow from the umask.
    """
    path = path.absolute()
    with private_folder(path.parent, ".inftda-partial-") as folder:
        partial = folder / path.name
        with naming(path, instead_of=partial):
            yield partial
            if mode is not None:
                partial.chmod(mode)
            _sync(partial)
        partial.replace(path)
        _sync(path.parent)


@contextmanager
def naming(path: Path, *, instead_of: Path | None = None) -> Iterator[None]:
    """Name `path` in errors of the system that name no file, as a write to a full disk does.

    `instead_of` is the private file or folder that becomes `path`: users know it by that name.
    """
    try:
        yield
    except OSError as problem:
        name = problem.filename
        if name is None:
            problem.filename = str(path)
        elif instead_of is not None and isinstance(name, str):
            with suppress(ValueError):
                problem.filename = str(path / Path(name).relative_to(instead_of))
        raise


@contextmanager
def whole_folder(
    out: Path,
    *,
    check: Check,
    force: bool = False,
    is_public: bool = False,
    on_placed: Callable[[], object] | None = None,
) -> Iterator[Path]:
    """Make a folder to fill, which becomes `out` at once if the block succeeds.

    Only its owner can read it. With `is_public` everybody whom the umask allows can read it, so
    that it can be served, and only its owner can write to it. While it is filled it lies in a
    private folder.

    Whatever interrupts the block, `out` is either unchanged or complete. If the process is
    killed between the two renames that replace a folder, the old one lies in
    `.NAME.partial-*/old` beside its place; the next call brings it back. With `force` a folder
    that is there is replaced, unless `check` complains about it. `on_placed` is called once `out`
    is complete, also if an interrupt follows at once.
    """
    check_folder(out, check=check, force=force)
    out = out.absolute()
    with ExitStack() as stack:
        try:
            work = stack.enter_context(private_folder(out.parent, _prefix(out), of=out))
            (new := work / NEW).mkdir(mode=0o755 if is_public else 0o700)
        except OSError as problem:
            if problem.errno == errno.ENOSPC:  # the machine's fault, not the user's
                raise
            raise ReleaseError(
                f"cannot write to {str(out.parent)!r}: {problem.strerror}; choose another folder"
            ) from None
        with naming(out, instead_of=new):
            yield new
            for file in new.rglob("*"):
                if file.is_file():
                    file.chmod(file.stat().st_mode & 0o644 if is_public else 0o600)
                    _sync(file)
            _sync(new)
        # Another process may have written there meanwhile; its files are not replaced.
        check_folder(out, check=check, force=force)
        if force and out.exists():
            out.rename(work / OLD)
        try:
            new.rename(out)
        finally:
            if on_placed is not None and not new.exists():
                on_placed()
        _sync(out.parent)


def check_folder(out: Path, *, check: Check, force: bool) -> None:
    """Refuse a folder that cannot, or must not, be written, before any work is done."""
    check_unpublished(out, around=out.absolute().parent)
    if len(os.fsencode(out.absolute().name)) > _MAX_FOLDER:
        raise ReleaseError(
            f"the name of the output folder must be at most {_MAX_FOLDER} bytes; choose a "
            "shorter one"
        )
    if out.is_symlink():
        raise ReleaseError(f"{str(out)!r} is a link; give a folder that is not a link")
    bring_back(out)
    if out.exists() and not force:
        raise ReleaseError(
            f"{str(out)!r} exists already; choose another folder or use `force=True` to replace it"
        )
    if out.exists() and not out.is_dir():
        raise ReleaseError(f"{str(out)!r} is a file and not a folder of ours; it is not replaced")
    if out.exists() and any(out.iterdir()):
        check(out)
    _check_parent(out, ReleaseError)


def check_own(folder: Path, own: Collection[str], what: str) -> None:
    """Refuse to replace a folder that holds anything but plain files of these names."""
    for path in sorted(folder.iterdir()):
        if path.name not in own or not is_plain(path):
            raise ReleaseError(
                f"{str(folder)!r} is not replaced: {path.name!r} in it is not part of {what}; move "
                "it elsewhere or choose another folder"
            )


def check_file(out: Path, *, force: bool = False, reads: Iterable[Path | None] = ()) -> None:
    """Refuse a file that cannot, or must not, be written, before any work is done.

    Files that the same command `reads` are never replaced.
    """
    if any(len(os.fsencode(part)) > _MAX_FILE for part in out.parts):
        raise InftdaError(
            f"the name of the file to write must be at most {_MAX_FILE} bytes; choose a shorter one"
        )
    if out.is_symlink():
        raise InftdaError(f"{str(out)!r} is a link; give a file that is not a link")
    if out.is_dir():
        raise InftdaError(f"{str(out)!r} is a folder; give the name of a file")
    _check_parent(out, InftdaError)
    check_unpublished(out)
    if not out.exists():
        return
    if any(path is not None and path.exists() and out.samefile(path) for path in reads):
        raise InftdaError(f"{str(out)!r} is being read; write to another file")
    if not is_plain(out):
        raise InftdaError(f"{str(out)!r} is not a plain file; write to another one")
    if not force:
        raise InftdaError(
            f"{str(out)!r} exists already; choose another file or use `force=True` to replace it"
        )


def check_unpublished(out: Path, *, around: Path | None = None) -> None:
    """Refuse to write into a release or an estimate, also through links.

    The search begins at `around`: at `out` itself, unless `out` may be replaced.
    """
    resolved = (around or out).resolve()
    for folder in (resolved, *resolved.parents):
        has_table = any((folder / name).exists() for name in (FLOWS_FILE, ESTIMATE_FILE))
        if has_table and (folder / MANIFEST_FILE).exists():
            raise ReleaseError(
                f"{str(out)!r} lies in the release folder or estimate {str(folder)!r}, which stays "
                "as it was published; write it elsewhere"
            )


def bring_back(out: Path) -> None:
    """Bring back an old folder whose replacement was cut off, if nothing is in its place."""
    with suppress(OSError):
        _clear(out.absolute().parent, _prefix(out), out.absolute())


def is_plain(path: Path) -> bool:
    """Whether it is a file, and neither a link nor anything else."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except (OSError, ValueError):  # not there, or no name that there could be
        return False


def _prefix(out: Path) -> str:
    return f".{out.absolute().name}.partial-"


def _check_parent(out: Path, error: type[InftdaError]) -> None:
    parent = out.absolute().parent
    if not parent.is_dir():
        is_address = re.match(r"[a-z0-9]+:/", str(out)) is not None
        hint = "only releases go to a store: write it to a path" if is_address else "make it first"
        raise error(f"there is no folder {str(parent)!r} to write into; {hint}")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise error(f"the folder {str(parent)!r} may not be written to; choose another")


def _sync(path: Path) -> None:
    """Flush a file, or a folder's entries, to disk; Windows does so by itself."""
    if not _IS_POSIX:
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _made(path: Path) -> int | None:
    """Make and lock a private folder; None if another process took it for a left-over."""
    lock = None
    try:
        path.mkdir(mode=0o700)
        with suppress(FileNotFoundError):
            lock = os.open(path / LOCK, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
            # Without locks on this file system nothing here is ever taken for a left-over.
            if _has_taken(lock, otherwise=True) and os.fstat(lock).st_nlink:
                return lock
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise
    if lock is not None:
        os.close(lock)
    return None


def _has_taken(lock: int, *, otherwise: bool) -> bool:
    """Whether nobody else holds a lock, which is ours from now on; `otherwise` if nobody can."""
    if not _IS_POSIX:
        return otherwise
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return otherwise
    return True


def _clear(parent: Path, prefix: str, of: Path | None) -> None:
    """Remove private folders that no process holds."""
    if not _IS_POSIX:
        return
    ours = re.compile(re.escape(prefix) + "[0-9a-f]{32}")
    for name in filter(ours.fullmatch, os.listdir(parent)):  # noqa: PTH208 - names alone
        path = parent / name
        with suppress(OSError):
            found = path.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
                continue
            try:
                lock = os.open(path / LOCK, os.O_RDONLY | os.O_NOFOLLOW)
            except FileNotFoundError:
                path.rmdir()  # only an empty one, of a process that was killed at once
                continue
            try:
                if _has_taken(lock, otherwise=False):
                    _remove(path, of)
            finally:
                os.close(lock)


def _remove(path: Path, of: Path | None) -> None:
    """Remove a private folder, the lock file last: after a kill the rest is found again."""
    with suppress(OSError):
        if of is not None and not os.path.lexists(of) and (path / OLD).exists():
            (path / OLD).rename(of)
        for inside in path.iterdir():
            if inside.is_dir() and not inside.is_symlink():
                shutil.rmtree(inside, ignore_errors=True)
            elif inside.name != LOCK:
                inside.unlink()
        if os.listdir(path) == [LOCK]:  # noqa: PTH208 - names alone
            (path / LOCK).unlink()
            path.rmdir()
