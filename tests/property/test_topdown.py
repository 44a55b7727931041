"""The top-down loop on random trees, counts and units, with and without totals across."""

from fractions import Fraction
from unittest.mock import patch

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fake_noise import Record, always
from inftda.mechanism import batches, topdown
from inftda.mechanism.topdown import release_counts
from inftda.noise.bits import SeededSource
from inftda.privacy.noise_plan import make_plan
from inftda.privacy.unit import Unit
from random_trees import dense, random_counts, random_trees
from tiers import some

UNITS = st.builds(
    Unit,
    st.sampled_from(["substitute", "add-remove"]),
    st.integers(1, 3),
    exactly=st.sampled_from([None, False]),
    distinct=st.booleans(),
)


def outcome_of(counts, unit, rho, *, across=0, seed=0, threads=1):
    account = make_plan(counts.tree, unit, rho=rho, cross_tables=across, method="paper").account()
    return release_counts(counts, account, SeededSource(seed), threads=threads)


def run(*given, **options):
    leaves = outcome_of(*given, **options).leaves
    return leaves.areas, leaves.value


def all_of(outcome):
    """Released leaves, every noisy count by table and cell in order, and the public seed."""
    noisy = [
        (table.depths, *cell, value)
        for table in outcome.noisy
        for *cell, value in zip(*table.cells(), table.value.tolist(), strict=True)
    ]
    return dense(outcome.leaves.areas, outcome.leaves.value), noisy, outcome.seed


@st.composite
def cases(draw, most=1000):
    """A tree with counts, and how much of the budget measures totals across it."""
    counts = draw(random_counts(draw(random_trees()), most))
    return counts, draw(st.sampled_from([0, Fraction(1, 2)]))


@given(
    case=cases(),
    rho=st.sampled_from([Fraction(1, 1000), Fraction(1, 50), Fraction(1), Fraction(100)]),
    seed=st.integers(0, 99),
)
@settings(max_examples=some(100), deadline=None)
def test_a_release_is_positive_whole_and_has_the_public_total(case, rho, seed):
    counts, across = case
    areas, value = run(counts, Unit(), rho, across=across, seed=seed)
    assert value.dtype == np.int64
    assert (value > 0).all()
    assert value.sum() == counts.total
    for axis, numbers in zip(counts.tree.axes, areas, strict=True):
        assert ((numbers >= 0) & (numbers < axis.hierarchy.n_areas(axis.hierarchy.depth))).all()
    assert len(dense(areas, value)) == len(value), "no cell stands twice"


@given(case=cases(), unit=UNITS)
@settings(max_examples=some(80), deadline=None)
def test_without_noise_the_release_is_the_truth(case, unit):
    counts, across = case
    truth = dense(*counts.leaves)
    assert dense(*run(counts, unit, Fraction(5000))) == truth
    with Record(always(0)).watching():
        found = run(counts, unit, Fraction(1, 50), across=across)
    assert dense(*found) == truth


@given(case=cases(), seed=st.integers(0, 99))
@settings(max_examples=some(40), deadline=None)
def test_the_number_of_threads_changes_nothing_also_within_a_group(case, seed):
    counts, across = case
    options = {"rho": Fraction(1, 100), "across": across, "seed": seed}
    one = all_of(outcome_of(counts, Unit(), **options))
    for part, large in ((1 << 19, 1 << 22), (1 << 19, 0), (8, 64), (8, 0)):
        with patch.object(batches, "PART_CHILDREN", part), patch.object(topdown, "LARGE", large):
            assert all_of(outcome_of(counts, Unit(), **options, threads=3)) == one
