"""Coverage of intervals, by level and size of the number.

A reader sees the published number, so classes are by its size. All numbers of a level together
would hide a class in which intervals fail: most numbers are small. Measures are computed from
the truth and are as confidential as the truth.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from inftda.errors import ReleaseError
from inftda.estimates.estimating import Estimate
from inftda.estimates.table import VALUES
from inftda.evaluation.sums import MAX_CELLS, Areas, Cells, LevelSums, match_cells
from inftda.evaluation.typical import CLASS_STARTS, class_of, leaf_areas, released_leaves
from inftda.publication.release import Release
from inftda.truth import Truth

#: What each measure means; written beside the figures.
DEFINITIONS = {
    "smallest": "smallest published number of the class",
    "largest": "largest published number of the class",
    "n_numbers": "published numbers of the class",
    "in_interval": "share of these whose interval holds the true number",
    "mean_width": "mean of the upper minus the lower end of their intervals",
}
#: With fewer numbers than this a class says little about 95 %.
LEAST = 1_000


@dataclass(frozen=True, slots=True)
class IntervalMeasures:
    """Intervals of the numbers of one level and size class; `DEFINITIONS` says more.

    Attributes:
        name: of the level.
        smallest: smallest published number of the class.
        largest: largest one; None for the last class.
        n_numbers: how many numbers there are.
        in_interval: share of the intervals that hold the truth.
        mean_width: mean width of the intervals.
    """

    name: str
    smallest: int
    largest: int | None
    n_numbers: int
    in_interval: float
    mean_width: float


@dataclass(frozen=True)
class EstimatedLeaves:
    """The numbers of an estimate.

    Attributes:
        areas: numbers of finest areas on each axis.
        value: the estimates.
        low: lower ends of their intervals.
        high: upper ends.
    """

    areas: Areas
    value: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]

    @classmethod
    def read(cls, estimate: Estimate) -> "EstimatedLeaves":
        """What an estimate holds.

        Raises:
            ReleaseError: its table cannot be read.
        """
        table = estimate.table
        try:
            leaves = table if isinstance(table, pa.Table) else pq.read_table(table)
            value, low, high = (
                leaves.column(name).to_numpy().astype(np.int64, copy=False) for name in VALUES
            )
        except (pa.ArrowException, OSError, KeyError):
            raise ReleaseError(
                "the estimate cannot be read as estimates between areas; estimate again with "
                "`inftda estimate`"
            ) from None
        return cls(leaf_areas(leaves, estimate.tree), value, low, high)


def measure_intervals(truth: Truth, release: Release) -> tuple[IntervalMeasures, ...]:
    """Intervals of the published numbers of every level of the tree; none without measurements.

    Args:
        truth: the confidential counts.
        release: what was made of them.

    Raises:
        ReleaseError: the measurements are damaged or of another release.
    """
    if release.measured is None:
        return ()
    known, leaves = release.intervals(), released_leaves(release)
    found: list[IntervalMeasures] = []
    for level in release.tree.splitting_levels:
        if level.n_nodes > MAX_CELLS:
            continue
        sums = LevelSums(release.tree, level.depths)
        cells = sums.of(*leaves)
        areas = tuple(numbers.astype(np.int32) for numbers in sums.areas(cells.number))
        ends = known.of(level.depths, areas)
        if ends is not None:
            true, _ = match_cells(cells, sums.of(*truth.leaves))
            found += _by_class(level.name, cells.value, true, *ends)
    return tuple(found)


def measure_estimated(truth: Truth, made: EstimatedLeaves) -> tuple[IntervalMeasures, ...]:
    """Intervals of estimates, which are those between finest areas.

    Args:
        truth: the confidential counts.
        made: the estimates.
    """
    tree = truth.tree
    finest = tree.levels[-1]
    if finest.n_nodes > MAX_CELLS:
        return ()
    sums = LevelSums(tree, finest.depths)
    number = sums.numbers(made.areas)
    order = np.argsort(number, kind="stable")
    cells = Cells(number[order], made.value[order])
    true, _ = match_cells(cells, sums.of(*truth.leaves))
    return tuple(_by_class(finest.name, cells.value, true, made.low[order], made.high[order]))


def lowest_coverage(
    measures: Iterable[IntervalMeasures], least: int = LEAST
) -> IntervalMeasures | None:
    """The class whose intervals fail most often; None if none has enough numbers to tell.

    Args:
        measures: of some levels.
        least: number of numbers that a class must have.
    """
    enough = (one for one in measures if one.n_numbers >= least)
    return min(enough, key=lambda one: one.in_interval, default=None)


def overall(measures: Iterable[IntervalMeasures]) -> IntervalMeasures:
    """All classes of a level together."""
    every = list(measures)
    n = sum(one.n_numbers for one in every)
    in_interval, width = (
        sum(getattr(one, name) * one.n_numbers for one in every) / n
        for name in ("in_interval", "mean_width")
    )
    return IntervalMeasures(every[0].name, every[0].smallest, None, n, in_interval, width)


def _by_class(
    name: str,
    flow: NDArray[np.int64],
    true: NDArray[np.int64],
    low: NDArray[np.int64],
    high: NDArray[np.int64],
) -> Iterator[IntervalMeasures]:
    classes = class_of(flow)
    n = np.bincount(classes, minlength=len(CLASS_STARTS))
    is_inside = (low <= true) & (true <= high)
    inside = np.bincount(classes, is_inside, minlength=len(CLASS_STARTS))
    width = np.bincount(classes, high - low, minlength=len(CLASS_STARTS))
    for one in np.flatnonzero(n).tolist():
        is_last = one + 1 == len(CLASS_STARTS)
        yield IntervalMeasures(
            name=name,
            smallest=CLASS_STARTS[one],
            largest=None if is_last else CLASS_STARTS[one + 1] - 1,
            n_numbers=int(n[one]),
            in_interval=float(inside[one] / n[one]),
            mean_width=float(width[one] / n[one]),
        )
