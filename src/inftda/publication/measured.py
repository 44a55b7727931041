"""Measurements of a release, in the order in which they are used.

The tree has families, level by level: a family is the children of one released node. An only child
is not measured. If it has measured nodes below it, it is a family of one here; otherwise only the
sum below it is known.

Cross tables have totals of areas, and other sums over the children of a level. A cross table
belongs to the level whose children it distinguishes: each of its cells is the sum of all children
with the same refined area whose other areas lie in one area of the table. Totals of areas are the
tables that sum up all other axes.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inftda.errors import ReleaseError
from inftda.noise.distribution import Noise
from inftda.privacy.measurement import Measurement
from inftda.tree import Areas, Cells, CrossTable, Ints, Tree, TreeLevel
from inftda.tree.cells import differ
from inftda.tree.cross_tables import chains

Floats = NDArray[np.float64]
#: Lower and upper ends of intervals.
Ends = tuple[NDArray[np.int64], NDArray[np.int64]]
#: Whole numbers in 32 bits where these are enough, which halves the memory.
Whole = NDArray[np.int32] | NDArray[np.int64]
#: Maps a function over items on threads.
Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]
#: A range of families: the first, and the one after the last.
Part = tuple[int, int]

#: Largest number of parts of a level, for any number of threads.
_PARTS: Final = 16
#: Keys of nodes stay below this.
_LARGEST_KEY: Final = 1 << 62


@dataclass(frozen=True)
class NoisyTable:
    """A measurement with its published values: every value that was drawn, or some of them.

    Attributes:
        measurement: the level or cross table, with its noise.
        cells: the measured cells, with noisy counts, in group order.
    """

    measurement: Measurement
    cells: Cells

    @property
    def depths(self) -> tuple[int, ...]:
        """Level of each axis's hierarchy, 0 where the axis is summed up."""
        return self.measurement.depths

    @property
    def noise(self) -> Noise:
        """Distribution of the noise."""
        return self.measurement.noise

    @property
    def areas(self) -> Areas:
        """int32[values] for each axis, number of the area at that level."""
        return self.cells.areas

    @property
    def value(self) -> Ints:
        """int64[values], noisy counts."""
        return self.cells.value

    def take(self, index: slice) -> "NoisyTable":
        """Some of the values."""
        return NoisyTable(self.measurement, self.cells.take(index))


@dataclass(frozen=True)
class Measurements:
    """All measurements of a release.

    Attributes:
        tables: the noisy total if there is one, then for each level of the tree its table, followed
            by the cross tables of its step.
    """

    tables: tuple[NoisyTable, ...]

    @cached_property
    def levels(self) -> dict[int, NoisyTable]:
        """The tables of levels of the tree, by the number of the level."""
        return {
            table.measurement.index: table for table in self.tables if table.measurement.is_on_tree
        }

    def level(self, index: int) -> NoisyTable:
        """The table of a level of the tree."""
        if index not in self.levels:
            raise ReleaseError(f"level {index} of the tree was not measured")
        return self.levels[index]


class Families(NamedTuple):
    """Arrays of a `Layer`, for kernels."""

    offsets: NDArray[np.int64]
    first: NDArray[np.int64]
    noisy: Whole
    child_family: NDArray[np.int32]
    sigma: float


class CellIntervals(NamedTuple):
    """Numbers of cells, each with an interval.

    Attributes:
        areas: int32[numbers] for each axis.
        value: whole numbers, positive.
        low: lower ends of their intervals.
        high: upper ends.
    """

    areas: Areas
    value: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]


@dataclass(frozen=True)
class Layer:
    """One measured level: children in families, families in group order.

    Attributes:
        level: the level of the tree.
        areas: int32[families] for each axis, areas of the parent node.
        parent: int64[families], index of the parent among the children of the layer above.
        offsets: int64[families + 1], slices of the children.
        first: int64[families], area of the first child on the refined axis; others follow.
        noisy: whole numbers[children], noisy counts; 0 for an only child.
        child_family: int32[children], family of the layer below that divides it, -1 if none does;
            empty if there is no layer below.
        noise: distribution of the noise.
        totals: totals of the areas that it refines, if a cross table has them.
        chains: its cross tables in chains: tables that lie inside each other,
            coarse to fine.
    """

    level: TreeLevel
    areas: Areas
    parent: NDArray[np.int64]
    offsets: NDArray[np.int64]
    first: NDArray[np.int64]
    noisy: Whole
    child_family: NDArray[np.int32]
    noise: Noise
    totals: "Totals | None" = None
    chains: "Sequence[Sequence[CrossTableSums]]" = ()

    @property
    def sigma(self) -> float:
        """Noise scale."""
        return self.noise.sigma

    @property
    def families(self) -> Families:
        """The arrays of the layer, for kernels."""
        return Families(self.offsets, self.first, self.noisy, self.child_family, self.sigma)

    @property
    def n_areas(self) -> int:
        """Number of areas of the refined axis at this level."""
        return int(self.level.child_offsets[-1])

    def parts(self, most: int = _PARTS) -> list[Part]:
        """Split into ranges of families; each area of the refined axis is in one range."""
        refined = self.areas[self.level.axis]
        offsets = np.append(np.flatnonzero(np.diff(refined, prepend=-1)), len(refined))
        goals = np.linspace(0, len(self.noisy), most + 1)
        cuts = np.unique(offsets[np.searchsorted(self.offsets[offsets], goals)])
        return list(pairwise(cuts.tolist()))

    def child_areas(self, child: NDArray[np.int64]) -> Areas:
        """Areas of some children on every axis."""
        family = np.searchsorted(self.offsets, child, side="right") - 1
        areas = [numbers[family] for numbers in self.areas]
        areas[self.level.axis] = (self.first[family] + child - self.offsets[family]).astype(
            np.int32
        )
        return tuple(areas)

    def find(self, areas: Areas) -> NDArray[np.int64]:
        """int64: the child with these areas, -1 if there is none."""
        if not len(self.first):
            return np.full(len(areas[0]), -1)
        family = find_rows(self.areas, self.level.parents(areas))
        child = self.offsets[family] + areas[self.level.axis] - self.first[family]
        return np.where(family >= 0, child, -1)


def layers_of(tree: Tree, measured: Measurements) -> list[Layer]:
    """All measured levels, coarse to fine."""
    layers: list[Layer] = []
    for level in reversed(tree.splitting_levels):
        finer = layers[-1] if layers else None
        layer = _layer(level, measured.level(level.index), finer)
        if finer is not None:
            parent = layer.find(finer.areas)
            if (parent < 0).any():
                raise damaged(finer.level)
            layer.child_family[parent] = np.arange(len(parent))
            layers[-1] = replace(finer, parent=parent)
        layers.append(layer)
    if layers and len(layers[-1].first) > 1:
        raise damaged(layers[-1].level)
    by_axis = [totals_by_depth(tree, measured, axis) for axis in range(len(tree.axes))]
    return [_with_sums(tree, measured, layer, by_axis[layer.level.axis]) for layer in layers[::-1]]


def _with_sums(
    tree: Tree, measured: Measurements, layer: Layer, by_depth: "dict[int, Totals]"
) -> Layer:
    """Add the cross tables of its step to a layer."""
    totals = by_depth.get(layer.level.depths[layer.level.axis])
    tables = {table.depths: table for table in tree.cross_tables_at(layer.level)}
    found = [
        [made for at in chain if (made := _sums(tree, measured, layer, tables[at], totals))]
        for chain in chains([*tables])
    ]
    return replace(layer, totals=totals, chains=[chain for chain in found if chain])


def find_rows(rows: Areas, wanted: Areas) -> NDArray[np.int64]:
    """int64: the row with each combination of areas, -1 if there is none."""
    n = len(rows[0])
    key = keys_of(tuple(map(np.concatenate, zip(rows, wanted, strict=True))))
    order = np.argsort(key[:n], kind="stable")
    at = np.searchsorted(key[:n], key[n:], sorter=order)
    row = order[np.minimum(at, n - 1)] if n else np.full(len(at), -1)
    return np.where((at < n) & (key[row] == key[n:]), row, -1)


def distinct_rows(areas: Areas) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First row of each combination of areas, and the number of its rows."""
    _, row, count = np.unique(keys_of(areas), return_index=True, return_counts=True)
    return row, count


def keys_of(areas: Sequence[NDArray[np.int32]]) -> NDArray[np.int64]:
    """int64: keys that are equal for equal areas, and ordered like the areas."""
    key, largest = np.zeros(len(areas[0]), np.int64), 1
    for numbers in areas:
        size = int(numbers.max(initial=0)) + 1
        if largest * size > _LARGEST_KEY:
            key = np.unique(key, return_inverse=True)[1]
            largest = int(key.max(initial=0)) + 1
        key = key * size + numbers
        largest *= size
    return key


def _layer(level: TreeLevel, table: NoisyTable, finer: Layer | None) -> Layer:
    """Make the layer of a level: measured families, and only children that `finer` divides."""
    axis, n_children = level.axis, np.diff(level.child_offsets).astype(np.int64)
    divided = level.parents(table.areas)
    start, noisy = np.flatnonzero(differ(divided)), table.value
    areas = tuple(numbers[start] for numbers in divided)
    if (np.diff(start, append=len(noisy)) != n_children[areas[axis]]).any():
        raise damaged(level)
    if finer is not None and (n_children == 1).any():
        nodes = level.parents(finer.areas)
        is_only = n_children[nodes[axis]] == 1
        only = tuple(numbers[is_only] for numbers in nodes)
        areas, noisy = _with_only(axis, areas, np.diff(start, append=len(noisy)), noisy, only)
    return Layer(
        level=level,
        areas=areas,
        parent=np.zeros(len(areas[axis]), np.int64),
        offsets=np.concatenate([[0], np.cumsum(n_children[areas[axis]])]),
        first=level.child_offsets[areas[axis]].astype(np.int64),
        noisy=narrow(noisy),
        child_family=np.full(0 if finer is None else len(noisy), -1, np.int32),
        noise=table.noise,
    )


def _with_only(
    axis: int, areas: Areas, sizes: NDArray[np.int64], noisy: NDArray[np.int64], only: Areas
) -> tuple[Areas, NDArray[np.int64]]:
    """Insert families of one child among the measured ones, by their refined area."""
    joined = tuple(map(np.concatenate, zip(areas, only, strict=True)))
    order = np.argsort(joined[axis], kind="stable")
    sizes = np.concatenate([sizes, np.ones(len(only[axis]), np.int64)])
    starts, moved = np.cumsum(sizes) - sizes, sizes[order]
    within = np.arange(moved.sum()) - np.repeat(np.cumsum(moved) - moved, moved)
    child = np.repeat(starts[order], moved) + within
    values = np.concatenate([noisy, np.zeros(len(only[axis]), np.int64)])
    return tuple(numbers[order] for numbers in joined), values[child]


def narrow(numbers: Whole) -> Whole:
    """Convert to 32 bits if all numbers fit."""
    ends = np.iinfo(np.int32)
    is_enough = numbers.min(initial=0) >= ends.min and numbers.max(initial=0) <= ends.max
    return numbers.astype(np.int32) if is_enough else numbers


def damaged(level: TreeLevel) -> ReleaseError:
    """Make the error for missing measurements of a level."""
    return ReleaseError(
        f"the measurements of level {level.name!r} are not those of all areas of the nodes above; "
        "they were edited or damaged: get the release again from its publisher"
    )


@dataclass(frozen=True)
class Totals:
    """Measured totals of the areas of one level of an axis, from cross tables.

    Attributes:
        value: float64[areas].
        variance: float64[areas], variance of their noise.
    """

    value: Floats
    variance: Floats

    def summed(self, above: NDArray[np.int32]) -> "Totals":
        """Sum up to larger areas; `above` has the larger area of each area."""
        value, variance = np.bincount(above, self.value), np.bincount(above, self.variance)
        return Totals(value.astype(float), variance.astype(float))

    def weighed(self, other: "Totals") -> "Totals":
        """Combine two measurements of the same totals, weighted by their variances."""
        own = other.variance / (self.variance + other.variance)
        value = own * self.value + (1 - own) * other.value
        return Totals(value, own * self.variance)


@dataclass(frozen=True)
class CrossTableSums:
    """One cross table: sums over the children of a layer.

    Attributes:
        start: int64[families], the cell of each family's first child, followed by those of its
            siblings.
        value: float64[cells].
        variance: float64[cells], variance of their noise; infinite where nothing was measured.
        area: int32[cells], refined area of each cell.
        across: the additional dimension that is not summed up; None for totals.
        other: int32[cells], area on that axis; empty for totals.
        up: int32[areas], the area of that table that contains each area of the layer on that axis.
        table: the cross table of the tree.
    """

    start: NDArray[np.int64]
    value: Floats
    variance: Floats
    area: NDArray[np.int32]
    across: int | None
    other: NDArray[np.int32]
    up: NDArray[np.int32]
    table: CrossTable

    @classmethod
    def of_totals(cls, layer: Layer, totals: Totals, planned: CrossTable) -> "CrossTableSums":
        """Make the sums of a table of totals of the areas that a layer refines."""
        area, nothing = np.arange(layer.n_areas, dtype=np.int32), np.empty(0, np.int32)
        return cls(
            layer.first, totals.value, totals.variance, area, None, nothing, nothing, planned
        )

    @classmethod
    def of_pairs(
        cls, layer: Layer, table: NoisyTable, planned: CrossTable, across: int
    ) -> "CrossTableSums":
        """Make the sums of a table with areas of two axes.

        Args:
            layer: the layer.
            table: its measurements.
            planned: the table in the tree.
            across: its other axis.
        """
        depth = planned.depths[across]
        level, own = layer.level, layer.level.parent_area
        up = level.axes[across].hierarchy.ancestor(level.depths[across], depth)
        area, other = table.areas[level.axis], table.areas[across]
        first = np.flatnonzero(area == level.child_offsets[own[area]])
        block = find_rows(
            (own[area[first]], other[first]), (layer.areas[level.axis], up[layer.areas[across]])
        )
        if ((block < 0) & (np.diff(layer.offsets) > 1)).any():
            raise damaged(level)
        # Only children were not measured: they get one more cell, with an infinite variance.
        start = np.append(first, len(area))[block]
        return cls(
            start=start,
            value=np.append(table.value, 0).astype(float),
            variance=np.append(np.full(len(area), table.noise.sigma**2), np.inf),
            area=np.append(area, np.int32(0)),
            across=across,
            other=np.append(other, np.int32(0)),
            up=up,
            table=planned,
        )


def totals_by_depth(tree: Tree, measured: Measurements, axis: int) -> dict[int, Totals]:
    """Measured totals of the areas of an axis by level, from cross tables.

    Totals of coarser areas are also sums of those of finer areas; both are weighted by their
    variances.
    """
    hierarchy = tree.axes[axis].hierarchy
    found: dict[int, Totals] = {}
    totals: Totals | None = None
    for depth in range(hierarchy.depth, 0, -1):
        if totals is not None:
            totals = totals.summed(hierarchy.ancestor(depth + 1, depth))
        one_way = tree.coarsest([depth if a == axis else 0 for a in range(len(tree.axes))])
        if one_way in tree.on_tree:
            break  # the tree has the totals of all coarser levels
        table = measured_at(tree, measured, one_way)
        if table is not None and len(table.value) == hierarchy.n_areas(depth):
            value = table.value[np.argsort(table.areas[axis])].astype(float)
            own = Totals(value, np.full(len(value), table.noise.sigma**2))
            totals = own if totals is None else own.weighed(totals)
        if totals is not None:
            found[depth] = totals
    return found


def _sums(
    tree: Tree, measured: Measurements, layer: Layer, table: CrossTable, totals: Totals | None
) -> CrossTableSums | None:
    """Make the sums of a cross table of a layer; None if it was not measured."""
    if table.is_whole:
        return None if totals is None else CrossTableSums.of_totals(layer, totals, table)
    values = measured_at(tree, measured, table.depths)
    if values is None:
        return None
    return CrossTableSums.of_pairs(layer, values, table, table.others[0])


def measured_at(tree: Tree, measured: Measurements, depths: Sequence[int]) -> NoisyTable | None:
    """The measured table at these levels, if there is one."""
    wanted = tree.coarsest(depths)
    for table in measured.tables:
        if tree.coarsest(table.depths) == wanted:
            return table
    return None
