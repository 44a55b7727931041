"""Areas by name, zones of one's own, and the order of answers."""

import numpy as np
import pytest

from inftda.areas.reader import read_areas
from inftda.errors import ReleaseError
from inftda.tree import Axis, Tree
from inftda.tree.groupings import LEFT_OUT, MIXED, Grouping, Zones, asked_for, find_area, groupings

#: Not in the order of codes; two counties are called Cook, and a state is one county.
AREAS = read_areas(
    {
        "state": ["17", "17", "13", "13", "11"],
        "state_name": ["Illinois", "Illinois", "Georgia", "Georgia", "Columbia"],
        "county": ["17031", "17043", "13075", "13001", "11001"],
        "name": ["Cook County", "DuPage County", "Cook County", "Appling County", "Columbia"],
    }
)
HOME = Axis("origin", AREAS)
TREE = Tree.destination_first(AREAS)


@pytest.mark.parametrize(
    ("name", "level", "code"),
    [
        ("DuPage County", 2, "17043"),
        ("dupage county", 2, "17043"),
        (" Illinois ", 1, "17"),
        ("county:Appling County", 2, "13001"),
        ("Columbia", 1, "11"),  # the county is the same area
        ("county:Columbia", 2, "11001"),
        ("13075", 2, "13075"),
    ],
)
def test_an_area_is_found_by_its_name(name, level, code):
    found, area = find_area(HOME, name)
    assert (found, AREAS.codes(found)[area].as_py()) == (level, code)


def test_areas_of_one_name_are_listed_with_what_they_lie_in():
    with pytest.raises(ReleaseError) as caught:
        find_area(HOME, "Cook County")
    assert str(caught.value) == (
        "origin: 'Cook County' is more than one area: county:13075 'Cook County' in state 13 "
        "(Georgia); county:17031 'Cook County' in state 17 (Illinois). Write its level and its code"
    )


def test_a_name_that_is_misspelt_is_suggested():
    with pytest.raises(ReleaseError, match="did you mean county:17043 'DuPage County' in state 17"):
        find_area(HOME, "Du Page County")
    with pytest.raises(ReleaseError, match="did you mean county:17043 'DuPage County' in state 17"):
        find_area(HOME, "dupage")


def test_answers_come_in_the_order_of_the_areas_table():
    by_state, by_county = (_by(level) for level in ("state", "county"))
    assert by_state.codes.take(by_state.order).to_pylist() == ["17", "13", "11"]
    in_order = by_county.codes.take(by_county.order).to_pylist()
    assert in_order == ["17031", "17043", "13075", "13001", "11001"]


def _by(level, **more):
    return groupings(TREE, {"origin": level}, **more)[0]


# --- Zones


ZONES = {"county": ["17043", "13075", "13001"], "market": ["west", "south", "west"]}


def zoned(**more) -> Grouping:
    return asked_for(TREE, ({}, None), ({}, None), more or ZONES)[0]


def test_zones_are_a_level_of_their_own_and_areas_of_none_are_left_out():
    made = zoned()
    assert made.level == "market"
    assert made.codes.to_pylist() == ["west", "south"], "in the order of their table"
    finest = AREAS.codes(2).to_pylist()
    groups = dict(zip(finest, made.group.tolist(), strict=True))
    assert groups == {"17043": 0, "13075": 1, "13001": 0, "17031": LEFT_OUT, "11001": LEFT_OUT}
    states = dict(zip(AREAS.codes(1).to_pylist(), made.at(1).tolist(), strict=True))
    assert states == {"11": LEFT_OUT, "13": MIXED, "17": MIXED}
    assert made.needed == 2
    assert not made.areas, "the west is no area"


def test_zones_that_are_areas_are_known_as_such():
    made = zoned(county=["17031", "17043", "11001"], zone=["I", "I", "C"])
    assert made.needed == 1
    assert AREAS.codes(1).take(made.areas[1]).to_pylist() == ["17", "11"]


@pytest.mark.parametrize("name", ["west", "market:west"])
def test_a_zone_can_be_named_as_an_area_is(name):
    every = asked_for(TREE, ({"origin": "county"}, None), ({"origin": name}, None), ZONES)
    kept = AREAS.codes(2).take(np.flatnonzero(every[0].group >= 0)).to_pylist()
    assert sorted(kept) == ["13001", "17043"]


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"county": ["17043"]}, "must have two columns"),
        ({"county": ["17043"], "zone": ["a"], "name": ["A"]}, "must have two columns"),
        ({"county": ["17043", "17043"], "zone": ["a", "b"]}, "'17043' is in the zones table twice"),
        ({"county": ["17043", "13001"], "zone": ["a", " "]}, "'zone' of the zones table has a bl"),
        ({"county": ["99"], "zone": ["a"]}, "names county '99', which the release does not have"),
        ({"town": ["17043"], "zone": ["a"]}, "have the name of the finest level, county"),
        ({"county": ["17043"], "state": ["a"]}, "give the second column"),
    ],
)
def test_zones_that_cannot_be_are_told(table, says):
    with pytest.raises(ReleaseError, match=says):
        zoned(**table)


def test_zones_are_read_from_files(tmp_path):
    (file := tmp_path / "zones.csv").write_text("county,zone\n017,a\n")
    assert Zones.read(file).area.to_pylist() == ["017"], "codes are text"
