"""Machine code on disk: what one process has compiled, others call.

Whoever can write to these files runs code as whoever reads them, so a file counts only if it,
and the folder it is in, belong to the user, to root, or to the owner of this package, and nobody
else can write to them: these could change the program itself. No link is followed.

As numba does for its own files, they are put into the folder `NUMBA_CACHE_DIR` if there is such a
variable, else beside the package, else, where that cannot be written to, among the user's files;
where nothing can, every process compiles for itself. Files that root has left beside the package
serve everybody.

A file is named after all that its content follows from: the kernel (its `digest`), the
kinds of its arguments, the processor, and the versions of Python, numba and its compiler. So one
that is found is the right one, on whatever machine, and files are never changed: processes that
write the same at the same time write the same, each as a whole.
"""

import hashlib
import json
import os
import platform
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from inftda.compiled.machine_code import MachineCode
from inftda.files import whole_file

if TYPE_CHECKING:
    from inftda.compiled.kernels import CompiledKernel


#: Changes whenever files are written in another way.
_FORMAT: Final = 1
_LIBRARIES: Final = ("numba", "llvmlite", "numpy")
_PACKAGE: Final = Path(__file__).parents[1]
_FOLDER: Final = "inftda-kernels"
_FOLDER_VARIABLE: Final = "NUMBA_CACHE_DIR"
#: Others may read what is compiled, and must not write to it.
_FILE_MODE, _WRITEABLE_BY_OTHERS = 0o644, 0o022
#: Length of a digest at the start of each file, by which a damaged one is known.
_N_DIGEST: Final = 32


def key(kernel: bytes, kinds: Sequence[object]) -> str:
    """The name of what is compiled of a kernel for arguments of some kinds."""
    text = repr((kernel, [(type(kind).__name__, *kind) for kind in kinds], _machine()))  # type: ignore[misc] # all are tuples
    return hashlib.sha256(text.encode()).hexdigest()


def load(key: str) -> MachineCode | None:
    """Machine code from disk; None if there is none that is ours and whole."""
    for folder in _folders():
        with suppress(OSError):
            code = _decoded(_read(folder, key))
            if code is not None and code.is_callable:
                return code
    return None


def save(key: str, code: MachineCode) -> None:
    """Keep machine code for other processes, if there is a place for it."""
    head = {"symbol": code.symbol, "result": code.result, "externals": code.externals}
    body = json.dumps(head).encode() + b"\n" + code.content
    for folder in _folders():
        with suppress(OSError):
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            if not _is_ours(folder.lstat()):
                continue
            with whole_file(folder / key, mode=_FILE_MODE) as partial:
                partial.write_bytes(hashlib.sha256(body).digest() + body)
            return


def _read(folder: Path, key: str) -> bytes:
    """The content of a file; nothing if somebody else could have written it.

    Raises:
        OSError: there is no such file.
    """
    around = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if not _is_ours(os.fstat(around)):
            return b""
        with os.fdopen(os.open(key, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=around), "rb") as file:
            return file.read() if _is_ours(os.fstat(file.fileno())) else b""
    finally:
        os.close(around)


def _decoded(content: bytes) -> MachineCode | None:
    expected, body = content[:_N_DIGEST], content[_N_DIGEST:]
    if hashlib.sha256(body).digest() != expected:
        return None
    head, _, machine_code = body.partition(b"\n")
    told = json.loads(head)
    return MachineCode(told["symbol"], told["result"], tuple(told["externals"]), machine_code)


def _is_ours(found: os.stat_result) -> bool:
    """Whether only those can write to it who could change the program itself."""
    trusted = {os.geteuid(), 0, _package_owner()}
    return found.st_uid in trusted and not stat.S_IMODE(found.st_mode) & _WRITEABLE_BY_OTHERS


@cache
def _package_owner() -> int:
    try:
        return Path(__file__).stat().st_uid
    except OSError:  # in an archive
        return 0


def _folders() -> Iterator[Path]:
    """Folders for machine code, in the order in which they are tried."""
    if not hasattr(os, "geteuid"):  # no owners as above
        return
    # Several installations may share all but the one beside the package.
    name = f"{_FOLDER}-{hashlib.sha256(str(_PACKAGE).encode()).hexdigest()[:16]}"
    if given := os.environ.get(_FOLDER_VARIABLE):
        yield Path(given) / name
        return
    if _PACKAGE.is_dir():
        yield _PACKAGE / "__pycache__" / _FOLDER
    with suppress(RuntimeError):  # a user without a home
        yield _users_cache() / name


def _users_cache() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    given = os.environ.get("XDG_CACHE_HOME", "")
    return Path(given) if os.path.isabs(given) else Path.home() / ".cache"  # noqa: PTH117 - text


@cache
def _machine() -> str:
    """What decides, besides the kernel, which machine code is made of it."""
    import llvmlite.binding as llvm  # noqa: PLC0415 - only when a kernel is called

    switches = {name: value for name, value in os.environ.items() if name.startswith("NUMBA_")}
    switches.pop(_FOLDER_VARIABLE, None)
    return repr((
        _FORMAT,
        llvm.get_process_triple(),
        llvm.get_host_cpu_name(),
        llvm.get_host_cpu_features().flatten(),
        platform.python_implementation(),
        sys.version_info,
        [version(name) for name in _LIBRARIES],
        sorted(switches.items()),
    ))  # fmt: skip


def digest(kernel: "CompiledKernel") -> bytes:
    """What a kernel is, in 32 bytes: its code, what it calls, and the constants it was given.

    Numba takes the globals of a function for constants and copies in what it calls, so all of
    this is in the machine code, and a change of any of it makes it another kernel.
    """
    parts: list[str] = []
    _add(kernel, parts, {})
    return hashlib.sha256("\0".join(parts).encode()).digest()


def _add(kernel: "CompiledKernel", parts: list[str], known: dict[int, int]) -> None:
    """What a kernel is made of; one that was met before is named by its number."""
    if id(kernel) in known:
        parts.append(f"kernel {known[id(kernel)]}")
        return
    known[id(kernel)] = len(known)
    function = kernel.py_func
    parts += (
        f"{function.__module__}.{function.__qualname__}",
        repr(sorted(kernel.options.items())),
    )
    parts += (repr(function.__defaults__), repr(function.__kwdefaults__))
    names: dict[str, None] = {}
    _add_code(function.__code__, parts, names)
    cells = function.__closure__ or ()
    found = {name: function.__globals__[name] for name in names if name in function.__globals__}
    found |= dict(
        zip(function.__code__.co_freevars, (cell.cell_contents for cell in cells), strict=True)
    )
    for name, value in found.items():
        parts.append(name)
        _add_value(value, names, parts, known)


def _add_code(code: CodeType, parts: list[str], names: dict[str, None]) -> None:
    """Instructions and constants; `names` is filled with all that is looked up somewhere else."""
    parts += (code.co_code.hex(), repr((code.co_argcount, code.co_varnames, code.co_names)))
    names.update(dict.fromkeys(code.co_names))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _add_code(constant, parts, names)
        else:
            parts.append(_described(constant))


def _add_value(value: Any, names: dict[str, None], parts: list[str], known: dict[int, int]) -> None:
    if hasattr(value, "py_func") and hasattr(value, "options"):
        _add(value, parts, known)
    elif isinstance(value, ModuleType):
        parts.append(value.__name__)
        for name in names:
            inside = getattr(value, name, None)
            if inside is not None and not isinstance(inside, ModuleType):
                parts.append(name)
                _add_value(inside, {}, parts, known)
    else:
        parts.append(_described(value))


def _described(value: Any) -> str:
    """A constant by its value, anything else by its name: libraries have a version of their own."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, frozenset):
        return repr(sorted(map(_described, value)))
    if callable(value):
        name = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value))}"
        return f"{name} {getattr(value, '_fields', '')}"
    return repr(value)
