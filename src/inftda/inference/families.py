"""Measured counts as families: the children of one released node, level by level.

Only children are not measured. One that has measured nodes below it is put in all the same,
as a family of one; below all others nothing is known but the sum.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from inftda.errors import ReleaseError
from inftda.tree import Tree, TreeLevel

Areas = tuple[NDArray[np.int32], ...]
Floats = NDArray[np.float64]
#: Where 32 bits are enough, they are half of the memory.
Whole = NDArray[np.int32] | NDArray[np.int64]
Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]

#: A level is worked through in at most this many parts, on however many threads.
_PARTS: Final = 16
#: Keys of nodes stay below this.
_LARGEST_KEY: Final = 1 << 62


class Table(Protocol):
    """Noisy counts of one table of the lattice; see `publication.measurements`."""

    @property
    def depths(self) -> tuple[int, ...]:
        """Level of each axis's hierarchy, 0 where the axis is summed up."""

    @property
    def sigma2(self) -> Fraction:
        """Variance of the noise."""

    @property
    def areas(self) -> Areas:
        """Area on each axis of every value."""

    @property
    def value(self) -> NDArray[np.int64]:
        """Noisy counts, the children of all nodes, one node after another."""


@dataclass(frozen=True)
class Layer:
    """One measured level: children in families, families in group order.

    Attributes:
        level: of the tree.
        sigma: noise scale.
        areas: int32[families] for each axis, the areas of the node that is divided.
        first: int64[families], area of the first child on the refined axis; others follow.
        offsets: int64[families + 1], slices of the children.
        noisy: whole numbers[children], what was measured; 0 for an only child.
        parent: int64[families], the child of the layer above that is divided.
        below: int32[children], family of the layer below that divides it, -1 if none does; empty
            if there is no layer below.
    """

    level: TreeLevel
    sigma: float
    areas: Areas
    first: NDArray[np.int64]
    offsets: NDArray[np.int64]
    noisy: Whole
    parent: NDArray[np.int64]
    below: NDArray[np.int32]

    @property
    def n_areas(self) -> int:
        """Areas that the refined axis has here."""
        return int(self.level.child_offsets[-1])

    def parts(self, most: int = _PARTS) -> list[tuple[int, int]]:
        """Ranges of families to work on at a time; no area of the refined axis is in two."""
        refined = self.areas[self.level.axis]
        offsets = np.append(np.flatnonzero(np.diff(refined, prepend=-1)), len(refined))
        goals = np.linspace(0, len(self.noisy), most + 1)
        cuts = np.unique(offsets[np.searchsorted(self.offsets[offsets], goals)])
        return list(pairwise(cuts.tolist()))

    def child_areas(self, child: NDArray[np.int64]) -> Areas:
        """Areas on every axis of some children."""
        family = np.searchsorted(self.offsets, child, side="right") - 1
        areas = [numbers[family] for numbers in self.areas]
        areas[self.level.axis] = (self.first[family] + child - self.offsets[family]).astype(
            np.int32
        )
        return tuple(areas)

    def find(self, areas: Areas) -> NDArray[np.int64]:
        """int64: the child with these areas, -1 where there is none."""
        if not len(self.first):
            return np.full(len(areas[0]), -1)
        family = find_rows(self.areas, self.level.parents(areas))
        child = self.offsets[family] + areas[self.level.axis] - self.first[family]
        return np.where(family >= 0, child, -1)


def layers_of(tree: Tree, tables: Sequence[Table]) -> list[Layer]:
    """All measured levels, coarse to fine.

    Args:
        tree: the public tree.
        tables: what was measured at each of `tree.splitting_levels`.

    Raises:
        ReleaseError: not all children of a node are there, or a node that is divided is not.
    """
    layers: list[Layer] = []
    for level, table in reversed(list(zip(tree.splitting_levels, tables, strict=True))):
        finer = layers[-1] if layers else None
        layer = _layer(level, table, finer)
        if finer is not None:
            parent = layer.find(finer.areas)
            if (parent < 0).any():
                raise damaged(finer.level)
            layer.below[parent] = np.arange(len(parent))
            layers[-1] = replace(finer, parent=parent)
        layers.append(layer)
    if layers and len(layers[-1].first) > 1:
        raise damaged(layers[-1].level)
    return layers[::-1]


def find_rows(rows: Areas, wanted: Areas) -> NDArray[np.int64]:
    """int64: which row has the areas that are wanted, -1 where none has."""
    n = len(rows[0])
    key = keys_of(tuple(map(np.concatenate, zip(rows, wanted, strict=True))))
    order = np.argsort(key[:n], kind="stable")
    at = np.searchsorted(key[:n], key[n:], sorter=order)
    row = order[np.minimum(at, n - 1)] if n else np.full(len(at), -1)
    return np.where((at < n) & (key[row] == key[n:]), row, -1)


def distinct_rows(areas: Areas) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """One row for each combination of areas, and how many rows have it."""
    _, row, count = np.unique(keys_of(areas), return_index=True, return_counts=True)
    return row, count


def keys_of(areas: Sequence[NDArray[np.int32]]) -> NDArray[np.int64]:
    """int64: equal for rows with equal areas, and otherwise in the order of these."""
    key, largest = np.zeros(len(areas[0]), np.int64), 1
    for numbers in areas:
        size = int(numbers.max(initial=0)) + 1
        if largest * size > _LARGEST_KEY:
            key = np.unique(key, return_inverse=True)[1]
            largest = int(key.max(initial=0)) + 1
        key = key * size + numbers
        largest *= size
    return key


def _layer(level: TreeLevel, table: Table, finer: Layer | None) -> Layer:
    """Families of a level: those that were measured, and only children that `finer` divides."""
    axis, n_children = level.axis, np.diff(level.child_offsets).astype(np.int64)
    divided = level.parents(table.areas)
    is_first = np.ones(len(table.value), bool)
    is_first[1:] = False
    for numbers in divided:
        is_first[1:] |= numbers[1:] != numbers[:-1]
    start, noisy = np.flatnonzero(is_first), table.value
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
        sigma=math.sqrt(table.sigma2),
        areas=areas,
        first=level.child_offsets[areas[axis]].astype(np.int64),
        offsets=np.concatenate([[0], np.cumsum(n_children[areas[axis]])]),
        noisy=_narrow(noisy),
        parent=np.zeros(len(areas[axis]), np.int64),
        below=np.full(0 if finer is None else len(noisy), -1, np.int32),
    )


def _with_only(
    axis: int, areas: Areas, sizes: NDArray[np.int64], noisy: NDArray[np.int64], only: Areas
) -> tuple[Areas, NDArray[np.int64]]:
    """Families of one put among the measured ones, by their refined area."""
    joined = tuple(map(np.concatenate, zip(areas, only, strict=True)))
    order = np.argsort(joined[axis], kind="stable")
    sizes = np.concatenate([sizes, np.ones(len(only[axis]), np.int64)])
    starts, moved = np.cumsum(sizes) - sizes, sizes[order]
    within = np.arange(moved.sum()) - np.repeat(np.cumsum(moved) - moved, moved)
    child = np.repeat(starts[order], moved) + within
    values = np.concatenate([noisy, np.zeros(len(only[axis]), np.int64)])
    return tuple(numbers[order] for numbers in joined), values[child]


def _narrow(numbers: NDArray[np.int64]) -> Whole:
    """In 32 bits if all fit."""
    ends = np.iinfo(np.int32)
    is_enough = numbers.min(initial=0) >= ends.min and numbers.max(initial=0) <= ends.max
    return numbers.astype(np.int32) if is_enough else numbers


def damaged(level: TreeLevel) -> ReleaseError:
    """What to say if measurements of a level are missing."""
    return ReleaseError(
        f"the measurements of level {level.name!r} are not those of all areas of the nodes above; "
        "they were edited or damaged: get the release again from its publisher"
    )
