"""The examples run, and make releases that verify."""

import runpy

import pytest
from documents import ROOT

from inftda.publication.verify import verify
from patience import PATIENCE

nbclient = pytest.importorskip("nbclient", reason="notebooks need nbclient and ipykernel")
nbformat = pytest.importorskip("nbformat")


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["health_table", "two_countries"])
def test_a_script_makes_a_release_that_verifies(name, tmp_path, capsys):
    runpy.run_path(str(ROOT / f"examples/{name}.py"))["main"](tmp_path)
    assert "add up to" in capsys.readouterr().out
    (release,) = tmp_path.iterdir()
    assert list(verify(release))


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["tour", "own_model"])
@pytest.mark.filterwarnings("default::DeprecationWarning")  # of the notebook's own machinery
def test_a_notebook_runs_and_is_saved_with_its_outputs_but_nothing_of_the_machine(
    name, tmp_path, monkeypatch
):
    text = (ROOT / f"examples/{name}.ipynb").read_text(encoding="utf-8")
    notebook = nbformat.reads(text, as_version=4)
    assert any(cell.get("outputs") for cell in notebook.cells)
    assert not any(place in text for place in ("/home/", "/tmp/", "/work/", "/Users/"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    nbclient.NotebookClient(
        notebook,
        timeout=PATIENCE,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    ).execute()
