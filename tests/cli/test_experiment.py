"""`inftda experiment` as it is typed, on a tiny data set."""

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inftda.evaluation.evaluate import NOTICE

PUBLISHED = """dataset,mechanism,epsilon,level,metric,min,mean,max
Tiny,InfTDA,1.0,1,max_error,0.0,100.0,200.0
Tiny,InfTDA,1.0,6,max_error,4000.0,4500.0,5000.0
"""


@pytest.fixture
def spec(country, tmp_path):
    """Two mechanisms, both settings, one epsilon, two runs."""
    path = tmp_path / "spec.toml"
    path.write_text(
        'mechanisms = ["inftda", "stability-histogram"]\nepsilons = [1]\nruns = 2\n'
        'settings = ["ours", "published"]\n'
        f'[[dataset]]\nname = "tiny"\npublished = "Tiny"\nflows = "{country.flows}"\n'
        f'areas = "{country.areas}"\n'
    )
    return path


def test_results_summary_and_figures_are_written_once(cli, spec, tmp_path):
    (tmp_path / "published.csv").write_text(PUBLISHED)
    out = tmp_path / "out"
    done = cli("experiment", spec, "--out", out, "--published", tmp_path / "published.csv")
    assert done.code == 0, done.err
    for what in ("results.parquet", "summary.md", "figures"):
        assert str(out / what) in done.out
    results = pq.read_table(out / "results.parquet")
    assert set(results.column("mechanism").to_pylist()) == {"inftda", "stability-histogram"}
    assert set(results.column("setting").to_pylist()) == {"ours", "published"}
    summary = (out / "summary.md").read_text()
    assert "4500.0" in summary, "the published figure stands beside ours"
    # No error can be so large in a table of 5,000 trips: the cell is outside, and is listed.
    assert re.search(r"\| tiny \| inftda \| 1\.0 \| municipality > municipality \|", summary)
    links = re.findall(r"!\[.*\]\((.*)\)", summary)
    assert links == ["figures/tiny-ours.png", "figures/tiny-published.png"]
    for link in links:
        assert not Path(link).is_absolute()
        assert (out / link).stat().st_size > 10_000
    # Once more, and quietly: it goes on where it was, which is the end.
    cells = {path: path.stat().st_mtime_ns for path in (out / "cells").glob("*.parquet")}
    assert len(cells) == 4
    again = cli("experiment", spec, "--out", out, "--quiet")
    assert (again.code, again.out, again.err) == (0, "", "")
    assert {path: path.stat().st_mtime_ns for path in (out / "cells").glob("*.parquet")} == cells


def test_results_of_files_are_confidential_unless_they_are_said_to_be_public(cli, spec, tmp_path):
    secret = cli("experiment", spec, "--out", tmp_path / "secret")
    assert secret.code == 0, secret.err
    assert secret.out.startswith(f"{NOTICE}: tiny\n")
    assert NOTICE in (tmp_path / "secret" / "summary.md").read_text()
    for path in (tmp_path / "secret", *(tmp_path / "secret").rglob("*")):
        assert not path.stat().st_mode & 0o077, path
    spec.write_text(spec.read_text() + "public = true\n")
    known = cli("experiment", spec, "--out", tmp_path / "known")
    assert known.code == 0, known.err
    assert known.out.startswith("Results:")
    assert NOTICE not in (tmp_path / "known" / "summary.md").read_text()


@pytest.mark.parametrize("content", [b"", b"PAR1", b"another table"])
def test_results_that_are_damaged_are_told_by_their_file(cli, spec, tmp_path, content):
    cell = tmp_path / "out" / "cells" / "tiny__ours__inftda__1.parquet"
    cell.parent.mkdir(parents=True)
    if content == b"another table":
        pq.write_table(pa.table({"a": [1]}), cell)
    else:
        cell.write_bytes(content)
    done = cli("experiment", spec, "--out", tmp_path / "out")
    assert done.code == 2
    assert "does not hold results; remove it" in done.err


@pytest.mark.parametrize("note", ["[1]", '{"confidential": 5}', "[" * 99_999])
def test_a_note_that_makes_no_sense_is_that_of_another_experiment(cli, spec, tmp_path, note):
    (tmp_path / "out" / "cells").mkdir(parents=True)
    (tmp_path / "out" / "cells" / "experiment.json").write_text(note)
    done = cli("experiment", spec, "--out", tmp_path / "out")
    assert done.code == 2
    assert "another experiment" in done.err


def test_nothing_is_written_into_a_release(cli, spec, released):
    before = sorted(released.rglob("*"))
    done = cli("experiment", spec, "--out", released / "exp")
    assert done.code == 2
    assert "choose a folder elsewhere" in done.err
    assert sorted(released.rglob("*")) == before


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("mechanisms = [", "not TOML"),
        ('mechanisms = ["inftda"]', "name at least one"),
        ('mechanisms = ["magic"]\n[[dataset]]\nname = "a"\nsynthetic = "binary_sparse"', "magic"),
        ('[[dataset]]\nname = "a"\nsynthetic = "binary_sparse"', "mechanisms"),
        ('mechanisms = ["inftda"]\nruns = "ten"\n[[dataset]]\nname = "a"', "flows and areas"),
        (
            'mechanisms = ["inftda"]\n[[dataset]]\nname = "a"\nflows = "no.csv"\nareas = "no.csv"',
            "no.csv",
        ),
    ],
)
def test_a_spec_that_makes_no_sense_is_one_clear_line(cli, tmp_path, text, says):
    (tmp_path / "spec.toml").write_text(text)
    done = cli("experiment", tmp_path / "spec.toml", "--out", tmp_path / "out", "--quiet")
    assert done.code == 2, done.err
    assert says in done.err
    assert done.err.count("\n") == 1


def test_published_figures_that_cannot_be_read_are_told_before_the_work(cli, spec, tmp_path):
    done = cli("experiment", spec, "--out", tmp_path / "out", "--published", tmp_path / "no.csv")
    assert done.code == 2
    assert "published figures" in done.err
    assert not (tmp_path / "out").exists()
