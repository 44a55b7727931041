"""Prices: noisy children lean towards what was measured off the tree.

A group of parents (all that share the area A being refined) is divided together. Off-tree
tables measure sums of their children: those of area a' below A over all parents, or over the
parents whose other area lies in B. If the released children of such a cell (a', B) sum to less
than was measured, a price is added to their noisy counts before they are optimised; if they
sum to more, it is subtracted:

    repeat: divide the count of every parent: IntOpt of noisy count + price
            sum up the children in every cell; move the prices of one chain of tables towards
            the measurements

What prices leave, single trips even out (`inftda.mechanism.moves`). How much a child's guaranteed
error grows by all this is theorem 4 of docs/proofs/across.md. In the words of optimisation these
are dual prices of the measured cells.

Privacy:
    Post-processing of noisy counts: needs no budget. It must never be given true counts.
    Sums are whole numbers, so the result does not depend on how the work is divided.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inftda.kernels import inlined_kernel, kernel
from inftda.mechanism.intopt import (
    DIGITS,
    LOWEST,
    Candidates,
    Ints,
    ceil_div,
    find_lift_and_drop,
    raise_largest,
)
from inftda.threads import Crew
from inftda.tree import HARD_REACH, OffTree, TreeLevel, chains

if TYPE_CHECKING:
    from inftda.mechanism.step import Nodes

#: Passes for each chain of tables: two more make totals 1 % better and releases an eighth slower.
PASSES: Final = 6
#: Trust in a hard total: whatever its noise, sums agree with it.
HARD: Final = np.inf
ONE: Final = 1 << DIGITS

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TableRows:
    """Rows of one table that hold parents of some groups: a group and one area across each.

    Attributes:
        axis: the axis across; that of the groups for a one-way table, which has no other.
        ancestor: int32, the area across of each area that a parent may have on that axis.
        group: int64[rows].
        across: int32[rows], the area across.
        of_parents: int64[parents], the row that holds each.
        of_cells: int64[groups, areas across], the row of each; -1 if no parent is there.
    """

    axis: int
    ancestor: NDArray[np.int32]
    group: Ints
    across: NDArray[np.int32]
    of_parents: Ints
    of_cells: Ints


@dataclass(frozen=True)
class Groups:
    """Some whole groups of parents.

    Attributes:
        level: the level of the children.
        parents: all parents of the groups, in group order.
        area: int32[groups], the area that each refines.
        of_parents: int64[parents], the group of each.
    """

    level: TreeLevel
    parents: "Nodes"
    area: NDArray[np.int32]
    of_parents: Ints

    @classmethod
    def of(cls, level: TreeLevel, parents: "Nodes") -> "Groups":
        """The groups of some parents in group order."""
        refined = parents.areas[level.axis]
        is_first = np.diff(refined, prepend=-1) != 0
        return cls(level, parents, refined[is_first], np.cumsum(is_first) - 1)

    @property
    def n_parents(self) -> Ints:
        """int64[groups]: parents of each."""
        return np.bincount(self.of_parents, minlength=len(self.area)).astype(np.int64)

    @property
    def offsets(self) -> Ints:
        """int64[groups + 1]: slices of the parents."""
        return np.concatenate([[0], np.cumsum(self.n_parents)])

    @property
    def n_children(self) -> Ints:
        """int64[groups]: children of the area of each."""
        return self.level.n_children[self.area]

    def rows(self, table: OffTree) -> TableRows:
        """Rows of a table that hold a parent."""
        axis = self.level.axis if table.across is None else table.across
        hierarchy = self.level.axes[axis].hierarchy
        depth = 0 if table.across is None else table.depths[axis]
        ancestor = hierarchy.ancestor(self.level.parent_depths[axis], depth)
        n = hierarchy.n_areas(depth)
        cell = self.of_parents * n + ancestor[self.parents.areas[axis]]
        row_of = np.full(len(self.area) * n, -1)
        row_of[cell] = 0
        found = np.flatnonzero(row_of == 0)
        row_of[found] = np.arange(len(found))
        group, across = found // n, (found % n).astype(np.int32)
        return TableRows(axis, ancestor, group, across, row_of[cell], row_of.reshape(-1, n))

    def areas_of(self, table: OffTree) -> tuple[NDArray[np.int32], ...]:
        """int32[rows] for each axis: rows of a two-way table, refined areas at the level above."""
        rows = self.rows(table)
        areas = [np.zeros(len(rows.group), np.int32) for _ in self.level.axes]
        areas[self.level.axis], areas[rows.axis] = self.area[rows.group], rows.across
        return tuple(areas)

    def totals(self, totals: Ints) -> Ints:
        """Those of a one-way table that belong to children of the groups."""
        sizes = self.n_children
        shift = self.level.child_offsets[self.area] - (np.cumsum(sizes) - sizes)
        found: Ints = totals[np.repeat(shift, sizes) + np.arange(sizes.sum())]
        return found

    def possible(self, table: OffTree, rows: TableRows) -> NDArray[np.bool_] | None:
        """bool[cells]: which cells of a table, row by row, can occur; None if all can."""
        if table.impossible is None:
            return None
        sizes = self.n_children[rows.group]
        first = self.level.child_offsets[self.area[rows.group]] - (np.cumsum(sizes) - sizes)
        areas = [np.zeros(sizes.sum(), np.int32) for _ in self.level.axes]
        areas[rows.axis] = np.repeat(rows.across, sizes)
        areas[self.level.axis] = (np.repeat(first, sizes) + np.arange(sizes.sum())).astype(np.int32)
        return table.is_possible(areas)

    def agreed(self, table: OffTree, rows: TableRows, measured: Ints) -> Ints:
        """Measured cells, shifted equally in each row to sum to the counts of its parents.

        What all cells of a row have too much or too little no price can move. Cells that cannot
        occur stay 0.
        """
        sizes = self.n_children[rows.group]
        # Sums of counts are far below 2^53, so they are exact as floats.
        released = np.bincount(rows.of_parents, self.parents.value, len(sizes)).astype(np.int64)
        starts = np.cumsum(sizes) - sizes
        too_much = np.add.reduceat(measured, starts) - released
        possible = self.possible(table, rows)
        n = sizes if possible is None else np.add.reduceat(possible, starts, dtype=np.int64)
        shift = np.repeat(too_much // np.maximum(n, 1), sizes)
        agreed: Ints = measured - (shift if possible is None else shift * possible)
        return agreed


class MeasuredCells(NamedTuple):
    """Measured cells of off-tree tables that hold children of some groups.

    The tables nest in chains. A row holds the cells (a', B) of all children a' of a group, for
    one B of one table. Rows stand chain after chain, in a chain the finest table first.

    Attributes:
        row: int64[chains, parents], row of each parent in the finest table of a chain.
        first: int64[chains + 1], slices of the rows.
        above: int64[rows], row of the next coarser table that holds it; -1 if there is none.
        is_finest: bool[rows].
        offsets: int64[rows + 1], slices of the next.
        measured: int64[cells], noisy, made to agree with what is divided.
        trust: float64[rows], variance of the children's noise over that of the measurement; `HARD`
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
    trust: Floats
    sigma: Floats
    n_parents: Ints

    @classmethod
    def of(  # noqa: PLR0913 - what was measured, and how well
        cls,
        groups: Groups,
        tables: Sequence[tuple[OffTree, float]],
        sigma: float,
        totals: Ints | None,
        two_way: Mapping[tuple[int, ...], Ints],
        *,
        is_hard: bool,
    ) -> "MeasuredCells":
        """Cells of all tables of a step that lie in some whole groups.

        Args:
            groups: the groups.
            tables: the tables, and the noise scale of each.
            sigma: noise scale of the children.
            totals: the one-way table among them, for all areas.
            two_way: depths of each other table to its noisy cells, row by row.
            is_hard: whether sums have to agree with the totals: they are a chain of their own.
        """
        scales = dict(tables)
        found = chains(list(scales))
        if is_hard:
            found = [part for part in (found[0][:1], found[0][1:], *found[1:]) if part]
        row: list[Ints] = []
        above: list[Ints] = []
        sizes, finest, measured, trusts, sigmas, n_parents = [], [], [], [], [], []
        n_rows, first = 0, [0]
        for chain in found:
            finer: TableRows | None = None
            for table in reversed(chain):
                rows, is_hard_here = groups.rows(table), is_hard and chain is found[0]
                n = len(rows.group)
                if finer is None:
                    row.append(rows.of_parents + n_rows)
                else:
                    above[-1][finer.of_parents] = rows.of_parents + n_rows
                if table.across is None and totals is not None:
                    cells = groups.agreed(table, rows, groups.totals(totals))
                    measured.append(np.maximum(cells, 0) if is_hard_here else cells)
                else:
                    measured.append(groups.agreed(table, rows, two_way[table.depths]))
                above.append(np.full(n, -1))
                sizes.append(groups.n_children[rows.group])
                finest.append(np.full(n, finer is None))
                trust = HARD if is_hard_here else (sigma / scales[table]) ** 2
                trusts.append(np.full(n, trust))
                sigmas.append(np.full(n, scales[table]))
                n_parents.append(np.bincount(rows.of_parents, minlength=n).astype(np.int64))
                n_rows, finer = n_rows + n, rows
            first.append(n_rows)
        offsets = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
        columns = (measured, trusts, sigmas, n_parents)
        return cls(
            np.stack(row), np.array(first), np.concatenate(above), np.concatenate(finest), offsets,
            *map(np.concatenate, columns),
        )  # fmt: skip


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


class CellSums(NamedTuple):
    """Sum and number of the positive children in every cell of a chain's finest table."""

    sum: Ints
    positive: Ints


def limits_of(cells: MeasuredCells, sigma: float) -> tuple[float, float]:
    """How far prices may lower and raise counts whose noise scale is sigma."""
    return -sigma * (HARD_REACH if np.isinf(cells.trust).any() else 1), sigma


def balance(candidates: Candidates, cells: MeasuredCells, *, reach: float, crew: Crew) -> None:
    """Write what is released into `candidates.value`.

    Args:
        candidates: of whole groups, in group order.
        cells: of these groups.
        reach: the largest price.
        crew: threads to divide on; the result does not depend on how many.
    """
    n_chains, n_parents = cells.row.shape
    n_cells = len(cells.measured)
    prices = Prices(
        np.zeros(n_cells), np.zeros(n_cells, np.int64), np.zeros(n_cells), np.full(n_cells, 0.5)
    )
    best, weight = np.empty(n_cells), np.empty(n_cells)
    parts = crew.parts(n_parents, 0)
    sums = [CellSums(*np.empty((2, n_cells), np.int64)) for _ in parts]
    lowest, highest = limits_of(cells, reach)
    limits = -int(np.floor(-lowest * ONE)), int(np.floor(highest * ONE))
    # Only the whole price of a count is limited: those of several chains may undo one another.
    apart = highest - lowest
    each = (lowest, highest) if n_chains == 1 else (-apart, apart)

    def divide(part: int) -> None:
        divide_kernel(*parts[part], candidates, cells, prices.units, limits, sums[part])

    def divide_all() -> None:
        crew.run(divide, range(len(parts)))
        for part in sums[1:]:
            sums[0].sum[:] += part.sum
            sums[0].positive[:] += part.positive

    for chain in list(range(n_chains)) * PASSES:
        divide_all()
        rows = cells.first[chain : chain + 2]
        solve_kernel(cells, rows, sums[0], prices.price, best, weight)
        move_kernel(cells, rows, best, each, prices)
    divide_all()


@kernel
def divide_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    first: int,
    last: int,
    candidates: Candidates,
    cells: MeasuredCells,
    price: Ints,
    limits: tuple[int, int],
    sums: CellSums,
) -> None:
    """Divide the counts of the parents first..last: IntOpt of noisy counts plus prices.

    Only candidates have prices, and only they can become positive. Their `value` is written, and
    `sums`. Prices, the lowest and the largest of them are in units of 2^-16.
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
            added, largest = add_prices(parent, candidates, cells, price, limits)
            lift = ceil_div(total[parent] - sum_of_all[parent] - added, size[parent])
            lift, drop, floors = find_lift_and_drop(
                x, DIGITS, total[parent], lift, least[parent], largest
            )
            raise_largest(x, largest, lift, drop, total[parent] - floors)
        for chain in range(cells.row.shape[0]):
            first_cell = cells.offsets[cells.row[chain, parent]]
            for i in range(x.size):
                cell = first_cell + column[start + i]
                sums.sum[cell] += x[i]
                sums.positive[cell] += x[i] > 0


@inlined_kernel
def add_prices(
    parent: int, candidates: Candidates, cells: MeasuredCells, price: Ints, limits: tuple[int, int]
) -> tuple[int, int]:
    """Write noisy counts plus prices into the value of a parent's candidates.

    Returns:
        By how much they rose, in whole counts, and the largest of them.
    """
    offsets, column, noisy, value = candidates[:4]
    start, stop = offsets[parent], offsets[parent + 1]
    first_cell = cells.offsets[cells.row[0, parent]]
    lowest, highest = limits
    added, largest = 0, LOWEST
    for i in range(start, stop):
        value[i] = price[first_cell + column[i]]
    for chain in range(1, cells.row.shape[0]):
        further_cell = cells.offsets[cells.row[chain, parent]]
        for i in range(start, stop):
            value[i] += price[further_cell + column[i]]
    for i in range(start, stop):
        value[i] = noisy[i] + min(max(value[i], lowest), highest)
        added += (value[i] >> DIGITS) - (noisy[i] >> DIGITS)
        largest = max(largest, value[i])
    return added, largest


@kernel
def solve_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    cells: MeasuredCells, rows: Ints, sums: CellSums, price: Floats, best: Floats, weight: Floats
) -> None:
    """The best prices for one chain, if sums were linear in them.

    If a price rises by 1, so do the n positive children of its cell. That makes a sum s + n p, with
    s = sum - n price. Least squares, with each child and each measurement weighted by its variance,
    are where p is the sum of trust * (measured - sum) over the cells of all tables of the chain
    that hold it. As the tables nest, one way up and one way down solve that.

    Args:
        cells: see there.
        rows: int64[2], those of the chain, from and to.
        sums: of the finest cells, as are prices.
        price: float64[cells].
        best: float64[cells], written.
        weight: float64[cells], overwritten.
    """
    above, is_finest, offsets, measured, trust = cells[2:7]
    first, last = rows
    best[offsets[first] : offsets[last]] = 0.0
    weight[offsets[first] : offsets[last]] = 0.0
    for row in range(first, last):
        for cell in range(offsets[row], offsets[row + 1]):
            if is_finest[row]:
                weight[cell] = max(1, sums.positive[cell])
                best[cell] = sums.sum[cell] - weight[cell] * price[cell]
            if above[row] >= 0:
                up = offsets[above[row]] + cell - offsets[row]
                share = weight[cell] / (1 + trust[row] * weight[cell])
                best[up] += best[cell] + share * trust[row] * (measured[cell] - best[cell])
                weight[up] += share
    for row in range(last - 1, first - 1, -1):
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
    cells: MeasuredCells, rows: Ints, best: Floats, limits: tuple[float, float], prices: Prices
) -> None:
    """Move prices of a chain towards the best ones: slower after a change of direction."""
    price, units, last_move, pace = prices
    for row in range(rows[0], rows[1]):
        if not cells.is_finest[row]:
            continue
        for cell in range(cells.offsets[row], cells.offsets[row + 1]):
            move = best[cell] - price[cell]
            turned = move * last_move[cell] < 0
            pace[cell] = pace[cell] / 2 if turned else min(1.0, pace[cell] * 1.2)
            last_move[cell] = move
            price[cell] = min(max(price[cell] + pace[cell] * move, limits[0]), limits[1])
            units[cell] = np.int64(np.floor(price[cell] * ONE))


@kernel
def bound_with_prices_kernel(candidates: Candidates, depth: int, bound: Ints) -> None:
    """Lower bounds to `depth` below the least count that survives without prices."""
    offsets, _, noisy, value = candidates[:4]
    for parent in range(bound.size):
        low = -LOWEST
        for i in range(offsets[parent], offsets[parent + 1]):
            if value[i] > 0:
                low = min(low, noisy[i] >> DIGITS)
        bound[parent] = low - depth


@kernel
def keep_positive_kernel(candidates: Candidates, offsets: Ints) -> None:
    """Move `column` and `value` of the positive candidates to the front; write their offsets."""
    candidate_offsets, column, _, value = candidates[:4]
    n = 0
    offsets[0] = 0
    for parent in range(offsets.size - 1):
        for i in range(candidate_offsets[parent], candidate_offsets[parent + 1]):
            if value[i] > 0:
                value[n], column[n] = value[i], column[i]
                n += 1
        offsets[parent + 1] = n
