"""The page of a release, public or confidential: one file that opens from disk, offline.

The public page shows the release, its manifest and what follows from them; it never sees the
truth. The confidential page shows the truth beside the release, and says so everywhere.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Annotated, Any, Final

from inftda.areas.locations import Gazetteer
from inftda.editions.series import is_series, open_series
from inftda.errors import InftdaError
from inftda.estimates import Estimate, open_estimate
from inftda.evaluation.cells import estimated_leaves
from inftda.evaluation.evaluate import Comparison
from inftda.evaluation.intervals import overall
from inftda.evaluation.stated import BETA, default_title, describe_size, level_rows
from inftda.files import check_file
from inftda.options import (
    Centroids,
    KeepFormulas,
    Names,
    Option,
    Outlines,
    Released,
    documented,
)
from inftda.pages import html
from inftda.pages.editions import series_page
from inftda.pages.explorer import (
    Depths,
    Layout,
    Quality,
    Table,
    pack_explorer,
    release_totals,
)
from inftda.pages.shapes import Shapes, known_shapes, read_shapes
from inftda.privacy.risk import PRECEDENTS, risk_of
from inftda.publication.release import Release, open_release
from inftda.publication.trust import (
    GRADE_RULE,
    NOT_PRIVATE,
    counting_note,
    unknown_intervals,
    unmeasured_totals,
    use_notes,
    warnings,
)
from inftda.truth import Truth

#: The measures people ask for first, and what to call them; the rest is one click away.
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


def _places(
    release: Release,
    names: str | Path | None = None,
    centroids: str | Path | None = None,
    geojson: str | Path | None = None,
) -> tuple[Gazetteer, Shapes | None]:
    """Names and locations, and outlines; what the release has itself fills the gaps.

    Raises:
        InftdaError: a file cannot be read or does not fit the release.
    """
    hierarchies = (axis.hierarchy for axis in release.tree.axes)
    places = Gazetteer.of(hierarchies, names=names, centroids=centroids)
    if geojson is not None:
        return places, read_shapes(places, Path(geojson))
    return places, known_shapes(places)


@documented
def report(  # noqa: PLR0913 - one keyword for each thing a publisher may decide
    release: Released,
    out: Annotated[str | Path, Option("HTML file to write, not in a release.")],
    *,
    title: Annotated[str | None, Option("Heading of the page.")] = None,
    names: Names = None,
    centroids: Centroids = None,
    geojson: Outlines = None,
    estimate: Annotated[
        Estimate | str | Path | None,
        Option("Estimate made from the release, or its folder, to switch to.", metavar="FOLDER"),
    ] = None,
    force: Annotated[bool, Option("Replace a file that is there.")] = False,
    keep_formulas: KeepFormulas = False,
) -> Path:
    """Write a page with the guarantee, the errors to expect, and the flows to explore.

    Of a folder with several editions it is one page of the series: a slider over editions, and
    curves of totals with their intervals.

    Returns:
        The file.

    Raises:
        InftdaError: a file cannot be read or does not fit the release, or `out` must not be
            written.

    Privacy:
        Post-processing of the release: no cost.
    """
    files = [None if file is None else Path(file) for file in (names, centroids, geojson)]
    check_file(Path(out), force=force, reads=files)
    if isinstance(release, str | Path) and is_series(release):
        if estimate is not None:
            raise InftdaError("a page of a series has no estimates; leave out `estimate=`")
        page = series_page(open_series(release), title=title, files=files)
        return html.write_page(Path(out), page)
    found = open_release(release)
    places, shapes = _places(found, *files)
    estimate = None if estimate is None else open_estimate(estimate)
    if estimate is not None:
        estimate.check_release(found)
    table = Table(
        found.tree,
        *found.leaves(),
        keeps_formulas=keep_formulas,
        estimated=None if estimate is None else estimated_leaves(estimate),
        what=found.manifest.counted.what,
    )
    packed, depths = pack_explorer(table, places, shapes, Quality.of(found))
    facts = {
        "is_private": found.manifest.private,
        "not_private": NOT_PRIVATE,
        "size": describe_size(found),
        "counted": counting_note(found),
        "what": found.manifest.counted.what,
        "use": found.uses[-1].describe() if found.uses else "",
        "uses": use_notes(found),
        "promise": _promise(found),
        **_accuracy(found),
        **_technical(found),
        **_explorer(found, packed, depths, has_estimate=estimate is not None),
    }
    heading, script = title or default_title(found), html.explorer_script()
    page = html.render("report.html", facts, title=heading, script=script)
    return html.write_page(Path(out), page)


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
    places, shapes = _places(release)
    what = release.manifest.counted.what
    table = Table(release.tree, *release.leaves(), truth=counts.leaves, what=what)
    quality = Quality(totals=release_totals(release))
    packed, depths = pack_explorer(table, places, shapes, quality)
    every = dict.fromkeys(
        key
        for level in measures
        for key, value in level.items()
        if isinstance(value, str | int | float)
    )
    facts = {
        "size": describe_size(release),
        "main": _measures_table({key: _MAIN[key] for key in _MAIN if key in every}, measures),
        "every": _measures_table({key: key for key in every}, measures),
        **_explorer(release, packed, depths),
    }
    page = html.render(
        "confidential.html",
        facts,
        title="Release against truth",
        script=html.explorer_script(),
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


def _promise(release: Release) -> dict[str, object]:
    plan = release.manifest.plan
    sigmas = [level.noise.sigma for level in plan.levels]
    scales = [f"{find(sigmas):.3g}" for find in (min, max)]
    return {
        "plan": plan,
        "risk": risk_of(plan).describe(),
        "protected": release.manifest.protected,
        "noise": "\N{EN DASH}".join(dict.fromkeys(scales)),
        "precedents": PRECEDENTS,
        "careful": warnings(plan, total=release.total),
    }


def _accuracy(release: Release) -> dict[str, object]:
    is_trips = Layout.of(release.tree).has_trips
    return {
        "cell": "flow" if release.tree.is_od else "cell",
        "rows": level_rows(release),
        "unknown": unknown_intervals(release),
        "grade_rule": GRADE_RULE,
        "confidence": 1 - BETA,
        "unmeasured": unmeasured_totals(release.tree, release.manifest.plan),
        "has_totals": release.has_totals,
        "example": "all trips from one area" if is_trips else "totals of one axis",
    }


def _technical(release: Release) -> dict[str, object]:
    manifest, plan = release.manifest, release.manifest.plan
    options = ", ".join(f"{key} {value}" for key, value in manifest.options.items())
    edition = {"Edition": manifest.edition} if manifest.edition else {}
    facts = edition | {
        "Guarantee": plan.describe(),
        "Noise": plan.describe_noise(),
        "Unit of privacy": manifest.protected,
        "Counted": counting_note(release) or "all rows of the table",
        "Mechanism": f"{manifest.mechanism} ({options})" if options else manifest.mechanism,
        "Order of refinement": ", ".join(manifest.tree.order),
        "Areas": "; ".join(_describe_areas(release)),
        "Software": ", ".join(f"{name} {version}" for name, version in manifest.software.items()),
    }
    noise = {"Noise of each level": plan.levels, "Noise of tables across the tree": plan.tables}
    return {"facts": list(facts.items()), "noise": noise}


def _describe_areas(release: Release) -> list[str]:
    lines = []
    for axis, entry in zip(release.tree.axes, release.manifest.tree.axes, strict=True):
        sizes = " \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} ".join(
            f"{axis.hierarchy.n_areas(level):,} {name}"
            for level, name in enumerate(axis.hierarchy.level_names, start=1)
        )
        file = PurePath(entry.file).name
        lines.append(f"{axis.name}: {sizes} ({file}, SHA-256 {entry.fingerprint[:16]}…)")
    return lines


def _explorer(
    release: Release, packed: str, depths: Depths, *, has_estimate: bool = False
) -> dict[str, object]:
    """What the page says of its explorer, and what is in it."""
    axes = release.tree.axes
    is_whole = depths == tuple(axis.hierarchy.depth for axis in axes)
    held = (axis.hierarchy.level_name(depth) for axis, depth in zip(axes, depths, strict=True))
    facts = {
        "finest": [] if is_whole else list(dict.fromkeys(held)),
        "has_estimate": has_estimate,
    }
    return {"explorer": facts, "packed": packed}


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
