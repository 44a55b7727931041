"""`inftda release`, and what readers do with it: verify, query, report, export, dossier."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import inftda
from edited_folders import seal

RELEASE = "release FLOWS --areas AREAS --epsilon 1 --delta 1e-8"


@pytest.mark.parametrize(
    ("options", "said"), [("", "by column 'count'"), ("--count none", "every row as one")]
)
def test_a_release_says_what_it_counted_and_what_is_protected(
    done, country, tmp_path, options, said
):
    shown = done(f"{RELEASE} {options} --out out")
    for word in (said, "exactly 1 trip", "epsilon", "Totals:"):
        assert word in shown
    flows = pq.read_table(tmp_path / "out/flows.parquet")
    counted = country.made.flows().num_rows if options else 5_000
    assert sum(flows["flow"].to_pylist()) == counted


def test_without_totals_across_those_not_to_use_are_named(done):
    for line in (f"{RELEASE} --out out", "plan --areas AREAS --epsilon 1 --delta 1e-8"):
        assert "errors add up in totals of origin (municipality)" in done(
            f"{line} --cross-tables 0"
        )


def test_every_place_says_the_same_of_a_level_that_is_mostly_noise(done, typed):
    line = "release FLOWS --areas AREAS --epsilon 0.15 --delta 1e-8 --not-private-seed 1 --out out"
    said = done(line)
    (words,) = re.findall(r"Usable: +municipality > municipality: (.*)", said)
    assert words.endswith("; smaller ones are mostly noise")
    opened = inftda.open_release("out")
    assert words == opened.uses[-1].describe()
    assert words in repr(opened)
    assert words in opened._repr_html_()
    assert words in typed("query out").err
    assert words in json.loads(done(f"{line} --force --json"))["uses"][-1]["words"]
    done("export out --to csv --out exported")
    exported = json.loads(Path("exported/datapackage.json").read_text())["resources"]
    assert words in [one.get("use") for one in exported]
    done("report out --out page.html --quiet")
    assert f"At the finest level {words}." in Path("page.html").read_text().replace(
        "\N{NO-BREAK SPACE}", " "
    )


@pytest.mark.slow
def test_a_release_does_not_wait_for_pandas(given, tmp_path):
    """Arrow imports it at every chance if it is installed, as long as the release itself takes."""
    pytest.importorskip("pandas")
    code = (
        "import sys; from inftda.cli.main import run; code = run(sys.argv[1:]); "
        "print(code, 'inftda.pipeline' in sys.modules, 'pandas' in sys.modules)"
    )
    words = [given.get(word, word) for word in f"{RELEASE} --quiet --out out".split()]
    command = [sys.executable, "-c", code, *words]
    done = subprocess.run(command, capture_output=True, check=True, text=True, cwd=tmp_path)
    assert done.stdout.split() == ["0", "True", "False"]


# --- Verify


def test_a_fresh_release_verifies_and_says_what_was_checked(done):
    said = done("verify RELEASE")
    for word in ("guarantee follows", "whole numbers above 0", "agree with all 15 measured tables"):
        assert said.count(word) == 1
    assert said.count("measurements") == 2
    for word in ("measured totals", "agree with all 5 measured tables"):
        assert done("verify TOTALS").count(word) == 1


# --- Query


TOTALS = "--origin-level province --destination-level all"


def test_query_sums_up_zones_of_releases_and_of_estimates(typed, done, country, tmp_path):
    codes = country.made.areas.codes(3).to_pylist()
    rows = [f"{code},z{number % 3}" for number, code in enumerate(codes)]
    (tmp_path / "zones.csv").write_text("\n".join(["municipality,zone", *rows]))
    asked = "--zones zones.csv --intervals --format json"
    released = json.loads(done(f"query MEASURED {asked}"))
    assert [row["origin"] for row in released] == ["z0"] * 3 + ["z1"] * 3 + ["z2"] * 3
    estimated = json.loads(done(f"query MEASURED --estimate ESTIMATE {asked}"))
    assert [row["low"] <= row["estimate"] <= row["high"] for row in estimated] == [True] * 9
    for number in ("flow", "estimate"):
        rows = released if number == "flow" else estimated
        assert sum(row[number] for row in rows) == 5_000
    refused = typed("query RELEASE --estimate ESTIMATE --zones zones.csv")
    assert (refused.code, "another release" in refused.err) == (2, True)


def test_query_says_what_is_not_listed(typed, copied):
    """A release whose listed flows of one region were lost: the total knows of them."""
    flows = copied("RELEASE") / "flows.parquet"
    table = pq.read_table(flows)
    is_one = pc.starts_with(table.column("origin").cast("string"), "1")
    assert 0 < pc.sum(is_one).as_py() < len(table)
    pq.write_table(table.filter(pc.invert(is_one)), flows)
    seal(flows.parent, n_flows=pq.read_metadata(flows).num_rows)
    said = typed(f"query release {TOTALS}")
    assert said.code == 0
    assert "in flows too small to be listed" in said.err


# --- Report, export, dossier


def test_a_report_says_one_line(typed, tmp_path):
    plain = typed("report RELEASE --out p.html")
    assert (plain.code, plain.err) == (0, "")
    assert re.fullmatch(r"Page:       p\.html \(0\.\d MB, .+\)\n", plain.out)
    assert "cross tables" in (tmp_path / "p.html").read_text()


def test_a_release_becomes_a_folder_and_its_files_are_listed(done, tmp_path):
    said = done("export RELEASE --to csv --out csv").splitlines()
    assert said == [f"Written:    csv/{path.name}" for path in sorted((tmp_path / "csv").iterdir())]
    words = ("--title", "Ways to work", "--licence", "CC0-1.0")
    done("export RELEASE --to omx --out omx --no-intervals --level region", *words)
    package = json.loads((tmp_path / "omx/datapackage.json").read_text())
    assert (package["title"], package["licenses"]) == ("Ways to work", [{"name": "CC0-1.0"}])


def test_the_files_of_a_dossier_are_listed(done, tmp_path):
    said = done("dossier RELEASE --out dossier --no-selftest --title Trips")
    assert said.startswith("Written:    dossier/registry.yaml")
    assert len(list((tmp_path / "dossier").iterdir())) == said.count("\n") == 3
    assert '    name: "Trips"\n' in (tmp_path / "dossier/registry.yaml").read_text()
