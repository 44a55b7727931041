"""Kernels shared by the optimisers: sums above a level, thresholds, fair choices.

All optimisers are passes over one stretch `x[start:stop]` of an int64 buffer; nothing is
allocated, nothing sorted.

The kernels validate nothing and never wrap: `is_too_large` is asked first, once per
vector, and bounds every sum formed later (docs/proofs/intopt.md, "No overflow").
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from inftda.compiled import inlined_kernel
from inftda.optimize.instructions import EIGHT, larger, put_places, sum_larger

Vector = NDArray[np.int64]
Places = NDArray[np.int32]

OK: Final = 0
"""Status: the result is in place."""
EMPTY: Final = 1
"""Status: a positive total cannot be shared among no elements."""
NEGATIVE: Final = 2
"""Status: the total is negative."""
TOO_LARGE: Final = 3
"""Status: values or total are so large that a sum could overflow."""

LIMIT: Final = 1 << 61
"""Totals, and sizes of elements times their number, must not exceed this."""

GATHER_ROOM: Final = EIGHT
"""Elements behind the last that `gather` and `pad` may overwrite."""

_PADDING: Final = -(1 << 62)  # below all levels, and no sum of it and a level wraps

_SAFE_VALUE: Final = 1 << 40
_SAFE_SIZE: Final = 1 << 20  # _SAFE_VALUE * _SAFE_SIZE < LIMIT, so most vectors need no division


@inlined_kernel
def ceil_div(number: int, divisor: int) -> int:
    """Smallest integer not below number / divisor, for |number| < 2^62 and divisor > 0."""
    # Unsigned division and selects: signed floor division compiles to a branch on the sign
    # of the remainder, which is a coin flip here.
    size = np.uint64(max(number, -number))
    extra = np.uint64(divisor - 1 if number > 0 else 0)
    quotient = int(np.int64((size + extra) // np.uint64(divisor)))
    return quotient if number > 0 else -quotient


@inlined_kernel
def describe(x: Vector, start: int, stop: int) -> tuple[int, int, int]:
    """Sum (it may have wrapped), smallest and largest element of x[start:stop], not empty."""
    total = 0
    smallest = x[np.uint64(start)]
    largest = smallest
    # Unsigned indices: signed ones would be tested for counting from the end, each time.
    for i in range(np.uint64(start), np.uint64(stop)):
        value = x[i]
        total += value
        smallest = min(smallest, value)
        largest = max(largest, value)
    return total, smallest, largest


@inlined_kernel
def is_too_large(size: int, smallest: int, largest: int, total: int) -> bool:
    """Whether a sum over `size` elements, or one with the total, could overflow."""
    if (
        largest <= _SAFE_VALUE
        and smallest >= -_SAFE_VALUE
        and size <= _SAFE_SIZE
        and total <= LIMIT
    ):
        return False
    bound = LIMIT // size
    return total > LIMIT or largest > bound or smallest < -bound


@inlined_kernel
def above(x: Vector, start: int, stop: int, level: int) -> tuple[int, int]:
    """Number and sum of the elements of x[start:stop] that are larger than `level`."""
    count = 0
    mass = 0
    for i in range(np.uint64(start), np.uint64(stop)):
        value = x[i]
        if value > level:
            count += 1
            mass += value
    return count, mass


@inlined_kernel
def gather(  # noqa: PLR0913, PLR0917 - compiled code takes plain values
    x: Vector,
    start: int,
    stop: int,
    level: int,
    place: Places,
    value: Vector,
    at: int,
) -> int:
    """Write down the elements of x[start:stop] that are larger than `level`, in their order.

    Args:
        x: int64 buffer, read only.
        start: first element.
        stop: element behind the last.
        level: int64.
        place: int32, written from `at` on: how far behind `start` each of them lies.
        value: int64, written from `at` on. Both need room for GATHER_ROOM more.
        at: where to begin.

    Returns:
        Where what is written ends.
    """
    n, first, end, eight = np.uint64(at), np.uint64(start), np.uint64(stop), np.uint64(EIGHT)
    if end - first < eight:
        for i in range(first, end):
            place[n] = i - first
            value[n] = x[i]
            n += np.uint64(x[i] > level)
        return int(np.int64(n))
    seen, last = first, end - eight
    while seen <= last:
        n = put_places(larger(x, seen, level), np.int32(seen - first), place, n)
        seen += eight
    # The last eight once more, but for those that were seen before.
    bits = larger(x, last, level) >> (seen - last) << (seen - last)
    n = put_places(bits, np.int32(last - first), place, n)
    put_places(np.uint64(0), np.int32(0), place, n)  # eight places to be read, also at the end
    copied = np.uint64(at)
    while copied < n:
        for k in range(eight):
            value[copied + k] = x[first + np.uint64(place[copied + k])]
        copied += eight
    return int(np.int64(n))


@inlined_kernel
def pad(value: Vector, end: int) -> None:
    """Follow what ends at `end` by elements that are in no sum of `above_padded`."""
    for k in range(np.uint64(EIGHT)):
        value[np.uint64(end) + k] = _PADDING


@inlined_kernel
def above_padded(value: Vector, start: int, stop: int, level: int) -> tuple[int, int]:
    """As `above`, for a few elements that are padded: quicker than for a loop over them."""
    count = 0
    mass = 0
    i = np.uint64(start)
    while i < np.uint64(stop):
        more, sum_of_more = sum_larger(value, i, level)
        count += more
        mass += sum_of_more
        i += np.uint64(EIGHT)
    return count, mass


@inlined_kernel
def append(place: Places, value: Vector, at: int, where: int, amount: int) -> int:
    """Write down one element if it is positive; returns where what is written ends."""
    place[np.uint64(at)] = where
    value[np.uint64(at)] = amount
    return at + (1 if amount > 0 else 0)


@inlined_kernel
def sink(  # noqa: PLR0913, PLR0917 - compiled code takes plain values
    x: Vector, start: int, stop: int, total: int, level: int, count: int, mass: int
) -> tuple[int, int, int]:
    """Least integer t with sum max(0, x - t) <= total, and number and sum of elements above t.

    Args:
        x: int64 buffer, read only.
        start: first element.
        stop: element behind the last.
        total: at least 0.
        level: where to start; the least t must not lie below it.
        count: number of elements above `level`.
        mass: their sum.
    """
    # Newton's method: the sum is convex and piecewise linear in t with slope -count, so a
    # step from the left never passes the zero, and rounding the step up loses no integer.
    while mass - level * count > total:
        level += ceil_div(mass - level * count - total, count)
        count, mass = above(x, start, stop, level)
    return level, count, mass


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
