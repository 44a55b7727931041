"""Local search: move single counts between siblings to reduce the misfit with cross tables.

Dual variables act on all small counts of a cell alike. Where several tables measure sums of the
same children, and where counts are small, some sums remain far from their measurement. The local
search then moves single counts from one child of a parent to another wherever this reduces

    sum over measured cells of  weight * (misfit beyond the slack)^2
  + sum over children of        (distance of a child from its count before the search)^2

A child that is 0 has an additional cost: the distance of its noisy count from the least released
one.

In the notation of docs/proofs/cross-tables.md, a child is raised to at most x + raise + C (1 - 1/b)
and lowered to at least x - 2 B. Within these bounds theorems 2 and 3 hold as without local search.

Privacy:
    Post-processing of noisy counts: needs no budget. It must never be given true counts.
    A group is searched as a whole, so the result does not depend on how the work is divided.
"""

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inftda.mechanism.adjustment import MeasuredCells, limits_of
from inftda.mechanism.intopt import DIGITS, Candidates, Ints, ceil_div
from inftda.util.kernels import inlined_kernel, kernel
from inftda.util.threads import ThreadPool

#: Passes over all parents, unless only one count moves where so many did in the first pass.
SWEEPS, FEW = 20, 20
#: Consecutive parents that are visited one after the other, before distant ones.
RUN: Final = 64
#: Moves within one parent per visit, each of one or more counts.
ATTEMPTS: Final = 4
#: Misfits below so many noise scales of the measurement do not count: with one chain of tables, and
#: with several.
SLACK, SLACK_OF_SEVERAL = 1.5, 0.5
#: A row binds if the variance of the sum of its noisy children is so many times that of its
#: measurement: its misfit is then due to counts being non-negative, and not to noise.
BETTER: Final = 3.0
#: Weight of a row that binds: a misfit of half a noise scale of the measurement weighs as much as
#: one noise scale of a child.
BINDING: Final = 2.0

Floats = NDArray[np.float64]


class Search(NamedTuple):
    """State of a local search, for kernels.

    Attributes:
        misfit: int64[cells], sum of the released children minus the measurement.
        weight: float64[rows], weight of a squared misfit.
        slack: float64[rows], misfit that does not count.
        before: int64[candidates], counts before the search.
        value: int64[candidates], counts as they are.
        up: how far a count may be raised.
        down: how far it may be lowered.
    """

    misfit: Ints
    weight: Floats
    slack: Floats
    before: Ints
    value: Ints
    up: int
    down: int


def local_search(  # noqa: PLR0913 - what is moved, and what it should agree with
    candidates: Candidates,
    value: Ints,
    cells: MeasuredCells,
    groups: Ints,
    *,
    sigma: float,
    pool: ThreadPool,
    bounds: tuple[int, int] | None = None,
) -> Ints:
    """int64: the counts after some were moved between the children of each parent.

    Args:
        candidates: the divided children.
        value: int64, their counts.
        cells: measured cells of the same groups.
        groups: int64[groups + 1], slices of the parents.
        sigma: noise scale of the children.
        pool: threads to work on; the result does not depend on their number.
        bounds: how far a count may be raised and lowered; by default as far as by dual variables.
    """
    misfit = np.zeros(len(cells.measured), np.int64)
    add_up_kernel(candidates, value, cells, misfit)
    ratio = (sigma / cells.sigma) ** 2
    is_binding = ratio * cells.n_parents >= BETTER
    weight = np.where(is_binding, BINDING * np.sqrt(ratio), ratio)
    slack = cells.sigma * (SLACK if len(cells.row) == 1 else SLACK_OF_SEVERAL)
    slack[np.isinf(cells.ratio)] = 0.0  # sums have to agree
    if bounds is None:
        lowest, highest = limits_of(cells, sigma)
        bounds = math.ceil(highest), math.ceil(-lowest)
    search = Search(misfit, weight, slack, value, value.copy(), *bounds)

    def work(part: tuple[int, int]) -> None:
        search_kernel(part, groups, candidates, cells, search)

    pool.run(work, pool.parts(len(groups) - 1, 0))
    return search.value


@kernel
def add_up_kernel(candidates: Candidates, value: Ints, cells: MeasuredCells, misfit: Ints) -> None:
    """Write for every cell the sum of the released children minus the measurement."""
    offsets, column = candidates[:2]
    for chain in range(cells.row.shape[0]):
        for parent in range(offsets.size - 1):
            first = cells.offsets[cells.row[chain, parent]]
            for i in range(offsets[parent], offsets[parent + 1]):
                misfit[first + column[i]] += value[i]
    for row in range(cells.above.size):
        first, above = cells.offsets[row], cells.above[row]
        for cell in range(first, cells.offsets[row + 1]):
            if above >= 0:
                misfit[cells.offsets[above] + cell - first] += misfit[cell]
            misfit[cell] -= cells.measured[cell]


@kernel
def search_kernel(
    part: tuple[int, int],
    groups: Ints,
    candidates: Candidates,
    cells: MeasuredCells,
    search: Search,
) -> None:
    """Move counts in some groups until none moves.

    Args:
        part: the first group, and the one after the last.
        groups: int64[groups + 1], slices of the parents.
        candidates: candidates of all groups.
        cells: measured cells of these groups.
        search: values and misfits change.
    """
    offsets = candidates.offsets
    most = 0
    for parent in range(groups[part[0]], groups[part[1]]):
        most = max(most, offsets[parent + 1] - offsets[parent])
    buffers = np.empty((2, most))
    for group in range(part[0], part[1]):
        first, last = groups[group], groups[group + 1]
        n_runs = (last - first + RUN - 1) // RUN
        stride = spread_out(n_runs)
        at_first = 0
        for sweep in range(SWEEPS):
            n_moved, run = 0, 0
            for _ in range(n_runs):
                run = (run + stride) % n_runs
                for parent in range(first + run * RUN, min(first + (run + 1) * RUN, last)):
                    if offsets[parent + 1] - offsets[parent] > 1:
                        n_moved += search_parent(parent, candidates, cells, search, buffers)
            if sweep == 0:
                at_first = n_moved
            if n_moved * FEW <= at_first:
                break


@inlined_kernel
def spread_out(n: int) -> int:
    """Choose a stride that visits all of n items and stays evenly spread over them at any time."""
    step = max(1, int(0.618 * n))
    while True:
        a, b = n, step
        while b:
            a, b = b, a % b
        if a == 1:
            return step
        step += 1


@inlined_kernel
def search_parent(
    parent: int, candidates: Candidates, cells: MeasuredCells, search: Search, buffers: Floats
) -> int:
    """Move counts between the children of one parent; the two buffers are overwritten.

    Returns:
        The number of counts that moved.
    """
    offsets, column, noisy, total, size, sum_of_all = candidates[:6]
    misfit, before, value, pull, cost = (
        search.misfit, search.before, search.value, buffers[0], buffers[1]
    )  # fmt: skip
    start, stop = offsets[parent], offsets[parent + 1]
    room = ceil_div(total[parent] - sum_of_all[parent], size[parent])
    room += (search.up + search.down) * (size[parent] - 1) // size[parent]
    deepest = 2 * max(search.up, search.down)
    weight, crowd = add_pulls(parent, column[start:stop], cells, search, pull)
    if not find_costs(parent, candidates, search, 1 + weight, buffers):
        return 0
    n_moved = 0
    for _ in range(ATTEMPTS):
        giver, taker, most, least = -1, -1, -np.inf, np.inf
        for i in range(start, stop):
            x, y = noisy[i] >> DIGITS, value[i]
            here = pull[i - start] + y - before[i]
            if here > most and y > max(0, x - deepest):
                most, giver = here, i
            if y == 0:
                here += cost[i - start]
            if here < least and y < x + room:
                least, taker = here, i
        if giver < 0 or taker < 0 or most - least <= 1 + weight:
            break
        trips = max(1, int((most - least) / (2 * (1 + crowd))))
        trips = min(trips, value[giver] - max(0, (noisy[giver] >> DIGITS) - deepest))
        trips = min(trips, (noisy[taker] >> DIGITS) + room - value[taker])
        n_moved += trips
        value[giver] -= trips
        value[taker] += trips
        pull[giver - start] -= trips * weight
        pull[taker - start] += trips * weight
        for chain in range(cells.row.shape[0]):
            row = cells.row[chain, parent]
            while row >= 0:
                misfit[cells.offsets[row] + column[giver]] -= trips
                misfit[cells.offsets[row] + column[taker]] += trips
                row = cells.above[row]
    return n_moved


@inlined_kernel
def add_pulls(
    parent: int, column: NDArray[np.int32], cells: MeasuredCells, search: Search, pull: Floats
) -> tuple[float, float]:
    """Write how much lower each child of a parent should be, by all cells that contain it.

    Returns:
        Sum of the weights of the rows, and the same sum with each weight times the row's parents.
    """
    misfit, weight, slack = search[:3]
    whole, crowd = 0.0, 0.0
    for i in range(column.size):
        pull[i] = 0.0
    for chain in range(cells.row.shape[0]):
        row = cells.row[chain, parent]
        while row >= 0:
            whole += weight[row]
            crowd += weight[row] * cells.n_parents[row]
            for i in range(column.size):
                here = misfit[cells.offsets[row] + column[i]]
                pull[i] += weight[row] * (max(here - slack[row], 0.0) + min(here + slack[row], 0.0))
            row = cells.above[row]
    return whole, crowd


@inlined_kernel
def find_costs(
    parent: int, candidates: Candidates, search: Search, enough: float, buffers: Floats
) -> bool:
    """Write how far each noisy count is below the least one that is released.

    Returns:
        Whether some pulls differ enough for a count to move; nothing is written if not.
    """
    start, stop = candidates.offsets[parent], candidates.offsets[parent + 1]
    before, pull, cost = search.before, buffers[0], buffers[1]
    lowest, highest, least = np.inf, -np.inf, np.inf
    for i in range(start, stop):
        here = pull[i - start] + search.value[i] - before[i]
        lowest, highest = min(lowest, here), max(highest, here)
        if before[i] > 0:
            least = min(least, candidates.noisy[i])
    if highest - lowest <= enough:
        return False
    for i in range(start, stop):
        cost[i - start] = max(0.0, least - candidates.noisy[i]) / (1 << DIGITS)
    return True
