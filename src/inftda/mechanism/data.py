"""The data of a level step: planned measurements and their noisy counts. All of it is public."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from inftda.privacy.measurement import Measurement
from inftda.tree import Areas, CellRows, CrossTable, Ints, TreeLevel

#: Level of each axis's hierarchy, 0 where an axis is summed up.
Depths = tuple[int, ...]


class MeasuredTable(NamedTuple):
    """Noisy counts of a level or of a cross table, or of some of its rows.

    Attributes:
        measurement: the level or cross table, with its noise.
        rows: the measured cells.
        value: int64, row by row, unbiased and often negative.
    """

    measurement: Measurement
    rows: CellRows
    value: Ints

    @property
    def depths(self) -> Depths:
        """Level of each axis's hierarchy that the cells are at."""
        return self.measurement.depths

    @classmethod
    def of(cls, measurement: Measurement, parents: Areas, value: Ints) -> "MeasuredTable":
        """Make the table of all cells that are measured for released parents in group order."""
        table = measurement.marginal
        return cls(measurement, table.all_rows() if table.is_whole else table.rows(parents), value)

    def cells(self) -> Areas:
        """int32[counts] for each axis: the areas of every count."""
        return self.rows.cells()

    def take(self, rows: CellRows) -> "MeasuredTable":
        """Take the counts of some rows, all of which must have been measured."""
        at = self.rows.offsets[np.searchsorted(self.rows.key, rows.key)]
        index = np.repeat(at - rows.offsets[:-1], rows.sizes) + np.arange(rows.offsets[-1])
        return MeasuredTable(self.measurement, rows, self.value[index])

    def bare(self) -> "MeasuredTable":
        """Copy with `CellRows.bare` rows, which take less memory."""
        return self._replace(rows=self.rows.bare())

    def agreed(self, total: Ints) -> Ints:
        """int64: the counts, shifted equally in each row to sum to the total of its parents.

        Adjustments keep the total of a row, so the common error of its cells is removed first.

        Args:
            total: int64[parents], released counts of the parents that belong to the rows.
        """
        starts, sizes = self.rows.offsets[:-1], self.rows.sizes
        # Sums of counts are far below 2^53, so they are exact as floats.
        released = np.bincount(self.rows.of_parents, total, len(sizes)).astype(np.int64)
        too_much = np.add.reduceat(self.value, starts) - released
        return self.value - np.repeat(too_much // np.maximum(sizes, 1), sizes)


@dataclass(frozen=True)
class Step:
    """The measurements that divide the parents of a level.

    Attributes:
        children: the level.
        cross: the cross tables that are measured with it, coarse to fine.
    """

    children: Measurement
    cross: tuple[Measurement, ...] = ()

    @property
    def level(self) -> TreeLevel:
        """The level of the children."""
        return self.children.marginal.level

    @property
    def by_rows(self) -> tuple[Measurement, ...]:
        """Measurements for released parents only: the level, and cross tables of two axes."""
        return (self.children, *(one for one in self.cross if not one.marginal.is_whole))

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise of the children."""
        return self.children.noise.sigma

    @property
    def effective_sigma(self) -> float:
        """Effective noise scale of the children: sigma, or sqrt(2) sigma for Laplace noise.

        Cross tables are weighed against it. Laplace noise has more of its variance in few large
        draws, which a sum cannot distinguish from counts, so the variance counts twice.
        """
        return self.sigma * (math.sqrt(2) if self.children.noise.is_laplace else 1)

    def hard(self, n_parents: int) -> list[Depths]:
        """Cross tables that sums have to agree with in groups of `n_parents` parents."""
        return [depths for depths, least in self._hard_from.items() if n_parents >= least]

    @property
    def hard_from(self) -> float:
        """Least number of parents of a group whose sums have to agree with some cross table."""
        return min(self._hard_from.values(), default=math.inf)

    @cached_property
    def _hard_from(self) -> dict[Depths, float]:
        tables = ((one.marginal, (self.sigma / one.noise.sigma) ** 2) for one in self.cross)
        return {
            table.depths: table.hard_from(ratio)
            for table, ratio in tables
            if isinstance(table, CrossTable)
        }
