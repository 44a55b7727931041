"""Compare published numbers with their measurements; no true count is needed.

Every measured value is compared with the sum of published numbers. z is their difference in noise
scales; for Laplace noise, the normal quantile that is exceeded as often. Published numbers are
adjusted to the measurements, so z is normally about as large as a standard normal number, or
smaller. A table with a much larger z does not fit: its measurements are better than the sums of
published numbers.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inftda.noise.distribution import Noise
from inftda.publication.measured import Measurements, NoisyTable
from inftda.tree import Areas, CrossTable, Ints, Tree, TreeLevel

#: A difference is large from this number of noise scales on, plus half a trip, as counts are whole.
FAR: Final = 3
#: Largest share of differences that are large by noise alone.
USUAL_BEYOND: Final = math.erfc(FAR / math.sqrt(2))
#: Limits for a table that fits: root mean square of z, the same for few cells, share beyond.
MOST_RMS, MOST_RMS_OF_FEW, FEW_CELLS, MOST_BEYOND = 1.15, 1.5, 20, 0.007
#: Largest probability that noise alone makes a table misfit.
FALSE_ALARM: Final = 1e-4
_SURPRISE: Final = -math.log(FALSE_ALARM)
#: Values that are compared at once; they stay in the cache.
_AT_ONCE: Final = 1 << 18


class TableFit(NamedTuple):
    """Agreement of published numbers with a measured table.

    Attributes:
        marginal: the table.
        n_cells: number of measured cells.
        rms: root mean square of z; about 1 or less is right.
        beyond: share of its cells where z is beyond 3; about 0.003 or less is right.
    """

    marginal: TreeLevel | CrossTable
    n_cells: int
    rms: float
    beyond: float

    @property
    def name(self) -> str:
        """Name of the table, as in the manifest."""
        return self.marginal.name

    @property
    def is_too_far(self) -> bool:
        """Whether the root mean square of the differences is too large.

        Noise alone has such a sum of squares with a probability below `FALSE_ALARM`, by Chernoff's
        bound, which holds for normal and for discrete Gaussian noise.
        """
        square = self.rms**2
        most = MOST_RMS_OF_FEW if self.n_cells < FEW_CELLS else MOST_RMS
        return self.rms > most and self.n_cells / 2 * (square - 1 - math.log(square)) > _SURPRISE

    @property
    def has_too_many_beyond(self) -> bool:
        """Whether too many differences are large, by Chernoff's bound."""
        share, rest = self.beyond, 1 - self.beyond
        if share <= MOST_BEYOND:
            return False
        surprise = share * math.log(share / USUAL_BEYOND)
        surprise += rest * math.log(rest / (1 - USUAL_BEYOND)) if rest else 0
        return self.n_cells * surprise > _SURPRISE

    @property
    def is_right(self) -> bool:
        """Whether the table fits."""
        return not (self.is_too_far or self.has_too_many_beyond)


def fit_table(fits: Iterable[TableFit]) -> pa.Table:
    """Make a table of fits for users: `table`, `cells`, `rms_z`, and `beyond_3` in percent."""
    rows = [(fit.name, fit.n_cells, fit.rms, 100 * fit.beyond) for fit in fits]
    names = ["table", "cells", "rms_z", "beyond_3"]
    kinds = [pa.string(), pa.int64(), pa.float64(), pa.float64()]
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return pa.table(
        [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)], names
    )


def table_fits(
    tree: Tree, measured: Measurements, areas: Areas, values: Ints
) -> tuple[TableFit, ...]:
    """Compute the agreement of leaves, published or estimated, with each measured table."""
    agreement = Agreement(tree, areas, values)
    for table in measured.tables:
        for first in range(0, len(table.value), _AT_ONCE):
            agreement.compare(table.take(slice(first, first + _AT_ONCE)))
    return agreement.fits()


class Agreement:
    """Comparison of leaves with measured values, in parts.

    Arguments are those of `table_fits`.
    """

    def __init__(self, tree: Tree, areas: Areas, values: Ints) -> None:
        self._nodes = {
            level.index: (areas, values) for level, areas, values in level_sums(tree, areas, values)
        }
        self._tables: dict[tuple[int, ...], _Table] = {}

    def compare(self, table: NoisyTable) -> None:
        """Add some values of a table; values come in group order, each once."""
        if table.depths not in self._tables:
            marginal = table.measurement.marginal
            nodes = self._nodes[marginal.index]
            self._tables[table.depths] = _Table(marginal, table.noise, *_cells(marginal, *nodes))
        self._tables[table.depths].compare(table)

    def fits(self) -> tuple[TableFit, ...]:
        """Results, table by table in the order in which the tables were given."""
        return tuple(table.fit() for table in self._tables.values() if table.n_cells)


def level_sums(tree: Tree, areas: Areas, values: Ints) -> Iterator[tuple[TreeLevel, Areas, Ints]]:
    """Nodes of every level with the sums of their leaves, from the leaves up to the root."""
    for level in reversed(tree.levels[1:]):
        yield level, areas, values
        key, values = _summed(level.keys(level.parents(areas)), values)
        areas = level.areas_of(key)
    yield tree.levels[0], areas, values


def _summed(key: Ints, values: Ints) -> tuple[Ints, Ints]:
    """Distinct keys in ascending order, and the sum of the values of each."""
    if (key[1:] < key[:-1]).any():
        order = np.argsort(key, kind="stable")  # quick for keys that are nearly in order
        key, values = key[order], values[order]
    first = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: len(key)])
    if len(first) == len(key):
        return key, values
    return key[first], np.add.reduceat(values, first)


def _cells(marginal: TreeLevel | CrossTable, areas: Areas, values: Ints) -> tuple[Ints, Ints]:
    """Numbers of the cells that contain some nodes, in group order, and their sums."""
    level = marginal.level
    if level.refined is None:
        return np.zeros(len(values), np.int64), values
    if marginal.is_whole:
        sums = np.bincount(areas[level.axis], values, len(level.parent_area))
        return level.node_codes[level.axis], sums.astype(np.int64)
    up = [
        numbers if at == depth else axis.hierarchy.ancestor(depth, at)[numbers]
        for axis, depth, at, numbers in zip(
            level.axes, level.depths, marginal.depths, areas, strict=True
        )
    ]
    return _summed(_numbers(level, up), values)


def _numbers(level: TreeLevel, areas: Sequence[NDArray[np.int32]]) -> Ints:
    """int64: numbers of cells, by which they are in group order; siblings follow each other."""
    number = np.zeros(len(areas[0]), np.int64)
    for codes, numbers in zip(level.node_codes, areas, strict=True):
        number += codes[numbers]
    return number


@dataclass
class _Table:
    """Cells of a table that are not zero, by ascending number, and results of the comparison."""

    marginal: TreeLevel | CrossTable
    noise: Noise
    number: Ints
    value: Ints
    n_cells: int = 0
    squares: float = 0.0
    n_beyond: int = 0

    @cached_property
    def level(self) -> TreeLevel:
        """The level of the tree whose siblings it contains."""
        return self.marginal.level

    @cached_property
    def is_first(self) -> NDArray[np.bool_]:
        """For each area on the refined axis whether it is the first of its siblings."""
        found = np.zeros(len(self.level.parent_area), bool)
        found[self.level.child_offsets[:-1]] = True
        return found

    def compare(self, table: NoisyTable) -> None:
        """Compare some values."""
        if not len(table.value):
            return
        off = table.value.astype(np.float64)
        if self.level.refined is None:
            off -= self.value.sum()
        else:
            self._subtract_from(off, table.areas)
        squares, half_a_trip = self.noise.squares(off), 0.5 / self.noise.sigma
        self.n_cells += len(off)
        self.squares += float(squares.sum())
        self.n_beyond += int(np.count_nonzero(squares > (FAR + half_a_trip) ** 2))

    def _subtract_from(self, off: NDArray[np.float64], areas: Areas) -> None:
        """Subtract published numbers, cell by cell; siblings have consecutive numbers."""
        start = np.flatnonzero(self.is_first[areas[self.level.axis]])
        if not len(start) or start[0] > 0:  # the values begin within a row
            start = np.append(0, start)
        first = _numbers(self.level, [numbers[start] for numbers in areas])
        end = first + np.diff(start, append=len(off))
        low, high = np.searchsorted(self.number, (first[0], end[-1]))
        number, value = self.number[low:high], self.value[low:high]
        row = np.searchsorted(first, number, side="right") - 1
        is_here = number < end[row]
        cell = start[row] + number - first[row]
        off[cell[is_here]] -= value[is_here]

    def fit(self) -> TableFit:
        """Result of the comparison."""
        rms = math.sqrt(self.squares / self.n_cells)
        return TableFit(self.marginal, self.n_cells, rms, self.n_beyond / self.n_cells)
