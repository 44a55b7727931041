"""Machine instructions that numba's language has no words for: eight elements at a time.

Loops over many elements become vector instructions by themselves. Picking elements out does
not, nor do sums over a handful, and IntOpt is mostly these: written out, it takes a fifth
less time. Each of these functions is LLVM code for any little-endian processor, without a
branch, and usable inside kernels only; their twins in plain Python are in
tests/unit/optimize/instruction_twins.py.

All of them read or write EIGHT elements, whatever these are: there must be so many.
"""

from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from inftda.compiled import inlined_kernel

EIGHT: Final = 8

#: For every set of bits of a byte their places, ascending, and zeros behind them.
_PLACES: Final = np.array(
    [([place for place in range(8) if bits >> place & 1] + [0] * 8)[:8] for bits in range(256)],
    np.int32,
).ravel()

_WORD: Final = ir.IntType(64)
_BYTE: Final = ir.IntType(EIGHT)
_SHORT_WORD: Final = ir.IntType(32)


def _instruction(function: Callable[..., Any]) -> Callable[..., Any]:
    return cast("Callable[..., Any]", intrinsic(function))


def _address(context: Any, builder: Any, array: Any, of: Any, at: Any) -> Any:
    """Address of eight elements of an array from `at` on."""
    element = context.get_data_type(of.dtype)
    data = context.make_array(of)(context, builder, array).data
    eight = ir.VectorType(element, EIGHT).as_pointer()
    return builder.bitcast(builder.gep(data, [at]), eight)


def _load(context: Any, builder: Any, array: Any, of: Any, at: Any) -> Any:
    eight = builder.load(_address(context, builder, array, of, at))
    eight.align = of.dtype.bitwidth // 8
    return eight


def _store(context: Any, builder: Any, eight: Any, array: Any, of: Any, at: Any) -> None:  # noqa: PLR0913, PLR0917 - numba hands all of these on
    stored = builder.store(eight, _address(context, builder, array, of, at))
    stored.align = of.dtype.bitwidth // 8


def _repeat(builder: Any, value: Any) -> Any:
    """Eight times the same."""
    nothing = ir.Constant(ir.VectorType(value.type, EIGHT), ir.Undefined)
    first = builder.insert_element(nothing, value, ir.Constant(_SHORT_WORD, 0))
    places = ir.Constant(ir.VectorType(_SHORT_WORD, EIGHT), [0] * EIGHT)
    return builder.shuffle_vector(first, nothing, places)


def _zeros() -> Any:
    return ir.Constant(ir.VectorType(_WORD, EIGHT), [0] * EIGHT)


def _sum(builder: Any, eight: Any) -> Any:
    name, signature = "llvm.vector.reduce.add.v8i64", ir.FunctionType(_WORD, [eight.type])
    function = builder.module.globals.get(name) or ir.Function(builder.module, signature, name)
    return builder.call(function, [eight])


def _bits(builder: Any, flags: Any) -> Any:
    """Eight flags as a number, the first in its lowest bit."""
    return builder.zext(builder.bitcast(flags, _BYTE), _WORD)


def _compare(context: Any, builder: Any, signature: Any, arguments: Any) -> tuple[Any, Any]:
    """Eight elements of an array from a place on, and which of them are larger than a level."""
    x, at, level = arguments
    eight = _load(context, builder, x, signature.args[0], at)
    return eight, builder.icmp_signed(">", eight, _repeat(builder, level))


@_instruction
def larger(_: Any, x: Any, at: Any, level: Any) -> Any:
    """Which of x[at : at + 8] are larger than `level`: a bit each, the first the lowest."""
    del at, level

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _bits(builder, _compare(context, builder, signature, arguments)[1])

    return types.uint64(x, types.uint64, types.int64), generate


@_instruction
def sum_larger(_: Any, x: Any, at: Any, level: Any) -> Any:
    """Number and sum of those of x[at : at + 8] that are larger than `level`."""
    del at, level

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        eight, flags = _compare(context, builder, signature, arguments)
        number = builder.ctpop(_bits(builder, flags))
        total = _sum(builder, builder.select(flags, eight, _zeros()))
        return context.make_tuple(builder, signature.return_type, [number, total])

    pair = types.Tuple((types.int64, types.int64))  # type: ignore[no-untyped-call] # numba's own
    return pair(x, types.uint64, types.int64), generate


@_instruction
def shift_apart(_: Any, x: Any, at: Any, lower: Any, upper: Any, up: Any, down: Any) -> Any:  # noqa: PLR0913, PLR0917 - an instruction has no keywords
    """Add `up` to those of x[at : at + 8] above `upper` and `down` to the others, but not below 0.

    Which of them were above `lower` but not above `upper` is returned: a bit each.
    """
    del at, lower, upper, up, down

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, at = arguments[:2]
        lower, upper, up, down = (_repeat(builder, value) for value in arguments[2:])
        eight = _load(context, builder, x, signature.args[0], at)
        is_above = builder.icmp_signed(">", eight, upper)
        moved = builder.add(eight, builder.select(is_above, up, down))
        is_positive = builder.icmp_signed(">", moved, _zeros())
        moved = builder.select(is_positive, moved, _zeros())
        _store(context, builder, moved, x, signature.args[0], at)
        is_between = builder.and_(
            builder.icmp_signed(">", eight, lower), builder.icmp_signed("<=", eight, upper)
        )
        return _bits(builder, is_between)

    return types.uint64(x, types.uint64, *[types.int64] * 4), generate


@_instruction
def _put_from(_: Any, table: Any, bits: Any, add: Any, out: Any, at: Any) -> Any:
    """Write the row of `table` for these bits, plus `add`, to out[at : at + 8]."""
    del bits, add, at

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        table, bits, add, out, at = arguments
        row = builder.mul(bits, ir.Constant(_WORD, EIGHT))
        places = _load(context, builder, table, signature.args[0], row)
        places = builder.add(places, _repeat(builder, add))
        _store(context, builder, places, out, signature.args[3], at)
        return builder.add(at, builder.ctpop(bits))

    return types.uint64(table, types.uint64, types.int32, out, types.uint64), generate


@inlined_kernel
def put_places(bits: np.uint64, add: np.int32, out: NDArray[np.int32], at: np.uint64) -> np.uint64:
    """Write which bits of a byte are set, plus `add`, to `out` from `at` on; return the end.

    Eight elements are written however few bits are set, those behind the end with `add`.
    """
    end: np.uint64 = _put_from(_PLACES, bits, add, out, at)
    return end


@_instruction
def bit_length(_: Any, number: Any) -> Any:
    """How many bits a number takes: its logarithm to base two, rounded down, plus one."""
    del number

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        zeros = builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 0))
        return builder.sub(ir.Constant(_WORD, 64), zeros)

    return types.int64(types.int64), generate
