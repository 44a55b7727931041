"""The figures of the guide "Reproduce the paper", and all figures as CSV.

Figures stand in the page between `<!-- figures: NAME -->` and `<!-- end -->`, and are replaced.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from inftda_lab.levels import NO_LEVEL
from inftda_lab.report import as_table

#: A baseline is better if its mean is smaller by more than this share.
BETTER: Final = 0.05
_FINEST: Final = "level = (SELECT max(level) FROM means f WHERE f.dataset = m.dataset)"
#: One row for each data set and epsilon: a measure of two of our methods side by side.
_PAIR: Final = """
    SELECT dataset, epsilon, measure, level_name, a.mean AS before, b.mean AS after
    FROM (SELECT *, name AS level_name FROM means m WHERE {where}) a
    JOIN (SELECT *, name AS level_name FROM means m WHERE {where}) b
    USING (dataset, setting, epsilon, measure, level, level_name)
    WHERE a.mechanism = '{first}' AND b.mechanism = '{second}'"""


def write_csv(db: Any, path: Path) -> None:
    """Write means, with the published ones where there are some.

    Of levels above the finest one the largest error only, and what was published.
    """
    db.sql(
        "SELECT m.dataset AS data_set, m.mechanism, m.setting, m.epsilon, m.name AS level, "
        "m.measure, m.runs, printf('%.5g', m.mean)::DOUBLE AS mean, b.theirs AS published_mean "
        "FROM means m LEFT JOIN beside b USING (dataset, setting, mechanism, epsilon, level, "
        f"measure) WHERE m.level != 0 AND (m.level = {NO_LEVEL} OR m.measure = 'max_abs_error' OR "
        f"m.{_FINEST} OR b.theirs IS NOT NULL) ORDER BY ALL"
    ).write_csv(str(path))


def fill(db: Any, page: Path) -> None:
    """Replace the figures of a page.

    Raises:
        KeyError: the page asks for figures that there are not.
    """
    old = page.read_text(encoding="utf-8")
    parts = re.compile(r"(<!-- figures: ([a-z ]+) -->\n).*?(\n<!-- end -->)", re.DOTALL)
    new = parts.sub(lambda m: f"{m[1]}\n{_FIGURES[m[2]](db)}\n{m[3]}", old)
    page.write_text(new, encoding="utf-8")


def _runs(db: Any) -> str:
    """How often each data set was released; rows are alike in runs and values of epsilon."""
    rows = db.execute(
        "SELECT runs, epsilons, made, string_agg(dataset, ', ' ORDER BY dataset) FROM (SELECT "
        "dataset, CASE WHEN mechanism = 'estimate' THEN 'estimates' WHEN mechanism LIKE 'release%' "
        "THEN 'default releases' ELSE 'the paper''s mechanisms' END AS made, "
        "max(runs) AS runs, string_agg(DISTINCT printf('%g', epsilon), ', ' ORDER BY "
        "printf('%g', epsilon)) AS epsilons FROM means GROUP BY ALL) GROUP BY ALL ORDER BY ALL DESC"
    ).fetchall()
    return as_table(("runs", "epsilon", "of", "data sets"), rows)


def _reproduced(db: Any) -> str:
    rows = db.execute(
        "SELECT mechanism, measure, count(*), sum(is_reproduced::INT) FROM beside WHERE "
        "setting = 'published' GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    n, good = (sum(row[at] for row in rows) for at in (2, 3))
    others = ", ".join(f"{r[1]} of {r[0]} ({r[2] - r[3]})" for r in rows if r[2] > r[3])
    return (
        f"With the setting `published`, {good:,} of {n:,} figures ({100 * good / n:.1f} %) are "
        f"reproduced.\nThe others are: {others or 'none'}."
    )


def _factors(db: Any) -> str:
    rows = db.execute(
        "PIVOT (SELECT dataset AS \"data set\", 'epsilon ' || printf('%g', epsilon) AS epsilon, "
        "theirs / ours AS factor FROM beside WHERE setting = 'ours' AND mechanism = 'inftda' AND "
        "level > 0 AND measure = 'max_abs_error') ON epsilon USING printf('%.2f', median(factor)) "
        "ORDER BY 1"
    )
    table = as_table([column[0] for column in rows.description], rows.fetchall())
    [(n, of)] = db.execute(
        "SELECT count(*) FILTER (theirs < ours), count(*) FROM beside WHERE setting = 'ours' AND "
        "mechanism = 'inftda' AND level > 0 AND measure = 'max_abs_error'"
    ).fetchall()
    return f"{table}\n\nThe published error is smaller in {n} of {of} cases, a level at an epsilon."


def _better(db: Any) -> str:
    rows = db.execute(
        f"""SELECT mechanism, CASE WHEN {_FINEST} THEN 'finest' ELSE 'coarser' END AS which,
        count(*) FILTER (m.mean < {1 - BETTER} * i.mean), count(*),
        coalesce(printf('%.2f', median(i.mean / m.mean)
          FILTER (m.mean < {1 - BETTER} * i.mean)), '-')
        FROM means m JOIN (SELECT dataset, epsilon, level, measure, mean FROM means WHERE
          setting = 'ours' AND mechanism = 'inftda') i USING (dataset, epsilon, level, measure)
        WHERE m.setting = 'ours' AND level > 0 AND measure = 'max_abs_error' AND m.mechanism IN
          ('tda-l2', 'tda-linf', 'stability-histogram', 'vanilla-gauss')
        GROUP BY ALL ORDER BY ALL"""
    ).fetchall()
    head = ("mechanism", "level", "baseline is better in", "of", "median factor there")
    return as_table(head, rows)


def _finest(db: Any) -> str:
    rows = db.execute(
        f'PIVOT (SELECT dataset AS "data set", mechanism, mean FROM means m WHERE {_FINEST} AND '
        "setting = 'ours' AND epsilon = 1 AND measure = 'common_part') ON mechanism IN ('inftda', "
        "'tda-l2', 'tda-linf', 'stability-histogram', 'vanilla-gauss', 'release', 'estimate') "
        "USING coalesce(printf('%.3f', any_value(mean)), '-') ORDER BY 1"
    )
    return as_table([column[0] for column in rows.description], rows.fetchall())


def _totals(db: Any) -> str:
    where = "level = -1 AND measure IN ('max_abs_error', 'mean_abs_error_nonzero')"
    pair = _PAIR.format(where=where, first="release, no cross tables", second="release")
    finest = _PAIR.format(
        where=f"{_FINEST} AND measure = 'common_part'",
        first="release, no cross tables",
        second="release",
    )
    show = "printf('%,.0f → %,.0f', any_value(before) FILTER ({0}), any_value(after) FILTER ({0}))"
    columns = ", ".join(
        show.format(f"p.measure = '{measure}' AND p.level_name LIKE '%{end}'")
        for end in ("origins", "destinations")
        for measure in ("max_abs_error", "mean_abs_error_nonzero")
    )
    rows = db.execute(
        f"SELECT dataset, {columns}, (SELECT printf('%.3f → %.3f', before, after) FROM "
        f"({finest}) f WHERE f.dataset = p.dataset AND epsilon = 1) FROM ({pair}) p "
        "WHERE epsilon = 1 GROUP BY ALL ORDER BY 1"
    ).fetchall()
    head = ("data set", "out-totals, largest error", "mean error", "in-totals, largest error",
            "mean error", "common part, finest level")  # fmt: skip
    return as_table(head, rows)


def _estimates(db: Any) -> str:
    pair = _PAIR.format(where=_FINEST, first="release", second="estimate")
    forms = {
        "common_part": "%.3f → %.3f",
        "root_mean_squared_error": "%.2f → %.2f",
        "max_abs_error": "%.0f → %.0f",
        "false_discovery_rate": "%.2f → %.2f",
    }
    columns = ", ".join(
        f"printf('{form}', any_value(before) FILTER (measure = '{measure}'), "
        f"any_value(after) FILTER (measure = '{measure}'))"
        for measure, form in forms.items()
    )
    rows = db.execute(
        f"SELECT dataset, {columns} FROM ({pair}) WHERE epsilon = 1 GROUP BY ALL ORDER BY 1"
    ).fetchall()
    head = ("data set", "common part", "root mean squared error", "largest error",
            "part of flows that are false")  # fmt: skip
    [(n, *worse, most)] = db.execute(
        "SELECT count(*) FILTER (measure = 'common_part'), "
        "count(*) FILTER (measure = 'root_mean_squared_error' AND after > before), "
        "count(*) FILTER (measure = 'common_part' AND after < before), "
        "count(*) FILTER (measure = 'max_abs_error' AND after > before), "
        f"max(after / before - 1) FILTER (measure = 'max_abs_error') FROM ({pair})"
    ).fetchall()
    said = (
        f"Of {n} cases, a table at an epsilon each, estimates are worse by the squared error in "
        f"{worse[0]}, by the common part in {worse[1]}, and by the largest error in {worse[2]}, by "
        f"up to {100 * max(most, 0):.0f} %."
    )
    return f"{as_table(head, rows)}\n\n{said}"


_FIGURES: Final[dict[str, Callable[[Any], str]]] = {
    "runs": _runs,
    "reproduced": _reproduced,
    "factors": _factors,
    "better": _better,
    "finest": _finest,
    "totals": _totals,
    "estimates": _estimates,
}
