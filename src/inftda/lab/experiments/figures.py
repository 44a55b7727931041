"""The paper's figures: errors, false discoveries and times, with bars from minimum to maximum."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

from inftda.database import silence
from inftda.errors import MissingExtraError
from inftda.evaluation.evaluate import make_private
from inftda.lab.experiments.confidential import notice_of, write_private

#: Okabe and Ito's palette, which colour-blind people can distinguish; each with its own marker.
STYLES: Final = {
    "inftda": ("InfTDA", "#0072B2", "o"),
    "tda-l2": ("TDA, Euclidean", "#E69F00", "s"),
    "tda-linf": ("TDA, Chebyshev", "#009E73", "^"),
    "stability-histogram": ("Stability histogram", "#D55E00", "D"),
    "vanilla-gauss": ("VanillaGauss", "#CC79A7", "v"),
    "inftda-descending": ("InfTDA, descending", "#56B4E9", "P"),
    "tda-l2-blackbox": ("TDA, Euclidean, Clarabel", "#F0E442", "X"),
    "tda-linf-blackbox": ("TDA, Chebyshev, MILP", "#000000", "*"),
}
PANELS: Final = (
    ("max_abs_error", "maximum absolute error", "symlog"),
    ("false_discovery_rate", "false discovery rate (%)", "linear"),
)


def draw_figures(results: pa.Table, folder: Path, *, setting: str = "ours") -> list[Path]:
    """One picture for each data set, marked if it is confidential; returns their paths.

    Raises:
        MissingExtraError: matplotlib is not installed.
        InftdaError: the folder lies in a release or cannot be made.
    """
    pyplot = _pyplot()
    make_private(folder)
    paths = []
    with _means(results, setting) as connection:
        for (dataset,) in connection.sql(
            "SELECT DISTINCT dataset FROM means ORDER BY dataset"
        ).fetchall():
            path = folder / f"{dataset.replace(' ', '-')}-{setting}.png"
            _draw(pyplot, connection, dataset, path, notice=notice_of(results, dataset))
            paths.append(path)
    return paths


def draw_zoom_in(results: pa.Table, path: Path, *, dataset: str, epsilon: float) -> None:
    """One picture: the further one zooms out, the smaller the error; not so for baselines.

    Raises:
        MissingExtraError: matplotlib is not installed.
        InftdaError: the path lies in a release.
    """
    pyplot = _pyplot()
    with _means(results, "ours") as connection:
        # The total is not noised, so it is not an error one could zoom out to.
        connection.execute("DELETE FROM means WHERE level = 0")
        figure, panel = pyplot.subplots(figsize=(8.6, 4.2), layout="constrained")
        _draw_levels(panel, connection, dataset, epsilon, "max_abs_error")
    panel.set_yscale("log")
    panel.set_ylabel("largest error of any flow (trips)")
    panel.set_xlabel("zoomed out  \N{LEFT RIGHT ARROW}  zoomed in (from > to)")
    panel.tick_params(axis="x", labelsize=9)
    panel.legend(frameon=False)
    figure.suptitle(notice_of(results, dataset) or "")
    write_private(path, lambda partial: figure.savefig(partial, dpi=130))
    pyplot.close(figure)


@contextmanager
def _means(results: pa.Table, setting: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database with a table `means`: mean, least and largest of the runs of one setting."""
    with duckdb.connect() as connection:
        silence(connection)
        connection.register("results", results)
        connection.execute(
            "CREATE TABLE means AS SELECT dataset, mechanism, epsilon, level, measure, "
            "any_value(level_name) AS name, avg(value) AS mean, min(value) AS low, "
            "max(value) AS high FROM results WHERE setting = ? GROUP BY ALL",
            [setting],
        )
        yield connection


def _pyplot() -> Any:
    try:
        import matplotlib as mpl  # noqa: PLC0415 - optional, and slow to import
    except ImportError:
        raise MissingExtraError(
            "figures need matplotlib; install it with pip install 'inftda[experiments]'"
        ) from None
    mpl.use("Agg")
    from matplotlib import pyplot  # noqa: ICN001, PLC0415 - a name that explains itself

    return pyplot


def _draw(pyplot: Any, connection: Any, dataset: str, path: Path, *, notice: str | None) -> None:
    epsilons = [
        row[0]
        for row in connection.execute(
            "SELECT DISTINCT epsilon FROM means WHERE dataset = ? ORDER BY epsilon", [dataset]
        ).fetchall()
    ]
    figure, axes = pyplot.subplots(
        len(epsilons),
        3,
        figsize=(13, 3.1 * len(epsilons) + 0.7),
        squeeze=False,
        width_ratios=(1, 1, 0.55),
        layout="constrained",
    )
    for row, epsilon in zip(axes, epsilons, strict=True):
        for panel, (measure, label, scale) in zip(row[:2], PANELS, strict=True):
            _draw_levels(panel, connection, dataset, epsilon, measure)
            panel.set_ylabel(label)
            if scale == "symlog":
                panel.set_yscale("symlog", linthresh=1)
                panel.set_ylim(bottom=0)
            else:
                panel.set_ylim(-3, 103)
        _draw_times(row[2], connection, dataset, epsilon)
        row[0].set_title(f"epsilon = {epsilon:g}", loc="left", fontweight="bold")
    for panel in axes[-1][:2]:
        panel.set_xlabel("level of the tree (origin > destination)")
    # A mechanism may have been given up at some epsilons: look at all of them.
    shown: dict[str, Any] = {}
    for handle, label in (pair for row in axes for pair in _legend_of(row[0])):
        shown.setdefault(label, handle)
    figure.legend(
        shown.values(), shown, loc="outside lower center", ncols=len(shown), frameon=False
    )
    figure.suptitle(dataset if notice is None else f"{dataset}\n{notice}")
    write_private(path, lambda partial: figure.savefig(partial, dpi=110))
    pyplot.close(figure)


def _legend_of(panel: Any) -> list[tuple[Any, str]]:
    return list(zip(*panel.get_legend_handles_labels(), strict=True))


def _draw_levels(panel: Any, connection: Any, dataset: str, epsilon: float, measure: str) -> None:
    unit = 100 if measure.endswith("rate") else 1
    rows = connection.execute(
        "SELECT mechanism, level, name, mean, low, high FROM means WHERE dataset = ? AND "
        "epsilon = ? AND measure = ? ORDER BY level",
        [dataset, epsilon, measure],
    ).fetchall()
    names = {level: name for _, level, name, *_ in rows}
    for number, (mechanism, (label, colour, marker)) in enumerate(_present(rows)):
        mine = [row for row in rows if row[0] == mechanism]
        # Moved aside a little, so that bars do not hide one another.
        x = [level + 0.08 * (number - 2) for _, level, *_ in mine]
        mean = [unit * row[3] for row in mine]
        bars = [
            [m - unit * row[4] for m, row in zip(mean, mine, strict=True)],
            [unit * row[5] - m for m, row in zip(mean, mine, strict=True)],
        ]
        panel.errorbar(
            x, mean, yerr=bars, label=label, color=colour, marker=marker, markersize=4,
            linewidth=1.2, elinewidth=1, capsize=2,
        )  # fmt: skip
    levels = sorted(names)
    panel.set_xticks(levels)
    if len(levels) <= 9:
        panel.set_xticklabels([names[level] for level in levels], rotation=30, ha="right", size=7)
    panel.grid(axis="y", alpha=0.3)


def _draw_times(panel: Any, connection: Any, dataset: str, epsilon: float) -> None:
    rows = connection.execute(
        "SELECT mechanism, mean, low, high FROM means WHERE dataset = ? AND epsilon = ? "
        "AND measure = 'time'",
        [dataset, epsilon],
    ).fetchall()
    for number, (mechanism, (_, colour, _marker)) in enumerate(_present(rows)):
        _, mean, low, high = next(row for row in rows if row[0] == mechanism)
        panel.bar(number, mean, color=colour, yerr=[[mean - low], [high - mean]], capsize=3)
    panel.set_yscale("log")
    panel.set_ylabel("seconds per release")
    panel.set_xticks([])
    panel.grid(axis="y", alpha=0.3)


def _present(rows: list[tuple[Any, ...]]) -> list[tuple[str, tuple[str, str, str]]]:
    found = {row[0] for row in rows}
    known = [(name, style) for name, style in STYLES.items() if name in found]
    return known + [(name, (name, "#888888", ".")) for name in sorted(found - set(STYLES))]
