"""Kernels shared by the optimisers: sums above a level, water levels, fair choices.

They sort nothing and allocate nothing. They validate nothing either and never wrap:
`is_too_large` is asked first, once per vector, and bounds every sum formed later
(docs/proofs/intopt.md, "No overflow").
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from inftda.kernels import inlined_kernel

Vector = NDArray[np.int64]
Index = NDArray[np.int32]

OK: Final = 0
"""Status: the result is written."""
EMPTY: Final = 1
"""Status: a positive total cannot be shared among no elements."""
NEGATIVE: Final = 2
"""Status: the total is negative."""
TOO_LARGE: Final = 3
"""Status: values or total are so large that a sum could overflow."""

LIMIT: Final = 1 << 61
"""Bound of totals, and of the largest absolute value times the number of elements."""


@inlined_kernel
def ceil_div(number: int, divisor: int) -> int:
    """Smallest integer not below number / divisor, for divisor > 0."""
    return -(-number // divisor)


@inlined_kernel
def describe(x: Vector) -> tuple[int, int, int]:
    """Sum (it may have wrapped), minimum and maximum of a vector that is not empty."""
    total = 0
    smallest = largest = x[0]
    for i in range(x.size):
        value = x[i]
        total += value
        smallest = min(smallest, value)
        largest = max(largest, value)
    return total, smallest, largest


@inlined_kernel
def is_too_large(size: int, smallest: int, largest: int, total: int) -> bool:
    """Whether a sum over `size` elements, or one with the total, could overflow."""
    bound = LIMIT // size
    return total > LIMIT or largest > bound or smallest < -bound


@inlined_kernel
def above(x: Vector, level: int) -> tuple[int, int]:
    """Number and sum of the elements larger than `level`."""
    count = mass = 0
    for i in range(x.size):
        value = x[i]
        if value > level:
            count += 1
            mass += value
    return count, mass


@inlined_kernel
def gather(x: Vector, level: int, index: Index, value: Vector) -> int:
    """Write index and value of the elements larger than `level`, in order; return their number.

    Args:
        x: int64[b], read only.
        level: int64.
        index: int32[b or more], overwritten.
        value: int64[b or more], overwritten.
    """
    n = 0
    for i in range(x.size):
        # Without a branch: an element that is not kept is overwritten by the next.
        index[n] = i
        value[n] = x[i]
        n += x[i] > level
    return n


@inlined_kernel
def water_level(x: Vector, total: int, start: int) -> tuple[int, int]:
    """Least integer t >= start with sum max(0, x - t) <= total, and that sum."""
    # Newton's method: the sum is convex and piecewise linear in t with slope -count, so a
    # step from the left never passes the zero, and rounding the step up loses no integer.
    level = start
    count, mass = above(x, level)
    while mass - level * count > total:
        level += ceil_div(mass - level * count - total, count)
        count, mass = above(x, level)
    return level, mass - level * count


@inlined_kernel
def gaps_above(x: Vector, digits: int, level: int, lift: int, drop: int) -> tuple[int, int]:
    """Number of the elements larger than `level`, and the sum of their gaps.

    An element's gap is what separates max(0, w - drop) from max(0, w + lift), w being its whole
    part; that of all elements above `level` must be larger than -lift.

    Args:
        x: int64[b], in units of 2^-digits.
        digits: binary digits of x after the point.
        level: in the same units.
        lift: in whole numbers.
        drop: likewise, at least |lift|.
    """
    count = gaps = 0
    for i in range(x.size):
        value = x[i]
        if value > level:
            count += 1
            gaps += min(value >> digits, drop)
    return count, gaps + count * lift


@inlined_kernel
def find_threshold(  # noqa: PLR0913, PLR0917 - compiled code takes plain values
    x: Vector, digits: int, largest: int, lift: int, drop: int, to_move: int
) -> tuple[int, int, int]:
    """Bisect until the bracket (lower, upper] of the threshold holds one value or one element.

    The gaps above `upper` fit into `to_move`, those above `lower` exceed it or just fill it.

    Args as above, and:
        largest: the largest element.
        to_move: not more than the sum of all gaps.

    Returns:
        The bracket, and the gaps above it.
    """
    lower, count_lower = ((1 - lift) << digits) - 1, x.size
    upper, count_upper, gaps_upper = largest, 0, 0
    if min(largest >> digits, drop) + lift >= to_move:  # often one element takes all
        return largest - 1, largest, 0
    while upper - lower > 1 and count_lower - count_upper > 1:
        # Above `drop` values range over orders of magnitude: find out first if it lies there.
        middle = drop << digits
        if not lower < middle < upper:
            middle = (lower + upper) >> 1
        count, gaps = gaps_above(x, digits, middle, lift, drop)
        if gaps <= to_move:
            upper, count_upper, gaps_upper = middle, count, gaps
        else:
            lower, count_lower = middle, count
    return lower, upper, gaps_upper


@inlined_kernel
def random_word(seed: np.uint64, counter: int) -> np.uint64:
    """The counter-th word of a splitmix64 generator: a bijection of seed + counter * odd.

    Not cryptographic, and need not be: it only decides ties between noisy values, which is
    post-processing. The seed comes from the secure source and is used for one vector only.
    """
    word = seed + np.uint64(counter) * np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@inlined_kernel
def random_below(word: np.uint64, bound: int) -> int:
    """From a uniform word to a uniform integer in 0..bound-1, up to a bias of 2^-53."""
    fraction = np.float64(np.int64(word >> np.uint64(11))) * 2.0**-53
    return min(bound - 1, int(fraction * bound))
