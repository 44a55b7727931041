"""The tasks of a level step on a cluster, on random trees, without a cluster.

Rows are sent to tasks as Spark would send them, in any order; what the tasks make of them is,
to the bit and in the same order, what one machine makes of them.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="pyspark is missing: pip install 'inftda-od[spark]'")

from hypothesis import given, settings
from hypothesis import strategies as st

from inftda.errors import ReleaseError
from inftda.mechanism.data import Step
from inftda.mechanism.intopt import words_of
from inftda.mechanism.measure import measure_totals
from inftda.mechanism.topdown import Division, divide_all
from inftda.noise.bits import Secret, SecureSource
from inftda.noise.distribution import Noise
from inftda.privacy.measurement import Measurement
from inftda.privacy.unit import UNIT
from inftda.spark import session, tasks
from inftda.spark.tasks import PACKED, unpack
from inftda.tree import Cells
from inftda.util.threads import ThreadPool
from random_trees import random_counts, random_trees
from tiers import some


@st.composite
def random_steps(draw):
    """A level step with cross tables or without: released parents, and the truth."""
    tree = draw(random_trees())
    truth = draw(random_counts(tree))
    level = draw(st.sampled_from(tree.splitting_levels))
    sizes = [level.n_parent_areas(axis) for axis in range(len(tree.axes))]
    random = np.random.default_rng(draw(st.integers(0, 999)))
    cells = random.permutation(np.prod(sizes))[: draw(st.integers(1, 60))]
    areas = tuple(a.astype(np.int32) for a in np.unravel_index(cells, sizes))
    parents = Cells(areas, random.integers(1, 40, len(cells)))
    here = tree.cross_tables_at(level)
    cross = tuple(Measurement.of(table, UNIT, Noise(Fraction(72))) for table in here)
    step = Step(
        Measurement.of(level, UNIT, Noise(Fraction(9))), cross if draw(st.booleans()) else ()
    )
    secret = Secret.of(SecureSource())
    totals = tuple(measure_totals(step, truth.marginal_totals[level.axis], secret))
    n_tasks = draw(st.integers(1, 9))
    alone = Division(step, totals, secret, words_of(bytes(16)))
    division = tasks.SharedDivision(alone, n_tasks)
    return division, parents, truth, random


def rows_of(division, parents, truth, random):
    """What each task is given, in any order."""
    released = pa.Table.from_batches([tasks.as_batch(parents.areas, parents.value)])
    leaves = pa.Table.from_batches([tasks.as_batch(*truth.leaves)])
    sent = [*tasks.send_parents(division, released.to_batches(max_chunksize=7))]
    sent += tasks.send_truth(division, leaves.to_batches(max_chunksize=5))
    rows = pa.Table.from_batches(sent)
    rows = rows.take(pa.array(random.permutation(rows.num_rows)))
    task = rows[tasks.TASK].to_numpy()
    assert task.min() >= 0
    assert task.max() < division.n_tasks
    return [
        rows.filter(pa.array(task == number)).to_batches(max_chunksize=9)
        for number in range(division.n_tasks)
    ]


def given_by(batches, kind):
    """Rows of one kind that tasks give, one after the other."""
    found = []
    for batch in batches:
        here = batch.filter(pa.array(batch[tasks.KIND].to_numpy() == kind))
        for part in unpack([here.select([PACKED])]):
            found += zip(*part.to_pydict().values(), strict=True)
    return found


@pytest.mark.slow
@given(made=random_steps())
@settings(max_examples=some(300), deadline=None)
def test_tasks_make_what_one_machine_makes_to_the_bit_and_in_order(made):
    division, parents, truth, random = made
    step = division.division.step
    true = truth.level(step.level)
    expected, kept = divide_all(division.division, parents, true, pool=ThreadPool(1))
    parts = rows_of(division, parents, truth, random)
    batches = [batch for rows in parts for batch in tasks.divide(division, rows)]
    released = zip(*(a.tolist() for a in (*expected.areas, expected.value)), strict=True)
    assert given_by(batches, tasks.CHILDREN) == list(released)
    for kind, known in enumerate(one.depths for one in step.by_rows):
        noisy = [
            (*map(int, cell), value)
            for one in kept
            if one.depths == known
            for *cell, value in zip(*one.cells(), one.value.tolist(), strict=True)
        ]
        assert given_by(batches, kind) == noisy


@given(made=random_steps())
@settings(max_examples=some(60), deadline=None)
def test_a_task_that_runs_twice_gives_the_same_rows_whatever_their_order(made):
    division, parents, truth, random = made
    for rows in rows_of(division, parents, truth, random):
        once, again = (list(tasks.divide(division, part)) for part in (rows, rows[::-1]))
        assert [batch.to_pydict() for batch in once] == [batch.to_pydict() for batch in again]


@given(made=random_steps())
@settings(max_examples=some(60), deadline=None)
def test_a_group_stays_together_with_all_its_truth_and_tasks_are_in_order(made):
    division, parents, *_ = made
    task, group = division.task_of(parents.areas), parents.areas[division.level.axis]
    by_group = dict(zip(group.tolist(), task.tolist(), strict=True))
    assert [by_group[area] for area in group.tolist()] == task.tolist()
    assert [by_group[area] for area in sorted(by_group)] == sorted(by_group.values())


@given(made=random_steps())
@settings(max_examples=1, deadline=None)
def test_an_executor_with_another_version_draws_nothing(made):
    division, parents, truth, random = made
    old = replace(division, version="0.0.0")
    with pytest.raises(ReleaseError, match="same version everywhere"):
        list(tasks.divide(old, rows_of(division, parents, truth, random)[0]))
    assert "confidential" in repr(division)


@pytest.mark.parametrize("stated", ["6442450944\n", "max\n", None])
def test_a_container_with_less_memory_than_the_machine_gives_a_quarter_of_its_own(
    stated, tmp_path, monkeypatch
):
    monkeypatch.setattr(session, "CONTAINER_LIMITS", (file := tmp_path / "memory.max",))
    whole = session.quarter_of_memory()
    if stated is not None:
        file.write_text(stated)
    limited = min(whole, 1536) if stated == "6442450944\n" else whole
    assert session.quarter_of_memory() == limited
