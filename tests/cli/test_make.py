"""`inftda make` as it is typed."""

import shlex

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from inftda.cli.main import run
from inftda.hierarchy import Hierarchy


def test_a_country_is_written_ready_for_a_release(tmp_path, capsys):
    out = tmp_path / "country"
    sizes = ["--sizes", "2,4,20", "--trips", "5000"]
    assert run(["make", "country", *sizes, "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "5,000 trips" in shown
    assert f"inftda release {out / 'flows.parquet'} --areas {out / 'areas.csv'}" in shown
    areas = Hierarchy.read(out / "areas.csv")
    assert [areas.n_areas(level) for level in (1, 2, 3)] == [2, 4, 20]
    release = ["release", str(out / "flows.parquet"), "--areas", str(out / "areas.csv")]
    arguments = ["--epsilon", "1", "--delta", "1e-6", "--out", str(tmp_path / "made"), "--quiet"]
    assert run([*release, *arguments]) == 0


KINDS = {
    "country": ["make", "country", "--sizes", "2,4", "--trips", "50"],
    "synthetic": ["make", "synthetic", "--partition", "binary", "--share", "1", "--levels", "2"],
}


def snapshot(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["flows.parquet", "areas.csv"])
def test_a_table_that_is_there_is_not_replaced(tmp_path, capsys, kind, name):
    (tmp_path / name).write_text("years of work")
    assert run([*KINDS[kind], "--out", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert name in said
    assert "give another --out" in said
    assert said.count("\n") == 1
    assert snapshot(tmp_path) == {tmp_path / name: b"years of work"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("within", [".", "deep/inside"])
def test_nothing_is_made_in_a_release(released, capsys, kind, within):
    (released / "areas.csv").unlink()
    before = snapshot(released)
    assert run([*KINDS[kind], "--out", str(released / within)]) == 2
    assert "lies in the release folder" in capsys.readouterr().err
    assert snapshot(released) == before
    assert not (released / "deep").exists()


@pytest.mark.parametrize("kind", KINDS)
def test_a_link_to_nowhere_is_not_followed(tmp_path, kind):
    (tmp_path / "areas.csv").symlink_to("nowhere")
    assert run([*KINDS[kind], "--out", str(tmp_path)]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["areas.csv"]


def test_a_file_is_no_folder(tmp_path, capsys):
    (tmp_path / "file").write_text("years of work")
    assert run([*KINDS["country"], "--out", str(tmp_path / "file")]) == 2
    assert "is not a folder" in capsys.readouterr().err


def test_both_files_are_written_or_none(tmp_path, capsys, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pa_csv, "write_csv", fail)
    assert run([*KINDS["country"], "--out", str(tmp_path), "--quiet"]) == 1
    assert "No space left" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_what_to_do_next_can_be_typed_as_it_stands(tmp_path, capsys):
    out = tmp_path / "a country; of ours"
    assert run([*KINDS["country"], "--out", str(out)]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "Next:" in line]
    typed = shlex.split(line.removeprefix("Next:  inftda"))[:-1]
    assert run([*typed, str(tmp_path / "release"), "--quiet"]) == 0


def test_a_country_with_given_margins_keeps_them(tmp_path):
    (tmp_path / "areas.csv").write_text("region,town\nN,01\nN,02\nS,03\n")
    (tmp_path / "margins.csv").write_text("town,residents,jobs\n03,5,20\n01,10,0\n02,10,5\n")
    arguments = ["--areas", str(tmp_path / "areas.csv"), "--margins", str(tmp_path / "margins.csv")]
    assert run(["make", "country", *arguments, "--out", str(tmp_path / "o"), "--quiet"]) == 0
    flows = pq.read_table(tmp_path / "o" / "flows.parquet")
    starts, ends = ({}, {})
    for row in flows.to_pylist():
        starts[row["origin"]] = starts.get(row["origin"], 0) + row["count"]
        ends[row["destination"]] = ends.get(row["destination"], 0) + row["count"]
    assert starts == {"01": 10, "02": 10, "03": 5}
    assert ends == {"02": 5, "03": 20}


def test_a_data_set_of_the_paper_is_written(tmp_path):
    assert run(["make", "synthetic", "random_sparse", "--out", str(tmp_path), "--quiet"]) == 0
    assert pq.read_metadata(tmp_path / "flows.parquet").num_rows == 1_892
    assert pa_csv.read_csv(tmp_path / "areas.csv").num_rows == 435


def test_a_data_set_of_another_size_is_written(tmp_path):
    arguments = ["--partition", "binary", "--share", "0.5", "--levels", "3", "--mean-flow", "5"]
    assert run(["make", "synthetic", *arguments, "--out", str(tmp_path), "--quiet"]) == 0
    assert pq.read_metadata(tmp_path / "flows.parquet").num_rows == 32


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["country", "--sizes", "2,x"], "--sizes must be whole numbers"),
        (["country", "--sizes", "5,2"], "coarse to fine"),
        (["country", "--margins", "m.csv"], "--margins need --areas"),
        (["synthetic"], "a name such as"),
        (["synthetic", "binary_sparse", "--partition", "binary"], "a name such as"),
        (["synthetic", "dense"], "there is no data set"),
    ],
)
def test_wrong_use_is_told(arguments, message, tmp_path, capsys):
    assert run(["make", *arguments, "--out", str(tmp_path / "o")]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("margins", "message"),
    [
        ("town,residents,jobs\n01,1,1\n", "one row for each of the 2 areas"),
        ("town,residents,jobs\n01,1,1\n09,1,1\n", "one row for each of the 2 areas"),
        ("town,residents,jobs\n01,1,1\n02,x,1\n", "'residents' of the margins table"),
        ("town,people,jobs\n01,1,1\n02,1,1\n", "no column 'residents'"),
    ],
)
def test_margins_that_do_not_fit_are_told(margins, message, tmp_path, capsys):
    (tmp_path / "areas.csv").write_text("region,town\nN,01\nN,02\n")
    (tmp_path / "m.csv").write_text(margins)
    arguments = ["--areas", str(tmp_path / "areas.csv"), "--margins", str(tmp_path / "m.csv")]
    assert run(["make", "country", *arguments, "--out", str(tmp_path / "o")]) == 2
    assert message in capsys.readouterr().err
