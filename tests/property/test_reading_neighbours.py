"""One row more changes what is read of that row, and of nobody else's."""

import tempfile
from collections import Counter
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from inftda.reading import read_leaves
from neighbour_tables import (
    AXES,
    KINDS,
    RANDOM,
    UNIT,
    check_neighbours,
    columns_of,
    further_rows,
    make,
    neighbours,
    outcome,
    tables,
)

#: In memory and on disk, with cells of many types; all others are seen in the slow tier.
QUICK = ("pandas objects", "a folder, the row first")
TIERED = [kind if kind in QUICK else pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS]
CALM = {"deadline": None, "suppress_health_check": [HealthCheck.filter_too_much]}


def read(source, *, is_bounded):
    columns = columns_of(is_bounded=is_bounded)
    return outcome(
        lambda: read_leaves(source, columns, AXES, unit=UNIT, random_source=RANDOM, threads=1)
    )


def numbered(convert):
    """Codes 1 to 8, a person each."""
    return [(convert(i), convert(i), 1, 1000 + i) for i in range(1, 9)]


@pytest.mark.parametrize("kind", TIERED)
@settings(phases=[Phase.explicit], **CALM)
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


def check(kind, rows, row, is_bounded):
    with tempfile.TemporaryDirectory() as name:
        sources = neighbours(partial(make, kind), rows, row, Path(name))
        check_neighbours(*(read(source, is_bounded=is_bounded) for source in sources))


def test_the_property_sees_what_used_to_go_wrong():
    """Trips that vanish or move with the further row are noticed, and so is an idle refusal."""
    one, other = {(0, 0): 3}, {(0, 1): 3}
    for before, after in ((one, {}), (one, other), (one, "it is damaged"), ("damaged", one)):
        pair = [what if isinstance(what, str) else Counter(what) for what in (before, after)]
        with pytest.raises(AssertionError):
            check_neighbours(*pair)
