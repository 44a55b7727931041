"""How kernels are compiled: once, cached, without the interpreter lock.

Numba keeps the machine code beside the package, or in the user's cache folder when that
cannot be written to. Kernels take plain arrays, validate nothing and return status codes.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def kernel(function: Kernel) -> Kernel:
    """Compile a function; integer division by zero is not checked, so it must not happen."""
    return cast("Kernel", njit(cache=True, nogil=True, error_model="numpy")(function))


def inlined_kernel(function: Kernel) -> Kernel:
    """Compile a function to be copied into every caller: for those shorter than a call."""
    compiled = njit(cache=True, nogil=True, error_model="numpy", forceinline=True)(function)
    return cast("Kernel", compiled)
