"""Compiling by numba. The only module that loads it."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from numba import njit, typeof, types

from inftda.compiled.arguments import NUMBERS, Kind
from inftda.compiled.machine_code import MachineCode, is_of_the_c_library

#: Integer division by zero is not checked, so it must not happen.
OPTIONS: Final[dict[str, Any]] = {"nogil": True, "error_model": "numpy"}
#: Ways to call a function from Python and from C, which kernels called by address do not need.
NO_WRAPPERS: Final[dict[str, Any]] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def _known(options: dict[str, Any]) -> dict[str, Any]:
    """Those of numba's private options that the installed version still has."""
    target = getattr(njit(lambda: None), "targetdescr", None)
    known = getattr(target, "options", None)
    return {name: value for name, value in options.items() if hasattr(known, name)}


#: Numba's own option for code that allocates nothing. Without it every array that is handed
#: from one kernel to another is reference-counted, which is atomic: as slow as optimising a
#: short vector.
NO_REFERENCE_COUNTS: Final[dict[str, Any]] = _known({"_nrt": False})


def inner(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """A function for other kernels to call, and to make machine code of."""
    return njit(**OPTIONS, **NO_REFERENCE_COUNTS, **_known(NO_WRAPPERS), **options)(function)


def whole(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """A function to call from Python, kept by numba if there is a folder for it."""
    try:
        return njit(cache=True, **OPTIONS, **options)(function)
    except RuntimeError:  # there is no folder that the machine code could be kept in
        return njit(**OPTIONS, **options)(function)


def type_of(dispatcher: Any) -> Any:
    """The type of a function that is called by others."""
    return types.Dispatcher(dispatcher)


def build(dispatcher: Any, kinds: Sequence[Kind], arguments: tuple[Any, ...]) -> MachineCode | None:
    """Compile a function for these arguments; None if numba alone knows how to call the outcome.

    What numba says about itself is looked up in places that may change with its version. Whatever
    is not as expected there is left to numba.
    """
    signature = tuple(map(typeof, arguments))
    dispatcher.compile(signature)
    result = dispatcher.overloads[signature]
    returned = result.signature.return_type
    name = None if returned == types.none else str(returned)
    try:
        symbol = result.fndesc.llvm_func_name
        module = result.library._final_module  # noqa: SLF001 - see above
        machine = result.library._codegen._tm  # noqa: SLF001 - see above
        taken = [_passed_as(argument) for argument in module.get_function(symbol).arguments]
        externals = tuple(
            function.name
            for function in module.functions
            if function.is_declaration and not function.name.startswith("llvm.")
        )
        content = bytes(machine.emit_object(module))
    except (AttributeError, NameError):
        return None
    is_as_expected = taken == [_POINTER, _POINTER, *_expected(kinds)]
    is_simple = name is None or name in NUMBERS
    if is_as_expected and is_simple and all(map(is_of_the_c_library, externals)):
        return MachineCode(symbol, name, externals, content)
    return None


_POINTER: Final = "pointer"
#: What LLVM calls the types of numbers.
_LLVM_NAMES: Final = {
    "bool": "i8", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "i8", "uint16": "i16", "uint32": "i32", "uint64": "i64",
    "float32": "float", "float64": "double",
}  # fmt: skip
_C_NAMES: Final = {of: _LLVM_NAMES[name] for name, of in NUMBERS.items()}


def _expected(kinds: Sequence[Kind]) -> list[str]:
    return [_C_NAMES.get(of, _POINTER) for kind in kinds for of in kind.passed_as]


def _passed_as(argument: Any) -> str:
    name = str(argument.type)
    return _POINTER if name == "ptr" or name.endswith("*") else name
