"""The tasks of a level step on a cluster, on random trees, without a cluster.

Rows are sent to tasks as Spark would send them, in any order; what the tasks make of them is,
to the bit, what one machine makes of them.
"""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="pyspark is missing: pip install 'inftda[spark]'")

from hypothesis import given, settings
from hypothesis import strategies as st

from inftda.bars import no_progress
from inftda.engines.local import LocalEngine, item_offsets
from inftda.engines.spark import tasks
from inftda.errors import ReleaseError
from inftda.lattice import off_tree_tables
from inftda.mechanisms.across import Across, AcrossStep, MeasuredTable
from inftda.mechanisms.step import LevelStep, Nodes
from inftda.noise.discrete_gaussian import DiscreteGaussian
from inftda.noise.entropy import KeyedSource, SecureSource, SeededSource
from inftda.optimize.segments import optimize_intopt
from random_trees import random_counts, random_trees
from tiers import some


@st.composite
def random_steps(draw, *, with_prices=False):
    """A level step: released parents, true or not, and the truth; items of any size."""
    tree = draw(random_trees())
    truth = draw(random_counts(tree))
    level = draw(st.sampled_from(tree.splitting_levels))
    sizes = [level.n_parent_areas(axis) for axis in range(len(tree.axes))]
    random = np.random.default_rng(draw(st.integers(0, 999)))
    cells = random.permutation(np.prod(sizes))[: draw(st.integers(1, 60))]
    areas = tuple(a.astype(np.int32) for a in np.unravel_index(cells, sizes))
    parents = Nodes(areas, random.integers(1, 40, len(cells)))
    step = LevelStep(
        level, DiscreteGaussian(9), optimize_intopt, SeededSource(draw(st.integers(0, 99))),
        draw(st.sampled_from([1, 4, 20, 10**6])), across_of(tree, level) if with_prices else None,
    )  # fmt: skip
    if step.across is not None and step.across.one_way is not None:
        totals = AcrossStep.of(step).measure_totals(truth.margins[step.level.axis])
        step = replace(step, across=replace(step.across, totals=totals))
    return step, parents, truth, random


def across_of(tree, level):
    """All tables off the tree that belong to a step, none of them very exact."""
    here = [table for table in off_tree_tables(tree) if table.index == level.index]
    trust = 1 / 8
    measured = (MeasuredTable(table, DiscreteGaussian(72), trust, Fraction(72)) for table in here)
    return Across(tuple(measured), 3.0) if here else None


def division_of(step, parents, n_tasks):
    in_order = parents.take(step.group_order(parents.areas))
    firsts = item_offsets(step, in_order)[:-1]
    keys = step.keys(in_order.areas)[firsts]
    return tasks.Division.of(step, keys, n_tasks)


def rows_of(division, parents, truth, random):
    """What each task is given, in any order."""
    names = [f"area_{i}" for i in range(len(parents.areas))]
    released = pa.table([*parents.areas, parents.value], names=[*names, "n"])
    areas, count = truth.leaves
    leaves = pa.table([*areas, count], names=[*names, "n"])
    sent = [*tasks.send_parents(division, released.to_batches(max_chunksize=7))]
    ascent = tasks.Ascent(division.step.level)
    sent += tasks.send_truth(division, ascent, leaves.to_batches(max_chunksize=5))
    rows = pa.Table.from_batches(sent)
    rows = rows.take(pa.array(random.permutation(rows.num_rows)))
    task = rows[tasks.TASK].to_numpy()
    assert task.min() >= 0
    assert task.max() < division.n_tasks
    return [
        rows.filter(pa.array(task == number)).to_batches(max_chunksize=9)
        for number in range(division.n_tasks)
    ]


def cells_of(batches):
    found = [row for batch in batches for row in zip(*batch.to_pydict().values(), strict=True)]
    cells = {tuple(cell): n for *cell, n in found}
    assert len(cells) == len(found), "no cell stands twice"
    return cells


@given(made=st.one_of(random_steps(), random_steps(with_prices=True)), n_tasks=st.integers(1, 9))
@settings(max_examples=some(300), deadline=None)
def test_tasks_make_what_one_machine_makes_to_the_bit(made, n_tasks):
    step, parents, truth, random = made
    division = division_of(step, parents, n_tasks)
    cells = cells_of(
        batch
        for rows in rows_of(division, parents, truth, random)
        for batch in tasks.divide(division, rows)
    )
    local = LocalEngine(1).step(parents, truth, step, no_progress)
    keys = zip(*(axis.tolist() for axis in local.areas), strict=True)
    assert cells == dict(zip(keys, local.value.tolist(), strict=True))


@given(made=st.one_of(random_steps(), random_steps(with_prices=True)))
@settings(max_examples=some(60), deadline=None)
def test_a_task_that_runs_twice_gives_the_same_rows_whatever_their_order(made):
    """Also with secure bits, which on one machine would differ each time."""
    step, parents, truth, random = made
    division = division_of(replace(step, source=KeyedSource.of(SecureSource())), parents, 3)
    for rows in rows_of(division, parents, truth, random):
        once, again = (list(tasks.divide(division, part)) for part in (rows, rows[::-1]))
        assert [batch.to_pydict() for batch in once] == [batch.to_pydict() for batch in again]


@given(made=random_steps())
@settings(max_examples=some(30), deadline=None)
def test_neighbouring_items_go_to_one_task_and_every_task_has_work(made):
    step, parents, *_ = made
    division = division_of(step, parents, 4)
    in_order = parents.take(step.group_order(parents.areas))
    task = division.task_of(in_order.areas)
    assert (np.diff(task) >= 0).all()
    assert sorted(set(task.tolist())) == list(range(division.n_tasks))
    items = item_offsets(step, in_order)
    assert all(len(set(task[low:high].tolist())) == 1 for low, high in pairwise(items))


def test_keyed_streams_follow_from_secret_and_labels_alone():
    one, other = KeyedSource.of(SecureSource()), KeyedSource.of(SecureSource())
    assert one.is_secure
    assert one.stream(1, 2).words(4).tolist() == one.stream(1, 2).words(4).tolist()
    assert one.stream(1, 2).words(4).tolist() != one.stream(2, 1).words(4).tolist()
    assert one.stream(1, 2).words(4).tolist() != other.stream(1, 2).words(4).tolist()
    assert not KeyedSource.of(SeededSource(1)).is_secure
    assert repr(one.secret) not in repr(one)


@given(made=random_steps(with_prices=True), n_tasks=st.integers(2, 9))
@settings(max_examples=some(60), deadline=None)
def test_with_prices_a_group_stays_together_with_all_its_truth(made, n_tasks):
    step, parents, *_ = made
    division = division_of(step, parents, n_tasks)
    if step.across is None:
        return
    task, group = division.task_of(parents.areas), parents.areas[step.level.axis]
    task_of_group = dict(zip(group.tolist(), task.tolist(), strict=True))
    assert [task_of_group[area] for area in group.tolist()] == task.tolist()
    for other in range(3):  # not released, perhaps, but of a group that is
        elsewhere = tuple(
            areas if axis == step.level.axis else np.full_like(areas, min(other, areas.max()))
            for axis, areas in enumerate(parents.areas)
        )
        assert division.task_of(elsewhere).tolist() == task.tolist()


@given(made=random_steps())
@settings(max_examples=1, deadline=None)
def test_an_executor_with_another_version_draws_nothing(made):
    step, parents, truth, random = made
    division = replace(division_of(step, parents, 1), version="0.0.0")
    with pytest.raises(ReleaseError, match="same version everywhere"):
        list(tasks.divide(division, rows_of(division, parents, truth, random)[0]))
