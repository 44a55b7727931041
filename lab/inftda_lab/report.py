"""Results as a page: the paper's Table 1 and Figures 3 to 6, and its figures beside ours."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import duckdb
import matplotlib as mpl
import pyarrow as pa

from inftda_lab.baselines import PUBLISHED_NAMES
from inftda_lab.tables import SYNTHETIC, Table

#: Okabe and Ito's palette, which colour-blind people can distinguish; each with its own marker.
STYLES: Final = {
    "inftda": ("InfTDA", "#0072B2", "o"),
    "tda-l2": ("TDA, Euclidean", "#E69F00", "s"),
    "tda-linf": ("TDA, Chebyshev", "#009E73", "^"),
    "stability-histogram": ("Stability histogram", "#D55E00", "D"),
    "vanilla-gauss": ("VanillaGauss", "#CC79A7", "v"),
}
ERROR, FALSE, TIME = "max_abs_error", "false_discovery_rate", "time"
LABELS: Final = {
    ERROR: "maximum absolute error",
    FALSE: "false discovery rate (%)",
    TIME: "CPU seconds per release",
}
#: Measures of the published figures, with the factor between their unit and ours.
PUBLISHED_MEASURES: Final = {
    ERROR: ("max_error", 1),
    FALSE: ("false_discovery_rate", 100),
    "false_negative_rate": ("false_negative_rate", 100),
}
#: A mean reproduces a published figure if it lies in its range, widened by this share.
WIDENED: Final = 0.15

_MEANS: Final = (
    "CREATE TABLE means AS SELECT dataset, setting, mechanism, epsilon, level, measure, "
    "level_name AS name, count(*) AS runs, avg(value) AS mean, min(value) AS low, "
    "max(value) AS high "
    "FROM results GROUP BY ALL"
)
#: Means beside the published figures, and whether they reproduce them.
_BESIDE: Final = """CREATE TABLE beside AS
    SELECT m.*, m.mean * u.unit AS ours, p.min AS least, p.mean AS theirs, p.max AS most,
      ours BETWEEN least - {wide} * abs(least) - 1e-9 AND most + {wide} * abs(most) + 1e-9
        AS is_reproduced
    FROM means m JOIN (VALUES {names}) k(mechanism, known) USING (mechanism)
    JOIN (VALUES {units}) u(measure, metric, unit) USING (measure)
    JOIN read_csv(?) p ON p.mechanism = k.known AND p.metric = u.metric
      AND p.epsilon = m.epsilon AND p.level = m.level
      AND p.dataset = CASE WHEN m.dataset LIKE 'italy%' THEN 'Italy' ELSE m.dataset END"""


@contextmanager
def means_of(results: pa.Table, published: Path | None = None) -> Iterator[Any]:
    """A database with the means of results, and with published figures beside them."""
    names = ", ".join(f"('{ours}', '{theirs}')" for ours, theirs in PUBLISHED_NAMES.items())
    units = ", ".join(f"('{m}', '{t}', {u})" for m, (t, u) in PUBLISHED_MEASURES.items())
    with duckdb.connect() as db:
        db.register("results", results)
        db.execute(_MEANS)
        if published is not None:
            beside = _BESIDE.format(wide=WIDENED, names=names, units=units)
            db.execute(beside, [str(published)])
        yield db


def write_report(
    db: Any, tables: Sequence[Table], out: Path, *, has_published: bool = False
) -> None:
    """Write `summary.md` and the pictures into a folder.

    Args:
        db: of `means_of`.
        tables: what was released.
        out: the folder.
        has_published: whether there are published figures to compare with.
    """
    blocks = ["# The paper reproduced", "## Table 1: the data sets", _data_sets(tables)]
    if has_published:
        blocks += _beside(db)
    blocks += _finest(db)
    for picture in draw_figures(db, out):
        blocks.append(f"![{picture.stem}]({picture.name})")
    (out / "summary.md").write_text("\n\n".join(blocks) + "\n", encoding="utf-8")


def _data_sets(tables: Sequence[Table]) -> str:
    rows = [
        (
            table.name,
            " / ".join(f"{table.areas.n_areas(n):,}" for n in range(1, table.areas.depth + 1)),
            f"{table.total:,}",
            f"{len(table.count):,}",
        )
        for table in tables
    ]
    return as_table(("data set", "areas by level", "users", "pairs"), rows)


def _beside(db: Any) -> list[str]:
    """How many published figures are reproduced, and what the right budget gains."""
    reproduced = db.execute(
        "SELECT mechanism, measure, count(*), printf('%.1f %%', 100 * avg(is_reproduced::INT)) "
        "FROM beside WHERE setting = 'published' GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    gained = db.execute(
        "SELECT dataset, name, epsilon, round(ours, 1), round(theirs, 1), round(theirs / ours, 2) "
        "FROM beside WHERE setting = 'ours' AND mechanism = 'inftda' AND level > 0 "
        "AND measure = 'max_abs_error' ORDER BY dataset, level, epsilon"
    ).fetchall()
    about = (
        "Half of the budget for the top-down mechanisms, l1 sensitivity sqrt(2) for the stability "
        "histogram: these settings do not give the privacy that they state. A figure (one level at "
        "one epsilon) is reproduced if the mean of our runs lies in the published range from "
        f"minimum to maximum, widened by {WIDENED:.0%}."
    )
    return [
        "## With the published settings",
        about,
        as_table(("mechanism", "measure", "figures", "reproduced"), reproduced),
        "## With the whole budget: maximum absolute error of InfTDA",
        as_table(("data set", "level", "epsilon", "ours", "published", "factor"), gained),
    ]


def _finest(db: Any) -> list[str]:
    """All mechanisms with the guarantee that they state, at the finest level."""
    shown = {ERROR: "%.1f", FALSE: "%.3f", "false_negative_rate": "%.3f", "common_part": "%.4f"}
    columns = ", ".join(
        f"printf('{form}', any_value(mean) FILTER (measure = '{name}'))"
        for name, form in shown.items()
    )
    rows = db.execute(
        f"SELECT dataset, epsilon, mechanism, {columns} FROM means m WHERE setting = 'ours' AND "  # noqa: S608 - constants
        "level = (SELECT max(level) FROM means WHERE dataset = m.dataset) "
        "GROUP BY ALL ORDER BY dataset, epsilon, mechanism"
    ).fetchall()
    head = ("data set", "epsilon", "mechanism", "max error", "false discoveries",
            "false negatives", "common part")  # fmt: skip
    return ["## All mechanisms with the whole budget, at the finest level", as_table(head, rows)]


def draw_figures(db: Any, out: Path) -> list[Path]:
    """The paper's Figure 3 for each real table, and its Figures 4, 5 and 6 for synthetic ones."""
    mpl.use("Agg")
    every = [name for (name,) in db.execute("SELECT DISTINCT dataset FROM means").fetchall()]
    made = [
        _draw([name], (ERROR, FALSE, TIME), db, out / f"figure-3-{name}.png")
        for name in sorted(set(every) - set(SYNTHETIC))
    ]
    if synthetic := [name for name in SYNTHETIC if name in every]:
        for number, what in ((4, ERROR), (5, FALSE), (6, TIME)):
            made.append(_draw(synthetic, (what,), db, out / f"figure-{number}.png"))
    return made


def _draw(names: Sequence[str], measures: Sequence[str], db: Any, path: Path) -> Path:
    """A row of panels for each table and measure, a column for each epsilon."""
    from matplotlib import pyplot  # noqa: ICN001, PLC0415 - after the backend is chosen

    epsilons = [
        e for (e,) in db.execute("SELECT DISTINCT epsilon FROM means ORDER BY 1").fetchall()
    ]
    rows = [(name, what) for name in names for what in measures]
    figure, axes = pyplot.subplots(
        len(rows),
        len(epsilons),
        figsize=(3.6 * len(epsilons), 2.6 * len(rows) + 0.7),
        squeeze=False,
        layout="constrained",
    )
    for row, (name, what) in zip(axes, rows, strict=True):
        for panel, epsilon in zip(row, epsilons, strict=True):
            _panel(panel, db, name, epsilon, what)
            panel.set_title(f"{name}, epsilon = {epsilon:g}", fontsize=8)
            panel.set_ylabel(LABELS[what], fontsize=8)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return path


def _panel(panel: Any, db: Any, name: str, epsilon: float, what: str) -> None:
    """Means by level, with bars from the least to the largest run; times as bars."""
    rows = db.execute(
        "SELECT mechanism, level, mean, low, high FROM means WHERE setting = 'ours' AND "
        "dataset = ? AND epsilon = ? AND measure = ? AND (level >= 0 OR measure = 'time') "
        "ORDER BY level",
        [name, epsilon, what],
    ).fetchall()
    unit = 100 if what == FALSE else 1
    for number, (mechanism, (label, colour, marker)) in enumerate(STYLES.items()):
        mine = [row for row in rows if row[0] == mechanism]
        mean = [unit * row[2] for row in mine]
        bars = [
            [unit * (row[2] - row[3]) for row in mine],
            [unit * (row[4] - row[2]) for row in mine],
        ]
        if what == TIME:
            panel.bar([number] * len(mine), mean, yerr=bars, color=colour, label=label, capsize=3)
        else:
            # Moved aside a little, so that bars do not hide one another.
            x = [row[1] + 0.08 * (number - 2) for row in mine]
            panel.errorbar(
                x, mean, yerr=bars, label=label, color=colour, marker=marker, markersize=3,
                linewidth=1, capsize=2,
            )  # fmt: skip
    if what == ERROR:
        panel.set_yscale("symlog", linthresh=1)
    elif what == FALSE:
        panel.set_ylim(-3, 103)
    else:
        panel.set_yscale("log")
        panel.set_xticks([])
    panel.grid(axis="y", alpha=0.3)


def as_table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table of a page."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])
