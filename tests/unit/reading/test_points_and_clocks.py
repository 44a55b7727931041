"""Points and time stamps instead of codes: the same leaves from every kind of source."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

import inftda
from inftda.areas.build import clock_hierarchy
from inftda.areas.reader import read_areas
from inftda.errors import HierarchyError, IngestError, PrivacyError
from inftda.privacy.unit import Unit
from inftda.reading import Columns, read_leaves
from inftda.tree import Axis
from leaf_counts import leaf_counts

SQUARES = read_areas(
    {"zone": list("abcd"), "wkt": [shapely.box(x, 40, x + 1, 41).wkt for x in range(4)]}
)
COLUMNS = {
    "olon": [0.5, 1.5, 1.5, 3.999],
    "olat": [40.5, 40.25, 40.25, 40.0],
    "dlon": [2.5, 2.5, 2.5, 0.0],
    "dlat": [40.5, 40.5, 40.75, 40.125],
    "at": ["2026-05-18 00:10:00", "2026-05-18T23:59:59", "2026-05-18 23:00", "2026-05-24 12:30:00"],
}
STAMPS = [dt.datetime.fromisoformat(text) for text in COLUMNS["at"]]
ENDS = (Axis("origin", SQUARES), Axis("destination", SQUARES))
POINTS = {"origin": ("olon", "olat"), "destination": ("dlon", "dlat")}
HOUR, WEEKDAY = (Axis(part, clock_hierarchy(part)) for part in ("hour", "weekday"))
LEAVES = {(0, 2, 0, 0): 1, (1, 2, 23, 0): 2, (3, 0, 12, 6): 1}
NOISED = Unit("add-remove", 1)


def counted(source, axes=ENDS, unit=None, **columns):
    return leaf_counts(read_leaves(source, Columns(**columns), axes, unit=unit))


def parquet(folder, table):
    pq.write_table(table, folder / "trips.parquet")
    return folder / "trips.parquet"


def as_decimals(table):
    kind = pa.decimal128(30, 18)
    cells = {
        name: pa.array([Decimal(repr(cell)) for cell in table[name]], kind)
        for name in list(table)[:4]
    }
    return pa.table({**cells, "at": pa.array(STAMPS, pa.timestamp("ns"))})


def as_arrays(table):
    return {name: np.array(column) for name, column in table.items()}


def as_objects(table):
    cells = {name: [Decimal(repr(cell)) for cell in table[name]] for name in list(table)[:4]}
    return pd.DataFrame({**cells, "at": STAMPS}, dtype=object)


@pytest.mark.parametrize("make", [as_objects, as_decimals, as_arrays])
def test_points_and_times_may_be_of_other_types_than_floats_and_text(make):
    axes = (*ENDS, HOUR, WEEKDAY)
    assert counted(make(COLUMNS), axes, **POINTS, hour="at", weekday="at") == LEAVES


def test_points_in_no_area_go_the_way_of_unplaceable():
    strange = {
        "olon": [0.5, 9.0, float("nan"), None, 0.5, float("inf")],
        "olat": [40.5, 40.5, 40.5, 40.5, 95.0, 40.5],
        "dlon": [1.5] * 6,
        "dlat": [40.5] * 6,
    }
    with pytest.raises(IngestError, match=r"5 rows .* no area at the point .olon, olat.*swapped"):
        counted(strange, **POINTS)
    assert counted(strange, unit=NOISED, unplaceable="drop", **POINTS) == {(0, 1): 1}
    axes = [Axis(axis.name, axis.hierarchy.with_outside()) for axis in ENDS]
    found = counted(strange, axes, unplaceable="outside", **POINTS)
    assert found == {(0, 1): 1, (4, 1): 5}


def test_text_that_is_no_number_is_the_fault_of_its_row():
    cells = {"x": ["0.5", "0,5", "", "east", "1e0"], "y": ["40.5"] * 5}
    found = counted(cells, ENDS[:1], NOISED, origin=("x", "y"), unplaceable="drop")
    assert found == {(0,): 1, (1,): 1}


def test_a_point_and_a_code_may_be_of_the_same_areas():
    table = {**COLUMNS, "zone": list("dcba")}
    found = counted(table, origin=("olon", "olat"), destination="zone")
    assert found == {(0, 3): 1, (1, 2): 1, (1, 1): 1, (3, 0): 1}


CLOCKS = {
    "2026-05-18 08:30:00": ("08", "1-Mon"),
    "2026-05-18T08:30": ("08", "1-Mon"),
    " 2026-05-18 08:30:15.123456 ": ("08", "1-Mon"),
    "2026-05-18T08:30:00Z": ("08", "1-Mon"),
    "2026-05-18 23:30:00+02:00": ("23", "1-Mon"),
    "2026-05-24 00:00:00 UTC": ("00", "7-Sun"),
    "2026-05-24": (None, "7-Sun"),
    "2026-02-30 08:00:00": (None, None),
    "2026-05-18 24:30:00": (None, "1-Mon"),
    "18/05/2026 08:30": (None, None),
    "08:30": (None, None),
    "": (None, None),
}


@pytest.mark.parametrize("text", CLOCKS)
def test_a_time_stamp_is_what_the_clock_shows_there(text):
    for axis, expected in zip((HOUR, WEEKDAY), CLOCKS[text], strict=True):
        leaves = counted({"at": [text]}, [axis], NOISED, unplaceable="drop", **{axis.name: "at"})
        found = [axis.hierarchy.codes(2)[area].as_py() for (area,) in leaves]
        assert found == ([] if expected is None else [expected])


REFUSED = {
    "a time zone": (
        {"at": pa.array(STAMPS, pa.timestamp("us", "UTC"))}, {"hour": "at"},
        "without time zone",
    ),
    "dates for hours": ({"at": pa.array([dt.date(2026, 5, 18)])}, {"hour": "at"}, "`hour=`"),
    "numbers for times": ({"at": pa.array([1.5])}, {"weekday": "at"}, "`weekday=`"),
    "dates for points": (
        {"at": pa.array([dt.date(2026, 5, 18)]), "y": pa.array([1.5])}, {"origin": ("at", "y")},
        "coordinates are numbers",
    ),
    "one column twice": ({"y": pa.array([1.5])}, {"origin": ("y", "y")}, "given twice"),
    "no such column": ({"Lon": [1.5], "lat": [1.5]}, {"origin": ("lon", "lat")}, "`origin=`"),
    "no such time": ({"start": ["x"]}, {"hour": "started"}, "did you mean 'start'.*`hour=`"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_columns_that_cannot_be_points_or_times_are_refused(what):
    table, columns, words = REFUSED[what]
    axes = [axis for axis in (*ENDS, HOUR, WEEKDAY) if axis.name in columns]
    with pytest.raises(IngestError, match=words):
        counted(pa.table(table), axes, **columns)


def test_points_need_areas_with_outlines():
    plain = inftda.Hierarchy.read({"zone": ["a"]})
    with pytest.raises(HierarchyError, match=r"no outlines.*inftda areas h3"):
        counted({"x": [1.0], "y": [1.0]}, [Axis("origin", plain)], origin=("x", "y"))


def test_distinct_trips_may_become_one_between_areas():
    """`distinct` is an assertion about points, and counts are of areas."""
    unit = Unit("add-remove", 3, distinct=True)
    with pytest.raises(PrivacyError, match="same trip between areas"):
        Columns(**POINTS).check(ENDS, unit)
    Columns(**POINTS, person="who").check(ENDS, unit)


def test_trips_of_a_person_are_bounded_by_areas():
    table = {**COLUMNS, "who": ["ann"] * 4}
    for distinct, most in ((False, {1, 2}), (True, {1})):
        unit = Unit("add-remove", 2, distinct=distinct)
        found = counted(table, unit=unit, person="who", **POINTS)
        assert sum(found.values()) == 2
        assert {*found.values()} <= most


def test_an_end_is_a_column_or_a_point():
    with pytest.raises(IngestError, match="two columns"):
        Columns(origin=("olon",))
    with pytest.raises(inftda.InftdaError, match="'hour' is given twice"):
        inftda.release(
            COLUMNS, SQUARES, axis={"hour": {"hour": ["1"]}}, columns=Columns(hour="at"), rho=1
        )


def test_a_number_is_no_time_whatever_stands_beside_it():
    options = {"axes": [HOUR], "unit": NOISED, "hour": "at", "unplaceable": "drop"}
    assert counted({"at": [46160, 46161]}, **options) == {}
    assert counted({"at": [46160, 46161, "2026-05-18 08:30"]}, **options) == {(8,): 1}


#: Days and seconds that no time stamp of microseconds can hold, each after one that it can.
FAR = {
    "weekday": (pa.array([0, 200_000_000], pa.int32()).cast(pa.date32()), 3),
    "hour": (pa.array([0, 2**60], pa.int64()).cast(pa.timestamp("s")), 0),
}


@pytest.mark.parametrize("part", FAR)
def test_a_time_too_far_away_is_the_fault_of_its_row(part, tmp_path):
    cells, area = FAR[part]
    table = pa.table({"at": cells})
    axes = [Axis(part, clock_hierarchy(part))]
    options = {"axes": axes, "unit": NOISED, part: "at", "unplaceable": "drop"}
    assert counted(table, **options) == {(area,): 1}
    if part == "weekday":  # Parquet has no seconds
        assert counted(parquet(tmp_path, table), **options) == {(area,): 1}


@pytest.mark.parametrize("make", [pa.table, lambda table: pa.table(table).to_reader()])
def test_counts_at_different_points_and_times_of_one_cell_do_not_repeat_each_other(make):
    table = {**COLUMNS, "count": [4, 4, 4, 4]}
    axes = (*ENDS, HOUR)
    assert sum(counted(make(table), axes, **POINTS, hour="at").values()) == 16
    two = {name: [*column, column[0]] for name, column in table.items()}
    with pytest.raises(IngestError, match="1 row of the table repeats another one, with the same "):
        counted(make(two), axes, **POINTS, hour="at")
    two["at"][-1] = "2026-05-18 00:10:01"
    assert sum(counted(make(two), axes, **POINTS, hour="at").values()) == 20


def test_a_table_of_hours_alone_has_no_outside_unless_it_is_named():
    with pytest.raises(IngestError, match=r"not for hours .*`unplaceable='hour=outside'`"):
        counted({"at": ["x"]}, [HOUR], NOISED, hour="at", unplaceable="outside")
    axes = [Axis("hour", clock_hierarchy("hour").with_outside())]
    found = counted({"at": ["x"]}, axes, NOISED, hour="at", unplaceable={"hour": "outside"})
    assert list(found.values()) == [1]
