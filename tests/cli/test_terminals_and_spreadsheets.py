"""Names come from files: no terminal obeys them, and no spreadsheet runs them."""

import csv
import io
import json
import shutil
import sqlite3
import subprocess
import sys
from importlib.resources import files

import pyarrow as pa
import pytest

import inftda
from inftda.cli.main import run
from inftda.cli.output import as_json
from inftda.util.screen import metered, printable
from inftda.util.tabular import FORMULA, PLAIN_NUMBER, disarmed, disarmed_table

ESCAPE = "\x1b[2J\x07owned"
CONTROLS = (ESCAPE, "a\x9b2J", "b\x7f", "\N{RIGHT-TO-LEFT OVERRIDE}c", "d\N{LINE SEPARATOR}")
FORMULAS = ("=1+1", "+SUM(A1)", "-2+3", "@SUM(A1)", "\t=1", " =1", "x;=1+1", 'y",=1', "\uff1d1")
#: After something that a spreadsheet leaves out, and nobody sees.
UNSEEN = ("\ufeff=1", "\x00=1", "\u200b@a", "\x7f-a", "x;\u202e=1")
PLAIN = ("001", "-12", "+39", "1.5", "-1,5", "Aix-en-Provence", "a=b", "o'clock", "x@y", "")


def is_harmless(text):
    return all(sign.isprintable() or sign == "\n" for sign in text)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A release whose levels and codes try to take over."""
    folder = tmp_path_factory.mktemp("hostile")
    codes = [*CONTROLS, *FORMULAS]
    rows = [[f"{ESCAPE}region {i % 2}", code] for i, code in enumerate(codes)]
    tables = {
        "areas.csv": [[f"region{ESCAPE}", f"=town{ESCAPE}"], *rows],
        "flows.csv": [["origin", "destination", "count"], *([c, c, 500] for c in codes)],
    }
    for name, table in tables.items():
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(table)
    given = [str(folder / "flows.csv"), "--areas", str(folder / "areas.csv")]
    assert run(["release", *given, "--rho", "1", "--quiet", "--out", str(folder / "out")]) == 0
    return folder


@pytest.fixture
def hostile(place, monkeypatch):
    monkeypatch.chdir(place)
    return place


COMMANDS = (
    "release flows.csv --areas areas.csv --epsilon 5 --delta 1e-6 --out again",
    f"release flows.csv --areas areas.csv --rho 1 --out x{ESCAPE}",
    "plan --areas areas.csv --epsilon 5 --delta 1e-6",
    "query out",
    "query out --format json",
    f"query out --from {ESCAPE}nowhere",
    f"query out --origin-level no{ESCAPE}",
    f"query out --level {ESCAPE}=all",
    f"query --no{ESCAPE}",
    "verify out",
    f"verify no{ESCAPE}",
    "evaluate out --truth flows.csv --out measures",
    "evaluate out --truth flows.csv --out measures --json",
    "report out --out page.html",
    f"ledger show no{ESCAPE} x",
    f"no{ESCAPE}",
)


@pytest.mark.usefixtures("hostile")
@pytest.mark.parametrize("line", COMMANDS, ids=printable)
def test_nothing_that_a_terminal_obeys_is_printed(cli, line):
    done = cli(*line.split())
    assert done.out + done.err
    assert is_harmless(done.out)
    assert is_harmless(done.err)


@pytest.mark.usefixtures("hostile")
def test_csv_goes_to_a_program_as_it_is_and_to_a_terminal_without_harm(cli, capsys, monkeypatch):
    ask = ("query", "out", "--format", "csv", "--keep-formulas")
    assert ESCAPE in cli(*ask).out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert run([*ask]) == 0
    shown = capsys.readouterr().out
    assert is_harmless(shown)
    assert "\\x1b" in shown


@pytest.mark.parametrize("text", CONTROLS)
def test_json_holds_the_same_and_is_harmless(text):
    for data in ({"name": text}, [text, "Forl\u00ec"]):
        assert is_harmless(as_json(data))
        assert json.loads(as_json(data)) == data
    assert "Forl\u00ec" in as_json(["Forl\u00ec"])


def test_a_name_with_a_line_break_adds_no_line_to_what_was_checked(cli, tmp_path):
    axis = "x\nok  everything is fine"
    table = {axis: ["a", "b"] * 50}
    inftda.release(table, axis={axis: {"c": ["a", "b"]}}, rho=1, out=tmp_path / "out")
    done = cli("verify", tmp_path / "out")
    assert done.code == 0, done.err
    assert not any(line.startswith("ok  everything") for line in done.out.splitlines())


def test_progress_does_not_obey_names_either(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    with metered("draws") as progress:
        progress(f"{ESCAPE}level", 1, 2)
        progress("level", 2, 2)
    assert "owned" in terminal.getvalue()
    assert ESCAPE not in terminal.getvalue()
    lines = terminal.getvalue().split("\r")
    assert "level: 2 of 2 draws" in map(str.rstrip, lines)
    assert not lines[-2].strip(), "the line is gone"


def test_a_ledger_that_somebody_else_wrote_is_harmless(cli, tmp_path):
    path = tmp_path / "ledger.db"
    assert cli("ledger", "create", path, "census", "--rho", 1).code == 0
    with sqlite3.connect(path) as database:
        database.execute(
            "INSERT INTO entry (dataset, charged, rho, mechanism, note, period) "
            "VALUES ('census', ?, '1/10', ?, ?, ?)",
            [ESCAPE, ESCAPE, f"=1{ESCAPE}", ESCAPE],
        )
    database.close()
    for command in (("show", path, "census"), ("list", path), ("show", path, "census", "--json")):
        done = cli("ledger", *command)
        assert done.code == 0, done.err
        assert is_harmless(done.out)


# --- Spreadsheets ---


@pytest.mark.parametrize("text", [*FORMULAS, *UNSEEN])
def test_a_formula_becomes_text_and_nothing_is_lost(text):
    safe = disarmed(text)
    assert safe.replace("'", "", 1) == text
    assert safe != text
    assert disarmed(safe).count("'") == 1, "once is enough"


@pytest.mark.parametrize("text", PLAIN)
def test_what_is_no_formula_stays_as_it_is(text):
    assert disarmed(text) == text


def test_numbers_of_a_table_stay_numbers():
    table = pa.table({"=a": pa.array(["=1", "b", None]).dictionary_encode(), "n": [-1, 2, -3]})
    safe = disarmed_table(table)
    assert safe.column_names == ["'=a", "n"]
    assert safe.column(0).to_pylist() == ["'=1", "b", None]
    assert safe.column("n").to_pylist() == [-1, 2, -3]
    long_texts = pa.table({"a": pa.array(["=1"], pa.large_string())})
    assert disarmed_table(long_texts).column("a").to_pylist() == ["'=1"]


def cells(text):
    return [cell for row in csv.reader(io.StringIO(text)) for cell in row]


def is_armed(cell):
    return cell.lstrip()[:1] in {*"=+-@\uff1d"} and disarmed(cell) != cell


@pytest.mark.usefixtures("hostile")
def test_tables_for_spreadsheets_have_no_formulas_unless_they_are_wanted(cli, tmp_path):
    ask = ("query", "out", "--format", "csv")
    assert not any(map(is_armed, cells(cli(*ask).out)))
    assert any(map(is_armed, cells(cli(*ask, "--keep-formulas").out)))
    assert cli("query", "out", "--out", tmp_path / "flows.csv").code == 0
    assert "'=1+1" in cells((tmp_path / "flows.csv").read_text())
    assert cli("evaluate", "out", "--truth", "flows.csv", "--out", tmp_path / "measures").code == 0
    for file in (tmp_path / "measures").glob("*.csv"):
        assert not any(map(is_armed, cells(file.read_text())))


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
def test_pages_disarm_what_python_disarms():
    """A page brings the rule of Python; this compares what both make of it."""
    tools = files("inftda.pages").joinpath("assets", "tools.mjs")
    given = [*FORMULAS, *UNSEEN[:1], *UNSEEN[2:], *PLAIN, *CONTROLS]  # csv reads no NUL
    rule = {"formula": FORMULA.pattern, "number": PLAIN_NUMBER.pattern}
    code = (
        f"import {{ csvWriter }} from 'file://{tools}';\n"
        f"const [given, rule] = {json.dumps([given, rule])};\n"
        "const written = (by) => given.map((text) => csvWriter(by)([text]).slice(0, -1));\n"
        "console.log(JSON.stringify([written(rule), csvWriter(rule)([-5]), written(null)]));"
    )
    command = ["node", "--input-type=module", "-e", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    safe, number, kept = json.loads(done.stdout)

    def plain(cells_):
        return [next(csv.reader(io.StringIO(cell, newline="")), [""])[0] for cell in cells_]

    assert plain(safe) == [disarmed(text) for text in given]
    assert number == "-5\n"
    assert plain(kept) == given
