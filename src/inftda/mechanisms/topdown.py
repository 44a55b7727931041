"""InfTDA: noise and integer optimisation, level by level from the root (paper, section 4).

For each surviving parent with released count c, all its children get noise, also those
that are truly zero; the optimiser turns the noisy vector into non-negative integers that
sum to c; zeros are dropped and the rest are the next parents. The work is the number of
children of surviving parents; parents are independent of one another, so they are handled
in blocks on all cores.

Privacy:
    Level l is the discrete Gaussian mechanism on all its nodes at the scale the plan
    states; nodes below a dropped parent, and only children, are not drawn because the
    release does not depend on them (post-processing). See docs/privacy-guarantee.md.
"""

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inftda.compiled import kernel
from inftda.counts import Counts, LevelCounts
from inftda.mechanisms.base import Flows, Setting
from inftda.noise.sampler import Sampler
from inftda.optimize.segments import Optimizer, Survivors, check_status, optimize_intopt
from inftda.privacy.plan import Plan, make_plan
from inftda.privacy.unit import PrivacyUnit
from inftda.tree import Tree

#: Draws in a block, at most: so many that handing it out and starting a stream of random bits
#: cost little beside them, so few that the buffers of a thread stay small. Fewer are no quicker.
BLOCK_DRAWS = 1 << 19

#: Draws in a block, at least, unless a level has fewer.
FEWEST_DRAWS: Final = 1 << 16


@dataclass(frozen=True)
class Nodes:
    """Released nodes of one level, in tree order.

    Attributes:
        areas: int32 area numbers, one array per axis.
        value: int64 released counts, positive.
        truth: int64 place among the true nodes of the level, -1 where there is none; empty
            at the leaves, below which there is nothing. Confidential: it never leaves the
            mechanism.
    """

    areas: tuple[NDArray[np.int32], ...]
    value: NDArray[np.int64]
    truth: NDArray[np.int64]


@dataclass(frozen=True)
class TopDown:
    """The top-down loop with one of the integer optimisers.

    Attributes:
        name: of the mechanism.
        objective: name of the optimiser.
        optimize: the optimiser, for many parents at once.
        block_draws: draws in a block; a slow optimiser wants few, to be interrupted in time.
    """

    name: str = "inftda"
    objective: str = "intopt"
    optimize: Optimizer = optimize_intopt
    block_draws: int | None = None

    @property
    def options(self) -> Mapping[str, Any]:
        """Which optimiser is used."""
        return {"objective": self.objective}

    def plan(self, tree: Tree, unit: PrivacyUnit, **budget: Any) -> Plan:
        """Every level that splits is measured, and the root where the unit needs it."""
        return make_plan(tree, unit, **budget)

    def run(self, counts: Counts, setting: Setting) -> Iterator[Flows]:
        """Released flows in tree order, the last level block by block."""
        nodes = release_root(counts, setting)
        yield from self.refine(nodes, counts, setting)
        setting.spending.finish()

    def refine(self, nodes: Nodes, counts: Counts, setting: Setting) -> Iterator[Flows]:
        """From released nodes of the level `counts` starts at to the leaves."""
        for level in counts.levels[:-1]:
            nodes = join(list(self.divide(nodes, level, setting)))
        if not counts.levels:
            yield Flows(nodes.areas, nodes.value)
            return
        for block in self.divide(nodes, counts.levels[-1], setting, are_leaves=True):
            yield Flows(block.areas, block.value)

    def divide(
        self, nodes: Nodes, level: LevelCounts, setting: Setting, *, are_leaves: bool = False
    ) -> Iterator[Nodes]:
        """Children of released nodes at the next splitting level, in blocks."""
        charged = setting.spending.charge(level.level.index)
        division = _Division(
            nodes=nodes,
            truth=level,
            sampler=setting.make_sampler(charged.sigma2),
            mechanism=self,
            setting=setting,
            are_leaves=are_leaves,
        )
        done, name = 0, level.level.name
        total = division.n_draws
        setting.progress(name, 0, total)
        for block, draws in setting.engine.map(division.divide_block, division.blocks()):
            done += draws
            setting.progress(name, done, total)
            yield block


def release_root(counts: Counts, setting: Setting) -> Nodes:
    """The root: public where the unit makes it so, otherwise noised and clamped at 0."""
    total = np.array([counts.total], np.int64)
    if setting.spending.is_planned(0):
        noise = np.empty(1, np.int64)
        sampler = setting.make_sampler(setting.spending.charge(0).sigma2)
        sampler.fill(noise, setting.source.stream(0, 0))
        total = np.maximum(total + noise, 0)
    has_truth = len(counts.root_count) > 0
    n = int(total[0] > 0)
    areas = tuple(np.zeros(n, np.int32) for _ in counts.tree.axes)
    return Nodes(areas, total[:n], np.full(n, 0 if has_truth else -1, np.int64))


def join(blocks: list[Nodes]) -> Nodes:
    """Blocks of nodes, one behind the other."""
    if len(blocks) == 1:
        return blocks[0]
    return Nodes(
        tuple(map(np.concatenate, zip(*(block.areas for block in blocks), strict=True))),
        np.concatenate([block.value for block in blocks]),
        np.concatenate([block.truth for block in blocks]),
    )


def block_size(left: int) -> int:
    """How many of the draws that are left in a level the next block may take.

    A quarter of them: large blocks first, small ones last, so that no core waits long for
    another at the end of a level. The number of cores must not matter, or seeded releases would
    depend on it.
    """
    if left < 2 * FEWEST_DRAWS:
        return left
    return min(BLOCK_DRAWS, max(FEWEST_DRAWS, left // 4))


class _Division:
    """One level step: the parents, the truth below them, and the noise of the level."""

    def __init__(  # noqa: PLR0913 - a step is all of these
        self,
        *,
        nodes: Nodes,
        truth: LevelCounts,
        sampler: Sampler,
        mechanism: TopDown,
        setting: Setting,
        are_leaves: bool,
    ) -> None:
        self.nodes = nodes
        self.truth = truth
        self.sampler = sampler
        self.optimize = mechanism.optimize
        self.true_children = (truth.start, truth.ordinal, truth.count)
        self.source = setting.source
        self.axis = truth.level.axis
        self.child_start = truth.level.child_start
        self.are_leaves = are_leaves
        self.draws_before = np.empty(len(nodes.value) + 1, np.int64)
        count_draws_kernel(nodes.areas[self.axis], self.child_start, self.draws_before)
        self.n_draws = int(self.draws_before[-1])
        self.block_draws = mechanism.block_draws or BLOCK_DRAWS

    def blocks(self) -> Iterator[tuple[int, int, int]]:
        """(number of the block, first parent, parent behind the last)."""
        n_parents = len(self.nodes.value)
        # Only children are no draws but do take room in the output: both bound a block.
        first = number = 0
        while first < n_parents:
            before = int(self.draws_before[first])
            reach = before + min(self.block_draws, block_size(self.n_draws - before))
            last = int(np.searchsorted(self.draws_before, reach, side="right")) - 1
            last = min(max(last, first + 1), first + self.block_draws, n_parents)
            yield number, first, last
            first, number = last, number + 1
        if n_parents == 0:
            yield 0, 0, 0

    def divide_block(self, block: tuple[int, int, int]) -> tuple[Nodes, int]:
        """Children of the parents of one block, and the number of draws they took."""
        number, first, last = block
        start = self.draws_before[first : last + 1] - self.draws_before[first]
        value, truth = self.nodes.value[first:last], self.nodes.truth[first:last]
        scratch = _scratch(int(start[-1]), last - first)
        stream = self.source.stream(self.truth.level.index, number)
        self.sampler.fill(scratch.x, stream)
        stream.fill(scratch.seeds)
        add_truth_kernel(scratch.x, start, truth, *self.true_children)
        check_status(self.optimize(scratch.x, start, value, scratch.seeds, scratch.survivors))
        return self._children(first, last, scratch.survivors), len(scratch.x)

    def _children(self, first: int, last: int, survivors: Survivors) -> Nodes:
        """Surviving children of the parents from `first` up to `last` as nodes."""
        index, count, offsets = survivors
        n = int(offsets[-1])
        parents = tuple(area[first:last] for area in self.nodes.areas)
        areas = tuple(np.empty(n, np.int32) for _ in parents)
        child_areas_kernel(parents, self.axis, self.child_start, offsets, index, areas)
        truth = np.empty(0 if self.are_leaves else n, np.int64)
        if not self.are_leaves:
            true_parents = self.nodes.truth[first:last]
            find_truth_kernel(true_parents, offsets, index, *self.true_children[:2], truth)
        return Nodes(areas, count[:n].copy(), truth)


class _Scratch(NamedTuple):
    """What a block is worked out in.

    Attributes:
        x: int64[draws], noise, then noisy counts.
        seeds: uint64[parents], to share alike among equal children.
        survivors: the children that are kept.
    """

    x: NDArray[np.int64]
    seeds: NDArray[np.uint64]
    survivors: Survivors


_of_thread = threading.local()


def _scratch(n_draws: int, n_parents: int) -> _Scratch:
    """Buffers of this thread, used again for every block: fresh pages cost more than draws."""
    held: _Scratch | None = getattr(_of_thread, "scratch", None)
    room = n_draws + n_parents
    if held is None or len(held.x) < room:
        room = max(room, 2 * BLOCK_DRAWS)
        held = _Scratch(np.empty(room, np.int64), np.empty(room, np.uint64), Survivors.of(room))
        _of_thread.scratch = held
    survivors = held.survivors.for_vectors(n_parents)
    return _Scratch(held.x[:n_draws], held.seeds[:n_parents], survivors)


@kernel
def count_draws_kernel(
    parent: NDArray[np.int32], child_start: NDArray[np.int32], draws_before: NDArray[np.int64]
) -> None:
    """Count the draws of all parents before each, and of all.

    Args:
        parent: int32[parents], area of each on the axis that is refined.
        child_start: int32[areas + 1], first child of each area.
        draws_before: int64[parents + 1], written.
    """
    draws_before[0] = 0
    for i in range(parent.size):
        n_children = child_start[parent[i] + 1] - child_start[parent[i]]
        # An only child has its parent's count whatever the noise, so none is drawn.
        draws_before[i + 1] = draws_before[i] + (n_children if n_children > 1 else 0)


@kernel
def add_truth_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    x: NDArray[np.int64],
    start: NDArray[np.int64],
    truth: NDArray[np.int64],
    true_start: NDArray[np.int64],
    true_ordinal: NDArray[np.int32],
    true_count: NDArray[np.int64],
) -> None:
    """Add the true counts to the noise of the children, in place.

    Args:
        x: int64, children of one parent behind those of the other.
        start: int64[parents + 1], slices of x; empty for a parent with an only child.
        truth: int64[parents], place among the true parents or -1.
        true_start: int64[true parents + 1], slices of the next two.
        true_ordinal: int32, place of each true child among all children of its parent.
        true_count: int64.
    """
    one = np.uint64(1)  # unsigned: signed indices are tested for counting from the end
    for parent in range(np.uint64(truth.size)):
        first = start[parent]
        if truth[parent] >= 0 and start[parent + one] > first:
            place = np.uint64(truth[parent])
            for child in range(np.uint64(true_start[place]), np.uint64(true_start[place + one])):
                x[np.uint64(first + true_ordinal[child])] += true_count[child]


@kernel
def child_areas_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    parents: tuple[NDArray[np.int32], ...],
    refined: int,
    child_start: NDArray[np.int32],
    offsets: NDArray[np.int64],
    index: NDArray[np.int32],
    out: tuple[NDArray[np.int32], ...],
) -> None:
    """Areas of surviving children: on one axis their own, on the others their parents'.

    Args:
        parents: int32[parents] for every axis, area of each parent.
        refined: the axis on which children differ.
        child_start: int32[areas + 1], first child of each area on that axis.
        offsets: int64[parents + 1], slices of the next.
        index: int32, index of each surviving child among all children of its parent.
        out: int32 for every axis, written.
    """
    for axis in range(len(parents)):
        areas, children = parents[axis], out[axis]
        for i in range(areas.size):
            first = child_start[areas[i]] if axis == refined else areas[i]
            for child in range(offsets[i], offsets[i + 1]):
                children[child] = first + index[child] if axis == refined else first


@kernel
def find_truth_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    truth: NDArray[np.int64],
    offsets: NDArray[np.int64],
    index: NDArray[np.int32],
    true_start: NDArray[np.int64],
    true_ordinal: NDArray[np.int32],
    out: NDArray[np.int64],
) -> None:
    """Where each surviving child stands among the true ones.

    Args:
        truth: int64[parents], place among the true parents or -1.
        offsets: int64[parents + 1], slices of the next.
        index: int32, index of each surviving child among all children of its parent.
        true_start: int64[true parents + 1], slices of the next.
        true_ordinal: int32, ascending within a slice.
        out: int64, written: place among the true children or -1.
    """
    for parent in range(truth.size):
        true_child = end = 0
        if truth[parent] >= 0:
            true_child, end = true_start[truth[parent]], true_start[truth[parent] + 1]
        for child in range(offsets[parent], offsets[parent + 1]):
            while true_child < end and true_ordinal[true_child] < index[child]:
                true_child += 1
            is_true = true_child < end and true_ordinal[true_child] == index[child]
            out[child] = true_child if is_true else -1
