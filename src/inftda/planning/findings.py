"""Results of a preview: for every setting the levels and totals that would be published; a page."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from inftda.pages import html
from inftda.pages.charts import Line, LineChart, shade_of
from inftda.pages.html import percent
from inftda.planning.accuracy import NOTICE
from inftda.privacy.risk import PRECEDENTS, Risk
from inftda.privacy.unit import Unit
from inftda.publication.reliability import WHOLE, totals_name
from inftda.util.files import check_file
from inftda.util.screen import Formats, Grid, Part

#: Beyond this a share is not called all.
_ALL: Final = 0.9995
_WHAT_IT_IS: Final = (
    "Simulated on a public stand-in: no confidential data was read and no budget is used. "
    "Guaranteed errors hold for every table; all other figures are true of the stand-in."
)

#: Columns of the tables of a preview, with their formats.
_LEVELS: Final[Formats] = {
    "level": "{0.name}",
    "guaranteed": "{0.guaranteed:,}",
    "95 % within": "{0.p95:,}",
    "common part": "{0.common_part:.4f}",
    "false": "{0.false_share:.1%}",
    "lost": "{0.lost_share:.1%}",
    "usable from": "{0.usable_from}",
}
_TOTALS: Final[Formats] = {
    "totals of": lambda total: totals_name(total.axis, total.level),
    "areas": "{0.n_areas:,}",
    "95 % within": "{0.p95:,}",
    "mean error": "{0.mean_error:,.1f}",
}


@dataclass(frozen=True)
class Setting:
    """One combination of epsilon, privacy unit and split; the split is as it was given."""

    epsilon: float
    unit: Unit
    split: Any = "uniform"

    def describe(self) -> str:
        """In one line."""
        split = self.split if isinstance(self.split, str) else ",".join(map(str, self.split))
        return f"epsilon = {self.epsilon:g}; {self.unit.describe()}; split {split}"


@dataclass(frozen=True, slots=True)
class SizeShares:
    """False and lost flows of one size class.

    Attributes:
        low: smallest number of the class.
        false: share of the published numbers of this size whose truth is zero; None if too few.
        lost: share of the true flows of this size that are published as zero; None if too few.
    """

    low: int
    false: float | None
    lost: float | None


@dataclass(frozen=True, slots=True)
class Usable:
    """The smallest usable count of a level; see `inftda.publication.reliability`.

    Attributes:
        smallest: the smallest usable count; None if there is none in most simulated releases.
        numbers: share of the published numbers that are as large.
        trips: share of the published trips in them.
    """

    smallest: int | None
    numbers: float
    trips: float


@dataclass(frozen=True)
class LevelPreview:
    """One level of a release to come.

    Attributes:
        name: for people.
        depths: level on each axis.
        n_cells: possible cells.
        guaranteed: no number of the release will be further off, with 95 % probability for
            all levels together.
        largest_error: of any cell, in the worst simulation.
        mean_error: over cells that are not zero in both tables.
        common_part: common part of commuters, 1 if nothing is wrong.
        false_share: part of the published flows that are zero in truth.
        lost_share: part of the true flows that are published as zero.
        median: half of the published numbers are no further off.
        p95: 95 % of the published numbers are no further off.
        usable: smallest usable count and the shares of numbers and trips from there on.
        sizes: false and lost flows by size.
    """

    name: str
    depths: tuple[int, ...]
    n_cells: int
    guaranteed: int
    largest_error: int
    mean_error: float
    common_part: float
    false_share: float
    lost_share: float
    median: int
    p95: int
    usable: Usable
    sizes: tuple[SizeShares, ...]

    @property
    def usable_from(self) -> str:
        """Smallest usable count as the cell of a table."""
        if self.usable.smallest is None:
            return "\N{EN DASH}"
        return "all" if self.usable.numbers >= _ALL else f"{self.usable.smallest:,}"

    @property
    def cells(self) -> str:
        """Term for the numbers of this level: flows, cells or totals."""
        ends = self.name.split(" > ")
        return "pairs" if len(ends) == 2 and ends[0] == ends[1] else "flows"

    def usable_sentence(self, *, is_named: bool = True) -> str:
        """State the smallest usable count, with or without the name of the level."""
        name = self.name.split(" > ")[0] if self.cells == "pairs" else self.name
        what = f"{name} {self.cells}" if is_named else self.cells
        if self.usable.smallest is None:
            return f"no {what} are large enough to be usable"
        if self.usable.numbers >= _ALL:
            return f"all {what} are usable"
        return (
            f"{what} of {self.usable.smallest:,} trips or more are usable "
            f"({percent(self.usable.numbers)} of those published, "
            f"{percent(self.usable.trips)} of the trips)"
        )


@dataclass(frozen=True)
class TotalPreview:
    """In- or out-totals of one level of areas, or totals of a level of any other axis.

    Attributes:
        axis: its name.
        level: name of the level.
        n_areas: how many totals there are.
        mean_error: over all areas.
        p95: 95 % of the areas err by no more.
        largest_error: in the worst simulation.
        stated_within: a measured total is published with an interval of this half width; None
            where the plan measures no cross table for them.
    """

    axis: str
    level: str
    n_areas: int
    mean_error: float
    p95: int
    largest_error: int
    stated_within: int | None


@dataclass(frozen=True)
class SettingPreview:
    """Simulated releases with one setting.

    Attributes:
        setting: the setting.
        guarantee: the guarantee in one sentence.
        accounting: epsilon, delta, rho, accountant and noise in words.
        risk: success probabilities of an attacker, from epsilon and delta.
        sigma: standard deviation of the noise of the finest level that is measured.
        levels: of the tree, coarse to fine.
        totals: in- and out-totals, by axis and level.
    """

    setting: Setting
    guarantee: str
    accounting: str
    risk: Risk
    sigma: float
    levels: tuple[LevelPreview, ...]
    totals: tuple[TotalPreview, ...]

    @property
    def finest_usable(self) -> LevelPreview | None:
        """The finest level that can be used as a whole."""
        usable = [level for level in self.levels if level.usable.trips >= WHOLE]
        return usable[-1] if usable else None

    @property
    def verdict(self) -> str:
        """State the finest usable level, in two sentences."""
        finest, last = self.finest_usable, self.levels[-1]
        if finest is None:
            return "No level is usable as a whole."
        sentence = finest.usable_sentence(is_named=False)
        words = f"Usable down to {finest.name}: {sentence}."
        if finest is last:
            return words
        return f"{words} At the finest level, {last.usable_sentence()}."


#: Definition of a usable number and a usable level.
WHAT_IS_USABLE: Final = (
    "usable from: the smallest usable count; of the numbers from there on, at most one in 20 is "
    f"noise or off by more than half. A level is usable if they hold {percent(WHOLE)} of its "
    "trips or more."
)


@dataclass(frozen=True)
class Preview:
    """Simulated releases of a stand-in, summarised for each setting.

    Attributes:
        stand_in: how the stand-in was made, in words.
        n_trips: its trips.
        n_flows: its flows between finest areas.
        runs: simulations of each setting.
        delta: the same for all settings.
        settings: in the order they were asked for.
        is_confidential: whether the stand-in, and with it every figure, may be confidential.
    """

    stand_in: str
    n_trips: int
    n_flows: int
    runs: int
    delta: float
    settings: tuple[SettingPreview, ...]
    is_confidential: bool = False

    def shown(self) -> Iterator[Part]:
        """Guarantee, result, levels and totals of every setting; technical details last."""
        if self.is_confidential:
            yield from (NOTICE, "")
        counted = f"{self.n_trips:,} trips, {self.n_flows:,} flows"
        yield "Stand-in", f"{self.stand_in}; {counted}"
        runs = f"{self.runs} release{'s' if self.runs > 1 else ''}"
        yield "Simulated", f"{runs} of each setting; no budget is used"
        for one in self.settings:
            yield from (
                "",
                ("Setting", one.setting.describe()),
                ("Guarantee", one.guarantee),
                ("Result", one.verdict),
                Grid.of(one.levels, _LEVELS),
                Grid.of(one.totals, _TOTALS),
            )
        yield from (
            "guaranteed: with probability 95 %, no error is larger, whatever the table",
            "95 % within: 95 % of the published numbers have at most this error",
            "false: published flows that are truly zero; lost: true flows that are not published",
            WHAT_IS_USABLE,
            "Guaranteed errors hold for every table, all other figures for the stand-in only.",
            "",
            "Technical details",
        )
        for one in self.settings:
            yield "Setting", one.setting.describe()
            yield "Accounting", one.accounting
            yield "Attacker", one.risk.describe()

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as a mapping, for JSON."""
        shown = [
            {
                "epsilon": one.setting.epsilon,
                "unit": one.setting.unit.to_dict(),
                "split": one.setting.split,
                "guarantee": one.guarantee,
                "accounting": one.accounting,
                "risk": one.risk.to_dict(),
                "sigma": one.sigma,
                "finest_usable": one.finest_usable and one.finest_usable.name,
                "levels": [asdict(level) for level in one.levels],
                "totals": [asdict(total) for total in one.totals],
            }
            for one in self.settings
        ]
        return {
            "kind": "inftda-preview",
            "what_it_is": NOTICE if self.is_confidential else _WHAT_IT_IS,
            "confidential": self.is_confidential,
            "stand_in": self.stand_in,
            "trips": self.n_trips,
            "flows": self.n_flows,
            "runs": self.runs,
            "delta": self.delta,
            "settings": shown,
        }


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
            totals_name(axis, group[0].totals[number].level),
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
