"""Reading: trips and flows, unplaceable rows, bad counts, options that break the privacy unit."""

import re

import numpy as np
import pyarrow as pa
import pytest

from inftda.areas.reader import read_areas
from inftda.errors import IngestError, PrivacyError
from inftda.privacy.unit import Unit
from inftda.reading import Columns, read_leaves, rows
from inftda.reading.rows import LIKE_TOTALS
from inftda.tree import Axis
from inftda.tree.hierarchy import Hierarchy

TRIPS = {"origin": ["001", "001", "003"], "destination": ["002", "002", "001"]}
FLOWS = {**TRIPS, "count": [3, 4, 5]}
ADD_REMOVE = Unit("add-remove", trips=1)


def stream(columns):
    return pa.table(columns).to_reader()


@pytest.mark.parametrize(
    "name", ["Count", "COUNT", " count", "counts", "trips", "n", "n_trips", "Flow", "OBS_VALUE"]
)
def test_a_column_that_looks_like_counts_is_not_passed_over(read, name):
    table = {"origin": ["001"], "destination": ["002"], name: [7]}
    says = rf"column {name!r} of the table may hold counts; .*count='NAME'.*count=None"
    with pytest.raises(IngestError, match=says):
        read(table)
    assert read(table, count=name) == {("001", "002"): 7}
    assert read(table, count=None) == {("001", "002"): 1}
    assert read({**table, "count": [5]}) == {("001", "002"): 5}


@pytest.mark.parametrize("name", ["id", "hour", "county", "country", "account", "north", "person"])
def test_other_columns_of_numbers_are_left_alone(read, name):
    assert read({"origin": ["001"], "destination": ["002"], name: [7]}) == {("001", "002"): 1}


def test_an_axis_and_the_person_are_never_taken_for_counts(read, towns):
    table = {"origin": ["001"], "value": ["002"], "n": ["a"]}
    axes = [("origin", towns), ("value", towns)]
    assert read(table, axes=axes, person="n", unit=Unit()) == {("001", "002"): 1}


@pytest.mark.parametrize("unit", [Unit("add-remove", trips=5), Unit(trips=5)])
def test_it_is_said_that_nothing_checked_the_trips_of_persons(read, unit):
    heard, table = [], {"origin": ["001"] * 5, "destination": ["002"] * 5}
    read(table, unit=unit, say=heard.append)
    bound = "exactly" if unit.exactly else "at most"
    assert heard[1].startswith(
        f"without a column of persons nothing checks that everybody has {bound} 5 trips; "
    )
    heard.clear()
    read({**table, "who": [1] * 5}, unit=unit, person="who", say=heard.append)
    read(table, unit=Unit(), say=heard.append)
    assert heard == ["every row as one"] * 2


AGAIN = {"origin": ["001", "001", "003"], "destination": ["002"] * 3, "count": [3, 3, 5]}


def test_different_unknown_areas_do_not_repeat_each_other(read, towns):
    axes = [(name, towns.with_outside()) for name in ("origin", "destination")]
    table = {"origin": ["x", "y"], "destination": ["001", "001"], "count": [4, 4]}
    heard = []
    counts = read(table, axes=axes, unplaceable="outside", say=heard.append)
    assert counts == {("outside", "001"): 8}
    assert len(heard) == 1
    with pytest.raises(IngestError, match="1 row of the table repeats"):
        read(table | {"origin": ["x", "x"]}, axes=axes, unplaceable="outside")
    # What is dropped repeats nothing.
    assert not read(table | {"origin": ["x", "x"]}, unplaceable="drop", unit=ADD_REMOVE)


def test_rows_that_are_added_up_while_they_are_read_are_compared_as_well(read, monkeypatch):
    monkeypatch.setattr(rows, "MANY", 1)
    with pytest.raises(IngestError, match="1 row of the table repeats"):
        read(AGAIN)
    assert sum(read(FLOWS).values()) == 12


def test_cells_of_too_many_dimensions_for_one_number_are_compared_as_well():
    many = Hierarchy.read({"area": [str(i) for i in range(1 << 13)]})
    names = ["a", "b", "c", "d", "e"]
    axes = [Axis(name, many) for name in names]
    table = {name: ["8191", "8191", "0"] for name in names}
    assert len(read_leaves(table | {"count": [1, 2, 1]}, Columns(), axes).value) == 3
    with pytest.raises(IngestError, match="1 row of the table repeats"):
        read_leaves(table | {"count": [1, 1, 1]}, Columns(), axes)


WITH_UNKNOWN = {
    "origin": ["001", "002", "003", "001"],
    "destination": ["002", "003", "001", "xyz"],
    "count": [40, 30, 20, 9],
}


@pytest.mark.parametrize("policy", ["outside", "drop"])
@pytest.mark.parametrize(
    ("added", "is_told"),
    [
        ([], False),
        ([("001", " TOTAL", 1)], True),
        ([("Gesamt", "001", 1)], True),
        ([("999", "002", 3700)], False),  # how much it holds is for the release to tell
        ([("Totalán", "002", 5)], False),  # a town in Spain
    ],
)
def test_rows_that_look_like_totals_are_hinted_at_without_a_number(
    read, towns, policy, added, is_told
):
    table = pa.table(WITH_UNKNOWN)
    if added:
        more = dict(zip(WITH_UNKNOWN, map(list, zip(*added, strict=True)), strict=True))
        table = pa.concat_tables([table, pa.table(more)])
    outside = [(name, towns.with_outside()) for name in ("origin", "destination")]
    options = {"axes": outside if policy == "outside" else None, "unit": ADD_REMOVE}
    for source in (table, table.to_reader()):
        heard = []
        read(source, unplaceable=policy, say=heard.append, **options)
        assert heard[1:] == ([LIKE_TOTALS] if is_told else [])
    assert not re.search(r"[0-9]", LIKE_TOTALS)


def test_trips_and_persons_are_no_totals(read, towns):
    axes = [(name, towns.with_outside()) for name in ("origin", "destination")]
    table = {"origin": ["001"], "destination": ["Total"], "who": ["a"], "count": [1]}
    for options in ({"count": None}, {"person": "who", "unit": ADD_REMOVE}):
        heard = []
        read(table, axes=axes, unplaceable="outside", say=heard.append, **options)
        assert len(heard) == 1


def test_leaves_have_the_dtypes_the_engine_expects_and_no_zeros(towns):
    table = {**TRIPS, "count": [0, 0, 5]}
    leaves = read_leaves(table, Columns(), (Axis("origin", towns), Axis("destination", towns)))
    assert [axis.dtype for axis in leaves.areas] == [np.int32, np.int32]
    assert leaves.value.dtype == np.int64
    assert leaves.value.tolist() == [5]
    assert [axis.tolist() for axis in leaves.areas] == [[2], [0]]


# --- rows that cannot be placed


def test_only_the_first_few_unknown_codes_are_shown(read):
    codes = ["0" * i + "1" for i in range(3, 12)]
    with pytest.raises(
        IngestError, match=r"9 rows.*'000000000001',( '0+1',){4} \.\.\. \(did"
    ) as error:
        read({"origin": codes, "destination": ["001"] * 9})
    assert "'0001'" not in str(error.value)


@pytest.mark.parametrize(
    ("cell", "hint"),
    [
        ("1", "codes lose their leading zeros? '1' would be '001'"),
        ("1.0", "are the codes decimal numbers? '1.0' would be '001'; write codes as text"),
        ("002.", "are the codes decimal numbers? '002.' would be '002'; write codes as text"),
        (" 001", "blanks and capitals included: ' 001' would be '001'"),
        ("\uff10\uff10\uff11", "would be '001'"),
        ("e1A", "blanks and capitals included: 'e1A' would be 'E1a'"),
        ("aix-LES-bains", "'aix-LES-bains' is the name of '002'; give the column of the codes"),
        ("N", "'N' is of level 'region'"),
        ("TOTAL", "'TOTAL' looks like a total: take rows and columns of totals out of the table"),
    ],
)
def test_a_code_that_is_a_known_one_in_another_form_is_shown_with_a_hint(read, cell, hint):
    areas = read_areas(
        {
            "region": ["N", "N", "S", "S"],
            "town": ["001", "002", "000", "E1a"],
            "name": ["Ry", "Aix-les-Bains", None, "Ay"],
        }
    )
    axes = [("origin", areas), ("destination", areas)]
    with pytest.raises(IngestError) as error:
        read({"origin": [cell, "person-77"], "destination": ["001", "001"]}, axes=axes)
    assert f"unknown origin {cell!r}, ..." in str(error.value)
    assert hint in str(error.value)
    assert "77" not in str(error.value)


@pytest.mark.parametrize("cell", ["x" * 5000, "12345", "1.5", "1001.00", "004"])
def test_any_other_cell_is_not_shown(read, cell):
    areas = Hierarchy.read({"town": ["001", "002", "000", "12346"]})
    axes = [("origin", areas), ("destination", areas)]
    with pytest.raises(IngestError, match=r"1 row of .*unknown origin \(not shown") as error:
        read({"origin": [cell], "destination": ["001"]}, axes=axes)
    assert cell not in str(error.value)


@pytest.mark.parametrize("neighbours", ["add-remove", "substitute"])
def test_distinct_trips_that_would_coincide_outside_are_refused(read, towns, neighbours):
    """Two trips of one person in one cell change it by two, and distinct trips by one."""
    outside = towns.with_outside()
    options = {"axes": [("origin", outside), ("destination", outside)], "unplaceable": "outside"}
    table = {"origin": ["001", "001"], "destination": ["X", "Y"]}
    unit = Unit(neighbours, trips=2, distinct=True)
    with pytest.raises(PrivacyError, match="different unknown places become the same trip"):
        read(table, unit=unit, **options)
    once = Unit(neighbours, distinct=True)
    assert read(table, unit=once, **options) == {("001", "outside"): 2}
    again = Unit(neighbours, trips=2)
    assert read(table, unit=again, **options) == {("001", "outside"): 2}


def test_a_person_keeps_one_of_the_distinct_trips_that_coincide_outside(read, towns):
    outside = towns.with_outside()
    table = {"origin": ["001", "001"], "destination": ["X", "Y"], "who": ["anna", "anna"]}
    counts = read(
        table,
        axes=[("origin", outside), ("destination", outside)],
        unplaceable="outside",
        unit=Unit("add-remove", trips=2, distinct=True),
        person="who",
    )
    assert counts == {("001", "outside"): 1}


def test_another_word_for_an_option_is_refused(read):
    with pytest.raises(IngestError, match="`repeated_rows=` must be error or add, got 'sum'"):
        read(TRIPS, repeated_rows="sum")
    with pytest.raises(
        IngestError, match="one of error, outside, drop, or AXIS=outside, got 'ignore'"
    ):
        read(TRIPS, unplaceable="ignore")


# --- counts that are none


def doubles(*values):
    return pa.array(values, pa.float64())


@pytest.mark.parametrize(
    ("counts", "flaw"),
    [
        (pa.array([1, None, None]), "2 rows of the table have no count"),
        (pa.array([1, -3, 4]), "1 row of the table has a negative count"),
        (pa.array([2**63, 1, 1], pa.uint64()), "a count beyond"),
        (doubles(1, 2.5, 3), "1 row of the table has a fractional count"),
        (doubles(1, float("nan"), 3), "NaN or infinity"),
        (doubles(1, float("inf"), 3), "NaN or infinity"),
        (doubles(1, -0.5, 3), "a negative count"),
        (doubles(1, 2.0**63, 3), "a count beyond"),
        (doubles(1, None, 3), "no count"),
        (pa.array([1, 2, 3], pa.decimal128(10, 2)).cast(pa.decimal128(10, 2)), None),
        (pa.array(["1", "", "3"]), "no count"),
        (pa.array(["1", "  ", "3"]), "no count"),
    ],
)
@pytest.mark.parametrize("make", [dict, stream])
def test_counts_must_be_whole_numbers_from_zero_up(read, counts, flaw, make):
    table = {"origin": ["001", "002", "003"], "destination": ["001"] * 3, "count": counts}
    if flaw is None:
        assert sorted(read(make(table)).values()) == [1, 2, 3]
        return
    with pytest.raises(IngestError) as error:
        read(make(table))
    assert flaw in str(error.value)
    assert "'count'" in str(error.value)


@pytest.mark.parametrize("kind", [pa.bool_(), pa.date32(), pa.list_(pa.int64())])
def test_columns_that_cannot_hold_counts_are_refused_by_their_type(read, kind):
    table = {**TRIPS, "count": pa.nulls(3, kind)}
    with pytest.raises(IngestError, match=r"column 'count' .* counts are whole numbers"):
        read(table)


@pytest.mark.parametrize("make", [dict, stream])
def test_totals_beyond_what_sums_can_hold_are_an_error_within_one_leaf_and_over_all(read, make):
    half = 2**42
    same = {"origin": ["001"] * 2, "destination": ["002"] * 2, "count": [half, half + 1]}
    different = same | {"origin": ["001", "002"]}
    for table in (same, different):
        with pytest.raises(IngestError, match="beyond 2\\^43"):
            read(make(table))
    for many in (2**63 - 1, 2**43 + 1):
        with pytest.raises(IngestError, match="beyond 2\\^43"):
            read(make(different | {"count": [many, many]}))
    just_fits = different | {"count": [half, half]}
    assert sum(read(make(just_fits)).values()) == 2**43


# --- columns


def test_a_column_name_that_stands_twice_is_refused_only_if_it_is_used(read):
    columns = [pa.array(["001"]), pa.array(["002"]), pa.array(["003"])]
    with pytest.raises(IngestError, match="2 columns 'origin'"):
        read(pa.table(columns, names=["origin", "origin", "destination"]))
    table = pa.table([*columns, columns[0]], names=["x", "origin", "destination", "x"])
    assert read(table) == {("002", "003"): 1}


def test_there_must_be_an_axis():
    with pytest.raises(IngestError, match="no axis"):
        Columns().check((), None)
