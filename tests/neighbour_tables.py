"""A table and its neighbour with one row more, in every kind of source.

Cells of the further row are of any type. Whether the library that makes the table takes them
is its own affair (`UnmadeError`); nobody else's row may be read otherwise.
"""

import csv
import datetime as dt
import re
from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import reject
from hypothesis import strategies as st

from inftda.errors import IngestError
from inftda.noise.bits import SeededSource
from inftda.privacy.unit import Unit
from inftda.reading import Columns
from inftda.tree import Axis
from inftda.tree.hierarchy import Hierarchy
from leaf_counts import leaf_counts
from reading_cases import SOURCES
from reading_cases import columns_of as by_name

#: Among them what careless casts make of other cells.
AREAS = Hierarchy.read({
    "area": [
        *"12345678", "007", "07", "1.0", "2.0", "2.5", "2.50", "true", "True", "1e3", "nan",
        "2026-01-01", "2026-01-01 00:00:00",
    ]
})  # fmt: skip
NAMES = ("origin", "destination", "count", "person")
#: How a message says that a row, or what it made of its column, is to blame: of counts also by
#: their total, where one row alone has more than a release can hold.
SAYS = (
    r"1 row of|line \d+ of|a line of|column '(origin|destination|count|person)' of"
    r"|need the same types|is not UTF-8|cannot read '[ab].parquet'|2\^43; check the count column"
)


class UnmadeError(Exception):
    """The library refuses to make such a table."""


AXES = (Axis("origin", AREAS), Axis("destination", AREAS))
UNIT = Unit("add-remove", 2)


def columns_of(*, is_bounded):
    return Columns(count="count", person="person" if is_bounded else None, unplaceable="drop")


# --- tables and rows

_codes = {
    "text": st.sampled_from(["1", "2", "5", "007", "x"]),
    "numbers": st.integers(1, 9),
    "decimals": st.integers(1, 9).map(Decimal),
    "floats": st.integers(1, 9).map(float),
    "dates": st.just(dt.date(2026, 1, 1)),
    "mixed": st.one_of(st.integers(1, 9), st.sampled_from(["1", "007"])),
}
_counts = st.sampled_from([st.integers(0, 3), st.integers(0, 3).map(str), st.just(2.0)])


@st.composite
def tables(draw):
    """Rows of equal kinds: codes, codes, counts, persons."""
    kind = draw(st.sampled_from(sorted(_codes)))
    counts = draw(_counts)
    people = draw(st.sampled_from([st.integers(1000, 1003), st.sampled_from(["ann", "bob"])]))
    row = st.tuples(_codes[kind], _codes[kind], counts, people)
    return draw(st.lists(row, min_size=1, max_size=8))


cells = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 9),
    st.sampled_from([2**53 + 1, 2**63, 2**70, -(2**63)]),
    st.floats(),
    st.decimals(allow_nan=False),
    st.sampled_from([Decimal("2.5"), Decimal("NaN"), Decimal("1E+3"), 2.5, 1.0, float("nan")]),
    st.sampled_from(["1", "07", " 1", "", "2.5", "NULL", "12.000", "x" * 50, "\ud800", "a\rb"]),
    st.text(max_size=5),
    st.binary(max_size=4),
    st.dates(dt.date(1990, 1, 1), dt.date(2050, 1, 1)),
    st.datetimes(dt.datetime(1990, 1, 1), dt.datetime(2050, 1, 1)),  # noqa: DTZ001 - any will do
    st.just([1]),
)
#: Somebody who is not in the table yet.
_strangers = st.one_of(st.integers(2000, 2003), st.just("zoe"), cells)
further_rows = st.one_of(
    st.tuples(cells, st.sampled_from(["1", 1]), st.sampled_from([1, "1"]), st.just("zoe")),
    st.tuples(st.sampled_from(["1", 1]), st.just("1"), cells, _strangers),
    st.tuples(cells, cells, cells, _strangers),
)


# --- sources


def _columns(rows):
    return by_name(NAMES, rows)


def _csv(rows, folder):
    with (folder / "a.csv").open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        writer.writerow(NAMES)
        writer.writerows(["" if cell is None else str(cell) for cell in row] for row in rows)
    return folder / "a.csv"


def _folder(rows, folder, *, first):
    """The last row, if there are several, in a file of its own."""
    cut = max(len(rows) - 1, 1)
    names = ("b", "a") if first else ("a", "b")
    for name, part in zip(names, (rows[:cut], rows[cut:]), strict=True):
        if part:
            pq.write_table(pa.table(_columns(part)), folder / f"{name}.parquet")
    return folder


#: Those of all tests that take cells of any type.
_USUAL = (
    "a mapping", "pandas", "pandas objects", "pandas nullable", "polars", "pyarrow", "a stream",
    "Parquet", "SQLite",
)  # fmt: skip
KINDS = {
    "pandas categories": lambda rows, _: pd.DataFrame(_columns(rows), dtype=object).astype(
        {"origin": "category", "destination": "category", "person": "category"}
    ),
    "polars objects": lambda rows, _: pl.DataFrame(
        {name: pl.Series(column, dtype=pl.Object) for name, column in _columns(rows).items()}
    ),
    "CSV": _csv,
    "a folder, the row first": lambda rows, folder: _folder(rows, folder, first=True),
    "a folder, the row last": lambda rows, folder: _folder(rows, folder, first=False),
} | {kind: lambda rows, folder, of=SOURCES[kind]: of(_columns(rows), folder) for kind in _USUAL}


def make(kind, rows, folder):
    """A source of some kind.

    Raises:
        UnmadeError: the library does not take such cells.
    """
    try:
        return KINDS[kind](rows, folder)
    except BaseException as problem:
        if isinstance(problem, KeyboardInterrupt | SystemExit):
            raise
        raise UnmadeError from problem  # polars panics, which is no mere exception


def neighbours(make_source, rows, row, folder):
    """A table and the same with a further row, as sources; rejected if the library makes neither.

    Both are made before any is read, which takes its time.

    Args:
        make_source: from rows and a folder to a source.
        rows: of the table.
        row: the further one.
        folder: to make files in.
    """
    sources = []
    for name, table in (("without", rows), ("with", [*rows, row])):
        (folder / name).mkdir()
        try:
            sources.append(make_source(table, folder / name))
        except UnmadeError:
            reject()
    return sources


# --- the property


def outcome(read):
    """Leaves as a counter, or the message."""
    try:
        return leaf_counts(read())
    except IngestError as problem:
        return str(problem)


def check_neighbours(before, after):
    """What one row more may change: its own leaf, or a refusal that says whose fault it is."""
    if isinstance(after, str):
        assert isinstance(before, str) or re.search(SAYS, after), after
        return
    assert not isinstance(before, str), before
    assert not before - after, "somebody else's trips are gone"
    assert len(after - before) <= 1, "the row has moved somebody else's trips"


RANDOM = SeededSource(1)
