"""Hierarchies: levels, numbering, child ranges, and errors that name the culprit."""

import hashlib
import random

import numpy as np
import pyarrow as pa
import pytest

from inftda.areas.reader import read_areas
from inftda.errors import HierarchyError
from inftda.tree.hierarchy import Hierarchy

# Two regions, three provinces, six towns; the rows are out of order on purpose.
COUNTRY = {
    "region": ["S", "N", "N", "S", "N", "N"],
    "province": ["30", "10", "20", "30", "10", "10"],
    "town": ["30002", "10003", "20001", "30001", "10001", "10002"],
}


@pytest.fixture
def country():
    return Hierarchy.read(COUNTRY)


def random_rows(seed):
    """Paths of a random hierarchy of four levels; nothing in them is sorted."""
    rng = random.Random(seed)
    rows = [()]
    for level in range(4):
        rows = [
            (*row, f"{'/'.join(row)}{level}{child}")
            for row in rows
            for child in rng.sample(range(100), rng.randint(1, 4))
        ]
    rng.shuffle(rows)
    return rows


def read_rows(rows):
    return Hierarchy.read(
        {f"l{level}": list(codes) for level, codes in enumerate(zip(*rows, strict=True))}
    )


@pytest.mark.parametrize("seed", range(5))
def test_child_ranges_nest_the_areas_as_the_rows_do(seed):
    rows = random_rows(seed)
    hierarchy = read_rows(rows)
    for level in range(1, 5):
        paths = sorted({row[:level] for row in rows})
        assert hierarchy.codes(level).to_pylist() == [path[-1] for path in paths]
        above = sorted({row[: level - 1] for row in rows})
        start = hierarchy.child_offsets(level - 1)
        assert len(start) == len(above) + 1
        for parent, first, end in zip(above, start, start[1:], strict=False):
            assert paths[first:end] == [path for path in paths if path[:-1] == parent]
        leaves = [sum(row[:level] == path for row in rows) for path in paths]
        assert hierarchy.leaves_under(level).tolist() == leaves


def test_the_table_lists_every_finest_area_in_depth_first_order(country):
    table = country.to_table()
    assert table.column_names == ["region", "province", "town"]
    assert table.column("province").to_pylist() == ["10", "10", "10", "20", "30", "30"]
    assert Hierarchy.read(table) == country


def test_one_code_may_stand_at_two_levels_in_different_areas():
    hierarchy = Hierarchy.read({"region": ["N", "S"], "town": ["S", "N"]})
    assert hierarchy.codes(1).to_pylist() == ["N", "S"]
    assert hierarchy.codes(2).to_pylist() == ["S", "N"]


FAR = {
    "region": [f"r{i // 50}" for i in range(100)],
    "province": [*(f"p{i // 10}" for i in range(95)), "p0", *["p9"] * 4],
    "town": [f"t{i:03}" for i in range(100)],
}
BLANKS = [None, "", "  ", "\t", "\u00a0"]


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (
            {"region": list("NNS"), "province": list("122"), "town": list("abc")},
            "province '2' lies in two areas of level 'region': 'N' and 'S'; give",
        ),
        (
            {"region": list("NN"), "province": list("12"), "town": list("aa")},
            r"town 'a' .* 'province': '1' and '2'.*one parent",
        ),
        (FAR, r"province 'p0' .* 'r0' and 'r1'"),
        ({"region": list("NNN"), "town": list("abb")}, r"town 'b' is in more than one row.*keep"),
        *(
            (
                {"region": ["N", "N", blank], "town": list("123")},
                r"'region' .*blank in row 3; every",
            )
            for blank in BLANKS
        ),
        ({}, "no levels; give at least one column"),
        ({"town": pa.array([], pa.string())}, "no rows; give one row per finest area"),
        ({" ": ["1"]}, "no name; give it one"),
        ({"all": ["1"]}, r"'all'.*rename that column"),
        # A release is read back from the header that was written for it.
        *(
            ({name: ["1"]}, r"blanks around its name or a line break.*rename")
            for name in ("region ", " region", "re\ngion", "re\rgion")
        ),
    ],
)
def test_what_is_no_hierarchy_is_refused_by_its_culprit(table, says):
    with pytest.raises(HierarchyError, match=says):
        Hierarchy.read(table)


def test_an_unknown_level_is_named_with_the_known_ones(country):
    assert [country.level_of(name) for name in ("ALL", "Region", "TOWN")] == [0, 1, 3]
    alike = Hierarchy.read({"Area": ["1"], "area": ["2"]})
    assert [alike.level_of(name) for name in ("Area", "area")] == [1, 2]
    with pytest.raises(HierarchyError, match="no level 'AREA'; the levels are all, Area, area"):
        alike.level_of("AREA")
    with pytest.raises(HierarchyError, match=r"no level 'city'.*region, province, town"):
        country.level_of("city")


def test_areas_are_found_by_code(country):
    assert country.find(3, ["30001", "10001", "30001"]).tolist() == [4, 0, 4]
    assert country.find(2, []).tolist() == []
    assert country.find(1, ["S"]).dtype == np.int32


def test_an_unknown_area_is_named_with_its_level(country):
    with pytest.raises(HierarchyError, match="no area '99' at level 'town'"):
        country.find(3, ["10001", "99"])


def test_the_outside_area_is_one_more_path_and_changes_nothing_else(country):
    wider = country.with_outside()
    assert [wider.n_areas(level) for level in range(4)] == [1, 3, 4, 7]
    paths = list(zip(*wider.to_table().to_pydict().values(), strict=True))
    assert ("outside",) * 3 in paths
    assert len(set(paths) - {("outside",) * 3}) == 6
    assert country.n_areas(3) == 6
    assert (country.has_outside, wider.has_outside) == (False, True)


@pytest.mark.parametrize(
    ("code", "level"), [("S", "region"), ("20", "province"), ("30001", "town")]
)
def test_an_outside_code_that_is_taken_is_refused(country, code, level):
    with pytest.raises(HierarchyError, match=f"'{code}' is taken at level '{level}'; choose"):
        country.with_outside(code)


@pytest.mark.parametrize(
    "table",
    [
        {"town": ["a"]},
        {"región": ["é", "é", "東京"], "town": ["1", "22", "x" * 300]},
        {"region": list("ABC") * 7, "town": [f"{i}€" for i in range(21)]},
    ],
)
def test_the_fingerprint_is_that_of_its_twin(table):
    """It is part of every release, so it must never change."""
    areas = Hierarchy.read(table)
    digest = hashlib.sha256()
    for level, name in enumerate(areas.level_names, start=1):
        for text in (name, *areas.codes(level).to_pylist()):
            digest.update(len(text.encode()).to_bytes(8, "little") + text.encode())
        digest.update(areas.child_offsets(level - 1).astype("<i4").tobytes())
    assert areas.fingerprint == digest.hexdigest()


def test_a_hierarchy_may_stand_where_a_table_is_read(country):
    assert read_areas(country) is country
    assert read_areas(COUNTRY) == country
