"""Stand-ins: given totals are kept, coarse flows stay as they are, bad input is told."""

import numpy as np
import pyarrow as pa
import pytest

from inftda.areas.build import build_tree
from inftda.demo import Country, make_country, nested_areas
from inftda.errors import InftdaError
from inftda.planning.nested_gravity import match_trips
from inftda.planning.stand_in import coarsened, from_flows, from_totals, home_share
from inftda.reading import Columns
from inftda.tree import Tree


@pytest.fixture(scope="module")
def country():
    return make_country((3, 9, 40), 30_000, seed=5)


@pytest.fixture(scope="module")
def tree(country):
    return Tree.destination_first(country.areas)


def totals_of(made, n):
    areas, count = made.counts.leaves
    return [np.bincount(axis, count, n).astype(int) for axis in areas]


def totals_table(country, *, within=False):
    areas, n = country.areas, country.areas.n_areas(3)
    columns = {
        "municipality": areas.codes(3),
        "out": np.bincount(country.origin, country.count, n).astype(int),
        "in": np.bincount(country.destination, country.count, n).astype(int),
    }
    if within:
        is_within = country.origin == country.destination
        columns["within"] = np.bincount(
            country.origin[is_within], country.count[is_within], n
        ).astype(int)
    return pa.table(columns)


def coarse_flows(country, level):
    hierarchy = country.areas
    above = hierarchy.ancestor(3, level)
    codes = hierarchy.codes(level)
    return pa.table(
        {
            "origin": codes.take(pa.array(above[country.origin])),
            "destination": codes.take(pa.array(above[country.destination])),
            "count": country.count,
        }
    )


@pytest.mark.parametrize("within", [True, False])
def test_made_up_flows_have_the_public_totals(country, tree, within):
    table = totals_table(country, within=within)
    made = from_totals(tree, table)
    out, into = totals_of(made, 40)
    assert out.tolist() == table.column("out").to_pylist()
    assert into.tolist() == table.column("in").to_pylist()
    if within:
        areas, count = made.counts.leaves
        stay = areas[0] == areas[1]
        home = np.bincount(areas[0][stay], count[stay], 40)
        assert (home >= table.column("within").to_numpy()).all()


@pytest.mark.parametrize("level", ["region", "province"])
@pytest.mark.parametrize("has_totals", [True, False])
def test_a_spread_table_keeps_its_coarse_flows(country, tree, level, has_totals):
    coarse = coarse_flows(country, country.areas.level_of(level))
    totals = totals_table(country) if has_totals else None
    columns = Columns(repeated_rows="add")
    made = from_flows(tree, coarse, level=level, totals=totals, columns=columns)
    top = Tree.destination_first(coarsened(country.areas, country.areas.level_of(level)))
    again = from_flows(top, coarse, columns=columns).counts
    above = country.areas.ancestor(3, country.areas.level_of(level))
    areas, count = made.counts.leaves
    back = type(again).from_leaves(top, [above[axis] for axis in areas], count)
    for found, wanted in zip(back.leaves[0], again.leaves[0], strict=True):
        assert found.tolist() == wanted.tolist()
    assert back.leaves[1].tolist() == again.leaves[1].tolist()
    assert ("Zipf" in made.words) is not has_totals


def test_who_stays_in_a_coarse_area_stays_at_home_as_the_nested_model_says():
    each = np.full(1500, 60)
    random = np.random.default_rng(1)
    areas = nested_areas((3, 30, 1500), random)
    made = Country(areas, *match_trips(areas, each, each, random))
    for level in (0, 1, 2, 3):
        above = made.areas.ancestor(3, level)
        is_within = above[made.origin] == above[made.destination]
        home = made.count[made.origin == made.destination].sum()
        # Who goes further comes home by chance now and then.
        assert abs(home / made.count[is_within].sum() - home_share(level, 3)) < 0.02


def bad(country, **changed):
    table = {name: totals_table(country).column(name).to_pylist()
             for name in ("municipality", "out", "in")}  # fmt: skip
    table |= changed
    return {name: column for name, column in table.items() if column is not None}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"in": None}, "no column 'in'"),
        ({"out": ["x"] * 40}, "'out'.*must be numbers"),
        ({"out": [-1] * 40}, "from 0 up"),
        ({"out": [0] * 40}, "no trips"),
        ({"municipality": ["zz"] * 40}, "one row for each of the 40 areas"),
    ],
)
def test_bad_totals_are_told(country, tree, change, words):
    with pytest.raises(InftdaError, match=words):
        from_totals(tree, bad(country, **change))


def test_totals_make_flows_between_the_same_areas_only(country):
    other = {"state": ["a", "b"]}
    tree = build_tree(axis={"origin": country.areas, "destination": other})
    with pytest.raises(InftdaError, match="same areas"):
        from_totals(tree, totals_table(country))


def test_a_coarser_table_needs_its_level(country, tree):
    with pytest.raises(InftdaError, match="say at which level"):
        from_flows(tree, coarse_flows(country, 2))
