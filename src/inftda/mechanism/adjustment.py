"""Adjust noisy counts to cross tables by dual variables (dual ascent).

A group of parents (all that share the area A being refined) is divided together. Cross tables
measure sums of their children: children of area a' below A, summed over all parents, or over the
parents whose other areas lie in B. Each such cell (a', B) has a dual variable, which is added to
the noisy counts of its children before they are optimised. It is positive where the released
children sum to less than was measured, and negative where they sum to more:

    repeat: divide the count of every parent: IntOpt of noisy count + dual variables
            sum up the children in every cell; move the dual variables of one chain of tables
            towards the measurements

A local search reduces the misfit that remains (`inftda.mechanism.local_search`). Theorem 4 of
docs/proofs/cross-tables.md bounds how much all this adds to a child's guaranteed error.

Privacy:
    Post-processing of noisy counts: needs no budget. It must never be given true counts.
    Sums are whole numbers, so the result does not depend on how the work is divided.
"""

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inftda.mechanism.data import Depths, MeasuredTable
from inftda.mechanism.intopt import (
    DIGITS,
    LOWEST,
    Candidates,
    Ints,
    ceil_div,
    find_lift_and_drop,
    raise_largest,
)
from inftda.tree import CellRows, Cells
from inftda.tree.cross_tables import HARD as HARD_LIMITS
from inftda.tree.cross_tables import SOFT, chains
from inftda.util.kernels import inlined_kernel, kernel
from inftda.util.threads import ThreadPool

#: Passes for each chain of tables: two more make totals 1 % better and releases an eighth slower.
PASSES: Final = 6
#: Ratio of a hard total: sums have to agree with it regardless of its noise.
HARD: Final = np.inf
ONE: Final = 1 << DIGITS

Floats = NDArray[np.float64]


class MeasuredCells(NamedTuple):
    """Measured cells of cross tables for the children of some groups.

    The tables nest in chains. A row holds the cells (a', B) of all children a' of a group, for
    one B of one table. Rows stand chain after chain, in a chain the finest table first.

    Attributes:
        row: int64[chains, parents], row of each parent in the finest table of a chain.
        first: int64[chains + 1], slices of the rows.
        above: int64[rows], row of the next coarser table that holds it; -1 if there is none.
        is_finest: bool[rows].
        offsets: int64[rows + 1], slices of `measured`.
        measured: int64[cells], noisy, shifted to agree with the total that is divided.
        ratio: float64[rows], variance of the children's noise over that of the measurement; `HARD`
            where sums have to agree.
        sigma: float64[rows], noise scale of the measurement.
        n_parents: int64[rows].
    """

    row: Ints
    first: Ints
    above: Ints
    is_finest: NDArray[np.bool_]
    offsets: Ints
    measured: Ints
    ratio: Floats
    sigma: Floats
    n_parents: Ints

    @classmethod
    def of(
        cls,
        parents: Cells,
        tables: Sequence[MeasuredTable],
        sigma: float,
        hard: Collection[Depths] = (),
    ) -> "MeasuredCells":
        """Collect the cells of all cross tables of a step for some whole groups.

        Args:
            parents: all parents of the groups, in group order.
            tables: the cross tables, with the rows that hold these parents.
            sigma: noise scale of the children.
            hard: tables that sums have to agree with; they form chains of their own.
        """
        measured = {one.depths: one for one in tables}
        found = chains([depths for depths in measured if depths in hard])
        found += chains([depths for depths in measured if depths not in hard])
        row: list[Ints] = []
        above: list[Ints] = []
        sizes, finest, goals, ratios, sigmas, n_parents = [], [], [], [], [], []
        n_rows, first = 0, [0]
        for chain in found:
            finer: CellRows | None = None
            for depths in reversed(chain):
                one = measured[depths]
                rows, scale, n = one.rows, one.measurement.noise.sigma, len(one.rows.sizes)
                if finer is None:
                    row.append(rows.of_parents + n_rows)
                else:
                    above[-1][finer.of_parents] = rows.of_parents + n_rows
                agreed = one.agreed(parents.value)
                goals.append(np.maximum(agreed, 0) if depths in hard else agreed)
                above.append(np.full(n, -1))
                sizes.append(rows.sizes)
                finest.append(np.full(n, finer is None))
                ratios.append(np.full(n, HARD if depths in hard else (sigma / scale) ** 2))
                sigmas.append(np.full(n, scale))
                n_parents.append(np.bincount(rows.of_parents, minlength=n).astype(np.int64))
                n_rows, finer = n_rows + n, rows
            first.append(n_rows)
        offsets = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
        columns = (goals, ratios, sigmas, n_parents)
        return cls(
            np.stack(row), np.array(first), np.concatenate(above), np.concatenate(finest), offsets,
            *map(np.concatenate, columns),
        )  # fmt: skip


class Duals(NamedTuple):
    """Dual variables of the cells of each chain's finest table.

    Attributes:
        dual: float64[cells].
        units: int64[cells], `dual` in units of 2^-16, rounded down.
        move: float64[cells], distance of each from its best value in the last round.
        pace: float64[cells], part of that distance that it moved.
    """

    dual: Floats
    units: Ints
    move: Floats
    pace: Floats


class Shifts(NamedTuple):
    """Dual variables as they are added to noisy counts, in units of 2^-16.

    Attributes:
        units: int64[cells], of each chain's finest table.
        lowest: limit of their sum for a count.
        highest: the other limit.
    """

    units: Ints
    lowest: int
    highest: int


class BalancedCounts(NamedTuple):
    """Released counts, and what they sum up to.

    Attributes:
        value: int64[candidates].
        sum: int64[cells], sum of the children in every cell of each chain's finest table.
        positive: int64[cells], number of those that are positive.
    """

    value: Ints
    sum: Ints
    positive: Ints


def limits_of(cells: MeasuredCells, sigma: float) -> tuple[float, float]:
    """Limits of the adjustment of counts with noise scale sigma: lowest and highest sum."""
    limits = HARD_LIMITS if np.isinf(cells.ratio).any() else SOFT
    return -sigma * limits.down, sigma * limits.up


def balance(
    candidates: Candidates, cells: MeasuredCells, *, sigma: float, pool: ThreadPool
) -> Ints:
    """int64: the released count of every candidate of whole groups, by dual ascent.

    Args:
        candidates: candidates of the groups, in group order.
        cells: measured cells of these groups.
        sigma: noise scale of the children, which limits the adjustment.
        pool: threads to divide on; the result does not depend on their number.
    """
    n_chains, n_parents = cells.row.shape
    n_cells = len(cells.measured)
    duals = Duals(
        np.zeros(n_cells), np.zeros(n_cells, np.int64), np.zeros(n_cells), np.full(n_cells, 0.5)
    )
    best, value = np.empty(n_cells), np.empty_like(candidates.noisy)
    parts = pool.parts(n_parents, 0)
    divided = [BalancedCounts(value, *np.empty((2, n_cells), np.int64)) for _ in parts]
    lowest, highest = limits_of(cells, sigma)
    shifts = Shifts(duals.units, -int(np.floor(-lowest * ONE)), int(np.floor(highest * ONE)))
    # Only the sum over chains is limited for each count: dual variables of chains may cancel out.
    apart = highest - lowest
    each = (lowest, highest) if n_chains == 1 else (-apart, apart)

    def divide(part: int) -> None:
        divide_kernel(parts[part], candidates, cells, shifts, divided[part])

    def divide_all() -> None:
        pool.run(divide, range(len(parts)))
        for part in divided[1:]:
            divided[0].sum[:] += part.sum
            divided[0].positive[:] += part.positive

    for chain in list(range(n_chains)) * PASSES:
        divide_all()
        rows = cells.first[chain : chain + 2]
        solve_kernel(cells, rows, divided[0], duals.dual, best)
        move_kernel(cells, rows, best, each, duals)
    divide_all()
    return value


@kernel
def divide_kernel(
    part: tuple[int, int],
    candidates: Candidates,
    cells: MeasuredCells,
    shifts: Shifts,
    divided: BalancedCounts,
) -> None:
    """Divide the counts of some parents: IntOpt of noisy counts plus dual variables.

    Only candidates are adjusted, and only they can become positive.

    Args:
        part: the first parent, and the one after the last.
        candidates: candidates of all parents.
        cells: measured cells of their groups.
        shifts: dual variables of these cells.
        divided: values of these parents are written, and sums over these parents alone.
    """
    offsets, column, _, total, size, sum_of_all, least = candidates
    value, sums, positive = divided
    sums[:] = 0
    positive[:] = 0
    for parent in range(part[0], part[1]):
        start, stop = offsets[parent], offsets[parent + 1]
        x = value[start:stop]
        if stop - start == 1:
            x[0] = total[parent]
        else:
            added, largest = add_duals(parent, candidates, cells, shifts, value)
            lift = ceil_div(total[parent] - sum_of_all[parent] - added, size[parent])
            lift, drop, floors = find_lift_and_drop(
                x, DIGITS, total[parent], lift, least[parent], largest
            )
            raise_largest(x, largest, lift, drop, total[parent] - floors)
        for chain in range(cells.row.shape[0]):
            first_cell = cells.offsets[cells.row[chain, parent]]
            for i in range(x.size):
                cell = first_cell + column[start + i]
                sums[cell] += x[i]
                positive[cell] += x[i] > 0


@inlined_kernel
def add_duals(
    parent: int, candidates: Candidates, cells: MeasuredCells, shifts: Shifts, value: Ints
) -> tuple[int, int]:
    """Write noisy counts plus dual variables into the values of a parent's candidates.

    Returns:
        How much the counts rose together, in whole counts, and the largest adjusted count.
    """
    offsets, column, noisy = candidates[:3]
    start, stop = offsets[parent], offsets[parent + 1]
    first_cell = cells.offsets[cells.row[0, parent]]
    dual, lowest, highest = shifts
    added, largest = 0, LOWEST
    for i in range(start, stop):
        value[i] = dual[first_cell + column[i]]
    for chain in range(1, cells.row.shape[0]):
        further_cell = cells.offsets[cells.row[chain, parent]]
        for i in range(start, stop):
            value[i] += dual[further_cell + column[i]]
    for i in range(start, stop):
        value[i] = noisy[i] + min(max(value[i], lowest), highest)
        added += (value[i] >> DIGITS) - (noisy[i] >> DIGITS)
        largest = max(largest, value[i])
    return added, largest


@kernel
def solve_kernel(
    cells: MeasuredCells, rows: Ints, divided: BalancedCounts, dual: Floats, best: Floats
) -> None:
    """Solve for the dual variables of one chain, as if sums were linear in them.

    If a dual variable rises by 1, so do the n positive children of its cell. Their sum is s + n p
    at a dual variable p, where s is the sum minus n times the present one. The least-squares
    solution, with each child and each measurement weighted by its variance, has p equal to the sum
    of ratio * (measured - sum) over the cells that contain it in all tables of the chain. The
    tables nest, so one pass up and one pass down the chain find it.

    Args:
        cells: measured cells of the groups.
        rows: int64[2], first and last (exclusive) row of the chain.
        divided: sums of the finest cells, to which the dual variables belong.
        dual: float64[cells].
        best: float64[cells], written.
    """
    above, is_finest, offsets, measured, ratio = cells[2:7]
    first, last = rows
    best[offsets[first] : offsets[last]] = 0.0
    weight = np.zeros(best.size)
    for row in range(first, last):
        for cell in range(offsets[row], offsets[row + 1]):
            if is_finest[row]:
                weight[cell] = max(1, divided.positive[cell])
                best[cell] = divided.sum[cell] - weight[cell] * dual[cell]
            if above[row] >= 0:
                up = offsets[above[row]] + cell - offsets[row]
                share = weight[cell] / (1 + ratio[row] * weight[cell])
                best[up] += best[cell] + share * ratio[row] * (measured[cell] - best[cell])
                weight[up] += share
    for row in range(last - 1, first - 1, -1):
        for cell in range(offsets[row], offsets[row + 1]):
            missing = measured[cell] - best[cell]
            if ratio[row] == HARD:
                best[cell] = missing / weight[cell]
                continue
            from_above = 0.0
            if above[row] >= 0:
                from_above = best[offsets[above[row]] + cell - offsets[row]]
            best[cell] = (from_above + ratio[row] * missing) / (1 + ratio[row] * weight[cell])


@kernel
def move_kernel(
    cells: MeasuredCells, rows: Ints, best: Floats, limits: tuple[float, float], duals: Duals
) -> None:
    """Move dual variables of a chain towards the solution; slower after a change of direction."""
    dual, units, last_move, pace = duals
    for row in range(rows[0], rows[1]):
        if not cells.is_finest[row]:
            continue
        for cell in range(cells.offsets[row], cells.offsets[row + 1]):
            move = best[cell] - dual[cell]
            turned = move * last_move[cell] < 0
            pace[cell] = pace[cell] / 2 if turned else min(1.0, pace[cell] * 1.2)
            last_move[cell] = move
            dual[cell] = min(max(dual[cell] + pace[cell] * move, limits[0]), limits[1])
            units[cell] = np.int64(np.floor(dual[cell] * ONE))


@kernel
def bound_with_duals_kernel(candidates: Candidates, value: Ints, depth: int, bound: Ints) -> None:
    """Lower bounds to `depth` below the least count that is positive without adjustment."""
    offsets, _, noisy = candidates[:3]
    for parent in range(bound.size):
        low = -LOWEST
        for i in range(offsets[parent], offsets[parent + 1]):
            if value[i] > 0:
                low = min(low, noisy[i] >> DIGITS)
        bound[parent] = low - depth
