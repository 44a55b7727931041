"""A tiny good input, and a check that a command refuses to work as it should."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inftda.cli.main import run
from patience import PATIENCE

AREAS = "region,town\nN,1\nN,2\nS,3\nS,4\n"
FLOWS = "origin,destination,count\n1,2,30\n3,4,20\n"
BUDGET = ("--epsilon", "1", "--delta", "1e-8")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The current folder, with good flows and areas in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("INFTDA_DEBUG", raising=False)
    (tmp_path / "areas.csv").write_text(AREAS)
    (tmp_path / "flows.csv").write_text(FLOWS)
    return tmp_path


@pytest.fixture
def refuse(place, capsys):
    """Runs a command that must fail: exit code, one line, and no file changed or left."""

    def check(*arguments, code=2, says=()):
        before = snapshot(place)
        capsys.readouterr()
        found = run([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        assert found == code, printed.err
        check_message(printed.err, says)
        assert snapshot(place) == before
        return printed

    return check


@pytest.fixture(scope="session")
def good_release(tmp_path_factory):
    """A good release of the tiny input, made once."""
    folder = tmp_path_factory.mktemp("good")
    (folder / "areas.csv").write_text(AREAS)
    (folder / "flows.csv").write_text(FLOWS)
    out = folder / "release"
    given = (str(folder / "flows.csv"), "--areas", str(folder / "areas.csv"))
    assert run(["release", *given, *BUDGET, "--out", str(out), "--quiet"]) == 0
    return out


@pytest.fixture
def made(place, good_release):
    """A copy of it, in the folder `release`."""
    return shutil.copytree(good_release, place / "release")


@pytest.fixture
def write(place):
    """Writes bytes, text or a table to a file of the current folder; gives its name."""

    def to(name, content):
        if isinstance(content, pa.Table):
            pq.write_table(content, place / name)
        else:
            (place / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return name

    return to


@pytest.fixture
def shell(place):
    """Runs the command line in a process of its own."""

    def call(*arguments, **options):
        environment = {key: value for key, value in os.environ.items() if key != "INFTDA_DEBUG"}
        done = subprocess.run(
            [sys.executable, "-m", "inftda", *map(str, arguments)],
            cwd=place, capture_output=True, text=True, env=environment, timeout=PATIENCE,
            check=False, **options,
        )  # fmt: skip
        return SimpleNamespace(code=done.returncode, out=done.stdout, err=done.stderr)

    return call


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every path below a folder and what is in it."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
    }


def check_message(said: str, words) -> None:
    assert said.startswith("error: "), said
    assert said.count("\n") == 1, said
    assert said.endswith("\n")
    assert "Traceback" not in said
    assert not said.startswith("error: unexpected"), said
    for word in (words,) if isinstance(words, str) else words:
        assert word in said, said
