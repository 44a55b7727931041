"""Exact solvers of our own for what the paper hands to black boxes: `tda-l2` and `tda-linf`.

Both give non-negative integers with a given sum at the least distance from noisy ones.

`tda-l2` is the exact integer projection in Euclidean distance, not a rounded real one. With t the
least integer such that sum max(0, x - t) does not exceed the total, every optimal vector is
max(0, x - t) plus 1 at as many elements with x >= t as are missing: their next unit costs 1 - 2t
each, any other more, and no unit already given costs more than that. Which ones get the 1 is drawn
uniformly. `docs/proofs/intopt.md` has the proof, the tests an exhaustive search.

`tda-linf` is what a general integer solver would return for the Chebyshev distance: of the many
optimal vectors an arbitrary vertex, without IntOpt's care for false positives. With alpha the least
distance, every element may lie anywhere in max(0, x - alpha)..x + alpha; at a vertex all but at
most one lie at an end. Here the elements start at their lower ends and are raised to their upper
ends in uniformly random order until the sum is reached. A solver's own choice depends on its
pivoting rules; a random order favours no position and no value.

Privacy:
    Post-processing of noisy values: needs no budget. It must never be given true counts.
"""

import numpy as np

from inftda.kernels import inlined_kernel, kernel
from inftda.lab.baselines.positives import write_positive
from inftda.optimize.segments import Seeds, Survivors
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

_KEYS = 1 << 62


@kernel
def optimize_l2(x: Vector, offsets: Vector, total: Vector, seed: Seeds, out: Survivors) -> int:
    """The nearest integers in Euclidean distance, for many parents at once."""
    return _optimize(x, offsets, total, seed, out, True)


@kernel
def optimize_linf(x: Vector, offsets: Vector, total: Vector, seed: Seeds, out: Survivors) -> int:
    """Any of the nearest integers in Chebyshev distance, as a black box would give."""
    return _optimize(x, offsets, total, seed, out, False)


@inlined_kernel
def _optimize(  # noqa: PLR0913, PLR0917 - compiled code takes plain arrays
    x: Vector,
    offsets: Vector,
    total: Vector,
    seed: Seeds,
    out: Survivors,
    euclidean: bool,  # noqa: FBT001 - compiled code has no keyword-only arguments
) -> int:
    for i in range(total.size):
        if offsets[i + 1] > offsets[i]:
            status = nearest_segment(x, offsets[i], offsets[i + 1], total[i], seed[i], euclidean)
            if status != OK:
                return status
    write_positive(x, offsets, total, out)
    return OK


@kernel
def nearest_segment(  # noqa: PLR0913, PLR0917 - compiled code takes plain values
    x: Vector,
    start: int,
    stop: int,
    total: int,
    seed: np.uint64,
    euclidean: bool,  # noqa: FBT001 - compiled code has no keyword-only arguments
) -> int:
    """The nearest integers of a part of a vector, in place.

    Args:
        x: int64, contiguous; x[start:stop] is overwritten, undefined unless the status is 0.
        start: int64.
        stop: int64.
        total: int64, what the result sums to.
        seed: uint64, a fresh uniform word for this vector.
        euclidean: whether the Euclidean distance is meant, and not Chebyshev's.

    Returns:
        Status: OK, EMPTY, NEGATIVE or TOO_LARGE of `selection`.
    """
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
        elif euclidean:
            _project(x, start, stop, total, sum_of_x, seed)
        else:
            _choose_vertex(x, start, stop, total, sum_of_x, smallest, seed)
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
