"""Off-tree tables on random trees and counts: what is measured is true sums with noise."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fake_noise import Record, always
from inftda.mechanism import topdown
from inftda.mechanism.intopt import words_of
from inftda.mechanism.measure import measure_table, measure_totals
from inftda.mechanism.prices import Groups
from inftda.mechanism.step import Nodes, Step
from inftda.noise.bits import Secret, SeededSource
from inftda.noise.law import Law
from inftda.threads import Crew
from random_trees import random_counts, random_trees
from tiers import some


def steps_of(tree, sigma2):
    for level in tree.splitting_levels:
        here = tree.off_tree_at(level)
        yield Step(level, Law(sigma2), tuple((table, Law(8 * sigma2)) for table in here))


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
    assume(tree.off_tree and counts.total)
    secret = Secret.of(SeededSource(0))
    nodes = Nodes.root(len(tree.axes), counts.total)
    with Record(always(0)).watching() as record:
        for bare in steps_of(tree, Fraction(1)):
            truth, step = counts.level(bare.level), bare
            if bare.one_way is not None:
                totals = measure_totals(bare, counts.margins[bare.level.axis], secret)
                check_totals(counts, bare, totals)
                step = replace(bare, totals=totals)
            some = drop_some(nodes, data).in_group_order(step.level, Crew(1))
            groups = Groups.of(step.level, some)
            for known in step.two_way:
                before = record.n_draws
                cells = measure_table(step, known, groups, truth, secret)
                assert record.n_draws - before == len(cells), "each is drawn once"
                check_cells(counts, step, known[0], groups, cells)
            nodes, _ = topdown.divide_all(
                step, nodes, truth, secret, words_of(bytes(16)), crew=Crew(1)
            )


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


def check_cells(counts, step, table, groups, cells):
    level, expected = step.level, []
    rows = groups.areas_of(table)
    for row in zip(*(areas.tolist() for areas in rows), strict=True):
        where = list(row)
        for child in range(*level.child_offsets[row[level.axis] : row[level.axis] + 2]):
            where[level.axis] = child
            expected.append(sum_of(counts, where, table.depths))
    assert cells.tolist() == expected
    held = set(zip(*(areas.tolist() for areas in rows), strict=True))
    for parent in zip(*(areas.tolist() for areas in groups.parents.areas), strict=True):
        at = [0] * len(parent)
        at[level.axis] = parent[level.axis]
        hierarchy = level.axes[table.across].hierarchy
        above = hierarchy.ancestor(level.parent_depths[table.across], table.depths[table.across])
        at[table.across] = int(above[parent[table.across]])
        assert tuple(at) in held, "every parent is in a row"
