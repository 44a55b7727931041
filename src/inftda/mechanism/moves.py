"""Moves: what prices leave of a misfit, single trips even out.

Prices act on all small counts of a cell alike. Where several tables measure sums of the same
children, and where counts are small, some sums stay far from what was measured. So at last single
trips go from one child of a parent to another. A trip moves if that makes the whole misfit smaller:

    sum over measured cells of  weight * (misfit beyond the slack)^2
  + sum over children of        (how far a child is from what prices made of it)^2

and a child that is 0 costs in addition how far its noisy count is below the least that is released.

A child is raised to at most x + raise + C (1 - 1/b) and lowered to at least x - 2 B, in the words
of docs/proofs/across.md: within these bounds theorems 2 and 3 hold as they do without moves.

Privacy:
    Post-processing of noisy counts: needs no budget. It must never be given true counts.
    A group is settled as a whole, so the result does not depend on how the work is divided.
"""

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inftda.kernels import inlined_kernel, kernel
from inftda.mechanism.intopt import DIGITS, Candidates, Ints, ceil_div
from inftda.mechanism.prices import MeasuredCells, limits_of
from inftda.threads import Crew

#: Times that all parents are looked at, unless only one trip moves where so many did at first.
SWEEPS, FEW = 20, 20
#: Parents that are looked at one after the other; then come others, far away.
RUN: Final = 64
#: Moves within one parent at a time, each of one or more trips.
ATTEMPTS: Final = 4
#: Misfits below so many noise scales of the measurement are left as they are: where one chain of
#: tables was measured, and where several were.
SLACK, SLACK_OF_SEVERAL = 1.5, 0.5
#: A row binds if its measurement is so many times better than the sum of its noisy children: then
#: counts that are not negative are what makes a misfit, which noise is no excuse for.
BETTER: Final = 3.0
#: How much a row weighs that binds: a misfit of half a noise scale of the measurement weighs as
#: much as one noise scale of a child.
BINDING: Final = 2.0

Floats = NDArray[np.float64]


class Misfits(NamedTuple):
    """How far released children are from what was measured, for kernels.

    Attributes:
        sum: int64[cells], by how much they sum to more.
        weight: float64[rows], of a squared misfit.
        slack: float64[rows], misfit that does not count.
        before: int64[candidates], what prices made of each.
    """

    sum: Ints
    weight: Floats
    slack: Floats
    before: Ints


def settle(  # noqa: PLR0913 - what is moved, within which bounds
    candidates: Candidates,
    cells: MeasuredCells,
    groups: Ints,
    *,
    reach: float,
    crew: Crew,
    bounds: tuple[int, int] | None = None,
) -> None:
    """Move trips between the children of each parent.

    Args:
        candidates: divided; `value` is changed.
        cells: that hold them.
        groups: int64[groups + 1], slices of the parents.
        reach: noise scale of the children.
        crew: threads to work on; the result does not depend on how many.
        bounds: R and M, by default those of the prices of a release.
    """
    misfit = np.zeros(len(cells.measured), np.int64)
    add_up_kernel(candidates, cells, misfit)
    trust = (reach / cells.sigma) ** 2
    is_binding = trust * cells.n_parents >= BETTER
    weight = np.where(is_binding, BINDING * np.sqrt(trust), trust)
    slack = cells.sigma * (SLACK if len(cells.row) == 1 else SLACK_OF_SEVERAL)
    slack[np.isinf(cells.trust)] = 0.0  # sums have to agree
    if bounds is None:
        lowest, highest = limits_of(cells, reach)
        bounds = math.ceil(highest), math.ceil(-lowest)
    misfits = Misfits(misfit, weight, slack, candidates.value.copy())

    def work(part: tuple[int, int]) -> None:
        settle_kernel(part, groups, candidates, cells, misfits, bounds)

    crew.run(work, crew.parts(len(groups) - 1, 0))


@kernel
def add_up_kernel(candidates: Candidates, cells: MeasuredCells, misfit: Ints) -> None:
    """Write by how much released children sum to more than was measured, for every cell."""
    offsets, column, _, value = candidates[:4]
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
def settle_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    part: tuple[int, int],
    groups: Ints,
    candidates: Candidates,
    cells: MeasuredCells,
    misfits: Misfits,
    bounds: tuple[int, int],
) -> None:
    """Move trips in some groups until none moves; `candidates.value` and misfits change.

    Args:
        part: the first group, and the one after the last.
        groups: int64[groups + 1], slices of the parents.
        candidates: of all groups.
        cells: that hold them.
        misfits: of these.
        bounds: how far prices may raise and lower a count, in whole counts.
    """
    offsets = candidates.offsets
    most = 0
    for parent in range(groups[part[0]], groups[part[1]]):
        most = max(most, offsets[parent + 1] - offsets[parent])
    pull, cost = np.empty(most), np.empty(most)
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
                        n_moved += settle_parent(
                            parent, candidates, cells, misfits, bounds, pull, cost
                        )
            if sweep == 0:
                at_first = n_moved
            if n_moved * FEW <= at_first:
                break


@inlined_kernel
def spread_out(n: int) -> int:
    """A step by which all of n are visited in turn, at any time spread evenly over them."""
    step = max(1, int(0.618 * n))
    while True:
        a, b = n, step
        while b:
            a, b = b, a % b
        if a == 1:
            return step
        step += 1


@inlined_kernel
def settle_parent(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    parent: int,
    candidates: Candidates,
    cells: MeasuredCells,
    misfits: Misfits,
    bounds: tuple[int, int],
    pull: Floats,
    cost: Floats,
) -> int:
    """Move trips between the children of one parent; `pull` and `cost` are overwritten.

    Returns:
        How many.
    """
    offsets, column, noisy, value, total, size, sum_of_all = candidates[:7]
    before = misfits.before
    start, stop = offsets[parent], offsets[parent + 1]
    room = ceil_div(total[parent] - sum_of_all[parent], size[parent])
    room += (bounds[0] + bounds[1]) * (size[parent] - 1) // size[parent]
    deepest = 2 * max(bounds[0], bounds[1])
    weight, crowd = add_pulls(parent, column[start:stop], cells, misfits, pull)
    if not find_costs(candidates, start, stop, before, pull, 1 + weight, cost):
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
                misfits.sum[cells.offsets[row] + column[giver]] -= trips
                misfits.sum[cells.offsets[row] + column[taker]] += trips
                row = cells.above[row]
    return n_moved


@inlined_kernel
def add_pulls(
    parent: int, column: NDArray[np.int32], cells: MeasuredCells, misfits: Misfits, pull: Floats
) -> tuple[float, float]:
    """Write how much less each child of a parent should be, by all cells that hold it.

    Returns:
        The weights of the rows together: each once, and as often as there are parents in it.
    """
    misfit, weight, slack, _ = misfits
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
def find_costs(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    candidates: Candidates,
    start: int,
    stop: int,
    before: Ints,
    pull: Floats,
    enough: float,
    cost: Floats,
) -> bool:
    """Write how far each noisy count is below the least of those that are released.

    Returns:
        Whether some pulls are far enough apart for a trip to move; nothing is written if not.
    """
    lowest, highest, least = np.inf, -np.inf, np.inf
    for i in range(start, stop):
        here = pull[i - start] + candidates.value[i] - before[i]
        lowest, highest = min(lowest, here), max(highest, here)
        if before[i] > 0:
            least = min(least, candidates.noisy[i])
    if highest - lowest <= enough:
        return False
    for i in range(start, stop):
        cost[i - start] = max(0.0, least - candidates.noisy[i]) / (1 << DIGITS)
    return True
