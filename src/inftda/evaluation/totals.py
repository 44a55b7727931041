"""How far totals of areas are from the truth: sums across the tree, axis by axis.

"All who leave this town" sums up what was noised in many places of the tree. Where the tree has
the totals themselves (those of the axis that is refined first), `inftda.evaluation.metrics`
measures them. Measures are computed from the truth and are as confidential as the truth.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from inftda.lattice import tables_on_tree
from inftda.publication.release import Release
from inftda.tree import Axis, Tree
from inftda.truth import Truth

#: What each measure means; written beside the figures.
DEFINITIONS = {
    "max_abs_error": "largest |released - true| of any area's total",
    "mean_abs_error": "mean of |released - true| over all areas",
    "bias_of_largest": "released - true, summed over the 2 % largest areas, over their true sum",
    "sigma": "noise scale at which the totals were measured across the tree",
    "in_interval": "share of the areas whose published interval holds the true total",
}
#: Part of the areas that are the largest ones.
LARGEST = 0.02


@dataclass(frozen=True, slots=True)
class TotalMeasures:
    """Errors of the totals of one level of an axis; `DEFINITIONS` says what figures mean.

    Attributes:
        axis: name of the axis.
        level: name of the level.
        n_areas: number of its areas.
        max_abs_error: largest error.
        mean_abs_error: mean error.
        bias_of_largest: relative error of the largest areas together.
        sigma: noise scale of the measured totals; None if they were not measured.
        in_interval: share of the intervals that hold the truth; None likewise.
    """

    axis: str
    level: str
    n_areas: int
    max_abs_error: int
    mean_abs_error: float
    bias_of_largest: float
    sigma: float | None = None
    in_interval: float | None = None


def measure_totals(truth: Truth, released: Truth) -> tuple[TotalMeasures, ...]:
    """Measures of the totals of every level of every axis, of those that the tree does not have.

    Args:
        truth: the confidential counts.
        released: the released leaves, summed up by the same tree.
    """
    measures = []
    for number, axis, depth in totals_across(truth.tree):
        true, made = (area_totals(counts, number, depth) for counts in (truth, released))
        measures.append(measure_total(axis, depth, true, made))
    return tuple(measures)


def with_intervals(
    measures: tuple[TotalMeasures, ...], truth: Truth, release: Release
) -> tuple[TotalMeasures, ...]:
    """The same, with how many of the release's intervals hold the truth."""
    if release.totals is None:
        return measures
    return tuple(
        _with_interval(one, truth, release, number, depth)
        for one, (number, _, depth) in zip(measures, totals_across(truth.tree), strict=True)
    )


def totals_across(tree: Tree) -> Iterator[tuple[int, Axis, int]]:
    """Number, axis and level of totals that the tree does not have."""
    on_tree = tables_on_tree(tree)
    for number, axis in enumerate(tree.axes):
        for depth in range(1, axis.hierarchy.depth + 1):
            one_way = tuple(depth if i == number else 0 for i in range(len(tree.axes)))
            if axis.hierarchy.splits(depth) and one_way not in on_tree:
                yield number, axis, depth


def area_totals(counts: Truth, number: int, depth: int) -> NDArray[np.int64]:
    """int64[areas]: sum of the counts of each area."""
    return counts.tree.axes[number].hierarchy.sum_up(counts.margins[number], depth)


def measure_total(
    axis: Axis, depth: int, true: NDArray[np.int64], released: NDArray[np.int64]
) -> TotalMeasures:
    """Measures of the totals of one level of an axis, one number for each area."""
    error = released - true
    largest = np.argsort(-true, kind="stable")[: max(1, int(LARGEST * len(true)))]
    return TotalMeasures(
        axis=axis.name,
        level=axis.hierarchy.level_name(depth),
        n_areas=len(true),
        max_abs_error=int(np.abs(error).max()),
        mean_abs_error=float(np.abs(error).mean()),
        bias_of_largest=int(error[largest].sum()) / max(int(true[largest].sum()), 1),
    )


def _with_interval(
    one: TotalMeasures, truth: Truth, release: Release, number: int, depth: int
) -> TotalMeasures:
    intervals = release.total_intervals(one.axis, one.level)
    true = area_totals(truth, number, depth)
    low, high = (intervals.column(name).to_numpy() for name in ("low", "high"))
    inside = float(np.mean((low <= true) & (true <= high)))
    return replace(one, sigma=intervals.column("sigma")[0].as_py(), in_interval=inside)
