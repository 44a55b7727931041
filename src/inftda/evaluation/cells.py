"""Cells: numbers between areas of any levels, and the leaves that they are sums of."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from inftda.errors import ReleaseError
from inftda.estimates import VALUES, Estimate
from inftda.inference.measured import EstimatedLeaves
from inftda.publication.tables import Areas, leaf_areas
from inftda.tree import Tree

#: Up to this number of cells a level is summed up in a dense array.
DENSE_CELLS = 1 << 22
#: Beyond this number of cells a cell has no 64-bit number; such levels are left out.
MAX_CELLS = 1 << 62


def estimated_leaves(estimate: Estimate) -> EstimatedLeaves:
    """All numbers of an estimate, with their intervals.

    Raises:
        ReleaseError: its table cannot be read.
    """
    table = estimate.table
    try:
        leaves = table if isinstance(table, pa.Table) else pq.read_table(table, partitioning=None)
        values = [leaves.column(name).to_numpy().astype(np.int64, copy=False) for name in VALUES]
        areas = leaf_areas(estimate.tree, leaves)
    except (pa.ArrowException, OSError, KeyError):
        raise ReleaseError(
            "the estimate cannot be read as estimates between areas; estimate again with "
            "`inftda estimate`"
        ) from None
    _check_known(estimate.tree, areas)
    return EstimatedLeaves(areas, *values)


def _check_known(tree: Tree, areas: Areas) -> None:
    """Refuse areas that are not known."""
    for axis, numbers in zip(tree.axes, areas, strict=True):
        if (numbers < 0).any():
            raise ReleaseError(
                f"the table has a code on axis {axis.name!r} that is not among its areas; check "
                "the release with `inftda verify`"
            )


@dataclass(frozen=True)
class Cells:
    """Non-zero cells of one level: their numbers, ascending, and values."""

    number: NDArray[np.int64]
    value: NDArray[np.int64]


class LevelSums:
    """Sums leaves up to one level on each axis.

    Cells are numbered with the last axis running fastest; there must be fewer than 2^62.
    """

    def __init__(self, tree: Tree, depths: Sequence[int]) -> None:
        self._sizes = [
            axis.hierarchy.n_areas(depth) for axis, depth in zip(tree.axes, depths, strict=True)
        ]
        # None where the finest level is asked for: each area is its own.
        self._above = [
            None
            if depth == axis.hierarchy.depth
            else axis.hierarchy.ancestor(axis.hierarchy.depth, depth).astype(np.int64)
            for axis, depth in zip(tree.axes, depths, strict=True)
        ]

    def of(self, areas: Areas, flow: NDArray[np.int64]) -> Cells:
        """Cells with a sum that is not zero."""
        number = self.numbers(areas)
        n_cells = prod(self._sizes)
        if n_cells <= DENSE_CELLS:
            # In integers: a floating-point sum is not exact from 2^53 on, and totals may be larger.
            dense = np.zeros(n_cells, np.int64)
            np.add.at(dense, number, flow)
            used = np.flatnonzero(dense)
            return Cells(used, dense[used])
        return _summed(number, flow)

    def numbers(self, areas: Areas) -> NDArray[np.int64]:
        """Number of the cell of each leaf."""
        number = np.zeros(len(areas[0]), np.int64)
        for size, above, leaf in zip(self._sizes, self._above, areas, strict=True):
            number *= size
            number += leaf if above is None else above[leaf]
        return number

    def areas(self, number: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
        """Area number on each axis of cells given by their numbers."""
        areas = []
        for size in reversed(self._sizes):
            areas.append(number % size)
            number = number // size
        return tuple(reversed(areas))


def _summed(number: NDArray[np.int64], flow: NDArray[np.int64]) -> Cells:
    """Cells by sorting; equal numbers are added up."""
    order = np.argsort(number, kind="stable")
    number, flow = number[order], flow[order]
    if len(number) == 0:
        return Cells(number, flow)
    first = np.flatnonzero(np.concatenate([[True], number[1:] != number[:-1]]))
    value = np.add.reduceat(flow, first)
    used = np.flatnonzero(value)
    return Cells(number[first][used], value[used])


def match_cells(released: Cells, truth: Cells) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Truth of each released cell (0 if it has none), and which true cells are missing."""
    index = np.searchsorted(truth.number, released.number)
    is_there = index < len(truth.number)
    is_there[is_there] = truth.number[index[is_there]] == released.number[is_there]
    value = np.zeros(len(released.number), np.int64)
    value[is_there] = truth.value[index[is_there]]
    is_lost = np.ones(len(truth.number), bool)
    is_lost[index[is_there]] = False
    return value, is_lost
