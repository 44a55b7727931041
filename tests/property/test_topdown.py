"""The top-down loop on random trees, counts and units."""

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from inftda.mechanism.topdown import release_counts
from inftda.noise.bits import SeededSource
from inftda.privacy.plan import make_plan
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


def run(counts, unit, rho, *, seed=0, threads=1):
    account = make_plan(counts.tree, unit, rho=rho).account()
    leaves = release_counts(counts, account, SeededSource(seed), threads=threads).leaves
    return leaves.areas, leaves.value


@given(data=st.data())
@settings(max_examples=some(40), deadline=None)
def test_a_release_is_positive_whole_and_has_the_public_total(data):
    tree = data.draw(random_trees())
    counts = data.draw(random_counts(tree))
    rho = data.draw(st.sampled_from([Fraction(1, 100), Fraction(1), Fraction(100)]))
    areas, value = run(counts, Unit(), rho, seed=data.draw(st.integers(0, 99)))
    assert value.dtype == np.int64
    assert (value > 0).all()
    assert value.sum() == counts.total
    for axis, numbers in zip(tree.axes, areas, strict=True):
        assert ((numbers >= 0) & (numbers < axis.hierarchy.n_areas(axis.hierarchy.depth))).all()
    cells = set(zip(*(axis.tolist() for axis in areas), strict=True))
    assert len(cells) == len(value), "no cell stands twice"


@given(data=st.data())
@settings(max_examples=some(40), deadline=None)
def test_with_next_to_no_noise_the_release_is_the_truth(data):
    tree = data.draw(random_trees())
    counts = data.draw(random_counts(tree))
    unit = data.draw(UNITS)
    areas, value = run(counts, unit, Fraction(5000))
    assert dense(tree, areas, value) == dense(tree, *counts.leaves)


@given(data=st.data())
@settings(max_examples=some(30), deadline=None)
def test_the_number_of_threads_changes_nothing(data):
    tree = data.draw(random_trees())
    counts = data.draw(random_counts(tree))
    one = run(counts, Unit(), Fraction(1), threads=1)
    two = run(counts, Unit(), Fraction(1), threads=3)
    assert dense(tree, *one) == dense(tree, *two)


@given(data=st.data())
@settings(max_examples=some(40), deadline=None)
def test_a_noised_total_is_never_negative_and_leaves_sum_to_it(data):
    tree = data.draw(random_trees())
    counts = data.draw(random_counts(tree, most=3))
    _, value = run(counts, Unit("add-remove"), Fraction(1, 50), seed=data.draw(st.integers(0, 99)))
    assert (value > 0).all()
