"""Coverage of intervals, by level and size of the number, and of marginal totals.

A reader sees the published number, so classes are by its size. All numbers of a level together
would hide a class in which intervals fail: most numbers are small. Measures are computed from
the truth and are as confidential as the truth.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from inftda.pages.explorer import release_totals
from inftda.planning.accuracy import (
    CLASS_STARTS,
    TotalMeasures,
    area_totals,
    class_of,
    level_cells,
    marginal_totals,
    measure_total,
)
from inftda.publication.measured import CellIntervals, find_rows
from inftda.publication.query import FLOW
from inftda.publication.release import Release
from inftda.reading.truth import Truth

#: Smallest class: with fewer numbers a coverage of 95 % cannot be judged.
LEAST = 1_000


@dataclass(frozen=True, slots=True)
class IntervalMeasures:
    """Intervals of the numbers of one level and size class."""

    name: str
    smallest: Annotated[int, "smallest published number of the class"]
    largest: Annotated[int | None, "largest published number of the class"]
    n_numbers: Annotated[int, "published numbers of the class"]
    in_interval: Annotated[float, "share of these whose interval holds the true number"]
    mean_width: Annotated[float, "mean of the upper minus the lower end of their intervals"]


def measure_intervals(
    truth: Truth, released: Truth, release: Release
) -> tuple[IntervalMeasures, ...]:
    """Intervals of the published numbers of every level of the tree; none without measurements."""
    if not release.has_measurements:
        return ()
    known, splitting = release.intervals(), {at.index for at in release.tree.splitting_levels}
    found: list[IntervalMeasures] = []
    for cells in level_cells(truth, released):
        if cells.level.index in splitting:
            areas, flow, true = cells.published()
            ends = known.of(cells.level.depths, areas, flow)
            found += _by_class(cells.level.name, flow, true, *ends)
    return tuple(found)


def measure_estimated(truth: Truth, made: CellIntervals) -> tuple[IntervalMeasures, ...]:
    """Intervals of estimates, which are those between finest areas."""
    true = np.append(truth.leaves.value, 0)[find_rows(truth.leaves.areas, made.areas)]
    return tuple(_by_class(truth.tree.levels[-1].name, made.value, true, made.low, made.high))


def measure_published_totals(truth: Truth, release: Release) -> tuple[TotalMeasures, ...]:
    """Measures of totals as `query` answers them; for measured ones how many intervals hold."""
    found, known = [], release_totals(release)
    for number, axis, depth in marginal_totals(truth.tree):
        level, areas = axis.hierarchy.level_name(depth), axis.hierarchy
        whole = {one.name: "all" for one in truth.tree.axes}
        table = release.flows(level=whole | {axis.name: level})
        shown, true = np.zeros(areas.n_areas(depth), np.int64), area_totals(truth, number, depth)
        shown[areas.find(depth, table.column(axis.name).to_pylist())] = table.column(FLOW)
        measured = measure_total(axis, depth, true, shown)
        if (ends := known.get(truth.tree.one_way(number, depth))) is not None:
            inside = float(np.mean((ends.low <= true) & (true <= ends.high)))
            sigma = release.totals_of(axis.name)[depth].sigma
            measured = replace(measured, sigma=sigma, in_interval=inside)
        found.append(measured)
    return tuple(found)


def lowest_coverage(
    measures: Iterable[IntervalMeasures], least: int = LEAST
) -> IntervalMeasures | None:
    """The class whose intervals fail most often; None if all have fewer numbers than `least`."""
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
