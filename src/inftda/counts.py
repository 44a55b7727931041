"""Counts: non-zero leaf counts in tree order, and the same summed up at every level.

In tree order (the order of the refinement path) every node of every level is a contiguous
run, so a level's true counts are run sums and the true children of a node are one slice.
Memory follows the number of non-zero leaves; nothing of size areas x areas is ever built.

Counts are confidential, unless a comparison builds them from a release.
Nothing of the truth may leave except through a mechanism or a comparison that is marked
confidential.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inftda.kernels import inlined_kernel, kernel
from inftda.leaves import Leaves
from inftda.threads import Crew, available_cores
from inftda.tree import Tree, TreeLevel
from inftda.tree_order import (
    DIGIT_BITS,
    Keys,
    Layout,
    digits_below_cut,
    partition,
    sort_buckets_kernel,
)


@dataclass(frozen=True, repr=False)
class LevelCounts:
    """True non-zero nodes of one splitting level, in tree order.

    Attributes:
        level: the level of the tree.
        offsets: int64[parents + 1], slices of the next two: the true children of each true parent.
        ordinal: int32[nodes], index of each node among all children of its parent.
        count: int64[nodes].
    """

    level: TreeLevel
    offsets: NDArray[np.int64]
    ordinal: NDArray[np.int32]
    count: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"LevelCounts({self.level.name}, confidential)"


@dataclass(frozen=True, repr=False)
class Counts:
    """Counts of a tree, level by level.

    Attributes:
        tree: the public tree.
        total: number of trips.
        levels: the splitting levels, coarse to fine.
        margins: int64[finest areas] for each axis, the trips of every area.
    """

    tree: Tree
    total: int
    levels: tuple[LevelCounts, ...]
    margins: tuple[NDArray[np.int64], ...]
    #: How many levels `nodes` has gone down last, and the areas there.
    _areas: tuple[int, tuple[NDArray[np.int32], ...]] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_areas", (0, self._root_areas()))

    @classmethod
    def of(cls, tree: Tree, leaves: Leaves, *, threads: int | None = None) -> "Counts":
        """Sort leaves in tree order and sum them up level by level.

        Args:
            tree: the public tree.
            leaves: they may repeat.
            threads: how many to sort on, at least 1; all cores by default.
        """
        layout, total = Layout.of(tree), int(leaves.counts.sum())
        threads = threads or available_cores()
        crew = Crew(threads if len(leaves.counts) > FEW else 1)
        margins = _margins(tree, leaves, crew)
        if not layout.levels:
            return cls(tree, total, (), margins)
        in_order = _sort(layout, leaves, crew)
        del leaves  # levels take several times their room
        return cls(tree, total, _sum_up(layout, in_order, crew), margins)

    @classmethod
    def from_leaves(
        cls,
        tree: Tree,
        areas: Sequence[NDArray[np.int32]],
        counts: NDArray[np.int64],
        *,
        threads: int | None = None,
    ) -> "Counts":
        """The same from plain arrays; see `Leaves.of`.

        Raises:
            IngestError: the total is beyond 2^60.
        """
        return cls.of(tree, Leaves.of(areas, counts), threads=threads)

    def __repr__(self) -> str:
        return f"Counts({len(self.tree.axes)} axes, confidential)"

    def level(self, level: TreeLevel) -> LevelCounts:
        """The non-zero nodes of one splitting level."""
        return next(counts for counts in self.levels if counts.level.index == level.index)

    def parent_areas(self, level: TreeLevel) -> tuple[NDArray[np.int32], ...]:
        """int32 for each axis: areas of the non-zero parents of a splitting level's nodes."""
        return self.nodes(sum(known.level.index < level.index for known in self.levels))[0]

    @property
    def n_roots(self) -> int:
        """1, or 0 if there are no leaves at all."""
        return len(self.levels[0].offsets) - 1 if self.levels else int(self.total != 0)

    @property
    def n_leaves(self) -> int:
        """Number of non-zero leaves."""
        return len(self.leaves[1])

    @cached_property
    def leaves(self) -> tuple[tuple[NDArray[np.int32], ...], NDArray[np.int64]]:
        """Area numbers on each axis and counts of the non-zero leaves, in tree order."""
        return self.nodes(len(self.levels))

    def nodes(self, n_levels: int) -> tuple[tuple[NDArray[np.int32], ...], NDArray[np.int64]]:
        """Area numbers and counts of the non-zero nodes after the first `n_levels` of `levels`.

        A release asks for one level after the other, so each goes on from the one before.
        """
        reached, areas = self._areas
        if reached > n_levels:
            reached, areas = 0, self._root_areas()
        for level in self.levels[reached:n_levels]:
            below = tuple(np.empty(len(level.count), np.int32) for _ in areas)
            child_areas_kernel(
                areas, level.level.axis, level.level.child_offsets, level.offsets, level.ordinal,
                below,
            )  # fmt: skip
            areas = below
        object.__setattr__(self, "_areas", (n_levels, areas))
        return areas, self.levels[n_levels - 1].count if n_levels else self._root_count()

    def _root_areas(self) -> tuple[NDArray[np.int32], ...]:
        return tuple(np.zeros(self.n_roots, np.int32) for _ in self.tree.axes)

    def _root_count(self) -> NDArray[np.int64]:
        return np.full(self.n_roots, self.total, np.int64)


#: Fewer leaves than this are not worth a second thread.
FEW = 1 << 17
#: Parts handed to each thread: several, because parts take different times.
PARTS_PER_THREAD = 4


def _margins(tree: Tree, leaves: Leaves, crew: Crew) -> tuple[NDArray[np.int64], ...]:
    """int64[finest areas] for each axis: the trips of every area."""
    hierarchies = [axis.hierarchy for axis in tree.axes]
    margins = tuple(np.zeros(areas.n_areas(areas.depth), np.int64) for areas in hierarchies)
    crew.run(
        partial(add_by_area_kernel, areas, leaves.counts, sums)
        for areas, sums in zip(leaves.areas, margins, strict=True)
    )
    return margins


class _Part(NamedTuple):
    """Some of the leaves in tree order.

    Attributes:
        low: first of them.
        high: one after the last.
        before: the leaf that stands before them, -1 if there is none.
    """

    low: int
    high: int
    before: int


class _Sorted(NamedTuple):
    """Different leaves in tree order, part after part.

    Attributes:
        keys: uint64[n_words, n].
        counts: int64[n].
        parts: their ranges; entries between these are unused.
    """

    keys: Keys
    counts: NDArray[np.int64]
    parts: list[_Part]

    def __repr__(self) -> str:
        return "_Sorted(confidential)"


def _sort(layout: Layout, leaves: Leaves, crew: Crew) -> _Sorted:
    """Leaves are partitioned by the top bits of their keys, then parts of them sorted."""
    cut = layout.cut(len(leaves.counts))
    keys, counts, offsets = partition(layout, cut, leaves, crew)
    words, shifts = digits_below_cut(layout, cut)

    def sort(buckets: tuple[int, int]) -> tuple[int, int]:
        first, last = buckets
        low, high = int(offsets[first]), int(offsets[last])
        largest = int(np.diff(offsets[first : last + 1]).max(initial=0))
        spare = np.empty((layout.n_words, largest), np.uint64), np.empty(largest, np.int64)
        digit_ends = np.empty(1 << DIGIT_BITS, np.int64)
        sort_buckets_kernel(keys, counts, offsets, first, last, words, shifts, *spare, digit_ends)
        return low, low + merge_equal_kernel(keys, counts, low, high)

    if crew.threads > 1:
        # No bucket at all: compiles or loads the kernels before threads share them.
        sort((0, 0))
    parts, before = [], -1
    for low, high in crew.map(sort, _bucket_ranges(offsets, crew.threads)):
        if high > low:
            parts.append(_Part(low, high, before))
            before = high - 1
    return _Sorted(keys, counts, parts)


def _bucket_ranges(offsets: NDArray[np.int64], threads: int) -> list[tuple[int, int]]:
    """Range of buckets of each part; parts have about the same number of leaves."""
    n = int(offsets[-1])
    n_parts = 1 if threads == 1 else threads * PARTS_PER_THREAD
    wanted = [n * part // n_parts for part in range(1, n_parts)]
    cuts = [0, *np.searchsorted(offsets[1:], wanted, side="right").tolist(), len(offsets) - 1]
    return [(a, b) for a, b in pairwise(cuts) if b > a]


def _sum_up(layout: Layout, leaves: _Sorted, crew: Crew) -> tuple[LevelCounts, ...]:
    """Levels from coarse to fine.

    Nodes are counted first and then written where they belong: nothing is written twice.
    """
    n_nodes = np.zeros((len(leaves.parts), len(layout.levels)), np.int64)
    digits = np.array(layout.word), np.array(layout.shift)
    crew.run(
        partial(count_nodes_kernel, leaves.keys, *part, *digits, here)
        for part, here in zip(leaves.parts, n_nodes, strict=True)
    )
    nodes = _Nodes.of(layout, n_nodes)
    nodes.write(leaves, crew)
    return nodes.levels()


@dataclass(frozen=True, repr=False)
class _Nodes:
    """Nodes of all levels, one level after the other.

    Attributes:
        layout: of their keys.
        level_offsets: int64[levels + 1], slices of the next two.
        firsts: int64[parts, levels], index of the first node of a level that begins in a part.
        ordinal: int32, as in `LevelCounts`.
        count: int64, likewise.
        offsets: int64, the first child of each node, and one more entry after each level.
    """

    layout: Layout
    level_offsets: NDArray[np.int64]
    firsts: NDArray[np.int64]
    ordinal: NDArray[np.int32]
    count: NDArray[np.int64]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, layout: Layout, n_nodes: NDArray[np.int64]) -> "_Nodes":
        """Room for the nodes of each level that were counted in each part."""
        before = np.cumsum(n_nodes, axis=0) - n_nodes
        level_offsets = np.concatenate([[0], np.cumsum(n_nodes.sum(axis=0))])
        n = int(level_offsets[-1])
        offsets = np.empty(n + len(level_offsets), np.int64)
        ordinal, count = np.empty(n, np.int32), np.empty(n, np.int64)
        return cls(layout, level_offsets, before + level_offsets[:-1], ordinal, count, offsets)

    def write(self, leaves: _Sorted, crew: Crew) -> None:
        """Write all nodes, those that begin in a part on one thread."""
        layout = self.layout
        digits = np.array(layout.word), np.array(layout.shift), np.array(layout.bits)
        at, begun, carried = self.firsts.copy(), *np.zeros((2, *self.firsts.shape), np.int64)
        crew.run(
            partial(
                write_nodes_kernel, leaves.keys, leaves.counts, *part, *digits, self.level_offsets,
                firsts, at[number], begun[number],
                self.ordinal, self.count, self.offsets, carried[number],
            )
            for number, (part, firsts) in enumerate(zip(leaves.parts, self.firsts, strict=True))
        )  # fmt: skip
        # What a part has of nodes that began in parts before it.
        for first, trips in zip(self.firsts, carried, strict=True):
            is_any = trips > 0
            self.count[first[is_any] - 1] += trips[is_any]

    def levels(self) -> tuple[LevelCounts, ...]:
        """Level by level."""
        levels: list[LevelCounts] = []
        offsets = np.unique(self.level_offsets[:2])  # of the root, if there is one
        for number, (start, stop) in enumerate(pairwise(self.level_offsets.tolist())):
            ordinal, count = self.ordinal[start:stop], self.count[start:stop]
            levels.append(LevelCounts(self.layout.levels[number], offsets, ordinal, count))
            offsets = self.offsets[start + number : stop + number + 1]
            if number + 2 < len(self.level_offsets):
                offsets[-1] = self.level_offsets[number + 2] - stop
        return tuple(levels)


@kernel
def child_areas_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    parents: tuple[NDArray[np.int32], ...],
    refined: int,
    child_offsets: NDArray[np.int32],
    offsets: NDArray[np.int64],
    index: NDArray[np.int32],
    out: tuple[NDArray[np.int32], ...],
) -> None:
    """Areas of some children: on one axis their own, on the others their parents'.

    Args:
        parents: int32[parents] for every axis, area of each parent.
        refined: the axis on which children differ.
        child_offsets: int32[areas + 1], first child of each area on that axis.
        offsets: int64[parents + 1], slices of the next.
        index: int32, index of each child among all children of its parent.
        out: int32 for every axis, written.
    """
    for axis in range(len(parents)):
        areas, children = parents[axis], out[axis]
        if axis == refined:
            for i in range(areas.size):
                for child in range(offsets[i], offsets[i + 1]):
                    children[child] = child_offsets[areas[i]] + index[child]
        else:
            for i in range(areas.size):
                for child in range(offsets[i], offsets[i + 1]):
                    children[child] = areas[i]


@kernel
def add_by_area_kernel(
    areas: NDArray[np.int32], counts: NDArray[np.int64], sums: NDArray[np.int64]
) -> None:
    """Add counts to the sums of their areas, in place.

    Args:
        areas: int32[n].
        counts: int64[n].
        sums: int64[areas].
    """
    for i in range(areas.size):
        sums[areas[i]] += counts[i]


@kernel
def merge_equal_kernel(keys: Keys, counts: NDArray[np.int64], low: int, high: int) -> int:
    """Merge neighbours low..high with equal keys, adding up their counts, towards `low`.

    Args:
        keys: uint64[n_words, n], sorted from low to high.
        counts: int64[n]. The total is below 2^60.
        low: first of them.
        high: one after the last.

    Returns:
        Number of different keys.
    """
    at = low
    for i in range(low, high):
        is_new = i == low
        for w in range(keys.shape[0]):
            is_new = is_new or keys[w, i] != keys[w, at - 1]
        if is_new:
            for w in range(keys.shape[0]):
                keys[w, at] = keys[w, i]
            counts[at] = counts[i]
            at += 1
        else:
            counts[at - 1] += counts[i]
    return at - low


@inlined_kernel
def coarsest_new(
    keys: Keys, leaf: int, before: int, word: NDArray[np.int64], shift: NDArray[np.int64]
) -> int:
    """The coarsest level at which a leaf is in another node than the different one before it.

    Args:
        keys: uint64[n_words, n], sorted.
        leaf: which.
        before: the leaf before it, -1 if there is none.
        word: int64[levels], index of the word that holds each level's ordinal.
        shift: int64[levels], its distance from the word's low end.
    """
    if before < 0:
        return 0
    w = 0
    while keys[w, leaf] == keys[w, before]:
        w += 1
    differing = keys[w, leaf] ^ keys[w, before]
    # From the fine end: neighbours in tree order mostly share all but their last areas.
    level = word.size - 1
    while level > 0 and (
        word[level] > w or (word[level - 1] == w and differing >> np.uint64(shift[level - 1]) > 0)
    ):
        level -= 1
    return level


@kernel
def count_nodes_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    keys: Keys,
    low: int,
    high: int,
    before: int,
    word: NDArray[np.int64],
    shift: NDArray[np.int64],
    n_nodes: NDArray[np.int64],
) -> None:
    """Count the nodes of each level that begin among the leaves low..high.

    Args:
        keys: uint64[n_words, n], sorted and different from low to high.
        low: first leaf.
        high: one after the last.
        before: the leaf before the first, -1 if there is none.
        word: int64[levels], as above.
        shift: int64[levels], likewise.
        n_nodes: int64[levels], zeros; written.
    """
    for leaf in range(low, high):
        n_nodes[coarsest_new(keys, leaf, before, word, shift)] += 1
        before = leaf
    for level in range(1, n_nodes.size):
        n_nodes[level] += n_nodes[level - 1]


@kernel
def write_nodes_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    keys: Keys,
    counts: NDArray[np.int64],
    low: int,
    high: int,
    before: int,
    word: NDArray[np.int64],
    shift: NDArray[np.int64],
    bits: NDArray[np.int64],
    level_offsets: NDArray[np.int64],
    firsts: NDArray[np.int64],
    at: NDArray[np.int64],
    begun: NDArray[np.int64],
    ordinal: NDArray[np.int32],
    count: NDArray[np.int64],
    offsets: NDArray[np.int64],
    carried: NDArray[np.int64],
) -> None:
    """Write the nodes of all levels that begin among the leaves low..high.

    Args:
        keys: uint64[n_words, n], sorted and different from low to high.
        counts: int64[n]. The total is below 2^60.
        low: first leaf.
        high: one after the last.
        before: the leaf before the first, -1 if there is none.
        word: int64[levels], as above.
        shift: int64[levels], likewise.
        bits: int64[levels], width of each level's ordinal.
        level_offsets: int64[levels + 1], slices of the arrays of all nodes.
        firsts: int64[levels], where the nodes of each level go.
        at: int64[levels], the same; overwritten.
        begun: int64[levels], zeros; overwritten.
        ordinal: int32, written: index of each node among the children of its parent.
        count: int64, written: of nodes that begin here, what these leaves have.
        offsets: int64, written: the first child of each node, and one more after each level.
        carried: int64[levels], written: what these leaves have of nodes that began before.
    """
    n_levels = word.size
    trips = 0
    for leaf in range(low, high):
        for level in range(coarsest_new(keys, leaf, before, word, shift), n_levels):
            node = at[level]
            if node == firsts[level]:
                carried[level] = trips
            else:
                count[node - 1] = trips - begun[level]
            begun[level] = trips
            mask = np.uint64((1 << bits[level]) - 1)
            ordinal[node] = np.int32((keys[word[level], leaf] >> np.uint64(shift[level])) & mask)
            if level < n_levels - 1:
                offsets[node + level] = at[level + 1] - level_offsets[level + 1]
            at[level] = node + 1
        trips += counts[leaf]
        before = leaf
    for level in range(n_levels):
        if at[level] == firsts[level]:
            carried[level] = trips
        else:
            count[at[level] - 1] = trips - begun[level]
