"""The stability histogram: its promise computed exactly, for every unit of privacy.

A cell of n trips comes out as n plus discrete Laplace noise if that is above the threshold, and
not at all otherwise; a cell of no trips never comes out. Cells are independent, and equal cells
of two tables tell nothing, so the law of what two neighbours differ in is a product of few
factors with few outcomes each: it is gone through, not sampled.
"""

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from fake_noise import Record, cells, setting_of
from inftda.errors import BudgetError, PrivacyError
from inftda.hierarchy import Hierarchy
from inftda.lab.baselines import stability_histogram
from inftda.lab.baselines.leaf_changes import l1_sensitivity
from inftda.lab.baselines.stability_histogram import (
    StabilityHistogram,
    StabilityPlan,
    make_stability_plan,
    needed,
)
from inftda.privacy.unit import PrivacyUnit
from inftda.tree import Tree
from inftda.truth import Truth

TREE = Tree.destination_first(Hierarchy.read({"region": list("NNSS"), "town": list("abcd")}))
TRUTH = {(0, 1): 500, (2, 3): 90, (3, 3): 2, (1, 0): 41}
UNITS = [
    PrivacyUnit(),
    PrivacyUnit(exactly=False),
    PrivacyUnit("add-remove"),
    PrivacyUnit(trips=2),
    PrivacyUnit(trips=2, exactly=False),
    PrivacyUnit(trips=2, distinct=True),
    PrivacyUnit("add-remove", trips=2),
    PrivacyUnit("add-remove", trips=2, distinct=True),
    PrivacyUnit("add-remove", trips=3),
    PrivacyUnit("add-remove", trips=4, distinct=True),
]
#: Sums of positive floats: right to this, relatively.
ROUNDING = 1e-12


# The law of the mechanism


def tail(r, x):
    """P[X >= x] for any integer x."""
    return r**x / (1 + r) if x > 0 else 1 - r ** (1 - x) / (1 + r)


@cache
def outcomes(left, right, r, threshold):
    """Probabilities under two counts of one cell of everything that can be told apart.

    Not at all, or one of the values between; below both counts, and above both, the ratio of
    the two probabilities is the same everywhere, so that each is one outcome.
    """
    low = max(threshold + 1, min(left, right))
    high = max(low, left, right)
    ends = [threshold + 1, *range(low, high + 1)]
    law = []
    for count in (left, right):
        beyond = [tail(r, end - count) if count else 0.0 for end in ends]
        law.append([1 - beyond[0], *(a - b for a, b in itertools.pairwise(beyond)), beyond[-1]])
    return np.array(law)


def hockey_stick(cells_changed, r, threshold, epsilon):
    """The least delta for which the first table is within (epsilon, delta) of the second."""
    p = q = np.ones(1)
    for left, right in cells_changed:
        law = outcomes(left, right, r, threshold)
        p, q = np.multiply.outer(p, law[0]).ravel(), np.multiply.outer(q, law[1]).ravel()
    return float(np.maximum(0.0, p - math.exp(epsilon) * q).sum())


def contributions(unit, n_cells):
    """Leaf counts of everything one person may contribute."""
    choose = itertools.combinations if unit.distinct else itertools.combinations_with_replacement
    sizes = range(unit.trips if unit.exactly else 0, unit.trips + 1)
    return [
        tuple(chosen.count(cell) for cell in range(n_cells))
        for size in sizes
        for chosen in choose(range(n_cells), size)
    ]


@cache
def changed_cells(unit, others):
    """For all pairs of neighbours: the cells that differ, as pairs of counts.

    Enough cells that no trip of a person has to share one; others' trips are any of `others`.
    """
    n_cells = unit.trips * (2 if unit.is_substitute else 1)
    own = contributions(unit, n_cells)
    nobody = (0,) * n_cells
    found = set()
    for here in itertools.combinations_with_replacement(others, n_cells):
        for placed in set(itertools.permutations(here)):
            for a, b in itertools.product(own, own if unit.is_substitute else [nobody]):
                pairs = ((n + x, n + y) for n, x, y in zip(placed, a, b, strict=True) if x != y)
                pairs = tuple(sorted(pairs))
                found |= {pairs, tuple(sorted((y, x) for x, y in pairs))}
    return found - {()}


def worst(unit, epsilon, scale, threshold):
    """The largest delta of all pairs of neighbours."""
    r = math.exp(-1 / float(scale))
    others = (0, threshold) if unit.trips > 2 else (0, 1, threshold, threshold + 2)
    return max(hockey_stick(pairs, r, threshold, epsilon) for pairs in changed_cells(unit, others))


def test_the_law_of_a_cell_is_a_law_and_the_one_that_is_stated():
    r = math.exp(-1 / 2.5)
    for left, right, threshold in [(0, 3, 5), (5, 6, 5), (9, 7, 5), (1, 1, 5)]:
        law = outcomes(left, right, r, threshold)
        np.testing.assert_allclose(law.sum(axis=1), 1, rtol=1e-14)
    weights = {x: math.exp(-abs(x) / 2.5) for x in range(-400, 401)}
    total = sum(weights.values())
    for x in (-7, -1, 0, 1, 2, 9):
        exact = sum(weight for value, weight in weights.items() if value >= x) / total
        assert tail(r, x) == pytest.approx(exact, rel=1e-12)
    # Not at all; 6 and 7, below both; 8; 9 and more, above both.
    law = outcomes(9, 8, r, 5)[0]
    assert law[0] == pytest.approx(1 - tail(r, -3))
    assert law[1:3] == pytest.approx([(weights[-3] + weights[-2]) / total, weights[-1] / total])
    assert law[3] == pytest.approx(tail(r, 0))


def test_all_neighbours_of_a_unit_are_looked_at():
    """One trip: from nowhere to here, from here to there, also onto what others have."""
    assert changed_cells(PrivacyUnit("add-remove"), (0, 5)) == {
        ((0, 1),), ((1, 0),), ((5, 6),), ((6, 5),),
    }  # fmt: skip
    assert ((0, 1), (6, 5)) in changed_cells(PrivacyUnit(), (0, 5))
    assert ((0, 1), (0, 1), (2, 0)) in changed_cells(PrivacyUnit(trips=2), (0, 5))
    assert ((2, 0),) not in changed_cells(PrivacyUnit("add-remove", trips=2, distinct=True), (0,))


# What is promised, and what would not be enough


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe())
@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.5, 1e-3), (1, 1e-6), (4, 0.02), (4, 1e-4), (10, 1e-8)]
)
def test_no_neighbours_are_further_apart_than_promised_and_not_much_is_wasted(unit, epsilon, delta):
    scale, threshold = needed(unit, epsilon, delta)
    found = worst(unit, epsilon, scale, threshold)
    assert 0 < found <= delta * (1 + ROUNDING)
    # A half of delta is lost in the proof, 1 / (1 + r) by bounding the tail, and up to one step
    # because the threshold is whole. A threshold lower by more breaks the promise.
    r = math.exp(-1 / float(scale))
    steps = math.ceil(float(scale) * math.log(2 * (1 + r))) + 1
    assert worst(unit, epsilon, scale, threshold - steps) > delta
    if epsilon / l1_sensitivity(unit) >= 2:
        assert steps <= 2


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe())
def test_a_smaller_scale_breaks_the_promise_of_large_counts(unit):
    """Counts far above the threshold are the Laplace mechanism, and it is tight."""
    epsilon, delta = 2, 1e-6
    scale, threshold = needed(unit, epsilon, delta)
    n = unit.trips
    most = 1 if unit.distinct else n
    moved = [(500 + most, 500)] * (n // most)
    if unit.is_substitute:
        moved += [(500, 500 + most)] * (n // most)
    r = math.exp(-1 / float(scale))
    # One side of zero for each cell: where epsilon is reached, and a little less is exceeded.
    assert hockey_stick(moved, r, threshold, epsilon * 1.000001) <= delta
    assert hockey_stick(moved, r, threshold, epsilon * 0.99) > 1e-4
    assert hockey_stick(moved, math.exp(-1.02 / float(scale)), threshold, epsilon) > delta


def test_the_threshold_of_one_trip_does_not_hide_several():
    """Why the threshold has two rules: many new cells, or one cell with many trips."""
    epsilon, delta = 8, 1e-4
    for unit in (
        PrivacyUnit("add-remove", trips=4),
        PrivacyUnit("add-remove", trips=4, distinct=True),
    ):
        scale, threshold = needed(unit, epsilon, delta)
        for_one = math.floor(1 + float(scale) * math.log(2 / delta))
        assert threshold > for_one
        assert worst(unit, epsilon, scale, threshold) <= delta
        assert worst(unit, epsilon, scale, for_one) > delta


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-8), (1, 1e-8), (10, 1e-8), (1, 1e-5)])
def test_one_trip_has_the_scale_and_threshold_of_the_paper(epsilon, delta):
    scale, threshold = needed(PrivacyUnit(), epsilon, delta)
    assert scale == 2 / Fraction(str(epsilon))
    # Whole counts above the paper's threshold are those above its whole part.
    assert threshold == math.floor(1 + 2 * math.log(2 / delta) / epsilon)


@pytest.mark.parametrize("trips", [1, 2, 7])
@pytest.mark.parametrize("neighbours", ["substitute", "add-remove"])
@pytest.mark.parametrize("is_distinct", [False, True])
def test_several_trips_follow_the_l1_sensitivity_and_the_new_cells(trips, neighbours, is_distinct):
    epsilon, delta = 0.7, 1e-7
    unit = PrivacyUnit(neighbours, trips, distinct=is_distinct)
    scale, threshold = needed(unit, epsilon, delta)
    sides = 2 if neighbours == "substitute" else 1
    assert scale == sides * trips / Fraction("0.7")
    many_cells = 1 + float(scale) * math.log(2 * trips / delta)
    one_cell = (1 if is_distinct else trips) + float(scale) * math.log(2 / delta)
    assert threshold == math.floor(max(many_cells, one_cell))


def test_a_delta_that_is_too_large_for_epsilon_is_refused():
    with pytest.raises(PrivacyError, match="smaller delta"):
        needed(PrivacyUnit(), 0.01, 0.1)


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 1},
        {"delta": 1e-8},
        {"rho": 1},
        {"epsilon": 1, "delta": 1e-8, "rho": 1},
        {"epsilon": 1, "delta": 1e-8, "accountant": "zcdp"},
        {"epsilon": 1, "delta": 1e-8, "split": "geometric:2"},
    ],
)
def test_a_budget_it_cannot_keep_to_is_refused(options):
    with pytest.raises(PrivacyError, match="epsilon and delta"):
        StabilityHistogram().plan(TREE, PrivacyUnit(), **options)


# The plan


def plan_of(**changes):
    plan = make_stability_plan(TREE, PrivacyUnit(), epsilon=1, delta=1e-8)
    return StabilityPlan.from_dict({**plan.to_dict(), **changes})


def test_a_plan_is_read_back_and_verifies():
    plan = plan_of()
    assert plan == make_stability_plan(TREE, PrivacyUnit(), epsilon=1, delta=1e-8)
    plan.verify(TREE)
    assert plan.levels[0].cells == 16


@pytest.mark.parametrize(
    "level",
    [
        {"threshold": 38},  # one less than needed
        {"scale": "199/100"},
        {"scale": "0"},
        {"scale": "x"},
        {"threshold": None},
        {"threshold": 39.9},
        {"threshold": "39"},
        {"threshold": True},
        {"cells": 16.0},
        {"scale": 2},
        {"name": 1},
        {"index": None},
    ],
)
def test_a_plan_with_less_noise_than_it_promises_is_refused(level):
    stated = plan_of().to_dict()["levels"][0]
    assert stated["threshold"] == 39
    with pytest.raises(PrivacyError):
        plan_of(levels=[{**stated, **level}])


@pytest.mark.parametrize(
    "changes",
    [{"epsilon": 0.9}, {"delta": 1e-9}, {"trips": 2}, {"levels": []}, {"neighbours": "x"}],
)
def test_a_plan_that_promises_more_is_refused(changes):
    with pytest.raises(PrivacyError):
        plan_of(**changes)


def test_a_level_is_drawn_once_and_must_be():
    spending = plan_of().spending()
    with pytest.raises(BudgetError, match="not drawn"):
        spending.finish()
    with pytest.raises(BudgetError, match="not in the plan"):
        spending.charge(1)
    assert spending.charge(TREE.levels[-1].index).threshold == 39
    assert spending.is_planned(TREE.levels[-1].index)
    with pytest.raises(BudgetError, match="drawn already"):
        spending.charge(TREE.levels[-1].index)
    spending.finish()


# The mechanism


def counts_of(truth):
    columns = [np.array(column, np.int32) for column in zip(*truth, strict=True)]
    if not truth:
        columns = [np.zeros(0, np.int32)] * 2
    return Truth.from_leaves(TREE, columns, np.array(list(truth.values()), np.int64))


def run(truth, *, seed=0, threads=1, **budget):
    mechanism = StabilityHistogram()
    plan = mechanism.plan(TREE, PrivacyUnit(), **(budget or {"epsilon": 1, "delta": 1e-8}))
    record = Record()
    setting = setting_of(plan, record, seed=seed, threads=threads)
    return cells(mechanism.run(counts_of(truth), setting)), plan, record


def test_there_are_no_false_positives_and_nothing_up_to_the_threshold():
    seen = set()
    for seed in range(50):
        found, plan, _ = run(TRUTH, seed=seed)
        assert set(found) <= set(TRUTH)
        assert min(found.values()) > plan.levels[0].threshold
        seen |= {(cell, value) for cell, value in found.items()}
    assert (3, 3) not in {cell for cell, _ in seen}, "2 trips stay below 39 but for odds of 1e-8"
    assert len({value for cell, value in seen if cell == (0, 1)}) > 3, "there is noise"


@pytest.mark.parametrize("size", [1, 2, 3, 4, 100])
def test_cells_are_kept_exactly_above_the_threshold_in_blocks_of_any_size(monkeypatch, size):
    """Noise is -1 everywhere: 40 trips are 39, and go; 41 are 40, and stay."""
    scales, streams = [], []

    class Minus:
        def __init__(self, scale):
            scales.append(scale)

        def fill(self, out, stream):
            streams.append(stream)
            assert len(out) <= size
            out[:] = -1

    monkeypatch.setattr(stability_histogram, "BLOCK_CELLS", size)
    monkeypatch.setattr(stability_histogram, "DiscreteLaplace", Minus)
    truth = {**TRUTH, (0, 0): 40}
    found, plan, _ = run(truth)
    assert plan.levels[0].threshold == 39
    assert found == {(0, 1): 499, (2, 3): 89, (1, 0): 40}
    assert scales == [plan.levels[0].scale]
    assert len({id(stream) for stream in streams}) == -(-len(truth) // size)


def test_a_table_without_trips_is_released_empty():
    assert run({})[0] == {}


def test_progress_does_not_tell_the_number_of_cells():
    steps = [run(truth)[2].steps for truth in ({}, {(0, 0): 1}, TRUTH)]
    assert steps[0] == steps[1] == steps[2] == [("town > town", 0, 1), ("town > town", 1, 1)]


def test_threads_do_not_change_a_seeded_release(monkeypatch):
    monkeypatch.setattr(stability_histogram, "BLOCK_CELLS", 1)
    assert run(TRUTH, threads=1)[0] == run(TRUTH, threads=3)[0]
