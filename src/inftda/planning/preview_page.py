"""The page of a preview: the simulated releases of each setting in words, curves and tables."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from inftda.pages import html
from inftda.pages.charts import Line, LineChart, shade_of
from inftda.planning.findings import (
    WHAT_IS_USABLE,
    LevelPreview,
    Preview,
    SettingPreview,
    SizeShares,
)
from inftda.privacy.risk import PRECEDENTS
from inftda.util.files import check_file


def write_preview_page(
    preview: Preview, out: str | Path, *, title: str | None = None, force: bool = False
) -> Path:
    """Write the page of a preview to a file that is not in a release."""
    check_file(Path(out), force=force)
    facts = {
        "preview": preview,
        "what_is_usable": WHAT_IS_USABLE,
        "precedents": PRECEDENTS,
        "groups": _groups(preview),
    }
    page = html.render(
        "preview.html",
        facts,
        title=title or "Preview of releases",
        style="style.css charts.css",
        is_confidential=preview.is_confidential,
    )
    return html.write_page(Path(out), page, is_confidential=preview.is_confidential)


def _groups(preview: Preview) -> list[dict[str, Any]]:
    """Settings that differ in epsilon only, smallest first, and a description of the rest."""
    groups: dict[str, list[SettingPreview]] = {}
    for one in preview.settings:
        about = one.setting.describe().partition("; ")[2]
        groups.setdefault(about, []).append(one)
    made = []
    for about, found in groups.items():
        group = sorted(found, key=lambda one: one.setting.epsilon)
        made.append(
            {
                "about": html.sentence_case(about),
                "settings": group,
                "curves": _curves(group) if len(group) > 1 else [],
                "totals": _totals(group),
                "sizes": _sizes(group),
            }
        )
    return made


def _curves(group: Sequence[SettingPreview]) -> list[LineChart]:
    """Errors and shares of every level over epsilon."""
    names = [level.name for level in group[0].levels]

    def lines(value: Callable[[LevelPreview], float | None]) -> list[Line]:
        return [
            Line(name, shade_of(i, len(names)), [value(one.levels[i]) for one in group])
            for i, name in enumerate(names)
        ]

    errors = lines(lambda level: level.p95)
    for bound in (lines(lambda level: level.guaranteed)[at] for at in sorted({0, len(names) - 1})):
        errors.append(replace(bound, label=f"{bound.label}, guaranteed", is_bound=True))
    note = "95 % are within, in trips; dashed: guaranteed for all"
    size, no_size = "Smallest usable count", "in trips; no point: there is none"
    usable = lines(lambda level: level.usable.smallest if level.usable.numbers < 1 else 1)
    in_place = lines(lambda level: level.common_part)
    used = lines(lambda level: level.usable.trips)
    ticks = _epsilons(group), "epsilon"
    return [
        LineChart("Error of published numbers", note, *ticks, errors),
        LineChart(size, no_size, *ticks, usable),
        LineChart(
            "Common part of commuters",
            "share of trips in which both tables agree",
            *ticks,
            in_place,
            is_share=True,
        ),
        LineChart(
            "Trips in usable numbers", "from the smallest usable count on", *ticks, used,
            is_share=True,
        ),
    ]  # fmt: skip


def _totals(group: Sequence[SettingPreview]) -> LineChart:
    """Errors of the totals of the finest areas of each axis over epsilon."""
    finest = {total.axis: number for number, total in enumerate(group[0].totals)}
    lines = [
        Line(
            f"{axis} {group[0].totals[number].level}",
            shade_of(i, len(finest)),
            [one.totals[number].p95 for one in group],
        )
        for i, (axis, number) in enumerate(finest.items())
    ]
    note = "95 % of the areas are within, in trips"
    return LineChart("Error of totals", note, _epsilons(group), "epsilon", lines)


def _epsilons(group: Sequence[SettingPreview]) -> list[str]:
    return [f"{one.setting.epsilon:g}" for one in group]


def _sizes(group: Sequence[SettingPreview]) -> list[LineChart]:
    """Lost and false flows of the finest level, by size."""
    by_size = [{entry.low: entry for entry in one.levels[-1].sizes} for one in group]
    starts = sorted({low for entries in by_size for low in entries})
    ticks = [f"{low}+" if low < 1000 else f"{low // 1000:,}k+" for low in starts]

    def chart(
        title: str, note: str, x_name: str, value: Callable[[SizeShares], float | None]
    ) -> LineChart:
        values = [
            [value(entries[low]) if low in entries else None for low in starts]
            for entries in by_size
        ]
        # Sizes that no number has take no room.
        known = [i for line in values for i, one in enumerate(line) if one is not None]
        n = max(known, default=0) + 1
        lines = [
            Line(f"epsilon {one.setting.epsilon:g}", shade_of(i, len(group)), line[:n])
            for i, (one, line) in enumerate(zip(group, values, strict=True))
        ]
        return LineChart(title, note, ticks[:n], x_name, lines, is_share=True)

    lost = "true flows of this size that are published as zero"
    false = "published numbers of this size that are zero in truth"
    return [
        chart("Lost flows", lost, "true trips", lambda entry: entry.lost),
        chart("False flows", false, "published trips", lambda entry: entry.false),
    ]
