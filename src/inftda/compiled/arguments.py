"""What kernels are called with: kinds of arguments, and how compiled code takes them.

Compiled code takes every number of an array's description as an argument of its own, those of
tuples one after the other. This is how numba calls the functions it compiles; whether it still
does is checked when a kernel is compiled ([building](building.py)).
"""

import ctypes
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

#: What compiled code takes a number as, by the name of its numpy type.
NUMBERS: Final[dict[str, Any]] = {
    "bool": ctypes.c_bool,
    "int8": ctypes.c_int8,
    "int16": ctypes.c_int16,
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
    "uint8": ctypes.c_uint8,
    "uint16": ctypes.c_uint16,
    "uint32": ctypes.c_uint32,
    "uint64": ctypes.c_uint64,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
}
_POINTER: Final = ctypes.c_void_p
_BYTE: Final = ctypes.c_char
_INT64: Final = np.iinfo(np.int64)
#: Names of number types by their code, which is looked up faster.
_NAMES: Final = {code: np.dtype(code).name for code in np.typecodes["AllInteger"] + "?fd"}


class UnknownKindError(Exception):
    """An argument that only numba knows how to pass."""


class Number(NamedTuple):
    """A number of a numpy type."""

    dtype: str

    @property
    def passed_as(self) -> tuple[Any, ...]:
        """Types of the arguments of compiled code."""
        return (NUMBERS[self.dtype],)


class Array(NamedTuple):
    """An array: element type, dimensions, order, and whether it may be written to."""

    dtype: str
    ndim: int
    order: str
    is_writeable: bool
    is_aligned: bool

    @property
    def passed_as(self) -> tuple[Any, ...]:
        """Two owners, elements, bytes of one, the data, all lengths, all strides."""
        size = ctypes.c_int64
        return (_POINTER, _POINTER, size, size, _POINTER, *(size for _ in range(2 * self.ndim)))


class Opening(NamedTuple):
    """The next arguments are a tuple of this name, with fields of these names or without."""

    name: str
    fields: tuple[str, ...]
    length: int

    @property
    def passed_as(self) -> tuple[Any, ...]:
        """Only what is in it is passed."""
        return ()


Kind = Number | Array | Opening


def flattened(arguments: Sequence[Any]) -> tuple[tuple[Kind, ...], list[Any]]:
    """Kinds of arguments, and the values that compiled code takes for them.

    Raises:
        UnknownKindError: only numba knows how to pass one of them.
    """
    kinds: list[Kind] = []
    values: list[Any] = []
    for argument in arguments:
        _add(argument, kinds, values)
    return tuple(kinds), values


def _add(argument: Any, kinds: list[Kind], values: list[Any]) -> None:
    if type(argument) is np.ndarray:
        kinds.append(_array(argument))
        values += (None, None, argument.size, argument.itemsize, _address(argument))
        values += argument.shape
        values += argument.strides
    elif isinstance(argument, tuple):
        kinds.append(_opening(argument))
        for item in argument:
            _add(item, kinds, values)
    else:
        kinds.append(Number(_number_type(argument)))
        values.append(argument if type(argument) in {int, float, bool} else argument.item())


#: Kinds of arrays by what is read off an array fastest.
_ARRAYS: Final[dict[tuple[Any, int, int], Array]] = {}


def _array(array: np.ndarray[Any, Any]) -> Array:
    seen = array.dtype, array.ndim, array.flags.num
    kind = _ARRAYS.get(seen)
    if kind is None:
        kind = _ARRAYS[seen] = _array_of(array)
    return kind


def _array_of(array: np.ndarray[Any, Any]) -> Array:
    dtype, flags = array.dtype, array.flags
    name = _NAMES.get(dtype.char)
    if name is None or not dtype.isnative or array.ndim == 0:
        raise UnknownKindError
    order = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
    return Array(name, array.ndim, order, flags.writeable, flags.aligned)


def _address(array: np.ndarray[Any, Any]) -> int:
    """Where the data of an array are."""
    try:
        # A fifth of the time that numpy's own description takes, which works for all arrays.
        return ctypes.addressof(_BYTE.from_buffer(array))  # type: ignore[arg-type] # it is one
    except (TypeError, ValueError):  # read-only, with gaps, or empty
        return int(array.__array_interface__["data"][0])


def _opening(argument: tuple[Any, ...]) -> Opening:
    fields = getattr(argument, "_fields", ())
    if type(argument) is not tuple and not fields:
        raise UnknownKindError
    kind = type(argument)
    return Opening(f"{kind.__module__}.{kind.__qualname__}", tuple(fields), len(argument))


def _number_type(number: Any) -> str:
    kind = type(number)
    if kind is bool:
        return "bool"
    if kind is int and _INT64.min <= number <= _INT64.max:
        return "int64"
    if kind is float:
        return "float64"
    name = _NAMES.get(number.dtype.char) if isinstance(number, np.generic) else None
    if name is None:
        raise UnknownKindError
    return name
