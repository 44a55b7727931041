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
    """A column of the picture: heading, and the value of several runs."""

    title: str
    value: Callable[[Sequence[Mapping[str, Any]]], float]


PANELS: Final = (
    Measured(
        "part of the finest table\nthat is missing (%)",
        lambda runs: 100 * fmean(1 - run["levels"][-1]["common"] for run in runs),
    ),
    Measured(
        "largest error between\nthe coarsest areas",
        lambda runs: fmean(run["levels"][0]["largest"] for run in runs),
    ),
    Measured("mean error of\norigin totals", lambda runs: fmean(run["totals"][0] for run in runs)),
    Measured("CPU seconds,\nfile to file", lambda runs: min(run["cpu"] for run in runs)),
)


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
*Smaller is better in every column; all scales are logarithmic.
Tools without a mark for a table were not run on it, or the rows below say why they failed.*"""
_AHEAD: Final = """\
The tables list the tools and options that are ahead of the default release in at least one of \
three figures, which is bold; the best for single flows come first.
All others are behind in all three."""
_ADVICE: Final = """\
Flat Laplace noise with a threshold suits readers who will not sum up the flows: in sums, the \
dropped flows are missing.
Estimates and `--split pairs` are for those who need both."""
_METHOD: Final = """\
- Every tool reads files and writes files; time and memory are those of all its processes, \
start-up included.
  Kernels of `inftda` were compiled before.
- Figures are means over runs; time and memory are the least.
- Only origins and destinations are compared; flows of other dimensions are added up.
- The limit of CPU seconds was not the same for all tools: a tool that exceeded it is listed \
with its own, and a fit that ran out of time says when.
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


def _judgement(results: Results) -> list[str]:
    """What is ahead of the default release, by each measure of error."""
    blocks = [_AHEAD]
    for name, found in results.items():
        values = {
            tool: [panel.value(runs) for panel in PANELS[:3]] for tool, runs in _ran(found).items()
        }
        if (ours := values.pop(OURS, None)) is None:
            continue
        rows = [(_label(OURS), *_judged(ours, ours))]
        for tool, theirs in sorted(values.items(), key=lambda item: item[1]):
            if any(a < b for a, b in zip(theirs, ours, strict=True)):
                rows.append((TOOLS[tool].label, *_judged(theirs, ours)))
        blocks.append(_table((name, *(" ".join(p.title.split()) for p in PANELS[:3])), rows))
    return [*blocks, _ADVICE]


def _judged(values: Sequence[float], ours: Sequence[float]) -> list[str]:
    """Figures of a tool, bold where they are smaller than ours."""
    words = [f"{values[0]:.1f}", *map(_number, values[1:])]
    smaller = [value < other for value, other in zip(values, ours, strict=True)]
    return [
        f"**{word}**" if is_bold else word for word, is_bold in zip(words, smaller, strict=True)
    ]


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
                f"{fmean(run['levels'][-1]['common'] for run in runs):.4f}",
                " ".join(map(_number, largest)),
                " ".join(map(_number, mean)),
                " / ".join(map(_number, totals)),
                *(f"{100 * fmean(run[what] for run in runs):.1f} %" for what in ("false", "lost")),
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


def _short(value: float, _: int) -> str:
    """A number at a mark of an axis."""
    if value >= 1_000_000:
        return f"{value / 1_000_000:g}M"
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"


def _draw(results: Results, path: Path) -> None:
    """A row for each tool, a column for each measure, a mark for each table."""
    mpl.use("svg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - after the backend is chosen
    from matplotlib import ticker  # noqa: PLC0415

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
                    [panel.value(runs[name]) for name in runs],
                    [place[name] for name in runs],
                    linestyle="", marker=mark, color=colour, markersize=5, alpha=0.85, label=table,
                )  # fmt: skip
            axis.set_xscale("log")
            low, high = axis.get_xlim()
            steps = (1, 2, 5) if high < 100 * low else (1,)
            axis.xaxis.set_major_locator(ticker.LogLocator(subs=steps))
            axis.xaxis.set_major_formatter(ticker.FuncFormatter(_short))
            axis.xaxis.set_minor_locator(ticker.NullLocator())
            axis.set_title(panel.title, fontsize=9, loc="left")
            axis.tick_params(length=0)
        axes[0].set_yticks(list(place.values()), [TOOLS[name].label for name in names])
        for text, name in zip(axes[0].get_yticklabels(), names, strict=True):
            text.set_fontweight("bold" if TOOLS[name].is_ours else "normal")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)
