"""The page of a preview: curves over epsilon, so that a committee can choose.

Everything on it comes from a public stand-in; nothing confidential was read.
"""

# ruff: noqa: RUF001 - dashes and quotes as people write them

import math
from collections.abc import Callable, Sequence
from pathlib import Path

from inftda.evaluation.typical import TypicalError
from inftda.files import check_file
from inftda.previews.findings import LevelPreview, Preview, SettingPreview
from inftda.previews.shell import Line, chart, legend, masthead, render, section, shade_of
from inftda.previews.words import (
    capital,
    percent,
    usable_from,
    usable_words,
    verdict,
    what_is_usable,
)
from inftda.reports.accuracy import arrowed
from inftda.reports.confidential import confidential_parts
from inftda.reports.markup import Html, join, table, tag, text
from inftda.reports.page import footer, links, write_file

#: What somebody believed before, to show what epsilon means.
_BELIEF = 0.1


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
    heading = title or "What would be published"
    page = render(
        {
            **_kind(preview, heading),
            "masthead": masthead(
                "Preview on a stand-in; nothing is spent",
                heading,
                f"Simulated releases of {preview.stand_in}: {preview.n_trips:,} trips, "
                f"{preview.n_flows:,} flows between the finest areas",
            ),
            "contents": _contents(preview),
            "sections": join(
                [_choice(preview), *_curves(preview), _sizes(preview), _details(preview),
                 _made(preview)]
            ),
            "footer": footer(),
        }
    )  # fmt: skip
    return write_file(Path(out), page, mode=0o600 if preview.is_confidential else None)


def _contents(preview: Preview) -> Html:
    titles = {"choice": "In words", "curves": "Curves", "sizes": "By size", "details": "Tables",
              "made": "How it was made"}  # fmt: skip
    if not _curves(preview):
        del titles["curves"]
    return links(**titles)


def _kind(preview: Preview, heading: str) -> dict[str, str]:
    """How the page is marked."""
    if preview.is_confidential:
        return confidential_parts(heading)
    return {
        "kind": "public", "title": text(heading), "robots": "", "banner": "", "banner_again": "",
    }  # fmt: skip


def believed_after(epsilon: float) -> float:
    """What somebody can come to believe of one person at most, delta aside."""
    gained = _BELIEF * math.exp(min(epsilon, 700.0))
    return gained / (1 - _BELIEF + gained)


def _choice(preview: Preview) -> Html:
    head = ("Epsilon", f"From {percent(_BELIEF)} sure to at most", "Usable down to",
            "Finest numbers usable from", "Trips in them")  # fmt: skip
    parts = [
        tag(
            "p",
            "A smaller epsilon protects people better and makes numbers less accurate. The second "
            "column is what it means for a person: somebody who knows everything about everybody "
            f"else, and is {percent(_BELIEF)} sure of one person’s trip, can become this sure.",
            class_="lead",
        )
    ]
    for about, settings in _groups(preview):
        rows = []
        for one in settings:
            finest, last = one.finest_usable, one.levels[-1]
            rows.append(
                (
                    f"{one.setting.epsilon:g}",
                    percent(believed_after(one.setting.epsilon)),
                    "no level" if finest is None else arrowed(finest.name),
                    usable_from(last),
                    percent(last.usable.trips),
                )
            )
        parts += [tag("h3", about), table(head, rows)]
        said = [
            tag(
                "li",
                tag("strong", f"Epsilon {one.setting.epsilon:g}"),
                verdict(one, preview.tolerance),
            )
            for one in settings
        ]
        parts.append(tag("ul", *said, class_="verdicts"))
    parts.append(tag("p", what_is_usable(), class_="note"))
    return section("choice", "In words", *parts)


def _groups(preview: Preview) -> list[tuple[str, list[SettingPreview]]]:
    """Settings that differ in epsilon only, smallest first, and what they have in common."""
    groups: dict[str, list[SettingPreview]] = {}
    for one in preview.settings:
        about = one.setting.describe().partition("; ")[2]
        groups.setdefault(about, []).append(one)
    return [
        (capital(about), sorted(group, key=lambda one: one.setting.epsilon))
        for about, group in groups.items()
    ]


def _curves(preview: Preview) -> list[Html]:
    groups = _groups(preview)
    drawn = [(about, settings) for about, settings in groups if len(settings) > 1]
    if not drawn:
        return []
    parts = []
    for about, settings in drawn:
        if len(groups) > 1:
            parts.append(tag("h3", about))
        parts.append(_charts(preview, settings))
    return [section("curves", "What follows from epsilon", *parts)]


def _charts(preview: Preview, settings: Sequence[SettingPreview]) -> Html:
    names = [level.name for level in settings[0].levels]
    shades = [shade_of(i, len(names)) for i in range(len(names))]
    ticks = [f"{one.setting.epsilon:g}" for one in settings]

    def lines(value: Callable[[LevelPreview], float | None]) -> list[Line]:
        return [
            Line(name, shades[i], [value(one.levels[i]) for one in settings])
            for i, name in enumerate(names)
        ]

    bounds = [
        Line(f"{name}, guaranteed", shades[i], [one.levels[i].guaranteed for one in settings],
             is_bound=True)
        for i, name in enumerate(names) if i in {0, len(names) - 1}
    ]  # fmt: skip
    first = settings[0]
    finest = [total for total in first.totals if _is_finest(first, total.axis, total.level)]
    sums = [
        Line(
            f"{total.axis} {total.level}",
            shade_of(i, len(finest)),
            [_total_of(one, total.axis, total.level) for one in settings],
        )
        for i, total in enumerate(finest)
    ]
    within = percent(preview.tolerance)
    figures = [
        chart("Error of published numbers", "95 % are within, in trips; dashed: guaranteed for all",
              ticks, [*lines(lambda level: level.typical.overall.p95), *bounds], x_name="epsilon"),
        chart(f"Right within {within} from this size on", "in trips; no point: no size is",
              ticks, lines(lambda level: level.usable.smallest
                           if level.usable.numbers < 1 else 1), x_name="epsilon"),
        chart("Trips in the right place", "common part of commuters",
              ticks, lines(lambda level: level.common_part), x_name="epsilon", is_share=True),
        chart("Trips in numbers to rely on", f"right within {within}",
              ticks, lines(lambda level: level.usable.trips), x_name="epsilon", is_share=True),
    ]  # fmt: skip
    parts = [
        legend(list(zip(names, shades, strict=True)), bound="guaranteed"),
        tag("div", *figures, class_="charts"),
    ]
    if sums:
        parts += [
            legend([(line.label, line.shade) for line in sums]),
            tag(
                "div",
                chart("Error of totals", "95 % of the areas are within, in trips", ticks, sums,
                      x_name="epsilon"),
                class_="charts",
            ),
        ]  # fmt: skip
    return join(parts)


def _is_finest(one: SettingPreview, axis: str, level: str) -> bool:
    return [total.level for total in one.totals if total.axis == axis][-1] == level


def _total_of(one: SettingPreview, axis: str, level: str) -> float:
    return next(total.p95 for total in one.totals if (total.axis, total.level) == (axis, level))


def _sizes(preview: Preview) -> Html:
    parts = [
        tag(
            "p",
            "At the finest level, by size: small numbers are those to be careful with.",
            class_="lead",
        )
    ]
    groups = _groups(preview)
    for about, settings in groups:
        if len(groups) > 1:
            parts.append(tag("h3", about))
        starts = sorted({entry.low for one in settings for entry in _finest(one)})
        ticks = [f"{low}+" if low < 1000 else f"{low // 1000:,}k+" for low in starts]
        shades = [shade_of(i, len(settings)) for i in range(len(settings))]
        labels = [f"epsilon {one.setting.epsilon:g}" for one in settings]

        def lines(
            value: Callable[[TypicalError], float],
            settings: Sequence[SettingPreview] = settings,
            starts: Sequence[int] = starts,
            shades: Sequence[int] = shades,
            labels: Sequence[str] = labels,
        ) -> list[Line]:
            return [
                Line(labels[i], shades[i], [_by_size(one, low, value) for low in starts])
                for i, one in enumerate(settings)
            ]

        figures = [
            chart("Lost flows", "true flows of this size that are published as zero",
                  ticks, lines(lambda entry: entry.lost), x_name="true trips", is_share=True),
            chart("False flows", "published numbers of this size that are zero in truth",
                  ticks, lines(lambda entry: entry.false), x_name="published trips",
                  is_share=True),
        ]  # fmt: skip
        parts += [
            legend(list(zip(labels, shades, strict=True))),
            tag("div", *figures, class_="charts"),
        ]
    return section("sizes", "False and lost flows by size", *parts)


def _finest(one: SettingPreview) -> tuple[TypicalError, ...]:
    return one.levels[-1].typical.classes


def _by_size(one: SettingPreview, low: int, value: Callable[[TypicalError], float]) -> float | None:
    return next((value(entry) for entry in _finest(one) if entry.low == low), None)


def _details(preview: Preview) -> Html:
    parts = []
    head = ("Level", "Guaranteed", "Half within", "95 % within", "Largest", "Common part", "False",
            "Lost", "Usable from", "Trips in these")  # fmt: skip
    for one in preview.settings:
        rows = [
            (
                arrowed(level.name),
                f"±{level.guaranteed:,}",
                f"±{level.typical.overall.median:,}",
                f"±{level.typical.overall.p95:,}",
                f"±{level.largest_error:,}",
                f"{level.common_part:.4f}",
                percent(level.false_share, 1),
                percent(level.lost_share, 1),
                usable_from(level),
                percent(level.usable.trips),
            )
            for level in one.levels
        ]
        sums = [
            (
                f"{total.axis} {total.level}",
                f"{total.n_areas:,}",
                f"{total.mean_error:,.1f}",
                f"±{total.p95:,}",
                f"±{total.largest_error:,}",
                "–" if total.stated_within is None else f"±{total.stated_within:,}",
            )
            for total in one.totals
        ]
        said = [tag("li", f"{capital(usable_words(level, preview.tolerance))}.")
                for level in one.levels]  # fmt: skip
        body = tag(
            "div",
            tag("p", f"{one.promise}.", class_="note"),
            table(head, rows),
            tag("h3", "Totals by one end"),
            table(("Totals of", "Areas", "Mean error", "95 % within", "Largest", "Measured within"),
                  sums),
            tag("h3", "Level by level"),
            tag("ul", *said),
        )  # fmt: skip
        parts.append(tag("details", tag("summary", capital(one.setting.describe())), body))
    return section("details", "All figures", *parts)


def _who_may_see(preview: Preview) -> str:
    if preview.is_confidential:
        return "That table may be confidential: so is this page, and whoever chooses by it says so."
    return (
        "Nothing confidential was read, so this page may be shown to anybody, and trying out costs "
        "no privacy."
    )


def _made(preview: Preview) -> Html:
    return section(
        "made",
        "How it was made",
        tag(
            "p",
            f"What stands in for the confidential table: {preview.stand_in}. It was released "
            f"{preview.runs} times with each setting, as the real table would be, and each "
            f"simulated release was compared with it. {_who_may_see(preview)}",
        ),
        tag(
            "p",
            tag("strong", "Guaranteed"),
            " errors follow from the noise alone and hold for every table: with a probability of "
            "95 % for all numbers of all levels at once. ",
            tag("strong", "All other figures"),
            " are true of the stand-in, and of the confidential table as far as the two are alike: "
            "errors of numbers hardly depend on it, while what is lost depends on how many small "
            "flows there are. The share of false flows is the least certain: in two trials it "
            "came out at about twice what was stated here beforehand.",
        ),
        tag("p", f"delta = {preview.delta:g} for every setting.", class_="note"),
    )
