"""How far readers can trust a release, in words and numbers.

All of it follows from the manifest and from what is released: nothing here sees the truth, so it
costs no privacy. The words are made here and nowhere else, so that summary, page, `query` and
`verify` agree.

Some levels are mostly noise, which is recognised from the release alone. A published pair is
*noise* here if its true number is nothing, or less than half of the noise scale of its level:
nobody could tell these two apart. How many pairs of a level are noise cannot be known without
the truth, but two public figures go with it closely:

- the part of the published numbers that are smaller than the noise scale, and
- how many cells were drawn for each that is published, since the more there were to choose
  from, the larger the noise of those that made it.

The share of noise is estimated as the first and a fifth of the decimal logarithm of the second.
Compared with the truth on 16 tables, epsilon 0.1 to 10, at 482 levels with 30 published numbers
or more, that has a correlation of 0.98 with the true share. A level is called mostly noise from
an estimate of 0.55 on: 96 % of the levels are called what they are, and where it was wrong the
true share lay between 33 and 67 % (`docs/guides/read.md`).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inftda.hierarchy import OUTSIDE
from inftda.inference.agreement import FAR, TableFit, level_sums
from inftda.noise.law import Law
from inftda.privacy.risk import risk_of
from inftda.publication.manifest import MEASUREMENTS_FILE
from inftda.tree import DESTINATION, ORIGIN, Marginal, OffTree, Tree, TreeLevel

if TYPE_CHECKING:
    from inftda.privacy.plan import Plan
    from inftda.publication.release import Release

#: A promise is called weak if the best attacker is right more often than this.
WEAK: Final = 0.9
#: Of one over the number of people: a delta above this part of it is no promise to speak of.
FAR_BELOW: Final = 0.1
#: Said of a release that was made with a seed, whatever its plan would promise.
NOT_PRIVATE: Final = (
    "NOT PRIVATE: this release was made with a seed, for testing. It promises nothing and must "
    "not be published."
)
#: The same in a line, beside other lines.
NOT_PRIVATE_LINE: Final = "NOT PRIVATE: made with a seed, promises nothing, must not be published"
#: Said of what was made from such a release: a page, an estimate.
MADE_FROM_NOT_PRIVATE: Final = "NOT PRIVATE: made with a seed, must not be published."
#: How good a number is, by how far off it may be: up to this part of it. The last grade is for all
#: others, which may be zero.
GRADES: Final = {"A": 0.1, "B": 0.25, "C": 0.5, "D": math.inf}
#: The same in words: how far an interval goes from its number.
GRADE_RULE: Final = (
    "up to "
    + ", ".join(f"{100 * part:.0f} % {grade}" for grade, part in GRADES.items() if part < 1)
    + ", or D, which may be zero"
)
#: The last of them.
MAY_BE_ZERO: Final = "D"
#: Numbers that can be used are further off than half no more often than this, and are noise alone
#: no more often than this: at most one in 20 together.
_RARELY: Final = 0.025
#: Quantiles of noise are known so far.
_LEAST_MISSED: Final = 1e-14
_PERCENT: Final = 0.01
#: Fewer numbers than this say nothing about a share.
ENOUGH: Final = 30
#: From this estimate on a level is called mostly noise.
MOSTLY: Final = 0.55
#: What ten times as many cells drawn add to the estimate.
_PER_DECADE: Final = 0.2
#: Before there is a release: a level whose mean flow is below this part of its noise scale.
_FAR_BELOW: Final = 0.01
#: So many tables that do not fit are named.
_NAMED: Final = 3
#: Sums of no more noisy numbers than this are nearly as good as one.
_FEW: Final = 20


def counting_note(release: "Release") -> str:
    """What the table leaves out, or counts where one would not look; empty if nothing."""
    manifest = release.manifest
    return "; ".join(manifest.counted.words(manifest.unit, release.tree))


def grades(
    number: NDArray[np.int64], low: NDArray[np.int64], high: NDArray[np.int64]
) -> pa.StringArray:
    """Grade of each number by its interval: its larger half as a part of the number.

    >>> grades(np.array([100, 100, 6]), np.array([91, 40, 0]), np.array([110, 120, 6])).to_pylist()
    ['A', 'D', 'D']
    """
    off = np.maximum(number - low, high - number)
    part = np.divide(off, number, out=np.full(len(number), math.inf), where=number > 0)
    return pa.array([*GRADES]).take(pa.array(np.searchsorted([*GRADES.values()], part)))


def listed_note(totals: pa.Table) -> str:
    """What listed flows lack of totals; empty if that may be noise.

    `totals` has columns `flow`, `listed`, `low` and `high`. Less than half of an interval is noise.
    """
    names = ("flow", "listed", "low", "high")
    flow, listed, low, high = (totals.column(name).to_numpy() for name in names)
    missing = (flow - listed)[2 * (flow - listed) > high - low]
    if not len(missing):
        return ""
    if len(totals) == 1:
        return f"{missing[0]:,} of these are in flows too small to be listed"
    return (
        f"{len(missing):,} of these totals have a part in flows too small to be listed, "
        f"{missing.sum():,} in all; see column listed"
    )


def misfits(release: "Release") -> list[TableFit]:
    """Tables whose published numbers disagree with what was measured.

    Totals of areas are not among them: what is shown of these follows the measurement.
    """
    shown = {table.depths for table, _ in planned_totals(release.tree, release.manifest.plan)}
    return [fit for fit in release.fits if not fit.is_right and fit.marginal.depths not in shown]


def misfit_warnings(release: "Release") -> list[str]:
    """Which sums of flows not to use, since they disagree with what was measured."""
    wrong = misfits(release)
    published = {table.name for table in release.published_tables()}
    are_known = all(fit.name in published for fit in wrong)
    instead = f"take them from {MEASUREMENTS_FILE}" if are_known else "do not use them"
    words = describe_misfits(wrong, instead)
    off_tree = (fit.marginal for fit in wrong if isinstance(fit.marginal, OffTree))
    late = {table.axes[table.level.axis].name for table in off_tree} - {ORIGIN, DESTINATION}
    if words and late:
        axes = ", ".join(sorted(late))
        words += f". A release that refines {axes} earlier (`order=`) has better ones"
    return [words] if words else []


def describe_misfits(fits: Iterable[TableFit], instead: str) -> str:
    """Which sums do not fit, the worst first, and what to do instead; empty if all do."""
    wrong = sorted((fit for fit in fits if not fit.is_right), key=lambda fit: -fit.rms)
    if not wrong:
        return ""
    named, n_others = ", ".join(fit.name for fit in wrong[:_NAMED]), len(wrong) - _NAMED
    others = f" and {n_others} other table{'s' if n_others > 1 else ''}" if n_others > 0 else ""
    far = f"off by up to {wrong[0].rms:.1f} noise scales, where 1 is right"
    if not wrong[0].is_too_far:
        far = f"{100 * wrong[0].beyond:.1f} % are off by more than {FAR} noise scales"
    return f"sums by {named}{others} do not agree with what was measured ({far}): {instead}"


def warnings(plan: "Plan", *, total: int | None = None) -> list[str]:
    """What a custodian should think about before publishing.

    `total` is the sum of released flows, if there are any: the true one may be confidential.
    """
    said: list[str] = []
    if risk_of(plan).success > WEAK:
        said.append("the promise is weak; an epsilon from 0.1 to 10 is usual")
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
    """What to look at if much of a release could not be placed; from released numbers alone."""
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


@dataclass(frozen=True, slots=True)
class LevelUse:
    """From what size on the published numbers of one level can be used.

    Attributes:
        level: which.
        cells: what its numbers are called: flows, or cells of other tables.
        what: what they count, in the plural.
        smallest: numbers from here on can be used; None if there are none.
        n_used: how many numbers these are.
        share: part of all that is counted in these.
        n_published: how many numbers are published, all above zero.
        n_drawn: how many were drawn: all children of the published numbers above them.
        n_small: how many of the published ones are below the noise scale.
    """

    level: TreeLevel
    cells: str
    what: str
    smallest: int | None
    n_used: int
    share: float
    n_published: int
    n_drawn: int
    n_small: int

    @property
    def noise_share(self) -> float:
        """Estimated part of the published numbers that are noise."""
        if self.n_published == 0:
            return 0.0
        choice = math.log10(max(self.n_drawn / self.n_published, 1))
        return min(self.n_small / self.n_published + _PER_DECADE * choice, 1.0)

    @property
    def is_mostly_noise(self) -> bool:
        """Whether most of its numbers are noise."""
        return self.n_published >= ENOUGH and self.noise_share >= MOSTLY

    @property
    def is_all(self) -> bool:
        """Whether all of its numbers can be used."""
        return self.n_used == self.n_published

    @property
    def size(self) -> str:
        """From what size on, for a table."""
        if self.is_all:
            return "all"
        return "none" if self.smallest is None else f"{self.smallest:,}"

    def describe(self) -> str:
        """In words, the same wherever they are said.

        >>> level = Tree.destination_first(Hierarchy.read({"town": ["a", "b"]})).levels[-1]
        >>> LevelUse(level, "flows", "trips", 92, 4, 0.829, 9, 99, 2).describe()
        'use flows of 92 or more: 82 % of all trips; smaller ones may be noise'
        """
        if self.is_all:
            return f"all {self.cells} can be used"
        others = "are mostly noise" if self.is_mostly_noise else "may be noise"
        if self.smallest is None:
            return f"no {self.cells} are large enough to use; these {others}"
        part = f"{math.floor(100 * self.share)} %" if self.share >= _PERCENT else "less than 1 %"
        return (
            f"use {self.cells} of {self.smallest:,} or more: {part} of all {self.what}; smaller "
            f"ones {others}"
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "level": self.level.name,
            "use_from": self.smallest,
            "share": self.share,
            "words": self.describe(),
        }


def level_uses(release: "Release") -> tuple[LevelUse, ...]:
    """From what size on numbers can be used, at each level with noise, coarse to fine.

    `Release.uses` has the same, computed once.
    """
    noise = {level.index: level.noise for level in release.manifest.plan.levels}
    cells, what = "flows" if release.tree.is_od else "cells", release.manifest.counted.what
    found = []
    for (level, _, flow), (_, above, _) in pairwise(level_sums(release.tree, *release.leaves())):
        if level.index not in noise:
            continue
        law, n_drawn = noise[level.index], int(level.n_children[above[level.axis]].sum())
        smallest = usable_from(flow, n_drawn, law)
        used = flow[flow >= smallest] if smallest is not None else flow[:0]
        share, n_small = used.sum() / max(flow.sum(), 1), int((flow < law.sigma).sum())
        found.append(
            LevelUse(
                level, cells, what, smallest, len(used), float(share), len(flow), n_drawn, n_small
            )
        )
    return tuple(reversed(found))


def use_notes(release: "Release") -> list[str]:
    """Level by level, from what size on to use numbers; all levels of which all can be are one."""
    whole = [use for use in release.uses if use.is_all]
    names = ", ".join(use.level.name for use in whole)
    return [
        *([f"{names}: {whole[0].describe()}"] if whole else []),
        *(f"{use.level.name}: {use.describe()}" for use in release.uses if not use.is_all),
    ]


def usable_from(flow: NDArray[np.int64], n_drawn: int, noise: Law) -> int | None:
    """The size from which on the numbers of a level can be used; None if there is none.

    Their noise is at most half of them, as for grade C, but with probability 2.5 %. And of cells
    that are empty in truth, so few are as large by noise alone that they are no more than 2.5 % of
    the numbers of that size.

    Args:
        flow: the published numbers.
        n_drawn: how many cells were drawn, empty ones included.
        noise: of the level.
    """
    least = math.ceil(noise.half_width(_RARELY) / GRADES["C"])
    missed = _RARELY  # on both sides, so that half of it is above
    while missed >= _LEAST_MISSED:
        size = max(least, noise.half_width(missed) + 1)
        n_as_large = int(np.count_nonzero(flow >= size))
        if n_as_large == 0:
            return None
        if n_drawn * missed / 2 <= _RARELY * n_as_large:
            return size
        missed /= 2
    return None


def is_drowned(total: int, cells: int, sigma: float) -> bool:
    """Whether most pairs of a level will be noise, as far as its mean flow tells."""
    return total < _FAR_BELOW * sigma * cells


def planned_totals(tree: Tree, plan: "Plan") -> list[tuple[OffTree, Law]]:
    """Tables of totals that a plan measures, and the noise of each."""
    planned = {table.depths: table.noise for table in plan.tables}
    return [
        (table, planned[table.depths])
        for table in tree.off_tree
        if table.across is None and table.depths in planned
    ]


def sums_up_many(tree: Tree, depths: Sequence[int]) -> bool:
    """Whether a number at these levels is the sum of many that the tree has noise on.

    The coarsest level of the tree that is as fine on every axis has the numbers that add up to it.
    """
    for level in tree.levels:
        if all(fine >= at for fine, at in zip(level.depths, depths, strict=True)):
            return level.n_nodes > _FEW * Marginal(tree.axes, tuple(depths)).n_nodes
    return False


def unmeasured_totals(tree: Tree, plan: "Plan") -> dict[str, list[str]]:
    """Totals across the tree whose errors are not known: axis to names of levels.

    None where they were measured, and where noise is too little to matter. Totals that sum up a few
    numbers of the tree are not among them.
    """
    planned = {level.index for level in plan.levels}
    is_measured = all(level.index in planned for level in tree.splitting_levels)
    if plan.tables or plan.is_precise or not is_measured:
        return {}
    found: dict[str, list[str]] = {}
    for table in tree.off_tree:
        if table.across is None and sums_up_many(tree, table.depths):
            axis, level = axis_and_level(table)
            found.setdefault(axis, []).append(level)
    return found


def unknown_intervals(release: "Release") -> str:
    """Why numbers have no intervals; empty if they do."""
    if release.has_measurements:
        return ""
    if release.has_totals:
        return (
            "Only totals of areas have intervals: of what was measured, this release has nothing "
            "else."
        )
    return "No interval is known: this release has nothing of what was measured."


def describe_cross_totals(tree: Tree, plan: "Plan") -> str:
    """What is measured across the tree, or why nothing is and in which totals errors add up."""
    if not plan.across:
        totals = unmeasured_totals(tree, plan)
        if not totals:
            return ""
        known = " and ".join(f"{axis} ({', '.join(levels)})" for axis, levels in totals.items())
        return (
            f"nothing is measured across the tree: errors add up in totals of {known}; `across=` "
            "measures them"
        )
    if not plan.tables:
        has_any = bool(tree.off_tree)
        why = "noise scales below 1 leave" if has_any else "a tree of one axis has"
        return f"nothing is measured across the tree: {why} nothing to gain there"
    known = ", ".join(
        f"{' '.join(axis_and_level(table))} \N{PLUS-MINUS SIGN}{noise.half_width():,}"
        for table, noise in planned_totals(tree, plan)
        if table.is_finest_one_way
    )
    return (
        f"{100 * float(plan.share_across):.2g} % of the budget measures totals of areas across the "
        f"tree, each measured to within (95 %): {known}; sums of flows come near these"
    )


def axis_and_level(table: OffTree) -> tuple[str, str]:
    """Axis and level of a one-way table."""
    axis = table.level.axes[table.level.axis]
    return axis.name, axis.hierarchy.level_name(table.depths[table.level.axis])
