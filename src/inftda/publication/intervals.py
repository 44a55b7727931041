"""Intervals of published numbers, computed from the measurements and stated as 95 %.

1. A number that is one measured cell of a level of the tree has the interval of
   `inftda.publication.empirical_bayes`.
2. A total that was measured has the interval of its noise: it is looked up by area and not selected
   by its size.
3. Any other number is a sum of cells: the coarsest cells that lie in it as a whole. Whether a cell
was measured depends only on the noise of coarser levels, so its measurement is the true count plus
independent noise of a known distribution; its children measure it a second time. So the noise of
the sum is known. If an answer has few sums by several axes, they are reconciled with measurements
of several of them together; otherwise a sum that a cross table measured with less noise is taken
from there.

The exception are cells that lie in a sum only in part and were not divided further. Rule 1 gives
them a mean, and the sum gets the share of it that published totals of areas imply, and published
numbers of the area itself on the last axis. Their true division is unknown, so the variance is the
largest that counts with these means can have: the whole cell in one place.

This is post-processing of the release. An interval depends only on the finest areas that a number
sums up, not on the levels and names in the query.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import pairwise, product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from inftda.noise.distribution import Noise
from inftda.noise.tails import Tail
from inftda.publication.agreement import level_sums
from inftda.publication.empirical_bayes import LARGEST, CellPosteriors, Deconvolution, deconvolution
from inftda.publication.measured import (
    Ends,
    Floats,
    Measurements,
    NoisyTable,
    find_rows,
    keys_of,
)
from inftda.tree import DESTINATION, ORIGIN, Areas, Ints, Marginal, Tree, TreeLevel
from inftda.tree.groupings import LEFT_OUT, MIXED, Grouping, groupings
from inftda.util.kernels import kernel

#: Limits between classes of expected size, in standard deviations of the noise.
_LIMITS: Final = tuple(math.exp(-6) * 8.0**number for number in range(1, 5))
_SIZES: Final = len(_LIMITS) + 1
#: Fewest cells of a class; a smaller one is joined with the next. Half as many within one area.
_LEAST_CELLS: Final = 400
#: Part of the noise of a sum outside of an interval that is stated as 95 %. It is larger than 5 %,
#: because intervals are extended to contain the published number.
_MISSED_SUM: Final = 0.06
#: Sums of more draws of Laplace noise than this are taken as normal.
_FEW: Final = 8
#: Largest number of sums by several axes that are reconciled with measurements of several of them.
_MOST_ROWS: Final = 1 << 16
#: Rows that are looked up at once; what is computed for them stays in the cache.
_BLOCK: Final = 1 << 16
#: Shares of additional dimensions may have a common error in all small cells: this part of the mean
#: is its standard deviation.
_SHARED_ERROR: Final = 0.5


class Intervals:
    """Intervals of the numbers of one release.

    Args:
        tree: axes and levels of the release.
        measured: the measurements, all of them or totals only.
        areas: int32[leaves] for each axis, of the released leaves.
        flow: int64[leaves].
        is_public: whether the overall total is public.
    """

    def __init__(
        self, tree: Tree, measured: Measurements, areas: Areas, flow: Ints, *, is_public: bool
    ) -> None:
        self._tree, self._measured, self._leaves = tree, measured, (areas, flow)
        self._total = int(flow.sum()) if is_public else None
        self._known = dict[tuple[int, ...], tuple[_Rows, _Sums]]()

    def of(self, depths: Sequence[int], areas: Areas, number: Ints) -> Ends:
        """Compute lower and upper ends of numbers for areas of one level of each axis.

        Args:
            depths: level of each axis, 0 where it is summed up.
            areas: int32[n] for each axis.
            number: int64[n], the published numbers; intervals contain them.
        """
        return self.of_groups(groupings(self._tree, self._named(depths)), areas, number)

    def _named(self, depths: Sequence[int]) -> dict[str, str]:
        axes = zip(self._tree.axes, depths, strict=True)
        return {axis.name: axis.hierarchy.level_name(depth) for axis, depth in axes if depth}

    def of_groups(self, asked: Sequence[Grouping], groups: Areas, number: Ints) -> Ends:
        """Compute lower and upper ends of rows of an answer.

        Args:
            asked: grouping of each axis.
            groups: int32[rows] for each axis, the groups of each row.
            number: int64[rows], the published numbers; intervals contain them.
        """
        if not len(number):
            return number, number
        rows, sums = _Rows(asked, groups), _Sums(len(number))
        self._find_cells(rows, sums)
        self._sum_up(rows, sums)
        self._take_better(rows, sums)
        low, high = sums.ends(number)
        single = np.flatnonzero((sums.source < 0) & (sums.n == 1))
        for cells in self._levels:  # the noise of the only cell selects its sum
            row = single[sums.level[single] == cells.level.index]
            least, most = cells.ends(sums.cell[row], number[row])
            low[row], high[row] = np.minimum(low[row], least), np.maximum(high[row], most)
        if self._total is not None:
            low[rows.is_all] = high[rows.is_all] = self._total
        return np.minimum(np.maximum(low, 0), number), np.maximum(high, number)

    def noise_share(self, level: TreeLevel) -> float:
        """Mean probability that a published number of a level is noise.

        A number is noise if the true number is below half a standard deviation of the noise, and so
        cannot be distinguished from 0. Only children, which were not measured, are left out.
        """
        cells = next((one for one in self._levels if one.level.index == level.index), None)
        if cells is None:
            return 0.0
        at = np.flatnonzero(cells.is_divided)
        noise = cells.posteriors.noise(cells.kind[at], cells.table.value[at])
        return float(noise.mean()) if len(at) else 0.0

    @cached_property
    def nodes(self) -> list[tuple[TreeLevel, Areas, Ints]]:
        """Published numbers of each level of the tree, from `level_sums`."""
        return list(level_sums(self._tree, *self._leaves))

    @cached_property
    def _levels(self) -> "list[_LevelCells]":
        """Measured levels of the tree, coarse to fine."""
        found = list[_LevelCells]()
        for (_, above, count), (level, own, _) in pairwise(self.nodes[::-1]):
            if level.index in self._measured.levels and not level.is_trivial:
                table, size = self._measured.level(level.index), count.astype(float)
                if found and found[-1].n_cells:
                    at = found[-1].find(above)
                    size = np.where(at >= 0, found[-1].means(at), size)
                found.append(_LevelCells.of(level, table, own, (above, size)))
        return found

    @cached_property
    def _moments(self) -> list[tuple[Floats, Floats]]:
        """Mean and variance of all cells of each level except the last, which is not divided."""
        found = list[tuple[Floats, Floats]]()
        for number, cells in enumerate(self._levels[:-1]):
            mean, variance = cells.posteriors.moments(cells.kind, cells.table.value)
            sigma2 = cells.table.noise.sigma**2
            above, above_variance = cells.parent, np.full(len(cells.parent), sigma2)
            if number and len(found[-1][0]):  # a level of only children has no measured cells
                at = self._levels[number - 1].find(cells.parent_areas)
                is_there = at >= 0
                above = np.where(is_there, found[-1][0][at], above)
                above_variance = np.where(is_there, found[-1][1][at], above_variance)
            # Means of siblings are moved towards their parent's, in proportion to their variances.
            off = above - cells.summed(mean)
            off /= np.maximum(cells.summed(variance) + above_variance, 1e-9)
            mean += variance * np.repeat(off, cells.sizes)
            found.append((np.maximum(mean, 0, out=mean), variance))
        return found

    @cached_property
    def _estimates(self) -> list[tuple[NDArray[Any], Floats]]:
        """Estimate and its variance for all cells of each level; one variance for the last level.

        The children of a divided cell measure it a second time. Whether it is divided depends on
        its noise, so all cells of a level have the same weight for their own measurement, and an
        undivided cell has its mean in place of children.
        """
        finer = self._levels[-1]
        found = [(finer.table.value, np.array([finer.table.noise.sigma**2]))]
        for cells, (mean, variance) in zip(self._levels[-2::-1], self._moments[::-1], strict=True):
            sums = [finer.summed(np.broadcast_to(of, finer.n_cells)) for of in found[-1]]
            at = cells.find(finer.parent_areas)
            below = np.stack([mean, variance])
            below[:, at[at >= 0]] = np.stack(sums)[:, at >= 0]
            has_two = ~cells.is_divided
            has_two[at[at >= 0]] = True
            sigma = cells.table.noise.sigma
            typical = sums[1].mean() if len(sums[1]) else 0.0
            own = np.where(has_two, typical / (typical + sigma**2), 1.0)
            spread = ((1 - own) ** 2) * below[1] + (own * sigma) ** 2
            spread += ~cells.is_divided * 2 * own * (1 - own) * sigma * np.sqrt(below[1])
            found.append((own * cells.table.value + (1 - own) * below[0], spread))
            finer = cells
        return found[::-1]

    @cached_property
    def _weights(self) -> list[Floats]:
        """float64[finest areas] for each axis: expected share of a cell in each area."""
        areas, flow = self._leaves
        return [
            1 + np.bincount(of, flow, axis.hierarchy.n_areas(axis.hierarchy.depth)).astype(float)
            for axis, of in zip(self._tree.axes, areas, strict=True)
        ]

    def _find_cells(self, rows: "_Rows", sums: "_Sums") -> None:
        """Fill in rows that are one cell of a level of the tree."""
        for cells in self._levels:
            row, areas = rows.alone(cells.level.depths)
            at = cells.find(areas)
            is_there = at >= 0
            sums.take_cells(row[is_there], cells, at[is_there])

    def _sum_up(self, rows: "_Rows", sums: "_Sums") -> None:
        """Fill in all other rows, except the overall total, with sums of cells of the tree."""
        rows = rows.part(np.flatnonzero(~sums.is_known & ~rows.is_all))
        if not len(rows.row) or not self._levels:
            return
        depths = rows.coarsest()
        is_left = np.ones(len(rows.row), bool)
        for at in np.unique(depths, axis=1).T.tolist():
            if not self._are_few(at):
                continue
            here = (depths == np.array(at)[:, None]).all(axis=0)
            is_left &= ~here
            one = rows.part(np.flatnonzero(here))
            every, parts = self._reconciled(tuple(at))
            _, areas = one.alone(at)
            sums.put(one.row, parts.part(every.find(areas)))
        left = rows.part(np.flatnonzero(is_left))
        if len(left.row):
            parts = self._tiled(left)
            if any(map(_is_further, left.asked)):
                parts.variance += (_SHARED_ERROR * parts.mean) ** 2
            sums.put(left.row, parts)

    def _are_few(self, depths: Sequence[int]) -> bool:
        """Whether numbers at these levels are sums by several axes, and few enough to reconcile."""
        if min(depths) < 0 or sum(depth > 0 for depth in depths) < 2:
            return False
        return Marginal(self._tree.axes, tuple(depths)).n_nodes <= _MOST_ROWS

    def _reconciled(self, depths: tuple[int, ...]) -> "tuple[_Rows, _Sums]":
        """All reconciled numbers at some levels, whichever of them are queried."""
        if depths not in self._known:
            asked = groupings(self._tree, self._named(depths))
            sizes = [len(axis.codes) for axis in asked]
            rows = _Rows(asked, tuple(np.indices(sizes, np.int32).reshape(len(sizes), -1)))
            parts = self._tiled(rows)
            self._divide_locally(rows, depths, parts)
            self._reconcile(rows, depths, parts)
            self._known[depths] = rows, parts
        return self._known[depths]

    def _tiled(self, rows: "_Rows") -> "_Sums":
        """Sum up cells of the tree to rows."""
        parts = _Sums(len(rows.row))
        for number, cells in enumerate(self._levels):
            undivided = cells.add_tiles(rows, parts, *self._estimates[number])
            if number < len(self._levels) - 1 and len(undivided):
                mean, variance = (of[undivided] for of in self._moments[number])
                areas = [of[undivided] for of in cells.table.areas]
                moments = np.stack([mean, variance + mean**2, mean**2])
                has_parts = rows.moments(cells.level.depths, areas, moments, self._weights)
                parts.add_undivided(has_parts)
        parts.is_known[:] = True
        return parts

    def _divide_locally(self, rows: "_Rows", depths: tuple[int, ...], parts: "_Sums") -> None:
        """Divide undivided cells like the published numbers beside them.

        Their shares on the last axis, such as modes, were those of its published totals. Where the
        published numbers of an area have other shares, so have its undivided cells.
        """
        axis = [of.name for of in self._tree.axes].index(self._tree.order[-1])
        if not _is_further(rows.asked[axis]):
            return
        published = np.zeros([len(of.codes) for of in rows.asked])
        areas, flow = Marginal(self._tree.axes, depths).sum_up(*self._leaves)
        published[areas] = flow
        others = tuple(number for number in range(len(depths)) if number != axis)
        expected = published.sum(axis, keepdims=True) * published.sum(others, keepdims=True)
        expected /= max(published.sum(), 1)
        mean, noise = (of.reshape(published.shape) for of in (parts.mean, parts.variance))
        noise = np.sqrt(noise) + 1e-9
        moved = mean * (published + noise) / (expected + noise)
        moved *= mean.sum(axis, keepdims=True) / np.maximum(moved.sum(axis, keepdims=True), 1e-9)
        parts.value += (moved - mean).ravel()
        parts.mean = moved.ravel()

    def _reconcile(self, rows: "_Rows", depths: tuple[int, ...], parts: "_Sums") -> None:
        """Reconcile sums with unselected measurements of several of them together.

        A measurement moves the sums in its cell in proportion to their variances. Sums that were
        moved together have errors in common, so a coarser measurement tells less about each; how
        much less is computed as if all sums had the same variance.
        """
        noise, shared = parts.variance.copy(), np.zeros(len(parts.n))
        if any(map(_is_further, rows.asked)):
            shared = _SHARED_ERROR * parts.mean
        hierarchies = [of.axis.hierarchy for of in rows.asked]
        sizes = [
            [of.n_areas(depth) for depth in range(finest + 1)]
            for of, finest in zip(hierarchies, depths, strict=True)
        ]
        components = _Components(sizes, float(noise.mean()))
        for table in self._unselected:
            if any(own < theirs for own, theirs in zip(depths, table.depths, strict=True)):
                continue
            cell, value = rows.cells_of(table, depths), table.value
            row, n = np.flatnonzero(cell >= 0), len(value)
            if not len(row):
                continue
            cell, sigma2 = cell[row], table.noise.sigma**2
            # Shares of an additional dimension have a common error, unless it is summed up
            # completely.
            shown = zip(rows.asked, table.depths, strict=True)
            is_shown = any(depth for one, depth in shown if _is_further(one))
            alike = np.bincount(cell, shared[row], n) * is_shown
            common = components.common(table.depths)
            apart = common * np.bincount(cell, noise[row], n) + sigma2
            whole = apart + alike**2
            off = value - np.bincount(cell, parts.value[row], n)
            part = ((common * noise[row]) + shared[row] * alike[cell]) / whole[cell]
            parts.value[row] += part * off[cell]
            noise[row] *= 1 - 2 * part * common
            noise[row] += part**2 * apart[cell]
            shared[row] -= part * alike[cell]
            weight = apart - sigma2
            moved = 1 - float(weight @ (sigma2 / whole)) / max(weight.sum(), 1e-9)
            components.move(table.depths, moved, sigma2)
        parts.variance = np.maximum(noise, 0) + shared**2

    @cached_property
    def _unselected(self) -> list[NoisyTable]:
        """Tables whose noise did not decide which cells are published, fine to coarse.

        These are the cross tables, and levels of the tree whose cells were all divided. Other cells
        of the tree were divided if they seemed large, so their noise is positive on average.
        """
        whole = {cells.level.index for cells in self._levels if cells.is_divided.all()}
        found = [
            table
            for table in self._measured.tables
            if not _is_below_root(table) or table.measurement.index in whole
        ]
        return sorted(found, key=lambda of: -len(of.value))

    def _take_better(self, rows: "_Rows", sums: "_Sums") -> None:
        """Replace sums that cross tables measured with less noise."""
        for table in self._measured.tables:
            if _is_below_root(table):
                continue
            row, at = rows.inside(table)
            if not len(row):
                continue
            parts, size = _Sums(len(sums.value)), np.zeros(len(sums.value))
            areas = tuple(of[at] for of in table.areas)
            leaves = rows.leaves(table.depths, areas)
            np.add.at(size, row, leaves)
            parts.add(row, table.value[at], table.noise)
            is_whole = size == rows.size
            parts.is_known = is_whole
            if sum(map(bool, table.depths)) < 2:  # totals, or the overall total
                cells = _TotalCells(table)
                is_one = is_whole[row] & (parts.n[row] == 1)
                parts.take_cells(row[is_one], cells, at[is_one])
            is_better = is_whole & (~sums.is_known | (parts.variance < sums.variance))
            sums.put(np.flatnonzero(is_better), parts.part(is_better))


class _Components:
    """Variance components of the errors of sums that are all alike.

    A component belongs to a level of each axis: the differences between areas of these levels
    inside the areas above. Errors that sums have in common are in the components of coarse levels.

    Args:
        sizes: for each axis, the number of areas of each level down to that of the sums.
        variance: of each sum, while no two of them have errors in common.
    """

    def __init__(self, sizes: Sequence[Sequence[int]], variance: float) -> None:
        self._cells = self._differences = np.ones(())
        for size in sizes:
            self._cells = np.multiply.outer(self._cells, size)
            self._differences = np.multiply.outer(self._differences, np.diff(size, prepend=0))
        self._variance = np.full(self._cells.shape, variance)

    def _rows_in(self, depths: tuple[int, ...]) -> float:
        """Number of sums in each cell of some levels."""
        return float(self._cells.flat[-1] / self._cells[depths])

    def common(self, depths: tuple[int, ...]) -> float:
        """Variance of the total of a cell, as a part of the sum of the variances in it."""
        variance = self._differences * self._variance
        inside = variance[_down_to(depths)].sum() / max(variance.sum(), 1e-9)
        return float(self._rows_in(depths) * inside)

    def move(self, depths: tuple[int, ...], part: float, sigma2: float) -> None:
        """Move all sums of each cell by equal shares of a part of its difference from the measured.

        Args:
            depths: levels of the cells.
            part: part of the differences.
            sigma2: variance of the noise of the measurements.
        """
        here = _down_to(depths)
        self._variance[here] *= (1 - part) ** 2
        self._variance[here] += part**2 * sigma2 / self._rows_in(depths)


def _down_to(depths: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple(slice(depth + 1) for depth in depths)


class _Rows:
    """Rows of an answer, indexed by the groups of their axes.

    Attributes:
        asked: grouping of each axis.
        groups: int32[rows] for each axis.
        row: int64[rows], position in the answer.
    """

    def __init__(self, asked: Sequence[Grouping], groups: Areas, row: Ints | None = None) -> None:
        self.asked, self.groups = asked, groups
        self.row = np.arange(len(groups[0])) if row is None else row

    @cached_property
    def size(self) -> Floats:
        """float64[rows], number of finest cells."""
        pairs = zip(self.asked, self.groups, strict=True)
        return np.asarray(np.prod([_sizes(of).astype(float)[group] for of, group in pairs], axis=0))

    @cached_property
    def is_all(self) -> NDArray[np.bool_]:
        """bool[rows], which rows are the overall total."""
        pairs = zip(self.asked, self.groups, strict=True)
        is_whole = [(_sizes(of) == len(of.group))[group] for of, group in pairs]
        return np.asarray(np.all(is_whole, axis=0))

    @cached_property
    def order(self) -> tuple[Ints, Ints]:
        """Keys of the rows in ascending order, and the row of each key."""
        key = self._keys(self.groups)
        order = np.argsort(key, kind="stable")
        return key[order], order

    def _keys(self, groups: Sequence[NDArray[np.integer]]) -> Ints:
        key = np.zeros(len(groups[0]), np.int64)
        for axis, group in zip(self.asked, groups, strict=True):
            key *= len(axis.codes)
            key += group
        return key

    def part(self, which: Ints) -> "_Rows":
        """Some of the rows."""
        return _Rows(self.asked, tuple(of[which] for of in self.groups), self.row[which])

    def coarsest(self) -> Ints:
        """int64[axes, rows]: the coarsest level at which a row is one area; -1 if there is none."""
        found = np.full((len(self.asked), len(self.row)), -1)
        for at, axis, group in zip(found, self.asked, self.groups, strict=True):
            for depth in reversed(range(axis.axis.hierarchy.depth + 1)):
                at[_single(axis, depth)[group] >= 0] = depth
        return found

    def cells_of(self, table: NoisyTable, depths: Sequence[int]) -> Ints:
        """Find the cell of a coarser table that contains each row; -1 if it was not measured.

        Rows are the areas of these levels, by their numbers.
        """
        above = (
            axis.axis.hierarchy.ancestor(depth, coarser)[group]
            for axis, depth, coarser, group in zip(
                self.asked, depths, table.depths, self.groups, strict=True
            )
        )
        return find_rows(table.areas, tuple(above))

    def find(self, groups: Sequence[NDArray[np.integer]]) -> Ints:
        """int64: the row with these groups, -1 if there is none."""
        known, order = self.order
        key = self._keys(groups)
        at = np.minimum(np.searchsorted(known, key), len(known) - 1)
        return np.where(known[at] == key, order[at], -1)

    def at(self, depths: Sequence[int]) -> list[NDArray[np.int32]]:
        """int32[areas] for each axis: the group of each area of these levels."""
        return [axis.at(depth) for axis, depth in zip(self.asked, depths, strict=True)]

    def leaves(self, depths: Sequence[int], areas: Areas) -> Floats:
        """float64: number of finest cells in each of some cells."""
        size = np.ones(len(areas[0]))
        for axis, depth, of in zip(self.asked, depths, areas, strict=True):
            size *= axis.axis.hierarchy.leaves_under(depth)[of]
        return size

    def alone(self, depths: Sequence[int]) -> tuple[Ints, Areas]:
        """Rows that are one area of each of these levels, and the areas."""
        single = [_single(axis, depth) for axis, depth in zip(self.asked, depths, strict=True)]
        row, groups = np.arange(len(self.row)), self.groups
        for number, of in enumerate(single):
            if (of < 0).any():
                which = np.flatnonzero(of[groups[number]] >= 0) if (of >= 0).any() else row[:0]
                row, groups = row[which], tuple(group[which] for group in groups)
        return row, tuple(of[group] for of, group in zip(single, groups, strict=True))

    def inside(self, table: NoisyTable) -> tuple[Ints, Ints]:
        """Pair rows with the cells of a table that lie in them as a whole."""
        nothing = np.empty(0, np.int64)
        of_areas = self.at(table.depths)
        if not all((group >= 0).any() for group in of_areas):
            return nothing, nothing
        at = np.arange(len(table.value))
        for group, areas in zip(of_areas, table.areas, strict=True):
            if not (group >= 0).all():
                at = at[group[areas[at]] >= 0]
        row = self.find([group[of[at]] for group, of in zip(of_areas, table.areas, strict=True)])
        return row[row >= 0], at[row >= 0]

    def moments(
        self,
        depths: Sequence[int],
        areas: Sequence[NDArray[np.int32]],
        value: Floats,
        weights: Sequence[Floats],
    ) -> Floats:
        """Compute shares of rows in undivided cells that lie in them only in part.

        With a share s of a cell of mean m and mean square q, a row has s m of it, with a variance
        of at most s q - s^2 m^2. Cells are summed up by a key for each axis: the group, if the area
        lies in one, and otherwise the area. A row looks up its keys axis by axis, so only needed
        values are computed.

        Args:
            depths: levels of the cells.
            areas: their areas.
            value: float64[3, cells], m, q and m^2.
            weights: float64[finest areas] for each axis, which determine shares.

        Returns:
            float64[3, rows]: sums of s m, s q and s^2 m^2.
        """
        spreads = [
            _Spread.of(axis, depth, weight)
            for axis, depth, weight in zip(self.asked, depths, weights, strict=True)
        ]
        keys = tuple(spread.key[of] for spread, of in zip(spreads, areas, strict=True))
        _, first, back = np.unique(keys_of(keys), return_index=True, return_inverse=True)
        known = tuple(key[first] for key in keys)
        table = np.stack([np.bincount(back, of, len(first)) for of in value])
        needed: Areas = self.groups
        chain = []
        for number, spread in enumerate(spreads):
            row, key, share = spread.pull(needed[number])
            columns = tuple(key if i == number else of[row] for i, of in enumerate(needed))
            _, first, back = np.unique(keys_of(columns), return_index=True, return_inverse=True)
            chain.append((len(needed[0]), row, share, back))
            needed = tuple(of[first] for of in columns)
        at = find_rows(known, needed)
        found = np.where(at >= 0, table[:, at], 0.0)
        for n, row, share, back in reversed(chain):
            found = np.stack(
                [
                    np.bincount(row, of[back] * part, n)
                    for of, part in zip(found, (share, share, share**2), strict=True)
                ]
            )
        return found


def _is_below_root(table: NoisyTable) -> bool:
    """Whether a table is a level of the tree below the root."""
    return table.measurement.is_on_tree and table.measurement.index > 0


def _is_further(axis: Grouping) -> bool:
    """Whether an additional dimension is shown."""
    return bool(axis.needed) and axis.name not in {ORIGIN, DESTINATION}


def _sizes(axis: Grouping) -> Ints:
    """int64[groups]: number of finest areas of each group."""
    return np.bincount(axis.group[axis.group >= 0], minlength=len(axis.codes))


def _single(axis: Grouping, depth: int) -> NDArray[np.int32]:
    """int32[groups]: the area of a level that equals a group; -1 if there is none."""
    group, n = axis.at(depth), len(axis.codes)
    area = np.flatnonzero(group >= 0)
    found = np.full(n, -1, np.int32)
    found[group[area]] = area
    is_one = np.bincount(group[area], minlength=n) == 1
    is_one &= axis.axis.hierarchy.leaves_under(depth)[found] == _sizes(axis)
    found[~is_one] = -1
    return found


@dataclass(frozen=True)
class _Spread:
    """Shares of the groups of an axis in the areas of one level.

    Attributes:
        key: int32[areas], the group that contains an area, and otherwise the number of groups plus
            the number of the area.
        offsets: int64[groups + 1], slices of the next two.
        has: int32, keys in which a group has a share.
        share: float64, the share.
    """

    key: NDArray[np.int32]
    offsets: Ints
    has: NDArray[np.int32]
    share: Floats

    @classmethod
    def of(cls, axis: Grouping, depth: int, weight: Floats) -> "_Spread":
        hierarchy, n = axis.axis.hierarchy, len(axis.codes)
        group = axis.at(depth)
        key = np.where(group >= 0, group, n + np.arange(len(group))).astype(np.int32)
        area = hierarchy.ancestor(hierarchy.depth, depth)
        is_in_part = (axis.group >= 0) & (group[area] == MIXED)
        pair = axis.group[is_in_part].astype(np.int64) * len(group) + area[is_in_part]
        pair, where = np.unique(pair, return_inverse=True)
        part = np.bincount(where, weight[is_in_part], len(pair))
        share = part / np.bincount(area, weight, len(group))[pair % len(group)]
        whole = np.unique(group[group >= 0])
        owner = np.concatenate([whole, pair // len(group)])
        has = np.concatenate([whole, n + pair % len(group)])
        share = np.concatenate([np.ones(len(whole)), share])
        order = np.argsort(owner, kind="stable")
        offsets = np.searchsorted(owner[order], np.arange(n + 1))
        return cls(key, offsets, has[order].astype(np.int32), share[order])

    def pull(self, groups: NDArray[np.int32]) -> tuple[Ints, NDArray[np.int32], Floats]:
        """Expand some groups to their keys: position of the group, key and share."""
        n = np.diff(self.offsets)[groups]
        row = np.repeat(np.arange(len(n)), n)
        at = np.arange(len(row)) - np.repeat(np.cumsum(n) - n, n) + self.offsets[groups][row]
        return row, self.has[at], self.share[at]


@dataclass(frozen=True)
class _LevelCells:
    """Measured cells of one level of the tree; children of one parent are consecutive.

    Attributes:
        level: of the tree.
        table: their measurements, in group order.
        start: int64[parents + 1], slices of the cells.
        key: int64[parents], ascending.
        parent: float64[parents], means of the parents by Bayes' rule, or published numbers where a
            parent was not measured.
        is_divided: bool[cells], whether the published number is positive, so that it is divided.
        kind: int8[cells], class of each.
        posteriors: posteriors of the classes.
    """

    level: TreeLevel
    table: NoisyTable
    start: Ints
    key: Ints
    parent: Floats
    is_divided: NDArray[np.bool_]
    kind: NDArray[np.int8]
    posteriors: CellPosteriors

    @classmethod
    def of(
        cls, level: TreeLevel, table: NoisyTable, own: Areas, above: tuple[Areas, Floats]
    ) -> "_LevelCells":
        """Make the cells of a level from its published nodes and the sizes of those above."""
        areas, value = table.areas, table.value
        is_first = np.zeros(len(level.parent_area), bool)
        is_first[level.child_offsets[:-1]] = True
        first = np.flatnonzero(is_first[areas[level.axis]])
        key = level.keys(level.parents([of[first] for of in areas]))
        parents, size = above
        known = level.keys(parents)
        order = np.argsort(known, kind="stable")
        at = np.minimum(np.searchsorted(known[order], key), max(len(known) - 1, 0))
        parent = size[order][at] if len(known) else np.zeros(len(key))
        start = np.append(first, len(value))
        rule = deconvolution(table.noise)
        kind, posteriors = _classified(level, table, start, parent, rule)
        is_divided = np.zeros(len(value), bool)
        made = cls(level, table, start, key, parent, is_divided, kind, posteriors)
        at = made.find(own)
        is_divided[at[at >= 0]] = True
        return made

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return len(self.table.value)

    @property
    def sizes(self) -> Ints:
        """Number of cells of each parent."""
        return np.diff(self.start)

    @property
    def parent_areas(self) -> Areas:
        """Areas of the parents."""
        return self.level.parents([of[self.start[:-1]] for of in self.table.areas])

    def summed(self, value: Floats) -> Floats:
        """float64[parents]: sums over the cells of each parent."""
        return np.add.reduceat(value, self.start[:-1]) if len(self.key) else value

    def find(self, areas: Areas) -> Ints:
        """int64: the cell with these areas, -1 if there is none."""
        found, axis = np.full(len(areas[0]), -1), self.level.axis
        for first in range(0, len(found) if len(self.key) else 0, _BLOCK):
            here = slice(first, first + _BLOCK)
            parents = self.level.parents(part := [of[here] for of in areas])
            key = self.level.keys(parents)
            at = np.searchsorted(self.key[:-1], key)
            cell = self.start[at] + part[axis] - self.level.child_offsets[parents[axis]]
            np.copyto(found[here], cell, where=self.key[at] == key)
        return found

    def means(self, cell: Ints) -> Floats:
        """Means of the true counts of some cells, by Bayes' rule."""
        return self.posteriors.moments(self.kind[cell], self.table.value[cell])[0]

    def ends(self, cell: Ints, number: Ints) -> Ends:
        """Intervals of some cells, given what is published."""
        return self.posteriors.ends(self.kind[cell], self.table.value[cell], number)

    def add_tiles(self, rows: _Rows, parts: "_Sums", value: NDArray[Any], variance: Floats) -> Ints:
        """Add the coarsest cells that lie in rows as a whole.

        Args:
            rows: the rows.
            parts: their sums, which are added to.
            value: estimates of the cells.
            variance: their variances, or one for all.

        Returns:
            Undivided cells that lie in rows only in part.
        """
        level, table = self.level, self.table
        own, above = rows.at(level.depths), rows.at(level.parent_depths)
        if not any((group == MIXED).any() for group in above):
            return np.empty(0, np.int64)
        above = [one[level.parent_area] if i == level.axis else one for i, one in enumerate(above)]
        n, is_undivided = np.zeros(len(parts.n), np.int64), np.zeros(len(table.value), bool)
        cells = self.start, table.areas, (value, variance), self.is_divided
        groups = tuple(above), tuple(own), MIXED, LEFT_OUT
        sizes = np.array([len(axis.codes) for axis in rows.asked])
        sums = parts.value, parts.variance
        tiles_kernel(cells, groups, (*rows.order, sizes), (n, sums, parts.cell, is_undivided))
        parts.count(n, table.noise)
        parts.level[n > 0] = level.index
        return np.flatnonzero(is_undivided)


@dataclass(frozen=True)
class _TotalCells:
    """Cells of a table of totals, all of which were measured."""

    table: NoisyTable

    def ends(self, cell: Ints, number: Ints) -> Ends:  # noqa: ARG002 - the shape of others
        """Intervals of some cells: 95 % of the noise, for areas chosen beforehand."""
        noisy = self.table.value[cell].clip(-LARGEST, LARGEST)
        half = self.table.noise.half_width()
        return np.maximum(noisy - half, 0), np.maximum(noisy + half, 0)


class _Sums:
    """Measured sums for the rows of an answer, with their noise.

    Attributes:
        is_known: bool[rows], whether a row was measured.
        value: float64[rows], sums of noisy values or estimates, and of means of undivided cells.
        variance: float64[rows], variance of `value`.
        mean: float64[rows], the part of `value` from undivided cells.
        n: int64[rows], number of noisy values.
        n_laplace: int64[rows], number of those with Laplace noise.
        source: int64[rows], table of the cell that equals a row; -1 if there is none.
        cell: int64[rows], that cell, and otherwise the last one that was added.
        level: int64[rows], level of the tree of the last cell that was added; 0 if there is none.
        sources: these tables.
    """

    def __init__(self, n: int) -> None:
        self.is_known = np.zeros(n, bool)
        self.value, self.variance, self.mean = np.zeros((3, n))
        self.n, self.n_laplace, self.level = np.zeros((3, n), np.int64)
        self.source, self.cell = np.full((2, n), -1)
        self.sources: list[_LevelCells | _TotalCells] = []

    def add(self, row: Ints, value: Ints, noise: Noise) -> None:
        """Add each noisy value to its row."""
        n = np.bincount(row, minlength=len(self.n))
        self.value += np.bincount(row, value, len(self.n))
        self.variance += n * noise.sigma**2
        self.count(n, noise)

    def count(self, n: Ints, noise: Noise) -> None:
        """Count so many noisy values in each row."""
        self.n += n
        if noise.is_laplace:
            self.n_laplace += n

    def add_undivided(self, moments: Floats) -> None:
        """Add the shares of rows in undivided cells, from `_Rows.moments`."""
        self.value += moments[0]
        self.mean += moments[0]
        self.variance += np.maximum(moments[1] - moments[2], 0)

    def take_cells(self, row: Ints, cells: "_LevelCells | _TotalCells", cell: Ints) -> None:
        """Set rows that equal one cell."""
        if not len(row):
            return
        self.is_known[row] = True
        self.variance[row] = cells.table.noise.sigma**2
        self.source[row], self.cell[row] = len(self.sources), cell
        self.sources.append(cells)

    def part(self, which: NDArray[np.bool_] | Ints) -> "_Sums":
        """Some of the rows."""
        found = _Sums(0)
        for name, of in vars(self).items():
            setattr(found, name, of if name == "sources" else of[which])
        return found

    def put(self, row: Ints, other: "_Sums") -> None:
        """Replace some rows."""
        for name, of in vars(other).items():
            if name != "sources":
                getattr(self, name)[row] = of
        is_cell = other.source >= 0
        self.source[row[is_cell]] += len(self.sources)
        self.sources += other.sources

    def ends(self, number: Ints) -> Ends:
        """Compute lower and upper ends; rows that were not measured have none."""
        low, high = np.empty((2, len(number)), np.int64)
        for start, source in product(range(0, len(number), _BLOCK), range(-1, len(self.sources))):
            here = start + np.flatnonzero(self.source[start : start + _BLOCK] == source)
            if not len(here):
                continue
            if source < 0:
                low[here], high[here] = self._sum_ends(here, number[here])
            else:
                ends = self.sources[source].ends(self.cell[here], number[here])
                low[here], high[here] = ends
        return low, high

    def _sum_ends(self, row: Ints, number: Ints) -> Ends:
        """Ends of rows that are no single cell."""
        value, draws = self.value[row], self.n_laplace[row]
        half = np.array([_sum_half(n) for n in range(_FEW + 1)])[np.where(draws > _FEW, 0, draws)]
        half *= np.sqrt(np.maximum(self.variance[row], 0))
        low = np.floor(np.clip(np.minimum(value, number) - half, 0, float(LARGEST)))
        high = np.ceil(np.clip(np.maximum(value + half, number), 0, float(LARGEST)))
        return low.astype(np.int64), high.astype(np.int64)


@cache
def _sum_half(n: int) -> float:
    """Half width of an interval for the sum of n draws of Laplace noise, in standard deviations.

    For n = 0, the half width for a normal distribution.
    """
    noise = Noise.laplace(1_000) if n else Noise.gaussian(Fraction(10**6))
    draws = max(n, 1)
    half = Tail.of([(noise, draws)]).quantile(np.array([_MISSED_SUM / 2]))[0]
    return float(half) / (noise.sigma * math.sqrt(draws))


def _classified(
    level: TreeLevel, table: NoisyTable, start: Ints, parent: Floats, rule: Deconvolution
) -> tuple[NDArray[np.int8], CellPosteriors]:
    """Classify the cells of a level by expected size, and compute posteriors of the classes.

    The expected size of a cell is its parent's mean by Bayes' rule times the share of its area
    among the areas of its siblings, in all other cells; so it does not depend on the noise of the
    cell. A published number would not do: most of those far below the noise are so by chance.
    Cells within one area, such as trips inside a town, are classes of their own.
    """
    area, value = table.areas[level.axis], table.value
    code = np.empty(len(value), np.int8)
    seen = np.zeros((2 * _SIZES, rule.n_bins + 1), np.int64)
    cells = (start, area, value, _both_ends(level, table.areas))
    known = (parent, len(level.parent_area), table.noise.sigma)
    classify_kernel(cells, known, (rule.lowest, rule.bin), code, seen)
    n_cells = seen.sum(axis=1).reshape(2, _SIZES)
    n_within = n_cells[1].sum()
    kinds, kind, inside = np.zeros(2 * _SIZES, np.int8), 0, 0
    for size, n in enumerate(n_cells.sum(axis=0).tolist()):
        kinds[size] = kind
        inside += n
        if inside >= _LEAST_CELLS:
            kind, inside = kind + 1, 0
    kind = max(kind - 1, 0)  # the rest is too small for a class
    kinds[:_SIZES] = np.minimum(kinds[:_SIZES], kind)
    is_apart = n_within >= _LEAST_CELLS // 2
    kinds[_SIZES:] = kind + 1 if is_apart else kinds[:_SIZES]
    by_kind = np.zeros((kind + 1 + is_apart, rule.n_bins), np.int64)
    np.add.at(by_kind, kinds, seen[:, :-1])
    return kinds[code], CellPosteriors.of(rule, list(by_kind))


def _both_ends(level: TreeLevel, areas: Areas) -> tuple[tuple[Any, Any], ...]:
    """Both ends of the cells, and for each end its areas of the finest level that both have.

    These are empty if the ends have no areas in common.
    """
    ends = [at for at, axis in enumerate(level.axes) if axis.name in {ORIGIN, DESTINATION}]
    hierarchies = [level.axes[end].hierarchy for end in ends]
    depth = min((level.depths[end] for end in ends), default=0)
    if len(ends) < len({ORIGIN, DESTINATION}) or not depth or hierarchies[0] != hierarchies[1]:
        return ((areas[0], np.empty(0, np.int32)),) * 2
    return tuple(
        (areas[end], np.array(hierarchy.ancestor(level.depths[end], depth)))
        for hierarchy, end in zip(hierarchies, ends, strict=True)
    )


@kernel
def classify_kernel(
    cells: Any, known: Any, bins: tuple[int, int], code: NDArray[np.int8], seen: Ints
) -> None:
    """Write classes of expected size, and count noisy values of each in bins.

    Args:
        cells: slices of siblings, refined areas, noisy values, and `_both_ends`.
        known: sizes of parents, the number of refined areas, and the standard deviation of the
            noise.
        bins: the first one, and their width.
        code: int8[cells], written: class, plus the number of classes for cells within one area.
        seen: int64[classes, bins + 1], added to; the last column counts larger noisy values.
    """
    start, area, value, ((one, above_one), (other, above_other)) = cells
    parent, n_areas, sigma = known
    lowest, width = bins
    n_bins = seen.shape[1] - 1
    first, end = lowest * width, (lowest + n_bins) * width
    totals, least = np.zeros(n_areas), np.zeros(n_areas)
    for i in range(area.size):
        totals[area[i]] += value[i]
        least[area[i]] += 1
    for a in range(n_areas):
        least[a] = sigma * math.sqrt(max(least[a] - 1.0, 1.0))
    for family in range(start.size - 1):
        whole = 0.0
        for i in range(start[family], start[family + 1]):
            whole += max(totals[area[i]] - value[i], least[area[i]])
        for i in range(start[family], start[family + 1]):
            share = max(totals[area[i]] - value[i], least[area[i]])
            expected = parent[family] * share / whole / sigma
            kind = 0
            for limit in _LIMITS:
                kind += expected >= limit
            if above_one.size and above_one[one[i]] == above_other[other[i]]:
                kind += _SIZES
            code[i] = kind
            # The quotient is exact enough: its numbers are far below 2^53.
            place = int((max(value[i], first) - first) / width) if value[i] < end else n_bins
            seen[kind, place] += 1


@kernel
def tiles_kernel(cells: Any, groups: Any, rows: Any, found: Any) -> None:
    """Add cells that lie in rows as a whole, and whose parents do not, to these rows.

    Args:
        cells: slices of siblings; areas of the cells on each axis, their estimates with
            variances, or with one for all, and whether they are divided.
        groups: for each axis, groups of the parents and of the cells by the area of the cell;
            and the marks of areas that lie in groups only in part, and in none.
        rows: keys of the rows in ascending order, the row of each key, and the number of groups of
            each axis.
        found: numbers of cells, and sums of their estimates and variances, by row, which are added
            to; and, which are written, the last cell of each row, and by cell whether it is
            undivided and lies in rows only in part.
    """
    start, areas, (value, variance), is_divided = cells
    above, own, mixed, left_out = groups
    keys, row, sizes = rows
    n, (sums, variances), last_cell, is_undivided = found
    last = 0
    for family in range(start.size - 1):
        first, is_mixed, is_out = start[family], False, False
        for axis in range(len(areas)):
            group = above[axis][areas[axis][first]]
            is_mixed |= group == mixed
            is_out |= group == left_out
        if is_out or not is_mixed:
            continue
        for cell in range(first, start[family + 1]):
            key, is_mixed, is_out = 0, False, False
            for axis in range(len(areas)):
                group = own[axis][areas[axis][cell]]
                is_mixed |= group == mixed
                is_out |= group == left_out
                key = key * sizes[axis] + group
            if is_out:
                continue
            if is_mixed:
                is_undivided[cell] = not is_divided[cell]
                continue
            if keys[last] != key:  # neighbours are often in the same row
                last = min(np.searchsorted(keys, key), keys.size - 1)
            if keys[last] == key:
                n[row[last]] += 1
                last_cell[row[last]] = cell
                sums[row[last]] += value[cell]
                variances[row[last]] += variance[min(cell, variance.size - 1)]
