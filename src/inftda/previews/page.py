"""The page of a preview: what each setting would publish, in words, curves and tables."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from inftda.evaluation.typical import TypicalError
from inftda.files import check_file
from inftda.pages import html
from inftda.pages.charts import Line, LineChart, shade_of
from inftda.previews.findings import WHAT_IS_USABLE, LevelPreview, Preview, SettingPreview

#: What somebody believed before, to show what epsilon means.
BELIEF: Final = 0.1


def write_preview_page(
    preview: Preview, out: str | Path, *, title: str | None = None, force: bool = False
) -> Path:
    """Write the page of a preview.

    Args:
        preview: what was tried out.
        out: the HTML file to write, not in a release.
        title: heading of the page.
        force: replace a file that is there.

    Raises:
        InftdaError: `out` must not be written.
    """
    check_file(Path(out), force=force)
    groups = _groups(preview)
    facts = {
        "preview": {
            "stand_in": preview.stand_in,
            "n_trips": preview.n_trips,
            "n_flows": preview.n_flows,
            "runs": preview.runs,
            "delta": f"{preview.delta:g}",
        },
        "belief": BELIEF,
        "what_is_usable": WHAT_IS_USABLE,
        "has_curves": any(group["curves"] for group in groups),
        "groups": groups,
        "settings": [_setting(one, preview.tolerance) for one in preview.settings],
    }
    page = html.render(
        "preview.html",
        facts,
        title=title or "What would be published",
        style="style.css charts.css",
        is_confidential=preview.is_confidential,
    )
    return html.write_page(Path(out), page, is_confidential=preview.is_confidential)


def believed_after(epsilon: float) -> float:
    """What somebody can come to believe of one person at most, delta aside."""
    gained = BELIEF * math.exp(min(epsilon, 700.0))
    return gained / (1 - BELIEF + gained)


def _setting(one: SettingPreview, tolerance: float) -> dict[str, Any]:
    finest = one.finest_usable
    return {
        "about": html.sentence_case(one.setting.describe()),
        "epsilon": f"{one.setting.epsilon:g}",
        "believed": believed_after(one.setting.epsilon),
        "finest_usable": None if finest is None else finest.name,
        "verdict": one.verdict(tolerance),
        "promise": one.promise,
        "levels": [_level(level, tolerance) for level in one.levels],
        "totals": one.totals,
    }


def _level(level: LevelPreview, tolerance: float) -> dict[str, Any]:
    return {
        "name": level.name,
        "guaranteed": level.guaranteed,
        "median": level.typical.overall.median,
        "p95": level.typical.overall.p95,
        "largest_error": level.largest_error,
        "common_part": level.common_part,
        "false_share": level.false_share,
        "lost_share": level.lost_share,
        "usable_from": level.usable_from,
        "usable_trips": level.usable.trips,
        "sentence": level.usable_sentence(tolerance),
    }


def _groups(preview: Preview) -> list[dict[str, Any]]:
    """Settings that differ in epsilon only, smallest first, and what they have in common."""
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
                "settings": [_setting(one, preview.tolerance) for one in group],
                "curves": _curves(preview, group) if len(group) > 1 else [],
                "totals": _totals(group),
                "sizes": _sizes(group),
            }
        )
    return made


def _curves(preview: Preview, group: Sequence[SettingPreview]) -> list[LineChart]:
    """Errors and shares of every level over epsilon."""
    names = [level.name for level in group[0].levels]
    ticks = [f"{one.setting.epsilon:g}" for one in group]

    def lines(value: Callable[[LevelPreview], float | None]) -> list[Line]:
        return [
            Line(name, shade_of(i, len(names)), [value(one.levels[i]) for one in group])
            for i, name in enumerate(names)
        ]

    bounds = [
        Line(
            f"{names[i]}, guaranteed",
            shade_of(i, len(names)),
            [one.levels[i].guaranteed for one in group],
            is_bound=True,
        )
        for i in dict.fromkeys((0, len(names) - 1))
    ]
    within = html.percent(preview.tolerance)
    return [
        LineChart(
            "Error of published numbers",
            "95 % are within, in trips; dashed: guaranteed for all",
            ticks,
            "epsilon",
            [*lines(lambda level: level.typical.overall.p95), *bounds],
        ),
        LineChart(
            f"Right within {within} from this size on",
            "in trips; no point: no size is",
            ticks,
            "epsilon",
            lines(lambda level: level.usable.smallest if level.usable.numbers < 1 else 1),
        ),
        LineChart(
            "Trips in the right place",
            "common part of commuters",
            ticks,
            "epsilon",
            lines(lambda level: level.common_part),
            is_share=True,
        ),
        LineChart(
            "Trips in numbers to rely on",
            f"right within {within}",
            ticks,
            "epsilon",
            lines(lambda level: level.usable.trips),
            is_share=True,
        ),
    ]


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
    ticks = [f"{one.setting.epsilon:g}" for one in group]
    note = "95 % of the areas are within, in trips"
    return LineChart("Error of totals", note, ticks, "epsilon", lines)


def _sizes(group: Sequence[SettingPreview]) -> list[LineChart]:
    """Lost and false flows of the finest level, by size."""
    by_size = [{entry.low: entry for entry in one.levels[-1].typical.classes} for one in group]
    starts = sorted({low for entries in by_size for low in entries})
    ticks = [f"{low}+" if low < 1000 else f"{low // 1000:,}k+" for low in starts]

    def lines(value: Callable[[TypicalError], float]) -> list[Line]:
        return [
            Line(
                f"epsilon {one.setting.epsilon:g}",
                shade_of(i, len(group)),
                [value(entries[low]) if low in entries else None for low in starts],
            )
            for i, (one, entries) in enumerate(zip(group, by_size, strict=True))
        ]

    return [
        LineChart(
            "Lost flows",
            "true flows of this size that are published as zero",
            ticks,
            "true trips",
            lines(lambda entry: entry.lost),
            is_share=True,
        ),
        LineChart(
            "False flows",
            "published numbers of this size that are zero in truth",
            ticks,
            "published trips",
            lines(lambda entry: entry.false),
            is_share=True,
        ),
    ]
