"""IntOpt: the Chebyshev-nearest non-negative integers with a given sum (paper, section 4.2).

Closed form of the paper's Algorithms 2 and 3, without their rounds and without sorting.
Given integers x_1..x_b and a total c:

1. D = c - sum x, lift = ceil(D / b), drop = max(|lift|, -min x).
   If sum max(0, x - drop) > c, take the least drop with sum max(0, x - drop) <= c instead,
   and lift = 1 - drop.
2. Every element ends between its floor max(0, x - drop) and its ceiling max(0, x + lift).
   The difference is its gap, min(x, drop) + lift for x > -lift and 0 otherwise.
3. Raise elements from floor to ceiling, largest first, until the sum is c: small elements, the
   likely false positives, give way first (the paper's ascending order). So there is a threshold:
   elements above it move by their whole gap, those below it not at all. It is found by
   bisection: the gaps above it must not exceed the missing sum.
4. Equal elements are ordered by a pseudo-random fraction of 16 binary digits that is added to
   each. The paper leaves their order open; an order by position would favour areas by their code.
   The fraction follows from the public seed of the release, from the parent and from the index of
   the child, so that `verify` can repeat the division.

The threshold is first found for whole numbers, which leaves few candidates: only these get a
fraction, and are adjusted where cross tables were measured (`inftda.mechanism.adjustment`).

Proof: docs/proofs/intopt.md. Slow twin: reference.py.

Privacy:
    Post-processing of noisy values: needs no budget. It must never be given true counts.
"""

import operator
import os
from collections.abc import Sequence
from typing import Final, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from inftda.errors import OptimizeError
from inftda.util.kernels import inlined_kernel, kernel
from inftda.util.threads import ThreadPool

#: Counts are whole numbers of 2^-16 once they have a fraction. A number of numpy, like `WHOLE` and
#: `LOWEST`: numba compiles a function again for each constant of Python that it is called with.
DIGITS: Final = cast("int", np.int64(16))
#: Digits of whole counts.
WHOLE: Final = cast("int", np.int64(0))
#: Limits of numbers that can have these digits, and of their exact sums.
LARGEST: Final = 1 << (60 - int(DIGITS))
LARGEST_SUM: Final = 1 << 60
#: The largest number of 64 bits.
BIGGEST: Final = (1 << 63) - 1

Ints = NDArray[np.int64]
#: Two words that say which of equal elements come first.
Seed = tuple[np.uint64, np.uint64]


class Candidates(NamedTuple):
    """Children of some parents that may become positive; all others stay 0.

    Attributes:
        offsets: int64[parents + 1], slices of the next two.
        column: int32, index of each among all children of its parent, ascending.
        noisy: int64, its noisy count in units of 2^-16, with a fraction.
        total: int64[parents], the parent's released count.
        size: int64[parents], number of all its children.
        sum: int64[parents], the sum of their noisy counts.
        least: int64[parents], the least of these.
    """

    offsets: Ints
    column: NDArray[np.int32]
    noisy: Ints
    total: Ints
    size: Ints
    sum: Ints
    least: Ints

    @classmethod
    def join(cls, parts: Sequence["Candidates"]) -> "Candidates":
        """Candidates of several parts, one after the other."""
        if len(parts) == 1:
            return parts[0]
        joined = cls(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
        counts = np.concatenate([np.diff(part.offsets) for part in parts])
        return joined._replace(offsets=np.concatenate([[0], np.cumsum(counts)]))


class Vectors(NamedTuple):
    """Noisy counts of the children of some parents, with figures of each parent.

    Attributes:
        x: int64, children of all parents, one parent after another.
        offsets: int64[parents + 1], slices of x; empty for a parent with an only child.
        total: int64[parents], the sum of the children of each parent, positive.
        key: int64[parents], key of the parent in its level.
        sum: int64[parents], the sum of each slice.
        least: int64[parents], the least element of each.
        bound: int64[parents], the least count that can become positive.
    """

    x: Ints
    offsets: Ints
    total: Ints
    key: Ints
    sum: Ints
    least: Ints
    bound: Ints

    @classmethod
    def of(cls, x: Ints, offsets: Ints, total: Ints, key: Ints, *, limit: int = 0) -> "Vectors":
        """Vectors with the bounds of step 3, for whole numbers.

        `limit` is how far counts may be adjusted to cross tables.

        Raises:
            OptimizeError: numbers are so large that sums could overflow.
        """
        made = cls(x, offsets, total, key, *np.empty((3, len(total)), np.int64))
        largest = describe_kernel(x, offsets, made.sum, made.least)
        check_exact(max(largest, limit), total, made.size)
        bound_kernel(made)
        return made

    @property
    def size(self) -> Ints:
        """int64[parents]: number of children."""
        return np.maximum(np.diff(self.offsets), 1)

    def candidates(self, level: int, seed: Seed) -> Candidates:
        """Children that are not below the bound, with fractions that follow from the seed."""
        offsets = np.empty_like(self.offsets)
        count_candidates_kernel(self, offsets)
        n = int(offsets[-1])
        made = Candidates(
            offsets, np.empty(n, np.int32), np.empty(n, np.int64),
            self.total, self.size, self.sum, self.least,
        )  # fmt: skip
        write_candidates_kernel(self, np.uint64(level), seed, made)
        return made


def check_exact(largest: int, total: Ints, size: Ints) -> None:
    """Refuse numbers that do not leave room for fractions, or for sums.

    `largest` is the largest |noisy count|, or the largest adjustment.

    Raises:
        OptimizeError: something could overflow.
    """
    is_sum_too_large = largest * int(size.max(initial=1)) > LARGEST_SUM
    if is_sum_too_large or max(largest, int(total.max(initial=0))) > LARGEST:
        raise OptimizeError(
            "counts or their noise are too large to be exact; use a larger epsilon or split the "
            "table into parts"
        )


def words_of(seed: bytes) -> Seed:
    """The two words of a seed of 16 bytes."""
    first, second = np.frombuffer(seed, "<u8").tolist()
    return np.uint64(first), np.uint64(second)


def intopt(x: ArrayLike, total: int, *, seed: bytes | None = None) -> Ints:
    """Non-negative integers that sum to `total`, at the least Chebyshev distance from x.

    Among the optimal vectors it picks the one that lowers small elements first, which are
    the likely false positives.

    Args:
        x: integers, any sign.
        total: sum of the result, at least 0.
        seed: 16 bytes that decide between equal elements; fresh ones by default.

    Returns:
        An int64 array as long as x.

    Raises:
        OptimizeError: if x is not a vector of integers, the total is negative or cannot be
            reached, or the values are so large that sums could overflow.

    Example:
        >>> intopt([12, -3, 2, 0], 10)
        array([10,  0,  0,  0])
    """
    vector, amount = _vector(x), _total(total)
    out = np.zeros(len(vector), np.int64)
    if amount == 0:
        return out
    if len(vector) == 0:
        raise OptimizeError(f"x must have elements to share out total={amount}; pass all children")
    vectors = Vectors.of(
        vector if len(vector) > 1 else vector[:0],
        np.array([0, len(vector) if len(vector) > 1 else 0]),
        np.array([amount]),
        np.zeros(1, np.int64),
    )
    found = vectors.candidates(0, words_of(os.urandom(16) if seed is None else seed))
    out[found.column] = optimize(found, ThreadPool(1))
    return out


def _vector(x: ArrayLike) -> Ints:
    """An int64 copy of a vector of integers."""
    try:
        array = np.asarray(x)
    except (ValueError, OverflowError) as error:
        raise OptimizeError("x must be a vector of integers; pass a list or an array") from error
    if array.ndim != 1:
        raise OptimizeError(
            f"x must have one dimension, got {array.ndim}; pass one vector per call"
        )
    if array.size and array.dtype.kind not in "iu":
        raise OptimizeError("x must hold integers below 2^63 in size; round them or scale them")
    if array.dtype.kind == "u" and array.size and int(array.max()) > LARGEST:
        raise OptimizeError("x must hold integers below 2^44 in size; scale them down")
    return np.array(array, dtype=np.int64, order="C")


def _total(total: int) -> int:
    """A non-negative total that can be given digits."""
    try:
        amount = operator.index(total)
    except TypeError as error:
        kind = type(total).__name__
        raise OptimizeError(f"total must be an integer, got a {kind}; round it first") from error
    if not 0 <= amount <= LARGEST:
        raise OptimizeError(f"total must be in 0..2^44, got {amount}; pass a released count")
    return amount


@kernel
def describe_kernel(x: Ints, offsets: Ints, sums: Ints, least: Ints) -> int:
    """Write sum (it may have wrapped) and least element of every vector; return the largest |x|."""
    largest = 0
    for parent in range(sums.size):
        total, smallest, biggest = 0, 0, 0
        if offsets[parent + 1] > offsets[parent]:
            smallest = biggest = x[offsets[parent]]
        for i in range(np.uint64(offsets[parent]), np.uint64(offsets[parent + 1])):
            total += x[i]
            smallest = min(smallest, x[i])
            biggest = max(biggest, x[i])
        sums[parent], least[parent] = total, smallest
        largest = max(largest, biggest, -max(smallest, -BIGGEST))  # -2^63 has no opposite
    return largest


@kernel
def bound_kernel(vectors: Vectors) -> None:
    """Write the least count of every vector that can become positive: steps 1 to 3."""
    x, offsets, total, _, sums, least, bound = vectors
    for parent in range(total.size):
        vector = x[offsets[parent] : offsets[parent + 1]]
        bound[parent] = 0
        if vector.size > 0:
            largest = vector[0]
            for i in range(vector.size):
                largest = max(largest, vector[i])
            lift = ceil_div(total[parent] - sums[parent], vector.size)
            lift, drop, floors = find_lift_and_drop(
                vector, WHOLE, total[parent], lift, least[parent], largest
            )
            room = total[parent] - floors
            lower = find_threshold(vector, WHOLE, largest, lift, drop, room)[0]
            bound[parent] = min(lower, drop) + 1


@kernel
def count_candidates_kernel(vectors: Vectors, offsets: Ints) -> None:
    """Write slices of the children that are not below their parent's bound."""
    x, x_offsets, bound = vectors.x, vectors.offsets, vectors.bound
    offsets[0] = 0
    for parent in range(bound.size):
        first, last = x_offsets[parent], x_offsets[parent + 1]
        n = 0 if last > first else 1
        for i in range(np.uint64(first), np.uint64(last)):
            n += x[i] >= bound[parent]
        offsets[parent + 1] = offsets[parent] + n


@kernel
def write_candidates_kernel(
    vectors: Vectors, level: np.uint64, seed: Seed, candidates: Candidates
) -> None:
    """Write `column` and `noisy` of candidates, with a fraction that decides between equals."""
    x, x_offsets, key, bound = vectors.x, vectors.offsets, vectors.key, vectors.bound
    offsets, column, noisy = candidates.offsets, candidates.column, candidates.noisy
    of_level = random_word(seed[0], level)
    for parent in range(bound.size):
        first = x_offsets[parent]
        at, end = offsets[parent], offsets[parent + 1]
        if x_offsets[parent + 1] == first:
            column[at] = noisy[at] = 0
            continue
        own = random_word(random_word(of_level, np.uint64(key[parent])) ^ seed[1], np.uint64(0))
        i = first
        while at < end:
            if x[i] >= bound[parent]:
                fraction = random_word(own, np.uint64(i - first)) >> np.uint64(64 - DIGITS)
                column[at] = i - first
                noisy[at] = (x[i] << DIGITS) + np.int64(fraction)
                at += 1
            i += 1


def optimize(candidates: Candidates, pool: ThreadPool) -> Ints:
    """int64: the released count of every candidate, without adjustment to cross tables.

    The result does not depend on the number of threads.
    """
    value = candidates.noisy.copy()

    def work(part: tuple[int, int]) -> None:
        optimize_kernel(part, candidates, value)

    pool.run(work, pool.parts(len(candidates.total), 0))
    return value


@kernel
def optimize_kernel(part: tuple[int, int], candidates: Candidates, value: Ints) -> None:
    """Turn noisy counts of some parents, from the first to before the last, into released ones."""
    offsets, _, _, total, size, sums, least = candidates
    for parent in range(part[0], part[1]):
        x = value[offsets[parent] : offsets[parent + 1]]
        largest = LOWEST
        for i in range(x.size):
            largest = max(largest, x[i])
        if size[parent] == 1:
            x[0] = total[parent]
            continue
        lift = ceil_div(total[parent] - sums[parent], size[parent])
        lift, drop, floors = find_lift_and_drop(
            x, DIGITS, total[parent], lift, least[parent], largest
        )
        raise_largest(x, largest, lift, drop, total[parent] - floors)


#: Below all counts in units of 2^-16.
LOWEST: Final = cast("int", np.int64(-(1 << 62)))


@inlined_kernel
def find_lift_and_drop(  # noqa: PLR0913, PLR0917 - compiled code takes plain values
    x: Ints, digits: int, total: int, lift: int, least: int, largest: int
) -> tuple[int, int, int]:
    """How far candidates may be raised, and how far they may fall: step 1.

    Args:
        x: int64, counts in units of 2^-digits.
        digits: binary digits of x after the point.
        total: sum of the result, positive.
        lift: as it follows from the sum of all children, candidates or not.
        least: the least noisy count of all children.
        largest: the largest of x.

    Returns:
        Both, and the sum of what candidates fall to.
    """
    count, ceilings = positive(x, digits, lift)
    if ceilings < total:
        # Candidates alone are too few, so they are raised further: the least that is enough.
        # Either would do, the largest alone or all of them; raised by the lesser no sum overflows.
        wholes = 0
        for i in range(x.size):
            wholes += x[i] >> digits
        lift = min(total - (largest >> digits), ceil_div(total - wholes, x.size))
        count, ceilings = positive(x, digits, lift)
        while ceilings - total >= count:
            lift -= (ceilings - total) // count
            count, ceilings = positive(x, digits, lift)
    drop = max(lift, -lift, -least)
    count, floors = positive(x, digits, -drop)
    if floors > total:
        # Newton's method: the sum is convex and piecewise linear in drop with slope -count, so a
        # step from the left never passes the zero, and rounding the step up loses no integer.
        while floors > total:
            drop += ceil_div(floors - total, count)
            count, floors = positive(x, digits, -drop)
        lift = 1 - drop
    return lift, drop, floors


@inlined_kernel
def raise_largest(x: Ints, largest: int, lift: int, drop: int, room: int) -> None:
    """Put all on their floors, max(0, x - drop), and raise the largest to their ceilings.

    These are max(0, x + lift); the last one is raised as far as there is room.

    Args:
        x: int64, counts in units of 2^-16; whole counts are written.
        largest: the largest of these.
        lift: in whole counts.
        drop: in whole counts, at least |lift|.
        room: by how much all may rise together.
    """
    lower, upper, raised = find_threshold(x, DIGITS, largest, lift, drop, room)
    room -= raised
    for i in range(x.size):
        key = x[i]
        whole = key >> DIGITS
        floor = max(0, whole - drop)
        if key > upper:
            x[i] = whole + lift
        elif key > lower:
            rise = min(room, whole + lift - floor)
            x[i] = floor + rise
            room -= rise
        else:
            x[i] = floor


@inlined_kernel
def find_threshold(  # noqa: PLR0913, PLR0917 - compiled code takes plain values
    x: Ints, digits: int, largest: int, lift: int, drop: int, to_move: int
) -> tuple[int, int, int]:
    """Bisect until the bracket (lower, upper] of the threshold holds one value or one element.

    The gaps above `upper` fit into `to_move`, those above `lower` exceed it or just fill it.

    Args:
        x: int64[b], in units of 2^-digits.
        digits: binary digits of x after the point.
        largest: the largest element.
        lift: in whole numbers.
        drop: in whole numbers, at least |lift|.
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
def gaps_above(x: Ints, digits: int, level: int, lift: int, drop: int) -> tuple[int, int]:
    """Number of the elements larger than `level`, and the sum of their gaps.

    An element's gap is what separates max(0, w - drop) from max(0, w + lift), w being its whole
    part; that of all elements above `level` must be larger than -lift. Args as above.
    """
    count = gaps = 0
    for i in range(x.size):
        value = x[i]
        if value > level:
            count += 1
            gaps += min(value >> digits, drop)
    return count, gaps + count * lift


@inlined_kernel
def positive(x: Ints, digits: int, lift: int) -> tuple[int, int]:
    """Number and sum of the positive ones among the whole parts of x plus lift."""
    count = mass = 0
    for i in range(x.size):
        whole = (x[i] >> digits) + lift
        if whole > 0:
            count += 1
            mass += whole
    return count, mass


@inlined_kernel
def ceil_div(number: int, divisor: int) -> int:
    """Smallest integer not below number / divisor, for divisor > 0."""
    return -(-number // divisor)


@inlined_kernel
def random_word(seed: np.uint64, counter: np.uint64) -> np.uint64:
    """The counter-th word of a splitmix64 generator: a bijection of seed + counter * odd.

    Not cryptographic, and need not be: it only decides ties between noisy values, which is
    post-processing.
    """
    word = seed + counter * np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))
