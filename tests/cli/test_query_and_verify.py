"""`inftda query` and `inftda verify` on a real release."""

import json
import os
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inftda.cli.output import as_text
from inftda.privacy.plan import make_plan
from inftda.privacy.unit import Unit
from inftda.publication.release import open_release


@pytest.mark.slow
def test_query_sums_to_the_total_at_every_cross_of_levels(released, cli):
    for origin in ("all", "region", "province", "municipality"):
        for destination in ("all", "region", "province", "municipality"):
            done = cli(
                "query", released, "--origin-level", origin, "--destination-level", destination,
                "--format", "json",
            )  # fmt: skip
            assert done.code == 0
            assert sum(row["flow"] for row in json.loads(done.out)) == 5_000


def test_query_formats_agree(released, cli, tmp_path):
    ask = ("query", released, "--origin-level", "region", "--destination-level", "region")
    rows = json.loads(cli(*ask, "--format", "json").out)
    csv = cli(*ask, "--format", "csv").out.splitlines()
    assert csv[0] == '"origin","destination","flow"'
    assert len(csv) == len(rows) + 1
    assert cli(*ask, "--format", "parquet").code == 2
    file = tmp_path / "flows.parquet"
    assert cli(*ask, "--format", "parquet", "--out", file).code == 0
    assert pq.read_table(file).to_pylist() == rows
    text = cli(*ask).out
    assert text.splitlines()[0].split() == ["origin", "destination", "flow"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


ENDS = {"csv": b'"origin"', "json": b"[", "parquet": b"PAR1"}


@pytest.mark.parametrize("ending", ENDS)
def test_the_ending_says_how_a_file_is_written(released, cli, tmp_path, ending):
    for name in (f"flows.{ending}", f"FLOWS-2.{ending.upper()}"):
        assert cli("query", released, "--out", tmp_path / name).code == 0
        assert (tmp_path / name).read_bytes().startswith(ENDS[ending])
    other = tmp_path / "flows.txt"
    assert cli("query", released, "--format", ending, "--out", other).code == 0
    assert other.read_bytes() == (tmp_path / f"flows.{ending}").read_bytes()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--out", "flows.csv", "--format", "json"), "contradicts the ending of 'flows.csv'"),
        (("--out", "flows.csv", "--format", "table"), "contradicts"),
        (("--out", "flows.parquet", "--format", "csv"), "contradicts"),
        (("--out", "flows.txt"), "give one of .csv, .json, .parquet, or give --format"),
        (("--out", "flows"), "does not say how to write it"),
        (("--out", "flows.csv.gz"), "does not say how to write it"),
        (("--top", "-1"), "--top"),
        (("--top", "0"), "--top"),
    ],
)
def test_what_would_be_written_otherwise_than_it_seems_is_refused(
    released, cli, here, options, says
):
    done = cli("query", released, *options)
    assert done.code == 2
    assert says in done.err
    assert done.err.count("\n") == 1
    assert [path.name for path in here.iterdir()] == ["release"]


def snapshot(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["flows.parquet", "manifest.json", "areas.csv", "new.csv"])
@pytest.mark.parametrize("force", [(), ("--force",)])
def test_a_query_does_not_write_into_a_release(released, cli, name, force):
    before = snapshot(released)
    done = cli("query", released, "--out", released / name, *force)
    assert done.code == 2
    assert "lies in the release folder" in done.err
    assert snapshot(released) == before


@pytest.mark.parametrize("ending", ENDS)
def test_a_query_that_cannot_be_written_leaves_the_older_file(
    released, cli, tmp_path, monkeypatch, ending
):
    (out := tmp_path / f"flows.{ending}").write_text("old")

    def fail(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    done = cli("query", released, "--out", out, "--force")
    assert done.code == 1
    assert "No space left" in done.err
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == [out.name, "release"]


def test_query_keeps_to_areas_and_shows_the_largest(released, cli):
    rows = json.loads(cli("query", released, "--from", "region:1", "--format", "json").out)
    whole = json.loads(
        cli("query", released, "--origin-level", "region", "--destination-level", "all",
            "--format", "json").out
    )  # fmt: skip
    assert sum(row["flow"] for row in rows) == next(r["flow"] for r in whole if r["origin"] == "1")
    top = json.loads(cli("query", released, "--top", 3, "--format", "json").out)
    flows = [row["flow"] for row in top]
    assert len(flows) == 3
    assert flows == sorted(flows, reverse=True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--from", "Atlantis"), "Atlantis"),
        (("--origin-level", "galaxy"), "galaxy"),
        (("--level", "mode=all"), "mode"),
        (("--format", "yaml"), "yaml"),
        (("--level", "origin=region", "--origin-level", "province"), "given twice"),
        (("--level", "destination=all", "--destination-level", "all"), "given twice"),
        (("--where", "origin=region:1", "--from", "region:2"), "given twice"),
        (("--where", "destination=region:1", "--to", "region:1"), "given twice"),
    ],
)
def test_wrong_queries_are_told_apart(released, cli, arguments, said):
    done = cli("query", released, *arguments)
    assert done.code == 2
    assert said in done.err


def test_a_code_cannot_tell_a_terminal_what_to_do():
    flows = pa.table({"origin": ["a\x1b[2J", "b\n"], "flow": [1, 2]})
    shown = as_text(flows)
    assert shown.count("\n") == 3
    assert "\x1b" not in shown
    assert "a\\x1b[2J" in shown
    assert "b\\x0a" in shown


def test_a_fresh_release_verifies(released, cli):
    done = cli("verify", released)
    assert done.code == 0
    assert "guarantee follows" in done.out
    assert "flows are integers above 0" in done.out
    assert "all files are to the bit what a release" in done.out


def edit_manifest(folder, change):
    path = folder / "manifest.json"
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data, indent=2) + "\n")


def leaves_only(tree):
    plan = make_plan(tree, Unit(), rho=Fraction(1, 100))
    return replace(plan, levels=plan.levels[-1:])


def test_a_guarantee_for_less_than_the_mechanism_measures_does_not_verify(released, cli):
    """True of the noise that is stated, but the mechanism draws more."""
    guarantee = leaves_only(open_release(released).tree).to_dict()
    edit_manifest(released, lambda data: data.update(guarantee=guarantee))
    done = cli("verify", released)
    assert done.code == 2
    assert "the guarantee does not hold" in done.err


def test_a_folder_that_is_no_release_is_told(cli, tmp_path):
    assert "no release folder" in cli("verify", tmp_path / "nothing").err
    assert "not a release" in cli("verify", tmp_path).err
