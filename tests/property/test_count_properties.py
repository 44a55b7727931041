"""What holds for the counts of every tree, table and order of refinement."""

from collections import Counter
from itertools import pairwise

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from inftda.counts import Counts
from inftda.hierarchy import Hierarchy
from inftda.tree import Axis, Tree

# The first example may compile kernels, so no example has a deadline.
relaxed = settings(deadline=None, max_examples=60)


def build(splits):
    """A hierarchy from, for every level, the number of children of the areas that have several.

    Areas that are not mentioned have one child; numbers of areas wrap around.
    """
    paths = [()]
    for level in splits:
        children = {area % len(paths): n for area, n in level.items()}
        paths = [
            (*path, f"{path[-1] if path else ''}.{child}")
            for area, path in enumerate(paths)
            for child in range(children.get(area, 1))
        ]
    columns = zip(*paths, strict=True)
    return Hierarchy.read({f"l{i}": list(codes) for i, codes in enumerate(columns, start=1)})


# A level without any split is a trivial step.
small_levels = st.dictionaries(st.integers(0, 9), st.integers(2, 4), max_size=3)
small_hierarchies = st.lists(small_levels, min_size=1, max_size=4).map(build)
# 2,100 children need more than one digit of the radix sort.
wide_levels = st.dictionaries(
    st.integers(0, 9), st.sampled_from([70, 300, 2100]), min_size=1, max_size=1
)
wide_hierarchies = st.lists(wide_levels, min_size=2, max_size=4).map(build)


@st.composite
def trees(draw, hierarchies=small_hierarchies, min_axes=1):
    axes = [
        Axis(name, hierarchy)
        for name, hierarchy in zip(
            "abcd", draw(st.lists(hierarchies, min_size=min_axes, max_size=4)), strict=False
        )
    ]
    mentions = [axis.name for axis in axes for _ in range(axis.hierarchy.depth)]
    return Tree.build(axes, draw(st.permutations(mentions)))


@st.composite
def tables(draw, tree):
    """Leaves, often repeated, and counts, some of them zero."""
    ends = [st.integers(0, axis.hierarchy.n_areas(axis.hierarchy.depth) - 1) for axis in tree.axes]
    amount = st.one_of(st.integers(0, 3), st.integers(0, 2**50))
    some = st.lists(st.tuples(st.tuples(*ends), amount), max_size=30)
    rows = draw(some)
    return rows + draw(st.lists(st.sampled_from(rows), max_size=5)) if rows else rows


@st.composite
def cases(draw, tree_strategy=None):
    tree = draw(trees() if tree_strategy is None else tree_strategy)
    return tree, draw(tables(tree))


several_words = cases(trees(wide_hierarchies, min_axes=3))


def count(tree, rows):
    areas = [np.array([leaf[i] for leaf, _ in rows], np.int32) for i in range(len(tree.axes))]
    return Counts.from_leaves(tree, areas, np.array([n for _, n in rows], np.int64))


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


def key_bits(tree):
    return sum((level.max_children - 1).bit_length() for level in tree.splitting_levels)


def check_reading_back(tree, rows):
    leaves = read_back(count(tree, rows))
    assert len(dict(leaves)) == len(leaves)
    assert dict(leaves) == summed(rows)


def check_sums(counts):
    above = [counts.total] if counts.total else []
    for level in counts.levels:
        assert level.offsets[0] == 0
        assert level.offsets[-1] == len(level.count) == len(level.ordinal)
        assert len(level.offsets) == len(above) + 1
        slices = [level.count[i:j] for i, j in pairwise(level.offsets)]
        assert [int(part.sum()) for part in slices] == list(above)
        assert (level.count > 0).all()
        above = level.count


def check_tree_order(counts):
    """Leaves stand strictly in the order of their refinement paths, as codes."""
    tree = counts.tree
    areas, _ = counts.leaves
    codes = []
    for step in tree.steps:
        hierarchy = tree.axes[step.axis].hierarchy
        area = hierarchy.ancestor(hierarchy.depth, step.level)[areas[step.axis]]
        codes.append(hierarchy.codes(step.level).take(area).to_pylist())
    paths = list(zip(*codes, strict=True))
    assert all(first < second for first, second in pairwise(paths))


@relaxed
@given(cases())
def test_reading_back_the_leaves_gives_the_input(case):
    tree, rows = case
    check_reading_back(tree, rows)


@settings(relaxed, max_examples=40)
@given(several_words)
def test_all_this_holds_where_keys_need_several_words(case):
    tree, rows = case
    assume(key_bits(tree) > 64)
    check_reading_back(tree, rows)
    counts = count(tree, rows)
    check_sums(counts)
    check_tree_order(counts)


@relaxed
@given(cases())
def test_counts_at_every_level_sum_to_their_parents(case):
    tree, rows = case
    counts = count(tree, rows)
    check_sums(counts)
    assert counts.total == sum(n for _, n in rows)


@relaxed
@given(cases())
def test_leaves_stand_in_tree_order(case):
    check_tree_order(count(*case))


@relaxed
@given(cases())
def test_ordinals_ascend_and_stay_below_the_number_of_children(case):
    tree, rows = case
    counts = count(tree, rows)
    for place, level in enumerate(counts.levels):
        areas, _ = counts.nodes(place)
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
