"""Intervals of sums that are no cell of any measured table: of zones, or of several areas.

Such a sum is made of nodes of the tree, as large ones as lie in it as a whole: a node counts if the
one above lies in it only in part. What was measured of these nodes is the truth and independent
noise of a known law, whatever was released: whether a node was measured depends on the noise of the
levels above alone. So the noise of their sum is known, too.

What cannot be measured so are nodes that lie in a sum in part and were not divided further. Their
trips are those that the model expects, divided by its shares. Nothing is known of how they are
really divided, so the variance is the largest that trips with these means can have: all trips of a
node in one place. Shares of a further axis, such as modes, may be wrong for all small flows alike,
so half of the mean is one more deviation.

Intervals are for 98.5 %, as those of the model are, and stated as 95 %.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from inftda.groupings import LEFT_OUT, MIXED, Grouping
from inftda.inference.balance import LayerEstimate
from inftda.inference.measured import NEVER, Areas, Floats, Measurements, keys_of
from inftda.inference.model import Fit, ends_kernel
from inftda.inference.noise_intervals import Ends, NoiseSums
from inftda.tree import DESTINATION, ORIGIN, Axis, Marginal

#: Parts of a layer that are worked on one by one, and parts of nodes that are held at a time.
_PARTS, _MOST_PARTS = 64, 1 << 21
#: How wrong shares of a further axis may be (deviation): large sums by mode had a coverage of 63 %
#: without it (docs/explanation/estimates.md).
_FURTHER_DOUBT: Final = 0.5


#: Areas of each axis, or groups, and numbers that belong to them.
_Columns = list[NDArray[Any]]
_Parts = tuple[_Columns, Floats]


class _Rows:
    """Rows of an answer, found by the groups of their axes."""

    def __init__(self, asked: Sequence[Grouping], groups: Areas) -> None:
        self._sizes = [len(axis.codes) for axis in asked]
        self._asked, key = asked, self._keys(groups)
        self._order = np.argsort(key, kind="stable")
        self._key = key[self._order]

    def __len__(self) -> int:
        return len(self._key)

    def _keys(self, groups: Sequence[NDArray[np.integer]]) -> NDArray[np.int64]:
        key = np.zeros(len(groups[0]), np.int64)
        for size, group in zip(self._sizes, groups, strict=True):
            key = key * size + group
        return key

    def find(self, groups: Sequence[NDArray[np.integer]]) -> NDArray[np.int64]:
        """int64: the row with these groups, -1 where none has."""
        key = self._keys(groups)
        at = np.minimum(np.searchsorted(self._key, key), len(self) - 1)
        return np.where(self._key[at] == key, self._order[at], -1)

    def of(
        self, areas: Areas, depths: Sequence[int]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The row that each node lies in as a whole, -1 if in none; whether it may be in parts."""
        groups = [axis.at(d)[a] for axis, d, a in zip(self._asked, depths, areas, strict=True)]
        is_out = np.logical_or.reduce([group == LEFT_OUT for group in groups])
        is_mixed = ~is_out & np.logical_or.reduce([group == MIXED for group in groups])
        row = self.find([np.maximum(group, 0) for group in groups])
        return np.where(is_out | is_mixed, -1, row), is_mixed


def sum_ends(fit: Fit, measured: Measurements, asked: Sequence[Grouping], groups: Areas) -> Ends:
    """Lower and upper ends of some rows of an answer.

    Args:
        fit: of the release.
        measured: of the release.
        asked: what is summed up, for each axis.
        groups: int32[rows] for each axis, the groups of each row.
    """
    rows = _Rows(asked, groups)
    sums, mean, variance = NoiseSums(len(rows)), np.zeros(len(rows)), np.zeros(len(rows))
    weights = _weights(fit)
    for known in fit.levels:
        layer, level = known.layer, known.layer.level
        undivided = [np.empty(0, np.int64)]
        for low, high in layer.parts(_PARTS):
            child = np.arange(layer.offsets[low], layer.offsets[high])
            areas = layer.child_areas(child)
            _, is_part = rows.of(level.parents(areas), level.parent_depths)
            row, is_mixed = rows.of(areas, level.depths)
            is_here = is_part & (row >= 0) & (layer.noisy[child] > NEVER)
            sums.add(row[is_here], layer.noisy[child[is_here]], layer.noise)
            if layer.child_family.size:
                undivided.append(child[is_mixed & (layer.child_family[child] < 0)])
        moments = _undivided(known, np.concatenate(undivided), asked, weights, rows)
        mean, variance = mean + moments[0], variance + moments[1] - moments[2]
    if any(axis.needed and axis.name not in {ORIGIN, DESTINATION} for axis in asked):
        variance += (_FURTHER_DOUBT * mean) ** 2
    sums.value, sums.variance = sums.value + mean, sums.variance + variance
    _take_better(sums, measured, fit.tree.axes, asked, rows)
    return sums.ends()


def _weights(fit: Fit) -> list[Floats]:
    """float64[finest areas] for each axis: what part of the trips the shares expect there."""
    found = []
    for number, axis in enumerate(fit.tree.axes):
        hierarchy = axis.hierarchy
        weight = np.ones(hierarchy.n_areas(hierarchy.depth))
        for known in fit.levels:
            level = known.layer.level
            if level.axis == number:
                above = hierarchy.ancestor(hierarchy.depth, level.depths[number])
                weight *= known.shares.within(level)[above]
        found.append(weight)
    return found


class _Spread:
    """For each area of a level, which groups it has parts of, and how large these are."""

    def __init__(self, axis: Grouping, weight: Floats, depth: int) -> None:
        hierarchy = axis.axis.hierarchy
        area = hierarchy.ancestor(hierarchy.depth, depth).astype(np.int64)
        size = len(axis.codes) + 1
        pair, where = np.unique(area * size + axis.group + 1, return_inverse=True)
        self._start = np.searchsorted(pair, np.arange(hierarchy.n_areas(depth) + 1) * size)
        self._group = pair % size - 1
        self._share = np.bincount(where, weight) / np.bincount(area, weight)[pair // size]

    def apply(self, number: int, columns: _Columns, value: Floats) -> Iterator[_Parts]:
        """Divide numbers by areas of an axis among groups of it, some at a time."""
        start, n = self._start[columns[number]], np.diff(self._start)[columns[number]]
        cuts = np.flatnonzero(np.diff(np.cumsum(n) // _MOST_PARTS)) + 1
        for part in np.split(np.arange(len(n)), cuts):
            entry, before = np.repeat(part, n[part]), np.cumsum(n[part]) - n[part]
            at = np.repeat(start[part] - before, n[part]) + np.arange(len(entry))
            is_in = self._group[at] >= 0
            entry, at = entry[is_in], at[is_in]
            found = [column[entry] for column in columns]
            found[number] = self._group[at]
            share = self._share[at]
            yield found, value[:, entry] * np.stack([share, share, share**2])


def _undivided(
    known: LayerEstimate,
    child: NDArray[np.int64],
    asked: Sequence[Grouping],
    weights: Sequence[Floats],
    rows: _Rows,
) -> Floats:
    """What rows have of nodes that lie in them in part, and that nothing divides.

    With a share s of a node of mean m and variance v, a row has s m of it, and at most the variance
    s (1 - s) (m^2 + v) + s^2 v = s (m^2 + v) - s^2 m^2.

    Returns:
        float64[3, rows]: sums of s m, s (m^2 + v) and s^2 m^2.
    """
    layer, sums = known.layer, np.zeros((3, len(rows)))
    # Variances are those of the posterior; means are the estimates, which add up.
    moments, mean = np.empty((2, len(child))), known.estimate[child]
    table, log_mean = known.posterior.moments, known.evidence.log_mean
    ends_kernel(child, layer.families, log_mean, table, (moments[0], moments[1]))
    value = np.stack([mean, mean**2 + moments[1] * layer.sigma, mean**2])
    columns: _Columns = list(layer.child_areas(child))
    for number, axis in enumerate(asked):
        spread = _Spread(axis, weights[number], layer.level.depths[number])
        if axis is not asked[-1]:
            columns, value = _joined([*spread.apply(number, columns, value)])
            continue
        for found, part in spread.apply(number, columns, value):
            row = rows.find(found)
            is_there = row >= 0
            for moment, numbers in enumerate(part):
                sums[moment] += np.bincount(row[is_there], numbers[is_there], minlength=len(rows))
    return sums


def _joined(parts: Sequence[_Parts]) -> _Parts:
    """Numbers of several parts, those with the same areas and groups summed up."""
    columns = [np.concatenate(of) for of in zip(*(part[0] for part in parts), strict=True)]
    value = np.concatenate([part[1] for part in parts], axis=1)
    _, first, where = np.unique(keys_of(columns), return_index=True, return_inverse=True)
    sums = [np.bincount(where, numbers, minlength=len(first)) for numbers in value]
    return [column[first] for column in columns], np.stack(sums)


def _take_better(
    sums: NoiseSums,
    measured: Measurements,
    axes: tuple[Axis, ...],
    asked: Sequence[Grouping],
    rows: _Rows,
) -> None:
    """Take sums of a table off the tree where all cells were measured, and their noise is less."""
    for number, table in zip(measured.levels, measured.tables, strict=True):
        if number is not None or any(
            axis.needed > depth for axis, depth in zip(asked, table.depths, strict=True)
        ):
            continue
        row, _ = rows.of(table.areas, table.depths)
        theirs = NoiseSums(len(rows))
        theirs.add(row[row >= 0], table.value[row >= 0], table.noise)
        every = Marginal(axes, table.depths)
        cells, _ = rows.of(every.areas_at(np.arange(every.n_nodes)), table.depths)
        is_whole = theirs.n == np.bincount(cells[cells >= 0], minlength=len(rows))
        is_better = is_whole & (theirs.variance < sums.variance)
        for ours, better in zip(vars(sums).values(), vars(theirs).values(), strict=True):
            ours[is_better] = better[is_better]
