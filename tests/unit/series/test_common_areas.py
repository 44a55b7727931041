"""Areas that two editions have in common."""

import pytest

from inftda.errors import ReleaseError
from inftda.series.common import common_areas, read_crosswalk
from inftda.tree.hierarchy import Hierarchy

OLD = Hierarchy.read({"region": ["N", "N", "S", "S"], "town": ["a", "b", "c", "d"]})
#: a and b were merged into ab, and d was split into d1 and d2.
NEW = Hierarchy.read({"region": ["N", "S", "S", "S"], "town": ["ab", "c", "d1", "d2"]})
LINKS = [("a", "ab"), ("b", "ab"), ("d", "d1"), ("d", "d2")]


def common(level, old=OLD, new=NEW, links=LINKS):
    found = common_areas("origin", (old, new), level, links)
    codes = found.codes.to_pylist()
    return [[codes[number] for number in side] for side in found.of]


def test_areas_that_were_merged_or_split_are_one():
    assert common("town") == [["ab", "ab", "c", "d"], ["ab", "c", "d", "d"]]
    assert common("region") == [["N", "S"], ["N", "S"]]
    assert common("all") == [["all"], ["all"]]


def test_areas_of_a_common_area_are_found_again():
    found = common_areas("origin", (OLD, NEW), "town", LINKS)
    position, area = found.expand(1, found.of[0][[3, 0]])
    assert position.tolist() == [0, 0, 1]
    assert area.tolist() == [2, 3, 0]


def test_areas_that_are_in_one_edition_only_need_a_crosswalk():
    with pytest.raises(ReleaseError, match=r"old edition has areas .*: a, b, d; give `crosswalk=`"):
        common("town", links=[])


def test_a_region_that_got_other_towns_is_not_comparable():
    moved = Hierarchy.read({"region": ["N", "S", "S", "S"], "town": ["a", "b", "c", "d"]})
    with pytest.raises(ReleaseError, match="'b' is in the region 'N' of the old edition"):
        common("region", new=moved, links=[])
    assert common("town", new=moved, links=[])[0] == ["a", "b", "c", "d"]
    across = Hierarchy.read({"region": ["N", "S"], "town": ["abc", "d"]})
    links = [(town, "abc") for town in "abc"]
    with pytest.raises(ReleaseError, match="made of areas in 'N' and in 'S'"):
        common("region", new=across, links=links)


def test_a_crosswalk_is_a_table_of_two_columns(tmp_path):
    path = tmp_path / "crosswalk.csv"
    path.write_text("old,new\na,ab\nb,ab\n")
    assert read_crosswalk(path) == [("a", "ab"), ("b", "ab")]
    with pytest.raises(ReleaseError, match="no column 'old'"):
        read_crosswalk({"from": ["a"], "to": ["b"]})
