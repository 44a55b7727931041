"""IntOpt: the Chebyshev-nearest non-negative integers with a given sum (paper, section 4.2).

Closed form of the paper's Algorithms 2 and 3, without their rounds and without sorting.
Given integers x_1..x_b and a total c:

1. D = c - sum x, lift = ceil(D / b), drop = max(|lift|, -min x).
   If sum max(0, x - drop) > c, take the least drop with sum max(0, x - drop) <= c instead,
   and lift = 1 - drop.
2. Every element ends between its floor max(0, x - drop) and its ceiling max(0, x + lift).
   What separates them is its gap, min(x, drop) + lift for x > -lift and 0 otherwise.
3. Ascending order: raise elements from floor to ceiling, largest first, until the sum is c.
   Descending order: lower them from ceiling to floor, largest first, until the sum is c.
   So there is a threshold: elements above it move by their whole gap, those below it not at
   all. It is found by bisection: the gaps above it must not exceed what is to be moved.
4. Elements equal to the threshold share what is left: a random subset moves by the whole
   gap, one further element by the remainder. The paper leaves open which; all choices are
   equally likely, because a choice by position would favour areas by their code.

Proof: docs/proofs/intopt.md. Slow twin: reference.py.

Privacy:
    Post-processing of noisy values: needs no budget. It must never be given true counts.
"""

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from inftda.kernels import inlined_kernel, kernel
from inftda.optimize.inputs import as_total, as_vector, check_order, check_status, draw_seed
from inftda.optimize.selection import (
    EMPTY,
    NEGATIVE,
    OK,
    TOO_LARGE,
    Index,
    Vector,
    ceil_div,
    describe,
    find_threshold,
    gaps_above,
    gather,
    is_too_large,
    random_below,
    random_word,
    water_level,
)

if TYPE_CHECKING:
    from inftda.noise.entropy import RandomSource


def intopt(
    x: ArrayLike,
    total: int,
    *,
    order: Literal["ascending", "descending"] = "ascending",
    source: "RandomSource | None" = None,
) -> Vector:
    """Non-negative integers that sum to `total`, at the least Chebyshev distance from x.

    Among the optimal vectors it picks the one that lowers small elements first, which are
    the likely false positives, or large ones first with `order="descending"`, which keeps
    more small elements and so has fewer false negatives.

    Args:
        x: integers, any sign.
        total: what the result sums to, at least 0.
        order: which elements are lowered first.
        source: random bits to break ties with; secure ones if not given.

    Returns:
        An int64 array as long as x.

    Raises:
        OptimizeError: if x is not a vector of integers, the total is negative or cannot be
            reached, or the values are so large that sums could overflow.

    Example:
        >>> intopt([12, -3, 2, 0], 10)
        array([10,  0,  0,  0])
        >>> intopt([12, -3, 2, 1], 12, order="descending")
        array([9, 0, 2, 1])
    """
    vector = as_vector(x)
    amount = as_total(total)
    check_order(order)
    status = intopt_into(vector, amount, draw_seed(source), order == "descending", vector)
    check_status(status, len(vector), amount)
    return vector


def intopt_into(
    x: Vector,
    total: int,
    seed: np.uint64,
    descending: bool,  # noqa: FBT001 - as the kernel it calls
    out: Vector,
) -> int:
    """IntOpt of one vector.

    Args:
        x: int64[b], contiguous; unchanged unless it is `out` itself.
        total: int64, what the result sums to.
        seed: uint64, a fresh uniform word for this vector.
        descending: whether large elements are lowered first.
        out: int64[b], written; may be x itself. Undefined unless the status is 0.

    Returns:
        Status: OK, EMPTY, NEGATIVE or TOO_LARGE of `selection`.
    """
    index, value = np.empty(x.size, np.int32), np.empty(x.size, np.int64)
    out[:] = x
    n = find_positive(out, total, seed, descending, index, value)
    if n < 0:
        return -n
    out[:] = 0
    out[index[:n]] = value[:n]
    return OK


@kernel
def find_positive(  # noqa: PLR0913, PLR0917 - compiled code takes plain values
    x: Vector,
    total: int,
    seed: np.uint64,
    descending: bool,  # noqa: FBT001 - compiled code has no keyword-only arguments
    index: Index,
    value: Vector,
) -> int:
    """IntOpt of one vector, of which only the positive elements are written.

    Args:
        x: int64[b], contiguous; overwritten.
        total: int64, what the result sums to.
        seed: uint64, a fresh uniform word for this vector.
        descending: whether large elements are lowered first.
        index: int32[b or more], written: indices of the positive elements, ascending.
        value: int64[b or more], written: their values.

    Returns:
        The number of positive elements, or minus the status: EMPTY, NEGATIVE, TOO_LARGE.
    """
    if total <= 0:
        return 0 if total == 0 else -NEGATIVE
    if x.size == 0:
        return -EMPTY
    if x.size == 1:
        x[0] = total
        return gather(x, 0, index, value)
    sum_of_x, smallest, largest = describe(x)
    if is_too_large(x.size, smallest, largest, total):
        return -TOO_LARGE
    if x.size == 2:
        x[0] = _share_of_first(x[0] - x[1], total, seed, descending)
        x[1] = total - x[0]
        return gather(x, 0, index, value)
    # Step 1: how far elements may move
    lift = ceil_div(total - sum_of_x, x.size)
    least_drop = max(lift, -lift, -smallest)
    drop, sum_of_floors = water_level(x, total, least_drop)
    if drop > least_drop:
        lift = 1 - drop
    # Steps 2 and 3: the threshold
    to_move = total - sum_of_floors
    if descending:
        to_move = gaps_above(x, 0, -lift, lift, drop)[1] - to_move
    lower, upper, moved = find_threshold(x, 0, largest, lift, drop, to_move)
    # Elements that are not gathered end at 0; from here on x holds the indices of ties.
    if descending:
        n = gather(x, -lift, index, value)
        n_ties = _shift(value[:n], lower, upper, -drop, lift, x)
    else:
        n = gather(x, min(lower, drop), index, value)
        n_ties = _shift(value[:n], lower, upper, lift, -drop, x)
    # Step 4: ties
    gap, sign = min(upper, drop) + lift, -1 if descending else 1
    _share(value, x, n_ties, gap, to_move - moved, sign, seed)
    return _keep_positive(index, value, n)


@inlined_kernel
def _share_of_first(
    difference: int,
    total: int,
    seed: np.uint64,
    descending: bool,  # noqa: FBT001 - compiled code has no keyword-only arguments
) -> int:
    """IntOpt of two elements: keep their difference as far as the total and 0 allow."""
    lesser = max(0, (total - abs(difference) + (1 if descending else 0)) >> 1)
    if difference == 0:
        difference = random_below(random_word(seed, 0), 2)
    return total - lesser if difference > 0 else lesser


@inlined_kernel
def _shift(  # noqa: PLR0913, PLR0917 - compiled code takes plain values
    x: Vector, lower: int, upper: int, above: int, below: int, ties: Vector
) -> int:
    """Add `above` to the elements larger than `upper` and `below` to the others, down to 0.

    Writes the indices of the elements in the bracket (lower, upper], and returns their number.
    """
    n_ties = 0
    for i in range(x.size):
        value = x[i]
        ties[n_ties] = i
        n_ties += lower < value <= upper
        x[i] = max(0, value + (above if value > upper else below))
    return n_ties


@inlined_kernel
def _share(  # noqa: PLR0913, PLR0917 - compiled code takes plain values
    x: Vector, ties: Vector, n_ties: int, gap: int, rest: int, sign: int, seed: np.uint64
) -> None:
    """Move ties by up to their gap, in random order (Fisher-Yates), until `rest` is used up."""
    while rest > 0:
        chosen = random_below(random_word(seed, n_ties), n_ties)
        part = min(rest, gap)
        x[ties[chosen]] += sign * part
        rest -= part
        n_ties -= 1
        ties[chosen] = ties[n_ties]


@inlined_kernel
def _keep_positive(index: Index, value: Vector, n: int) -> int:
    """Remove the zeros among the first n elements; return how many are left."""
    kept = 0
    for i in range(n):
        amount = value[i]
        index[kept] = index[i]
        value[kept] = amount
        kept += amount > 0
    return kept
