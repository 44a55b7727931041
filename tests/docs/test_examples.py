"""The examples run, and make releases that verify."""

import runpy

import pytest
from documents import ROOT

from inftda.publication.verify import verify
from patience import PATIENCE

nbclient = pytest.importorskip("nbclient", reason="notebooks need nbclient and ipykernel")
nbformat = pytest.importorskip("nbformat")

pytestmark = pytest.mark.slow

SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def test_there_are_two_scripts_and_two_notebooks():
    assert len(SCRIPTS) >= 2
    assert len(NOTEBOOKS) >= 2


@pytest.mark.nightly
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_makes_a_release_that_verifies(script, tmp_path, capsys):
    runpy.run_path(str(script))["main"](tmp_path)
    assert "add up to" in capsys.readouterr().out
    (release,) = tmp_path.iterdir()
    assert list(verify(release))


@pytest.mark.nightly
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("default::DeprecationWarning")  # of the notebook's own machinery
def test_a_notebook_runs_from_top_to_bottom(notebook, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    cells = nbformat.read(notebook, as_version=4)
    client = nbclient.NotebookClient(
        cells,
        timeout=PATIENCE,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    )
    client.execute()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_saved_with_its_outputs_and_nothing_of_the_machine(notebook):
    text = notebook.read_text(encoding="utf-8")
    cells = nbformat.reads(text, as_version=4).cells
    assert any(cell.get("outputs") for cell in cells)
    assert not any(place in text for place in ("/home/", "/tmp/", "/work/", "/Users/"))
