"""The confidential page: a release beside the true counts, marked as confidential throughout."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from inftda.confidential.comparison import Comparison, truth_note
from inftda.confidential.coverage import overall
from inftda.pages import html
from inftda.pages.explorer import Quality, Table, pack_explorer, release_totals, summed_levels
from inftda.pages.report import explorer_facts
from inftda.pages.shapes import read_places
from inftda.publication.release import Release
from inftda.publication.stated import describe_size
from inftda.reading.truth import Truth
from inftda.util.files import check_file

#: Main measures and their headings; the page folds all others.
_MAIN: Final = {
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
_RATES: Final = {"false_discovery_rate", "false_negative_rate", "in_interval"}


def write_confidential_page(
    release: Release, counts: Truth, measures: Sequence[Mapping[str, Any]], out: str | Path
) -> Path:
    """Write the page that compares a release with the truth, readable by its owner only.

    Args:
        release: the release.
        counts: the true counts.
        measures: one mapping for each level, figure names to figures; None is not shown.
        out: the HTML file to write; an older one is replaced.
    """
    check_file(Path(out), force=True)
    places, shapes = read_places(release.tree.axes)
    what = release.manifest.counts
    table = Table(release.tree.axes, *release.leaves(), truth=counts.leaves, what=what)
    totals = release_totals(release)
    quality = Quality(totals, intervals=totals, across=summed_levels(release.tree))
    packed, depths = pack_explorer(table, places, shapes, quality)
    every = dict.fromkeys(
        key
        for level in measures
        for key, value in level.items()
        if isinstance(value, str | int | float)
    )
    facts = {
        "size": describe_size(release),
        "truth": truth_note(release),
        "main": _measures_table({key: _MAIN[key] for key in _MAIN if key in every}, measures),
        "every": _measures_table({key: key for key in every}, measures),
        **explorer_facts(release.tree.axes, packed, depths),
    }
    page = html.render(
        "confidential.html",
        facts,
        title="Release against truth",
        script=html.script("explore.mjs"),
        is_confidential=True,
    )
    return html.write_page(Path(out), page, is_confidential=True)


def measures_by_level(comparison: Comparison) -> list[dict[str, Any]]:
    """The figures of a comparison, level by level, with the coverage of intervals if known."""
    measures: list[dict[str, Any]] = (
        comparison.tables()["levels"].drop_columns(["notice"]).to_pylist()
    )
    for level in measures:
        known = [one for one in comparison.intervals if one.name == level["name"]]
        if known:
            level["in_interval"] = overall(known).in_interval
    return measures


def _measures_table(
    columns: Mapping[str, str], measures: Sequence[Mapping[str, Any]]
) -> tuple[list[str], list[list[str]]]:
    rows = [[_figure(key, level.get(key)) for key in columns] for level in measures]
    return list(columns.values()), rows


def _figure(key: str, value: object) -> str:
    if value is None:
        return "\N{EN DASH}"
    if isinstance(value, float):
        return html.percent(value, 1) if key in _RATES else f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
