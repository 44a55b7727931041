"""Compile functions with numba, and keep the machine code for later processes.

Kernels take arrays, numbers and tuples of these, validate nothing, and run without the interpreter
lock. Importing numba takes half a second, so commands that only read do not import kernels.

Numba unpickles machine code from a folder, so write access to it allows to run code as the user. A
folder is used only if the user and root alone can write to it or replace it. Numba recompiles
a kernel if its own file changes, but not if it calls or takes a constant from a file that changes.
So the folder is named after the content of all files that lie beside a kernel, and kernels take
constants from these only (`tests/unit/test_kernels.py`).
"""

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import config as _config
from numba import njit
from numba.core.event import Listener, install_listener

#: Its names follow from variables of the environment.
config: Any = _config
Kernel = TypeVar("Kernel", bound=Callable[..., Any])
_PACKAGE = Path(__file__).parents[1]


def kernel(function: Kernel) -> Kernel:
    """Compile a function when it is first called. Division by zero must not happen in it."""
    return _compiled(function)


def inlined_kernel(function: Kernel) -> Kernel:
    """Compile a function to be copied into every kernel that calls it.

    Only kernels may call it. It has no entry for Python, which would take an eighth of the time of
    the first release, so a call from Python ends the process.
    """
    return _compiled(function, forceinline=True, no_cpython_wrapper=True)


def _compiled(function: Kernel, **inlining: bool) -> Kernel:
    options: dict[str, Any] = {
        "nogil": True,
        "error_model": "numpy",
        "no_cfunc_wrapper": True,  # nothing calls kernels from C
        **inlining,
    }
    folder, given = cache_folder(), config.CACHE_DIR
    config.CACHE_DIR = folder or given  # only for this function
    try:
        made = njit(cache=folder is not None, **options)(function)
    except RuntimeError:  # numba cannot keep it, such as in a full file system
        made = njit(**options)(function)
    finally:
        config.CACHE_DIR = given
    return cast("Kernel", made)


@cache
def cache_folder() -> str | None:
    """Return where machine code is kept; None if no folder is safe: every process compiles."""
    content = b"".join(path.read_bytes() for path in sources())
    name = f"inftda-{hashlib.sha256(content).hexdigest()[:16]}"
    for place in filter(None, (config.CACHE_DIR, _PACKAGE / "__pycache__", "~/.cache")):
        with suppress(OSError, RuntimeError):  # RuntimeError: a user without a home
            folder = Path(place).expanduser().resolve() / name
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if is_safe(folder) and os.access(folder, os.W_OK):
                return str(folder)
    return None


def sources() -> list[Path]:
    """Return all files that lie in a folder with kernels."""
    with_kernels = (p for p in _PACKAGE.rglob("*.py") if b"inftda.util.kernels" in p.read_bytes())
    return sorted({path for one in with_kernels for path in one.parent.glob("*.py")})


@contextmanager
def when_compiling(tell: Callable[[str], object]) -> Iterator[None]:
    """Call `tell` with a line of text, once, when the first kernel is compiled and not loaded."""
    with install_listener("numba:compile", _Announcement(tell)):
        yield


class _Announcement(Listener):
    """Heard by numba whenever it compiles a function."""

    def __init__(self, tell: Callable[[str], object]) -> None:
        self._tell, self._is_told = tell, False

    def on_start(self, event: Any) -> None:  # noqa: ARG002 - the listener's shape
        """Announce the first compilation."""
        if not self._is_told:
            self._is_told = True
            often = "once on this machine" if cache_folder() else "as no folder can keep the result"
            self._tell(f"Compiling, {often}: up to half a minute ...")

    def on_end(self, event: Any) -> None:
        """A function was compiled."""


def is_safe(folder: Path) -> bool:
    """Whether only the user and root can write to a folder and replace it.

    Others may write to a folder further up if its sticky bit keeps them from renaming what is not
    theirs, as in `/tmp`. Windows has no such bits; there a folder is safe at the user's home.
    """
    if not hasattr(os, "geteuid"):
        return folder.is_relative_to(Path.home())
    for path in (folder, *folder.parents):
        found = path.lstat()
        is_open = bool(found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
        is_sticky = bool(found.st_mode & stat.S_ISVTX) and path != folder
        if found.st_uid not in {os.geteuid(), 0} or (is_open and not is_sticky):
            return False
    return True
