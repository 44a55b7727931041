"""`inftda evaluate` as it is typed."""

import json
import shutil
import stat

import pytest

from inftda.cli.main import run

AREAS = "region,town\nN,001\nN,002\nS,003\n"
FLOWS = "from,to,n\n001,002,700\n001,003,80\n003,003,400\n"
COLUMNS = ["--origin", "from", "--destination", "to", "--count", "n"]


def release(folder, *options):
    given = [str(folder / "flows.csv"), "--areas", str(folder / "areas.csv"), *COLUMNS]
    budget = ["--epsilon", "1", "--delta", "1e-6"]
    out = ["--out", str(folder / "release"), "--quiet"]
    assert run(["release", *given, *budget, *out, *options]) == 0


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a truth and a release of it, made once."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "areas.csv").write_text(AREAS)
    (folder / "flows.csv").write_text(FLOWS)
    release(folder)
    return folder


@pytest.fixture
def work(made, tmp_path, monkeypatch):
    """A copy of it, where one is."""
    monkeypatch.chdir(tmp_path)
    return shutil.copytree(made, tmp_path, dirs_exist_ok=True)


def evaluate(*arguments):
    return run(["evaluate", "release", "--truth", "flows.csv", *COLUMNS, *arguments])


def test_measures_are_written_and_shown_as_confidential(work, capsys):
    assert evaluate("--out", "measures") == 0
    shown = capsys.readouterr().out
    assert shown.startswith("CONFIDENTIAL")
    assert "region > region" in shown
    assert "origin region" in shown  # a total across the tree
    names = {path.name for path in (work / "measures").iterdir()}
    assert names == {
        "CONFIDENTIAL-evaluation.json",
        "CONFIDENTIAL-levels.csv",
        "CONFIDENTIAL-levels.parquet",
        "CONFIDENTIAL-sizes.csv",
        "CONFIDENTIAL-sizes.parquet",
        "CONFIDENTIAL-totals.csv",
        "CONFIDENTIAL-totals.parquet",
    }
    summary = json.loads((work / "measures" / "CONFIDENTIAL-evaluation.json").read_text())
    assert summary["levels"][0]["total_true"] == 1180
    assert summary["levels"][0]["max_abs_error"] == 0
    assert summary["release"]["epsilon"] == 1


@pytest.mark.usefixtures("work")
def test_json_goes_to_standard_output_alone(capsys):
    assert evaluate("--out", "measures", "--json") == 0
    output = capsys.readouterr()
    assert json.loads(output.out)["confidential"] is True
    assert output.err == ""


def test_a_column_that_looks_like_counts_must_be_named(work, capsys):
    arguments = ["evaluate", "release", "--truth", "flows.csv", "--out", "measures", *COLUMNS[:4]]
    assert run(arguments) == 2
    assert "column 'n' of 'flows.csv' may hold counts" in capsys.readouterr().err
    assert not (work / "measures").exists()
    assert run([*arguments, "--count", "n"]) == 0
    assert "trips by column 'n'" in capsys.readouterr().out


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_text_in_another_encoding_is_released_and_compared(work, encoding, capsys):
    (work / "areas.csv").write_text("town\nForlì\nRimini\n", encoding="utf-8")
    text = "origin,destination,count\nForlì,Rimini,700\n"
    (work / "old.csv").write_text(text, encoding=encoding)
    release = ["release", "old.csv", "--areas", "areas.csv", "--epsilon", "1", "--delta", "1e-6"]
    assert run([*release, "--out", "new"]) == 2
    assert "give its encoding" in capsys.readouterr().err
    assert run([*release, "--out", "new", "--encoding", encoding]) == 0
    evaluate = ["evaluate", "new", "--truth", "old.csv", "--out", "measures", "--json"]
    assert run([*evaluate, "--encoding", encoding]) == 0


def test_another_table_is_refused_as_truth_without_its_total(work, capsys):
    (work / "flows.csv").write_text(FLOWS.replace("700", "70123"))
    assert evaluate("--out", "measures") == 2
    said = capsys.readouterr().err
    assert "total of this table differs" in said
    assert "70" not in said
    assert not (work / "measures").exists()


def test_a_page_is_written_on_demand(work):
    assert evaluate("--out", "measures", "--html", "--quiet") == 0
    page = work / "measures" / "CONFIDENTIAL-evaluation.html"
    assert "CONFIDENTIAL" in page.read_text()
    assert stat.S_IMODE(page.stat().st_mode) == 0o600


@pytest.fixture(scope="module")
def estimated(made, tmp_path_factory):
    """A release with measurements and an estimate of it, made once."""
    folder = tmp_path_factory.mktemp("estimated")
    shutil.copytree(made, folder, dirs_exist_ok=True)
    release(folder, "--measurements", "--force")
    out = ["--out", str(folder / "estimate"), "--quiet"]
    assert run(["estimate", str(folder / "release"), *out]) == 0
    return folder


@pytest.fixture
def measured(estimated, tmp_path, monkeypatch):
    """A copy of it, where one is."""
    monkeypatch.chdir(tmp_path)
    return shutil.copytree(estimated, tmp_path, dirs_exist_ok=True)


def test_with_measurements_intervals_are_checked_as_well(measured, capsys):
    assert evaluate("--out", "measures", "--html") == 0
    shown = capsys.readouterr().out
    assert "intervals (95 %)" in shown
    assert "fewer than 1,000" in shown
    names = {path.name for path in (measured / "measures").iterdir()}
    assert {"CONFIDENTIAL-intervals.csv", "CONFIDENTIAL-intervals.parquet"} < names
    assert not any("estimate" in name for name in names)
    assert "Numbers in their interval" in (
        measured / "measures" / "CONFIDENTIAL-evaluation.html"
    ).read_text(encoding="utf-8")


def test_an_estimate_stands_beside_the_release(measured, capsys):
    assert evaluate("--out", "measures", "--estimate", "estimate") == 0
    shown = capsys.readouterr().out
    assert "The estimate that was made from it:" in shown
    assert shown.count("common part") == 2
    names = {path.name for path in (measured / "measures").iterdir()}
    for table in ("levels", "sizes", "totals", "intervals"):
        assert f"CONFIDENTIAL-estimate-{table}.csv" in names
    summary = json.loads((measured / "measures" / "CONFIDENTIAL-evaluation.json").read_text())
    assert summary["estimate"]["levels"][-1]["total_released"] == 1180
    assert summary["estimate"]["confidential"] is True


@pytest.mark.parametrize("out", ["release/x", "estimate", "into"])
def test_measures_do_not_get_into_what_is_for_publication(measured, out, capsys):
    (measured / "into").symlink_to("estimate")
    before = sorted((measured / "estimate").iterdir())
    assert evaluate("--out", out) == 2
    assert "is for publication" in capsys.readouterr().err
    assert sorted((measured / "estimate").iterdir()) == before


def test_an_estimate_of_another_release_is_an_error(measured, capsys):
    release(measured, "--measurements", "--force")
    capsys.readouterr()
    assert evaluate("--out", "measures", "--estimate", "estimate") == 2
    assert "made from another release" in capsys.readouterr().err
    assert not (measured / "measures").exists()
