"""Errors of simulated releases, of a table that stands in for the confidential one.

Errors are stated by level and by the size of the *published* number, which readers see, and include
numbers whose simulated truth is zero. Errors by true size would be smaller, because large noise on
a small flow moves it to another class, but readers do not know the true size.

All figures are means over the simulated releases. Guaranteed errors are in
`inftda.privacy.bounds`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inftda.planning.accuracy import LevelMeasures, area_totals
from inftda.publication.agreement import level_sums
from inftda.publication.intervals import Intervals
from inftda.publication.numbered_cells import CLASS_STARTS, NumberedCells, class_of, match_cells
from inftda.publication.reliability import level_use
from inftda.reading.truth import Truth
from inftda.tree import TreeLevel

Numbers = NDArray[np.int64]

#: Shares of fewer numbers than this are left out.
MIN_SIMULATED: Final = 40
#: Quantiles of errors that are stated.
_SHARES: Final = (0.5, 0.95)


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


class LevelRun(NamedTuple):
    """One level of one simulated release.

    Attributes:
        measures: how far it is from the simulated truth.
        errors: median and 95 % quantile of the errors of published numbers.
        usable: which numbers can be used.
        sizes: int64[4, classes]: published and false numbers, true and lost flows of each size.
    """

    measures: LevelMeasures
    errors: Numbers
    usable: Usable
    sizes: Numbers


def level_run(
    level: TreeLevel, known: Intervals, counts: Truth, released: Truth, measures: LevelMeasures
) -> LevelRun:
    """Figures of one level of one simulated release.

    Args:
        level: the root, or a level that splits something.
        known: intervals of the simulated release.
        counts: the released counts.
        released: the simulated release.
        measures: of the level.
    """
    there, made = _cells(level, counts), _cells(level, released)
    true, is_lost = match_cells(made, there)
    error = np.abs(made.value - true)
    published, lost = class_of(made.value), there.value[is_lost]
    by_size = (published, published[true == 0], class_of(there.value), class_of(lost))
    sizes = np.array([np.bincount(one, minlength=len(CLASS_STARTS)) for one in by_size])
    sums = level_sums(counts.tree, *released.leaves)
    nodes = next(found for found in sums if found[0].index == level.index)
    use = level_use(*nodes, known, ("", ""))
    usable = Usable(use.smallest, use.n_used / max(use.n_published, 1), use.share)
    return LevelRun(measures, quantiles(error), usable, sizes)


def _cells(level: TreeLevel, counts: Truth) -> NumberedCells:
    if level.index:
        children = counts.level(level)
        return NumberedCells(children.node, children.count)
    total = np.array([counts.total])[: int(counts.total > 0)]
    return NumberedCells(np.zeros(len(total), np.int64), total)


def quantiles(errors: Numbers) -> Numbers:
    """Median and 95 % quantile, errors that occur; 0 without any."""
    if not len(errors):
        return np.zeros(len(_SHARES), np.int64)
    return np.asarray(np.quantile(errors, _SHARES, method="inverted_cdf"), np.int64)


def mean_errors(runs: Sequence[Numbers]) -> list[int]:
    """Mean over the runs of each quantile, rounded up."""
    return [ceil(mean) for mean in np.mean(runs, axis=0)]


def mean_usable(runs: Sequence[Usable]) -> Usable:
    """The smallest usable count in the middle of the runs, and mean shares."""
    by_size = sorted((one.smallest is None, one.smallest or 0) for one in runs)
    is_none, smallest = by_size[len(by_size) // 2]
    if is_none:
        return Usable(None, 0.0, 0.0)
    numbers, trips = np.mean([(one.numbers, one.trips) for one in runs], axis=0)
    return Usable(smallest, float(numbers), float(trips))


def size_shares(runs: Sequence[Numbers]) -> tuple[SizeShares, ...]:
    """Shares of each size class that occurs, over all runs."""
    published, false, true, lost = np.sum(runs, axis=0)

    def share(part: Numbers, whole: Numbers, at: int) -> float | None:
        return float(part[at] / whole[at]) if whole[at] >= MIN_SIMULATED else None

    return tuple(
        SizeShares(CLASS_STARTS[at], share(false, published, at), share(lost, true, at))
        for at in np.flatnonzero(published + true).tolist()
    )


def total_errors(counts: Truth, released: Truth, number: int, depth: int) -> Numbers:
    """Errors of the totals of one level of an axis in one simulated release."""
    made, true = (area_totals(one, number, depth) for one in (released, counts))
    return np.asarray(np.abs(made - true))
