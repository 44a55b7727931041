"""Tools side by side: the measures on a table known by heart, processes, whole runs."""

import json
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import inftda
from inftda_lab.arena import __main__ as arena
from inftda_lab.arena import tools
from inftda_lab.arena.measures import measure
from inftda_lab.arena.process import CommandError, run
from inftda_lab.arena.tools import TOOLS
from inftda_lab.tables import Table, make_synthetic, write_table

AREAS = inftda.Hierarchy.read({"region": ["N", "N", "S"], "town": ["a", "b", "c"]})
TRUE = Table("known", AREAS, np.array([0, 1, 2]), np.array([1, 1, 2]), np.array([20, 5, 30]))


def write(folder, flows, name="finest"):
    origin, destination, flow = zip(*flows, strict=True)
    columns = {"origin": origin, "destination": destination, "flow": flow}
    pq.write_table(pa.table(columns), folder / f"{name}.parquet")


def test_measures_of_a_known_table(tmp_path):
    write(tmp_path, [("a", "b", 17), ("a", "a", 4), ("c", "c", 31)])
    assert measure(TRUE, tmp_path) == {
        "levels": [
            {"common": 2 * (21 + 30) / (55 + 52), "largest": 4, "mean": (4 + 1) / 2},
            {"common": 2 * (17 + 30) / (55 + 52), "largest": 5, "mean": (3 + 5 + 1) / 3},
        ],
        "totals": [(1 + 5 + 1) / 3, (4 + 8 + 1) / 3],
        "false": 1 / 3,
        "lost": 0,
        "negative": 0,
        "gap": 0,
    }


def test_published_sums_are_measured_and_compared_with_finer_ones(tmp_path):
    write(tmp_path, [("a", "b", 0.4), ("b", "b", -2.0), ("c", "c", 30.0)])
    write(tmp_path, [("N", "N", 26.0), ("S", "S", 29.0)], "region__region")
    write(tmp_path, [("a", "all", 21.0), ("b", "all", 5.0), ("c", "all", 30.0)], "town__all")
    found = measure(TRUE, tmp_path)
    assert found["levels"][0] == {"common": 2 * 54 / 110, "largest": 1, "mean": 1}
    assert found["totals"] == pytest.approx([1 / 3, (25 + 1.6) / 3])
    assert found["lost"] == 1 / 2  # of the flows of 20 and 30, the first is not shown
    assert found["false"] == 0
    assert found["negative"] == 1
    assert found["gap"] == pytest.approx(26 + 1.6)  # the region has 26, its towns -1.6


def test_a_process_is_stopped_at_its_limit_with_all_that_it_started(tmp_path):
    start = "p = subprocess.Popen([sys.executable, '-c', 'while True: pass'], process_group=0)"
    command = f"import subprocess, sys; {start}; print(p.pid, flush=True); p.wait()"
    with pytest.raises(CommandError, match="stopped after 1 CPU seconds"):
        run([sys.executable, "-c", command], 1, tmp_path / "log.txt")
    child = Path(f"/proc/{(tmp_path / 'log.txt').read_text().strip()}/stat")
    deadline = time.monotonic() + 20
    while child.exists() and ") Z " not in child.read_text() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not child.exists() or ") Z " in child.read_text()


def test_cost_counts_the_processes_that_a_command_starts(tmp_path):
    work = "x = bytearray(50_000_000); [hash(n) for n in range(4_000_000)]"
    command = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {work!r}])"
    alone = run([sys.executable, "-c", "pass"], 60, tmp_path / "log.txt")
    cost = run([sys.executable, "-c", command], 60, tmp_path / "log.txt")
    assert cost.cpu > alone.cpu + 0.1
    assert cost.memory >= 50


def test_a_failed_command_says_its_last_line(tmp_path):
    with pytest.raises(CommandError, match="failed: no"):
        run([sys.executable, "-c", "raise SystemExit('no')"], 60, tmp_path / "log.txt")


def test_the_budget_of_a_row_twice_is_that_of_a_substitution():
    found = arena.converted(make_synthetic("binary_sparse").areas)
    assert sum(1 / sigma**2 for sigma in found["sigmas"]) == pytest.approx(
        2 * found["rho of a row"]
    )
    # Two steps of (e, d) are one of (2 e, d (1 + exp(e))).
    e, d = found["epsilon of a row"], found["delta of a row"]
    assert (2 * e, d * (1 + np.exp(e))) == pytest.approx((1, 1e-8))


def compare(folder, names, *options):
    write_table(make_synthetic("binary_sparse"), folder / "town")
    given = ["--table", folder / "town", "--tools", ",".join(names), "--out", folder / "out"]
    arena.main([*map(str, given), "--runs", "1", *options])
    made = folder / "out" / "town"
    return {name: json.loads((made / f"{name}.json").read_text()) for name in names}


@pytest.mark.slow
def test_our_tools_and_mechanisms_make_a_page(tmp_path):
    names = [name for name, tool in TOOLS.items() if tool.package is None]
    found = compare(tmp_path, names)
    without = {name for name, result in found.items() if not result["runs"]}
    assert without == {"inftda-estimate-places"}
    for result in found.values():
        for run_ in result["runs"]:
            assert 0 < run_["levels"][-1]["common"] < 1
            assert run_["cpu"] > 0.1
    assert found["vanilla-gauss"]["runs"][0]["negative"] > 0
    assert found["inftda-paper"]["runs"][0]["levels"][0]["largest"] < 200
    page = (tmp_path / "out" / "compared.md").read_text()
    assert "the table has no centroids" in page
    assert all(TOOLS[name].label in page for name in names)
    assert (tmp_path / "out" / "compared.svg").exists()


@pytest.mark.slow
def test_a_rival_runs_in_its_own_environment(tmp_path):
    """The one that installs fastest: the package of the paper's authors."""
    environments = ("--environments", str(tmp_path / "environments"))
    [(run_,)] = [r["runs"] for r in compare(tmp_path, ["inf-tda"], *environments).values()]
    assert run_["levels"][0]["largest"] < 200
    assert run_["negative"] == 0
    before = (tmp_path / "out" / "town" / "inf-tda.json").stat().st_mtime_ns
    compare(tmp_path, ["inf-tda"], *environments)  # what is there is not made again
    assert (tmp_path / "out" / "town" / "inf-tda.json").stat().st_mtime_ns == before


def test_a_tool_that_cannot_be_installed_is_listed_with_the_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(tools, "RIVALS", tmp_path)
    (tmp_path / "inf-tda.txt").write_text("inf-tda==0.1\n./no/such/package\n")
    found = compare(tmp_path, ["inf-tda"], "--environments", str(tmp_path / "environments"))
    assert found["inf-tda"]["runs"] == []
    assert "cannot be installed: " in found["inf-tda"]["failed"]
    assert "cannot be installed" in (tmp_path / "out" / "compared.md").read_text()


def test_an_unknown_tool_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        compare(tmp_path, ["mbii"])
    assert stopped.value.code == 2
    assert "no such tool: mbii" in capsys.readouterr().err
