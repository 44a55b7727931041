"""Whole numbers of a level that agree with all that was measured of them.

The model knows little of what areas have in common with a further axis: which modes a village
uses, which ages a region has. So numbers of such a level are settled as those of a release are
(`inftda.mechanism.moves`): single trips go from one child of a node to another until sums agree
with the tables that were measured across the tree. Trips of nodes that nothing was measured below
take part like any others.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from inftda.inference.balance import LayerEstimate
from inftda.inference.measured import Floats, Layer, OffTreeSums, WholeNodes, find_rows
from inftda.mechanism.intopt import DIGITS, Candidates
from inftda.mechanism.moves import settle
from inftda.mechanism.prices import Groups, MeasuredCells
from inftda.mechanism.step import Nodes
from inftda.threads import Crew
from inftda.tree import SHORT

Ints = NDArray[np.int64]

#: Sums go half of the way to the measurements if their squared misfit exceeds noise by this part.
_DOUBT: Final = 0.3
#: Smaller numbers are expected alike.
_LEAST: Final = 1e-4
#: No bound to what moves: estimates are not guaranteed.
_FAR: Final = 1 << 40


def is_settled(layer: Layer) -> bool:
    """Whether several chains of tables measured a level, and nodes have few children."""
    return len(layer.chains) > 1 and layer.level.max_children <= SHORT


def settled(
    known: LayerEstimate, numbers: Ints, left: WholeNodes, crew: Crew
) -> tuple[Ints, WholeNodes]:
    """Numbers of a level after trips have moved: those of its families, and all others.

    Args:
        known: what is known of the level.
        numbers: int64[children], whole numbers of its families.
        left: other nodes of the level.
        crew: threads to work on.
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
    kept = level.is_possible(areas)
    expected = known.shares.within(level)[first[of_parent] + column]
    expected[here] = known.estimate
    # A child that was expected to be e times smaller takes a trip as reluctantly as one in a
    # release whose noisy count is a noise scale lower.
    score = (layer.sigma * (1 << DIGITS) * np.log(np.maximum(expected, _LEAST))).astype(np.int64)
    total, n_kept = (np.add.reduceat(of, offsets[:-1], dtype=np.int64) for of in (value, kept))
    candidates = Candidates(
        np.append(0, np.cumsum(n_kept)), column[kept].astype(np.int32), score[kept], value[kept],
        total, n_kept, total, np.zeros_like(total),
    )  # fmt: skip
    groups = Groups.of(level, Nodes(parents, total))
    cells = _cells(layer, groups, candidates)
    settle(candidates, cells, groups.offsets, reach=layer.sigma, crew=crew, bounds=(_FAR, _FAR))
    value[kept] = candidates.value
    is_left = np.ones(len(value), bool)
    is_left[here] = False
    at = np.flatnonzero(is_left & (value > 0))
    origin = np.full(len(value), -1)
    origin[there] = np.arange(len(there))
    origin = origin[at]
    # A number that is new is expected to be like the others of its parent.
    mean = np.bincount(parent, left.mean, minlength=len(keys)) / sizes
    is_old = origin >= 0
    return value[here], WholeNodes(
        tuple(numbers[at] for numbers in areas),
        value[at],
        np.where(is_old, left.layer[origin], np.int32(-1)),
        np.where(is_old, left.child[origin], -1),
        np.where(is_old, left.mean[origin], mean[of_parent[at]]),
    )


def _cells(layer: Layer, groups: Groups, candidates: Candidates) -> MeasuredCells:
    """Goals for the sums of some parents' children, as if these had been measured."""
    totals, two_way, tables = None, {}, []
    for one in (table for chain in layer.chains for table in chain):
        sigma = float(np.sqrt(one.variance.min()))
        tables.append((one.table, sigma))
        if one.across is None:
            cell = np.repeat(groups.parents.areas[layer.level.axis], np.diff(candidates.offsets))
            cell = layer.level.child_offsets[cell] + candidates.column
            sums = np.bincount(cell, candidates.value, minlength=layer.n_areas).astype(float)
            totals = _goals(sums, one.value, sigma)
        else:
            two_way[one.table.depths] = _rows(one, layer, groups, candidates, sigma)
    return MeasuredCells.of(groups, tables, layer.sigma, totals, two_way, is_hard=False)


def _rows(
    one: OffTreeSums, layer: Layer, groups: Groups, candidates: Candidates, sigma: float
) -> Ints:
    """int64: goals for a two-way table, in all rows that hold parents."""
    rows, level = groups.rows(one.table), layer.level
    sizes = groups.n_children[rows.group]
    starts = np.cumsum(sizes) - sizes
    of_parent = np.repeat(np.arange(len(groups.of_parents)), np.diff(candidates.offsets))
    cell = starts[rows.of_parents][of_parent] + candidates.column
    sums = np.bincount(cell, candidates.value, minlength=sizes.sum()).astype(float)
    # The last cell is that of only children, which were not measured.
    area, other = one.area[:-1], one.other[:-1]
    above = level.parent_area[area]
    start = np.flatnonzero(area == level.child_offsets[above])
    row = find_rows((above[start], other[start]), (groups.area[rows.group], rows.across))
    is_measured = np.repeat(row >= 0, sizes)
    at = np.repeat(start[row] - starts, sizes) + np.arange(len(sums))
    measured = np.where(is_measured, one.value[np.where(is_measured, at, 0)], np.nan)
    return _goals(sums, measured, sigma)


def _goals(sums: Floats, measured: Floats, sigma: float) -> Ints:
    """int64: where sums should be, between what they are and what was measured.

    Sums that are as far from the measurements as these are from the truth may be right. The more
    they are beyond that, over a whole table, the more the measurements count. Sums of which
    nothing was measured (NaN) stay.
    """
    off = np.nan_to_num(measured - sums)
    n = max(int(np.count_nonzero(~np.isnan(measured))), 1)
    excess = max(float((off**2).sum()) / (n * sigma**2) - 1, 0.0)
    return np.rint(sums + off * excess / (_DOUBT + excess)).astype(np.int64)
