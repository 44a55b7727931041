"""Kernels: functions that numba compiles.

They take arrays, numbers and tuples of these, validate nothing, and run without the interpreter
lock. Loading numba takes half a second, so modules with kernels are imported where something is
computed, not by commands that only read.

Numba keeps machine code in a folder, from which later processes unpickle it: anybody who can
write there can run code as the user. So a folder is used only if nobody but the user and root can
write to it or replace it. Numba notices a change of the file that a kernel is in, but not of a
file that this kernel calls or takes a constant from. So the folder is named after all modules that
mention this one: those with kernels do, and one that brings a constant does so in a comment.
"""

import hashlib
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from numba import config as _config
from numba import njit

#: Its names follow from variables of the environment.
config: Any = _config
Kernel = TypeVar("Kernel", bound=Callable[..., Any])

_PACKAGE: Final = Path(__file__).parent
#: What all modules mention whose content is compiled.
_MARK: Final = b"inftda.kernels"


def kernel(function: Kernel) -> Kernel:
    """Compile a function when it is first called. Division by zero must not happen in it."""
    return _compiled(function)


def inlined_kernel(function: Kernel) -> Kernel:
    """Compile a function to be copied into every caller: for those shorter than a call."""
    return _compiled(function, forceinline=True)


def _compiled(function: Kernel, **inlining: bool) -> Kernel:
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", **inlining}
    folder, others = cache_folder(), config.CACHE_DIR
    if folder is not None and not config.DISABLE_JIT:
        config.CACHE_DIR = folder  # only for this function
        try:
            made: Any = njit(cache=True, **options)(function)
        except RuntimeError:  # numba cannot write there
            made = None
        finally:
            config.CACHE_DIR = others
        # Numba goes on to folders that nobody has checked if it cannot write to this one.
        if made is not None and Path(made.stats.cache_path).parent == Path(folder):
            return cast("Kernel", made)
    return cast("Kernel", njit(**options)(function))


@cache
def cache_folder() -> str | None:
    """Where machine code is kept; None if no folder is safe, so every process compiles anew."""
    for place in _places():
        with suppress(OSError):
            folder = place.resolve() / f"inftda-{_version()}"
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if is_safe(folder) and os.access(folder, os.W_OK):
                return str(folder)
    return None


def are_kept() -> bool:
    """Whether some kernel of this version was compiled before, by another process perhaps."""
    folder = cache_folder()
    return folder is not None and any(Path(folder).glob("*/*.nbi"))


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


def _places() -> Iterator[Path]:
    """Where to look for a folder: where numba is told to, beside the package, at the user's."""
    if config.CACHE_DIR:
        yield Path(config.CACHE_DIR)
    yield _PACKAGE / "__pycache__"
    with suppress(RuntimeError):  # a user without a home
        home = Path.home()
        yield home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache"


def _version() -> str:
    """A digest of all that is compiled."""
    texts = (path.read_bytes() for path in sorted(_PACKAGE.rglob("*.py")))
    return hashlib.sha256(b"".join(text for text in texts if _MARK in text)).hexdigest()[:16]
