"""What a preview found: for every setting the levels and totals that would be published."""

from dataclasses import asdict, dataclass
from typing import Any, Final

from inftda.evaluation.evaluate import NOTICE
from inftda.pages.html import percent
from inftda.previews.errors import LevelErrors
from inftda.privacy.risk import Risk
from inftda.privacy.unit import Unit

#: Of the numbers from the stated size on, at most this part is further off.
RARELY: Final = 0.05
#: A level is usable if this part of its trips is in numbers that can be relied on.
ENOUGH: Final = 0.8
#: Beyond this a share is not called all.
_ALL: Final = 0.9995
_WHAT_IT_IS: Final = (
    "Simulated on a public stand-in: nothing confidential was read and nothing is spent. "
    "Guaranteed errors hold for every table; all other figures are true of the stand-in."
)


@dataclass(frozen=True, slots=True)
class Usable:
    """From what size on the numbers of a level are right within the tolerated part.

    Attributes:
        smallest: numbers from here on are; None if there are none, or too few to tell.
        numbers: share of the published numbers that are as large.
        trips: share of the published trips that are in them.
    """

    smallest: int | None
    numbers: float
    trips: float

    @property
    def is_usable(self) -> bool:
        """Whether the level can be used as a whole."""
        return self.trips >= ENOUGH


@dataclass(frozen=True)
class Setting:
    """One choice of what is decided before a release.

    Attributes:
        epsilon: strength of the guarantee.
        unit: who is protected.
        split: of the budget over levels, as it was given.
    """

    epsilon: float
    unit: Unit
    split: Any = "uniform"

    def describe(self) -> str:
        """In one line."""
        split = self.split if isinstance(self.split, str) else ",".join(map(str, self.split))
        return f"epsilon = {self.epsilon:g}; {self.unit.describe()}; split {split}"


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
        typical: errors by size of the published number.
        usable: from what size on numbers can be relied on.
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
    typical: LevelErrors
    usable: Usable

    @property
    def usable_from(self) -> str:
        """From what size on its numbers can be relied on, for a table."""
        if self.usable.smallest is None:
            return "\N{EN DASH}"
        return "all" if self.usable.numbers >= _ALL else f"{self.usable.smallest:,}"

    @property
    def cells(self) -> str:
        """What the numbers of this level are called."""
        ends = self.name.split(" > ")
        return "pairs" if len(ends) == 2 and ends[0] == ends[1] else "flows"

    def usable_sentence(self, tolerance: float, *, is_named: bool = True) -> str:
        """From what size on its numbers can be relied on.

        Args:
            tolerance: part of itself by which a number may be off.
            is_named: whether to name the level.
        """
        name = self.name.split(" > ")[0] if self.cells == "pairs" else self.name
        what, part = f"{name} {self.cells}" if is_named else self.cells, percent(tolerance)
        if self.usable.smallest is None:
            return f"no {what} are large enough to be right within {part}"
        if self.usable.numbers >= _ALL:
            return f"all {what} are right within {part}"
        return (
            f"{what} of {self.usable.smallest:,} trips or more are right within {part} "
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
            where totals are not measured across the tree.
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
    """What would be published with one setting.

    Attributes:
        setting: the setting.
        promise: epsilon, delta, rho and the accountant in words.
        risk: what it leaves to an attacker.
        sigma: noise scale of the finest level that is measured.
        levels: of the tree, coarse to fine.
        totals: in- and out-totals, by axis and level.
    """

    setting: Setting
    promise: str
    risk: Risk
    sigma: float
    levels: tuple[LevelPreview, ...]
    totals: tuple[TotalPreview, ...]

    @property
    def finest_usable(self) -> LevelPreview | None:
        """The finest level that can be used as a whole."""
        usable = [level for level in self.levels if level.usable.is_usable]
        return usable[-1] if usable else None

    def verdict(self, tolerance: float) -> str:
        """Which level is still usable, in two sentences."""
        finest, last = self.finest_usable, self.levels[-1]
        if finest is None:
            return "No level is usable as a whole."
        sentence = finest.usable_sentence(tolerance, is_named=False)
        words = f"Usable down to {finest.name}: {sentence}."
        if finest is last:
            return words
        return f"{words} At the finest level, {last.usable_sentence(tolerance)}."


#: What is called usable.
WHAT_IS_USABLE: Final = (
    f"A level is called usable if at least {percent(ENOUGH)} of its trips are in numbers of a "
    f"size at which no more than one number in {1 / RARELY:.0f} is further off."
)


@dataclass(frozen=True)
class Preview:
    """What would be published with each of the settings.

    Attributes:
        stand_in: how the stand-in was made, in words.
        n_trips: its trips.
        n_flows: its flows between finest areas.
        runs: simulations of each setting.
        tolerance: part of itself by which a number may be off to be relied on.
        delta: the same for all settings.
        settings: in the order they were asked for.
        is_confidential: whether what stands in may be confidential, and so all of this.
    """

    stand_in: str
    n_trips: int
    n_flows: int
    runs: int
    tolerance: float
    delta: float
    settings: tuple[SettingPreview, ...]
    is_confidential: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        shown = [
            {
                "epsilon": one.setting.epsilon,
                "unit": one.setting.unit.to_dict(),
                "split": one.setting.split,
                "promise": one.promise,
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
            "tolerance": self.tolerance,
            "delta": self.delta,
            "settings": shown,
        }
