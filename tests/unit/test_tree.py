"""Trees: axes, order of refinement, and the shape of every level."""

import heapq
import itertools
from collections import Counter

import numpy as np
import pytest

from inftda.areas.build import build_tree, default_order
from inftda.errors import TreeError
from inftda.tree import DESTINATION, ORIGIN, Axis, Tree
from inftda.tree.hierarchy import Hierarchy
from inftda.tree.tree import interleave
from random_trees import origin_first

# Two regions (4 + 2 towns), three provinces (3 + 1 + 2).
AREAS = Hierarchy.read(
    {
        "region": ["N", "N", "N", "N", "S", "S"],
        "province": ["10", "10", "10", "20", "30", "30"],
        "municipality": ["a", "b", "c", "d", "e", "f"],
    }
)
ZONES = Hierarchy.read({"zone": ["1", "2", "3"]})
MODES = Hierarchy.read({"mode": ["bike", "car"]})
# One state, a level that repeats the one above, and two that split.
WITH_TRIVIAL = Hierarchy.read(
    {
        "state": ["I", "I", "I"],
        "region": ["N", "N", "S"],
        "region again": ["n", "n", "s"],
        "town": ["1", "2", "3"],
    }
)


def flat(n, name="code"):
    return Hierarchy.read({name: np.arange(n).astype(str)})


def names(tree):
    return [level.name for level in tree.levels]


def leaf_paths(hierarchy):
    return list(zip(*hierarchy.to_table().to_pydict().values(), strict=True))


def capacities_by_brute_force(tree, index):
    """How many nodes of a level have how many leaves, by listing every leaf of the tree."""
    depths = tree.levels[index].depths
    leaves = itertools.product(*(leaf_paths(axis.hierarchy) for axis in tree.axes))
    nodes = Counter(
        tuple(path[:depth] for path, depth in zip(leaf, depths, strict=True)) for leaf in leaves
    )
    return Counter(nodes.values())


def test_the_ends_are_refined_in_turn():
    tree = Tree.destination_first(AREAS)
    assert names(tree) == [
        "all > all",
        "all > region",
        "region > region",
        "region > province",
        "province > province",
        "province > municipality",
        "municipality > municipality",
    ]
    assert tree.order == (DESTINATION, ORIGIN) * 3
    assert tree.is_od
    tree = origin_first(AREAS)
    assert names(tree)[1:3] == ["region > all", "region > region"]
    assert tree.order == (ORIGIN, DESTINATION) * 3


def test_when_one_end_is_used_up_the_other_goes_on():
    tree = Tree.destination_first(origin=AREAS, destination=ZONES)
    assert names(tree) == [
        "all > all",
        "all > zone",
        "region > zone",
        "province > zone",
        "municipality > zone",
    ]
    tree = Tree.destination_first(origin=ZONES, destination=AREAS)
    assert tree.order == (DESTINATION, ORIGIN, DESTINATION, DESTINATION)


def test_the_root_is_one_node_that_no_step_leads_to():
    root = Tree.destination_first(AREAS).levels[0]
    assert (root.n_nodes, root.refined, root.is_trivial) == (1, None, False)
    with pytest.raises(TreeError, match="root"):
        _ = root.axis


def test_sizes_far_beyond_64_bits_are_exact_and_not_built():
    tree = Tree.build([Axis(name, flat(10_000)) for name in "abcde"], "abcde")
    assert [level.n_nodes for level in tree.levels] == [10_000**k for k in range(6)]
    assert all(type(level.n_nodes) is int for level in tree.levels)
    assert all(type(level.max_children) is int for level in tree.levels)
    assert next(tree.levels[1].leaf_capacities()) == (10**16, 10_000)
    assert list(tree.levels[0].leaf_capacities()) == [(10**20, 1)]
    assert list(tree.levels[5].leaf_capacities()) == [(1, 10**20)]


def test_a_step_in_which_no_area_splits_is_trivial_and_not_counted():
    tree = Tree.destination_first(WITH_TRIVIAL)
    trivial = [level.index for level in tree.levels if level.is_trivial]
    assert trivial == [1, 2, 5, 6]
    assert [level.index for level in tree.splitting_levels] == [3, 4, 7, 8]
    assert tree.depth == 4
    assert all(tree.levels[index].max_children == 1 for index in trivial)


def test_a_tree_of_one_leaf_measures_nothing():
    one = Hierarchy.read({"state": ["I"], "region": ["N"]})
    tree = Tree.destination_first(one)
    assert (tree.depth, len(tree.levels), tree.levels[-1].n_nodes) == (0, 5, 1)


@pytest.mark.parametrize(
    "tree",
    [
        pytest.param(Tree.destination_first(AREAS), id="destination tree"),
        pytest.param(origin_first(AREAS, ZONES), id="different depths"),
        pytest.param(Tree.destination_first(WITH_TRIVIAL, AREAS), id="trivial steps"),
        pytest.param(
            Tree.build([Axis("d", AREAS), Axis("m", MODES), Axis("z", ZONES)], "ddmzd"),
            id="three axes",
        ),
    ],
)
def test_leaf_capacities_are_those_of_all_nodes_with_the_largest_first(tree):
    for level in tree.levels:
        found = list(level.leaf_capacities())
        sizes = [leaves for leaves, _ in found]
        assert sizes == sorted(sizes, reverse=True)
        counted = Counter()
        for leaves, nodes in found:
            counted[leaves] += nodes
        assert counted == capacities_by_brute_force(tree, level.index)


def test_leaf_capacities_are_made_only_as_far_as_they_are_asked_for(monkeypatch):
    # 300 areas with 1 to 300 leaves on each of three axes: 27 million products.
    areas = np.repeat(np.arange(300), np.arange(1, 301))
    codes = {"area": areas.astype(str), "leaf": np.arange(len(areas)).astype(str)}
    axes = [Axis(name, Hierarchy.read(codes)) for name in "xyz"]
    level = Tree.build(axes, "xyzxyz").levels[3]
    pushed = []
    push = heapq.heappush
    monkeypatch.setattr(heapq, "heappush", lambda *a: (pushed.append(1), push(*a)))
    first = list(itertools.islice(level.leaf_capacities(), 4))
    assert len(pushed) <= 3 * 4, "each product asked for makes at most one more on each axis"
    assert first == [(300**3, 1), *[(299 * 300**2, 1)] * 3]


def test_the_default_order_takes_the_ends_in_turn_and_then_the_others():
    axes = [Axis("mode", MODES), Axis(ORIGIN, ZONES), Axis(DESTINATION, AREAS), Axis("z", AREAS)]
    ends = [DESTINATION, ORIGIN, DESTINATION, DESTINATION]
    assert default_order(axes) == [*ends, "mode", "z", "z", "z"]


def test_the_default_order_of_the_two_ends_is_the_destination_tree():
    tree = Tree.destination_first(AREAS, ZONES)
    assert tuple(default_order(tree.axes)) == tree.order
    ends = {ORIGIN: AREAS, DESTINATION: ZONES}
    by_turns = build_tree(axis=ends, order=(ORIGIN, DESTINATION))
    assert by_turns == origin_first(AREAS, ZONES)


def test_interleaving_takes_one_level_of_each_axis_in_turn():
    axes = [Axis("a", MODES), Axis("b", AREAS), Axis("c", WITH_TRIVIAL)]
    assert interleave(axes) == ["a", "b", "c", "b", "c", "b", "c", "c"]


@pytest.mark.parametrize(
    ("axes", "order", "says"),
    [
        ([AREAS], ["area", "mode"], "the axis 'mode'; the axes are area"),
        ([AREAS], [], "'area' 0 times, but its hierarchy has 3 levels; name it once for each"),
        ([AREAS], ["area"] * 4, "'area' 4 times"),
        ([ZONES, ZONES], ["area", "area"], "'area' is given twice"),
        ([], [], "at least one axis"),
    ],
)
def test_a_tree_that_cannot_be_built_is_refused(axes, order, says):
    with pytest.raises(TreeError, match=says):
        Tree.build([Axis("area", areas) for areas in axes], order)
