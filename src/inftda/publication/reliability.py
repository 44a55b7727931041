"""Reliability of a release, in words and numbers.

All statements follow from the manifest and from released numbers, so they use no budget. The
wording is defined here only, so that summary, page, `query` and `verify` agree.

Three statements follow from intervals (`inftda.publication.intervals`): the grade of a number, the
smallest usable count of a level, and whether most of its numbers are noise. A published number is
*noise* here if the true number is below half of a standard deviation of the noise, and so cannot be
distinguished from 0.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inftda.noise.distribution import Noise
from inftda.privacy.risk import risk_of
from inftda.publication.agreement import FAR, TableFit, level_sums
from inftda.publication.manifest import MEASUREMENTS_FILE
from inftda.tree import DESTINATION, ORIGIN, Areas, CrossTable, Marginal, Tree, TreeLevel
from inftda.tree.hierarchy import OUTSIDE

if TYPE_CHECKING:
    from inftda.privacy.noise_plan import Plan
    from inftda.publication.intervals import Intervals
    from inftda.publication.release import Release

#: A guarantee is called weak if the best attacker is right more often than this.
WEAK: Final = 0.9
#: Part of one over the number of people: warn of a larger delta.
FAR_BELOW: Final = 0.1
#: Statement about a release that was made with a seed; its plan states a guarantee nevertheless.
NOT_PRIVATE: Final = (
    "NOT PRIVATE: this release was made with a seed, for testing. It gives no guarantee and must "
    "not be published."
)
#: Short form of that statement.
NOT_PRIVATE_LINE: Final = "NOT PRIVATE: made with a seed, gives no guarantee, must not be published"
#: Statement about a page or an estimate of such a release.
MADE_FROM_NOT_PRIVATE: Final = "NOT PRIVATE: made with a seed, must not be published."
#: Grades of numbers: the largest error, as a part of the number.
GRADES: Final = {"A": 0.1, "B": 0.25, "C": 0.5, "D": math.inf}
#: The grades in words.
GRADE_RULE: Final = (
    "up to "
    + ", ".join(f"{100 * part:.0f} % {grade}" for grade, part in GRADES.items() if part < 1)
    + ", or D, which may be off by more than half"
)
#: A note states unlisted flows of a total if they exceed this part of its interval.
UNLISTED: Final = 0.5
#: Largest part of the usable numbers that may be off by more than half.
MOST_POOR: Final = 0.05
#: A level is usable as a whole if this part of its total is in usable numbers.
WHOLE: Final = 0.8
_PERCENT: Final = 0.01
#: Fewer numbers than this are too few to estimate a share.
ENOUGH: Final = 30
#: A level is called mostly noise if more than this part of its numbers are noise.
MOSTLY: Final = 0.5
#: A plan warns of a level whose mean flow is below this part of the standard deviation.
_FAR_BELOW: Final = 0.01
#: Number of tables that do not fit that a message names.
_NAMED: Final = 3
#: Sums of at most this many noisy numbers are nearly as accurate as one.
_FEW: Final = 20


def counting_note(release: "Release") -> str:
    """Caveats about rows that are left out or counted outside; empty if there are none."""
    manifest = release.manifest
    return "; ".join(manifest.counted.words(manifest.unit, release.tree))


def grades(
    number: NDArray[np.int64], low: NDArray[np.int64], high: NDArray[np.int64]
) -> pa.StringArray:
    """Grade of each number by its interval: its larger half as a part of the number.

    >>> grades(np.array([100, 100, 6]), np.array([91, 40, 0]), np.array([110, 120, 6])).to_pylist()
    ['A', 'D', 'D']
    """
    part = part_off(number, low, high)
    return pa.array([*GRADES]).take(pa.array(np.searchsorted([*GRADES.values()], part)))


def part_off(
    number: NDArray[np.int64], low: NDArray[np.int64], high: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Largest error of each number, as a part of the number: the larger half of its interval."""
    off = np.maximum(number - low, high - number)
    part = np.divide(off, number, out=np.full(len(number), math.inf), where=number > 0)
    return np.asarray(part)


def listed_note(totals: pa.Table) -> str:
    """State how much of totals is in unlisted flows; empty if that may be noise.

    `totals` has columns `flow`, `listed`, `low` and `high`.
    """
    names = ("flow", "listed", "low", "high")
    flow, listed, low, high = (totals.column(name).to_numpy() for name in names)
    missing = (flow - listed)[flow - listed > UNLISTED * (high - low)]
    if not len(missing):
        return ""
    if len(totals) == 1:
        return f"{missing[0]:,} of these are in flows too small to be listed"
    return (
        f"{len(missing):,} of these totals have a part in flows too small to be listed, "
        f"{missing.sum():,} in all; see column listed"
    )


def misfits(release: "Release", fits: Iterable[TableFit] | None = None) -> list[TableFit]:
    """Tables whose published numbers disagree with the measurements.

    Totals of areas are left out, because published totals follow the measurement. `fits` are by
    default those of the published tables.
    """
    if fits is None:
        fits = release.fits if release.published_tables() else ()
    shown = {table.depths for table, _ in planned_totals(release.tree, release.manifest.plan)}
    return [fit for fit in fits if not fit.is_right and fit.marginal.depths not in shown]


def misfit_warnings(release: "Release", fits: Iterable[TableFit] | None = None) -> list[str]:
    """Warn of sums of flows that disagree with the measurements; arguments as of `misfits`."""
    wrong = misfits(release, fits)
    published = {table.name for table in release.published_tables()}
    are_known = all(fit.name in published for fit in wrong)
    instead = f"take them from {MEASUREMENTS_FILE}" if are_known else "do not use them"
    words = describe_misfits(wrong, instead)
    cross_tables = (fit.marginal for fit in wrong if isinstance(fit.marginal, CrossTable))
    late = {table.axes[table.level.axis].name for table in cross_tables} - {ORIGIN, DESTINATION}
    if words and late:
        axes = ", ".join(sorted(late))
        words += f". A release that refines {axes} earlier (`order=`) has better ones"
    return [words] if words else []


def describe_misfits(fits: Iterable[TableFit], instead: str) -> str:
    """Name tables that do not fit, the worst first, and the remedy; empty if all fit."""
    wrong = sorted((fit for fit in fits if not fit.is_right), key=lambda fit: -fit.rms)
    if not wrong:
        return ""
    named, n_others = ", ".join(fit.name for fit in wrong[:_NAMED]), len(wrong) - _NAMED
    others = f" and {n_others} other table{'s' if n_others > 1 else ''}" if n_others > 0 else ""
    far = f"off by up to {wrong[0].rms:.1f} standard deviations of the noise, where 1 is right"
    if not wrong[0].is_too_far:
        far = f"{100 * wrong[0].beyond:.1f} % are off by more than {FAR} standard deviations"
    return f"sums by {named}{others} do not agree with what was measured ({far}): {instead}"


def warnings(plan: "Plan", *, total: int | None = None) -> list[str]:
    """Warnings for the custodian before publication.

    `total` is the sum of released flows, if there are any: the true one may be confidential.
    """
    said: list[str] = []
    if risk_of(plan).success > WEAK:
        said.append("the guarantee is weak; an epsilon from 0.1 to 10 is usual")
    if total is None:
        return said
    people = total // plan.unit.trips
    if plan.delta is not None and plan.delta * people > FAR_BELOW:
        said.append(f"delta should be far below 1 / people, here about 1 / {people:,}")
    if total == 0:
        said.append(
            "the release is empty: noise exceeds what was counted, or no row could be counted; "
            "check the columns and areas that were named"
        )
    return said


def outside_warnings(release: "Release") -> list[str]:
    """Warnings if much of a release could not be placed; from released numbers alone."""
    if not any(axis.hierarchy.has_outside for axis in release.tree.axes):
        return []
    areas, flow = release.leaves()
    is_outside = np.zeros(len(flow), bool)
    for axis, numbers in zip(release.tree.axes, areas, strict=True):
        if axis.hierarchy.has_outside:
            codes = axis.hierarchy.codes(axis.hierarchy.depth)
            is_outside |= numbers == codes.index(OUTSIDE).as_py()
    if 3 * flow[is_outside].sum() <= flow.sum() or not len(flow):
        return []
    words = (
        f"more than a third of all {release.manifest.counted.what} are in the area {OUTSIDE!r}; if "
        "rows of the table are totals, take them out, or what they sum up is counted twice"
    )
    return [words]


@dataclass(frozen=True, slots=True, repr=False)
class LevelUse:
    """Smallest usable count of one level.

    Attributes:
        level: the level.
        cells: noun for its numbers: flows, or cells of other tables.
        what: noun for the counted entries, in the plural.
        smallest: the smallest usable count; None if there is none.
        n_used: number of usable numbers.
        share: share of the total in usable numbers.
        n_published: number of published numbers, all above zero.
        noise_share: estimated part of the published numbers that are noise.
        is_known: whether the measurements are published; otherwise the other figures are unknown.
    """

    level: TreeLevel
    cells: str
    what: str
    smallest: int | None
    n_used: int
    share: float
    n_published: int
    noise_share: float
    is_known: bool = True

    @property
    def is_mostly_noise(self) -> bool:
        """Whether most numbers of the level are noise."""
        return self.n_published >= ENOUGH and self.noise_share > MOSTLY

    @property
    def is_all(self) -> bool:
        """Whether all numbers of the level are usable."""
        return self.is_known and self.n_used == self.n_published

    @property
    def size(self) -> str:
        """Smallest usable count, for a table."""
        if not self.is_known:
            return "not known"
        if self.is_all:
            return "all"
        return "none" if self.smallest is None else f"{self.smallest:,}"

    def describe(self) -> str:
        """State the smallest usable count, for all outputs.

        >>> level = Tree.destination_first(Hierarchy.read({"town": ["a", "b"]})).levels[-1]
        >>> LevelUse(level, "flows", "trips", 92, 4, 0.829, 9, 0.2).describe()
        'flows of 92 or more are usable (82 % of all trips); smaller ones may be noise'
        """
        if not self.is_known:
            return "the smallest usable count is not known: the measurements are not published"
        if self.is_all:
            return f"all {self.cells} are usable"
        others = "are mostly noise" if self.is_mostly_noise else "may be noise"
        if self.smallest is None:
            return f"no {self.cells} are large enough to be usable; they {others}"
        part = f"{math.floor(100 * self.share)} %" if self.share >= _PERCENT else "less than 1 %"
        return (
            f"{self.cells} of {self.smallest:,} or more are usable ({part} of all {self.what}); "
            f"smaller ones {others}"
        )

    def __repr__(self) -> str:
        return f"<{self.level.name}: {self.describe()}>"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "level": self.level.name,
            "use_from": self.smallest,
            "share": self.share,
            "words": self.describe(),
        }


def level_uses(release: "Release") -> tuple[LevelUse, ...]:
    """Compute the smallest usable count of each level with noise, coarse to fine.

    `Release.uses` has the same, computed once.
    """
    planned = {level.index for level in release.manifest.plan.levels} - {0}
    words = "flows" if release.tree.is_od else "cells", release.manifest.counts
    known = release.intervals() if release.has_measurements else None
    sums = level_sums(release.tree, *release.leaves()) if known is None else known.nodes
    found = [level_use(*one, known, words) for one in sums if one[0].index in planned]
    return tuple(reversed(found))


def level_use(
    level: TreeLevel,
    areas: Areas,
    flow: NDArray[np.int64],
    known: "Intervals | None",
    words: tuple[str, str],
) -> LevelUse:
    """Compute the smallest usable count of a level.

    Args:
        level: the level.
        areas: int32[numbers] for each axis.
        flow: the published numbers of the level, all above zero.
        known: intervals, if the measurements are published.
        words: nouns for the numbers and for the counted entries.
    """
    if known is None:
        return LevelUse(level, *words, None, 0, 0.0, len(flow), 0.0, is_known=False)
    is_poor = part_off(flow, *known.of(level.depths, areas, flow)) > GRADES["C"]
    smallest = smallest_usable(flow, is_poor)
    used = flow[flow >= smallest] if smallest is not None else flow[:0]
    share, noise = float(used.sum() / max(flow.sum(), 1)), known.noise_share(level)
    return LevelUse(level, *words, smallest, len(used), share, len(flow), noise)


def use_notes(release: "Release") -> list[str]:
    """Smallest usable counts level by level; levels where all counts are usable are merged."""
    whole = [use for use in release.uses if use.is_all]
    names = ", ".join(use.level.name for use in whole)
    return [
        *([f"{names}: {whole[0].describe()}"] if whole else []),
        *(f"{use.level.name}: {use.describe()}" for use in release.uses if not use.is_all),
    ]


def smallest_usable(
    number: NDArray[np.int64], is_poor: NDArray[np.bool_], most: float = MOST_POOR
) -> int | None:
    """The smallest usable count of some numbers; None if there is none.

    For every n from there on, at most 5 % of the numbers from n to 2 n are poor.

    >>> sizes = np.array([5, 5, 40, 41, 90, 95, 300])
    >>> smallest_usable(sizes, sizes < 41), smallest_usable(sizes, sizes > 200)
    (41, None)
    >>> smallest_usable(sizes, sizes == 95)
    96

    Args:
        number: the numbers.
        is_poor: whether each may be off by more than half.
        most: part that may be.
    """
    every, poor = np.sort(number), np.sort(number[is_poor])
    size = every[np.append(True, every[1:] != every[:-1])[: len(every)]]
    # As n grows, a number joins those from n to 2 n at half its size and leaves above its size.
    n = np.unique(np.concatenate([size, size + 1, (size + 1) // 2]))
    n_every, n_poor = (
        np.searchsorted(of, 2 * n, side="right") - np.searchsorted(of, n) for of in (every, poor)
    )
    wrong = np.flatnonzero(n_poor > most * n_every)
    if not len(wrong):
        return int(size[0]) if len(size) else None
    smallest = int(n[wrong[-1] + 1])  # at the last n, above all sizes, nothing is wrong
    return smallest if smallest <= size[-1] else None


def is_drowned(total: int, cells: int, sigma: float) -> bool:
    """Whether the mean flow of a level is so small that most of its numbers will be noise."""
    return total < _FAR_BELOW * sigma * cells


def planned_totals(tree: Tree, plan: "Plan") -> list[tuple[CrossTable, Noise]]:
    """Tables of totals in a plan, with the noise of each."""
    planned = {table.depths: table.noise for table in plan.tables}
    return [
        (table, planned[table.depths])
        for table in tree.cross_tables
        if table.is_whole and table.depths in planned
    ]


def sums_up_many(tree: Tree, depths: Sequence[int]) -> bool:
    """Whether a number at these levels is the sum of many noisy numbers of the tree.

    These are numbers of the coarsest level of the tree that is at least as fine on every axis.
    """
    for level in tree.levels:
        if all(fine >= at for fine, at in zip(level.depths, depths, strict=True)):
            return level.n_nodes > _FEW * Marginal(tree.axes, tuple(depths)).n_nodes
    return False


def unmeasured_totals(tree: Tree, plan: "Plan") -> dict[str, list[str]]:
    """Marginal totals whose errors are not known: axis to names of levels.

    Empty if totals were measured, or if noise is too small to matter. Totals that sum up few
    numbers of the tree are left out.
    """
    planned = {level.index for level in plan.levels}
    is_measured = all(level.index in planned for level in tree.splitting_levels)
    if plan.tables or plan.is_precise or not is_measured:
        return {}
    found: dict[str, list[str]] = {}
    for table in tree.cross_tables:
        if table.is_whole and sums_up_many(tree, table.depths):
            axis, level = axis_and_level(table)
            found.setdefault(axis, []).append(level)
    return found


def unknown_intervals(release: "Release") -> str:
    """Why numbers have no intervals; empty if they do."""
    if release.has_measurements:
        return ""
    if release.has_totals:
        return "Only totals of areas have intervals: the other measurements are not published."
    return "No interval is known: the measurements are not published."


def describe_cross_totals(tree: Tree, plan: "Plan") -> str:
    """State the measured totals with their errors, or why no cross tables are measured."""
    if not plan.cross_table_share:
        totals = unmeasured_totals(tree, plan)
        if not totals:
            return ""
        known = " and ".join(f"{axis} ({', '.join(levels)})" for axis, levels in totals.items())
        return (
            f"no cross tables are measured: errors add up in totals of {known}; `cross_tables=` "
            "measures them"
        )
    if not plan.tables:
        has_any = bool(tree.cross_tables)
        why = "noise this small leaves" if has_any else "a tree of one axis has"
        return f"no cross tables are measured: {why} nothing to gain from them"
    known = ", ".join(
        f"{totals_name(*axis_and_level(table))} \N{PLUS-MINUS SIGN}{noise.half_width():,}"
        for table, noise in planned_totals(tree, plan)
        if table.is_finest_one_way
    )
    return (
        f"{100 * float(plan.used_share):.2g} % of the budget measures marginal totals, with "
        f"these errors (95 %): {known}; sums of flows are close to the measured totals"
    )


def totals_name(axis: str, level: str) -> str:
    """Name the totals of a level of an axis; what is the name of both stands once.

    >>> totals_name("origin", "town"), totals_name("mode", "mode")
    ('origin town', 'mode')
    """
    return " ".join(dict.fromkeys((axis, level)))


def axis_and_level(table: CrossTable) -> tuple[str, str]:
    """Axis and level of a one-way table."""
    axis = table.level.axes[table.level.axis]
    return axis.name, axis.hierarchy.level_name(table.depths[table.level.axis])
