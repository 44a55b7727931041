"""What was measured off the tree: totals of areas, and other sums over the children of a layer.

A table off the tree belongs to the layer whose children it tells apart: each of its cells is the
sum of all children with the same refined area whose other areas lie in one area of the table.
Totals of areas are the tables that sum up all other axes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from inftda.inference.families import Floats, Layer, Table, damaged, distinct_rows, find_rows
from inftda.lattice import Table as Planned
from inftda.lattice import chains, coarsest_depths, off_tree_tables, tables_on_tree
from inftda.tree import Tree


class Measured(Protocol):
    """All that was measured; see `publication.measurements`."""

    @property
    def tables(self) -> Sequence[Table]:
        """Tables of the lattice, on the tree and off it."""

    def level(self, index: int) -> Table:
        """The table of a level of the tree."""


@dataclass(frozen=True)
class Totals:
    """Totals of the areas of one level of an axis, as they were measured across the tree.

    Attributes:
        value: float64[areas].
        variance: float64[areas], of their noise.
    """

    value: Floats
    variance: Floats

    def summed(self, above: NDArray[np.int32]) -> "Totals":
        """Totals of larger areas; `above` says which of them each area is part of."""
        value, variance = np.bincount(above, self.value), np.bincount(above, self.variance)
        return Totals(value.astype(float), variance.astype(float))

    def weighed(self, other: "Totals") -> "Totals":
        """The same totals from two measurements, weighed by their variances."""
        own = other.variance / (self.variance + other.variance)
        value = own * self.value + (1 - own) * other.value
        return Totals(value, own * self.variance)


@dataclass(frozen=True)
class Sums:
    """One table off the tree: sums over the children of a layer.

    Attributes:
        start: int64[families], the cell of each family's first child; its siblings' follow.
        value: float64[cells].
        variance: float64[cells], of their noise; infinite where nothing was measured.
        area: int32[cells], refined area of each.
        across: the further axis that is not summed up; None for totals.
        other: int32[cells], area on that axis; empty for totals.
        up: int32[areas], in which of these the areas of the layer lie on that axis.
        is_hard: whether estimates have to agree with it.
    """

    start: NDArray[np.int64]
    value: Floats
    variance: Floats
    area: NDArray[np.int32]
    across: int | None
    other: NDArray[np.int32]
    up: NDArray[np.int32]
    is_hard: bool = False

    @classmethod
    def of_totals(cls, layer: Layer, totals: Totals, planned: Planned) -> "Sums":
        """Totals of the areas that a layer refines."""
        area, nothing = np.arange(layer.n_areas, dtype=np.int32), np.empty(0, np.int32)
        parents = len(layer.first) / max(len(distinct_rows((layer.areas[layer.level.axis],))[0]), 1)
        is_hard = planned.is_hard(layer.sigma**2 / float(totals.variance.mean()), parents)
        return cls(
            layer.first, totals.value, totals.variance, area, None, nothing, nothing, is_hard
        )

    @classmethod
    def of_pairs(cls, layer: Layer, table: Table, across: int, depth: int) -> "Sums":
        """A table with areas of two axes.

        Args:
            layer: the layer.
            table: what was measured.
            across: the axis beside the refined one.
            depth: of the areas on it.

        Raises:
            ReleaseError: sums over children of the layer are missing.
        """
        level, own = layer.level, layer.level.parent_area
        up = level.axes[across].hierarchy.ancestor(level.depths[across], depth)
        area, other = table.areas[level.axis], table.areas[across]
        first = np.flatnonzero(area == level.child_offsets[own[area]])
        block = find_rows(
            (own[area[first]], other[first]), (layer.areas[level.axis], up[layer.areas[across]])
        )
        if ((block < 0) & (np.diff(layer.offsets) > 1)).any():
            raise damaged(level)
        # Only children were not measured: one more cell, of which nothing is known, is theirs.
        start = np.append(first, len(area))[block]
        return cls(
            start=start,
            value=np.append(table.value, 0).astype(float),
            variance=np.append(np.full(len(area), float(table.sigma2)), np.inf),
            area=np.append(area, np.int32(0)),
            across=across,
            other=np.append(other, np.int32(0)),
            up=up,
        )


def totals_by_depth(tree: Tree, measured: Measured, axis: int) -> dict[int, Totals]:
    """Totals of the areas of an axis by its levels, as far as they were measured across the tree.

    Totals of finer areas say what those of coarser ones are: both are weighed by their variances.
    """
    hierarchy = tree.axes[axis].hierarchy
    found: dict[int, Totals] = {}
    totals: Totals | None = None
    for depth in range(hierarchy.depth, 0, -1):
        if totals is not None:
            totals = totals.summed(hierarchy.ancestor(depth + 1, depth))
        one_way = coarsest_depths(tree, [depth if a == axis else 0 for a in range(len(tree.axes))])
        if one_way in tables_on_tree(tree):
            break  # from here on the tree itself has them
        table = measured_at(tree, measured, one_way)
        if table is not None and len(table.value) == hierarchy.n_areas(depth):
            value = table.value[np.argsort(table.areas[axis])].astype(float)
            own = Totals(value, np.full(len(value), float(table.sigma2)))
            totals = own if totals is None else own.weighed(totals)
        if totals is not None:
            found[depth] = totals
    return found


def sums_of(
    tree: Tree, measured: Measured, layers: Sequence[Layer], totals: Sequence[Totals | None]
) -> list[list[list[Sums]]]:
    """For each layer the tables off the tree that were measured with it, in chains.

    Raises:
        ReleaseError: the measurements are damaged.
    """
    found = []
    for layer, own in zip(layers, totals, strict=True):
        tables = [table for table in off_tree_tables(tree) if table.index == layer.level.index]
        in_chains = [
            [made for table in chain if (made := _sums(tree, measured, layer, table, own))]
            for chain in chains(tables)
        ]
        found.append([chain for chain in in_chains if chain])
    return found


def _sums(
    tree: Tree, measured: Measured, layer: Layer, table: Planned, totals: Totals | None
) -> Sums | None:
    """A table of a layer, if it was measured."""
    if table.across is None:
        return None if totals is None else Sums.of_totals(layer, totals, table)
    values = measured_at(tree, measured, table.depths)
    if values is None:
        return None
    return Sums.of_pairs(layer, values, table.across, table.depths[table.across])


def measured_at(tree: Tree, measured: Measured, depths: Sequence[int]) -> Table | None:
    """The table with the areas of these levels, if it was measured."""
    wanted = coarsest_depths(tree, depths)
    for table in measured.tables:
        if coarsest_depths(tree, table.depths) == wanted:
            return table
    return None
