"""What a method without a guarantee publishes, and what a reader knows of every cell by it.

Tables are published at every level of the tree, and totals of the finest areas of each axis.
Only cells with a true count are kept: cells that are zero in truth are published as zero by all
methods here. Everything in this module holds the truth.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inftda.evaluation.measures import (
    LevelMeasures,
    TotalMeasures,
    area_totals,
    measure_level,
    measure_total,
    totals_across,
)
from inftda.truth import Truth

Numbers = NDArray[np.int64]


@dataclass(frozen=True, repr=False)
class Shown:
    """One table as it is published.

    Attributes:
        true: int64, the true counts.
        value: int64, what is published; 0 where a cell is hidden.
        is_hidden: which cells are published as hidden.
        low: int64, lower bounds that a reader knows.
        high: int64, upper bounds likewise.
    """

    true: Numbers
    value: Numbers
    is_hidden: NDArray[np.bool_]
    low: Numbers
    high: Numbers


@dataclass(frozen=True, repr=False)
class Published:
    """All tables of one edition.

    Attributes:
        truth: what they were made from.
        levels: the root, and each level that splits something.
        totals: for each axis, totals of its finest areas; cells are all areas.
        most_of_a_zero: the largest true count that may be published as zero.
        seen_at_leaf: trips whose removal changes the number of their own leaf.
        seen_somewhere: trips whose removal changes any number below the root.
    """

    truth: Truth
    levels: tuple[Shown, ...]
    totals: tuple[Shown, ...]
    most_of_a_zero: int
    seen_at_leaf: int
    seen_somewhere: int


def true_levels(truth: Truth) -> list[Numbers]:
    """Counts of the root and of the non-zero nodes of each splitting level."""
    return [np.array([truth.total], np.int64), *(level.count for level in truth.levels)]


def finest_totals(truth: Truth) -> list[Numbers]:
    """For each axis, totals of its finest areas."""
    return [
        area_totals(truth, number, axis.hierarchy.depth)
        for number, axis in enumerate(truth.tree.axes)
    ]


def seen_trips(truth: Truth, changed: list[NDArray[np.bool_]]) -> tuple[int, int]:
    """Trips seen at their leaf and anywhere, by which numbers change if one of their trips goes.

    Args:
        truth: the counts.
        changed: for the root and each splitting level, whether the number changes.
    """
    at_all = np.zeros(1, bool)  # that somebody is gone says nothing about where
    for number, (level, flags) in enumerate(zip(truth.levels, changed[1:], strict=True)):
        at_all = np.repeat(at_all[truth.above(number)], np.diff(level.offsets)) | flags
    counts = true_levels(truth)[-1]
    return int(counts[changed[-1]].sum()), int(counts[at_all].sum())


def measure_published(published: Published) -> tuple[LevelMeasures, ...]:
    """Measures of every level of the tree; hidden cells count as 0."""
    truth = published.truth
    shown, measures = published.levels[0], []
    by_index = {
        level.level.index: table
        for level, table in zip(truth.levels, published.levels[1:], strict=True)
    }
    for level in truth.tree.levels:
        shown = by_index.get(level.index, shown)
        measures.append(measure_level(level, shown.true, shown.value))
    return tuple(measures)


def measure_shown_totals(
    truth: Truth, show: Callable[[Numbers], Numbers]
) -> tuple[TotalMeasures, ...]:
    """Measures of the totals that the tree does not have, published by the same method.

    Args:
        truth: the counts.
        show: from true totals to published ones.
    """
    measures = []
    for number, axis, depth in totals_across(truth.tree):
        true = area_totals(truth, number, depth)
        measures.append(measure_total(axis, depth, true, show(true)))
    return tuple(measures)
