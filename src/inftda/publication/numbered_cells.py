"""Number the cells of a level, match them with cells of another table, classify their sizes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inftda.publication.parquet import Areas
from inftda.tree import Marginal

#: Largest number of cells of a level that is summed up in a dense array.
DENSE_CELLS = 1 << 22
#: Largest number of cells that have 64-bit numbers; larger levels are left out.
MAX_CELLS = 1 << 62
#: Lower ends of the classes of size; the last class is open.
CLASS_STARTS = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 1_000_000)


@dataclass(frozen=True)
class NumberedCells:
    """Non-zero cells of one level: ascending numbers, and values."""

    number: NDArray[np.int64]
    value: NDArray[np.int64]

    @classmethod
    def of(cls, marginal: Marginal, areas: Areas, flow: NDArray[np.int64]) -> "NumberedCells":
        """Sum up leaves to the cells of a marginal with fewer than 2^62 cells."""
        if marginal.n_nodes <= DENSE_CELLS:
            # In integers: a floating-point sum is not exact from 2^53 on, and totals may be larger.
            value = np.zeros(marginal.n_nodes, np.int64)
            np.add.at(value, marginal.numbers(marginal.above(areas)), flow)
            number = np.arange(marginal.n_nodes)
        else:
            nodes, value = marginal.sum_up(areas, flow)
            number = marginal.numbers(nodes)
        used = np.flatnonzero(value)
        return cls(number[used], value[used])


def match_cells(
    released: NumberedCells, truth: NumberedCells
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """True value of each released cell (0 if missing), and which true cells are missing."""
    index = np.searchsorted(truth.number, released.number)
    is_there = index < len(truth.number)
    is_there[is_there] = truth.number[index[is_there]] == released.number[is_there]
    value = np.zeros(len(released.number), np.int64)
    value[is_there] = truth.value[index[is_there]]
    is_lost = np.ones(len(truth.number), bool)
    is_lost[index[is_there]] = False
    return value, is_lost


def class_of(value: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number of the size class of each published number."""
    return np.searchsorted(np.array(CLASS_STARTS), value, side="right") - 1
