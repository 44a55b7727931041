"""Results of confidential data sets: marked, for their owner only, and never in a release."""

import json
import os
from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tiny_experiment import results_of, tiny_spec, write_country

from inftda.errors import InftdaError, ReleaseError
from inftda.evaluation.evaluate import NOTICE, make_private
from inftda.lab.experiments.confidential import marked, write_private
from inftda.lab.experiments.figures import draw_figures, draw_zoom_in
from inftda.lab.experiments.runner import SCHEMA, cells, load_counts, run_cell, run_experiment
from inftda.lab.experiments.spec import DataSet
from inftda.lab.experiments.summary import write_summary
from inftda.publish import release

MADE_UP = DataSet("made_up", synthetic="binary_sparse")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a small country."""
    folder = tmp_path_factory.mktemp("tiny")
    write_country(folder)
    return folder


@pytest.fixture
def spec(place):
    """A confidential data set and a made-up one."""
    secret = tiny_spec(place, public=False, mechanisms=("inftda",), runs=1)
    return replace(secret, datasets=(*secret.datasets, MADE_UP))


@pytest.fixture
def out(tmp_path):
    """Where everybody may look, as far as the system is concerned."""
    before = os.umask(0)
    yield tmp_path / "parent" / "out"
    os.umask(before)


def rights(path):
    return path.stat().st_mode & 0o777


def note_of(folder):
    return json.loads((folder / "cells" / "experiment.json").read_text())


def run_all(spec, folder):
    """As the command line does it."""
    results = run_experiment(spec, folder)
    figures = draw_figures(results, folder / "figures")
    write_summary(results, spec, folder / "summary.md", published=None, figures=figures)
    return results


@pytest.mark.parametrize("public", [False, True])
def test_only_the_owner_can_read_what_is_written(place, out, public):
    run_all(tiny_spec(place, public=public), out)
    found = [out, *out.rglob("*")]
    assert {rights(path) for path in found if path.is_dir()} == {0o700}
    assert {rights(path) for path in found if path.is_file()} == {0o600}
    assert len([path for path in found if path.is_dir()]) == 3
    assert len([path for path in found if path.is_file()]) == 6


def test_files_that_others_could_read_are_replaced(place, out):
    spec = tiny_spec(place, public=False)
    run_all(spec, out)
    files = [path for path in out.rglob("*") if path.is_file() and path.parent.name != "cells"]
    for path in files:
        path.chmod(0o644)
    run_all(spec, out)
    assert {rights(path) for path in files} == {0o600}


def test_every_row_and_file_of_a_confidential_data_set_carries_the_notice(spec, out):
    results = run_all(spec, out)
    for table in (results, pq.read_table(out / "results.parquet")):
        assert table.schema.metadata == {b"notice": NOTICE.encode()}
        rows = table.select(["dataset", "notice"]).to_pylist()
        assert {(row["dataset"], row["notice"]) for row in rows} == {
            ("tiny", NOTICE),
            ("made_up", None),
        }
    secret, made_up = (pq.read_table(cell.file(out)) for cell in cells(spec))
    assert set(secret.column("notice").to_pylist()) == {NOTICE}
    assert secret.schema.metadata == {b"notice": NOTICE.encode()}
    assert made_up.schema.equals(SCHEMA, check_metadata=True)
    note = note_of(out)
    assert (note["confidential"], note["notice"]) == (["tiny"], NOTICE)
    summary = (out / "summary.md").read_text()
    assert summary.split("\n\n")[1] == f"**{NOTICE}.** Confidential data sets: tiny."


def test_a_confidential_cell_is_marked_from_the_start(spec):
    """An experiment may be cut off before its results are put together."""
    secret, _ = cells(spec)
    results = run_cell(secret, spec, load_counts(secret.dataset))
    assert set(results.column("notice").to_pylist()) == {NOTICE}


def test_nothing_is_marked_where_all_is_public(place, out):
    spec = tiny_spec(place)
    spec = replace(spec, datasets=(*spec.datasets, MADE_UP))
    results = run_all(spec, out)
    for table in (results, pq.read_table(out / "results.parquet")):
        assert table.schema.equals(SCHEMA, check_metadata=True)
    assert set(note_of(out)) == {"delta", "runs", "seed"}
    assert "confidential" not in (out / "summary.md").read_text().lower()


def test_a_confidential_cell_without_results_is_marked_as_well(place, out):
    """That a mechanism took too long is computed from the truth, too."""
    spec = tiny_spec(place, public=False, mechanisms=("inftda",), time_limit=1e-9)
    results = run_experiment(spec, out)
    (cell,) = cells(spec)
    for table in (results, pq.read_table(cell.file(out))):
        assert table.num_rows == 0
        assert table.schema.metadata == {b"notice": NOTICE.encode()}


@pytest.mark.parametrize("first", [False, True])
def test_cells_that_were_done_are_marked_as_the_data_set_is_called_now(place, out, first):
    """They are not run again, whatever it was called before."""
    run_experiment(tiny_spec(place, public=first), out)
    spec = tiny_spec(place, public=not first)
    results = run_experiment(spec, out)
    expected = {NOTICE} if first else set()
    for table in (results, *(pq.read_table(cell.file(out)) for cell in cells(spec))):
        found = table.column("notice").to_pylist() if "notice" in table.column_names else ()
        assert set(found) == expected
    assert note_of(out).get("notice") == (NOTICE if first else None)


def test_cells_of_a_confidential_data_set_that_is_no_longer_named_stay_marked(spec, out):
    run_experiment(spec, out)
    results = run_experiment(replace(spec, datasets=(MADE_UP,)), out)
    assert results.schema.equals(SCHEMA, check_metadata=True)
    assert note_of(out)["confidential"] == ["tiny"]
    assert note_of(out)["notice"] == NOTICE


def test_a_made_up_data_set_does_not_take_over_the_cells_of_a_confidential_one(spec, out):
    run_experiment(spec, out)
    made_up = DataSet("tiny", synthetic="binary_sparse")
    with pytest.raises(InftdaError, match="confidential data set 'tiny'"):
        run_experiment(replace(spec, datasets=(made_up,)), out)


@pytest.mark.parametrize("content", ["", "[]", "half {"])
def test_a_note_that_cannot_be_read_is_one_clear_error(place, out, content):
    run_experiment(tiny_spec(place), out)
    (out / "cells" / "experiment.json").write_text(content)
    with pytest.raises(InftdaError, match="another experiment"):
        run_experiment(tiny_spec(place), out)


# Pictures


@pytest.fixture
def titles(monkeypatch):
    """Titles of all pictures that are saved."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    found = []
    original = Figure.savefig

    def noted(figure, *arguments, **options):
        found.append(figure.get_suptitle())
        original(figure, *arguments, **options)

    monkeypatch.setattr(Figure, "savefig", noted)
    return found


def errors(dataset):
    rows = [("inftda", 1.0, 0, level, "max_abs_error", 5.0 + level) for level in range(3)]
    return results_of(rows, dataset=dataset)


def test_the_notice_is_in_pictures_of_confidential_data_sets_only(tmp_path, titles):
    tables = [marked(errors("secret"), is_confidential=True), errors("known")]
    results = pa.concat_tables(tables, promote_options="default")
    draw_figures(results, tmp_path)
    for dataset in ("known", "secret"):
        draw_zoom_in(results, tmp_path / f"{dataset}.png", dataset=dataset, epsilon=1.0)
    assert titles == ["known", f"secret\n{NOTICE}", "", NOTICE]


# Never in a release


@pytest.fixture
def published(place, tmp_path):
    """A release, and what is in it."""
    folder = tmp_path / "release"
    files = (place / "flows.parquet", place / "areas.csv")
    release(*files, epsilon=1, delta=1e-8).save(folder)
    (tmp_path / "link").symlink_to(folder)
    return SimpleNamespace(folder=folder, files=sorted(folder.rglob("*")))


@pytest.mark.parametrize("way", ["release", "release/exp", "release/a/b", "link/exp"])
def test_nothing_is_written_into_a_release(place, tmp_path, published, way):
    folder = tmp_path / way
    spec, results = tiny_spec(place), errors("tiny")
    with pytest.raises(ReleaseError, match="choose a folder elsewhere"):
        run_experiment(spec, folder)
    with pytest.raises(ReleaseError, match="choose a folder elsewhere"):
        draw_figures(results, folder)
    with pytest.raises(ReleaseError, match="choose a folder elsewhere"):
        draw_zoom_in(results, folder / "zoom.png", dataset="tiny", epsilon=1.0)
    with pytest.raises(ReleaseError, match="choose a folder elsewhere"):
        write_summary(results, spec, folder / "summary.md", published=None, figures=[])
    assert sorted(published.folder.rglob("*")) == published.files


@pytest.mark.parametrize("name", ["cells", "figures"])
def test_no_link_in_the_folder_leads_into_a_release(place, tmp_path, published, name):
    out = tmp_path / "out"
    out.mkdir()
    (out / name).symlink_to(published.folder)
    with pytest.raises(ReleaseError, match="choose a folder elsewhere"):
        run_all(tiny_spec(place), out)
    assert sorted(published.folder.rglob("*")) == published.files


def test_a_link_in_the_place_of_a_file_is_replaced_and_not_followed(tmp_path, published):
    (tmp_path / "summary.md").symlink_to(published.folder / "leak.md")
    write_private(tmp_path / "summary.md", lambda partial: partial.write_text("figures"))
    assert not (tmp_path / "summary.md").is_symlink()
    assert sorted(published.folder.rglob("*")) == published.files


def test_a_link_in_the_place_of_the_folder_is_not_followed(place, tmp_path):
    (tmp_path / "public").mkdir()
    (tmp_path / "out").symlink_to("public")
    with pytest.raises(ReleaseError, match="is a link"):
        run_experiment(tiny_spec(place), tmp_path / "out")
    assert not any((tmp_path / "public").iterdir())


def test_a_folder_that_cannot_be_made_is_one_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InftdaError, match="cannot make the folder"):
        make_private(tmp_path / "file")


def test_a_writer_that_fails_leaves_nothing_and_keeps_what_was_there(tmp_path):
    def fail(partial):
        partial.write_text("half")
        raise RuntimeError

    (tmp_path / "a.md").write_text("whole")
    with pytest.raises(RuntimeError):
        write_private(tmp_path / "a.md", fail)
    assert [path.name for path in tmp_path.iterdir()] == ["a.md"]
    assert (tmp_path / "a.md").read_text() == "whole"
