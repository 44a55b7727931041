"""Off-tree tables on random trees and counts: what is measured is true sums with noise."""

from fractions import Fraction

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fake_noise import Record, always
from inftda.mechanism import topdown
from inftda.mechanism.batches import in_group_order
from inftda.mechanism.data import Step
from inftda.mechanism.intopt import words_of
from inftda.mechanism.measure import measure, measure_totals
from inftda.noise.bits import Secret, SeededSource
from inftda.noise.distribution import Noise
from inftda.privacy.measurement import Measurement
from inftda.privacy.unit import UNIT
from inftda.tree import Cells
from inftda.util.threads import ThreadPool
from random_trees import random_counts, random_trees
from tiers import some


def steps_of(tree, sigma2):
    for level in tree.splitting_levels:
        here = tree.cross_tables_at(level)
        cross = tuple(Measurement.of(table, UNIT, Noise(8 * sigma2)) for table in here)
        yield Step(Measurement.of(level, UNIT, Noise(sigma2)), cross)


def sum_of(counts, area, levels):
    """True trips in an area at some level of each axis."""
    areas, count = counts.leaves
    is_in = np.full(len(count), True)
    for axis, numbers, where, level in zip(counts.tree.axes, areas, area, levels, strict=True):
        hierarchy = axis.hierarchy
        is_in &= hierarchy.ancestor(hierarchy.depth, level)[numbers] == where
    return count[is_in].sum()


@given(data=st.data())
@settings(max_examples=some(60), deadline=None)
def test_totals_and_cells_are_true_sums_also_of_parents_that_were_dropped(data):
    tree = data.draw(random_trees())
    counts = data.draw(random_counts(tree))
    assume(tree.cross_tables and counts.total)
    secret = Secret.of(SeededSource(0))
    nodes = Cells.root(len(tree.axes), counts.total)
    with Record(always(0)).watching() as record:
        for step in steps_of(tree, Fraction(1)):
            truth = counts.level(step.level)
            totals = measure_totals(step, counts.marginal_totals[step.level.axis], secret)
            for one in totals:
                check_totals(counts, step, one.value)
            some = in_group_order(step.level, drop_some(nodes, data), ThreadPool(1))
            for one in step.by_rows[1:]:
                before = record.n_draws
                cells = measure(one, one.marginal.rows(some.areas), truth, secret)
                assert record.n_draws - before == len(cells.value), "each is drawn once"
                check_cells(counts, some, cells)
            division = topdown.Division(step, totals, secret, words_of(bytes(16)))
            nodes, _ = topdown.divide_all(division, nodes, truth, pool=ThreadPool(1))


def drop_some(nodes, data):
    n = len(nodes.value)
    is_kept = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    is_kept[data.draw(st.integers(0, n - 1))] = True
    return nodes.take(np.flatnonzero(is_kept))


def check_totals(counts, step, totals):
    level, axis = step.level, step.level.axis
    depths = [level.depths[axis] if a == axis else 0 for a in range(len(level.axes))]
    for area, total in enumerate(totals):
        where = [area if a == axis else 0 for a in range(len(level.axes))]
        assert total == sum_of(counts, where, depths)


def check_cells(counts, parents, measured):
    table, expected = measured.measurement.marginal, []
    level, across = table.level, table.others[0]
    rows = list(measured.rows.areas)
    rows[level.axis] = level.parent_area[rows[level.axis]]
    for row in zip(*(areas.tolist() for areas in rows), strict=True):
        where = list(row)
        for child in range(*level.child_offsets[row[level.axis] : row[level.axis] + 2]):
            where[level.axis] = child
            expected.append(sum_of(counts, where, table.depths))
    assert measured.value.tolist() == expected
    held = set(zip(*(areas.tolist() for areas in rows), strict=True))
    for parent in zip(*(areas.tolist() for areas in parents.areas), strict=True):
        at = [0] * len(parent)
        at[level.axis] = parent[level.axis]
        hierarchy = level.axes[across].hierarchy
        above = hierarchy.ancestor(level.parent_depths[across], table.depths[across])
        at[across] = int(above[parent[across]])
        assert tuple(at) in held, "every parent is in a row"
