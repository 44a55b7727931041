"""Some Chebyshev-nearest non-negative integers with a given sum: mechanism `tda-linf`.

What a general integer solver would return, as the paper's baseline: of the many optimal
vectors an arbitrary vertex, without IntOpt's care for false positives. With alpha the least
distance, every element may lie anywhere in max(0, x - alpha)..x + alpha; at a vertex all
but at most one lie at an end. Here the elements start at their lower ends and are raised
to their upper ends in uniformly random order until the sum is reached. A solver's own
choice depends on its pivoting rules; a random order favours no position and no value.

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
    ceil_div,
    describe,
    is_too_large,
    random_word,
    water_level,
)

_KEYS = 1 << 62


@inlined_kernel
def linf_kernel(x: Vector, total: int, seed: np.uint64, out: Vector) -> int:
    """A random vertex of the Chebyshev-nearest vectors.

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
    return linf_segment(out, 0, out.size, total, seed)


@kernel
def linf_segment(x: Vector, start: int, stop: int, total: int, seed: np.uint64) -> int:
    """A random vertex for x[start:stop], in place; arguments as `linf_kernel`."""
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
            _choose_vertex(x, start, stop, total, sum_of_x, smallest, seed)
    return status


@inlined_kernel
def _choose_vertex(  # noqa: PLR0913, PLR0917 - compiled code takes plain values
    x: Vector, start: int, stop: int, total: int, sum_of_x: int, smallest: int, seed: np.uint64
) -> None:
    """A random vertex for two or more elements and a positive total."""
    # Enough to raise the sum to the total, to lift every element to 0, and, by `water_level`,
    # to lower the sum to the total.
    alpha = max(0, ceil_div(total - sum_of_x, stop - start), -smallest)
    alpha, floors = water_level(x[start:stop], total, alpha)
    all_gaps = sum_of_x + (stop - start) * alpha - floors
    room = total - floors
    # Random order without storing it: element i has a random key, computed anew in every
    # pass, and those with keys above a threshold are raised. Keys are uniform whatever x
    # is, so the threshold is nearly proportional to what is to be raised.
    lower, lower_gaps, lower_count = -1, all_gaps, stop - start
    upper, upper_gaps, upper_count = _KEYS - 1, 0, 0
    passes = 0
    while upper - lower > 1 and lower_count - upper_count > 1 and upper_gaps < room:
        passes += 1
        middle = (lower + upper) >> 1
        if passes % 3 != 0:  # now and then halve: never more than 3 * 62 passes
            ratio = (room - upper_gaps) / (lower_gaps - upper_gaps)
            middle = upper - int((upper - lower) * ratio)
            middle = min(upper - 1, max(lower + 1, middle))
        gaps, count = _gaps_above(x, start, stop, alpha, seed, middle)
        if gaps <= room:
            upper, upper_gaps, upper_count = middle, gaps, count
        else:
            lower, lower_gaps, lower_count = middle, gaps, count
    rest = room - upper_gaps
    for i in range(np.uint64(start), np.uint64(stop)):
        value = x[i]
        floor = max(0, value - alpha)
        key = _key(seed, i)
        if key > upper:
            x[i] = value + alpha
        elif key > lower:  # one element, or several if keys should ever be equal
            raised = min(value + alpha - floor, rest)
            x[i] = floor + raised
            rest -= raised
        else:
            x[i] = floor


@inlined_kernel
def _key(seed: np.uint64, i: int) -> int:
    """A pseudo-random key: elements are raised in the order of their keys."""
    return int(np.int64(random_word(seed, i) >> np.uint64(2)))


@inlined_kernel
def _gaps_above(  # noqa: PLR0913, PLR0917 - compiled code takes plain values
    x: Vector, start: int, stop: int, alpha: int, seed: np.uint64, level: int
) -> tuple[int, int]:
    """How much the elements with keys above `level` can be raised in all, and their number."""
    gaps = 0
    count = 0
    for i in range(np.uint64(start), np.uint64(stop)):
        if _key(seed, i) > level:
            gaps += min(x[i], alpha) + alpha
            count += 1
    return gaps, count
