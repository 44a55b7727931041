"""What every command that writes promises about its output."""

import shutil
import stat

import pytest

from inftda.cli.main import run

BUDGET = ("--epsilon", "1", "--delta", "1e-8")
#: How the output is called, and what is typed before `--out`.
WRITERS = {
    "release": ("made", "release", "FLOWS", "--areas", "AREAS", *BUDGET),
    "estimate": ("estimate", "estimate", "RELEASE"),
    "report": ("page.html", "report", "RELEASE", "--runs", "1", "--seconds", "0"),
    "export": ("tables", "export", "RELEASE", "--to", "csv", "--no-intervals"),
    "query": ("flows.csv", "query", "RELEASE"),
    "ledger export": ("entries.csv", "ledger", "export", "LEDGER"),
    "evaluate": ("figures", "evaluate", "RELEASE", "--truth", "FLOWS"),
    "compare": ("figures", "compare", "FLOWS", "--areas", "AREAS", "--methods", "round:5"),
    "make": ("country", "make", "country", "--sizes", "2,4,20", "--trips", "5000"),
}
#: Figures replace earlier ones, and nothing replaces a country.
FORCED = [name for name in WRITERS if name not in {"evaluate", "compare", "make"}]
QUIET = [name for name in WRITERS if name not in {"query", "ledger export"}]


@pytest.fixture(scope="module")
def given(country, tmp_path_factory):
    """What commands read: a table, areas, a ledger, a release with measurements."""
    folder = tmp_path_factory.mktemp("given")
    release, ledger = str(folder / "release"), str(folder / "ledger.db")
    typed = ["release", country.flows, "--areas", country.areas, *BUDGET, "--out", release]
    assert run([*typed, "--measurements", "--quiet"]) == 0
    assert run(["ledger", "create", ledger, "census", "--rho", "1"]) == 0
    return {"FLOWS": country.flows, "AREAS": country.areas, "RELEASE": release, "LEDGER": ledger}


@pytest.fixture
def write(cli, given, tmp_path):
    """Calls a command by name; it writes into the folder that is named."""

    def call(name, *more, folder=tmp_path):
        out, *typed = WRITERS[name]
        return cli(*(given.get(word, word) for word in typed), "--out", folder / out, *more)

    return call


def snapshot(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def is_one_clear_line(done):
    return done.code == 2 and done.err.startswith("error: ") and done.err.count("\n") == 1


@pytest.mark.parametrize("name", WRITERS)
def test_nothing_is_written_into_a_release(name, write, given, tmp_path):
    release = shutil.copytree(given["RELEASE"], tmp_path / "release")
    before = snapshot(tmp_path)
    for more in ((), ("--force",)) if name in FORCED else ((),):
        done = write(name, *more, folder=release)
        assert is_one_clear_line(done), done.err
        assert "release" in done.err
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("name", FORCED)
def test_output_is_replaced_only_by_force(name, write, tmp_path):
    assert write(name).code == 0
    before = snapshot(tmp_path)
    done = write(name)
    assert is_one_clear_line(done), done.err
    assert "--force" in done.err
    assert snapshot(tmp_path) == before
    assert write(name, "--force").code == 0


@pytest.mark.parametrize("name", FORCED)
def test_force_does_not_replace_what_the_command_did_not_make(name, write, tmp_path):
    precious = tmp_path / WRITERS[name][0]
    precious.mkdir()
    (precious / "thesis.txt").write_text("years of work")
    done = write(name, "--force")
    assert is_one_clear_line(done), done.err
    assert snapshot(tmp_path) == {precious / "thesis.txt": b"years of work"}


@pytest.mark.parametrize("name", QUIET)
def test_quiet_says_nothing_also_on_a_terminal(name, write, tmp_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as a terminal is known
    done = write(name, "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert snapshot(tmp_path)


@pytest.mark.parametrize("name", ["release", "evaluate", "compare"])
def test_confidential_files_are_for_their_owner_only(name, write, tmp_path):
    assert write(name).code == 0
    assert {stat.S_IMODE(path.stat().st_mode) for path in snapshot(tmp_path)} == {0o600}


@pytest.mark.parametrize("name", WRITERS)
def test_an_unknown_option_is_one_clear_line_and_writes_nothing(name, write, tmp_path):
    done = write(name, "--nonsense")
    assert is_one_clear_line(done), done.err
    assert "--nonsense" in done.err
    assert not list(tmp_path.iterdir())
