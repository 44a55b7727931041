"""Steps with off-tree tables on random trees and counts."""

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from unittest.mock import patch

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from inftda.bars import no_progress
from inftda.engines.local import LARGE, LocalEngine
from inftda.lattice import off_tree_tables
from inftda.mechanisms.across import Across, AcrossStep, Groups, MeasuredTable
from inftda.mechanisms.step import LevelStep
from inftda.noise.discrete_gaussian import DiscreteGaussian
from inftda.noise.entropy import SeededSource
from inftda.optimize.segments import optimize_intopt
from random_trees import dense, random_counts, random_trees
from tiers import some


@dataclass
class NoNoise:
    """Zeros, and how many were asked for."""

    n_draws: int = 0

    def fill(self, out, stream):
        del stream
        out[:] = 0
        self.n_draws += len(out)

    def sample(self, n, source=None):
        raise NotImplementedError


def steps_of(tree, sampler, *, sigma, seed=0, with_tables=True, item_children=1 << 19):
    tables = off_tree_tables(tree) if with_tables else ()
    for level in tree.splitting_levels:
        here = [table for table in tables if table.index == level.index]
        measured = tuple(MeasuredTable(table, sampler, 1 / 8, Fraction(1)) for table in here)
        yield LevelStep(
            level=level,
            sampler=sampler,
            optimize=optimize_intopt,
            source=SeededSource(seed),
            item_children=item_children,
            across=Across(measured, sigma) if measured else None,
        )


def measured(counts, step):
    """The step with its one-way table measured, and the table."""
    if step.across is None or step.across.one_way is None:
        return step, None
    totals = AcrossStep.of(step).measure_totals(counts.margins[step.level.axis])
    return replace(step, across=replace(step.across, totals=totals)), totals


def run(counts, sampler, *, sigma, threads=1, **options):
    engine = LocalEngine(threads)
    nodes = engine.root(counts, counts.total)
    all_totals = {}
    for step in steps_of(counts.tree, sampler, sigma=sigma, **options):
        ready, totals = measured(counts, step)
        nodes = engine.step(nodes, counts, ready, no_progress)
        all_totals[step.level.index] = totals
    return nodes, all_totals


def noise(sigma2):
    return {"sampler": DiscreteGaussian(Fraction(sigma2)), "sigma": float(sigma2) ** 0.5}


@given(data=st.data())
@settings(max_examples=some(60), deadline=None)
def test_a_release_is_positive_whole_and_has_the_total(data):
    tree = data.draw(random_trees())
    counts = data.draw(random_counts(tree))
    nodes, _ = run(counts, **noise(data.draw(st.sampled_from([1, 50, 10_000]))))
    assert (nodes.value > 0).all()
    assert nodes.value.sum() == counts.total
    cells = set(zip(*(axis.tolist() for axis in nodes.areas), strict=True))
    assert len(cells) == len(nodes.value), "no cell stands twice"


@given(data=st.data())
@settings(max_examples=some(40), deadline=None)
def test_without_noise_the_release_is_the_truth(data):
    tree = data.draw(random_trees())
    counts = data.draw(random_counts(tree))
    nodes, _ = run(counts, NoNoise(), sigma=1e-3)
    assert dense(tree, nodes.areas, nodes.value) == dense(tree, *counts.leaves)


@given(data=st.data())
@settings(max_examples=some(40), deadline=None)
def test_the_number_of_threads_changes_nothing_also_within_a_group(data):
    tree = data.draw(random_trees())
    counts = data.draw(random_counts(tree))
    seed = data.draw(st.integers(0, 99))
    for item_children in (1 << 19, 1):
        options = {"seed": seed, "item_children": item_children, **noise(50)}
        one, totals = run(counts, threads=1, **options)
        for large in (LARGE, 0):
            with patch("inftda.engines.local.LARGE", large):
                two, again = run(counts, threads=3, **options)
            assert dense(tree, one.areas, one.value) == dense(tree, two.areas, two.value)
            assert all(np.array_equal(totals[index], again[index]) for index in totals)
        assert one.value.sum() == counts.total


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
    assume(off_tree_tables(tree) and counts.total)
    engine, sampler = LocalEngine(1), NoNoise()
    nodes = engine.root(counts, counts.total)
    for step in steps_of(tree, sampler, sigma=1.0):
        ready, totals = measured(counts, step)
        if step.across is not None:
            check_measurements(counts, AcrossStep.of(ready), drop_some(nodes, data), totals)
        nodes = engine.step(nodes, counts, ready, no_progress)


def drop_some(nodes, data):
    n = len(nodes.value)
    is_kept = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    is_kept[data.draw(st.integers(0, n - 1))] = True
    return nodes.take(np.flatnonzero(is_kept))


def check_measurements(counts, across, nodes, totals):
    step = across.step
    level, axis = step.level, step.level.axis
    truth = counts.level(level)
    parents = nodes.take(step.group_order(nodes.areas))
    groups = Groups.of(level, parents)
    chained = across._chains(0.0)
    before = step.sampler.n_draws
    cells = across._measure(0, groups, truth, chained)
    n_one_way = 0
    expected = []
    for chain in chained.chains:
        for number in reversed(chain):
            table = step.across.tables[number].table
            rows = groups.rows(table)
            for row, group in enumerate(rows.group):
                parent = np.flatnonzero(rows.of_parents == row)[0]
                where = [0] * len(counts.tree.axes)
                if table.across is not None:
                    hierarchy = level.axes[table.across].hierarchy
                    depth = table.depths[table.across]
                    ancestor = hierarchy.ancestor(level.depths[table.across], depth)
                    where[table.across] = ancestor[parents.areas[table.across][parent]]
                first, last = level.child_offsets[groups.area[group] + np.array([0, 1])]
                for child in range(first, last):
                    where[axis] = child
                    expected.append(sum_of(counts, where, table.depths))
                n_one_way += (last - first) * (table.across is None)
    assert cells.measured.tolist() == expected
    assert step.sampler.n_draws - before == len(expected) - n_one_way, "each is drawn once"
    if totals is not None:
        depths = [level.depths[axis] if a == axis else 0 for a in range(len(level.axes))]
        for area, total in enumerate(totals):
            where = [area if a == axis else 0 for a in range(len(level.axes))]
            assert total == sum_of(counts, where, depths)
    assert all(a < b for a, b in pairwise(cells.offsets))
