"""One row more changes where its own point is placed, and nobody else's: points and times."""

import datetime as dt
import tempfile
from decimal import Decimal
from pathlib import Path

import pytest
import shapely
from hypothesis import HealthCheck, Phase, example, given, reject, settings
from hypothesis import strategies as st

from inftda.areas.clock import clock_hierarchy
from inftda.areas.reader import read_areas
from inftda.privacy.unit import Unit
from inftda.reading import Columns, read_leaves
from inftda.tree import Axis
from neighbour_tables import KINDS, RANDOM, UnmadeError, cells, check_neighbours, make, outcome

#: Squares with borders where whole and half degrees lie.
SQUARES = read_areas(
    {"zone": list("abcd"), "wkt": [shapely.box(x, 0, x + 0.7, 9).wkt for x in (0, 0.7, 1.4, 2.1)]}
)
#: One of each way in; all others are seen in the slow tier.
QUICK = ("pandas objects", "CSV")
TIERED = [kind if kind in QUICK else pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS]
CALM = {"deadline": None, "suppress_health_check": [HealthCheck.filter_too_much]}

#: Columns `origin` and `destination` of the tables hold longitudes and latitudes here.
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


@st.composite
def tables(draw, kinds):
    """Rows of equal kinds: two cells, a count and a person."""
    column = kinds[draw(st.sampled_from(sorted(kinds)))]
    row = st.tuples(column, column, st.integers(0, 3), st.integers(1000, 1003))
    return draw(st.lists(row, min_size=1, max_size=8))


further = st.tuples(strange, strange, st.just(1), st.just(2000))


def read(kind, rows, given, *, is_bounded):
    names, axes = given
    person = "person" if is_bounded else None
    columns = Columns(count="count", person=person, unplaceable="drop", **names)
    unit = Unit("add-remove", 2)
    with tempfile.TemporaryDirectory() as folder:
        source = make(kind, rows, Path(folder))
        return outcome(
            lambda: read_leaves(source, columns, axes, unit=unit, random_source=RANDOM, threads=1)
        )


def check(kind, rows, row, axes, is_bounded):
    try:
        before = read(kind, rows, axes, is_bounded=is_bounded)
        after = read(kind, [*rows, row], axes, is_bounded=is_bounded)
    except UnmadeError:
        reject()
    check_neighbours(before, after)


BORDERS = [(text, text, 1, 1000 + i) for i, text in enumerate(("0.7", "1.4", "2.1", "0.3"))]


@pytest.mark.parametrize("kind", TIERED)
@settings(phases=[Phase.explicit], **CALM)
@given(rows=tables(_degrees), row=further, is_bounded=st.booleans())
@example(
    rows=[(Decimal(x), Decimal(y), n, who) for x, y, n, who in BORDERS],
    row=(Decimal("0.123456789012345678"), Decimal(1), 1, 2000),
    is_bounded=False,
)
@example(
    rows=[(float(x), float(y), n, who) for x, y, n, who in BORDERS],
    row=("0,7", 1.0, 1, 2000),
    is_bounded=True,
)
@example(rows=BORDERS, row=(float("nan"), float("inf"), 1, 2000), is_bounded=False)
@example(rows=[(1, 2, 1, 1000), (2, 1, 1, 1001)], row=(0.7, 0.1, 1, 2000), is_bounded=True)
@example(rows=[(1, 2, 1, 1000), (2, 1, 1, 1001)], row=(None, 1, 1, 2000), is_bounded=False)
@example(rows=BORDERS, row=(dt.date(2026, 1, 1), b"x", 1, 2000), is_bounded=True)
def test_a_further_point_moves_nobody_elses(kind, rows, row, is_bounded):
    check(kind, rows, row, POINTS, is_bounded)


#: Kinds that take nearly any cell: of the others most random tables cannot be made.
LENIENT = ("a mapping", "pandas objects", "polars objects", "CSV", "SQLite")


@pytest.mark.slow
@pytest.mark.parametrize("kind", LENIENT)
@settings(max_examples=8, derandomize=True, **CALM)
@given(rows=tables(_degrees), row=further, is_bounded=st.booleans())
def test_many_further_points_move_nobody_elses(kind, rows, row, is_bounded):
    check(kind, rows, row, POINTS, is_bounded)


@pytest.mark.slow
@pytest.mark.parametrize("kind", LENIENT)
@settings(max_examples=8, derandomize=True, **CALM)
@given(rows=tables(_times), row=further, is_bounded=st.booleans())
def test_many_further_times_move_nobody_elses(kind, rows, row, is_bounded):
    check(kind, rows, row, CLOCKS, is_bounded)
