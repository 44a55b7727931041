"""The confidential page: truth beside release. Not private, and marked so everywhere.

It holds true counts. The banner cannot be scrolled away, the title and every download say so,
and the file is readable by its owner only.
"""

# ruff: noqa: RUF001 - dashes, quotes and Greek letters as people write them

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from inftda.errors import ReleaseError
from inftda.evaluation.cells import released_leaves
from inftda.evaluation.evaluate import Comparison
from inftda.evaluation.intervals import overall
from inftda.files import check_file
from inftda.publication.query import FLOW
from inftda.publication.release import Release
from inftda.publication.tables import Areas, Flows, as_table
from inftda.reports.contents import Quality, Table, pack_contents
from inftda.reports.markup import Html, join, table, tag, text
from inftda.reports.page import (
    Files,
    explore_lead,
    footer,
    links,
    render,
    summary,
    write_file,
)
from inftda.tree import Tree
from inftda.truth import Truth

NOTICE = "CONFIDENTIAL: this page shows true counts. It is not private. Do not publish or share it."
COUNT = "count"
#: The measures people ask for first, and what to call them; the rest is one click away.
_MAIN = {
    "name": "Level",
    "n_true": "True cells",
    "n_released": "Released cells",
    "max_abs_error": "Largest error",
    "mean_abs_error_nonzero": "Mean error of non-zero cells",
    "false_discovery_rate": "False positives",
    "false_negative_rate": "False negatives",
    "common_part": "Common part",
    "in_interval": "Numbers in their interval",
}
_RATES = {"false_discovery_rate", "false_negative_rate", "in_interval"}


def page_of(release: Release, counts: Truth, comparison: Comparison) -> Callable[[Path], Path]:
    """What writes the page of a comparison to a path."""
    truth = as_table(release.tree, Flows(*counts.leaves))
    measures = comparison.level_table().drop_columns(["notice"]).to_pylist()
    for level in measures:
        known = [one for one in comparison.intervals if one.name == level["name"]]
        if known:
            level["in_interval"] = overall(known).in_interval
    return lambda path: write_confidential_page(release, truth, measures, path)


def write_confidential_page(
    release: Release, truth: pa.Table, measures: Sequence[Mapping[str, Any]], out: str | Path
) -> Path:
    """Write the page that compares a release with the truth.

    Args:
        release: the release.
        truth: the true leaf counts: the columns of the release's axes, and `count` or `flow`.
        measures: one mapping for each level, figure names to figures; None is not shown.
        out: the HTML file to write, readable by its owner only.

    Returns:
        The file.

    Raises:
        InftdaError: a file cannot be read or written, or the truth does not fit the release.
    """
    check_file(Path(out), force=True)
    labels, shapes = Files().read(release)
    areas, value = released_leaves(release)
    both = Table(release.tree, areas, value, _true_leaves(release.tree, truth))
    contents = pack_contents(both, labels, shapes, Quality())
    heading = "Release against truth"
    page = render(
        {
            **confidential_parts(heading),
            "masthead": join(
                [
                    tag("p", "Confidential comparison with the true counts", class_="kicker"),
                    tag("h1", heading),
                    tag("p", summary(release), class_="sub"),
                ]
            ),
            "contents": links(measures="Measures", explore="Explore"),
            "sections": _measures_section(measures),
            "explore_title": "Truth beside release",
            "explore_lead": explore_lead(
                release, contents, shade="the further a number is from the truth"
            ),
            "technical": "",
            "footer": footer(),
            "packed": contents.packed,
        }
    )
    return write_file(Path(out), page, mode=0o600)


def confidential_parts(heading: str) -> dict[str, str]:
    """The parts of any page that mark it: title, banners, and a word to search engines."""
    return {
        "kind": "confidential",
        "title": text(f"CONFIDENTIAL – {heading}"),
        "robots": '<meta name="robots" content="noindex, nofollow, noarchive">',
        "banner": _banner("banner"),
        "banner_again": _banner("banner last"),
    }


def _banner(kind: str) -> Html:
    return tag("div", tag("div", tag("p", NOTICE), class_="wrap"), class_=kind, role="alert")


def _true_leaves(tree: Tree, truth: pa.Table) -> tuple[Areas, np.ndarray[Any, np.dtype[np.int64]]]:
    """Numbers of finest areas and counts; messages name columns, never a row."""
    counted = next((name for name in (COUNT, FLOW) if name in truth.column_names), None)
    names = [axis.name for axis in tree.axes]
    missing = [name for name in names if name not in truth.column_names]
    if missing or counted is None:
        raise ReleaseError(
            f"the truth must have the columns {', '.join(names)} and {COUNT}; "
            f"it has {', '.join(truth.column_names)}"
        )
    areas = []
    for axis in tree.axes:
        codes = axis.hierarchy.codes(axis.hierarchy.depth)
        column = truth.column(axis.name).cast(pa.string())
        found = pc.index_in(column, value_set=codes)
        if found.null_count:
            raise ReleaseError(
                f"the truth has a code in column {axis.name!r} that is not an area of the release; "
                "compare with the table the release was made from"
            )
        areas.append(found.to_numpy().astype(np.int32))
    return tuple(areas), truth.column(counted).to_numpy().astype(np.int64)


def _measures_section(measures: Sequence[Mapping[str, Any]]) -> Html:
    main = [key for key in _MAIN if any(key in level for level in measures)]
    every = list(dict.fromkeys(key for level in measures for key in level if _is_shown(level[key])))
    parts = [tag("h2", "Measures by level", id="measures-title")]
    if main:
        rows = [[_figure(key, level.get(key)) for key in main] for level in measures]
        parts.append(table([_MAIN[key] for key in main], rows))
    if set(every) - set(main):
        rows = [[_figure("", level.get(key)) for key in every] for level in measures]
        all_of_them = tag("div", table(every, rows, texts=0))
        parts.append(tag("details", tag("summary", "All measures"), all_of_them))
    return tag("section", *parts, id="measures", aria_labelledby="measures-title")


def _is_shown(value: object) -> bool:
    return isinstance(value, str | int | float)


def _figure(key: str, value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.1%}".replace("%", " %") if key in _RATES else f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
