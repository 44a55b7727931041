"""Made-up and damaged input for all readers; `make fuzz` tries more of it.

Whatever comes in, a command either works (exit code 0) or says in one line what to change (exit
code 2), leaves no file behind, and does not take for ever. What breaks this rule belongs into
`test_found_by_fuzzing.py`. If a library takes the process down, its last input is left in the
folder of the test.
"""

import contextlib
import copy
import csv
import gzip
import io
import json
import os
import shutil
import time
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from inftda.cli.main import run

pytestmark = pytest.mark.nightly

#: Examples for each reader.
N_EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "60"))
AREAS = "region,town\nN,1\nN,2\nS,3\nS,4\n"
FLOWS = "origin,destination,count\n1,2,30\n3,4,20\n"
#: Towns with outlines: squares of one degree from west to east.
SQUARES = {town: [[x, 0], [x + 1, 0], [x + 1, 1], [x, 1], [x, 0]] for x, town in enumerate("1234")}
ZONES = "town,wkt\n" + "".join(
    f'{town},"POLYGON(({", ".join(f"{x} {y}" for x, y in ring)}))"\n'
    for town, ring in SQUARES.items()
)
GEOJSON = {
    "type": "FeatureCollection",
    "features": [
        {
            "type": "Feature",
            "properties": {"town": town},
            "geometry": {"type": "Polygon", "coordinates": [ring]},
        }
        for town, ring in SQUARES.items()
    ],
}
#: Trips between points, at a time: columns, and what a release is told of them.
POINTS = ["lon", "lat", "to_lon", "to_lat", "at", "person"]
OF_POINTS = [
    "--origin", "lon,lat", "--destination", "to_lon,to_lat", "--hour", "at",
    "--weekday", "at", "--person", "person", "--neighbours", "add-remove", "--trips", "2",
]  # fmt: skip
BUDGET = ["--epsilon", "1", "--delta", "1e-8"]
#: One example that takes more of the processor is a finding; others may be busy on the machine.
MAX_SECONDS = 120
# --- input: cells and bytes that have caused trouble somewhere -----------------------------

ODD_TEXT = st.sampled_from(
    ["", " ", "1", "2", "3", "4", "N", "S", "01", "1.0", "1e3", "-1", "NaN", "inf", "NULL", "null",
     "true", '"', '""', "'", "\\", "\\N", ",", ";", "\t", "|", "#", "--", "\r", "\n", "\r\n", "\0",
     "\ufeff", "\u200b", "\uff11", "\u0661", "é", "e\u0301", "😀", "origin", "destination",
     "count", "flow", "all", "outside", "region", "town", "person", "9" * 30, "0x10", "1_0",
     "9223372036854775807", "9223372036854775808", "$x", "c0", "../x", "=1+1", "x" * 300]
)  # fmt: skip
DEGREES = st.one_of(
    st.sampled_from(
        ["0", "0.5", "1", "-0", "3.999999999999999999", "4", "180", "181", "-180.0", "90", "90.1",
         "1e-400", "1e400", "0,5", "0.5 ", "+0.5", ".5", "5e-1", "0x1p-1", "nan", "-inf", "1/2"]
    ),
    st.floats(-1, 5).map(repr),
    st.floats().map(repr),
)  # fmt: skip
STAMPS = st.one_of(
    st.sampled_from(
        ["2026-05-17 08:30:00", "2026-05-17T08:30", "2026-05-17", "08:30", "2026-02-30 01:00",
         "2026-05-17 24:00", "2026-05-17 23:59:60", "2026-05-17T08:30Z", "2026-05-17 08:30+14:00",
         "0001-01-01 00:00", "9999-12-31 23:59:59.999999999", "-4712-01-01 00:00", "1747470600",
         "17.05.2026 08:30", "2026-05-17 8:30", "2026-W20-7", "now", "infinity", "epoch"]
    ),
    st.datetimes().map(str),
)  # fmt: skip
CELLS = st.one_of(ODD_TEXT, st.text(max_size=6), st.integers(-3, 40).map(str))
ENCODINGS = st.sampled_from(["utf-8"] * 8 + ["utf-8-sig", "utf-16", "utf-16-le", "latin-1"])
DAMAGE = st.lists(
    st.tuples(
        st.sampled_from(["flip", "cut", "insert", "repeat", "zero"]),
        st.floats(0, 1),
        st.binary(max_size=8),
        st.integers(1, 64),
    ),
    max_size=4,
)


def damaged(content: bytes, changes) -> bytes:
    for kind, where, extra, length in changes:
        at = int(where * len(content))
        if kind == "flip" and content:
            at = min(at, len(content) - 1)
            mask = extra[0] if extra else 1
            content = content[:at] + bytes([content[at] ^ (mask or 1)]) + content[at + 1 :]
        elif kind == "cut":
            content = content[:at]
        elif kind == "insert":
            content = content[:at] + extra + content[at:]
        elif kind == "repeat":
            content = content[: at + length] + content[at : at + length] + content[at + length :]
        elif kind == "zero":
            content = content[:at] + bytes(length) + content[at + length :]
    return content


@st.composite
def csv_bytes(draw, names):
    """Mostly sensible headers, odd cells, any separator, any encoding, then some damage."""
    header = draw(
        st.one_of(st.just(names), st.permutations(names), st.lists(CELLS, min_size=1, max_size=4))
    )
    width = st.just(len(header)) if draw(st.integers(0, 9)) else st.integers(0, 5)
    if header == names and draw(st.booleans()):  # nearly good: areas that exist, real counts
        rows = draw(st.lists(nearly_good(names), max_size=6))
    else:
        any_row = width.flatmap(lambda n: st.lists(CELLS, min_size=n, max_size=n))
        rows = draw(st.lists(any_row, max_size=6))
    separator = draw(st.sampled_from([","] * 4 + [";", "\t", "|"]))
    end = draw(st.sampled_from(["\n", "\n", "\r\n", "\r"]))
    is_quoted = draw(st.booleans())

    def cell(value):
        return '"' + value.replace('"', '""') + '"' if is_quoted else value

    text = end.join(separator.join(map(cell, row)) for row in [header, *rows])
    text += end if draw(st.booleans()) else ""
    content = text.encode(draw(ENCODINGS), errors="replace")
    return damaged(content, draw(DAMAGE)) if draw(st.integers(0, 3)) == 0 else content


def nearly_good(names):
    """A row with few cells that are odd."""
    cells = st.one_of(st.sampled_from("1234"), st.sampled_from("1234"), CELLS)
    counts = st.integers(0, 10**6).map(str)
    if names == POINTS:
        degrees = st.one_of(st.floats(0, 4).map(repr), DEGREES)
        return st.tuples(degrees, degrees, degrees, degrees, STAMPS, cells).map(list)
    return st.tuples(*[cells for _ in names[:2]], *[counts for _ in names[2:]]).map(list)


COLUMNS = st.one_of(
    st.lists(st.one_of(st.none(), st.sampled_from(["1", "2", "3", "4", "", "x"])), max_size=5),
    st.lists(st.one_of(st.none(), st.integers(-3, 2**63 - 1)), max_size=5),
    st.lists(st.one_of(st.none(), st.floats()), max_size=5),
    st.lists(st.booleans(), max_size=5),
    st.lists(st.binary(max_size=3), max_size=5),
    st.lists(st.lists(st.integers(0, 3), max_size=2), max_size=5),
    st.lists(st.datetimes(), max_size=5),
    st.lists(st.datetimes(timezones=st.timezones()), max_size=5),
    st.lists(DEGREES, max_size=5),
    st.lists(STAMPS, max_size=5),
    st.lists(
        st.decimals(allow_nan=False, allow_infinity=False, places=2, max_value=99), max_size=5
    ),
)


@st.composite
def parquet_bytes(draw, names):
    """Any types, with dictionaries or not, then some damage."""
    columns = {name: draw(COLUMNS) for name in draw(st.sampled_from([names, names[:-1]]))}
    length = min(len(values) for values in columns.values())
    table = pa.table({name: values[:length] for name, values in columns.items()})
    sink = io.BytesIO()
    pq.write_table(
        table, sink, use_dictionary=draw(st.booleans()),
        compression=draw(st.sampled_from(["none", "zstd", "snappy", "gzip"])),
    )  # fmt: skip
    return damaged(sink.getvalue(), draw(DAMAGE))


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 3), st.integers(-(10**40), 10**40), st.floats(),
    ODD_TEXT, st.sampled_from([[], {}, [1], {"a": 1}, "1/3", "1/0", "1e99999", "-1", "zcdp"]),
)  # fmt: skip


def places(value, path=()):
    """Every place of a JSON value."""
    yield path
    if isinstance(value, dict | list):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        for key, child in inner:
            yield from places(child, (*path, key))


@st.composite
def json_text(draw, value):
    """A JSON value with a few places changed or gone, then perhaps some damage."""
    changed = copy.deepcopy(value)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(list(places(changed))[1:]))
        place = changed
        for key in path[:-1]:
            place = place[key]
        if draw(st.booleans()):
            # A copy: lists and objects among them would become part of each other.
            place[path[-1]] = copy.deepcopy(draw(VALUES))
        else:
            del place[path[-1]]
        if not changed:
            break
    return damaged(
        (json.dumps(changed, indent=2) + "\n").encode(), draw(DAMAGE) if draw(st.booleans()) else []
    )


NUMBERS = st.one_of(
    ODD_TEXT,
    st.floats().map(str),
    st.integers(-5, 5).map(str),
    st.text("0123456789e-+./_", max_size=9),
)


def total_by_hand(content: bytes) -> int:
    """The number of trips in a CSV file, read in another way; it is public for these."""
    text = content.decode("utf-8-sig")
    first = text.splitlines()[0]
    separator = max(",;\t|", key=lambda sign: len(next(csv.reader([first], delimiter=sign))))
    rows = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=separator))
    return sum(int(float(row["count"])) if "count" in row else 1 for row in rows)


class Bench:
    """A folder with good input; runs commands in it and checks the rule."""

    def __init__(self, folder):
        self.folder = folder
        for name, text in {"areas.csv": AREAS, "flows.csv": FLOWS, "zones.csv": ZONES}.items():
            (folder / name).write_text(text)
        self.command(["release", "flows.csv", "--areas", "areas.csv", *BUDGET, "--out", "made"])
        self.command(["ledger", "create", "made.db", "census", "--rho", "1"])

    def command(self, arguments):
        """Exit code; raises if the rule is broken."""
        said, printed = io.StringIO(), io.StringIO()
        start = time.process_time()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(printed):
            code = run([str(argument) for argument in arguments])
        spent, text = time.process_time() - start, said.getvalue()
        assert code in {0, 2}, f"exit code {code}: {text}"
        assert spent < MAX_SECONDS, f"{spent:.0f} s"
        if code == 2:
            assert text.startswith("error: "), text
            assert text.count("\n") == 1, text
        else:
            # What a release does not show is said on every query, and that kernels are compiled.
            assert not text or text.startswith(("Note: ", "Compiling")), text
        return code

    def check(self, name, content, arguments):
        """Write a file, run a command on it, and see that nothing else is left."""
        path, out = self.folder / name, self.folder / "out"
        path.write_bytes(content)
        before = sorted(self.folder.rglob("*"))
        code = self.command(arguments)
        if code == 0 and out.exists():
            assert self.command(["query", "out", "--origin-level", "all"]) == 0
            if name == "x.csv" and "--person" not in arguments and arguments[1] == name:
                released = json.loads((out / "manifest.json").read_text())["total"]
                assert released == total_by_hand(content), "counted wrongly"
            shutil.rmtree(out)
        (self.folder / "cells.csv").unlink(missing_ok=True)
        assert sorted(self.folder.rglob("*")) == before
        path.unlink()

    def release(self, content, name, *extra, areas="areas.csv", flows="flows.csv"):
        arguments = ["release", flows, "--areas", areas, "--out", "out", "--threads", "1"]
        self.check(name, content, [*arguments, *BUDGET, *extra, "--quiet"])

    def flows(self, content, name, *extra, areas="areas.csv"):
        self.release(content, name, *extra, areas=areas, flows=name)

    def areas(self, content, name):
        self.release(content, name, areas=name)

    def edited(self, content, name, *query):
        for command in (["verify"], ["query", *query]):
            shutil.rmtree("edited", ignore_errors=True)
            shutil.copytree("made", "edited")
            self.check(f"edited/{name}", content, [command[0], "edited", *command[1:]])

    def ledger(self, content):
        for verb, *rest in (["list"], ["show"], ["charge", "--rho", "1/9", "--note", "x"]):
            name = [] if verb == "list" else ["census"]
            self.check("x.db", content, ["ledger", verb, "x.db", *name, *rest])

    def option(self, pair):
        name, value = pair
        self.release(f"{name} {value}".encode(), "x.txt", f"{name}={value}")

    def outline(self, content, file):
        for kind in (["grid", file, "--sizes", "40000,20000"], ["h3", file, "--resolutions", "2"]):
            self.check(file, content, ["areas", *kind, "--out", "cells.csv"])


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Bench(tmp_path)


TRIPS, LEVELS = ["origin", "destination", "count"], ["region", "town"]
PEOPLE = ["--person", "person", "--neighbours", "add-remove", "--trips", "2"]
OPTIONS = st.sampled_from(
    ["--epsilon", "--delta", "--rho", "--trips", "--split", "--order", "--axis", "--threads",
     "--person", "--count", "--origin", "--unplaceable", "--neighbours", "--not-private-seed"]
)  # fmt: skip
LINES = st.lists(st.tuples(OPTIONS, CELLS), max_size=4).map(
    lambda pairs: "\n".join(f"{name[2:]} = {value}" for name, value in pairs).encode()
)


def parts_of(bench, name, columns):
    """A file of a good release with damage, or another table in its place."""
    content = (bench.folder / "made" / name).read_bytes()
    return st.one_of(st.builds(damaged, st.just(content), DAMAGE), parquet_bytes(columns))


def of_manifest(bench):
    return json_text(json.loads((bench.folder / "made/manifest.json").read_text()))


#: What is read: content, made when a good release is there, and what is done with it.
READERS = {
    "flows": (csv_bytes(TRIPS), Bench.flows, "x.csv"),
    "persons": (
        csv_bytes([*TRIPS, "person"]), Bench.flows, "x.csv", *PEOPLE, "--unplaceable", "drop"
    ),
    "packed flows": (
        st.builds(damaged, csv_bytes(TRIPS).map(gzip.compress), DAMAGE), Bench.flows, "x.csv.gz"
    ),
    "Parquet": (parquet_bytes(TRIPS), Bench.flows, "x.parquet"),
    "areas": (csv_bytes(LEVELS), Bench.areas, "x.csv"),
    "areas in Parquet": (parquet_bytes(LEVELS), Bench.areas, "x.parquet"),
    "manifest": (of_manifest, Bench.edited, "manifest.json"),
    "released flows": (
        partial(parts_of, name="flows.parquet", columns=["origin", "destination", "flow"]),
        Bench.edited, "flows.parquet",
    ),
    "measurements": (
        partial(
            parts_of, name="measurements.parquet",
            columns=["table", "origin", "destination", "measured"],
        ),
        Bench.edited, "measurements.parquet", "--intervals",
    ),
    "released areas": (csv_bytes(LEVELS), Bench.edited, "areas.csv"),
    "configuration": (
        st.one_of(LINES, st.binary(max_size=60)), Bench.release, "x.toml", "--config", "x.toml"
    ),
    "ledger": (
        lambda bench: st.builds(damaged, st.just((bench.folder / "made.db").read_bytes()), DAMAGE),
        Bench.ledger,
    ),
    "options": (st.tuples(OPTIONS, NUMBERS), Bench.option),
    "points": (csv_bytes(POINTS), partial(Bench.flows, areas="zones.csv"), "x.csv", *OF_POINTS),
    "points in Parquet": (
        parquet_bytes(POINTS), partial(Bench.flows, areas="zones.csv"),
        "x.parquet", *OF_POINTS, "--unplaceable", "outside",
    ),
    "zones": (csv_bytes(["town", "wkt"]), Bench.areas, "x.csv"),
    "zones in GeoJSON": (json_text(GEOJSON), Bench.areas, "x.geojson"),
    "outline": (json_text(GEOJSON["features"][0]), Bench.outline, "x.geojson"),
}  # fmt: skip


@pytest.mark.parametrize("reader", READERS)
def test_whatever_comes_in_a_command_works_or_says_in_one_line_what_to_change(reader, bench):
    contents, action, *rest = READERS[reader]
    if not isinstance(contents, st.SearchStrategy):
        contents = contents(bench)

    @settings(
        max_examples=N_EXAMPLES, deadline=None, database=None,
        suppress_health_check=list(HealthCheck), phases=[Phase.generate, Phase.shrink],
    )  # fmt: skip
    @given(contents)
    def check(content):
        action(bench, content, *rest)

    check()
