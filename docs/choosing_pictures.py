# ruff: noqa: INP001 - a script of the documentation, not a package
"""The pictures of "Accuracy in practice", from public tables.

    PYTHONPATH=lab python docs/choosing_pictures.py DATA

`DATA` holds one folder for each public table (`belgium_2011`, `paris_2014`,
`nz_education_2018`), each with `flows.parquet` and `areas.csv`. Writes to `docs/img`.
"""

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pyarrow as pa

mpl.use("svg")

import matplotlib.pyplot as plt

from inftda.confidential.compare import compare
from inftda.planning.findings import Preview
from inftda.planning.preview import preview
from inftda.planning.stand_in import from_flows
from inftda.reading.columns import Columns
from inftda.tree import Tree
from inftda.tree.hierarchy import Hierarchy
from inftda_lab.attack import attack_table
from inftda_lab.tables import read_table

HERE = Path(__file__).parent / "img"
EPSILONS = (0.25, 0.5, 1, 2, 5)
DELTA = 1e-8
TABLES = {
    "belgium_2011": "Belgium, commuting",
    "paris_2014": "Paris, commuting",
    "nz_education_2018": "New Zealand, education",
}
METHODS = ("suppress:10", "round:5", "cell-key", "inftda")
#: Levels of Belgium that are drawn, with their colours.
SHOWN = {
    "province > province": "#2a7f9e",
    "arrondissement > arrondissement": "#96770d",
    "municipality > municipality": "#a92a44",
}
STYLE = {
    "font.size": 10,
    "font.family": "sans-serif",
    "savefig.facecolor": "white",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dde2e8",
    "svg.hashsalt": "inftda",
    "svg.fonttype": "none",
}


def main() -> None:
    """Make all pictures."""
    data = Path(sys.argv[1])
    with mpl.rc_context(STYLE):
        draw_preview(data / "belgium_2011")
        draw_methods(data)


def draw_preview(folder: Path) -> None:
    """What a coarse public table says beforehand, and what happens to the fine one."""
    areas = Hierarchy.read(folder / "areas.csv")
    flows = str(folder / "flows.parquet")
    columns = Columns(repeated_rows="add")
    budget: dict[str, Any] = {"epsilon": EPSILONS, "delta": DELTA, "runs": 3, "columns": columns}
    found = preview(areas, stand_in=flows, **budget)
    coarse = _coarse(areas, flows, "arrondissement")
    stated = preview(areas, stand_in=coarse, stand_in_level="arrondissement", **budget)
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.6), layout="constrained")
    for name, colour in SHOWN.items():
        for tried, mark in ((stated, "-"), (found, "o")):
            left.plot(EPSILONS, _of(tried, name, "p95"), mark, color=colour, markersize=5)
            right.plot(EPSILONS, _of(tried, name, "trips"), mark, color=colour, markersize=5)
        left.plot([], [], color=colour, label=name.replace(" > ", " → "))
    left.plot([], [], "-", color="#556270", label="preview, from arrondissements")
    left.plot([], [], "o", color="#556270", label="the municipal table itself")
    left.set(xscale="log", yscale="log", xlabel="epsilon", title="95 % of numbers within (trips)")
    right.set(xscale="log", xlabel="epsilon", title="Trips in usable numbers")
    right.set_ylim(0, 1.02)
    right.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
    for axes in (left, right):
        axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
        axes.minorticks_off()
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    _save(figure, "preview-belgium.svg")


def draw_methods(data: Path) -> None:
    """Accuracy and disclosure of what offices do, and of a release at epsilon 1."""
    figure, panels = plt.subplots(
        2, len(TABLES), figsize=(8.6, 4.0), sharey=True, layout="constrained"
    )
    for column, (name, title) in enumerate(TABLES.items()):
        folder = data / name
        compared = compare(
            str(folder / "flows.parquet"), folder / "areas.csv", methods=METHODS, epsilon=1.0,
            delta=DELTA, seed=1, columns=Columns(repeated_rows="add"),
        )  # fmt: skip
        labels = [one.label for one in compared.results]
        kept = [one.levels[-1].common_part for one in compared.results]
        attacked = [
            None if one.is_guaranteed else attack_table(read_table(folder), one.method)
            for one in compared.results
        ]
        seen = [0.0 if found is None else found.n_reidentified / found.trips for found in attacked]
        for axes, values, colour, digits in (
            (panels[0, column], kept, "#2c6cb0", 1),
            (panels[1, column], seen, "#c2410c", 0),
        ):
            axes.barh(labels, values, color=colour, height=0.62)
            axes.set_xlim(0, 1.25)
            axes.set_xticks([0, 0.5, 1], ["0", "50 %", "100 %"])
            for at, value in enumerate(values):
                is_bounded = colour == "#c2410c" and compared.results[at].is_guaranteed
                words = "bounded by epsilon" if is_bounded else f"{100 * value:.{digits}f} %"
                axes.text(value + 0.02, at, words, va="center", fontsize=8)
        panels[0, column].set_title(f"{title}\ncommon part of trips", fontsize=9)
        panels[1, column].set_title("persons seen in two editions", fontsize=9)
    panels[0, 0].invert_yaxis()  # and all others with it
    _save(figure, "methods-compared.svg")


def _coarse(areas: Hierarchy, flows: str, level: str) -> pa.Table:
    """The same table by coarser areas, as somebody may have published it."""
    leaves, count = from_flows(Tree.destination_first(areas), flows).counts.leaves
    depth = areas.level_of(level)
    above, codes = areas.ancestor(areas.depth, depth), areas.codes(depth)
    origin, destination = (codes.take(pa.array(above[axis])) for axis in leaves)
    return pa.table({"origin": origin, "destination": destination, "count": count})


def _of(tried: Preview, name: str, what: str) -> list[float]:
    levels = [next(it for it in one.levels if it.name == name) for one in tried.settings]
    if what == "p95":
        return [level.p95 for level in levels]
    return [level.usable.trips for level in levels]


def _save(figure: Any, name: str) -> None:
    figure.savefig(HERE / name, metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    main()
