"""The public page of a release or a series: one file that opens from disk, offline.

It shows the release, its manifest and values computed from them; it never sees true counts.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from inftda.errors import InftdaError
from inftda.estimates.estimate import Estimate, open_estimate
from inftda.options import Centroids, KeepFormulas, Names, Option, Outlines, Released, documented
from inftda.pages import html
from inftda.pages.explorer import Depths, Layout, Quality, Table, pack_explorer
from inftda.pages.shapes import read_places
from inftda.pages.stacked import stacked
from inftda.privacy.risk import PRECEDENTS, risk_of
from inftda.publication.release import Release, open_release
from inftda.publication.reliability import (
    GRADE_RULE,
    NOT_PRIVATE,
    counting_note,
    unknown_intervals,
    unmeasured_totals,
    use_notes,
    warnings,
)
from inftda.publication.summary import BETA, default_title, describe_size, level_rows
from inftda.series.series import Series, is_series, open_series
from inftda.tree import Axis
from inftda.util.files import check_file


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

    Of a folder with several editions it is one page of the series, whose editions are one more
    dimension of the explorer.

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
        page = _series_page(open_series(release), title, files, keep_formulas=keep_formulas)
        return html.write_page(Path(out), page)
    found = open_release(release)
    places, shapes = read_places(found.tree.axes, files)
    estimate = None if estimate is None else open_estimate(estimate)
    if estimate is not None:
        estimate.check_release(found)
    table = Table(
        found.tree.axes,
        *found.leaves(),
        keeps_formulas=keep_formulas,
        estimated=None if estimate is None else estimate.leaves(),
        what=found.manifest.counts,
    )
    packed, depths = pack_explorer(table, places, shapes, Quality.of(found))
    facts = {
        "is_private": found.manifest.private,
        "not_private": NOT_PRIVATE,
        "size": describe_size(found),
        "counted": counting_note(found),
        "what": found.manifest.counts,
        "use": found.uses[-1].describe() if found.uses and found.manifest.n_flows else "",
        "uses": use_notes(found),
        "guarantee": _guarantee(found),
        **_accuracy(found),
        **_technical(found),
        **explorer_facts(found.tree.axes, packed, depths, has_estimate=estimate is not None),
    }
    heading, script = title or default_title(found), html.script("explore.mjs")
    page = html.render("report.html", facts, title=heading, script=script)
    return html.write_page(Path(out), page)


def _series_page(
    series: Series, title: str | None, files: Sequence[Path | None], *, keep_formulas: bool
) -> str:
    """The page of a series."""
    releases, editions = list(series.editions.values()), list(series.editions)
    table, quality = stacked(series)
    places, shapes = read_places(table.axes, files)
    table = replace(table, keeps_formulas=keep_formulas)
    packed, depths = pack_explorer(table, places, shapes, quality)
    facts = {
        "is_private": all(release.manifest.private for release in releases),
        "not_private": NOT_PRIVATE,
        "editions": editions,
        "totals": [release.total for release in releases],
        "what": table.what,
        "counted": counting_note(releases[-1]),
        "grade_rule": GRADE_RULE,
        "guarantees": series.guarantees(),
        **explorer_facts(table.axes, packed, depths),
    }
    heading = title or f"{default_title(releases[-1])}, {editions[0]} to {editions[-1]}"
    return html.render("series.html", facts, title=heading, script=html.script("explore.mjs"))


def _guarantee(release: Release) -> dict[str, object]:
    plan = release.manifest.plan
    sigmas = [level.noise.sigma for level in plan.levels]
    scales = [f"{find(sigmas):.3g}" for find in (min, max)]
    return {
        "plan": plan,
        "risk": risk_of(plan).describe(),
        "protected": release.manifest.protected,
        "noise": "\N{EN DASH}".join(dict.fromkeys(scales)),
        "precedents": PRECEDENTS,
        "warnings": warnings(plan, total=release.total),
    }


def _accuracy(release: Release) -> dict[str, object]:
    manifest = release.manifest
    is_trips = Layout.of(release.tree.axes).has_trips
    return {
        "cell": "flow" if release.tree.is_od else "cell",
        "leaves_out": manifest.counted.is_partial(manifest.unit),
        "rows": level_rows(release),
        "unknown": unknown_intervals(release),
        "grade_rule": GRADE_RULE,
        "confidence": 1 - BETA,
        "unmeasured": unmeasured_totals(release.tree, manifest.plan),
        "has_totals": release.has_totals,
        "example": "all trips from one area" if is_trips else "totals of one axis",
    }


def _technical(release: Release) -> dict[str, object]:
    manifest, plan = release.manifest, release.manifest.plan
    edition = {"Edition": manifest.edition} if manifest.edition else {}
    facts = edition | {
        "Guarantee": plan.describe(),
        "Noise": plan.describe_noise(),
        "Privacy unit": manifest.protected,
        "Counted": counting_note(release) or "all rows of the table",
        "Mechanism": manifest.mechanism,
        "Order of refinement": ", ".join(manifest.order),
        "Areas": "; ".join(_describe_areas(release)),
        "Software": ", ".join(f"{name} {version}" for name, version in manifest.software.items()),
    }
    noise = {"Noise of each level": plan.levels, "Noise of cross tables": plan.tables}
    return {"facts": list(facts.items()), "noise": noise}


def _describe_areas(release: Release) -> list[str]:
    lines = []
    for axis, entry in zip(release.tree.axes, release.manifest.axes, strict=True):
        sizes = " \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} ".join(
            f"{axis.hierarchy.n_areas(level):,} {name}"
            for level, name in enumerate(axis.hierarchy.level_names, start=1)
        )
        found = release.manifest.files[entry.file][:16]
        lines.append(f"{axis.name}: {sizes} ({entry.file}, SHA-256 {found}…)")
    return lines


def explorer_facts(
    axes: Sequence[Axis], packed: str, depths: Depths, *, has_estimate: bool = False
) -> dict[str, object]:
    """Facts about the explorer for the template, with its packed data."""
    is_whole = depths == tuple(axis.hierarchy.depth for axis in axes)
    held = (axis.hierarchy.level_name(depth) for axis, depth in zip(axes, depths, strict=True))
    facts = {"finest": [] if is_whole else list(dict.fromkeys(held)), "has_estimate": has_estimate}
    return {"explorer": facts, "packed": packed}
