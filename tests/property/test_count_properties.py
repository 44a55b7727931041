"""What holds for the counts of every tree, table and order of refinement."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inftda.reading.truth import MAX_TOTAL, Truth
from inftda.tree import Tree
from random_trees import random_trees

pytestmark = pytest.mark.slow

# The first example may compile kernels, so no example has a deadline.
relaxed = settings(deadline=None, max_examples=60)


@st.composite
def tables(draw, tree):
    """Leaves, often repeated, and counts, some of them zero."""
    ends = [st.integers(0, axis.hierarchy.n_areas(axis.hierarchy.depth) - 1) for axis in tree.axes]
    amount = st.one_of(st.integers(0, 3), st.integers(0, MAX_TOTAL // 35))  # of 35 rows at most
    some = st.lists(st.tuples(st.tuples(*ends), amount), max_size=30)
    rows = draw(some)
    return rows + draw(st.lists(st.sampled_from(rows), max_size=5)) if rows else rows


@st.composite
def cases(draw):
    tree = draw(random_trees(max_axes=4))
    return tree, draw(tables(tree))


def count(tree, rows):
    areas = [np.array([leaf[i] for leaf, _ in rows], np.int32) for i in range(len(tree.axes))]
    return Truth.from_leaves(tree, areas, np.array([n for _, n in rows], np.int64))


def summed(rows):
    table = Counter()
    for leaf, n in rows:
        table[leaf] += n
    return {leaf: n for leaf, n in table.items() if n}


def read_back(counts):
    areas, value = counts.leaves
    return list(
        zip(zip(*(axis.tolist() for axis in areas), strict=True), value.tolist(), strict=True)
    )


@relaxed
@given(cases())
def test_reading_back_the_leaves_gives_the_input(case):
    tree, rows = case
    leaves = read_back(count(tree, rows))
    assert len(dict(leaves)) == len(leaves)
    assert dict(leaves) == summed(rows)


@relaxed
@given(cases())
def test_counts_at_every_level_sum_to_their_parents(case):
    tree, rows = case
    truth = count(tree, rows)
    assert truth.total == sum(n for _, n in rows)
    above = np.array([truth.total])
    for number, level in enumerate(truth.levels):
        assert level.offsets[-1] == len(level.count) == len(level.ordinal)
        assert level.parents().value.tolist() == above[truth.above(number)].tolist()
        assert (level.count > 0).all()
        above = level.count


@relaxed
@given(cases())
def test_ordinals_ascend_and_stay_below_the_number_of_children(case):
    tree, rows = case
    counts = count(tree, rows)
    for level in counts.levels:
        areas = level.level.areas_of(level.key)
        n_children = np.diff(level.level.child_offsets)[areas[level.level.axis]]
        for (i, j), most in zip(pairwise(level.offsets), n_children, strict=True):
            ordinals = level.ordinal[i:j].tolist()
            assert ordinals == sorted(set(ordinals))
            assert 0 <= ordinals[0] <= ordinals[-1] < most


@relaxed
@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(case, random):
    tree, rows = case
    shuffled = random.sample(rows, len(rows))
    assert read_back(count(tree, shuffled)) == read_back(count(tree, rows))


@relaxed
@given(cases(), st.data())
def test_the_order_of_axes_changes_the_order_of_leaves_only(case, data):
    tree, rows = case
    other = Tree.build(tree.axes, data.draw(st.permutations(tree.order)))
    assert sorted(read_back(count(other, rows))) == sorted(read_back(count(tree, rows)))
