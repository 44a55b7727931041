"""What true numbers lie between, cell by cell, where a release or an estimate tells it.

A release with measurements has intervals for the levels of its tree and for what was measured
across it; an estimate has them for its finest cells. They replace errors that are typical for
numbers of a size. Everything here is public.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from inftda.evaluation.cells import MAX_CELLS, LevelSums, released_leaves
from inftda.publication.release import Release
from inftda.reports.layout import Layout
from inftda.tree import TreeLevel

#: Cells that have intervals in a page, in all: some bytes each.
MAX_INTERVALS: Final = 1_500_000
#: Cells that a browser can number.
_MAX_NUMBER: Final = 1 << 53


@dataclass(frozen=True)
class Ends:
    """Intervals of the cells of one level.

    Attributes:
        areas: area numbers of the cells on each axis of the tree.
        low: lower ends.
        high: upper ends.
    """

    areas: Sequence[NDArray[Any]]
    low: NDArray[np.int64]
    high: NDArray[np.int64]

    def numbered(
        self, layout: Layout, depths: Sequence[int]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Numbers of the cells in the order of the page, ascending, and their ends."""
        number = np.zeros(len(self.low), np.int64)
        for axis, depth, area in zip(
            layout.axes, layout.arranged(depths), layout.arranged(self.areas), strict=True
        ):
            number = number * axis.hierarchy.n_areas(depth) + area
        order = np.argsort(number, kind="stable")
        low = np.maximum(self.low[order], 0)
        return number[order], low, np.maximum(self.high[order], low)


def release_intervals(release: Release) -> Mapping[tuple[int, ...], Ends]:
    """Intervals of all levels that a release tells them for; none if it has no measurements."""
    if not release.has_measurements:
        return {}
    known, leaves = release.intervals(), released_leaves(release)
    found: dict[tuple[int, ...], Ends] = {}
    n_cells = 0
    for depths in product(*(range(axis.hierarchy.depth + 1) for axis in release.tree.axes)):
        if TreeLevel(0, None, release.tree.axes, depths).n_nodes > min(MAX_CELLS, _MAX_NUMBER):
            continue
        sums = LevelSums(release.tree, depths)
        cells = sums.of(*leaves)
        if n_cells + len(cells.number) > MAX_INTERVALS:
            continue
        areas = tuple(area.astype(np.int32) for area in sums.areas(cells.number))
        ends = known.of(depths, areas)
        if ends is not None:
            found[depths] = Ends(areas, *ends)
            n_cells += len(cells.number)
    return found
