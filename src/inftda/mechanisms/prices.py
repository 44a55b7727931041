"""Prices: noisy children lean towards what was measured across the tree.

A group of parents (all that share the area A being refined) is divided together. Off-tree
tables measure sums of their children: those of area a' below A over all parents, or over the
parents whose other area lies in B. If the released children of such a cell (a', B) sum to less
than was measured, a price is added to their noisy counts before they are optimised; if they
sum to more, it is subtracted:

    repeat: divide the count of every parent: IntOpt of noisy count + price
            sum up the children in every cell; move the prices towards the measurements

How much a child's guaranteed error grows by it is theorem 4 of docs/proofs/across.md.

Privacy:
    Post-processing of noisy counts: needs no budget. It must never be given true counts.
    Sums are whole numbers, so the result does not depend on how the work is divided.
"""

import math
from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inftda.errors import OptimizeError
from inftda.kernels import inlined_kernel, kernel
from inftda.lattice import HARD_REACH
from inftda.optimize.selection import ceil_div, find_threshold, random_word

#: Passes for each chain of tables: two more make totals 1 % better and releases an eighth slower.
PASSES: Final = 6
#: Passes after these in which only the prices of hard totals move.
LAST_PASSES: Final = 6
#: Trust in a hard total: whatever its noise, sums agree with it.
HARD: Final = np.inf
#: Priced counts are whole numbers of 2^-16, so that a price of less than 1 counts too.
DIGITS: Final = 16
ONE: Final = 1 << DIGITS
#: Larger numbers cannot be given these digits, and larger sums of them not be made exactly.
LARGEST: Final = 1 << (60 - DIGITS)
LARGEST_SUM: Final = 1 << 60
#: Below all priced counts.
LOWEST: Final = -(1 << 62)

Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Candidates(NamedTuple):
    """Children of some parents that may become positive; all others stay 0.

    Attributes:
        offsets: int64[parents + 1], slices of the next three.
        column: int32, index of each among all children of its parent, ascending.
        noisy: int64, its noisy count in units of 2^-16, with a random fraction.
        value: int64, what is released.
        total: int64[parents], the parent's released count.
        size: int64[parents], number of all its children.
        sum: int64[parents], the sum of their noisy counts.
        least: int64[parents], the least of these.
    """

    offsets: Ints
    column: NDArray[np.int32]
    noisy: Ints
    value: Ints
    total: Ints
    size: Ints
    sum: Ints
    least: Ints


class Cells(NamedTuple):
    """Measured cells of off-tree tables that hold children of some groups.

    The tables nest in chains. A row holds the cells (a', B) of all children a' of a group, for
    one B of one table. Rows stand chain after chain, in a chain the finest table first.

    Attributes:
        row: int64[chains, parents], row of each parent in the finest table of a chain.
        above: int64[rows], row of the next coarser table that holds it; -1 if there is none.
        is_finest: bool[rows].
        offsets: int64[rows + 1], slices of the next.
        measured: int64[cells], noisy.
        trust: float64[rows], variance of the children's noise over that of the measurement.
    """

    row: Ints
    above: Ints
    is_finest: NDArray[np.bool_]
    offsets: Ints
    measured: Ints
    trust: Floats


class Prices(NamedTuple):
    """Prices of the cells of each chain's finest table.

    Attributes:
        price: float64[cells].
        units: int64[cells], the same in units of 2^-16, rounded down.
        move: float64[cells], how far each was from where it should be, last time.
        pace: float64[cells], what part of that way it went.
    """

    price: Floats
    units: Ints
    move: Floats
    pace: Floats


class Sums(NamedTuple):
    """Sum and number of the positive children in every cell of a chain's finest table."""

    sum: Ints
    positive: Ints


def candidate_depth(sigma: float, *, is_hard: bool) -> int:
    """How far below the least count that survives without prices others may survive.

    Args:
        sigma: noise scale of the children.
        is_hard: whether sums have to agree with a total: its price goes further down, which
            makes room for lower counts.
    """
    return int(sigma * (2 if is_hard else 1))


def check_exact(largest: int, *, reach: float, total: Ints, size: Ints) -> None:
    """Refuse numbers that do not leave room for prices, or for sums of priced counts.

    Args:
        largest: the largest |noisy count|.
        reach: the largest price.
        total: int64[parents], their counts.
        size: int64[parents], numbers of their children.

    Raises:
        OptimizeError: something could overflow.
    """
    most = max(largest, math.ceil(HARD_REACH * reach))
    is_sum_too_large = most * int(size.max(initial=1)) > LARGEST_SUM
    if is_sum_too_large or max(most, int(total.max(initial=0))) > LARGEST:
        raise OptimizeError(
            "counts or their noise are too large for totals across the tree to be exact; leave "
            "these out (--across 0, across=0 in Python), use a larger epsilon or split the table "
            "into parts"
        )


def balance(
    candidates: Candidates, cells: Cells, *, reach: float, threads: int = 1, map_: Map = map
) -> None:
    """Write what is released into `candidates.value`.

    Args:
        candidates: of whole groups, in group order.
        cells: of these groups.
        reach: the largest price.
        threads: number of parts to divide the groups in; the result does not depend on it.
        map_: maps a function over these parts, on threads if there are several.
    """
    n_chains, n_parents = cells.row.shape
    n_cells = len(cells.measured)
    prices = Prices(
        np.zeros(n_cells), np.zeros(n_cells, np.int64), np.zeros(n_cells), np.full(n_cells, 0.5)
    )
    best, weight = np.empty(n_cells), np.empty(n_cells)
    parts = [Sums(np.empty(n_cells, np.int64), np.empty(n_cells, np.int64)) for _ in range(threads)]
    bounds = [n_parents * part // threads for part in range(threads + 1)]
    most = int(np.floor(reach * ONE))
    divisions = [
        partial(divide_kernel, *ends, candidates, cells, prices.units, most, sums)
        for ends, sums in zip(pairwise(bounds), parts, strict=True)
    ]
    solve = partial(solve_kernel, cells, parts[0], prices.price, best, weight)

    def divide_all() -> None:
        list(map_(lambda divide: divide(), divisions))
        for part in parts[1:]:
            parts[0].sum[:] += part.sum
            parts[0].positive[:] += part.positive

    n_passes = PASSES * n_chains
    for number in range(n_passes + (LAST_PASSES if np.isinf(cells.trust).any() else 0)):
        divide_all()
        solve()
        move_kernel(cells, best, reach, number >= n_passes, prices)
    divide_all()


@kernel
def divide_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    first: int,
    last: int,
    candidates: Candidates,
    cells: Cells,
    price: Ints,
    reach: int,
    sums: Sums,
) -> None:
    """Divide the counts of the parents first..last: IntOpt of noisy counts plus prices.

    Only candidates have prices, and only they can become positive.

    Args:
        first: first parent.
        last: one after the last.
        candidates: `value` is written.
        cells: as `Cells` says.
        price: int64[cells], in units of 2^-16.
        reach: the largest price of a candidate, likewise.
        sums: written.
    """
    offsets, column, _, value, total, size, sum_of_all, least = candidates
    sums.sum[:] = 0
    sums.positive[:] = 0
    for parent in range(first, last):
        start, stop = offsets[parent], offsets[parent + 1]
        x = value[start:stop]
        if stop - start == 1:
            x[0] = total[parent]
        else:
            added, largest = add_prices(parent, candidates, cells, price, reach)
            lift = ceil_div(total[parent] - sum_of_all[parent] - added, size[parent])
            lift, drop, floors = find_lift_and_drop(x, total[parent], lift, least[parent], largest)
            raise_largest(x, largest, lift, drop, total[parent] - floors)
        for chain in range(cells.row.shape[0]):
            first_cell = cells.offsets[cells.row[chain, parent]]
            for i in range(x.size):
                cell = first_cell + column[start + i]
                sums.sum[cell] += x[i]
                sums.positive[cell] += x[i] > 0


@inlined_kernel
def add_prices(
    parent: int, candidates: Candidates, cells: Cells, price: Ints, reach: int
) -> tuple[int, int]:
    """Write noisy counts plus prices into the value of a parent's candidates.

    Returns:
        By how much they rose, in whole counts, and the largest of them.
    """
    offsets, column, noisy, value = candidates[:4]
    start, stop = offsets[parent], offsets[parent + 1]
    row = cells.row[0, parent]
    first_cell, is_hard = cells.offsets[row], cells.trust[row] == HARD
    added, largest = 0, LOWEST
    if cells.row.shape[0] == 1 and not is_hard:
        for i in range(start, stop):
            value[i] = noisy[i] + min(max(price[first_cell + column[i]], -reach), reach)
            added += (value[i] >> DIGITS) - (noisy[i] >> DIGITS)
            largest = max(largest, value[i])
        return added, largest
    for i in range(start, stop):
        value[i] = price[first_cell + column[i]]
    for chain in range(1, cells.row.shape[0]):
        further_cell = cells.offsets[cells.row[chain, parent]]
        for i in range(start, stop):
            value[i] += price[further_cell + column[i]]
    for i in range(start, stop):
        lowest = min(-reach, price[first_cell + column[i]]) if is_hard else -reach
        value[i] = noisy[i] + min(max(value[i], lowest), reach)
        added += (value[i] >> DIGITS) - (noisy[i] >> DIGITS)
        largest = max(largest, value[i])
    return added, largest


@inlined_kernel
def find_lift_and_drop(
    x: Ints, total: int, lift: int, least: int, largest: int
) -> tuple[int, int, int]:
    """How far candidates may be raised, and how far they may fall: Algorithm 2 of the paper.

    Args:
        x: int64, counts in units of 2^-16.
        total: what the result sums to, positive.
        lift: as it follows from the sum of all children, candidates or not.
        least: the least noisy count of all children.
        largest: the largest of x.

    Returns:
        Both, and the sum of what candidates fall to.
    """
    count, ceilings = positive(x, lift)
    if ceilings < total:
        # Candidates alone are too few, so they are raised further: the least that is enough.
        # Either would do, the largest alone or all of them; raised by the lesser no sum overflows.
        lift = min(total - (largest >> DIGITS), ceil_div(total - sum_of_wholes(x), x.size))
        count, ceilings = positive(x, lift)
        while ceilings - total >= count:
            lift -= (ceilings - total) // count
            count, ceilings = positive(x, lift)
    drop = max(lift, -lift, -least)
    count, floors = positive(x, -drop)
    if floors > total:
        while floors > total:
            drop += ceil_div(floors - total, count)
            count, floors = positive(x, -drop)
        lift = 1 - drop
    return lift, drop, floors


@inlined_kernel
def raise_largest(x: Ints, largest: int, lift: int, drop: int, room: int) -> None:
    """Put all on their floors, max(0, x - drop), and raise the largest to their ceilings.

    These are max(0, x + lift); the last one is raised as far as there is room.

    Args:
        x: int64, counts in units of 2^-16; whole counts are written.
        largest: the largest of these.
        lift: how far ceilings lie above counts, in whole counts; negative if they lie below.
        drop: how far floors lie below counts, likewise; at least |lift|.
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
def positive(x: Ints, lift: int) -> tuple[int, int]:
    """Number and sum of the positive ones among the whole parts of x plus lift."""
    count = mass = 0
    for i in range(x.size):
        whole = (x[i] >> DIGITS) + lift
        if whole > 0:
            count += 1
            mass += whole
    return count, mass


@inlined_kernel
def sum_of_wholes(x: Ints) -> int:
    """Sum of the whole parts of x."""
    mass = 0
    for i in range(x.size):
        mass += x[i] >> DIGITS
    return mass


@kernel
def solve_kernel(cells: Cells, sums: Sums, price: Floats, best: Floats, weight: Floats) -> None:
    """The best prices for every chain, if sums were linear in them.

    If a price rises by 1, so do the n positive children of its cell. That makes a sum s + n p,
    with s = sum - n price. Least squares, with each child and each measurement weighted by its
    variance, are where p is the sum of trust * (measured - sum) over the cells of all
    tables of the chain that hold it. As the tables nest, one way up and one way down solve that.

    Args:
        cells: as `Cells` says.
        sums: of the finest cells.
        price: float64[cells], of the finest cells.
        best: float64[cells], written.
        weight: float64[cells], overwritten.
    """
    _, above, is_finest, offsets, measured, trust = cells
    n_chains = cells.row.shape[0]  # all of which move the same children
    best[:] = 0.0
    weight[:] = 0.0
    for row in range(above.size):
        for cell in range(offsets[row], offsets[row + 1]):
            if is_finest[row]:
                weight[cell] = max(1, sums.positive[cell])
                if trust[row] != HARD:
                    weight[cell] *= n_chains
                best[cell] = sums.sum[cell] - weight[cell] * price[cell]
            if above[row] >= 0:
                up = offsets[above[row]] + cell - offsets[row]
                share = weight[cell] / (1 + trust[row] * weight[cell])
                best[up] += best[cell] + share * trust[row] * (measured[cell] - best[cell])
                weight[up] += share
    for row in range(above.size - 1, -1, -1):
        for cell in range(offsets[row], offsets[row + 1]):
            missing = measured[cell] - best[cell]
            if trust[row] == HARD:
                best[cell] = missing / weight[cell]
                continue
            from_above = 0.0
            if above[row] >= 0:
                from_above = best[offsets[above[row]] + cell - offsets[row]]
            best[cell] = (from_above + trust[row] * missing) / (1 + trust[row] * weight[cell])


@kernel
def move_kernel(
    cells: Cells,
    best: Floats,
    reach: float,
    only_hard: bool,  # noqa: FBT001 - compiled code has no keyword-only arguments
    prices: Prices,
) -> None:
    """Move prices towards the best ones: slower after a change of direction, else faster.

    Args:
        cells: as `Cells` says.
        best: float64[cells].
        reach: the largest price.
        only_hard: whether only prices of hard totals move.
        prices: changed.
    """
    price, units, last_move, pace = prices
    for row in range(cells.above.size):
        is_hard = cells.trust[row] == HARD
        if not cells.is_finest[row] or (only_hard and not is_hard):
            continue
        lowest = -reach * HARD_REACH if is_hard else -reach
        for cell in range(cells.offsets[row], cells.offsets[row + 1]):
            move = best[cell] - price[cell]
            turned = move * last_move[cell] < 0
            pace[cell] = pace[cell] / 2 if turned else min(1.0, pace[cell] * 1.2)
            last_move[cell] = move
            price[cell] = min(max(price[cell] + pace[cell] * move, lowest), reach)
            units[cell] = np.int64(np.floor(price[cell] * ONE))


@kernel
def count_candidates_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    x: Ints,
    x_offsets: Ints,
    kept: NDArray[np.int32],
    kept_offsets: Ints,
    depth: int,
    sums: Ints,
    least: Ints,
    bound: Ints,
    offsets: Ints,
) -> int:
    """Find out which children may become positive, and what their siblings sum to.

    Args:
        x: int64, noisy counts of the children of all parents.
        x_offsets: int64[parents + 1], slices of x; empty for a parent with an only child.
        kept: int32, which children are positive without prices.
        kept_offsets: int64[parents + 1], slices of these.
        depth: how far below the least of those candidates may lie.
        sums: int64[parents], written: the sum of x.
        least: int64[parents], written: the least x.
        bound: int64[parents], written: candidates are not below.
        offsets: int64[parents + 1], written: slices of candidates.

    Returns:
        The largest |x|.
    """
    largest = 0
    offsets[0] = 0
    for parent in range(sums.size):
        first, last = x_offsets[parent], x_offsets[parent + 1]
        sums[parent] = least[parent] = bound[parent] = 0
        n = 1
        if last > first:
            n = total = 0
            smallest = x[first]
            for i in range(np.uint64(first), np.uint64(last)):
                total += x[i]
                smallest = min(smallest, x[i])
                largest = max(largest, x[i], -x[i])
            low = x[first + kept[kept_offsets[parent]]]
            for k in range(kept_offsets[parent], kept_offsets[parent + 1]):
                low = min(low, x[first + kept[k]])
            low -= depth
            for i in range(np.uint64(first), np.uint64(last)):
                n += x[i] >= low
            sums[parent], least[parent], bound[parent] = total, smallest, low
        offsets[parent + 1] = offsets[parent] + n
    return largest


@kernel
def write_candidates_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    x: Ints,
    x_offsets: Ints,
    bound: Ints,
    seeds: NDArray[np.uint64],
    offsets: Ints,
    column: NDArray[np.int32],
    noisy: Ints,
) -> None:
    """Write down the candidates with a random fraction, which decides between equal counts.

    Args:
        x: int64, noisy counts of the children of all parents.
        x_offsets: int64[parents + 1], slices of x; empty for a parent with an only child.
        bound: int64[parents], candidates are not below.
        seeds: uint64[parents], a fresh uniform word each.
        offsets: int64[parents + 1], slices of the next two.
        column: int32, written.
        noisy: int64, written.
    """
    for parent in range(bound.size):
        first = x_offsets[parent]
        at, end = offsets[parent], offsets[parent + 1]
        if x_offsets[parent + 1] == first:
            column[at] = noisy[at] = 0
            continue
        i = first
        while at < end:
            if x[i] >= bound[parent]:
                fraction = random_word(seeds[parent], i - first) >> np.uint64(64 - DIGITS)
                column[at] = i - first
                noisy[at] = (x[i] << DIGITS) + np.int64(fraction)
                at += 1
            i += 1


@kernel
def keep_positive_kernel(candidates: Candidates, offsets: Ints) -> None:
    """Move the positive candidates to the front.

    Args:
        candidates: `column` and `value` are overwritten.
        offsets: int64[parents + 1], written: slices of what is kept.
    """
    candidate_offsets, column, _, value = candidates[:4]
    n = 0
    offsets[0] = 0
    for parent in range(offsets.size - 1):
        for i in range(candidate_offsets[parent], candidate_offsets[parent + 1]):
            if value[i] > 0:
                value[n], column[n] = value[i], column[i]
                n += 1
        offsets[parent + 1] = n
