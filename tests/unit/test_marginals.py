from fractions import Fraction
from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inftda.privacy.noise_plan import cross_table_weights
from inftda.tree import Axis, Tree
from inftda.tree.cross_tables import CELLS_PER_AREA, chains
from inftda.tree.hierarchy import Hierarchy
from random_trees import random_trees
from tiers import some


def hierarchy(*sizes):
    """A hierarchy with that many areas at each level."""
    columns = {}
    index = list(range(sizes[-1]))
    for level in reversed(range(len(sizes))):
        columns[f"level{level}"] = [f"{level}:{i:04}" for i in index]
        index = [i * sizes[level - 1] // sizes[level] for i in index]
    return Hierarchy.read(dict(reversed(columns.items())))


def depths(tree):
    return [table.depths for table in tree.cross_tables]


def test_two_axes_of_two_levels_have_four_tables_off_the_tree():
    tree = Tree.destination_first(hierarchy(2, 6))
    assert depths(tree) == [(1, 0), (0, 2), (2, 0), (2, 1)]
    assert [table.index for table in tree.cross_tables] == [2, 3, 4, 4]
    assert [t.is_finest_one_way for t in tree.cross_tables] == [False, True, True, False]


def test_one_axis_has_nothing_off_the_tree():
    assert not depths(Tree.build([Axis("area", hierarchy(2, 6))], ["area", "area"]))


def test_a_level_that_splits_nothing_is_not_measured_twice():
    plain, repeated = hierarchy(2, 6), hierarchy(2, 2, 6, 6)
    assert len(depths(Tree.destination_first(repeated))) == len(
        depths(Tree.destination_first(plain))
    )


def test_no_table_of_three_axes_is_measured():
    axes = [Axis(name, hierarchy(3)) for name in "abc"]
    tree = Tree.build(axes, "abc")
    assert depths(tree) == [(0, 1, 0), (0, 0, 1), (1, 0, 1), (0, 1, 1)]


def test_tables_with_too_many_cells_are_not_measured():
    areas = hierarchy(CELLS_PER_AREA + 1, 1000)
    assert depths(Tree.destination_first(areas)) == [(1, 0), (0, 2), (2, 0)]


def refined(tree, levels):
    """Leaves as cells of the table at these levels: equal tables are equal partitions."""
    ancestors = [
        axis.hierarchy.ancestor(axis.hierarchy.depth, level).tolist()
        for axis, level in zip(tree.axes, levels, strict=True)
    ]
    return tuple(product(*ancestors))


@pytest.mark.slow
@given(tree=random_trees())
@settings(max_examples=some(100), deadline=None)
def test_every_small_marginal_is_measured_exactly_once(tree):
    all_levels = product(*(range(axis.hierarchy.depth + 1) for axis in tree.axes))
    wanted = {
        refined(tree, levels)
        for levels in all_levels
        if sum(axis.hierarchy.n_areas(n) > 1 for axis, n in zip(tree.axes, levels, strict=True))
        <= 2
    }
    on_tree = {refined(tree, level.depths) for level in tree.levels}
    found = [refined(tree, levels) for levels in depths(tree)]
    assert len(set(found)) == len(found)
    assert set(found) == wanted - on_tree


@given(tree=random_trees())
@settings(max_examples=some(100), deadline=None)
def test_tables_of_a_step_separate_its_areas_and_nest_in_chains(tree):
    for level in tree.splitting_levels:
        here = tree.cross_tables_at(level)
        assert all(table.depths[level.axis] == level.depths[level.axis] for table in here)
        assert all(a <= b for t in here for a, b in zip(t.depths, level.depths, strict=True))
        found = chains([table.depths for table in here])
        assert sorted(at for chain in found for at in chain) == sorted(t.depths for t in here)
        for chain in found:
            for coarse, fine in pairwise(chain):
                assert all(a <= b for a, b in zip(coarse, fine, strict=True))


@given(tree=random_trees(), share=st.sampled_from(["0.01", "0.08", "0.3"]))
@settings(max_examples=some(100), deadline=None)
def test_weights_stay_within_the_share(tree, share):
    tables = tree.cross_tables
    given_out = cross_table_weights(tables, tree.depth, Fraction(share))
    budget = tree.depth * Fraction(share) / (1 - Fraction(share))
    assert sum(given_out) <= budget
    finest = [w for w, table in zip(given_out, tables, strict=True) if table.is_finest_one_way]
    others = [w for w, table in zip(given_out, tables, strict=True) if not table.is_finest_one_way]
    assert not others or others[0] == 1 or sum(finest) + 2 * sum(others) > budget
    assert not finest or finest[0] == 1 or 2 * sum(finest) > budget / 2
