"""Sums over areas, against grouping the rows by hand."""

import itertools

import pyarrow as pa
import pytest
from small_release import (
    ABROAD,
    DISEASES,
    HEALTH,
    HOME,
    OD,
    ancestors,
    as_dict,
    grouped,
    manifest_of,
    rows_of,
    table_of,
)

from inftda.errors import ReleaseError
from inftda.publication.query import sum_flows
from inftda.publication.release import Release
from inftda.tree import Axis, Tree
from inftda.tree.groupings import find_area, groupings

CROSSES = [
    pytest.param(tree, dict(zip([axis.name for axis in tree.axes], chosen, strict=True)))
    for tree in (OD, HEALTH)
    for chosen in itertools.product(*(("all", *axis.hierarchy.level_names) for axis in tree.axes))
]


FINEST = {"origin": "town", "destination": "city"}


def summed(tree, rows, asked):
    leaves = Release(manifest_of(tree, rows), tree, table_of(tree, rows)).leaves()
    half = len(leaves.value) // 2
    parts = [leaves.take(slice(half)), leaves.take(slice(half, None))]
    return sum_flows([(areas, [value]) for areas, value in parts], ["flow"], asked)


@pytest.mark.parametrize(("tree", "levels"), CROSSES)
def test_every_cross_of_levels_is_the_sum_of_the_finest_flows(tree, levels):
    rows = rows_of(tree)
    found = summed(tree, rows, groupings(tree, levels))
    assert as_dict(found) == grouped(tree, rows, levels)
    shown = [name for name in levels if levels[name] != "all"]
    assert found.column_names == [*shown, "flow"]
    assert found.schema.field("flow").type == pa.int64()
    listed = {
        axis.name: list(dict.fromkeys(ancestors(axis.hierarchy, levels[axis.name]).values()))
        for axis in tree.axes
    }
    keys = [tuple(listed[name].index(row[name]) for name in shown) for row in found.to_pylist()]
    assert keys == sorted(keys), "answers come in the order of the areas"


@pytest.mark.parametrize(
    ("where", "origins", "destinations"),
    [
        ({"origin": "N"}, {"001", "002", "010"}, "xyzA"),
        ({"origin": "001"}, {"001"}, "xyzA"),
        ({"origin": "province:n1"}, {"001", "002"}, "xyzA"),
        ({"origin": ["n1", "S"]}, {"001", "002", "1", "2"}, "xyzA"),
        ({"origin": ["N", "001"]}, {"001", "002", "010"}, "xyzA"),
        ({"origin": "3"}, {"3"}, "xyzA"),
        ({"destination": "state:A"}, {"001", "002", "010", "1", "2", "3"}, "xy"),
        ({"destination": "city:A"}, {"001", "002", "010", "1", "2", "3"}, "A"),
        ({"origin": "S", "destination": ["x", "B"]}, {"1", "2"}, "xzA"),
        ({"origin": []}, set(), "xyzA"),
    ],
)
@pytest.mark.parametrize(
    "levels", [FINEST, {"origin": "region"}, {"destination": "state"}, {}], ids=str
)
def test_only_flows_between_the_named_areas_are_counted(where, origins, destinations, levels):
    rows = rows_of(OD)
    found = as_dict(summed(OD, rows, groupings(OD, levels, where)))
    expected = grouped(
        OD, rows, levels, kept=lambda cell: cell[0] in origins and cell[1] in destinations
    )
    if not levels:  # one row, and the sum of no flows is 0
        expected = expected or {(): 0}
    assert found == expected


@pytest.mark.parametrize(
    ("hierarchy", "name", "says"),
    [
        (HOME, "Atlantis", "no area 'Atlantis'"),
        (HOME, "", "no area ''"),
        (HOME, "n", "no area 'n'"),  # codes are written as they are
        (HOME, "region:001", "no area '001'"),
        (HOME, "region:", "no area ''"),
        (HOME, "planet:N", "no area 'planet:N'"),
        (ABROAD, "A", "more than one area: state:A; city:A in state B"),
    ],
)
def test_an_area_that_is_unknown_or_ambiguous_is_told(hierarchy, name, says):
    with pytest.raises(ReleaseError, match=says) as caught:
        find_area(Axis("origin", hierarchy), name)
    assert "origin" in str(caught.value)


def test_a_code_with_a_colon_is_a_code_unless_a_level_is_called_so():
    from inftda.tree.hierarchy import Hierarchy  # noqa: PLC0415 - this test only

    odd = Axis("x", Hierarchy.read({"a": ["b:1", "c"], "d": ["a:c", "e"]}))
    assert find_area(odd, "b:1") == (1, 0)
    assert find_area(odd, "d:a:c") == (2, 0)
    assert find_area(odd, "a:c") == (1, 1), "the area c of level a"


@pytest.mark.parametrize("name", ['"', "a b", 'x"; DROP TABLE flows; --', "SELECT", "Ü", "finest"])
def test_an_axis_may_have_any_name(name):
    tree = Tree.build([Axis(name, DISEASES)], [name, name])
    rows = {("flu",): 5, ("gout",): 2, ("cold",): 1}
    found = summed(tree, rows, groupings(tree, {name: "chapter"}, {name: "I"}))
    assert as_dict(found) == {("I",): 6}
    assert found.column_names == [name, "flow"]


def test_sums_are_exact_where_floats_are_not():
    rows = {("flu",): 2**53, ("cold",): 1, ("gout",): 2**60}
    tree = Tree.build([Axis("d", DISEASES)], ["d", "d"])
    found = as_dict(summed(tree, rows, groupings(tree, {"d": "chapter"})))
    assert found == {("I",): 2**53 + 1, ("II",): 2**60}
    whole = as_dict(summed(tree, rows, groupings(tree, {})))
    assert whole == {(): 2**60 + 2**53 + 1}
