"""How kernels are compiled: once, cached, without the interpreter lock.

Numba keeps the machine code beside the package, or in the user's cache folder when that
cannot be written to. Kernels take plain arrays, validate nothing and return status codes.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from numba import njit

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

#: Integer division by zero is not checked, so it must not happen.
OPTIONS: Final[dict[str, Any]] = {"cache": True, "nogil": True, "error_model": "numpy"}

#: Numba's own option for code that allocates nothing. Without it every array that is handed
#: from one kernel to another is reference-counted, which is atomic: as slow as optimising a
#: short vector.
NO_REFERENCE_COUNTS: Final[dict[str, Any]] = {"_nrt": False}


def kernel(function: Kernel) -> Kernel:
    """Compile a function that allocates nothing."""
    return cast("Kernel", njit(**OPTIONS, **NO_REFERENCE_COUNTS)(function))


def inlined_kernel(function: Kernel) -> Kernel:
    """Compile a function to be copied into every caller: for those shorter than a call."""
    return cast("Kernel", njit(**OPTIONS, **NO_REFERENCE_COUNTS, forceinline=True)(function))


def allocating_kernel(function: Kernel) -> Kernel:
    """Compile a function that makes arrays."""
    return cast("Kernel", njit(**OPTIONS)(function))
