"""Prices: noisy children lean towards what was measured across the tree.

A group of parents (all that share the area A being refined) is divided together. Off-tree
tables measure sums of their children: those of area a' below A over all parents, or over the
parents whose other area lies in B. If the released children of such a cell (a', B) sum to less
than was measured, a price is added to their noisy counts before they are optimised; if they
sum to more, it is subtracted:

    repeat: divide the count of every parent: IntOpt of noisy count + price
            sum up the children in every cell; move the prices towards the measurements

A price is at most one sigma, so no child's guaranteed error grows by more than two.

Privacy:
    Post-processing of noisy counts: needs no budget. It must never be given true counts.
    Sums are whole numbers, so the result does not depend on how the work is divided.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inftda.compiled import inlined_kernel, kernel
from inftda.optimize.selection import ceil_div, random_word

#: Passes for each chain of tables.
PASSES: Final = 8
#: How many of the last passes the final prices are the mean of.
LAST: Final = 3
#: Priced counts are whole numbers of 2^-16, so that a price of less than 1 counts too.
DIGITS: Final = 16
ONE: Final = 1 << DIGITS
#: Larger noisy counts cannot be given so many digits.
LARGEST: Final = 1 << (60 - DIGITS)

Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Candidates(NamedTuple):
    """Children of some parents that may become positive; all others stay 0.

    Attributes:
        offsets: int64[parents + 1], slices of the next three.
        column: int32, index of each among all children of its parent. The order in a slice is
            that of the priced counts, largest first.
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


class Sums(NamedTuple):
    """Sum and number of the positive children in every cell of a chain's finest table."""

    sum: Ints
    positive: Ints


def balance(
    candidates: Candidates,
    cells: Cells,
    *,
    reach: float,
    passes: int = PASSES,
    threads: int = 1,
    map_: Map = map,
) -> None:
    """Write what is released into `candidates.value`.

    Args:
        candidates: of whole groups, in group order.
        cells: of these groups.
        reach: the largest price.
        passes: how often prices are moved, for each chain.
        threads: how many parts of the groups are divided at a time.
        map_: where they are.
    """
    n_chains, n_parents = cells.row.shape
    price, mean, moved = (np.zeros(len(cells.measured)) for _ in range(3))
    pace = np.full(len(price), 0.5)
    expected, weight = np.empty(len(price)), np.empty(len(price))
    cuts = np.linspace(0, n_parents, threads + 1).astype(np.int64)
    parts = [(int(a), int(b)) for a, b in zip(cuts[:-1], cuts[1:], strict=True)]
    limit = int(reach * ONE)

    def divide(part: tuple[int, int], at: Floats) -> Sums:
        sums = Sums(np.zeros(len(price), np.int64), np.zeros(len(price), np.int64))
        divide_kernel(*part, candidates, cells.row, cells.offsets, at, limit, sums)
        return sums

    passes *= n_chains
    for number in range(passes):
        done = list(map_(lambda part: divide(part, price), parts))
        sums = Sums(*(sum(arrays) for arrays in zip(*done, strict=True))) if threads > 1 else done[0]
        solve_kernel(cells, sums, n_chains, price, expected, weight)
        move_kernel(cells, expected, reach, price, moved, pace)
        if number >= passes - LAST:
            mean += price / LAST
    list(map_(lambda part: divide(part, mean), parts))


@kernel
def divide_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    first: int,
    last: int,
    candidates: Candidates,
    rows: Ints,
    row_offsets: Ints,
    price: Floats,
    limit: int,
    sums: Sums,
) -> None:
    """Divide the counts of the parents first..last: IntOpt of noisy counts plus prices.

    Only candidates are priced, and only they can become positive.

    Args:
        first: first parent.
        last: one after the last.
        candidates: sorted within each parent; `value` is written.
        rows: int64[chains, parents], as in `Cells`.
        row_offsets: int64[rows + 1], likewise.
        price: float64[cells].
        limit: the largest price of a candidate, in units of 2^-16.
        sums: added to.
    """
    n_chains = rows.shape[0]
    offsets, column, noisy, value, total, size, sum_of_all, least = candidates
    for parent in range(first, last):
        start, stop = offsets[parent], offsets[parent + 1]
        # Until the end of this parent `value` holds priced counts.
        added = 0
        for i in range(start, stop):
            of_cells = 0.0
            for chain in range(n_chains):
                of_cells += price[row_offsets[rows[chain, parent]] + column[i]]
            shift = int(np.floor(min(max(of_cells * ONE, -limit), limit)))
            value[i] = noisy[i] + shift
            added += (value[i] >> DIGITS) - (noisy[i] >> DIGITS)
        sort_kernel(value, noisy, column, start, stop)
        for i in range(start, stop):
            value[i] >>= DIGITS
        lift = ceil_div(total[parent] - sum_of_all[parent] - added, size[parent])
        raise_to_total(value, start, stop, total[parent], lift, least[parent])
        for i in range(start, stop):
            if value[i] > 0:
                for chain in range(n_chains):
                    cell = row_offsets[rows[chain, parent]] + column[i]
                    sums.sum[cell] += value[i]
                    sums.positive[cell] += 1


@inlined_kernel
def raise_to_total(value: Ints, start: int, stop: int, total: int, lift: int, least: int) -> None:
    """IntOpt of value[start:stop], sorted from the largest, in place.

    Every element is put on its floor, max(0, x - drop); then they are raised to their ceilings,
    max(0, x + lift), from the largest on, until the sum is `total`.

    Args:
        value: int64 buffer.
        start: first element.
        stop: one after the last.
        total: what the result sums to, positive.
        lift: of all children, candidates or not.
        least: the least noisy count of all children.
    """
    # Candidates alone may be too few: then they are lifted further.
    count, ceilings = positive(value, start, stop, lift)
    while ceilings < total:
        lift += ceil_div(total - ceilings, count) if count > 0 else 1 - lift - value[start]
        count, ceilings = positive(value, start, stop, lift)
    drop = max(lift, -lift, -least)
    count, floors = positive(value, start, stop, -drop)
    if floors > total:
        while floors > total:
            drop += ceil_div(floors - total, count)
            count, floors = positive(value, start, stop, -drop)
        lift = 1 - drop
    room = total - floors
    for i in range(start, stop):
        floor = max(0, value[i] - drop)
        more = min(room, max(0, value[i] + lift) - floor)
        value[i] = floor + more
        room -= more


@inlined_kernel
def positive(value: Ints, start: int, stop: int, lift: int) -> tuple[int, int]:
    """Number and sum of the positive ones among value + lift, sorted from the largest."""
    count = mass = 0
    for i in range(start, stop):
        if value[i] + lift <= 0:
            break
        count += 1
        mass += value[i] + lift
    return count, mass


@inlined_kernel
def sort_kernel(key: Ints, other: Ints, column: NDArray[np.int32], start: int, stop: int) -> None:
    """Sort key[start:stop] from the largest, and two more arrays with it.

    By insertion, first at some distance (Shell's sort): from one pass to the next little
    changes, and then a look at the neighbours is enough.
    """
    gap = 1
    n_wrong = 0
    for i in range(start + 1, stop):
        n_wrong += key[i] > key[i - 1]
    while n_wrong > 8 and gap < (stop - start) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(start + gap, stop):
            k, o, c = key[i], other[i], column[i]
            j = i
            while j >= start + gap and key[j - gap] < k:
                key[j], other[j], column[j] = key[j - gap], other[j - gap], column[j - gap]
                j -= gap
            key[j], other[j], column[j] = k, o, c
        gap //= 3


@kernel
def solve_kernel(
    cells: Cells, sums: Sums, n_chains: int, price: Floats, expected: Floats, weight: Floats
) -> None:
    """The prices that fit all measurements of a chain best, were the sums linear in them.

    If a price rises by 1, each of the n positive children of its cell does. So a sum is S + n (p -
    price), and the best p (weighted least squares, at one variance of noise a child) is the sum
    of trust * (measured - sum) over the cells of all tables of the chain that hold the child.
    Tables of a chain nest, so one way up and one way down solve it.

    Args:
        cells: as `Cells` says.
        sums: of the finest cells.
        n_chains: how many chains move the same children.
        price: float64[cells], of the finest cells.
        expected: float64[cells], written: the best prices.
        weight: float64[cells], overwritten.
    """
    _, above, is_finest, offsets, measured, trust = cells
    expected[:] = 0.0
    weight[:] = 0.0
    for row in range(above.size):
        k = trust[row]
        for cell in range(offsets[row], offsets[row + 1]):
            if is_finest[row]:
                weight[cell] = n_chains * max(1, sums.positive[cell])
                expected[cell] = sums.sum[cell] - weight[cell] * price[cell]
            if above[row] >= 0:
                up = offsets[above[row]] + cell - offsets[row]
                share = weight[cell] / (1 + k * weight[cell])
                expected[up] += expected[cell] + share * k * (measured[cell] - expected[cell])
                weight[up] += share
    for row in range(above.size - 1, -1, -1):
        k = trust[row]
        for cell in range(offsets[row], offsets[row + 1]):
            from_above = 0.0
            if above[row] >= 0:
                from_above = expected[offsets[above[row]] + cell - offsets[row]]
            expected[cell] = (from_above + k * (measured[cell] - expected[cell])) / (
                1 + k * weight[cell]
            )


@kernel
def move_kernel(
    cells: Cells, expected: Floats, reach: float, price: Floats, moved: Floats, pace: Floats
) -> None:
    """Move prices towards the expected ones: slower after a change of direction, then faster.

    Args:
        cells: as `Cells` says.
        expected: float64[cells], where to.
        reach: the largest price.
        price: float64[cells], moved.
        moved: float64[cells], the last move of each; overwritten.
        pace: float64[cells], how far each goes; changed.
    """
    for row in range(cells.above.size):
        if not cells.is_finest[row]:
            continue
        for cell in range(cells.offsets[row], cells.offsets[row + 1]):
            move = expected[cell] - price[cell]
            pace[cell] = pace[cell] / 2 if move * moved[cell] < 0 else min(1.0, pace[cell] * 1.2)
            moved[cell] = move
            price[cell] = min(max(price[cell] + pace[cell] * move, -reach), reach)


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
) -> bool:
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
        Whether a count is too large.
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
    return largest > LARGEST


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
    """Move the positive candidates to the front, in the order of their columns.

    Args:
        candidates: `column` and `value` are overwritten.
        offsets: int64[parents + 1], written: slices of what is kept.
    """
    starts, column, spare, value = candidates[:4]
    n = 0
    offsets[0] = 0
    for parent in range(offsets.size - 1):
        first = n
        for i in range(starts[parent], starts[parent + 1]):
            if value[i] > 0:
                value[n], column[n], spare[n] = value[i], column[i], -np.int64(column[i])
                n += 1
        sort_kernel(spare, value, column, first, n)
        offsets[parent + 1] = n
