"""`inftda import istat` as it is typed, and the command it says to run next."""

import shlex
import zipfile

import pytest

from inftda.cli.main import run

ROWS = [
    "S 1 001 001 1 2 1 001 001 000 + + + ND 0000400",
    "S 1 001 001 2 1 2 015 146 000 + + + ND 0000300",
    "S 1 015 146 1 2 3 000 000 215 + + + ND 0000020",
]


@pytest.fixture
def matrix(tmp_path):
    path = tmp_path / "matrix.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("MATRICE PENDOLARISMO 2011/matrix.txt", "\n".join(ROWS))
    return path


@pytest.mark.parametrize("axes", [[], ["--with", "sex,reason"], ["--abroad", "drop"]])
def test_the_next_command_works_as_printed(axes, matrix, tmp_path, capsys):
    out = tmp_path / "out"
    assert run(["import", "istat", str(matrix), "--out", str(out), *axes]) == 0
    shown = capsys.readouterr().out
    assert "20 trips end abroad" in shown
    assert "official list" in shown
    command = shown.splitlines()[-1].removeprefix("Next:").strip()
    words = shlex.split(command.replace("RELEASE", str(tmp_path / "release")))
    assert words[0] == "inftda"
    assert run([*words[1:], "--quiet"]) == 0
    assert (tmp_path / "release" / "manifest.json").exists()


def test_quiet_says_nothing(matrix, tmp_path, capsys):
    assert run(["import", "istat", str(matrix), "--out", str(tmp_path / "o"), "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_a_wrong_file_is_told(tmp_path, capsys):
    assert run(["import", "istat", str(tmp_path / "no.zip"), "--out", str(tmp_path / "o")]) == 2
    assert "no file" in capsys.readouterr().err
