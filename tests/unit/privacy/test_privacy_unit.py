"""Sensitivities against every pair of neighbours of small trees."""

import itertools

import numpy as np
import pytest
from handmade import (
    BINARY_TREE,
    DESTINATION_TREE,
    LOPSIDED_TREE,
    UNEVEN_TREE,
    HandmadeTree,
    changes,
)

from inftda.areas.build import build_tree
from inftda.errors import PrivacyError
from inftda.privacy.unit import Unit
from inftda.tree import Tree
from inftda.tree.hierarchy import Hierarchy

UNITS = [
    Unit(neighbours, trips, exactly=exactly, distinct=distinct)
    for neighbours, trips, exactly, distinct in itertools.product(
        ("substitute", "add-remove"), (1, 2, 3), (True, False), (True, False)
    )
    if neighbours == "substitute" or not exactly
]
TREES = {
    "destination": DESTINATION_TREE,
    "binary": BINARY_TREE,
    "uneven": UNEVEN_TREE,
    "lopsided": LOPSIDED_TREE,
}


def largest_squared_changes(tree, unit):
    return [int((change**2).sum(axis=1).max()) for change in changes(tree, unit)]


def sensitivities(tree, unit):
    return [unit.squared_sensitivity(level) for level in tree.levels]


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_no_pair_of_neighbours_is_further_apart_than_the_sensitivity(tree, unit):
    found = largest_squared_changes(tree, unit)
    assert all(f <= s for f, s in zip(found, sensitivities(tree, unit), strict=True))
    assert Unit.from_dict(unit.to_dict()) == unit


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_some_pair_of_neighbours_is_as_far_apart_as_the_sensitivity(unit):
    assert largest_squared_changes(BINARY_TREE, unit) == sensitivities(BINARY_TREE, unit)


def test_the_rule_for_distinct_trips_fills_the_largest_nodes_first():
    # Nodes of 4, 3, 3 and 1 leaves, 9 trips: 16 + 9 + 2^2.
    tree = HandmadeTree.of((0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3), range(11))
    root, nodes, leaves = tree.levels
    unit = Unit("add-remove", 9, distinct=True)
    assert unit.squared_sensitivity(nodes) == 16 + 9 + 4
    assert unit.squared_sensitivity(leaves) == 9
    assert unit.squared_sensitivity(root) == 81


def test_more_distinct_trips_than_leaves_count_as_the_leaves():
    unit = Unit("substitute", 100, exactly=False, distinct=True)
    assert sensitivities(LOPSIDED_TREE, unit) == [16, 2 * (9 + 1), 2 * 4]


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_the_root_is_public_exactly_when_no_neighbour_changes_the_total(unit):
    assert unit.root_is_public == (largest_squared_changes(BINARY_TREE, unit)[0] == 0)


@pytest.mark.parametrize("unit", [u for u in UNITS if u.trips == 1], ids=str)
def test_a_single_trip_changes_so_many_cells_by_one(unit):
    for level, change in zip(BINARY_TREE.levels, changes(BINARY_TREE, unit), strict=True):
        assert np.abs(change).max(initial=0) <= 1
        if level.index or not unit.root_is_public:
            assert np.abs(change).sum(axis=1).max() == unit.sides(level.index)


def test_real_trees_tell_their_capacities_as_handmade_ones_do():
    areas = Hierarchy.read({"region": ["N", "N", "S"], "town": ["1", "2", "3"]})
    tree = Tree.destination_first(areas)
    pairs = list(itertools.product(range(3), range(3)))  # (destination, origin)
    region = (0, 0, 1)
    handmade = HandmadeTree.of(
        [region[d] for d, _ in pairs],
        [2 * region[d] + region[o] for d, o in pairs],
        [2 * d + region[o] for d, o in pairs],
        range(9),
    )
    for trips in range(1, 11):
        unit = Unit("substitute", trips, exactly=False, distinct=True)
        assert sensitivities(tree, unit) == sensitivities(handmade, unit)


YEAR = {"quarter": ["a", "a", "b", "b"], "month": ["1", "2", "3", "4"]}
TOWNS = {"region": ["N", "N", "S"], "town": ["x", "y", "z"]}


def monthly(unit):
    """Leaf counts of all that one person may contribute, by town and month, one row each."""
    rows = []
    for size in range(unit.trips if unit.exactly else 0, unit.trips + 1):
        for months in itertools.combinations(range(4), size):
            for towns in itertools.product(range(3), repeat=size):
                rows.append(np.zeros((3, 4), np.int64))
                rows[-1][towns, months] = 1
    return np.array(rows)


@pytest.mark.parametrize("order", [None, ["month", "town"] * 2, ["town", "town", "month", "month"]])
@pytest.mark.parametrize("trips", [2, 3, 4])
@pytest.mark.parametrize("neighbours", ["add-remove", "at most", "exactly"])
def test_one_trip_in_each_month_against_every_pair_of_neighbours(neighbours, trips, order):
    kind = "add-remove" if neighbours == "add-remove" else "substitute"
    unit = Unit(kind, trips, exactly=neighbours == "exactly", once_per="month")
    tree = build_tree(axis={"town": TOWNS, "month": YEAR}, order=order, first=unit.once_per)
    own = monthly(unit)
    others = own if unit.is_substitute else np.zeros((1, 3, 4), np.int64)
    change = (own[:, None] - others[None]).reshape(-1, 12)
    leaves = [np.repeat(np.arange(3), 4), np.tile(np.arange(4), 3)]
    for part in (*tree.levels, *tree.cross_tables):
        node = part.numbers(part.above(leaves))
        under = node[:, None] == np.arange(part.n_nodes)
        worst = int(((change @ under) ** 2).sum(axis=1).max())
        stated = unit.squared_sensitivity(part)
        assert worst <= stated
        # Where everybody has a trip in each month, two people share no month: less is reached.
        assert worst == stated or unit.is_substitute
        assert stated <= Unit(kind, trips, exactly=unit.exactly).squared_sensitivity(part)
    if not unit.is_substitute:
        assert unit.squared_sensitivity(tree.levels[-1]) == trips
    assert Unit.from_dict(unit.to_dict()) == unit


def test_an_axis_with_one_trip_in_each_area_is_refined_first():
    tree = build_tree(axis={"town": TOWNS, "month": YEAR}, first="month")
    assert tree.order == ("month", "month", "town", "town")
    with pytest.raises(PrivacyError, match=r"once_per.*the axes are town, month"):
        Unit(trips=2, once_per="day").squared_sensitivity(tree.levels[1])


def test_exactly_is_assumed_for_substitute_and_dropped_for_add_remove():
    assert Unit().exactly is True
    assert Unit("add-remove", exactly=True) == Unit("add-remove", exactly=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"neighbours": "swap"}, "neighbours"),
        ({"trips": 0}, "trips"),
        ({"trips": -1}, "trips"),
        ({"trips": 1.5}, "trips"),
        ({"trips": True}, "trips"),
        ({"exactly": "yes"}, "exactly"),
        ({"distinct": None}, "distinct"),
        ({"once_per": "month"}, "once_per.*trips"),
        ({"once_per": 3, "trips": 2}, "once_per"),
    ],
)
def test_a_unit_that_means_nothing_is_refused(arguments, message):
    with pytest.raises(PrivacyError, match=message):
        Unit(**arguments)


@pytest.mark.parametrize("data", [None, {}, {"neighbours": "substitute"}, []])
def test_a_damaged_unit_is_refused(data):
    with pytest.raises(PrivacyError):
        Unit.from_dict(data)


@pytest.mark.parametrize(
    ("unit", "outside", "is_broken"),
    [
        (Unit(trips=3, distinct=True), ["month"], True),
        (Unit(trips=3, distinct=True), [], False),
        (Unit(trips=3), ["month"], False),
        (Unit(distinct=True), ["month"], False),
        (Unit(trips=3, once_per="month"), ["month"], True),
        (Unit(trips=3, once_per="month"), ["origin"], False),
    ],
    ids=str,
)
def test_unknown_places_may_make_trips_equal_that_must_differ(unit, outside, is_broken):
    assert unit.is_broken_by(outside) == is_broken
    assert unit.forbids_repeats == (unit.distinct and unit.trips > 1 and unit.once_per is None)
