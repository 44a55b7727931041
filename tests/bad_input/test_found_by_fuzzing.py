"""Input that once broke the rule: found by `test_fuzz.py`, or by looking for what it would find."""

import json

import pyarrow as pa
import pytest
from test_refused_releases import misnamed

from inftda.cli.main import run

BUDGET = ("--epsilon", "1", "--delta", "1e-8")


@pytest.fixture
def ledger(place, capsys):
    assert run(["ledger", "create", "ledger.db", "census", "--rho", "1"]) == 0
    capsys.readouterr()
    return place / "ledger.db"


@pytest.mark.parametrize("command", [("list",), ("show",), ("charge", "--rho", "1", "--note", "x")])
def test_a_ledger_whose_schema_is_no_longer_text(ledger, refuse, command):
    """SQLite quotes the damaged schema in its message, which is then no UTF-8 either."""
    content = ledger.read_bytes()
    assert content.count(b"name TEXT NOT NULL") == 1
    ledger.write_bytes(content.replace(b"name TEXT NOT NULL", b"name TEXT NOT N\xd5LL"))
    verb, *rest = command
    name = () if verb == "list" else ("census",)
    refuse("ledger", verb, "ledger.db", *name, *rest, says="damaged")


def test_a_folder_that_is_called_like_a_pattern(place, capsys):
    release = ("release", "flows.csv", "--areas", "areas.csv", *BUDGET, "--quiet")
    assert run([*release, "--out", "out[1]"]) == 0
    assert run([*release, "--out", "out1"]) == 0
    (place / "out1" / "flows.parquet").write_bytes(b"")
    assert run(["verify", "out[1]"]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("command", [("verify", "release"), ("query", "release")])
def test_released_flows_with_a_column_name_that_is_no_text(made, refuse, command):
    table = pa.table({"origin": ["1"], "destination": ["2"], "flow": [50]})
    (made / "flows.parquet").write_bytes(misnamed(table))
    refuse(*command, says="damaged")


def feature(*rings):
    """A file with one polygon."""
    geometry = {"type": "Polygon", "coordinates": rings}
    return json.dumps({"type": "Feature", "properties": {"town": "1"}, "geometry": geometry})


@pytest.mark.parametrize("rings", [[], [[(0, 0), (1, 1), (0, 0)]]])
@pytest.mark.parametrize("kind", [("grid", "--sizes", "40000"), ("h3", "--resolutions", "2")])
def test_an_outline_that_nothing_lies_in(refuse, write, kind, rings):
    pytest.importorskip("pyogrio", reason="outlines need the extra geo")
    file = write("x.geojson", feature(*rings))
    refuse("areas", kind[0], file, *kind[1:], "--out", "cells.csv", says="enclose nothing")


def test_what_a_library_says_of_an_outline_does_not_reach_the_screen(refuse, write):
    """It warns of a corner that it cannot read, and leaves the whole outline out."""
    pytest.importorskip("pyogrio", reason="outlines need the extra geo")
    ring = [[0, 0], [1, 0], [1], [0, 1], [0, 0]]
    file = write("x.geojson", feature(ring))
    refuse("areas", "grid", file, "--sizes", "40000", "--out", "cells.csv", says="is damaged")
