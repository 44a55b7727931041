"""Adjust the whole numbers of a level to its cross tables by local search.

The model knows little about the association of areas with an additional dimension: which modes a
village uses, which ages a region has. Numbers of such a level are therefore adjusted as in a
release (`inftda.mechanism.local_search`): single counts move from one child of a node to another
until sums agree with the cross tables. Counts of nodes below which nothing was measured take part.
"""

from fractions import Fraction
from typing import Final

import numpy as np

from inftda.estimates.balance import LayerEstimate
from inftda.mechanism.adjustment import MeasuredCells
from inftda.mechanism.batches import group_offsets
from inftda.mechanism.data import MeasuredTable
from inftda.mechanism.intopt import DIGITS, Candidates
from inftda.mechanism.local_search import local_search
from inftda.noise.distribution import Noise
from inftda.privacy.measurement import Measurement
from inftda.privacy.unit import UNIT
from inftda.publication.measured import CrossTableSums, Floats, Layer, find_rows
from inftda.tree import CellRows, Cells, Ints
from inftda.tree.cross_tables import SHORT
from inftda.util.threads import ThreadPool

#: Sums go half of the way to the measurements if their squared misfit exceeds noise by this part.
_HALFWAY: Final = 0.3
#: Smaller expected numbers are treated alike.
_LEAST: Final = 1e-4
#: No bound for single counts: the error of an estimate is not guaranteed.
_FAR: Final = 1 << 40


def needs_local_search(layer: Layer) -> bool:
    """Whether several chains of tables measured a level, and nodes have few children."""
    return len(layer.chains) > 1 and layer.level.max_children <= SHORT


def searched(
    known: LayerEstimate, numbers: Ints, left: Cells, pool: ThreadPool
) -> tuple[Ints, Cells]:
    """Apply the local search; return numbers of the level's families, and all other nodes.

    Args:
        known: estimates of the level.
        numbers: int64[children], whole numbers of its families.
        left: other nodes of the level.
        pool: threads to work on.
    """
    layer, level = known.layer, known.layer.level
    axis = level.axis
    ours, theirs = level.keys(layer.areas), level.keys(level.parents(left.areas))
    keys = np.unique(np.concatenate([ours, theirs]))
    parents = level.areas_of(keys)
    first, sizes = level.child_offsets[parents[axis]], level.n_children[parents[axis]]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    # Where the children of families and all others are among the children of all parents.
    family = np.searchsorted(keys, ours)
    here = np.arange(len(numbers)) + np.repeat(
        offsets[family] - layer.offsets[:-1], np.diff(layer.offsets)
    )
    parent = np.searchsorted(keys, theirs)
    there = offsets[parent] + left.areas[axis] - first[parent]
    of_parent = np.repeat(np.arange(len(keys)), sizes)
    column = np.arange(offsets[-1]) - offsets[of_parent]
    value = np.zeros(len(column), np.int64)
    value[here], value[there] = numbers, left.value
    areas = [numbers[of_parent] for numbers in parents]
    areas[axis] = (first[of_parent] + column).astype(np.int32)
    expected = known.shares.within(level)[first[of_parent] + column]
    expected[here] = known.estimate
    # A child whose expected count is e times smaller costs as much as a child of a release
    # whose noisy count is one noise scale lower.
    score = (layer.sigma * (1 << DIGITS) * np.log(np.maximum(expected, _LEAST))).astype(np.int64)
    total = np.add.reduceat(value, offsets[:-1])
    candidates = Candidates(
        offsets, column.astype(np.int32), score, total, sizes, total, np.zeros_like(total)
    )
    divided = Cells(parents, total)
    cells = _cells(layer, divided, candidates, value)
    groups, bounds = group_offsets(level, divided), (_FAR, _FAR)
    value = local_search(
        candidates, value, cells, groups, sigma=layer.sigma, pool=pool, bounds=bounds
    )
    is_left = np.ones(len(value), bool)
    is_left[here] = False
    at = np.flatnonzero(is_left & (value > 0))
    return value[here], Cells(tuple(numbers[at] for numbers in areas), value[at])


def _cells(layer: Layer, parents: Cells, candidates: Candidates, value: Ints) -> MeasuredCells:
    """Goals for the sums of some parents' children, as if these had been measured."""
    found = []
    for one in (table for chain in layer.chains for table in chain):
        noise = Noise(Fraction(float(one.variance.min())))
        rows = one.table.rows(parents.areas)
        cell = np.repeat(rows.offsets[:-1][rows.of_parents], np.diff(candidates.offsets))
        sums = np.bincount(cell + candidates.column, value, int(rows.offsets[-1]))
        goals = _rows(one, layer, rows, sums.astype(float), noise.sigma)
        found.append(MeasuredTable(Measurement.of(one.table, UNIT, noise), rows, goals))
    return MeasuredCells.of(parents, found, layer.sigma)


def _rows(one: CrossTableSums, layer: Layer, rows: CellRows, sums: Floats, sigma: float) -> Ints:
    """int64: goals for the sums of a cross table, in all rows that hold parents."""
    level, sizes, starts = layer.level, rows.sizes, rows.offsets[:-1]
    if one.across is None:
        area = rows.cells()[level.axis]  # goals depend on all areas, also without parents
        of_all = np.bincount(area, sums, minlength=layer.n_areas).astype(float)
        return _goals(of_all, one.value, sigma)[area]
    # The last cell is that of only children, which were not measured.
    area, other = one.area[:-1], one.other[:-1]
    above = level.parent_area[area]
    start = np.flatnonzero(area == level.child_offsets[above])
    row = find_rows(
        (above[start], other[start]),
        (level.parents(rows.areas)[level.axis], rows.areas[one.across]),
    )
    is_measured = np.repeat(row >= 0, sizes)
    at = np.repeat(start[row] - starts, sizes) + np.arange(len(sums))
    measured = np.where(is_measured, one.value[np.where(is_measured, at, 0)], np.nan)
    return _goals(sums, measured, sigma)


def _goals(sums: Floats, measured: Floats, sigma: float) -> Ints:
    """int64: targets of sums, between their present values and the measurements.

    Sums that are as far from the measurements as these are from the truth may be right. The more
    they are beyond that, over a whole table, the more the measurements count. Sums of which
    nothing was measured (NaN) stay.
    """
    off = np.nan_to_num(measured - sums)
    n = max(int(np.count_nonzero(~np.isnan(measured))), 1)
    excess = max(float((off**2).sum()) / (n * sigma**2) - 1, 0.0)
    return np.rint(sums + off * excess / (_HALFWAY + excess)).astype(np.int64)
