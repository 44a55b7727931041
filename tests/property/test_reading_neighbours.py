"""One row more changes what is read of that row, and of nobody else's: codes, points and times."""

import datetime as dt
import tempfile
from collections import Counter
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest
import shapely
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from inftda.areas.build import clock_hierarchy
from inftda.areas.reader import read_areas
from inftda.reading import Columns, read_leaves
from inftda.tree import Axis
from neighbour_tables import (
    AXES,
    KINDS,
    RANDOM,
    UNIT,
    cells,
    check_neighbours,
    further_rows,
    make,
    neighbours,
    outcome,
    tables,
)

CALM = {"deadline": None, "suppress_health_check": [HealthCheck.filter_too_much]}
EXPLICIT = settings(phases=[Phase.explicit], **CALM)


def tiered(*quick):
    """All kinds of tables, of which these are seen in the fast tier, too."""
    return [kind if kind in quick else pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS]


def read(source, asked, *, is_bounded):
    names, axes = asked
    person = "person" if is_bounded else None
    columns = Columns(count="count", person=person, unplaceable="drop", **names)
    return outcome(
        lambda: read_leaves(source, columns, axes, unit=UNIT, random_source=RANDOM, threads=1)
    )


def check(kind, rows, row, is_bounded, asked=({}, AXES)):
    with tempfile.TemporaryDirectory() as name:
        sources = neighbours(partial(make, kind), rows, row, Path(name))
        check_neighbours(*(read(source, asked, is_bounded=is_bounded) for source in sources))


# --- codes


def numbered(convert):
    """Codes 1 to 8, a person each."""
    return [(convert(i), convert(i), 1, 1000 + i) for i in range(1, 9)]


@pytest.mark.parametrize("kind", tiered("pandas objects", "a folder, the row first"))
@EXPLICIT
@given(rows=tables(), row=further_rows, is_bounded=st.booleans())
@example(rows=numbered(Decimal), row=(Decimal("2.5"), Decimal(1), 1, 2000), is_bounded=False)
@example(rows=numbered(int), row=(Decimal("2.5"), 1, 1, 2000), is_bounded=True)
@example(rows=numbered(int), row=(2.5, 1, 1, 2000), is_bounded=False)
@example(rows=numbered(int), row=("007", "1", 1, 2000), is_bounded=True)
@example(rows=numbered(str), row=(7, 7, 1, 2000), is_bounded=False)
@example(rows=numbered(int), row=(None, 1, 1, 2000), is_bounded=True)
@example(rows=numbered(int), row=(1, 1, 2**62, 2000), is_bounded=True)
@example(rows=numbered(int), row=(1, 1, "12.000", 2000), is_bounded=True)
@example(rows=numbered(int), row=(1, 1, 1, 2.5), is_bounded=True)
@example(rows=numbered(int), row=(1, 1, 1, "zoe"), is_bounded=True)
def test_a_further_row_changes_nothing_for_anybody_else(kind, rows, row, is_bounded):
    check(kind, rows, row, is_bounded)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, derandomize=True, **CALM)  # the same ones, so that nobody is surprised
@given(rows=tables(), row=further_rows, is_bounded=st.booleans())
def test_many_further_rows_change_nothing_for_anybody_else(kind, rows, row, is_bounded):
    check(kind, rows, row, is_bounded)


# --- points and times: columns `origin` and `destination` hold longitudes and latitudes

#: Squares with borders where whole and half degrees lie.
SQUARES = read_areas(
    {"zone": list("abcd"), "wkt": [shapely.box(x, 0, x + 0.7, 9).wkt for x in (0, 0.7, 1.4, 2.1)]}
)
POINTS = {"origin": ("origin", "destination")}, [Axis("origin", SQUARES)]
CLOCKS = (
    {"hour": "origin", "weekday": "origin"},
    [Axis(part, clock_hierarchy(part)) for part in ("hour", "weekday")],
)
_numbers = st.sampled_from([0.0, 0.1, 0.7, 1.4, 2.1, 2.8, 1.3999999999999999, 0.30000000000000004])
_degrees = {
    "floats": _numbers,
    "numbers": st.integers(0, 3),
    "text": _numbers.map(repr),
    "decimals": _numbers.map(repr).map(Decimal),
    "mixed": st.one_of(_numbers, st.integers(0, 3), _numbers.map(repr)),
}
_stamps = st.datetimes(dt.datetime(2026, 1, 1), dt.datetime(2026, 12, 31))  # noqa: DTZ001 - any
_times = {
    "times": _stamps,
    "text": _stamps.map(str),
    "mixed": st.one_of(_stamps, _stamps.map(str), st.just(dt.date(2026, 5, 18))),
}
strange = st.one_of(
    cells,
    _numbers,
    _stamps,
    st.sampled_from([float("nan"), float("inf"), "nan", "1e999", "0,7", "0x1", Decimal("0.70")]),
    st.sampled_from(["2026-05-18 08:30", "2026-05-18T08:30:00Z", "08:30"]),
)
further = st.tuples(strange, strange, st.just(1), st.just(2000))


@st.composite
def places(draw, kinds):
    """Rows of equal kinds: two cells, a count and a person."""
    column = kinds[draw(st.sampled_from(sorted(kinds)))]
    row = st.tuples(column, column, st.integers(0, 3), st.integers(1000, 1003))
    return draw(st.lists(row, min_size=1, max_size=8))


def borders(convert):
    """Points on borders, a person each."""
    return [
        (convert(x), convert(x), 1, 1000 + i) for i, x in enumerate(("0.7", "1.4", "2.1", "0.3"))
    ]


WHOLE = [(1, 2, 1, 1000), (2, 1, 1, 1001)]
FINE = Decimal("0.123456789012345678")


@pytest.mark.parametrize("kind", tiered("pandas objects", "CSV"))
@EXPLICIT
@given(rows=places(_degrees), row=further, is_bounded=st.booleans())
@example(rows=borders(Decimal), row=(FINE, Decimal(1), 1, 2000), is_bounded=False)
@example(rows=borders(float), row=("0,7", 1.0, 1, 2000), is_bounded=True)
@example(rows=borders(str), row=(float("nan"), float("inf"), 1, 2000), is_bounded=False)
@example(rows=WHOLE, row=(0.7, 0.1, 1, 2000), is_bounded=True)
@example(rows=WHOLE, row=(None, 1, 1, 2000), is_bounded=False)
@example(rows=borders(str), row=(dt.date(2026, 1, 1), b"x", 1, 2000), is_bounded=True)
def test_a_further_point_moves_nobody_elses(kind, rows, row, is_bounded):
    check(kind, rows, row, is_bounded, POINTS)


#: Kinds that take nearly any cell: of the others most random tables cannot be made.
LENIENT = ("a mapping", "pandas objects", "polars objects", "CSV", "SQLite")


@pytest.mark.slow
@pytest.mark.parametrize("what", [POINTS, CLOCKS], ids=["points", "times"])
@pytest.mark.parametrize("kind", LENIENT)
@settings(max_examples=8, derandomize=True, **CALM)
@given(data=st.data(), row=further, is_bounded=st.booleans())
def test_many_further_points_and_times_move_nobody_elses(kind, what, data, row, is_bounded):
    rows = data.draw(places(_degrees if what is POINTS else _times))
    check(kind, rows, row, is_bounded, what)


def test_the_property_sees_what_used_to_go_wrong():
    """Trips that vanish or move with the further row are noticed, and so is an idle refusal."""
    one, other = {(0, 0): 3}, {(0, 1): 3}
    for before, after in ((one, {}), (one, other), (one, "it is damaged"), ("damaged", one)):
        pair = [what if isinstance(what, str) else Counter(what) for what in (before, after)]
        with pytest.raises(AssertionError):
            check_neighbours(*pair)
