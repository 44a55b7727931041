"""The pictures: one for each data set, with every mechanism that has results in its legend."""

import sys

import pyarrow as pa
import pytest
from tiny_experiment import results_of

from inftda.errors import MissingExtraError
from inftda.lab.experiments import figures
from inftda.lab.experiments.figures import STYLES, draw_figures, draw_zoom_in

PNG = b"\x89PNG\r\n\x1a\n"


def results(mechanisms, epsilons=(1.0,), **fixed):
    """Made-up errors, rates and times of two runs at three levels."""
    rows = []
    for number, mechanism in enumerate(mechanisms):
        for epsilon in epsilons:
            for run in (0, 1):
                rows.append((mechanism, epsilon, run, -1, "time", 0.1 + number + run))
                for level in range(3):
                    error = float(level * 10 ** (number + 1) + run)
                    rows.append((mechanism, epsilon, run, level, "max_abs_error", error))
                    rows.append((mechanism, epsilon, run, level, "false_discovery_rate", level / 3))
    return results_of(rows, **fixed)


@pytest.fixture
def drawn(monkeypatch):
    """Every figure that is saved, as matplotlib has it."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    saved = []
    original = Figure.savefig

    def noted(figure, *arguments, **options):
        texts = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
        saved.append((figure, texts))
        original(figure, *arguments, **options)

    monkeypatch.setattr(Figure, "savefig", noted)
    return saved


def test_a_picture_is_written_for_each_data_set(tmp_path):
    both = pa.concat_tables([results(["inftda"], dataset=name) for name in ("first", "second")])
    paths = draw_figures(both, tmp_path / "figures")
    assert [path.name for path in paths] == ["first-ours.png", "second-ours.png"]
    for path in paths:
        assert path.read_bytes().startswith(PNG)
        assert path.stat().st_size > 10_000


def test_each_setting_has_pictures_of_its_own(tmp_path):
    published = results(["inftda"], setting="published")
    assert draw_figures(published, tmp_path, setting="ours") == []
    (path,) = draw_figures(published, tmp_path, setting="published")
    assert path.name == "tiny-published.png"


def test_panels_are_error_false_discoveries_and_time_for_each_epsilon(tmp_path, drawn):
    draw_figures(results(["inftda", "tda-l2"], (0.1, 1.0, 10.0)), tmp_path)
    ((figure, legend),) = drawn
    labels = [axes.get_ylabel() for axes in figure.axes]
    panels = ["maximum absolute error", "false discovery rate (%)", "seconds per release"]
    assert labels == panels * 3
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert [title for title in titles if title] == ["epsilon = 0.1", "epsilon = 1", "epsilon = 10"]
    assert legend == ["InfTDA", "TDA, Euclidean"]
    assert all(axes.get_xlabel() for axes in figure.axes[-3:-1])


def test_bars_go_from_the_least_to_the_largest_of_the_runs(tmp_path, drawn):
    draw_figures(results(["inftda"]), tmp_path)
    ((figure, _),) = drawn
    bars = figure.axes[0].containers[0]
    means = list(bars.lines[0].get_ydata())
    assert means == [0.5, 10.5, 20.5]
    (segments,) = (lines.get_segments() for lines in bars.lines[2])
    assert [[float(y) for _, y in segment] for segment in segments] == [[0, 1], [10, 11], [20, 21]]
    rates = figure.axes[1].containers[0].lines[0].get_ydata()
    assert list(rates) == pytest.approx([0, 100 / 3, 200 / 3]), "in percent"


def test_a_mechanism_that_was_given_up_somewhere_is_still_in_the_legend(tmp_path, drawn):
    """Black boxes may finish at one epsilon only, and not at the first."""
    table = pa.concat_tables(
        [results(["inftda"], (0.1, 1.0)), results(["tda-l2-blackbox"], (1.0,))]
    )
    draw_figures(table, tmp_path)
    ((_, legend),) = drawn
    assert legend == ["InfTDA", "TDA, Euclidean, Clarabel"]


def test_a_mechanism_without_a_style_is_drawn_under_its_name(tmp_path, drawn):
    draw_figures(results(["inftda", "novel"]), tmp_path)
    ((_, legend),) = drawn
    assert legend == ["InfTDA", "novel"]


def test_mechanisms_are_told_apart_by_colour_and_by_marker():
    from inftda.mechanisms.catalogue import mechanism_names  # noqa: PLC0415

    colours, markers = ({style[i] for style in STYLES.values()} for i in (1, 2))
    assert len(colours) == len(markers) == len(STYLES)
    assert set(mechanism_names()) - set(STYLES) <= {"vanilla-gauss-clamped"}


def test_the_picture_of_zooming_in_is_written(tmp_path, drawn):
    table = results(["inftda", "vanilla-gauss"])
    draw_zoom_in(table, tmp_path / "zoom.png", dataset="tiny", epsilon=1.0)
    assert (tmp_path / "zoom.png").read_bytes().startswith(PNG)
    ((figure, _),) = drawn
    (panel,) = figure.axes
    assert panel.get_ylabel()
    assert panel.get_xlabel()
    # The total is not noised, so it is not an error one could zoom out to.
    assert [label.get_text() for label in panel.get_xticklabels()] == ["level 1", "level 2"]


def test_without_matplotlib_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"inftda\[experiments\]"):
        draw_figures(results(["inftda"]), tmp_path)
    assert figures.PANELS
