"""Results as a Markdown page: ours beside the published figures, better and worse alike."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

from inftda.database import silence
from inftda.errors import InftdaError
from inftda.evaluation.evaluate import NOTICE
from inftda.evaluation.intervals import LEAST
from inftda.lab.experiments.confidential import write_private
from inftda.lab.experiments.estimates import PREFIXES, RELEASED
from inftda.lab.experiments.spec import Spec
from inftda.lattice import DEFAULT_SHARE

#: How the published figures call our mechanisms and measures, and in which unit.
PUBLISHED_NAMES: Final = {
    "inftda": "InfTDA",
    "stability-histogram": "SH",
    "vanilla-gauss": "VanillaGauss",
    "tda-l2": "TDA_l2",
    "tda-linf": "TDA_linf",
}
PUBLISHED_MEASURES: Final = {
    "max_abs_error": ("max_error", 1.0),
    "false_discovery_rate": ("false_discovery_rate", 100.0),
    "false_negative_rate": ("false_negative_rate", 100.0),
}
PUBLISHED_COLUMNS: Final = {
    "dataset": "VARCHAR",
    "mechanism": "VARCHAR",
    "epsilon": "DOUBLE",
    "level": "BIGINT",
    "metric": "VARCHAR",
    "min": "DOUBLE",
    "mean": "DOUBLE",
    "max": "DOUBLE",
}
#: A mean reproduces a published figure if it lies in its range, widened by this share.
WIDENED: Final = 0.15


def write_summary(
    results: pa.Table, spec: Spec, path: Path, *, published: Path | None, figures: list[Path]
) -> None:
    """Write the page; it says which data sets are confidential.

    Args:
        results: of `run_experiment`.
        spec: what was run.
        path: of the page.
        published: CSV of published figures (dataset, mechanism, epsilon, level, metric,
            min, mean, max), or None.
        figures: pictures to show, relative to the page.

    Raises:
        InftdaError: the published figures cannot be read, or the path lies in a release.
    """
    with duckdb.connect() as connection:
        silence(connection)
        connection.register("results", results)
        page = _Page(connection, spec)
        if published is not None:
            page.load_published(published)
        blocks = list(page.blocks(figures))
    text = "\n\n".join(blocks) + "\n"
    write_private(path, lambda partial: partial.write_text(text, encoding="utf-8"))


def read_published(path: Path) -> pa.Table:
    """Published figures: a CSV file with the columns `write_summary` describes.

    Raises:
        InftdaError: it cannot be read as that.
    """
    columns = ", ".join(f'"{name}"::{kind} AS "{name}"' for name, kind in PUBLISHED_COLUMNS.items())
    try:
        with duckdb.connect() as connection:
            silence(connection)
            return connection.read_csv(str(path)).project(columns).to_arrow_table()
    except duckdb.Error:
        raise InftdaError(
            f"cannot read the published figures {str(path)!r}; give a CSV file with the "
            f"columns {', '.join(PUBLISHED_COLUMNS)}"
        ) from None


class _Page:
    """Makes the sections of the page from tidy results."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, spec: Spec) -> None:
        self.connection, self.spec = connection, spec
        self.has_published = False
        connection.execute(
            "CREATE TABLE means AS SELECT dataset, setting, mechanism, epsilon, level, "
            "level_name, measure, avg(value) AS mean, "
            "min(value) AS low, max(value) AS high, count(*) AS runs FROM results GROUP BY ALL"
        )

    def load_published(self, path: Path) -> None:
        self.connection.register("published_file", read_published(path))
        rows = [
            (dataset.name, dataset.published) for dataset in self.spec.datasets if dataset.published
        ]
        self.connection.execute("CREATE TABLE names (dataset VARCHAR, published VARCHAR)")
        self.connection.execute("CREATE TABLE mechanisms (mechanism VARCHAR, published VARCHAR)")
        self.connection.execute(
            "CREATE TABLE measures (measure VARCHAR, published VARCHAR, unit DOUBLE)"
        )
        if not rows:
            return
        self.connection.executemany("INSERT INTO names VALUES (?, ?)", rows)
        self.connection.executemany(
            "INSERT INTO mechanisms VALUES (?, ?)", list(PUBLISHED_NAMES.items())
        )
        self.connection.executemany(
            "INSERT INTO measures VALUES (?, ?, ?)",
            [(ours, theirs, unit) for ours, (theirs, unit) in PUBLISHED_MEASURES.items()],
        )
        self.connection.execute(
            f"""CREATE TABLE beside AS
            SELECT m.*, m.mean * u.unit AS ours, p.min AS published_low, p.mean AS published_mean,
                   p.max AS published_high,
                   m.mean * u.unit BETWEEN p.min - {WIDENED} * abs(p.min) - 1e-9
                                       AND p.max + {WIDENED} * abs(p.max) + 1e-9 AS is_within
            FROM means m JOIN names n USING (dataset) JOIN mechanisms k USING (mechanism)
                 JOIN measures u USING (measure)
                 JOIN published_file p ON p.dataset = n.published AND p.mechanism = k.published
                  AND p.epsilon = m.epsilon AND p.level = m.level AND p.metric = u.published"""  # noqa: S608 - a constant
        )
        self.has_published = True

    def blocks(self, figures: list[Path]) -> Iterator[str]:
        yield "# Results"
        if self.spec.confidential:
            yield f"**{NOTICE}.** Confidential data sets: {', '.join(self.spec.confidential)}."
        yield (
            f"Made by `inftda experiment`: {self.spec.runs} runs, delta = {self.spec.delta:g}, "
            "one trip per person, neighbours by substitution. Errors count missing cells as zero. "
            "Lower is better everywhere but for the common part of commuters."
        )
        if self.has_published and "published" in self.spec.settings:
            yield from self._reproduction()
        if self.has_published and "ours" in self.spec.settings:
            yield from self._gain()
            yield from self._times()
        if "ours" in self.spec.settings:
            yield from self._comparison()
            yield from self._worse()
        if {"ours", "across"} <= {*self.spec.settings}:
            yield from self._across()
        if self.spec.estimates:
            yield from self._estimates()
        for figure in figures:
            yield f"![{figure.stem.replace('-', ' ')}]({figure.as_posix()})"

    def _rows(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        return list(self.connection.execute(query, list(values)).fetchall())

    def _reproduction(self) -> Iterator[str]:
        yield "## With the published settings: the paper reproduced"
        yield (
            "Half of the budget and the accountant `paper` for the top-down mechanisms, "
            "l1 sensitivity sqrt(2) for the stability histogram, as the published figures were "
            "made. These settings do not give the privacy they state; no release can use them. "
            f"A cell is one level at one epsilon; it is reproduced if the mean of our runs lies "
            f"in the published range from minimum to maximum, widened by {WIDENED:.0%}."
        )
        yield _table(
            ("mechanism", "measure", "cells", "reproduced"),
            self._rows(
                "SELECT mechanism, measure, count(*), "
                "printf('%.1f %%', 100 * avg(is_within::INT)) FROM beside "
                "WHERE setting = 'published' AND dataset IN (SELECT dataset FROM names "
                "WHERE published <> 'Italy') GROUP BY ALL ORDER BY ALL"
            ),
        )
        others = self._rows(
            "SELECT dataset, mechanism, epsilon, level_name, measure, round(ours, 2), "
            "round(published_low, 2), round(published_high, 2) FROM beside "
            "WHERE setting = 'published' AND NOT is_within AND dataset IN "
            "(SELECT dataset FROM names WHERE published <> 'Italy') ORDER BY ALL"
        )
        yield f"Cells outside of the widened range: {len(others)}."
        if others:
            yield _table(
                ("data set", "mechanism", "epsilon", "level", "measure", "ours", "min", "max"),
                others,
            )

    def _gain(self) -> Iterator[str]:
        yield "## With our default: what is gained"
        yield (
            "The accountant `auto`, the whole budget. Maximum absolute error of InfTDA, mean over "
            "runs, beside the published mean for the same epsilon and delta; the factor is "
            "published / ours. `italy_semisynthetic` stands in for the paper's Italian table, "
            "which is not the same data: a gravity model fitted to the true margins."
        )
        for dataset in self.spec.datasets:
            rows = self._rows(
                "SELECT level_name, epsilon, round(ours, 1), round(published_mean, 1), "
                "round(published_mean / ours, 2) FROM beside WHERE setting = 'ours' "
                "AND dataset = ? AND mechanism = 'inftda' "
                "AND measure = 'max_abs_error' AND level > 0 ORDER BY level, epsilon",
                dataset.name,
            )
            if rows:
                yield f"### {dataset.name}"
                yield _pivot(rows, self.spec.epsilons)

    def _times(self) -> Iterator[str]:
        rows = self._rows(
            "SELECT m.dataset, m.mechanism, m.epsilon, round(m.mean, 3), round(p.mean, 1), "
            "round(p.mean / m.mean) FROM means m JOIN names n USING (dataset) "
            "JOIN mechanisms k USING (mechanism) JOIN published_file p ON p.dataset = n.published "
            "AND p.mechanism = k.published AND p.epsilon = m.epsilon AND p.metric = 'time' "
            "WHERE m.setting = 'ours' AND m.measure = 'time' ORDER BY ALL"
        )
        if rows:
            yield "## Running time"
            yield (
                "Seconds per release, from counts to released leaves; the published ones were "
                "measured on another machine, with eight cores at 3.9 GHz."
            )
            yield _table(("data set", "mechanism", "epsilon", "ours", "published", "factor"), rows)

    def _comparison(self) -> Iterator[str]:
        yield "## All mechanisms with our default, at the finest level"
        for dataset in self.spec.datasets:
            rows = self._rows(
                f"SELECT mechanism, epsilon, {_SHOWN_COLUMNS} "  # noqa: S608 - a constant
                "FROM means WHERE setting = 'ours' "
                "AND dataset = ? AND (measure = 'time' OR level = "
                "(SELECT max(level) FROM means WHERE dataset = ?)) "
                "GROUP BY mechanism, epsilon ORDER BY epsilon, mechanism",
                dataset.name,
                dataset.name,
            )
            if rows:
                yield f"### {dataset.name}"
                yield _table(
                    (
                        "mechanism", "epsilon", "max error", "mean error of non-zero cells",
                        "false discoveries", "false negatives", "common part", "seconds",
                    ),
                    rows,
                )  # fmt: skip

    def _across(self) -> Iterator[str]:
        yield "## Totals across the tree"
        yield (
            f"InfTDA with and without `across={float(DEFAULT_SHARE):g}`, means over runs, without "
            "> with. A total is the sum of the flows of an area on one axis, where the tree does "
            "not have it: largest and mean error over all areas, and the relative error of the "
            "2 % largest together."
        )
        for dataset in self.spec.datasets:
            rows = self._rows(
                "SELECT level_name, epsilon, "  # noqa: S608 - constants
                f"{_both('total_max_abs_error', '%.0f')}, {_both('total_mean_abs_error', '%.1f')}, "
                f"{_both('100 * total_bias_of_largest', '%+.2f %%')} FROM means "
                "WHERE dataset = ? AND mechanism = 'inftda' AND starts_with(measure, 'total_') "
                "GROUP BY level_name, epsilon ORDER BY epsilon, level_name",
                dataset.name,
            )
            yield f"### {dataset.name}"
            head = ("total", "epsilon", "max error", "mean error", "bias of the largest")
            yield _table(head, rows)
            yield "What it costs along the tree:"
            rows = self._rows(
                "SELECT level_name, epsilon, "  # noqa: S608 - constants
                f"{_both('max_abs_error', '%.1f')}, {_both('mean_abs_error_nonzero', '%.2f')}, "
                f"{_both('false_discovery_rate', '%.3f')}, {_both('common_part', '%.4f')} "
                "FROM means WHERE dataset = ? AND mechanism = 'inftda' AND level > 0 "
                "GROUP BY level, level_name, epsilon ORDER BY epsilon, level",
                dataset.name,
            )
            yield _table(
                ("level", "epsilon", "max error", "mean error of non-zero cells",
                 "false discoveries", "common part"),
                rows,
            )  # fmt: skip

    def _estimates(self) -> Iterator[str]:
        yield "## Estimates and intervals"
        yield (
            "Releases with measurements and the estimates that were made from these, means over "
            "runs, release \N{RIGHTWARDS ARROW} estimate: common part of commuters, root mean "
            "squared error over all cells, and largest error, between finest areas; mean errors "
            "of their totals on each axis. Coverage is the lowest of any class of published size "
            f"with {LEAST:,} numbers, at any level and in any run, of intervals stated at 95 %."
        )
        axes = [
            name
            for (name,) in self._rows(
                "SELECT level_name FROM means WHERE measure = ? GROUP BY level_name "
                "ORDER BY level_name <> 'origin', level_name <> 'destination', level_name",
                f"{RELEASED}total_mean_abs_error",
            )
        ]
        figures = [("common_part", "%.3f", ""), ("rmse", "%.3g", ""), ("max_abs_error", "%.0f", "")]
        figures += [("total_mean_abs_error", "%.3g", axis) for axis in axes]
        shown = ", ".join(_gained(*figure) for figure in figures)
        rows = self._rows(
            f"SELECT dataset, mechanism, epsilon, {_SHARE}, {shown}, {_COVERAGE} "  # noqa: S608 - constants, and names of axes
            "FROM means WHERE starts_with(measure, ?) OR starts_with(measure, ?) "
            "GROUP BY dataset, mechanism, epsilon, setting "
            "ORDER BY dataset, mechanism, epsilon, setting DESC",
            *PREFIXES,
        )
        totals = [f"total of {axis}" for axis in axes]
        yield _table(
            ("data set", "mechanism", "epsilon", "across", "common part", "RMSE", "max error",
             *totals, "lowest coverage"),
            rows,
        )  # fmt: skip

    def _worse(self) -> Iterator[str]:
        yield "## Where InfTDA is worse than another mechanism"
        yield (
            "Cells (data set, epsilon, level) in which another mechanism has a lower mean of the "
            "maximum error by more than 5 %, and the share of all its cells."
        )
        yield _table(
            ("mechanism", "level", "cells where it is better", "of", "median factor there"),
            self._rows(
                "SELECT o.mechanism, CASE WHEN o.level = l.leaves THEN 'finest' ELSE 'coarser' END,"
                " count(*) FILTER (o.mean < 0.95 * i.mean), count(*), "
                "round(median(i.mean / o.mean) FILTER (o.mean < 0.95 * i.mean), 2) "
                "FROM means o JOIN means i ON o.dataset = i.dataset AND o.setting = i.setting "
                "AND o.epsilon = i.epsilon AND o.level = i.level AND o.measure = i.measure "
                "JOIN (SELECT dataset, max(level) AS leaves FROM means GROUP BY ALL) l "
                "ON l.dataset = o.dataset "
                "WHERE o.setting = 'ours' AND i.mechanism = 'inftda' AND o.mechanism <> 'inftda' "
                "AND o.measure = 'max_abs_error' AND o.level > 0 GROUP BY ALL ORDER BY ALL"
            ),
        )


_SHOWN: Final = (
    ("max_abs_error", "%.1f"),
    ("mean_abs_error_nonzero", "%.2f"),
    ("false_discovery_rate", "%.3f"),
    ("false_negative_rate", "%.3f"),
    ("common_part", "%.4f"),
    ("time", "%.3f"),
)
_SHOWN_COLUMNS: Final = ", ".join(
    f"printf('{shown}', any_value(mean) FILTER (measure = '{name}'))" for name, shown in _SHOWN
)


def _both(measure: str, shown: str) -> str:
    """SQL for a mean without and with totals across; `measure` may have a factor before it."""
    factor, _, name = measure.rpartition(" * ")
    means = [
        f"printf('{shown}', {factor or 1} * "
        f"any_value(mean) FILTER (setting = '{setting}' AND measure = '{name}'))"
        for setting in ("ours", "across")
    ]
    return " || ' > ' || ".join(means)


_SHARE: Final = f"CASE setting WHEN 'across' THEN '{float(DEFAULT_SHARE):g}' ELSE '0' END"
_COVERAGE: Final = (
    "coalesce(printf('%.1f %%', 100 * min(low) FILTER (measure = "
    f"'{RELEASED}lowest_coverage')), 'too few')"
)


def _gained(measure: str, shown: str, axis: str) -> str:
    """SQL for a mean of releases and of estimates; of the totals of an axis, if one is named."""
    quoted = axis.replace("'", "''")
    means = [
        f"printf('{shown}', any_value(mean) FILTER (measure = '{prefix}{measure}' "
        f"AND level_name = '{quoted}'))"
        for prefix in PREFIXES
    ]
    return " || ' \N{RIGHTWARDS ARROW} ' || ".join(means)


def _table(head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join("" if c is None else str(c) for c in row) + " |" for row in rows]
    return "\n".join(lines)


def _pivot(rows: list[tuple[Any, ...]], epsilons: tuple[float, ...]) -> str:
    """Levels down, epsilons across; each with ours, published and the factor."""
    cells = {(name, epsilon): figures for name, epsilon, *figures in rows}
    names = list(dict.fromkeys(name for name, *_ in rows))
    head = ["level"]
    for epsilon in epsilons:
        head += [f"ours, epsilon {epsilon:g}", "published", "factor"]
    body = [
        (name, *(figure for e in epsilons for figure in cells.get((name, e), ("", "", ""))))
        for name in names
    ]
    return _table(tuple(head), body)
