"""Tables, what is said of them, and what is read or refused: the same from every kind of source.

`CASES` are read from all `SOURCES` by `tests/unit/reading/test_sources_alike.py`, from a frame of
Spark by `tests/engines/test_reading_alike.py` and from PostgreSQL by `tests/integration`.
"""

import datetime as dt
import gzip
import re
import sqlite3
import zipfile
from collections import Counter
from typing import Any, NamedTuple

import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.feather as pa_feather
import pyarrow.parquet as pq
import shapely

from inftda.areas.build import clock_hierarchy
from inftda.areas.reader import read_areas
from inftda.errors import InftdaError
from inftda.noise.bits import SeededSource
from inftda.privacy.unit import Unit
from inftda.reading import Columns, SqlQuery, read_leaves
from inftda.reading.rows import LIKE_TOTALS, SPLIT_CELLS
from inftda.tree import Axis
from inftda.tree.hierarchy import Hierarchy

TOWNS = Hierarchy.read({"region": ["N", "N", "S"], "town": ["001", "002", "003"]})
SQUARES = read_areas(
    {"zone": list("abcd"), "wkt": [shapely.box(x, 40, x + 1, 41).wkt for x in range(4)]}
)
HOURS, DAYS = (clock_hierarchy(part) for part in ("hour", "weekday"))
ENDS = {"origin": TOWNS, "destination": TOWNS}
OUTSIDE = {name: TOWNS.with_outside() for name in ENDS}


# --- cases


class Case(NamedTuple):
    """A table and what is read of it.

    Attributes:
        rows: of the table, in the order of `names`.
        result: counts by codes; or words of the message that refuses it, of which `{table}` is
            what the table is called.
        options: for `Columns`.
        names: of the columns.
        unit: the privacy unit.
        axes: hierarchies by name of the axis.
        said: what is said while reading after how rows were counted.
    """

    rows: list[tuple[Any, ...]]
    result: dict[tuple[str, ...], int] | str
    options: dict[str, Any] = {}  # noqa: RUF012 - never changed
    names: tuple[str, ...] = ("origin", "destination", "count")
    unit: Unit | None = None
    axes: dict[str, Hierarchy] = ENDS
    said: tuple[str, ...] = ()


TRIPS = ("origin", "destination")
PEOPLE = ("origin", "destination", "who")
WHO = {"person": "who"}


def at_most(m, **options):
    return Unit("add-remove", trips=m, **options)


def bad_count(*cells, says):
    """Flows of which some counts are none."""
    good = [("001", "002", "3"), ("001", "003", "4")]
    rows = [("002", f"00{i + 1}", cell) for i, cell in enumerate(cells)]
    many = "1 row of {table} has" if len(cells) == 1 else f"{len(cells)} rows of {{table}} have"
    return Case([*good, *rows], f"{many} {says} in column 'count'; counts must be whole numbers")


_SEPARATED = "a count with a decimal point or a separator of thousands"


LOST = [("001", "002", 1), ("X9", "002", 2), (None, "003", 3), ("001", "", 4), ("X9", "Y1", 5)]
POINTS = ("olon", "olat", "dlon", "dlat", "at")
PLACED = {"origin": ("olon", "olat"), "destination": ("dlon", "dlat"), "hour": "at"}
STAMPED = [
    ("0.5", "40.5", "2.5", "40.5", "2026-05-18 00:10:00"),
    ("1.5", "40.25", "2.5", "40.5", "2026-05-18T23:59:59"),
    ("1.5", "40.25", "2.5", "40.75", "2026-05-18 23:00"),
    ("3.999", "40.0", "0.0", "40.125", "2026-05-24 12:30:00"),
]

CASES = {
    # What a row stands for
    "every row is a trip": Case(
        [("001", "002"), ("001", "002"), ("003", "001")],
        {("001", "002"): 2, ("003", "001"): 1}, names=TRIPS,
    ),
    "a column of counts": Case(
        [("001", "002", 3), ("003", "001", 5), ("002", "002", 0)],
        {("001", "002"): 3, ("003", "001"): 5},
    ),
    "counts as text": Case(
        [("001", "002", " 3 "), ("003", "001", "+5"), ("002", "002", "007")],
        {("001", "002"): 3, ("003", "001"): 5, ("002", "002"): 7},
    ),
    "another column of counts": Case(
        [("001", "002", 3, 7)], {("001", "002"): 7}, {"count": "n"},
        names=("origin", "destination", "count", "n"),
    ),
    "no column of counts": Case([("001", "002", 3)], {("001", "002"): 1}, {"count": None}),
    "other names of ends": Case(
        [("001", "002", 3)], {("001", "002"): 3}, {"origin": "home", "destination": "work"},
        names=("home", "work", "count"),
    ),
    "a column that may hold counts": Case(
        [("001", "002", 3)], "column 'Trips' of {table} may hold counts; say which",
        names=("origin", "destination", "Trips"),
    ),
    "cells in several rows": Case(
        [("001", "002", 3), ("001", "002", 4)], {("001", "002"): 7}, said=(SPLIT_CELLS,)
    ),
    "a row twice": Case(
        [("001", "002", 3), ("001", "002", 3), ("003", "001", 5)],
        "1 row of {table} repeats another one, with the same origin, destination and the same co",
    ),
    "a row twice, added up": Case(
        [("001", "002", 3), ("001", "002", 3)], {("001", "002"): 6}, {"repeated_rows": "add"}
    ),
    "zeros twice": Case([("001", "002", 0)] * 2 + [("003", "001", 5)], {("003", "001"): 5}),
    # Cells
    "codes are compared as written": Case(
        [("a", 1), ("A", 2), (" a", 4)], {("a",): 1, ("A",): 2, (" a",): 4},
        names=("town", "count"), axes={"town": Hierarchy.read({"town": ["a", "A", " a"]})},
    ),
    "whole numbers as codes": Case(
        [(1, 2, 3), (2, 1, 4)], {("1", "2"): 3, ("2", "1"): 4},
        axes=dict.fromkeys(ENDS, Hierarchy.read({"town": ["1", "2"]})),
    ),
    "odd names and codes": Case(
        [("it's", 'say "c"')], {("it's", 'say "c"'): 1}, names=('a"b;--', "c'd"),
        axes=dict.fromkeys(['a"b;--', "c'd"], Hierarchy.read({"town": ["it's", 'say "c"']})),
    ),
    "no count": bad_count(None, "", says="no count"),
    "a negative count": bad_count("-1", says="a negative count"),
    "a count with a decimal point": bad_count("12.000", "1.5", says=_SEPARATED),
    "a count with a separator": bad_count("1,000", says=_SEPARATED),
    "text as count": bad_count("two", "0x1F", "1e3", says="text that is not a number as count"),
    "no number as count": bad_count("nan", "-Inf", says="NaN or infinity as count"),
    "a huge count": bad_count("9223372036854775808", says="a count beyond 2^63 - 1"),
    "a total that is too large": Case(
        [("001", "002", 2**42), ("001", "003", 2**42 + 1)], "total number of trips is beyond 2^43"
    ),
    # Columns
    "no such column": Case(
        [("001", "002", 3)], "no column 'destination'",
        names=("origin", "destinazione", "count"),
    ),
    "no such column of persons": Case(
        [("001", "002", 3)], "{table} has no column 'who' for the persons", WHO, unit=at_most(1)
    ),
    "two roles": Case([("001", "002", 3)], "given twice, for code and count", {"count": "origin"}),
    # Rows that cannot be placed
    "lost zeros": Case(
        [("1", "002", 3), ("001", "003", 2), ("secret", "003", 2)],
        "2 rows of {table} cannot be placed: unknown origin '1', ... (did the codes lose their ",
    ),
    "unknown codes": Case(
        [("secret", "002", 3)], "1 row of {table} cannot be placed: unknown origin (not shown"
    ),
    "unplaceable rows": Case(
        LOST,
        "4 rows of {table} cannot be placed: unknown origin (not shown, as none resembles a code "
        "of the areas); missing origin",
    ),
    "missing codes": Case(
        [(None, "002", 1), ("", "003", 1)], "2 rows of {table} cannot be placed: missing origin"
    ),
    "unplaceable rows outside": Case(
        LOST,
        {
            ("001", "002"): 1, ("outside", "002"): 2, ("outside", "003"): 3,
            ("001", "outside"): 4, ("outside", "outside"): 5,
        },
        {"unplaceable": "outside"}, axes=OUTSIDE,
    ),
    "unplaceable origins outside": Case(
        LOST[:3], {("001", "002"): 1, ("outside", "002"): 2, ("outside", "003"): 3},
        {"unplaceable": {"origin": "outside"}}, axes=OUTSIDE,
    ),
    "unplaceable rows dropped": Case(
        LOST, {("001", "002"): 1}, {"unplaceable": "drop"}, unit=at_most(1)
    ),
    "rows dropped from a public total": Case(
        LOST, "number of trips, which is public", {"unplaceable": "drop"}, unit=Unit()
    ),
    "rows dropped from a total that may be public": Case(
        LOST, "number of trips, which is public", {"unplaceable": "drop"}
    ),
    "rows dropped under substitute": Case(
        LOST, "number of trips, which is public", {"unplaceable": "drop"},
        unit=Unit(trips=2, exactly=False),
    ),
    "unplaceable trips dropped": Case(
        [row[:2] for row in LOST], {("001", "002"): 1}, {"unplaceable": "drop"}, TRIPS, at_most(1)
    ),
    "unplaceable trips": Case(
        [row[:2] for row in LOST], "4 rows of {table} cannot be placed: ", names=TRIPS
    ),
    "no area outside": Case(
        LOST, "has no area 'outside' for rows that cannot be placed", {"unplaceable": "outside"}
    ),
    "rows of totals": Case(
        [("001", "002", 3), ("001", " TOTAL", 3)], {("001", "002"): 3}, {"unplaceable": "drop"},
        unit=at_most(1), said=(LIKE_TOTALS,),
    ),
    # Empty tables
    "only zeros": Case([("001", "002", 0)], "all counts of {table} are 0; there is nothing"),
    "only zeros, a noised total": Case([("001", "002", 0)], {}, unit=at_most(1)),
    # Persons
    "a person's trips are bounded": Case(
        [("001", "002", "a")] * 5 + [("001", "003", "b")] * 2,
        {("001", "002"): 3, ("001", "003"): 2}, WHO, PEOPLE, at_most(3),
    ),
    "each trip of a person once": Case(
        [("001", "002", "a")] * 5 + [("001", "003", "a"), ("001", "002", "b")],
        {("001", "002"): 2, ("001", "003"): 1}, WHO, PEOPLE, at_most(3, distinct=True),
    ),
    "one trip in each month": Case(
        [("001", "002", "a")] * 2 + [("001", "003", "a"), ("001", "002", "b")],
        {("001", "002"): 2, ("001", "003"): 1}, WHO, PEOPLE,
        at_most(2, once_per="destination"),
    ),
    "persons by number": Case(
        [("001", "002", 7), ("001", "002", 7), ("001", "002", 8)], {("001", "002"): 2},
        WHO, PEOPLE, at_most(1),
    ),
    "persons differ in case or blanks": Case(
        [("001", "002", "a"), ("001", "002", "A"), ("001", "002", "a ")], {("001", "002"): 3},
        WHO, PEOPLE, at_most(1),
    ),
    "a row of a person twice": Case(
        [("001", "002", "a", 3)] * 2, {("001", "002"): 6}, WHO, (*PEOPLE, "count"), at_most(9)
    ),
    "persons with counts": Case(
        [("001", "002", "a", 2**62), ("001", "003", "b", 1), ("001", "003", "c", 0)],
        {("001", "002"): 3, ("001", "003"): 1}, WHO, (*PEOPLE, "count"), at_most(3),
    ),
    "exactly one trip": Case(
        [("001", "002", "a"), ("001", "003", "b")], {("001", "002"): 1, ("001", "003"): 1},
        WHO, PEOPLE, Unit(),
    ),
    "two trips where one is stated": Case(
        [("001", "002", "Jane"), ("001", "003", "Jane")],
        "the unit says exactly 1 trip per person, but {table} has persons with a different num",
        WHO, PEOPLE, Unit(),
    ),
    "a person without trips": Case(
        [("001", "002", "a", 1), ("001", "003", "b", 0)], "persons with a different number",
        WHO, (*PEOPLE, "count"), Unit(),
    ),
    "nobody": Case(
        [("001", "002", "a"), ("001", "002", ""), ("001", "002", None)],
        "2 rows of {table} have no person", WHO, PEOPLE, at_most(1),
    ),
    # Points and times
    "points and times": Case(
        STAMPED,
        {("a", "c", "00", "1-Mon"): 1, ("b", "c", "23", "1-Mon"): 2, ("d", "a", "12", "7-Sun"): 1},
        {**PLACED, "weekday": "at"}, POINTS,
        axes={"origin": SQUARES, "destination": SQUARES, "hour": HOURS, "weekday": DAYS},
    ),
    "points in no area": Case(
        [*STAMPED, ("9.0", "40.5", "1.5", "40.5", "2026-05-18 00:10"),
         ("0.5", "95.0", "east", "40.5", "2026-05-18 00:10")],
        "2 rows of {table} cannot be placed: no area at the point (olon, olat)", PLACED, POINTS,
        axes={"origin": SQUARES, "destination": SQUARES, "hour": HOURS},
    ),
    "no time stamp": Case(
        [("2026-05-18 08:30",), ("2026-02-30 08:00",), ("08:30",), ("46160",)],
        "3 rows of {table} cannot be placed: no time stamp such as", {"hour": "at"}, ("at",),
        axes={"hour": HOURS},
    ),
}  # fmt: skip
#: Never shown: words of persons and of codes that resemble none.
HIDDEN = re.compile("secret|Jane")


def people():
    """Trips of people, some of whom make very many; some between unknown areas."""
    ends = ["001", "002", "003", "x"]
    rows = [(ends[i % 4], ends[i * i % 3], f"p{i * 7 % 50}", 1 + i % 3) for i in range(400)]
    return [*rows, ("001", "002", "p1", 5000), ("002", "003", "p2", 2**40)]


# --- sources


def columns_of(names, rows):
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def _folder(columns, folder):
    """Two Parquet files."""
    table = pa.table(columns)
    cut = table.num_rows // 2
    for name, part in (("a", table.slice(0, cut)), ("b", table.slice(cut))):
        pq.write_table(part, folder / f"{name}.parquet")
    return folder


def _csv(columns, folder):
    pa_csv.write_csv(pa.table(columns), folder / "a.csv")
    return folder / "a.csv"


def _packed_csv(columns, folder):
    path = folder / "b.csv.gz"
    path.write_bytes(gzip.compress(_csv(columns, folder).read_bytes()))
    return path


def _zip(columns, folder):
    with zipfile.ZipFile(folder / "a.zip", "w") as packed:
        packed.write(_csv(columns, folder), "a.csv")
    return folder / "a.zip"


def _parquet(columns, folder):
    pq.write_table(pa.table(columns), folder / "a.parquet")
    return folder / "a.parquet"


def _arrow(columns, folder):
    pa_feather.write_feather(pa.table(columns), folder / "a.arrow")
    return folder / "a.arrow"


def _excel(columns, folder):
    book = openpyxl.Workbook()
    for row in [tuple(columns), *zip(*columns.values(), strict=True)]:
        book.active.append(row)
    book.save(folder / "a.xlsx")
    return folder / "a.xlsx"


def _sqlite(columns, folder):
    connection = sqlite3.connect(folder / "a.db")
    names = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
    connection.execute(f"CREATE TABLE trips ({names})")
    marks = ", ".join("?" * len(columns))
    connection.executemany(
        f"INSERT INTO trips VALUES ({marks})", list(zip(*columns.values(), strict=True))
    )
    connection.commit()
    connection.close()
    return SqlQuery("SELECT * FROM trips", f"sqlite:///{folder / 'a.db'}")


def _typed(columns, _):
    """Points as numbers and times as time stamps, where all cells can be."""
    table = pa.table(columns)
    for name, kind in {**dict.fromkeys(POINTS[:4], float), "at": dt.datetime.fromisoformat}.items():
        if name in columns:
            try:
                cells = pa.array([kind(cell) for cell in columns[name]])
            except ValueError:
                continue
            table = table.set_column(table.column_names.index(name), name, cells)
    return table


SOURCES = {
    "a mapping": lambda columns, _: columns,
    "pandas": lambda columns, _: pd.DataFrame(columns),
    "pandas objects": lambda columns, _: pd.DataFrame(columns, dtype=object),
    "pandas nullable": lambda columns, _: pd.DataFrame(columns).convert_dtypes(),
    "polars": lambda columns, _: pl.DataFrame(columns),
    "pyarrow": lambda columns, _: pa.table(columns),
    "pyarrow, typed": _typed,
    "a stream": lambda columns, _: pa.table(columns).to_reader(),
    "CSV": _csv,
    "packed CSV": _packed_csv,
    "a zip file": _zip,
    "Parquet": _parquet,
    "a folder of Parquet": _folder,
    "Arrow": _arrow,
    "Excel": _excel,
    "SQLite": _sqlite,
}
#: What a source is called in messages, where it is not a file.
LABELS = {"SQLite": "the SQL query", "a zip file": "'a.zip'", "packed CSV": "'b.csv.gz'"}


def label_of(source, kind):
    if hasattr(source, "suffix"):
        return repr(source.name)
    return LABELS.get(kind, "the table")


# --- reading


def read_case(case, source, read=read_leaves, *, seed=1):
    """Counts by codes or a message, and what was said after how rows were counted."""
    axes = [Axis(name, hierarchy) for name, hierarchy in case.axes.items()]
    heard = []
    options = {"unit": case.unit, "random_source": SeededSource(seed), "say": heard.append}
    try:
        leaves = read(source, Columns(**case.options), axes, **options)
    except InftdaError as problem:
        return str(problem) if problem.__context__ is None else "an error with a context", ()
    codes = [
        axis.hierarchy.codes(axis.hierarchy.depth).take(numbers).to_pylist()
        for axis, numbers in zip(axes, leaves.areas, strict=True)
    ]
    found = Counter()
    for leaf, count in zip(zip(*codes, strict=True), leaves.value.tolist(), strict=True):
        found[leaf] += count
    return dict(found), tuple(heard[1:])


def check_case(case, source, label, read=read_leaves):
    """Compare what is read of a source with what is expected."""
    found, said = read_case(case, source, read)
    if isinstance(case.result, str):
        assert isinstance(found, str), found
        assert case.result.format(table=label) in found
        assert not HIDDEN.search(found)
        return
    assert found == case.result
    assert said == case.said
