"""How good the numbers are: guaranteed and typical error of every level, table and chart.

Only bounds that follow from the noise, and errors simulated from the release: nothing here
sees the truth.
"""

# ruff: noqa: RUF001 - dashes, quotes and Greek letters as people write them

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from inftda.errors import InftdaError, ReleaseError
from inftda.evaluation.typical import (
    OFTEN_LOST,
    LevelErrors,
    TypicalError,
    TypicalErrors,
    typical_errors,
)
from inftda.privacy.bounds import error_bounds
from inftda.publication.release import Release
from inftda.publication.trust import not_shown, unmeasured_totals
from inftda.reports.layout import Layout
from inftda.reports.markup import Html, join, table, tag, text
from inftda.tree import TreeLevel

if TYPE_CHECKING:
    from inftda.bars import Progress
    from inftda.privacy.plan import Plan

#: Probability that some guaranteed error, at any level, does not hold.
BETA = 0.05
#: The sizes up to which numbers often vanish and from which they rarely do are stated as one
#: if they differ by no more than this factor, or by no more than this number.
WIDE_GAP, SMALL_GAP = 1.25, 5
_ZOOM = (
    "The further you zoom out, the better the numbers: the noise is about the same at every "
    "level, while the numbers grow. "
)
_UNKNOWN = (
    "How far off the numbers are is not stated: for releases made with this mechanism neither "
    "guaranteed nor typical errors are known. The small print says how much noise was added."
)
_ACROSS = (
    " In the explorer one can also look at sums across these levels, such as {example}. "
    "Their errors are harder to estimate by simulation; they are stated {factor} "
    "simulated, and marked as a rough guess.{measured}"
)
_UNMEASURED = (
    " In the explorer one can also look at sums across these levels, such as {example}. "
    "They were not measured, and no interval is stated for them: errors add up in one "
    "direction, large areas come out too small and small ones too large."
)
_MEASURED = (
    " Totals of areas were measured by themselves, so that their intervals are as good as stated."
)


@dataclass(frozen=True)
class LevelRow:
    """One row of the table of errors: None where a figure is not known."""

    level: TreeLevel
    typical: LevelErrors | None
    guaranteed: int | None
    is_noise: bool = False


def accuracy_section(
    release: Release, errors: TypicalErrors | None, noise: Collection[TreeLevel] = ()
) -> Html:
    """Guaranteed and typical error, level by level, and what not to use."""
    rows = level_rows(release, errors, noise)
    lead = _ZOOM if release.manifest.description.is_top_down else ""
    lead += "Every coarser number is the exact sum of the finer ones. "
    parts = [tag("h2", "How good the numbers are", id="accuracy-title")]
    if any(row.typical or row.guaranteed is not None for row in rows):
        unit = "trips" if release.tree.is_od else "counts"
        parts += [
            tag("p", f"{lead}Errors are in {unit}, upwards or downwards.", class_="lead"),
            *_counted(release),
            *_warnings(release, rows),
            _key(),
            _errors_table(rows, is_od=release.tree.is_od),
            *_reading(rows, errors, _sums_across(release), is_od=release.tree.is_od),
            *_by_size(rows, errors, is_od=release.tree.is_od),
        ]
    else:
        parts.append(tag("p", f"{lead}{_UNKNOWN}", class_="lead"))
    return tag("section", *parts, id="accuracy", aria_labelledby="accuracy-title")


def _counted(release: Release) -> list[Html]:
    """Errors say how far numbers are from what was counted, and nothing of what was not."""
    words = not_shown(release)
    if not words:
        return []
    return [
        tag(
            "p",
            tag("strong", "Against what was counted: "),
            f"{words}. Errors, guaranteed or typical, do not include what this leaves out.",
        )
    ]


def _warnings(release: Release, rows: Sequence[LevelRow]) -> list[Html]:
    """Levels and totals not to use, before any error is read."""
    cells = _cell_word(is_od=release.tree.is_od)
    found = [
        tag(
            "p",
            tag("strong", "Do not use this level: ", arrowed(row.level.name), "."),
            f" Most of its {cells}s are noise: their true number is nothing, or next to it.",
            class_="warning",
        )
        for row in rows
        if row.is_noise
    ]
    for axis, levels in unmeasured_totals(release.tree, release.manifest.plan).items():
        words = f"Do not use totals of {axis} ({', '.join(levels)})."
        why = " They are sums across the tree and were not measured; their errors add up."
        found.append(tag("p", tag("strong", words), why, class_="warning"))
    return found


def level_rows(
    release: Release, errors: TypicalErrors | None, noise: Collection[TreeLevel] = ()
) -> list[LevelRow]:
    """The levels that were measured, coarse to fine, with what is known of their errors."""
    plan = release.manifest.plan
    bounds = guaranteed(release)
    shown = {level.index for level in release.tree.splitting_levels}
    if not plan.unit.root_is_public:
        shown.add(0)
    return [
        LevelRow(
            level,
            errors.at(level.depths) if errors else None,
            bounds.get(level.index),
            level in noise,
        )
        for level in release.tree.levels
        if level.index in shown
    ]


def guaranteed(release: Release) -> dict[int, int]:
    """Largest error of any number, by level; empty for mechanisms without such a bound."""
    proven = release.manifest.description.error_bound
    if proven is None:
        return {}
    try:
        bounds = error_bounds(release.tree, cast("Plan", release.manifest.plan), BETA)
    except InftdaError:
        return {}
    is_shared = proven == "shared"
    return {bound.index: bound.max_error if is_shared else bound.theorem4 for bound in bounds}


def stated_errors(
    release: Release,
    *,
    runs: int,
    seconds: float,
    depths: Sequence[tuple[int, ...]] | None = None,
    progress: "Progress | None" = None,
) -> TypicalErrors | None:
    """Typical errors, none larger than what is guaranteed; see `typical_errors`.

    Returns:
        None for releases that cannot be used as the truth of a simulation.
    """
    try:
        errors = typical_errors(
            release, runs=runs, seconds=seconds, depths=depths, progress=progress
        )
    except ReleaseError:
        return None
    return within_guarantee(release, errors)


def within_guarantee(release: Release, errors: TypicalErrors) -> TypicalErrors:
    """Typical errors, none larger than what is guaranteed at its level.

    A simulation of a few numbers may by chance exceed the guaranteed bound.
    """
    bounds = guaranteed(release)
    most = {level.depths: bounds.get(level.index) for level in release.tree.levels}
    levels = (_capped(level, most.get(level.depths)) for level in errors.levels)
    return replace(errors, levels=tuple(levels))


def _capped(level: LevelErrors, most: int | None) -> LevelErrors:
    if most is None:
        return level

    def cap(entry: TypicalError) -> TypicalError:
        return replace(entry, median=min(entry.median, most), p95=min(entry.p95, most))

    return replace(
        level,
        overall=cap(level.overall),
        classes=tuple(map(cap, level.classes)),
        often_lost=min(level.often_lost, most),
        rarely_lost=min(level.rarely_lost or most, most),
    )


def arrowed(name: str) -> Html:
    """The name of a level with an arrow from origin to destination."""
    parts = name.split(" > ")
    return join(map(text, parts), tag("span", "→", class_="arrow"))


def _key() -> Html:
    marks = {
        "half of the published numbers err by no more (typical)": (
            '<circle class="median" cx="50%" cy="50%" r="4.5"/>'
        ),
        "95 % err by no more (typical)": '<circle class="p95" cx="50%" cy="50%" r="5.5"/>',
        "no number errs by more (guaranteed)": (
            '<line class="bound" x1="50%" x2="50%" y1="0" y2="100%"/>'
        ),
    }
    items = [
        tag("li", tag("svg", Html(mark), aria_hidden="true"), words)
        for words, mark in marks.items()
    ]
    return tag("ul", *items, class_="key")


def _errors_table(rows: Sequence[LevelRow], *, is_od: bool) -> Html:
    largest = max(
        [row.guaranteed or 0 for row in rows]
        + [row.typical.overall.p95 for row in rows if row.typical]
        + [10]
    )
    scale = _Scale(largest)
    noise = f"Noise {_cell_word(is_od=is_od)}s"
    names = ("Level", "Published", noise, "Half within", "95 % within", "Guaranteed")
    head = tag(
        "tr",
        *(
            tag("th", name, scope="col", class_=None if i else "text")
            for i, name in enumerate(names)
        ),
        tag("th", scale.axis(), class_="plot", aria_label="Chart of the same errors"),
    )
    body = [tag("tr", *_cells(row, names, scale)) for row in rows]
    shape = tag("table", tag("thead", head), tag("tbody", *body), class_="data errors")
    return tag("div", shape, class_="scroll")


def _cells(row: LevelRow, names: Sequence[str], scale: "_Scale") -> list[Html]:
    overall = row.typical.overall if row.typical else None
    figures = [
        f"{overall.n_released:,}" if overall else "–",
        _share(overall.false) if overall else "–",
        f"±{overall.median:,}" if overall else "–",
        f"±{overall.p95:,}" if overall else "–",
        f"±{row.guaranteed:,}" if row.guaranteed is not None else "–",
    ]
    return [
        tag("th", arrowed(row.level.name), *_mark(row), scope="row", class_="text"),
        *(tag("td", v, data_name=name) for v, name in zip(figures, names[1:], strict=True)),
        tag("td", scale.plot(overall, row.guaranteed), class_="plot"),
    ]


def _mark(row: LevelRow) -> list[Html]:
    return [tag("span", "mostly noise", class_="mark")] if row.is_noise else []


class _Scale:
    """A logarithmic axis from 1 to a bit beyond the largest error, in per cent of the width."""

    def __init__(self, largest: int) -> None:
        self._decades = math.log10(largest) * 1.06
        self._powers = range(int(self._decades) + 1)

    def at(self, error: int) -> str:
        return f"{2 + 96 * math.log10(max(error, 1)) / self._decades:.2f}%"

    def axis(self) -> Html:
        marks = [
            f'<text x="{self.at(10**power)}" y="85%" text-anchor="middle">{10**power:,}</text>'
            for power in self._powers
        ]
        return tag("svg", Html("".join(marks)), aria_hidden="true")

    def plot(self, typical: TypicalError | None, bound: int | None) -> Html:
        marks = [
            f'<line class="grid" x1="{self.at(10**p)}" x2="{self.at(10**p)}" y1="0" y2="100%"/>'
            for p in self._powers
        ]
        if typical is not None and bound is not None:
            marks.append(
                f'<line class="reach" x1="{self.at(typical.p95)}" x2="{self.at(bound)}" '
                'y1="50%" y2="50%"/>'
            )
        if bound is not None:
            marks.append(
                f'<line class="bound" x1="{self.at(bound)}" x2="{self.at(bound)}" '
                'y1="22%" y2="78%"/>'
            )
        if typical is not None:
            low, high = self.at(typical.median), self.at(typical.p95)
            marks += [
                f'<line class="range" x1="{low}" x2="{high}" y1="50%" y2="50%"/>',
                f'<circle class="median" cx="{low}" cy="50%" r="4.5"/>',
                f'<circle class="p95" cx="{high}" cy="50%" r="5.5"/>',
            ]
        return tag("svg", Html("".join(marks)), aria_hidden="true")


def _sums_across(release: Release) -> str:
    """What is said of sums across the tree."""
    is_trips = Layout.of(release.tree).has_trips
    example = "all trips from one area" if is_trips else "totals of one axis"
    if unmeasured_totals(release.tree, release.manifest.plan):
        return _UNMEASURED.format(example=example)
    if len(release.tree.axes) == 1:
        return ""
    is_measured = release.has_totals
    return _ACROSS.format(
        example=example,
        factor="a third larger than" if is_measured else "twice as large as",
        measured=_MEASURED if is_measured else "",
    )


def _reading(
    rows: Sequence[LevelRow], errors: TypicalErrors | None, across: str, *, is_od: bool
) -> list[Html]:
    parts = [tag("h3", "How to read this")]
    cell = _cell_word(is_od=is_od)
    if any(row.guaranteed is not None for row in rows):
        parts.append(
            tag(
                "p",
                tag("strong", "Guaranteed"),
                " errors follow from the noise alone. With a probability of "
                f"{100 * (1 - BETA):.0f} % they hold for every number of every level at once, "
                f"published or not: a {cell} that is not in the table has a true number of no "
                "more than that.",
            )
        )
    if errors is None:
        parts.append(
            tag("p", "Typical errors are not stated: they cannot be simulated from this release.")
        )
        return parts
    parts += [
        tag(
            "p",
            tag("strong", "Typical"),
            " errors are an estimate: the published table was taken for the truth and released "
            f"again {errors.runs} times with the same noise. This uses only what is published, so "
            "it costs no privacy. In the classes below, 95 % of the published numbers of that "
            "size err by no more, including those whose true number is zero.",
        ),
        tag(
            "p",
            tag("strong", f"Noise {cell}s"),
            " are published although their true number is nothing, or next to it. Their share "
            "is simulated in the same way, and rough: nobody can tell a zero from a one by noisy "
            f"numbers. On 16 tables with known truth it lay between the share of {cell}s that "
            "are zero and of those below half of the noise, at 9 of 10 levels to within 5 points.",
        ),
        tag("p", *_zeros(rows, cell)),
        tag(
            "p",
            "Compared with the truth on three test data sets, the stated 95 % held for 94 % of the "
            "numbers or more, level by level and size by size. The median is too optimistic "
            "for numbers about as large as the noise at the finest levels (about a third of "
            "them, not half, are that good), and the size up to which numbers often vanish was "
            "off by about a sixth at most.",
            across,
            class_="note",
        ),
    ]
    return parts


def _cell_word(*, is_od: bool) -> str:
    return "pair" if is_od else "cell"


def _zeros(rows: Sequence[LevelRow], cell: str) -> list[object]:
    """What an unpublished pair and a small published one may mean."""
    general = (
        f" need care. A {cell} that is missing from the table is not known to be empty, and some "
        "small published numbers are zero in truth."
    )
    words: list[object] = [tag("strong", "Zeros"), general]
    finest = rows[-1].typical if rows else None
    if finest and finest.often_lost:
        words.append(_vanishing(finest.often_lost, finest.rarely_lost))
    return words


def _vanishing(often: int, rarely: int | None) -> str:
    """The size up to which numbers often vanish, and whether it is known exactly."""
    words = (
        f" At the finest level, true numbers up to about {often:,} often vanish (at least "
        f"one in {1 / OFTEN_LOST:.0f})"
    )
    if rarely is None:
        return f"{words}; of larger ones there are too few to tell."
    if rarely > max(WIDE_GAP * often, often + SMALL_GAP):
        return f"{words}; between that and {rarely:,} there are too few to tell."
    return f"{words}."


def _by_size(rows: Sequence[LevelRow], errors: TypicalErrors | None, *, is_od: bool) -> list[Html]:
    if errors is None:
        return []
    cell = _cell_word(is_od=is_od)
    parts = [tag("h3", "Typical error by size of the published number")]
    head = (
        "Published number",
        "How many",
        "Half within",
        "95 % within",
        "Of its size",
        f"Noise {cell}s (rough)",
        "Lost if true",
    )
    for row in reversed(rows):
        if row.typical is None or not row.typical.classes:
            continue
        lines = [_size_cells(entry) for entry in row.typical.classes]
        body = tag("div", table(head, lines))
        parts.append(tag("details", tag("summary", arrowed(row.level.name)), body))
    parts.append(
        tag(
            "p",
            "“Of its size”: the 95 % error relative to the smallest number of the class. “Noise "
            f"{cell}s”: share of published numbers whose true number is nothing or next to it. "
            "“Lost if true”: share of true numbers of this size that are published as zero, stated "
            "rather too high.",
            class_="note more",
        )
    )
    return parts


def _size_cells(entry: TypicalError) -> tuple[object, ...]:
    size = f"{entry.low:,} and more" if entry.high is None else f"{entry.low:,}–{entry.high:,}"
    relative = entry.p95 / entry.low
    return (
        size,
        f"{entry.n_released:,}",
        f"±{entry.median:,}",
        f"±{entry.p95:,}",
        "over 100 %" if relative > 1 else f"{relative:.1%}".replace("%", " %"),
        _share(entry.false),
        _share(entry.lost),
    )


def _share(share: float) -> str:
    if share == 0:
        return "0"
    return "under 1 %" if share < 0.01 else f"{share:.0%}".replace("%", " %")
