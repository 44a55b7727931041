"""Intervals of published numbers, from the measurements behind them.

Numbers of the tree have the interval of the model (the posterior of `inftda.inference`). Sums
across it, such as those of zones, are made of several measurements (`inftda.inference.sums`). All
intervals are extended, where they have to be, to hold the number that is published.

Post-processing: nothing but the release goes in.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inftda.groupings import Grouping, groupings
from inftda.inference.measured import Areas, Measurements
from inftda.inference.model import Fit
from inftda.inference.noise_intervals import Ends, containing, measured_ends
from inftda.inference.sums import sum_ends
from inftda.publication.query import FLOW, with_intervals
from inftda.tree import Tree


class Intervals:
    """Intervals of the numbers of one release, stated as 95 %."""

    def __init__(self, tree: Tree, measured: Measurements, total: int) -> None:
        self._tree, self._measured, self._total = tree, measured, total

    def of(self, depths: Sequence[int], areas: Areas, flow: NDArray[np.int64]) -> Ends:
        """Lower and upper ends.

        Args:
            depths: level of each axis, 0 where it is summed up.
            areas: int32[n] for each axis.
            flow: the numbers that are published there (not 0).
        """
        return containing(flow, self._ends(depths, areas))

    def _ends(self, depths: Sequence[int], areas: Areas) -> Ends:
        """Intervals as they are, wherever the published numbers lie."""
        wanted = self._tree.coarsest(depths)
        if not any(wanted):
            return self._total_ends(len(areas[0]))
        for number, level in enumerate(self._tree.splitting_levels):
            if self._tree.coarsest(level.depths) == wanted:
                return self._fit.node_ends(number, areas)
        levels = {
            axis.name: axis.hierarchy.level_name(depth)
            for axis, depth in zip(self._tree.axes, depths, strict=True)
        }
        return sum_ends(self._fit, self._measured, groupings(self._tree, levels), areas)

    def beside(self, table: pa.Table, asked: Sequence[Grouping], *, number: str = FLOW) -> pa.Table:
        """A table of `sum_flows` with columns `low`, `high` and `grade`.

        Args:
            table: the table.
            asked: what was summed up.
            number: name of the column that intervals are beside.
        """
        flow = table.column(number).to_numpy()
        if not len(flow) or not flow.all():  # one row, for nothing at all
            return with_intervals(table, None, number)
        groups = tuple(axis.numbers(table) for axis in asked)
        for level in (self._tree.levels[0], *self._tree.splitting_levels):
            if all(d in axis.areas for axis, d in zip(asked, level.depths, strict=True)):
                areas = (axis.areas[d] for axis, d in zip(asked, level.depths, strict=True))
                cells = tuple(area[group] for area, group in zip(areas, groups, strict=True))
                ends = self._ends(level.depths, cells)
                return with_intervals(table, ends, number)
        ends = sum_ends(self._fit, self._measured, asked, groups)
        return with_intervals(table, ends, number)

    @cached_property
    def _fit(self) -> Fit:
        return Fit.of(self._tree, self._measured, self._total)

    def _total_ends(self, n: int) -> Ends:
        """The total: public, or measured with noise."""
        if 0 in self._measured.levels:
            table = self._measured.level(0)
            low, high = measured_ends(table.value, table.noise)
        else:
            low = high = np.array([self._total], np.int64)
        return np.repeat(low, n), np.repeat(high, n)
