"""Stand-ins: coarse flows stay as they are, and who stays in an area mostly stays at home."""

import numpy as np
import pyarrow as pa
import pytest

from inftda.demo import Country, make_country, match_trips, nested_areas
from inftda.errors import InftdaError
from inftda.planning.stand_in import coarsened, from_flows, home_share
from inftda.reading import Columns
from inftda.tree import Tree


@pytest.fixture(scope="module")
def country():
    return make_country((3, 9, 40), 30_000, seed=5)


@pytest.fixture(scope="module")
def tree(country):
    return Tree.destination_first(country.areas)


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


@pytest.mark.parametrize("level", ["region", "province"])
def test_a_spread_table_keeps_its_coarse_flows(country, tree, level):
    coarse = coarse_flows(country, country.areas.level_of(level))
    columns = Columns(repeated_rows="add")
    made = from_flows(tree, coarse, level=level, columns=columns)
    top = Tree.destination_first(coarsened(country.areas, country.areas.level_of(level)))
    again = from_flows(top, coarse, columns=columns).counts
    above = country.areas.ancestor(3, country.areas.level_of(level))
    areas, count = made.counts.leaves
    back = type(again).from_leaves(top, [above[axis] for axis in areas], count)
    for found, wanted in zip(back.leaves[0], again.leaves[0], strict=True):
        assert found.tolist() == wanted.tolist()
    assert back.leaves[1].tolist() == again.leaves[1].tolist()
    assert "Zipf" in made.words


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


def test_a_coarser_table_needs_its_level(country, tree):
    with pytest.raises(InftdaError, match="say at which level"):
        from_flows(tree, coarse_flows(country, 2))
