"""One level step: from released parents to their released children.

All children of a surviving parent get noise, also those that are truly zero; the optimiser
turns the noisy vector into non-negative integers that sum to the parent's released count;
zeros are dropped, the rest are the next parents.

Parents are handled in *groups*: all that share the area being refined. Groups in ascending
order, and the parents of a group by their other areas, is *group order*. It is cut into
*items* of work, each with a stream of random bits of its own. Order and items follow from
what is released, never from the truth or from where the work is done, so equal seeds give
equal children on any number of threads and on every engine.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inftda.kernels import kernel
from inftda.noise.entropy import RandomSource
from inftda.noise.sampler import Sampler
from inftda.optimize.segments import Optimizer, Survivors, check_status
from inftda.tree import TreeLevel
from inftda.truth import Children

if TYPE_CHECKING:
    from inftda.mechanisms.across import Across

#: Children in an item, at most, unless one cell has more: enough that handing it out and
#: starting a stream of random bits cost little, few enough that the buffers of a thread
#: stay small.
ITEM_CHILDREN: Final = 1 << 19

#: Children in an item, at least, unless a level has fewer.
FEWEST_CHILDREN: Final = 1 << 16


@dataclass(frozen=True)
class Nodes:
    """Released nodes of one level.

    Attributes:
        areas: int32 area numbers, one array per axis.
        value: int64 released counts, positive.
    """

    areas: tuple[NDArray[np.int32], ...]
    value: NDArray[np.int64]

    def take(self, index: NDArray[np.int64] | slice) -> "Nodes":
        """Some of the nodes, in the given order."""
        return Nodes(tuple(numbers[index] for numbers in self.areas), self.value[index])


def join(parts: list[Nodes]) -> Nodes:
    """Nodes of several parts, one after the other."""
    if len(parts) == 1:
        return parts[0]
    return Nodes(
        tuple(map(np.concatenate, zip(*(part.areas for part in parts), strict=True))),
        np.concatenate([part.value for part in parts]),
    )


class Drawn(NamedTuple):
    """Noisy counts of a table as they were drawn, before anything was made of them.

    They come in rows: the children of one area on the refined axis, with one area on each
    other axis.

    Attributes:
        depths: level of each axis's hierarchy that the counts are at, 0 where it is summed up.
        refined: the axis whose areas the counts of a row differ in.
        areas: int32[rows] for each axis, on the refined one the first child.
        sizes: int64[rows], how many counts each has.
        value: int64, row by row.
    """

    depths: tuple[int, ...]
    refined: int
    areas: tuple[NDArray[np.int32], ...]
    sizes: NDArray[np.int64]
    value: NDArray[np.int64]

    @classmethod
    def below(
        cls,
        level: TreeLevel,
        depths: tuple[int, ...],
        areas: tuple[NDArray[np.int32], ...],
        value: NDArray[np.int64],
    ) -> "Drawn":
        """Counts of all children that some rows have at a level of the tree.

        Args:
            level: the level.
            depths: see above.
            areas: int32[rows] for each axis, on the refined one at the level above.
            value: int64, row by row; there is none for an only child unless it was drawn.
        """
        offsets, refined = level.child_offsets, areas[level.axis]
        sizes = (offsets[refined + 1] - offsets[refined]).astype(np.int64)
        if sizes.sum() != len(value):
            is_drawn = sizes > 1
            areas, sizes = tuple(numbers[is_drawn] for numbers in areas), sizes[is_drawn]
        first = offsets[areas[level.axis]]
        placed = (*areas[: level.axis], first, *areas[level.axis + 1 :])
        return cls(depths, level.axis, placed, sizes, value)

    def cells(self) -> tuple[NDArray[np.int32], ...]:
        """int32[counts] for each axis: the areas of every single count."""
        repeated = [np.repeat(numbers, self.sizes) for numbers in self.areas]
        start = np.repeat(np.cumsum(self.sizes) - self.sizes, self.sizes)
        repeated[self.refined] += (np.arange(len(self.value)) - start).astype(np.int32)
        return tuple(repeated)


class Divided(NamedTuple):
    """What has become of the parents of some items.

    Attributes:
        children: released children, in group order.
        n_draws: noisy counts on the tree that they were made from.
        drawn: these, and those of tables off the tree but the one-way table; none unless asked for.
    """

    children: Nodes
    n_draws: int
    drawn: tuple[Drawn, ...] = ()


class Work(NamedTuple):
    """Children that stretches of group order have, to cut items from.

    Attributes:
        key: int64, ascending: the smallest key of the stretch; see `LevelStep.keys`.
        children: int64.
    """

    key: NDArray[np.int64]
    children: NDArray[np.int64]


@dataclass(frozen=True)
class LevelStep:
    """What is done to the parents of one level, wherever it is carried out.

    Attributes:
        level: the level of the children.
        sampler: the noise that the plan pays for.
        optimize: the optimiser.
        source: random bits.
        item_children: children in an item of work, at most; a slow optimiser wants few, to be
            interrupted in time.
        across: what is measured beside the children, off the tree; None for the paper's step.
    """

    level: TreeLevel
    sampler: Sampler
    optimize: Optimizer
    source: RandomSource
    item_children: int = ITEM_CHILDREN
    across: "Across | None" = None

    @cached_property
    def sort_axes(self) -> tuple[int, ...]:
        """Axes in the order that group order goes by: the refined one, then the longest first."""
        return self.level.group_axes

    def keys(self, areas: tuple[NDArray[np.int32], ...]) -> NDArray[np.int64]:
        """int64: one number for the first two areas of group order, which items are cut by."""
        refined, *others = self.sort_axes
        if not others:
            return areas[refined].astype(np.int64)
        return areas[refined].astype(np.int64) * self.n_others + areas[others[0]]

    @cached_property
    def n_others(self) -> int:
        """Keys that a group may have: areas on the second axis of group order."""
        axes = self.sort_axes
        return self.level.n_parent_areas(axes[1]) if len(axes) > 1 else 1

    def group_order(self, areas: tuple[NDArray[np.int32], ...]) -> NDArray[np.int64]:
        """int64: which parent stands at each position of group order."""
        return group_order(self.level, areas, np.arange(len(areas[0])))

    def n_children(self, area: NDArray[np.int32]) -> NDArray[np.int64]:
        """int64: children of areas on the refined axis."""
        return np.diff(self.level.child_offsets).astype(np.int64)[area]

    def item_keys(
        self, groups: Work, cells_of: Callable[[NDArray[np.int64]], Work]
    ) -> NDArray[np.int64]:
        """int64[items]: the smallest key of each item, ascending.

        An item is several whole groups, or a part of one group that is too large for an item.

        Args:
            groups: the groups.
            cells_of: the cells (parents with one key) of the groups with the given keys.
        """
        is_huge = groups.children > self.item_children
        huge = groups.key[is_huge]
        cells = cells_of(huge) if len(huge) else Work(huge, huge)
        key = np.concatenate([groups.key[~is_huge], cells.key])
        children = np.concatenate([groups.children[~is_huge], cells.children])
        order = np.argsort(key, kind="stable")
        # No item holds both parts of a huge group and other groups.
        walls = np.append(huge, huge + self.n_others)
        key, children = key[order], children[order]
        return key[_cut(children, np.searchsorted(key, np.sort(walls)), self.item_children)]

    def divide(
        self,
        item: int,
        parents: Nodes,
        truth: Children,
        *,
        is_kept: bool = False,
    ) -> Divided:
        """Children of the parents of one item, in group order.

        Args:
            item: its number.
            parents: all of them, in group order.
            truth: true children, of these parents at least.
            is_kept: whether the noisy counts are wanted.
        """
        noisy = self.draw(item, parents, truth)
        # A copy: the optimiser overwrites what it is given.
        drawn = (self.drawn(parents, noisy.x.copy()),) if is_kept else ()
        survivors = self.optimized(noisy.x, noisy, parents)
        children = self.children(parents, survivors)
        return Divided(children, len(noisy.x), drawn)

    def draw(self, item: int, parents: Nodes, truth: Children) -> "Noisy":
        """Noisy counts of all children of the parents of one item: noise, then the truth."""
        offsets = np.empty(len(parents.value) + 1, np.int64)
        count_draws_kernel(parents.areas[self.level.axis], self.level.child_offsets, offsets)
        noisy = Noisy.of(offsets)
        stream = self.source.stream(self.level.index, item)
        self.sampler.fill(noisy.x, stream)
        stream.fill(noisy.seeds)
        key = self.level.keys(parents.areas)
        add_truth_kernel(noisy.x, offsets, key, truth[1:])
        return noisy

    def optimized(self, x: NDArray[np.int64], noisy: "Noisy", parents: Nodes) -> Survivors:
        """The positive ones among the optimised children; x, the noisy counts, is overwritten."""
        status = self.optimize(x, noisy.offsets, parents.value, noisy.seeds, noisy.survivors)
        check_status(status)
        return noisy.survivors

    def children(self, parents: Nodes, survivors: Survivors) -> Nodes:
        """Those children of parents that are kept, as nodes."""
        level, n = self.level, int(survivors.offsets[-1])
        offsets, index = survivors.offsets, survivors.index
        areas = tuple(np.empty(n, np.int32) for _ in parents.areas)
        child_areas_kernel(parents.areas, level.axis, level.child_offsets, offsets, index, areas)
        return Nodes(areas, survivors.value[:n].copy())

    def drawn(self, parents: Nodes, value: NDArray[np.int64]) -> Drawn:
        """Noisy counts of all children of some parents, in their order."""
        return Drawn.below(self.level, self.level.depths, parents.areas, value)


def group_order(
    level: TreeLevel, parents: Sequence[NDArray[np.int32]], order: NDArray[np.int64]
) -> NDArray[np.int64]:
    """An order of parents of a level, sorted into group order, stably."""
    for axis in reversed(level.group_axes):
        order = sort_by_area(order, parents[axis], level.n_parent_areas(axis))
    return order


def _cut(
    children: NDArray[np.int64], walls: NDArray[np.int64], item_children: int
) -> NDArray[np.int64]:
    """int64: where each item starts among stretches of work; no item goes through a wall."""
    offsets = np.concatenate([[0], np.cumsum(children)])
    ends = np.append(walls, len(children))
    starts, first = [], 0
    while first < len(children):
        starts.append(first)
        goal = offsets[first] + _item_size(int(offsets[-1] - offsets[first]), item_children)
        last = int(np.searchsorted(offsets, goal, side="right")) - 1
        wall = int(ends[np.searchsorted(ends, first, side="right")])
        first = min(max(last, first + 1), wall)
    return np.array(starts, np.int64)


def _item_size(left: int, item_children: int) -> int:
    """How much of the work that is left in a level the next item may take.

    A quarter: large items first, small ones last, so that no core waits long for another at
    the end of a level. The number of cores must not matter, or seeded releases would depend on it.
    """
    if left < 2 * FEWEST_CHILDREN:
        return min(left, item_children)
    return min(item_children, max(FEWEST_CHILDREN, left // 4))


def sort_by_area(
    order: NDArray[np.int64], area: NDArray[np.int32], n_areas: int
) -> NDArray[np.int64]:
    """An order of nodes sorted by an area of each, stably: once for each area, no comparisons."""
    return order if n_areas == 1 else order_by_area(order, area, n_areas)[0]


def order_by_area(
    order: NDArray[np.int64], area: NDArray[np.int32], n_areas: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The same, and int64[areas + 1]: slices of it with the nodes of each area."""
    out, offsets = np.empty_like(order), np.zeros(n_areas + 2, np.int64)
    counting_sort_kernel(order, area, offsets[1:], out)
    return out, offsets[:-1]


class Noisy(NamedTuple):
    """Noisy counts of the children of some parents, in buffers that the next item overwrites.

    Attributes:
        x: int64[draws], children of all parents, one parent after another.
        offsets: int64[parents + 1], slices of x; empty for a parent with an only child.
        seeds: uint64[parents], random words that break ties between equal counts.
        survivors: room for the children that are kept.
    """

    x: NDArray[np.int64]
    offsets: NDArray[np.int64]
    seeds: NDArray[np.uint64]
    survivors: Survivors

    @classmethod
    def of(cls, offsets: NDArray[np.int64]) -> "Noisy":
        """Buffers of this thread, used again for every item: fresh pages cost more than draws."""
        n_draws, n_parents = int(offsets[-1]), len(offsets) - 1
        room = n_draws + n_parents
        held: Noisy | None = getattr(_of_thread, "buffers", None)
        if held is None or len(held.x) < room:
            room = max(room, 2 * ITEM_CHILDREN)
            held = cls(
                np.empty(room, np.int64), offsets, np.empty(room, np.uint64), Survivors.of(room)
            )
            _of_thread.buffers = held
        survivors = held.survivors.for_vectors(n_parents)
        return cls(held.x[:n_draws], offsets, held.seeds[:n_parents], survivors)


_of_thread = threading.local()


@kernel
def counting_sort_kernel(
    order: NDArray[np.int64],
    area: NDArray[np.int32],
    counters: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """Sort an order of nodes by their area, stably.

    Args:
        order: int64[nodes], indices into `area`.
        area: int32[nodes].
        counters: int64[areas + 1], zeros; overwritten.
        out: int64[nodes], written.
    """
    for i in range(order.size):
        counters[area[i] + 1] += 1
    for i in range(1, counters.size):
        counters[i] += counters[i - 1]
    for i in range(order.size):
        at = area[order[i]]
        out[counters[at]] = order[i]
        counters[at] += 1


@kernel
def count_draws_kernel(
    parent: NDArray[np.int32], child_offsets: NDArray[np.int32], draw_offsets: NDArray[np.int64]
) -> None:
    """Count the draws of all parents before each, and of all.

    Args:
        parent: int32[parents], area of each on the axis that is refined.
        child_offsets: int32[areas + 1], first child of each area.
        draw_offsets: int64[parents + 1], written.
    """
    draw_offsets[0] = 0
    for i in range(parent.size):
        n_children = child_offsets[parent[i] + 1] - child_offsets[parent[i]]
        # An only child has its parent's count whatever the noise, so none is drawn.
        draw_offsets[i + 1] = draw_offsets[i] + (n_children if n_children > 1 else 0)


@kernel
def add_truth_kernel(
    x: NDArray[np.int64],
    offsets: NDArray[np.int64],
    key: NDArray[np.int64],
    truth: Any,
) -> None:
    """Add the true counts to the noise of the children, in place.

    Args:
        x: int64, children of all parents, one parent after another.
        offsets: int64[parents + 1], slices of x; empty for a parent with an only child.
        key: int64[parents], ascending.
        truth: key, offsets, ordinal and count, as in `Children`.
    """
    true_key, true_offsets, true_ordinal, true_count = truth
    if key.size == 0:
        return
    at = np.searchsorted(true_key, key[0])
    for parent in range(key.size):
        while at < true_key.size and true_key[at] < key[parent]:
            at += 1
        first = offsets[parent]
        if at < true_key.size and true_key[at] == key[parent] and offsets[parent + 1] > first:
            for child in range(true_offsets[at], true_offsets[at + 1]):
                x[first + true_ordinal[child]] += true_count[child]


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
