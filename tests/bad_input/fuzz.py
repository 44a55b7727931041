"""Feeds the readers with made-up and damaged input for a given time: `make fuzz`.

Whatever comes in, a command either works (exit code 0) or says in one line what to change
(exit code 2), leaves no file behind, and does not take for ever. What breaks this rule is
shrunk by hypothesis and printed; it then belongs into `test_found_by_fuzzing.py`.

If a library takes the process down with it, its last input is left in the temporary folder.
"""

import argparse
import contextlib
import copy
import csv
import gzip
import io
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from inftda.cli.main import run

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
#: Name and content of the last input, if a crash left any.
LAST = Path(tempfile.gettempdir()) / "fuzz-example"

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

# --- the rule --------------------------------------------------------------------------------


def total_by_hand(content: bytes) -> int:
    """The number of trips in a CSV file, read in another way; it is public for these."""
    text = content.decode("utf-8-sig")
    first = text.splitlines()[0]
    separator = max(",;\t|", key=lambda sign: len(next(csv.reader([first], delimiter=sign))))
    rows = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=separator))
    return sum(int(float(row["count"])) if "count" in row else 1 for row in rows)


class Bench:
    """A folder with good input; runs commands in it and checks the rule."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        os.chdir(folder)
        Path("areas.csv").write_text(AREAS)
        Path("flows.csv").write_text(FLOWS)
        Path("zones.csv").write_text(ZONES)
        self.command(["release", "flows.csv", "--areas", "areas.csv", *BUDGET, "--out", "made"])
        self.command(["ledger", "create", "made.db", "census", "--rho", "1"])
        self.manifest = json.loads(Path("made/manifest.json").read_text())
        self.flows = Path("made/flows.parquet").read_bytes()
        self.measurements = Path("made/measurements.parquet").read_bytes()
        self.ledger = Path("made.db").read_bytes()
        self.given = {path.name for path in folder.iterdir()}
        self.examples = self.accepted = 0

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
            # What a release does not show is said on every query; nothing else is.
            assert not text or text.startswith("Note: "), text
        return code

    def check(self, name, content, arguments):
        """Write a file, run a command on it, and see that nothing else is left."""
        self.examples += 1
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        LAST.write_bytes(name.encode() + b"\n" + content)
        before = sorted(self.folder.rglob("*"))
        code = self.command(arguments)
        self.accepted += code == 0
        out = self.folder / "out"
        if code == 0 and out.exists():
            assert self.command(["query", "out", "--origin-level", "all"]) == 0
            if name == "x.csv" and "--person" not in arguments and arguments[1] == name:
                released = json.loads((out / "manifest.json").read_text())["total"]
                assert released == total_by_hand(content), "counted wrongly"
            shutil.rmtree(out)
        (self.folder / "cells.csv").unlink(missing_ok=True)
        left = [str(path) for path in sorted(self.folder.rglob("*")) if path not in before]
        assert not left, left
        path.unlink()

    def release(self, name, content, *extra, areas="areas.csv", flows="flows.csv"):
        arguments = ["release", flows, "--areas", areas, "--out", "out", "--threads", "1"]
        self.check(name, content, [*arguments, *BUDGET, *extra, "--quiet"])

    def of_flows(self, name, *extra, areas="areas.csv"):
        return lambda x: self.release(name, x, *extra, areas=areas, flows=name)

    def of_areas(self, name):
        return lambda x: self.release(name, x, areas=name)

    def edited(self, name, query=("query",)):
        def action(content):
            for command, *options in (("verify",), query):
                shutil.rmtree("edited", ignore_errors=True)
                shutil.copytree("made", "edited")
                self.check(f"edited/{name}", content, [command, "edited", *options])
            shutil.rmtree("edited")

        return action

    def of_ledger(self, content):
        for verb, *rest in (["list"], ["show"], ["charge", "--rho", "1/9", "--note", "x"]):
            name = [] if verb == "list" else ["census"]
            self.check("x.db", content, ["ledger", verb, "x.db", *name, *rest])

    def of_options(self, pair):
        name, value = pair
        self.release("x.txt", f"{name} {value}".encode(), f"{name}={value}")

    def shown(self, name):
        def action(content):
            self.check(name, content, ["areas", "show", name])
            self.release(name, content, areas=name)

        return action

    def outline(self, content):
        file, out = "x.geojson", ["--out", "cells.csv"]
        self.check(file, content, ["areas", "grid", file, "--sizes", "40000,20000", *out])
        self.check(file, content, ["areas", "h3", file, "--resolutions", "2,3", *out])


def targets(bench):
    """What is fuzzed: name, strategy, and what to do with an example."""
    trips, levels = ["origin", "destination", "count"], ["region", "town"]
    flow_columns = ["origin", "destination", "flow"]
    measured_columns = ["table", "origin", "destination", "measured"]

    def broken(content, columns):
        return st.one_of(st.builds(damaged, st.just(content), DAMAGE), parquet_bytes(columns))

    names = st.sampled_from(
        ["--epsilon", "--delta", "--rho", "--trips", "--split", "--order", "--axis", "--threads",
         "--person", "--count", "--origin", "--unplaceable", "--neighbours", "--not-private-seed"]
    )  # fmt: skip
    lines = st.lists(st.tuples(names, CELLS), max_size=4).map(
        lambda pairs: "\n".join(f"{k[2:]} = {v}" for k, v in pairs).encode()
    )
    packed = st.builds(damaged, csv_bytes(trips).map(gzip.compress), DAMAGE)
    people = ["--person", "person", "--neighbours", "add-remove", "--trips", "2"]
    points = [*OF_POINTS, "--unplaceable", "outside"]
    return [
        ("flows.csv", csv_bytes(trips), bench.of_flows("x.csv")),
        ("persons.csv", csv_bytes([*trips, "person"]),
         bench.of_flows("x.csv", *people, "--unplaceable", "drop")),
        ("flows.csv.gz", packed, bench.of_flows("x.csv.gz")),
        ("flows.parquet", parquet_bytes(trips), bench.of_flows("x.parquet")),
        ("areas.csv", csv_bytes(levels), bench.of_areas("x.csv")),
        ("areas.parquet", parquet_bytes(levels), bench.of_areas("x.parquet")),
        ("manifest.json", json_text(bench.manifest), bench.edited("manifest.json")),
        ("released flows", broken(bench.flows, flow_columns), bench.edited("flows.parquet")),
        ("released measurements", broken(bench.measurements, measured_columns),
         bench.edited("measurements.parquet", ("query", "--intervals"))),
        ("released areas", csv_bytes(levels), bench.edited("areas.csv")),
        ("configuration", st.one_of(lines, st.binary(max_size=60)),
         lambda x: bench.release("x.toml", x, "--config", "x.toml")),
        ("ledger", st.builds(damaged, st.just(bench.ledger), DAMAGE), bench.of_ledger),
        ("options", st.tuples(names, NUMBERS), bench.of_options),
        ("points.csv", csv_bytes(POINTS), bench.of_flows("x.csv", *OF_POINTS, areas="zones.csv")),
        ("points.parquet", parquet_bytes(POINTS),
         bench.of_flows("x.parquet", *points, areas="zones.csv")),
        ("zones.csv", csv_bytes(["town", "wkt"]), bench.shown("x.csv")),
        ("zones.geojson", json_text(GEOJSON), bench.shown("x.geojson")),
        ("outline.geojson", json_text(GEOJSON["features"][0]), bench.outline),
    ]  # fmt: skip


def work(minutes: float) -> int:
    """Fuzz until the time is over; returns the number of findings."""
    end, findings = time.monotonic() + 60 * minutes, 0
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        bench = Bench(Path(folder))
        done = {name: 0 for name, _, _ in targets(bench)}
        broken = set()
        while time.monotonic() < end:
            for name, strategy, action in targets(bench):
                if time.monotonic() >= end or name in broken:
                    continue
                before = bench.examples
                test = settings(
                    max_examples=60, deadline=None, database=None,
                    suppress_health_check=list(HealthCheck), phases=[Phase.generate, Phase.shrink],
                )(given(strategy)(action))  # fmt: skip
                try:
                    test()
                except BaseException as problem:
                    if isinstance(problem, KeyboardInterrupt):
                        raise
                    findings += 1
                    broken.add(name)  # one finding for each reader and run is enough
                    notes = "\n".join(getattr(problem, "__notes__", []))[:3000]
                    print(f"FOUND in {name}: {problem!r}\n{notes}", flush=True)  # noqa: T201
                    for left in Path(folder).glob("*"):
                        if left.name not in bench.given:
                            shutil.rmtree(left) if left.is_dir() else left.unlink()
                done[name] += bench.examples - before
        os.chdir("/")
    figures = {"findings": findings, "accepted": bench.accepted, "examples": done}
    print(json.dumps(figures), flush=True)  # noqa: T201
    return findings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    findings = work(parser.parse_args().minutes)
    LAST.unlink(missing_ok=True)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
