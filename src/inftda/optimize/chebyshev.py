"""IntOpt: the Chebyshev-nearest non-negative integers with a given sum (paper, section 4.2).

Same result as the paper's Algorithms 2 and 3, in a few passes instead of O(b^2) steps. Both
algorithms end with two levels per element, a ceiling max(0, x + lift) and a floor
max(0, x - drop), and go through x from the smallest to the largest, taking each element
from its ceiling to its floor, until the sum fits. So x is cut by one threshold: floor
below, ceiling above, and what is left over goes to the elements at the threshold. The
threshold is found by halving the range of values. Proof: docs/proofs/intopt.md.

The paper leaves equal values open. Here they share alike: which of them get more is drawn
uniformly, never decided by position, which would favour areas by their code.

Privacy:
    Post-processing of noisy values: needs no budget. It must never be given true counts.
"""

import math
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from inftda.compiled import allocating_kernel, inlined_kernel, kernel
from inftda.optimize.inputs import as_total, as_vector, check_order, check_status, draw_seed
from inftda.optimize.instructions import EIGHT, bit_length, put_places, shift_apart
from inftda.optimize.selection import (
    EMPTY,
    GATHER_ROOM,
    NEGATIVE,
    OK,
    TOO_LARGE,
    Places,
    Vector,
    above,
    above_padded,
    append,
    ceil_div,
    describe,
    gather,
    is_too_large,
    pad,
    random_below,
    random_word,
    sink,
)

if TYPE_CHECKING:
    from inftda.noise.entropy import RandomSource

_MEAN_PASSES = 8  # then halve: passes stay below 8 + 61 however the values lie


def _depth_of(rank: float, size: float) -> float:
    """How far below the largest of so many noisy zeros the one of this rank lies, 0 being 1."""
    # Some n exp(-z^2 / 2) of n normal draws lie above z, so that rank lies at sqrt(2 ln(n / rank)).
    return 1.0 if rank >= size else 1.0 - math.sqrt(1.0 - math.log(rank) / math.log(size))


#: How deep to look for candidates first, in 256ths, by the bits of the number of elements and of
#: how many as large as the largest make up the total. It pays to look for more than twice as many,
#: but not far beyond the middle; a second look is rare.
_FIRST_DEPTH = np.array(
    [
        [int(256 * min(0.55, _depth_of(2 * 2**many + 2, 2 ** (size - 0.5)))) for many in range(64)]
        for size in range(64)
    ],
    np.int16,
)


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
        order: which elements give way first.
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
    status = chebyshev_kernel(vector, amount, draw_seed(source), order == "descending", vector)
    check_status(status, len(vector), amount)
    return vector


@allocating_kernel
def chebyshev_kernel(
    x: Vector,
    total: int,
    seed: np.uint64,
    descending: bool,  # noqa: FBT001 - compiled code has no keyword-only arguments
    out: Vector,
) -> int:
    """IntOpt of a whole vector.

    Args:
        x: int64[b], contiguous; left alone unless it is `out` itself.
        total: int64, what the result sums to.
        seed: uint64, a fresh uniform word for this vector.
        descending: whether large elements give way first.
        out: int64[b], written; may be x itself. Undefined unless the status is 0.

    Returns:
        Status: OK, EMPTY, NEGATIVE or TOO_LARGE of `selection`.
    """
    if x is not out:
        for i in range(x.size):
            out[i] = x[i]
    place = np.empty(2 * (x.size + GATHER_ROOM), np.int32)
    value = np.empty(x.size + GATHER_ROOM, np.int64)
    end = chebyshev_survivors(out, 0, out.size, total, seed, descending, place, value, 0)
    if end < 0:
        return -end
    out[:] = 0
    for i in range(end):
        out[place[i]] = value[i]
    return OK


@kernel
def chebyshev_survivors(  # noqa: PLR0913, PLR0917 - compiled code takes plain values
    x: Vector,
    start: int,
    stop: int,
    total: int,
    seed: np.uint64,
    descending: bool,  # noqa: FBT001 - compiled code has no keyword-only arguments
    place: Places,
    value: Vector,
    at: int,
) -> int:
    """IntOpt of x[start:stop], of which only what is positive is written down.

    Args:
        x: int64 buffer, contiguous, read only.
        start: first element.
        stop: element behind the last.
        total: int64, what the result sums to.
        seed: uint64, a fresh uniform word for this stretch.
        descending: whether large elements give way first.
        place: int32, written from `at` on: which elements are positive, ascending.
            Room for all elements and GATHER_ROOM more, twice: notes are made behind it.
        value: int64, written from `at` on: what they are. Room for GATHER_ROOM more.
        at: where to begin.

    Returns:
        Where what is written ends, or minus the status: EMPTY, NEGATIVE, TOO_LARGE.
    """
    size = stop - start
    if total <= 0:
        return at if total == 0 else -NEGATIVE
    if size < 1:
        return -EMPTY
    if size == 1:
        return append(place, value, at, 0, total)
    sum_of_x, smallest, largest = describe(x, start, stop)
    if is_too_large(size, smallest, largest, total):
        return -TOO_LARGE
    if size == 2:
        first = _share_of_first(x, start, total, seed, descending)
        end = append(place, value, at, 0, first)
        return append(place, value, end, 1, total - first)
    # Algorithm 2, lines 1 and 2: z = max(lift, -x), drop = max |z|.
    lift = ceil_div(total - sum_of_x, size)
    drop = max(lift, -lift, -smallest)
    bottom, mass, end = _write_candidates(
        x, start, stop, lift, drop, largest, total, descending, place, value, at
    )
    return _raise_to_total(
        lift, drop, largest, bottom, mass, total, seed, descending, place, value, at, end
    )


@inlined_kernel
def _share_of_first(
    x: Vector,
    start: int,
    total: int,
    seed: np.uint64,
    descending: bool,  # noqa: FBT001 - compiled code has no keyword-only arguments
) -> int:
    """IntOpt of two elements: keep their difference as far as the total and 0 allow."""
    gap = int(x[np.uint64(start)] - x[np.uint64(start + 1)])
    lesser = max(0, (total - max(gap, -gap) + (1 if descending else 0)) >> 1)
    if gap == 0 and random_below(random_word(seed, 0), 2) == 1:
        gap = 1
    return total - lesser if gap > 0 else lesser


@inlined_kernel
def _write_candidates(  # noqa: PLR0913, PLR0917 - compiled code takes plain values
    x: Vector,
    start: int,
    stop: int,
    lift: int,
    drop: int,
    largest: int,
    total: int,
    descending: bool,  # noqa: FBT001 - compiled code has no keyword-only arguments
    place: Places,
    value: Vector,
    at: int,
) -> tuple[int, int, int]:
    """Write down the elements that can become positive, and few others.

    Only elements above -lift can, and mostly only the largest of them: as many as have
    ceilings that sum to the total.

    Args:
        x: int64 buffer.
        start: first element.
        stop: element behind the last.
        lift: ceilings are max(0, x + lift).
        drop: floors are max(0, x - drop).
        largest: largest element.
        total: what the result sums to.
        descending: whether large elements give way first.
        place: int32, written from `at` on.
        value: int64, written from `at` on, and padded.
        at: where to begin.

    Returns:
        The level above which elements were written down, their sum, and where they end.
    """
    top = min(largest, drop)
    reach = top + lift  # top - reach is -lift
    depth = reach
    if not descending:
        many = max(0, bit_length(total) - bit_length(reach))
        share = int(_FIRST_DEPTH[np.uint64(bit_length(stop - start)), np.uint64(many)])
        depth = 1 + (reach >> 8) * share + ((reach & 255) * share >> 8)  # would wrap in one
        # If one element is enough, those above `drop` are, or those as large as the largest.
        depth = (1 if largest <= drop else 0) if total <= reach else depth
    while True:
        end = gather(x, start, stop, top - depth, place, value, at)
        pad(value, end)
        count, mass = above_padded(value, at, end, top - depth)
        if mass + lift * count >= total:
            return top - depth, mass, end
        depth = min(reach, 2 * depth + 1)


@inlined_kernel
def _raise_to_total(  # noqa: PLR0913, PLR0917 - compiled code takes plain values
    lift: int,
    drop: int,
    largest: int,
    bottom: int,
    bottom_mass: int,
    total: int,
    seed: np.uint64,
    descending: bool,  # noqa: FBT001 - compiled code has no keyword-only arguments
    place: Places,
    value: Vector,
    at: int,
    end: int,
) -> int:
    """Place every candidate at its floor or its ceiling so that the sum fits.

    Args:
        lift: ceilings are max(0, x + lift).
        drop: floors are max(0, x - drop); drop >= |lift|. If even the floors are too high,
            both are changed.
        largest: largest element.
        bottom: all elements above it are candidates.
        bottom_mass: their sum.
        total: what the result sums to.
        seed: uint64.
        descending: whether large elements give way first.
        place: int32, candidates from `at` to `end`, overwritten.
        value: int64, likewise; padded.
        at: where candidates begin.
        end: where they end.

    Returns:
        Where what is written ends.
    """
    bottom_count = end - at
    count, mass = above_padded(value, at, end, drop)
    if mass - drop * count > total:
        # Even the floors are too high. Rounds go on until drop is enough; the ceilings of
        # the last round are the floors of the round before.
        drop, count, mass = sink(value, at, end, total, drop, count, mass)
        lift = 1 - drop
        bottom = -lift
        bottom_count, bottom_mass = above(value, at, end, bottom)
    # An element x has the gap min(x, drop) + lift between floor and ceiling if x > -lift,
    # else 0. Ascending: the largest elements are raised by their gaps as far as `room`
    # lasts. Descending: the largest elements are lowered as far as the excess lasts. Either
    # way gaps are added up from the top, and the threshold is where they pass `room`.
    room = total - (mass - drop * count)
    span = lift + drop
    shift = count * drop - mass
    up, down, sign = lift, -drop, 1
    if descending:
        room = bottom_mass + lift * bottom_count + shift - room
        up, down, sign = -drop, lift, -1
    # Elements above `drop` have constant gaps, those up to it have growing ones.
    if count * span <= room:
        bracket = (bottom, min(drop, largest), bottom_count, count, count * span)
        lower, upper, ties, gaps = _find_up_to_drop(value, at, end, bracket, lift, shift, room)
    else:
        lower, upper, ties, gaps = _find_above_drop(
            value, at, end, drop, largest, count, mass, span, room
        )
    rest = room - gaps
    gap = min(upper, drop) + lift
    if ties * gap == rest:  # enough for all of them, as if they lay above
        upper, rest = lower, 0
    return _settle(
        place, value, at, end, lower, upper, up, down, ties, sign * gap, sign * rest, seed
    )


# Both searches keep a bracket (lower, upper] that the threshold lies in: the gaps above
# `upper` fit into the room, those above `lower` do not (or just fill it). They end when one
# element or one value is left, and return the bracket, how many elements are in it, and the
# gaps above it. Which way to go is a coin flip, hence selects instead of branches.


@inlined_kernel
def _find_up_to_drop(  # noqa: PLR0913, PLR0917 - compiled code takes plain values
    value: Vector,
    at: int,
    end: int,
    bracket: tuple[int, int, int, int, int],
    lift: int,
    shift: int,
    room: int,
) -> tuple[int, int, int, int]:
    """Threshold among elements of different gaps, by halving."""
    lower, upper, lower_count, upper_count, upper_gaps = bracket
    while upper - lower > 1 and lower_count - upper_count > 1:
        middle = (lower + upper) >> 1
        count, mass = above_padded(value, at, end, middle)
        gaps = mass + lift * count + shift
        fits = gaps <= room
        upper = middle if fits else upper
        upper_count = count if fits else upper_count
        upper_gaps = gaps if fits else upper_gaps
        lower = lower if fits else middle
        lower_count = lower_count if fits else count
    return lower, upper, lower_count - upper_count, upper_gaps


@inlined_kernel
def _find_above_drop(  # noqa: PLR0913, PLR0917 - compiled code takes plain values
    value: Vector,
    at: int,
    end: int,
    lower: int,
    upper: int,
    lower_count: int,
    lower_mass: int,
    span: int,
    room: int,
) -> tuple[int, int, int, int]:
    """Threshold among elements that all have the gap `span`."""
    upper_count = upper_mass = passes = 0
    while upper - lower > 1 and lower_count - upper_count > 1:
        middle = (lower + upper) >> 1
        if passes < _MEAN_PASSES:
            # True counts range over many orders of magnitude; their mean parts them better.
            middle = min(upper - 1, (lower_mass - upper_mass) // (lower_count - upper_count))
        passes += 1
        count, mass = above_padded(value, at, end, middle)
        fits = span * count <= room
        upper = middle if fits else upper
        upper_count = count if fits else upper_count
        upper_mass = mass if fits else upper_mass
        lower = lower if fits else middle
        lower_count = lower_count if fits else count
        lower_mass = lower_mass if fits else mass
    return lower, upper, lower_count - upper_count, span * upper_count


@inlined_kernel
def _settle(  # noqa: PLR0913, PLR0917 - compiled code takes plain values
    place: Places,
    value: Vector,
    at: int,
    end: int,
    lower: int,
    upper: int,
    up: int,
    down: int,
    ties: int,
    gap: int,
    rest: int,
    seed: np.uint64,
) -> int:
    """Shift candidates by `up` above `upper` and by `down` elsewhere; keep what is positive.

    Those in between, above `lower`, share `rest`: a random set of rest // gap of them is moved
    by the whole gap, one further by what is then left. They are the first of a random shuffle
    (Fisher and Yates), so all are equally likely.
    """
    first, notes = np.uint64(at), np.uint64(end + GATHER_ROOM)
    shifted, noted = first, notes
    while shifted < np.uint64(end):
        between = shift_apart(value, shifted, lower, upper, up, down)
        noted = put_places(between, np.int32(shifted - first), place, noted)
        shifted += np.uint64(EIGHT)
    while rest != 0:
        chosen = notes + np.uint64(random_below(random_word(seed, ties), ties))
        part = rest if abs(rest) < abs(gap) else gap
        value[first + np.uint64(place[chosen])] += part
        rest -= part
        ties -= 1
        place[chosen] = place[notes + np.uint64(ties)]
    kept = first
    for i in range(first, np.uint64(end)):
        survivor = value[i]
        place[kept] = place[i]
        value[kept] = survivor
        kept += np.uint64(survivor > 0)
    return int(np.int64(kept))
