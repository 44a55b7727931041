"""Intervals of published numbers, from the measurements behind them.

Numbers of the tree have the interval of the model (the posterior of `inftda.inference`) or of
their noise alone, which allows for readers who look at the largest numbers. Tables that
were measured across the tree have the exact interval of their noise. For other sums no interval is
known: adding up variances gave a coverage as low as 20 %. All are extended, where they have to be,
to hold the number that is published.

Post-processing: nothing but the release goes in.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inftda.inference.measured import Areas, Measurements, find_rows, measured_at
from inftda.inference.model import Fit
from inftda.inference.noise_intervals import Ends, NoiseIntervals, containing, measured_ends
from inftda.publication.query import FLOW, cells_of, with_intervals
from inftda.publication.trust import LevelUse
from inftda.tree import Tree


class Intervals:
    """Intervals of the numbers of one release, stated as 95 %."""

    def __init__(self, tree: Tree, measured: Measurements, total: int) -> None:
        self._tree, self._measured, self._total = tree, measured, total

    def of(
        self,
        depths: Sequence[int],
        areas: Areas,
        flow: NDArray[np.int64],
        *,
        use_model: bool = True,
    ) -> Ends | None:
        """Lower and upper ends; None if no interval is known at these levels.

        Args:
            depths: level of each axis, 0 where it is summed up.
            areas: int32[n] for each axis.
            flow: the numbers that are published there (not 0).
            use_model: whether they are narrowed by the model, or follow from the noise alone.
        """
        ends = self._ends(depths, areas, use_model=use_model)
        return None if ends is None else containing(flow, ends)

    def _ends(self, depths: Sequence[int], areas: Areas, *, use_model: bool) -> Ends | None:
        """Intervals as they are, wherever the published numbers lie."""
        wanted = self._tree.coarsest(depths)
        if not any(wanted):
            return self._total_ends(len(areas[0]))
        for number, level in enumerate(self._tree.splitting_levels):
            if self._tree.coarsest(level.depths) == wanted:
                ends = self._fit.node_ends if use_model else self._noise_ends
                return ends(number, areas)
        table = measured_at(self._tree, self._measured, wanted)
        if table is None:
            return None
        row = find_rows(table.areas, areas)
        return measured_ends(table.value[row], table.noise)

    def beside(
        self,
        table: pa.Table,
        levels: Mapping[str, str],
        where: Mapping[str, Any],
        *,
        use_at: Callable[[Sequence[int]], LevelUse | None],
        use_model: bool = True,
    ) -> pa.Table:
        """A table of `sum_flows` with columns `low`, `high` and `grade`; null where unknown.

        `levels` and `where` are those that `sum_flows` took, `use_at` says what a level is good
        for.
        """
        cells, flow = cells_of(table, self._tree, levels, where), table.column(FLOW).to_numpy()
        if cells is None or not flow.all():  # one row, for nothing at all
            return with_intervals(table, None)
        ends = self.of(*cells, flow, use_model=use_model)
        return with_intervals(table, ends, use=use_at(cells[0]))

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

    def _noise_ends(self, number: int, areas: Areas) -> Ends:
        """Intervals by the noise of a level alone."""
        level = self._tree.splitting_levels[number]
        table = self._measured.level(level.index)
        row = find_rows(table.areas, areas)
        is_measured = row >= 0
        low, high = (np.zeros(len(row), np.int64) for _ in range(2))
        known = NoiseIntervals.of(table.value, table.noise)
        low[is_measured], high[is_measured] = known.ends(table.value[row[is_measured]])
        if number and not is_measured.all():  # only children, which have their parent's count
            above = level.parents([numbers[~is_measured] for numbers in areas])
            low[~is_measured], high[~is_measured] = self._noise_ends(number - 1, above)
        return low, high
