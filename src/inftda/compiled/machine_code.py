"""Machine code of one function, in memory and loaded."""

import ctypes
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

from inftda.compiled.arguments import NUMBERS


class MachineCode(NamedTuple):
    """An object file with one function.

    Attributes:
        symbol: name of the function in it.
        result: name of the number it gives back; None if nothing.
        externals: functions of the C library that it calls.
        content: the object file.
    """

    symbol: str
    result: str | None
    externals: tuple[str, ...]
    content: bytes

    @property
    def is_callable(self) -> bool:
        """Whether all that it needs is here; the loader would end the process if not."""
        known = self.result is None or self.result in NUMBERS
        return known and all(map(is_of_the_c_library, self.externals))


def is_of_the_c_library(name: str) -> bool:
    """Whether a function is found in this process without loading anything for it.

    Those of Python are, too, but need the interpreter lock.
    """
    return not name.startswith(("Py", "_Py")) and hasattr(_process(), name)


def entry_point(code: MachineCode) -> int:
    """Load machine code for good; returns the address of its function."""
    import llvmlite.binding as llvm  # noqa: PLC0415 - only when a kernel is called

    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code.content))
    engine.finalize_object()
    _LOADED.append(engine)
    return int(engine.get_function_address(code.symbol))


#: What holds the machine code; it must not go while kernels may be called.
_LOADED: list[Any] = []


@cache
def _process() -> ctypes.CDLL:
    return ctypes.CDLL(None)


@cache
def _target() -> Any:
    import llvmlite.binding as llvm  # noqa: PLC0415 - only when a kernel is called

    with suppress(RuntimeError):  # newer versions need no such call, and refuse it
        llvm.initialize()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine()
