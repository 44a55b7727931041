"""What people do every day: one configuration for all, completion, Excel, rows without a place."""

import os
import subprocess
import sys
import tracemalloc
from datetime import UTC, datetime

import pytest

import inftda
from inftda.errors import InftdaError, IngestError, MissingExtraError
from inftda.reading import Columns
from inftda.tables import read_sheet

openpyxl = pytest.importorskip("openpyxl", reason="workbooks need openpyxl")

AREAS = {"region": ["N", "N", "S"], "town": ["001", "002", "003"]}
FLOWS = {
    "origin": ["001", "002", "003"],
    "destination": ["002", "003", "003"],
    "count": [30, 4, 50],
}
BUDGET = {"epsilon": 1, "delta": 1e-6}


def workbook(path, columns, *more):
    """A file of Excel with one sheet for each table."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for number, table in enumerate((columns, *more)):
        sheet = book.create_sheet(f"sheet {number}")
        if table:
            sheet.append(list(table))
        for row in zip(*table.values(), strict=True):
            sheet.append(row)
    book.save(path)
    return path


def csv(path, columns):
    rows = [list(columns), *zip(*columns.values(), strict=True)]
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    return path


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "ours.toml"
    areas = csv(tmp_path / "areas.csv", AREAS)
    flows = csv(tmp_path / "flows.csv", FLOWS)
    path.write_text(
        f"areas = '{areas}'\nepsilon = 1\ndelta = 1e-6\n"
        f"[release]\nflows = '{flows}'\nout = '{tmp_path / 'made'}'\n"
        f"[report]\nrelease = '{tmp_path / 'made'}'\nout = '{tmp_path / 'page.html'}'\nruns = 1\n"
    )
    return path


def test_one_configuration_serves_plan_release_and_report(cli, config, tmp_path):
    for command in ("plan", "release", "report"):
        done = cli(command, "--config", config)
        assert done.code == 0, done.err
    assert (tmp_path / "page.html").exists()
    assert inftda.open_release(tmp_path / "made").total == 84


@pytest.mark.slow  # six commands, with what they simulate
def test_the_same_configuration_serves_those_who_read_the_release(cli, config, tmp_path):
    estimated, exported = tmp_path / "estimated", tmp_path / "exported"
    lines = [
        "split = 'uniform'\nmeasurements = true\n",
        config.read_text(),
        f"estimate = '{estimated}'\n",  # an option of the last section, not one of its own
        f"[estimate]\nrelease = '{tmp_path / 'made'}'\nout = '{estimated}'\n",
        f"[export]\nsource = '{tmp_path / 'made'}'\nout = '{exported}'\nto = 'csv'\n",
        "level = 'town'\nintervals = false\n",
        f"[preview]\nstand-in = '{tmp_path / 'flows.csv'}'\nepsilon = [1, 2]\nruns = 1\n",
        f"[compare]\ntruth = '{tmp_path / 'flows.csv'}'\nmethods = ['round:5', 'inftda']\n",
        f"out = '{tmp_path / 'compared'}'\n",
    ]
    config.write_text("".join(lines))
    for command in ("release", "estimate", "report", "export", "preview", "compare"):
        done = cli(command, "--config", config)
        assert done.code == 0, (command, done.err)
    assert inftda.open_estimate(estimated).tree == inftda.open_release(tmp_path / "made").tree
    assert [path.name for path in exported.glob("flows-*.csv")] == ["flows-2-town.csv"]
    assert (tmp_path / "compared").is_dir()


def test_an_option_named_like_a_command_may_stand_among_the_shared_keys(cli, config, tmp_path):
    config.write_text(f"estimate = '{tmp_path / 'nothing'}'\n" + config.read_text())
    assert cli("release", "--config", config).code == 0
    done = cli("report", "--config", config)
    assert done.code == 2
    assert "nothing" in done.err


def test_flags_win_over_a_configuration_and_sections_over_what_is_shared(cli, config):
    assert "epsilon = 2" in cli("plan", "--config", config, "--epsilon", 2).out
    config.write_text(config.read_text() + "[plan]\nepsilon = 3\n")
    assert "epsilon = 3" in cli("plan", "--config", config).out


@pytest.mark.parametrize(
    ("line", "said"),
    [("epsilom = 1\n", "'epsilon'"), ("[report]\nrnus = 1\n", "'runs'")],
)
def test_a_key_that_no_command_knows_is_refused(cli, tmp_path, line, said):
    path = tmp_path / "wrong.toml"
    path.write_text(line)
    done = cli("report", tmp_path, "--config", path)
    assert done.code == 2
    assert "unknown key" in done.err
    assert said in done.err or "epsilom" in done.err


def test_a_section_that_is_none_is_refused(cli, tmp_path):
    path = tmp_path / "wrong.toml"
    path.write_text("report = 1\n")
    done = cli("report", tmp_path, "--config", path)
    assert done.code == 2
    assert "write [report] on a line before its options" in done.err


#: What the script does that is installed.
_AS_INFTDA = "import sys; sys.argv[0] = 'inftda'; from inftda.cli.main import main; main()"


@pytest.mark.parametrize(
    ("words", "offered"), [("re", ["release", "report"]), ("release --eps", ["--epsilon"])]
)
def test_the_shell_completes_commands_and_options(words, offered):
    typed = f"inftda {words}"
    variables = {"_INFTDA_COMPLETE": "bash_complete", "COMP_WORDS": typed}
    done = subprocess.run(
        [sys.executable, "-c", _AS_INFTDA],
        env={**os.environ, **variables, "COMP_CWORD": str(len(typed.split()) - 1)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert [line.partition(",")[2] for line in done.stdout.split()] == offered


def test_a_workbook_is_read_like_the_same_table_as_csv(tmp_path):
    areas = workbook(tmp_path / "areas.xlsx", AREAS)
    flows = workbook(tmp_path / "flows.xlsx", {**FLOWS, "count": [30.0, 4, "50"]}, {})
    made = [
        inftda.release(table, places, **BUDGET, source=inftda.SeededSource(1)).flows()
        for table, places in ((flows, areas), (FLOWS, AREAS))
    ]
    assert made[0] == made[1]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({**FLOWS, "count": [1, 2.5, 3]}, "1 row of 'flows.xlsx' has a fractional count"),
        ({**FLOWS, "count": [1, None, 3]}, "no count"),
        ({**FLOWS, "origin": ["001", datetime(2020, 1, 1), "002"]}, "cells are of several kinds"),  # noqa: DTZ001 - as Excel
        ({**FLOWS, "origin": [1, 2, 3]}, "lost? their leading zeros|lose their leading zeros"),
        ({"a": ["001"], "b": ["002"]}, "no column 'origin' or 'destination'"),
        ({"origin": ["001"], None: ["002"]}, "a column without a name"),
        ({}, "no sheet with anything in it"),
    ],
)
def test_a_sheet_that_cannot_be_counted_is_refused(tmp_path, columns, said):
    flows = workbook(tmp_path / "flows.xlsx", columns)
    with pytest.raises(IngestError, match=said) as caught:
        inftda.release(flows, AREAS, **BUDGET)
    assert caught.value.__context__ is None


def test_a_workbook_with_several_tables_or_none_at_all_is_refused(tmp_path):
    with pytest.raises(IngestError, match="has 2 sheets; keep one table"):
        inftda.release(workbook(tmp_path / "two.xlsx", FLOWS, FLOWS), AREAS, **BUDGET)
    damaged = tmp_path / "damaged.xlsx"
    damaged.write_bytes(workbook(tmp_path / "whole.xlsx", FLOWS).read_bytes()[:500])
    with pytest.raises(IngestError, match="damaged"):
        inftda.release(damaged, AREAS, **BUDGET)
    moment = datetime.now(UTC).replace(tzinfo=None)
    areas = workbook(tmp_path / "areas.xlsx", {"town": [moment]})
    with pytest.raises(InftdaError, match="text or whole numbers only"):
        inftda.plan(areas, **BUDGET)


def test_a_coloured_row_does_not_make_the_others_as_long(tmp_path):
    """Three hundred rows of 16,384 cells would take 40 MB."""
    book = openpyxl.Workbook()
    book.active.append(["town", "n"])
    for number in range(300):
        book.active.append([f"{number:03d}", number])
    book.active.cell(1, 16_384).font = openpyxl.styles.Font(bold=True)
    book.save(tmp_path / "wide.xlsx")
    tracemalloc.start()
    try:
        names, columns = read_sheet(tmp_path / "wide.xlsx", what="it", error=InftdaError)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (names, len(columns[0])) == (["town", "n"], 300)
    assert most < 20e6


def test_a_cell_beyond_the_names_is_refused(tmp_path):
    book = openpyxl.Workbook()
    for row in (["origin", "destination", " "], ["001", "002"], ["001", None, None, "003"]):
        book.active.append(row)
    book.save(tmp_path / "flows.xlsx")
    with pytest.raises(IngestError, match="a column without a name"):
        inftda.release(tmp_path / "flows.xlsx", AREAS, **BUDGET)


def test_without_the_library_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    (tmp_path / "flows.xlsx").write_bytes(b"")
    with pytest.raises(MissingExtraError, match=r"inftda\[xlsx\]"):
        inftda.release(tmp_path / "flows.xlsx", AREAS, **BUDGET)


ABROAD = {**FLOWS, "origin": ["001", "002", "abroad"]}


def test_one_axis_may_have_rows_without_a_place(cli, tmp_path):
    areas, flows = csv(tmp_path / "areas.csv", AREAS), csv(tmp_path / "flows.csv", ABROAD)
    base = ("release", flows, "--areas", areas, "--epsilon", 1, "--delta", 1e-6)
    out = tmp_path / "out"
    done = cli(*base, "--unplaceable", "origin=outside", "--out", out)
    assert done.code == 0, done.err
    assert "are counted in the area 'outside' of origin" in done.out
    made = inftda.open_release(out)
    finest = {axis.name: axis.hierarchy.codes(2).to_pylist() for axis in made.tree.axes}
    assert "outside" in finest["origin"]
    assert "outside" not in finest["destination"]
    assert cli("verify", out).code == 0
    done = cli("evaluate", out, "--truth", flows, "--out", tmp_path / "measures")
    assert done.code == 0, "as the release said: " + done.err


@pytest.mark.parametrize(
    ("unplaceable", "said"),
    [
        ({"destination": "outside"}, "cannot be placed"),
        ({"origin": "drop"}, "is error or outside, got 'drop'"),
        ({"home": "outside"}, "names the axis 'home', but the axes are origin, destination"),
        ("somewhere", "`unplaceable=` must be one of error, outside, drop, or AXIS=outside"),
    ],
)
def test_other_rows_without_a_place_are_still_refused(unplaceable, said):
    with pytest.raises(InftdaError, match=said):
        inftda.release(ABROAD, AREAS, **BUDGET, columns=Columns(unplaceable=unplaceable))


def test_codes_that_have_a_place_outside_are_not_blamed_for_others():
    flows = {**ABROAD, "destination": ["002", "elsewhere", "003"]}
    with pytest.raises(IngestError, match="unknown destination 'elsewhere'") as caught:
        inftda.release(flows, AREAS, **BUDGET, columns=Columns(unplaceable={"origin": "outside"}))
    assert "abroad" not in str(caught.value)


def test_a_release_without_such_an_area_is_evaluated_without():
    """Also if some area happens to be called so."""
    areas = {"town": ["001", "outside"]}
    flows = {"origin": ["001"] * 3, "destination": ["outside"] * 3}
    made = inftda.release(flows, areas, **BUDGET)
    with pytest.raises(IngestError, match="cannot be placed"):
        inftda.evaluate(made, {"origin": ["001"] * 3, "destination": ["x"] * 3})
