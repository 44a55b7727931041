"""Input that once broke the rule: found by `test_fuzz.py`, or by looking for what it would find."""

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

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


@pytest.mark.parametrize("number", ["1e999999999", "1e-999999999", "1E+99999", "1e1_000_000_000"])
def test_a_number_with_a_billion_digits(refuse_release, number):
    """Written out it would fill the memory; the answer must come at once."""
    refuse_release(budget=("--rho", number), says="number such as")


def test_noise_that_no_sampler_draws_is_refused_before_it_is_charged(ledger, refuse_release):
    refuse_release(
        "--ledger", ledger, "--dataset", "census", budget=("--rho", "1e-100"), says="larger epsilon"
    )


def test_a_folder_that_is_called_like_a_pattern(place, capsys):
    release = ("release", "flows.csv", "--areas", "areas.csv", *BUDGET, "--quiet")
    assert run([*release, "--out", "out[1]"]) == 0
    assert run([*release, "--out", "out1"]) == 0
    (place / "out1" / "flows.parquet").write_bytes(b"")
    assert run(["verify", "out[1]"]) == 0, capsys.readouterr().err


def with_a_name_that_is_no_text(table):
    """A Parquet file one of whose column names is not UTF-8."""
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="none", store_schema=False)
    return sink.getvalue().replace(b"destination", b"destinatio\xee")


@pytest.mark.parametrize("command", [("verify", "release"), ("query", "release")])
def test_released_flows_with_a_column_name_that_is_no_text(made, refuse, command):
    table = pa.table({"origin": ["1"], "destination": ["2"], "flow": [50]})
    (made / "flows.parquet").write_bytes(with_a_name_that_is_no_text(table))
    refuse(*command, says="damaged")


def test_a_table_with_a_column_name_that_is_no_text(refuse_release, write):
    table = pa.table({"origin": ["1"], "destination": ["2"], "count": [50]})
    refuse_release(flows=write("x.parquet", with_a_name_that_is_no_text(table)), says="damaged")


def test_areas_with_a_column_name_that_is_no_text(refuse_release, write):
    table = pa.table({"destination": ["1", "2", "3", "4"]})
    refuse_release(areas=write("x.parquet", with_a_name_that_is_no_text(table)), says="areas table")


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
