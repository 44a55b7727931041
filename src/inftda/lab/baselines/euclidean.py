"""The Euclidean-nearest non-negative integers with a given sum: mechanism `tda-l2`.

The exact integer projection, not a rounded real one. With t the least integer such that
sum max(0, x - t) does not exceed the total, every optimal vector is max(0, x - t) plus 1 at
as many elements with x >= t as are missing: their next unit costs 1 - 2t each, any other
more, and no unit already given costs more than that. Which ones get the 1 is drawn
uniformly. `docs/proofs/intopt.md` has the proof, the tests an exhaustive search.

Privacy:
    Post-processing of noisy values: needs no budget. It must never be given true counts.
"""

import numpy as np

from inftda.compiled import inlined_kernel, kernel
from inftda.optimize.selection import (
    EMPTY,
    NEGATIVE,
    OK,
    TOO_LARGE,
    Vector,
    above,
    ceil_div,
    describe,
    is_too_large,
    random_below,
    random_word,
    water_level,
)


@inlined_kernel
def euclidean_kernel(x: Vector, total: int, seed: np.uint64, out: Vector) -> int:
    """Euclidean projection of a whole vector.

    Args:
        x: int64[b], contiguous; left alone unless it is `out` itself.
        total: int64, what the result sums to.
        seed: uint64, a fresh uniform word for this vector.
        out: int64[b], written; may be x itself. Undefined unless the status is 0.

    Returns:
        Status: OK, EMPTY, NEGATIVE or TOO_LARGE of `selection`.
    """
    if x is not out:
        for i in range(x.size):
            out[i] = x[i]
    return euclidean_segment(out, 0, out.size, total, seed)


@kernel
def euclidean_segment(x: Vector, start: int, stop: int, total: int, seed: np.uint64) -> int:
    """Euclidean projection of x[start:stop] in place; arguments as `euclidean_kernel`."""
    size = stop - start
    status = OK
    if total < 0:
        status = NEGATIVE
    elif size < 1:
        status = OK if total == 0 else EMPTY
    elif size == 1 or total == 0:
        for i in range(np.uint64(start), np.uint64(stop)):
            x[i] = total
    else:
        sum_of_x, smallest, largest = describe(x[start:stop])
        if is_too_large(size, smallest, largest, total):
            status = TOO_LARGE
        else:
            _project(x, start, stop, total, sum_of_x, seed)
    return status


@inlined_kernel
def _project(  # noqa: PLR0913, PLR0917 - compiled code takes plain values
    x: Vector, start: int, stop: int, total: int, sum_of_x: int, seed: np.uint64
) -> None:
    """Euclidean projection of two or more elements for a positive total."""
    # Lowering all by the mean excess, rounded down, leaves too much: the least t is no lower.
    level = -ceil_div(total - sum_of_x, stop - start)
    level, floors = water_level(x[start:stop], total, level)
    needed = total - floors
    if needed == 0:
        for i in range(np.uint64(start), np.uint64(stop)):
            x[i] = max(0, x[i] - level)
        return
    left = above(x[start:stop], level - 1)[0]
    for i in range(np.uint64(start), np.uint64(stop)):
        value = x[i] - level
        if value < 0:
            x[i] = 0
        else:
            # Selection sampling: every set of `needed` elements is equally likely.
            is_chosen = random_below(random_word(seed, left), left) < needed
            needed -= 1 if is_chosen else 0
            x[i] = value + (1 if is_chosen else 0)
            left -= 1
