"""Functions that are compiled when they are first called, and how they are called."""

import ctypes
import os
from collections.abc import Callable
from functools import partial, update_wrapper
from threading import RLock
from typing import Any, NamedTuple

from inftda.compiled import store
from inftda.compiled.arguments import NUMBERS, Kind, UnknownKindError, flattened
from inftda.compiled.machine_code import MachineCode, entry_point
from inftda.compiled.store import digest

#: Kernels are loaded and compiled one at a time.
_LOCK = RLock()
#: What numba's calls end with if all went well: a value, or none.
_GOOD_STATUS = (0, -2)


class _Entry(NamedTuple):
    """Compiled code for arguments of some kinds; `result` is the type of what it gives back."""

    call: Callable[..., int]
    result: Any


class CompiledKernel:
    """A function that is compiled for each combination of kinds of arguments it is called with.

    Args:
        function: what to compile; its globals are constants.
        options: of numba, besides those all kernels have.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self.options = options
        self._entries: dict[tuple[Kind, ...], _Entry | None] = {}
        self._inner: Any = None
        self._outer: Any = None

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function."""
        return self.prepared(*arguments)()

    def prepared(self, *arguments: Any) -> Callable[[], Any]:
        """A call that can be made again and again; arrays must not be given other memory."""
        try:
            kinds, values = flattened(arguments)
        except UnknownKindError:
            return partial(self._by_numba(), *arguments)
        try:
            entry = self._entries[kinds]
        except KeyError:
            entry = self._found(kinds, arguments)
        if entry is None:
            return partial(self._by_numba(), *arguments)
        return partial(self._run, entry, values, arguments)

    def _run(self, entry: _Entry, values: list[Any], _held: tuple[Any, ...]) -> Any:
        """Call compiled code; `_held` is what the values point into."""
        call, result_type = entry
        result = ctypes.c_void_p() if result_type is None else result_type()
        status = call(ctypes.byref(result), ctypes.byref(ctypes.c_void_p()), *values)
        if status not in _GOOD_STATUS:
            raise RuntimeError(f"{self.py_func.__name__} ended with status {status}")
        return None if result_type is None else result.value

    def __reduce__(self) -> str:
        """Sent to another process by its name."""
        return str(self.py_func.__qualname__)

    @property
    def dispatcher(self) -> Any:
        """The same function as numba has it, for kernels that call this one."""
        if self._inner is None:
            from inftda.compiled.building import inner  # noqa: PLC0415 - numba

            self._inner = inner(self.py_func, self.options)
        return self._inner

    @property
    def _numba_type_(self) -> Any:
        """Asked for by numba when it compiles a caller."""
        from inftda.compiled.building import type_of  # noqa: PLC0415 - numba

        return type_of(self.dispatcher)

    def _by_numba(self) -> Any:
        if self._outer is None:
            with _LOCK:
                self._outer = self._outer or by_numba(self.py_func, **self.options)
        return self._outer

    def _found(self, kinds: tuple[Kind, ...], arguments: tuple[Any, ...]) -> _Entry | None:
        """Compiled code for these kinds: kept from before, or made now; None if only numba can."""
        with _LOCK:
            if kinds not in self._entries:
                key = store.key(digest(self), kinds)
                code = store.load(key)
                if code is None:
                    from inftda.compiled.building import build  # noqa: PLC0415 - numba

                    code = build(self.dispatcher, kinds, arguments)
                    if code is not None:
                        store.save(key, code)
                self._entries[kinds] = None if code is None else _entry(code, kinds)
            return self._entries[kinds]


def _entry(code: MachineCode, kinds: tuple[Kind, ...]) -> _Entry:
    passed = [of for kind in kinds for of in kind.passed_as]
    prototype = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *passed)
    result = None if code.result is None else NUMBERS[code.result]
    return _Entry(prototype(entry_point(code)), result)


def by_numba(function: Callable[..., Any], **options: Any) -> Any:
    """A function that numba compiles, keeps and calls itself."""
    from inftda.compiled.building import whole  # noqa: PLC0415 - numba

    return whole(function, options)


def is_disabled() -> bool:
    """Whether nothing is to be compiled, which is numba's own switch for looking for bugs."""
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in {"", "0"}
