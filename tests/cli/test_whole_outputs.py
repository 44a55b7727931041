"""What every command that writes guarantees about its output."""

import errno
import json
import os
import shlex
import stat

import pytest

#: How the output is called, and what is typed before `--out`.
WRITERS = {
    "release": ("made", "release FLOWS --areas AREAS --epsilon 1 --delta 1e-8"),
    "estimate": ("estimate", "estimate MEASURED"),
    "report": ("page.html", "report RELEASE"),
    "export": ("tables", "export RELEASE --to csv --no-intervals"),
    "query": ("flows.csv", "query RELEASE"),
    "query json": ("flows.json", "query RELEASE"),
    "query parquet": ("flows.parquet", "query RELEASE"),
    "dossier": ("dossier", "dossier RELEASE --no-selftest"),
    "evaluate": ("figures", "evaluate RELEASE --truth FLOWS"),
    "compare": ("figures", "compare FLOWS --areas AREAS --methods round:5"),
    "demo": ("demo", "demo --sizes 2,4,20 --trips 5000"),
}
#: Figures replace earlier ones.
FORCED = [name for name in WRITERS if name not in {"evaluate", "compare"}]
FILES = [name for name, (out, _) in WRITERS.items() if "." in out]
QUIET = ("release", "estimate", "report", "export", "evaluate", "compare", "demo")


@pytest.fixture
def write(typed, tmp_path):
    """Calls a command by name; it writes into the folder that is named."""

    def call(name, *more, folder=tmp_path):
        out, line = WRITERS[name]
        return typed(line, "--out", folder / out, *more)

    return call


def is_one_clear_line(done):
    return done.code == 2 and done.err.startswith("error: ") and done.err.count("\n") == 1


@pytest.mark.parametrize("name", WRITERS)
def test_nothing_is_written_into_what_is_published(name, write, copied, snapshot, tmp_path):
    folders = [copied("RELEASE"), copied("ESTIMATE"), tmp_path / "link"]
    folders[-1].symlink_to("estimate")
    before = snapshot()
    for folder in folders:
        for more in ((), ("--force",)) if name in FORCED else ((),):
            done = write(name, *more, folder=folder)
            assert is_one_clear_line(done), done.err
            assert "release" in done.err or "publi" in done.err
    assert snapshot() == before


@pytest.mark.parametrize("name", FORCED)
def test_output_is_replaced_only_by_force(name, write, snapshot):
    assert write(name).code == 0
    before = snapshot()
    done = write(name)
    assert is_one_clear_line(done), done.err
    assert "--force" in done.err
    assert snapshot() == before
    assert write(name, "--force").code == 0


@pytest.mark.parametrize("name", FORCED)
def test_force_does_not_replace_what_the_command_did_not_make(name, write, snapshot, tmp_path):
    precious = tmp_path / WRITERS[name][0]
    precious.mkdir()
    (precious / "thesis.txt").write_text("years of work")
    done = write(name, "--force")
    assert is_one_clear_line(done), done.err
    assert snapshot() == {precious / "thesis.txt": b"years of work"}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_cannot_be_written_leaves_the_older_one(
    name, write, snapshot, tmp_path, monkeypatch
):
    (out := tmp_path / WRITERS[name][0]).write_text("old")

    def fail(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    done = write(name, "--force")
    assert done.code == 1
    assert "No space" in done.err
    assert snapshot() == {out: b"old"}


@pytest.mark.parametrize("name", QUIET)
def test_quiet_says_nothing_also_on_a_terminal(name, write, snapshot, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as a terminal is known
    done = write(name, "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert snapshot()


@pytest.mark.parametrize("name", ["evaluate", "compare"])
def test_confidential_files_are_for_their_owner_only(name, write, snapshot):
    assert write(name, "--html").code == 0
    assert {stat.S_IMODE(path.stat().st_mode) for path in snapshot()} == {0o600}


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("plan --areas AREAS --epsilon 1 --delta 1e-8", "levels"),
        ("release FLOWS --areas AREAS --epsilon 1 --delta 1e-8 --out made", "guarantee"),
        ("preview --areas AREAS --stand-in FLOWS --epsilon 1 --delta 1e-6 --runs 1", "settings"),
        ("compare FLOWS --areas AREAS --methods round:5 --out made", "methods"),
        ("evaluate RELEASE --truth FLOWS --out made", "levels"),
        ("ledger list LEDGER", "datasets"),
        ("ledger show LEDGER census", "entries"),
    ],
)
def test_json_is_one_object_on_standard_output_alone(typed, line, key):
    done = typed(f"{line} --json")
    assert (done.code, done.err) == (0, "")
    assert key in json.loads(done.out)


ENDS = {"csv": b'"origin"', "json": b"[", "parquet": b"PAR1"}


@pytest.mark.parametrize("ending", ENDS)
def test_the_ending_says_how_a_file_is_written(done, tmp_path, ending):
    for name in (f"flows.{ending}", f"FLOWS-2.{ending.upper()}"):
        done(f"query RELEASE --out {name}")
        assert (tmp_path / name).read_bytes().startswith(ENDS[ending])
    done(f"query RELEASE --format {ending} --out flows.txt")
    assert (tmp_path / "flows.txt").read_bytes() == (tmp_path / f"flows.{ending}").read_bytes()


@pytest.mark.parametrize(
    "line",
    [
        "ledger create XX census --rho 1",
        "release FLOWS --areas AREAS --rho 1 --out XX",
        "demo --out XX",
    ],
)
@pytest.mark.usefixtures("typed")
def test_what_to_do_next_can_be_typed_as_it_stands(line, given, cli):
    words = ["a place; of ours" if word == "XX" else given.get(word, word) for word in line.split()]
    shown = cli(*words).out.splitlines()
    (*_, command) = [one for one in shown if one.startswith(("Next:", "$ "))]
    asked = shlex.split(command)
    asked = asked[asked.index("inftda") + 1 :]
    assert any("a place; of ours" in word for word in asked)
    if words[0] == "ledger":
        asked = ["ledger", "show", asked[asked.index("--ledger") + 1], "census"]
    assert cli(*asked).code == 0
