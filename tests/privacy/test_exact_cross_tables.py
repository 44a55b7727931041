"""Privacy of releases with cross tables, exactly.

Two facts make it exact. Over all neighbours of a tiny table, every cross table changes by its
sensitivity at most, and by that much for some neighbours. And the release is a function of its
measurements: given the noisy counts of another table, the engine makes that table's release, bit
for bit, so nothing else of the truth can be published.
"""

import itertools
from contextlib import contextmanager
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from exact_release import contributions
from hypothesis import given, settings
from hypothesis import strategies as st

from inftda.mechanism import measure, topdown
from inftda.mechanism.topdown import release_counts
from inftda.noise.bits import SeededSource
from inftda.privacy.noise_plan import make_plan
from inftda.privacy.unit import Unit
from inftda.reading.truth import Truth
from inftda.tree import Axis, Tree
from inftda.tree.hierarchy import Hierarchy
from random_trees import origin_first, random_counts, random_trees

pytestmark = pytest.mark.slow

#: Little enough that off-tree tables are measured.
RHO = Fraction(1, 50)
TOWNS = {"region": ["0", "0", "1"], "town": ["00", "01", "10"]}
FLAT = {"area": ["0", "1"]}
TREES = {
    "two by two": Tree.destination_first(Hierarchy.read(FLAT)),
    "towns, origin first": origin_first(Hierarchy.read(TOWNS)),
    "three axes": Tree.build(
        [Axis(name, Hierarchy.read(FLAT)) for name in ("origin", "destination", "mode")],
        ["destination", "origin", "mode"],
    ),
}
UNITS = [
    Unit(neighbours, trips, exactly=False, distinct=distinct)
    for neighbours in ("substitute", "add-remove")
    for trips, distinct in ((1, False), (2, False), (2, True), (3, True))
]


def leaf_areas(tree):
    sizes = [range(axis.hierarchy.n_areas(axis.hierarchy.depth)) for axis in tree.axes]
    return np.array(list(itertools.product(*sizes))).T


def cells_of(tree, depths):
    """int: the cell of a table that each leaf is counted in."""
    cell = np.zeros(len(leaf_areas(tree)[0]), np.int64)
    for axis, depth, leaf in zip(tree.axes, depths, leaf_areas(tree), strict=True):
        above = axis.hierarchy.ancestor(axis.hierarchy.depth, depth)
        cell = cell * axis.hierarchy.n_areas(depth) + above[leaf]
    return cell


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("unit", UNITS, ids=Unit.describe)
def test_every_table_changes_by_its_sensitivity_and_no_more(name, unit):
    tree = TREES[name]
    plan = make_plan(tree, unit, rho=RHO, cross_tables=0.08, method="paper")
    planned = {table.depths: table for table in plan.tables}
    assert [table.depths for table in tree.cross_tables] == list(planned)
    own = contributions(unit, len(leaf_areas(tree)[0]))
    for depths, table in planned.items():
        cell = cells_of(tree, depths)
        sums = np.array([np.bincount(cell[list(trips)], minlength=cell.max() + 1) for trips in own])
        others = sums if unit.is_substitute else np.zeros_like(sums[:1])
        changes = ((sums[:, None] - others[None]) ** 2).sum(axis=2)
        assert changes.max() <= table.sensitivity.squared, depths
        if 2 * unit.trips <= len(cell):  # two such people can be as different as can be
            assert changes.max() == table.sensitivity.squared, depths
        assert table.rho == table.sensitivity.squared / (2 * table.noise.square)
    assert plan.rho == sum(part.rho for part in (*plan.levels, *plan.tables)) <= RHO


class Measured:
    """Noisy counts, in the order in which they were drawn."""

    def __init__(self):
        self.counts = []

    @contextmanager
    def recorded(self):
        """Keep what is measured."""

        def record(right):
            def add(noisy, *truth):
                right(noisy, *truth)
                self.counts.append(noisy.copy())

            return add

        with self._replaced(record):
            yield

    @contextmanager
    def replayed(self):
        """Measure again what was measured before, whatever the truth is."""
        left = iter(self.counts)

        def replay(_right):
            def add(noisy, *_truth):
                noisy[:] = next(left)

            return add

        with self._replaced(replay):
            yield
        assert next(left, None) is None, "less was measured than before"

    @staticmethod
    @contextmanager
    def _replaced(make):
        with (
            patch.object(measure, "add_truth_kernel", make(measure.add_truth_kernel)),
            patch.object(measure, "add_sums_kernel", make(measure.add_sums_kernel)),
            patch.object(measure, "add_totals", make(measure.add_totals)),
        ):
            yield


def release(counts, plan, seed):
    outcome = release_counts(counts, plan.account(), SeededSource(seed), threads=1)
    leaves = outcome.leaves
    measured = [part for one in outcome.noisy for part in (*one.cells(), one.value)]
    return [*leaves.areas, leaves.value, *measured]


@settings(max_examples=40, deadline=None)
@given(data=st.data(), share=st.sampled_from([0, 0.08, 0.5]), seed=st.integers(0, 2**32))
def test_the_release_is_a_function_of_what_is_measured(data, share, seed):
    tree = data.draw(random_trees())
    truth, other = data.draw(random_counts(tree)), data.draw(random_counts(tree))
    # The total is public, and noised where it is not: it is the same here.
    other = with_total(other, truth.total)
    plan = make_plan(tree, Unit(), rho=RHO, cross_tables=share, method="paper")
    measured = Measured()
    with measured.recorded():
        expected = release(truth, plan, seed)
    with measured.replayed():
        found = release(other, plan, seed)
    for one, another in zip(found, expected, strict=True):
        assert one.tolist() == another.tolist()


@settings(max_examples=40, deadline=None)
@given(data=st.data(), share=st.sampled_from([0, 0.5]), seed=st.integers(0, 2**32))
def test_what_is_published_as_measured_is_every_draw_and_each_once(data, share, seed):
    tree = data.draw(random_trees())
    truth, measured = data.draw(random_counts(tree)), Measured()
    plan = make_plan(tree, Unit(), rho=RHO, cross_tables=share, method="paper")
    with measured.recorded():
        outcome = release_counts(truth, plan.account(), SeededSource(seed), threads=1)
    kept = list(outcome.noisy)
    drawn = sorted(itertools.chain.from_iterable(some.tolist() for some in measured.counts))
    assert sorted(itertools.chain.from_iterable(d.value.tolist() for d in kept)) == drawn
    cells = [(drawn.depths, *cell) for drawn in kept for cell in zip(*drawn.cells(), strict=True)]
    assert len(cells) == len({*cells}) == len(drawn)


#: A tree that is measured by a function, and something true that is passed to it.
LOOKS = {
    "measure_whole": ("two by two", lambda sums, _secret: sums[:1]),
    "measure": ("three axes", lambda _rows, truth, _secret: truth.count[:1]),
}


@pytest.mark.parametrize("where", LOOKS)
def test_a_release_that_looks_at_the_truth_is_seen(where):
    name, look = LOOKS[where]
    tree, home = TREES[name], measure if where == "measure_whole" else topdown
    right = getattr(home, where)
    areas = [axis.astype(np.int32) for axis in leaf_areas(tree)]
    counts = 10 * np.arange(len(areas[0])) ** 3
    truth = Truth.from_leaves(tree, areas, counts)
    other = Truth.from_leaves(tree, areas, counts[::-1].copy())
    plan = make_plan(tree, Unit(), rho=RHO, cross_tables=0.5, method="paper")

    def wrong(one, *given):
        made = right(one, *given)
        if one.is_on_tree:
            return made
        return made._replace(value=made.value + look(*given))

    measured = Measured()
    with patch.object(home, where, wrong):
        with measured.recorded():
            expected = release(truth, plan, 1)
        with measured.replayed():
            found = release(other, plan, 1)
    assert any(
        one.tolist() != another.tolist() for one, another in zip(found, expected, strict=True)
    )


def with_total(counts, total):
    """Counts with another total: all that is missing or too much in one leaf."""
    areas, values = counts.leaves
    if not len(values):
        areas, values = tuple(np.zeros(1, np.int32) for _ in areas), np.zeros(1, np.int64)
    values = np.full(len(values), 1)
    values[0] = 1 + total - len(values)
    if values[0] < 1:
        areas, values = tuple(axis[:1] for axis in areas), np.array([total])
    return Truth.from_leaves(counts.tree, areas, values)
