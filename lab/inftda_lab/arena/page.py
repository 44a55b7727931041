"""Figures of all tools as a page and a picture."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Final, NamedTuple

import matplotlib as mpl

from inftda_lab.arena.tools import TOOLS

#: Figures of one table: "table" describes it, "tools" has a result for each tool.
Results = Mapping[str, Mapping[str, Any]]

#: The one that the others are compared with.
OURS: Final = "inftda"
STYLE: Final[dict[Any, Any]] = {
    "font.size": 9,
    "font.family": "sans-serif",
    "savefig.facecolor": "white",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dde2e8",
    "svg.hashsalt": "inftda",
    "svg.fonttype": "none",
}
#: Colour and marker of each table.
MARKS: Final = (("#2a7f9e", "o"), ("#a92a44", "s"), ("#96770d", "^"), ("#5b5b8c", "D"))


class Measured(NamedTuple):
    """A column of the picture: heading, value of a run, whether its scale is logarithmic."""

    title: str
    value: Callable[[Mapping[str, Any]], float]
    is_log: bool


PANELS: Final = (
    Measured("part of the finest table\nthat is missing (%)",
             lambda run: 100 * (1 - run["levels"][-1]["common"]), is_log=False),
    Measured("largest error between\nthe coarsest areas",
             lambda run: run["levels"][0]["largest"], is_log=True),
    Measured("mean error of\norigin totals", lambda run: run["totals"][0], is_log=True),
    Measured("CPU seconds,\nfile to file", lambda run: run["cpu"], is_log=True),
)  # fmt: skip


def write_page(results: Results, page: Path, picture: Path) -> None:
    """Write the page and its picture.

    Args:
        results: figures by table.
        page: Markdown file.
        picture: SVG file; the page links to it.
    """
    _draw(results, picture)
    link = os.path.relpath(picture, page.parent)
    blocks = [_INTRODUCTION, f"![Errors and cost of each tool on each table]({link})", _CAPTION]
    blocks += ["## Ahead and behind", *_judgement(results)]
    for name, found in results.items():
        blocks += [f"## {name}", _described(found["table"]), _accuracy(found), _cost(found)]
        blocks += _remarks(found)
    blocks += ["## Tools", _tools(results), "## Method", _METHOD, "## Run it", _RUN]
    page.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")


_INTRODUCTION: Final = """\
# Compared with other tools

The same tables, budget and measures for all: epsilon 1, delta 1e-8, one trip per person, one \
person replaced by another.
`python -m inftda_lab.arena` made this page, with the versions that it states."""
_CAPTION: Final = """\
*Smaller is better in every column; the scales of the last three are logarithmic.
Tools without a mark could not be run or needed too much time: the tables say which.*"""
_METHOD: Final = """\
- Every tool reads files and writes files; time and memory are those of all its processes, \
start-up included.
  Kernels of `inftda` were compiled before.
- Figures are means over runs; time and memory are the least.
- The common part is twice the sum of the smaller of two flows, over the sum of both tables; \
negative flows count as 0.
- Mean errors are those of pairs with true flows.
- Totals are the mean absolute error of all origins or destinations of the finest level, as \
published, or else as sums.
- False flows are published and truly 0; lost flows are 10 or more and not published.
  Real-valued flows count as published from 0.5.
- A gap is the largest difference between a published number and the sum of published finer ones.
- The largest errors of the coarsest level are of few numbers, so they vary from run to run."""
_RUN: Final = """\
```text
python -m inftda_lab.arena --table FOLDER --tools inftda,mbi --out FOLDER
```

A table is a folder with `flows.parquet` (origin, destination, count), `areas.csv`, and \
`centroids.csv` where places are known.
Each rival gets an environment of its own, with pinned versions from PyPI; tmlt.analytics needs \
Java.
A tool that cannot be installed, or that uses more than `--limit` CPU seconds, is listed with the \
reason."""


def _ran(found: Mapping[str, Any]) -> dict[str, Sequence[Mapping[str, Any]]]:
    """Runs of each tool that has some."""
    return {name: result["runs"] for name, result in found["tools"].items() if result["runs"]}


def _mean(runs: Sequence[Mapping[str, Any]], of: Callable[[Mapping[str, Any]], float]) -> float:
    return fmean(of(run) for run in runs)


def _judgement(results: Results) -> list[str]:
    """Where the default release is behind, and what these tools have in other places."""
    lines = []
    for name, found in results.items():
        runs = _ran(found)
        if OURS not in runs:
            continue
        missing, coarse, totals, _ = (panel.value for panel in PANELS)
        ours = [_mean(runs[OURS], of) for of in (missing, coarse, totals)]
        better = [tool for tool in runs if _mean(runs[tool], missing) < ours[0]]
        better.sort(key=lambda tool: _mean(runs[tool], missing))
        lines.append(
            f"- {name}: the default release misses {ours[0]:.1f} % of the finest table, with "
            f"errors up to {_number(ours[1])} between the coarsest areas and of "
            f"{_number(ours[2])} on average in origin totals."
        )
        for tool in better:
            at = [_mean(runs[tool], of) for of in (missing, coarse, totals)]
            lines.append(
                f"    - {TOOLS[tool].label}: {at[0]:.1f} %, {_number(at[1])}, {_number(at[2])}."
            )
    behind = (
        "By single flows between the finest areas, the default release is behind the tools and "
        "options listed below it here, best first; each with the same three figures."
    )
    advice = (
        "Use flat Laplace noise with a threshold if nobody will sum up the flows: it keeps more of "
        "the finest table than any release here. "
        "Its sums are wrong, because dropped flows are missing in them.\n"
        "`--split pairs` and estimates are the options for readers who need both."
    )
    return [behind, "\n".join(lines), advice]


def _described(table: Mapping[str, Any]) -> str:
    levels = ", ".join(
        f"{n:,} {name}" for n, name in zip(table["areas"], table["levels"], strict=True)
    )
    return f"Areas by level: {levels}; {table['trips']:,} trips in {table['pairs']:,} pairs."


def _accuracy(found: Mapping[str, Any]) -> str:
    head = ("tool", "common part, finest", "largest error by level", "mean error by level",
            "totals, origin / destination", "false", "lost")  # fmt: skip
    rows = []
    for name, result in found["tools"].items():
        runs = result["runs"]
        if not runs:
            rows.append((_label(name), result["failed"], *[""] * (len(head) - 2)))
            continue
        n = range(len(runs[0]["levels"]))
        largest, mean = (
            [fmean(run["levels"][at][what] for run in runs) for at in n]
            for what in ("largest", "mean")
        )
        totals = [fmean(run["totals"][end] for run in runs) for end in (0, 1)]
        rows.append(
            (
                _label(name),
                f"{_mean(runs, lambda r: r['levels'][-1]['common']):.4f}",
                " ".join(map(_number, largest)),
                " ".join(map(_number, mean)),
                " / ".join(map(_number, totals)),
                f"{100 * _mean(runs, lambda r: r['false']):.1f} %",
                f"{100 * _mean(runs, lambda r: r['lost']):.1f} %",
            )
        )
    return _table(head, rows)


def _cost(found: Mapping[str, Any]) -> str:
    head = ("tool", "runs", "CPU seconds", "memory", "negative numbers", "largest gap")
    rows = []
    for name, runs in _ran(found).items():
        cpu, memory = (min(run[what] for run in runs) for what in ("cpu", "memory"))
        negative, gap = (fmean(run[what] for run in runs) for what in ("negative", "gap"))
        rows.append(
            (_label(name), str(len(runs)), f"{cpu:,.1f}", f"{memory:,} MB", _number(negative),
             _number(gap))
        )  # fmt: skip
    return _table(head, rows)


def _remarks(found: Mapping[str, Any]) -> list[str]:
    said = [
        f"- {_label(name)}: {'; '.join(dict.fromkeys(run['remark'] for run in runs))}."
        for name, runs in _ran(found).items()
        if runs[0]["remark"]
    ]
    return ["\n".join(said)] if said else []


def _tools(results: Results) -> str:
    """What was run, with versions."""
    used: dict[str, Mapping[str, Any]] = {}
    for found in results.values():
        used |= found["tools"]
    rows = [(_label(name), used[name]["version"] or "-", TOOLS[name].about) for name in used]
    pythons = ", ".join(sorted({result["python"] for result in used.values()}))
    dates = sorted({result["date"] for result in used.values()})
    return f"Run with Python {pythons} on {' and '.join(dates)}.\n\n" + _table(
        ("tool", "version", "how"), rows
    )


def _label(name: str) -> str:
    label = TOOLS[name].label
    return f"**{label}**" if TOOLS[name].is_ours else label


def _number(value: float) -> str:
    """A number as it is read: whole from 10 up."""
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def _draw(results: Results, path: Path) -> None:
    """A row for each tool, a column for each measure, a mark for each table."""
    mpl.use("svg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - after the backend is chosen

    names = list(dict.fromkeys(name for found in results.values() for name in found["tools"]))
    place = {name: -row for row, name in enumerate(names)}
    with mpl.rc_context(STYLE):
        figure, axes = plt.subplots(
            1, len(PANELS), figsize=(11, 0.3 * len(names) + 1.5), sharey=True, layout="constrained"
        )
        for axis, panel in zip(axes, PANELS, strict=True):
            for (table, found), (colour, mark) in zip(results.items(), MARKS, strict=False):
                runs = _ran(found)
                axis.plot(
                    [_mean(runs[name], panel.value) for name in runs],
                    [place[name] for name in runs],
                    linestyle="", marker=mark, color=colour, markersize=5, alpha=0.85, label=table,
                )  # fmt: skip
            if panel.is_log:
                axis.set_xscale("log")
            axis.set_title(panel.title, fontsize=9, loc="left")
            axis.tick_params(length=0)
        axes[0].set_yticks(list(place.values()), [TOOLS[name].label for name in names])
        for text, name in zip(axes[0].get_yticklabels(), names, strict=True):
            text.set_fontweight("bold" if TOOLS[name].is_ours else "normal")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)
