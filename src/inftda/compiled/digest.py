"""What a kernel is, in 32 bytes: its code, what it calls, and the constants it was given.

Numba takes the globals of a function for constants and copies in what it calls, so all of this
is in the machine code, and a change of any of it makes it another kernel.
"""

import hashlib
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from inftda.compiled.kernels import CompiledKernel


def digest(kernel: "CompiledKernel") -> bytes:
    """What tells a kernel from all others."""
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
