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

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from inftda.compiled import inlined_kernel, kernel
from inftda.optimize.inputs import as_total, as_vector, check_order, check_status, draw_seed
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
    sink,
)

if TYPE_CHECKING:
    from inftda.noise.entropy import RandomSource

_MEAN_PASSES = 8  # then halve: passes stay below 8 + 61 however the values lie


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


@inlined_kernel
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
    return chebyshev_segment(out, 0, out.size, total, seed, descending)


@kernel
def chebyshev_segment(  # noqa: PLR0913, PLR0917 - compiled code takes plain values
    x: Vector,
    start: int,
    stop: int,
    total: int,
    seed: np.uint64,
    descending: bool,  # noqa: FBT001 - compiled code has no keyword-only arguments
) -> int:
    """IntOpt of x[start:stop] in place, for loops over many stretches of one buffer.

    Args:
        x: int64 buffer, contiguous; x[start:stop] is overwritten if the status is 0.
        start: first element.
        stop: element behind the last.
        total: int64, what the result sums to.
        seed: uint64, a fresh uniform word for this stretch.
        descending: whether large elements give way first.

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
        sum_of_x, smallest, largest = describe(x, start, stop)
        if is_too_large(size, smallest, largest, total):
            status = TOO_LARGE
        elif size == 2:
            _share_between_two(x, start, total, seed, descending)
        else:
            _optimize(x, start, stop, total, sum_of_x, smallest, largest, seed, descending)
    # One way out, with x still in use: else x is reference-counted, which is atomic and slow.
    return status if x.size >= 0 else TOO_LARGE


@inlined_kernel
def _optimize(  # noqa: PLR0913, PLR0917 - compiled code takes plain values
    x: Vector,
    start: int,
    stop: int,
    total: int,
    sum_of_x: int,
    smallest: int,
    largest: int,
    seed: np.uint64,
    descending: bool,  # noqa: FBT001 - compiled code has no keyword-only arguments
) -> None:
    """IntOpt of three or more elements, with their sum, smallest and largest known."""
    # Algorithm 2, lines 1 and 2: z = max(lift, -x), drop = max |z|.
    lift = ceil_div(total - sum_of_x, stop - start)
    drop = max(lift, -lift, -smallest)
    count, mass = above(x, start, stop, drop)
    if mass - drop * count > total:
        # Even the floors are too high. Rounds go on until drop is enough; the ceilings of
        # the last round are the floors of the round before.
        drop, count, mass = sink(x, start, stop, total, drop, count, mass)
        lift = 1 - drop
    room = total - (mass - drop * count)
    _raise_to_total(x, start, stop, lift, drop, count, mass, largest, room, seed, descending)


@inlined_kernel
def _share_between_two(
    x: Vector,
    start: int,
    total: int,
    seed: np.uint64,
    descending: bool,  # noqa: FBT001 - compiled code has no keyword-only arguments
) -> None:
    """IntOpt of two elements: keep their difference as far as the total and 0 allow."""
    at = np.uint64(start)
    after = np.uint64(start + 1)
    gap = x[at] - x[after]
    lesser = max(0, (total - max(gap, -gap) + (1 if descending else 0)) >> 1)
    if gap == 0 and random_below(random_word(seed, 0), 2) == 1:
        gap = 1
    first = total - lesser if gap > 0 else lesser
    x[at] = first
    x[after] = total - first


@inlined_kernel
def _raise_to_total(  # noqa: PLR0913, PLR0917 - compiled code takes plain values
    x: Vector,
    start: int,
    stop: int,
    lift: int,
    drop: int,
    count: int,
    mass: int,
    largest: int,
    room: int,
    seed: np.uint64,
    descending: bool,  # noqa: FBT001 - compiled code has no keyword-only arguments
) -> None:
    """Place every element at its floor or its ceiling so that the sum fits.

    Args:
        x: int64 buffer, x[start:stop] is overwritten.
        start: first element.
        stop: element behind the last.
        lift: ceilings are max(0, x + lift).
        drop: floors are max(0, x - drop); drop >= |lift|.
        count: number of elements above `drop`.
        mass: their sum.
        largest: largest element.
        room: total minus the sum of all floors.
        seed: uint64.
        descending: whether large elements give way first.
    """
    # An element x has the gap min(x, drop) + lift between floor and ceiling if x > -lift,
    # else 0. Ascending: the largest elements are raised by their gaps as far as `room`
    # lasts. Descending: the largest elements are lowered as far as the excess lasts. Either
    # way gaps are added up from the top, and the threshold is where they pass `room`.
    span = lift + drop
    shift = count * drop - mass
    up, down, sign = lift, -drop, 1
    bottom_count = stop - start  # a bound is enough until it decides
    if descending:
        bottom_count, bottom_mass = above(x, start, stop, -lift)
        room = bottom_mass + lift * bottom_count + shift - room
        up, down, sign = -drop, lift, -1
    # Elements above `drop` have constant gaps, those up to it have growing ones.
    is_low = count * span <= room
    lower = -lift if is_low else drop
    upper = min(drop, largest) if is_low else largest
    lower_count = bottom_count if is_low else count
    upper_count = count if is_low else 0
    upper_gaps = count * span if is_low else 0
    lower_mass = mass
    upper_mass = 0
    weight = lift if is_low else span
    passes = 0
    # In (lower, upper] lies the threshold: the gaps above `upper` fit into the room, those
    # above `lower` do not (or just fill it). Done when one element or one value is left.
    while upper - lower > 1 and lower_count - upper_count > 1:
        if is_low or passes > _MEAN_PASSES:
            middle = (lower + upper) >> 1
        else:
            # True counts range over many orders of magnitude; their mean parts them better.
            mean = (lower_mass - upper_mass) // (lower_count - upper_count)
            middle = min(upper - 1, mean)
        passes += 1
        count, mass = above(x, start, stop, middle)
        gaps = weight * count + (mass + shift if is_low else 0)
        if gaps <= room:
            upper, upper_count, upper_mass, upper_gaps = middle, count, mass, gaps
        else:
            lower, lower_count, lower_mass = middle, count, mass
    rest = room - upper_gaps
    if rest == 0:
        _settle(x, start, stop, upper, upper, up, down, 0)
        return
    ties = lower_count - upper_count
    if ties > 1 and lower == -lift:
        ties = above(x, start, stop, lower)[0] - upper_count
    gap = min(upper, drop) + lift
    if ties == 1:
        _settle(x, start, stop, lower, upper, up, down, sign * rest)
    elif ties * gap == rest:
        _settle(x, start, stop, lower, lower, up, down, 0)
    else:
        _settle_ties(x, start, stop, upper, up, down, sign, gap, ties, rest, seed)


@inlined_kernel
def _settle(  # noqa: PLR0913, PLR0917 - compiled code takes plain values
    x: Vector, start: int, stop: int, lower: int, upper: int, up: int, down: int, extra: int
) -> None:
    """Shift by `up` above `upper` and by `down` elsewhere, not below 0; `extra` in between."""
    for i in range(np.uint64(start), np.uint64(stop)):
        value = x[i]
        level = max(0, value + (up if value > upper else down))
        x[i] = level + (extra if lower < value <= upper else 0)


@kernel
def _settle_ties(  # noqa: PLR0913, PLR0917 - compiled code takes plain values
    x: Vector,
    start: int,
    stop: int,
    tied: int,
    up: int,
    down: int,
    sign: int,
    gap: int,
    ties: int,
    rest: int,
    seed: np.uint64,
) -> None:
    """As `_settle`, with several elements at the threshold `tied`, of which some get more.

    A random set of rest // gap of them is moved by the whole gap, one further by what is
    then left. Knuth's selection sampling (Algorithm S) makes all sets equally likely.
    """
    # Two passes: the first is vectorised and marks the tied ones, the second ends with the
    # last of them.
    for i in range(np.uint64(start), np.uint64(stop)):
        value = x[i]
        level = max(0, value + (up if value > tied else down))
        x[i] = -1 if value == tied else level
    base = max(0, tied + down)
    whole = rest // gap
    part = rest - whole * gap
    needed = whole + (1 if part > 0 else 0)
    partial = random_below(random_word(seed, 0), needed) if part > 0 else -1
    left = ties
    i = start
    while left > 0:
        if i + 8 <= stop and not _has_mark(x, i):
            i += 8
            continue
        if x[np.uint64(i)] < 0:
            is_chosen = random_below(random_word(seed, left), left) < needed
            needed -= 1 if is_chosen else 0
            amount = part if needed == partial else gap
            x[np.uint64(i)] = base + (sign * amount if is_chosen else 0)
            left -= 1
        i += 1


@inlined_kernel
def _has_mark(x: Vector, start: int) -> bool:
    """Whether one of eight elements is negative."""
    i = np.uint64(start)
    signs = x[i] | x[i + np.uint64(1)] | x[i + np.uint64(2)] | x[i + np.uint64(3)]
    signs |= x[i + np.uint64(4)] | x[i + np.uint64(5)] | x[i + np.uint64(6)] | x[i + np.uint64(7)]
    return bool(signs < 0)
