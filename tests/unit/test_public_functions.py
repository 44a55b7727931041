"""The public functions, and how their results show themselves."""

import inspect
import re
import subprocess
import sys

import pytest

import inftda
from inftda.errors import InftdaError
from inftda.noise.bits import SeededSource
from inftda.util import screen

AREAS = {"region": ["N", "N", "<b>S"], "town": ["1", "2", "3"]}
FLOWS = {"origin": ["1", "2", "3"], "destination": ["2", "3", "3"], "count": [300, 400, 5_000]}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("words") / "release"
    return inftda.release(FLOWS, AREAS, epsilon=1, delta=1e-6, out=out)


def test_a_word_can_be_called_whatever_was_loaded_before():
    named = ["plan", "release", "verify", "evaluate", "report"]
    code = (
        "import inftda.confidential.evaluate, inftda.pages.report, inftda\n"
        "import inspect\n"
        f"for name in {named}:\n"
        "    word = getattr(inftda, name)\n"
        "    print(name, callable(word), inspect.signature(word))\n"
        "print(inftda.pages.report.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    *said, last = done.stdout.splitlines()
    assert [line.partition("(")[0] for line in said] == [f"{word} True " for word in named]
    assert last == "inftda.pages.report"


def test_the_names_are_offered_for_completion():
    assert {"plan", "release", "open_release", "verify", "report", "__version__"} <= {*dir(inftda)}
    assert not {"sys", "import_module", "TYPE_CHECKING"} & {*dir(inftda)}
    with pytest.raises(AttributeError, match="no attribute 'magic'"):
        _ = inftda.magic


def test_a_plan_needs_areas_or_sizes():
    by_areas = inftda.plan(AREAS, epsilon=1, delta=1e-6)
    assert by_areas.levels().column("max_error").to_pylist()[0] == 0
    assert inftda.plan(sizes=[2, 3], epsilon=1, delta=1e-6).errors == by_areas.errors
    with pytest.raises(InftdaError, match="either sizes or files"):
        inftda.plan(AREAS, sizes=[2, 3], epsilon=1, delta=1e-6)


def test_a_comparison_is_written_with_its_page(made, tmp_path):
    out = tmp_path / "measures"
    inftda.evaluate(made, FLOWS, out=out, html=True)
    assert (out / "CONFIDENTIAL-evaluation.html").exists()
    with pytest.raises(InftdaError, match="give `out=`"):
        inftda.evaluate(made, FLOWS, html=True)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda _: inftda.plan(AREAS, epsilon=1, delta=1e-6), "epsilon = 1"),
        (lambda made: made, "epsilon = 1"),
        (lambda made: inftda.evaluate(made, FLOWS), "CONFIDENTIAL"),
        (lambda _: inftda.release(FLOWS, AREAS, rho=1, source=SeededSource(1)), "NOT PRIVATE"),
    ],
)
def test_objects_show_themselves_shortly_and_with_the_guarantee(make, said, made):
    shown = make(made)
    assert said in repr(shown)
    assert "\n" not in repr(shown)
    assert len(repr(shown)) < 250
    assert said in shown._repr_html_()
    assert "<b>" not in shown._repr_html_()


class Shell:
    """What `IPython.display` gives in a notebook: a line below the cell."""

    def __init__(self):
        self.lines = []

    def display(self, line, *, raw, display_id):
        assert raw
        assert display_id
        self.lines.append(line["text/plain"])
        return self

    def update(self, line, *, raw):
        assert raw
        self.lines.append(line["text/plain"])


def test_progress_is_a_line_in_a_notebook_and_is_gone_when_done(monkeypatch):
    """The notebook that is run by the tests has it, too; here is what it looks like."""
    shell = Shell()
    monkeypatch.setattr(screen, "_is_notebook", lambda: True)
    monkeypatch.setattr(screen, "import_module", lambda _: shell)
    inftda.release(FLOWS, AREAS, epsilon=1, delta=1e-6, progress=True)
    assert re.fullmatch(r".+ > .+: (\d+) of \1 draws", shell.lines[-2])
    assert shell.lines[-1] == ""


def test_nothing_is_shown_unless_asked_for(capsys):
    inftda.release(FLOWS, AREAS, epsilon=1, delta=1e-6)
    assert capsys.readouterr() == ("", "")


def test_a_release_takes_tables_of_geopandas():
    geopandas = pytest.importorskip("geopandas")
    frame = geopandas.GeoDataFrame(FLOWS, geometry=geopandas.points_from_xy([0] * 3, [0] * 3))
    assert inftda.release(frame, AREAS, epsilon=1, delta=1e-6).total == 5_700


def test_help_names_every_parameter_and_shows_plain_types():
    for word in ("release", "plan", "preview", "compare", "evaluate", "report", "export"):
        function = getattr(inftda, word)
        parameters = inspect.signature(function).parameters
        assert all(f"\n    {name}: " in inspect.getdoc(function) for name in parameters), word
        assert "Annotated" not in str(inspect.signature(function))
