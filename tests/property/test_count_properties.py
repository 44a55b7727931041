"""What holds for the counts of every tree, table and order of refinement."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inftda.reading.truth import MAX_TOTAL, Truth
from inftda.tree import Tree
from random_trees import random_trees
from reference_truth import check_nodes

pytestmark = pytest.mark.slow


@st.composite
def tables(draw, tree):
    """Leaves, often repeated, and counts, some of them zero."""
    ends = [st.integers(0, axis.hierarchy.n_areas(axis.hierarchy.depth) - 1) for axis in tree.axes]
    amount = st.one_of(st.integers(0, 3), st.integers(0, MAX_TOTAL // 35))  # of 35 rows at most
    rows = draw(st.lists(st.tuples(st.tuples(*ends), amount), max_size=30))
    return rows + draw(st.lists(st.sampled_from(rows), max_size=5)) if rows else rows


def count(tree, rows):
    areas = [np.array([leaf[i] for leaf, _ in rows], np.int32) for i in range(len(tree.axes))]
    return areas, np.array([n for _, n in rows], np.int64)


def read_back(tree, rows):
    areas, value = Truth.from_leaves(tree, *count(tree, rows)).leaves
    return list(zip(*(axis.tolist() for axis in areas), value.tolist(), strict=True))


@given(st.data())
@settings(deadline=None, max_examples=100)  # the first example may compile kernels
def test_counts_of_every_level_are_those_of_the_twin_in_any_order_of_rows_and_axes(data):
    tree = data.draw(random_trees(max_axes=4))
    rows = data.draw(tables(tree))
    check_nodes(tree, *count(tree, rows))
    assert read_back(tree, data.draw(st.permutations(rows))) == read_back(tree, rows)
    other = Tree.build(tree.axes, data.draw(st.permutations(tree.order)))
    assert sorted(read_back(other, rows)) == sorted(read_back(tree, rows))
