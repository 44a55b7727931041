"""How kernels are compiled: once, cached, without the interpreter lock.

Numba keeps the machine code beside the package, or in the user's cache folder when that
cannot be written to; where neither can, every process compiles for itself. It compiles again
when a kernel's own file changes, but not when a kernel it calls in another file does: after
editing one, delete `*.nbi` below `src`.

Kernels take plain arrays, validate nothing and return status codes.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from numba import njit

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

#: Integer division by zero is not checked, so it must not happen.
OPTIONS: Final[dict[str, Any]] = {"nogil": True, "error_model": "numpy"}


def _known(options: dict[str, Any]) -> dict[str, Any]:
    """Those of numba's private options that the installed version still has."""
    target = getattr(njit(lambda: None), "targetdescr", None)
    known = getattr(target, "options", None)
    return {name: value for name, value in options.items() if hasattr(known, name)}


#: Numba's own option for code that allocates nothing. Without it every array that is handed
#: from one kernel to another is reference-counted, which is atomic: as slow as optimising a
#: short vector.
NO_REFERENCE_COUNTS: Final[dict[str, Any]] = _known({"_nrt": False})


def _compiled(function: Kernel, **options: Any) -> Kernel:
    try:
        compiled = njit(cache=True, **OPTIONS, **options)(function)
    except RuntimeError:  # there is no folder that the machine code could be kept in
        compiled = njit(**OPTIONS, **options)(function)
    return cast("Kernel", compiled)


def kernel(function: Kernel) -> Kernel:
    """Compile a function that allocates nothing."""
    return _compiled(function, **NO_REFERENCE_COUNTS)


def inlined_kernel(function: Kernel) -> Kernel:
    """Compile a function to be copied into every caller: for those shorter than a call."""
    return _compiled(function, **NO_REFERENCE_COUNTS, forceinline=True)


def allocating_kernel(function: Kernel) -> Kernel:
    """Compile a function that makes arrays."""
    return _compiled(function)
