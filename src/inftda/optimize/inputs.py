"""Checks of what is passed to an optimiser from Python, and the meaning of its status codes.

Messages state sizes and totals only: elements may be noisy counts nobody needs to see.
"""

import operator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from inftda.errors import OptimizeError
from inftda.optimize.selection import EMPTY, NEGATIVE, OK, TOO_LARGE, Vector

if TYPE_CHECKING:
    from inftda.noise.entropy import RandomSource

_INT64_MAX = np.iinfo(np.int64).max


def as_vector(x: ArrayLike) -> Vector:
    """A fresh int64 copy of a vector of integers."""
    try:
        array = np.asarray(x)
    except (ValueError, OverflowError) as error:
        raise OptimizeError("x must be a vector of integers; pass a list or an array") from error
    if array.ndim != 1:
        raise OptimizeError(
            f"x must have one dimension, got {array.ndim}; pass one vector per call"
        )
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.dtype.kind == "O" and all(type(value) is int for value in array):
        raise OptimizeError("x must hold integers below 2^63 in size; scale them down")
    if array.dtype.kind not in "iu":
        raise OptimizeError(f"x must hold integers, got {array.dtype}; round it first")
    if array.dtype.kind == "u" and int(array.max()) > _INT64_MAX:
        raise OptimizeError("x must hold integers below 2^63 in size; scale them down")
    return np.array(array, dtype=np.int64, order="C")


def as_total(total: int) -> int:
    """A non-negative total that fits into 64 bits."""
    try:
        amount = operator.index(total)
    except TypeError as error:
        kind = type(total).__name__
        raise OptimizeError(f"total must be an integer, got a {kind}; round it first") from error
    if not 0 <= amount <= _INT64_MAX:
        raise OptimizeError(f"total must be in 0..2^63-1, got {amount}; pass a released count")
    return amount


def check_order(order: str) -> None:
    """Refuse an order that is neither ascending nor descending."""
    if order not in {"ascending", "descending"}:
        raise OptimizeError(f"order must be 'ascending' or 'descending', got {order!r}")


def draw_seed(source: "RandomSource | None") -> np.uint64:
    """One uniform word, from a secure source unless another is given."""
    if source is None:
        from inftda.noise.entropy import SecureSource  # noqa: PLC0415 - kernels do without it

        source = SecureSource()
    return np.uint64(source.stream().words(1)[0])


def check_status(status: int, size: int, total: int) -> None:
    """Raise the error for a kernel's status."""
    if status == OK:
        return
    messages = {
        EMPTY: f"x must have elements to share out total={total}, got none; pass all children",
        NEGATIVE: f"total must be at least 0, got {total}; pass a released count",
        TOO_LARGE: (
            f"total and {size} times the largest element of x must not exceed 2^61 in size, "
            f"or sums could overflow (total={total}); split the vector or scale it down"
        ),
    }
    raise OptimizeError(messages[status])
