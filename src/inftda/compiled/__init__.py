"""How kernels are compiled: once, kept on disk, called without the interpreter lock.

Numba compiles a kernel the first time it is called with arguments of some kinds. The machine
code is kept ([store](store.py)) and found again by what was compiled and by whom, so later
processes call it without numba, which alone takes longer to load than everything else together.

Kernels take plain arrays, numbers and tuples of them, validate nothing and return a number or
nothing. What else they take or return works too, by numba itself, which then has to be loaded.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

from inftda.compiled.kernels import CompiledKernel, is_disabled

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def kernel(function: Kernel) -> Kernel:
    """Compile a function that allocates nothing."""
    return _compiled(function)


def inlined_kernel(function: Kernel) -> Kernel:
    """Compile a function to be copied into every caller: for those shorter than a call."""
    return _compiled(function, forceinline=True)


def prepared(function: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
    """A call of a kernel to be made again and again, for arrays that stay where they are.

    Looking at the arguments takes longer than a kernel that has little to do.
    """
    if isinstance(function, CompiledKernel):
        return function.prepared(*arguments)
    return partial(function, *arguments)


def _compiled(function: Kernel, **options: Any) -> Kernel:
    return function if is_disabled() else cast("Kernel", CompiledKernel(function, options))
