"""`inftda make country` as it is typed."""

import shlex

import pytest

from inftda.cli.main import run
from inftda.hierarchy import Hierarchy

MAKE = ["make", "country", "--sizes", "2,4,20", "--trips", "5000"]


def snapshot(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_country_is_written_and_what_to_do_next_can_be_typed_as_it_stands(tmp_path, capsys):
    out = tmp_path / "a country; of ours"
    assert run([*MAKE, "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "5,000 trips" in shown
    areas = Hierarchy.read(out / "areas.csv")
    assert [areas.n_areas(level) for level in (1, 2, 3)] == [2, 4, 20]
    (line,) = [line for line in shown.splitlines() if "Next:" in line]
    typed = shlex.split(line.removeprefix("Next:  inftda"))[:-1]
    assert run([*typed, str(tmp_path / "release"), "--quiet"]) == 0


@pytest.mark.parametrize("name", ["flows.parquet", "areas.csv"])
def test_a_table_that_is_there_is_not_replaced(tmp_path, capsys, name):
    (tmp_path / name).write_text("years of work")
    assert run([*MAKE, "--out", str(tmp_path)]) == 2
    assert "give another --out" in capsys.readouterr().err
    assert snapshot(tmp_path) == {tmp_path / name: b"years of work"}


def test_a_link_to_nowhere_is_not_followed(tmp_path):
    (tmp_path / "areas.csv").symlink_to("nowhere")
    assert run([*MAKE, "--out", str(tmp_path)]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["areas.csv"]


@pytest.mark.parametrize(
    ("sizes", "message"), [("2,x", "whole numbers"), ("5,2", "coarse to fine")]
)
def test_wrong_sizes_are_told(sizes, message, tmp_path, capsys):
    assert run(["make", "country", "--sizes", sizes, "--out", str(tmp_path / "o")]) == 2
    assert message in capsys.readouterr().err
