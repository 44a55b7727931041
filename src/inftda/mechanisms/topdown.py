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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inftda.compiled import kernel
from inftda.counts import Counts, LevelCounts
from inftda.mechanisms.base import Flows, Setting
from inftda.noise.sampler import Sampler
from inftda.optimize.segments import Optimizer, check_status, optimize_intopt
from inftda.privacy.plan import Plan, make_plan
from inftda.privacy.unit import PrivacyUnit
from inftda.tree import Tree

#: Draws in a block: large enough that random bits are made without the GIL and that the
#: cost of a block is its draws, small enough to stay in the second-level cache.
BLOCK_DRAWS = 1 << 17


@dataclass(frozen=True)
class Nodes:
    """Released nodes of one level, in tree order.

    Attributes:
        areas: int32 area numbers, one array per axis.
        value: int64 released counts, positive.
        truth: int64 place among the true nodes of the level, -1 where there is none.
            Confidential: it never leaves the mechanism.
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
        for block in self.divide(nodes, counts.levels[-1], setting):
            yield Flows(block.areas, block.value)

    def divide(self, nodes: Nodes, level: LevelCounts, setting: Setting) -> Iterator[Nodes]:
        """Children of released nodes at the next splitting level, in blocks."""
        charged = setting.spending.charge(level.level.index)
        division = _Division(
            nodes=nodes,
            truth=level,
            sampler=setting.make_sampler(charged.sigma2),
            mechanism=self,
            setting=setting,
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
    n_axes = len(blocks[0].areas)
    return Nodes(
        tuple(np.concatenate([block.areas[axis] for block in blocks]) for axis in range(n_axes)),
        np.concatenate([block.value for block in blocks]),
        np.concatenate([block.truth for block in blocks]),
    )


class _Division:
    """One level step: the parents, the truth below them, and the noise of the level."""

    def __init__(
        self,
        *,
        nodes: Nodes,
        truth: LevelCounts,
        sampler: Sampler,
        mechanism: TopDown,
        setting: Setting,
    ) -> None:
        self.nodes = nodes
        self.truth = truth
        self.sampler = sampler
        self.optimize = mechanism.optimize
        self.block_draws = mechanism.block_draws or BLOCK_DRAWS
        self.true_children = (truth.start, truth.ordinal, truth.count)
        self.source = setting.source
        self.axis = truth.level.axis
        self.child_start = truth.level.child_start
        parent = nodes.areas[self.axis]
        n_children = self.child_start[parent + 1] - self.child_start[parent]
        # An only child has its parent's count whatever the noise, so none is drawn.
        draws = np.where(n_children > 1, n_children, 0)
        self.draws_before = np.concatenate([[0], np.cumsum(draws, dtype=np.int64)])
        self.n_draws = int(self.draws_before[-1])
        self.largest = int(n_children.max(initial=1))

    def blocks(self) -> Iterator[tuple[int, int, int]]:
        """(number of the block, first parent, parent behind the last)."""
        n_parents = len(self.nodes.value)
        # Only children are no draws but do take room in the output: both bound a block.
        first = number = 0
        while first < n_parents:
            reach = self.draws_before[first] + self.block_draws
            last = int(np.searchsorted(self.draws_before, reach, side="right")) - 1
            last = min(max(last, first + 1), first + self.block_draws, n_parents)
            yield number, first, last
            first, number = last, number + 1
        if n_parents == 0:
            yield 0, 0, 0

    def divide_block(self, block: tuple[int, int, int]) -> tuple[Nodes, int]:
        """Children of the parents of one block, and the number of draws they took."""
        number, first, last = block
        draws = int(self.draws_before[last] - self.draws_before[first])
        room = draws + (last - first)
        scratch = _scratch(room)
        stream = self.source.stream(self.truth.level.index, number)
        noise = scratch.noise[:draws]
        self.sampler.fill(noise, stream)
        seeds = scratch.seeds[: last - first]
        stream.fill(seeds)
        start = self.draws_before[first : last + 1] - self.draws_before[first]
        truth = self.nodes.truth[first:last]
        add_truth_kernel(noise, start, truth, *self.true_children)
        value = self.nodes.value[first:last]
        check_status(self.optimize(noise, start, value, seeds))
        n_survivors = np.empty(last - first, np.int64)
        n = keep_positive_kernel(
            noise,
            start,
            self.child_start[self.nodes.areas[self.axis][first:last]],
            value,
            truth,
            *self.true_children[:2],
            scratch.area,
            scratch.value,
            scratch.truth,
            n_survivors,
        )
        areas = [np.repeat(axis[first:last], n_survivors) for axis in self.nodes.areas]
        areas[self.axis] = scratch.area[:n].copy()
        return Nodes(tuple(areas), scratch.value[:n].copy(), scratch.truth[:n].copy()), draws


class _Scratch:
    """Buffers of one thread, used again for every block: fresh pages cost more than draws."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.noise = np.empty(room, np.int64)
        self.seeds = np.empty(room, np.uint64)
        self.area = np.empty(room, np.int32)
        self.value = np.empty(room, np.int64)
        self.truth = np.empty(room, np.int64)


_of_thread = threading.local()


def _scratch(room: int) -> _Scratch:
    held: _Scratch | None = getattr(_of_thread, "scratch", None)
    if held is None or held.room < room:
        held = _of_thread.scratch = _Scratch(max(room, 2 * BLOCK_DRAWS))
    return held


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
    for parent in range(truth.size):
        place = truth[parent]
        if place >= 0 and start[parent + 1] > start[parent]:
            for child in range(true_start[place], true_start[place + 1]):
                x[start[parent] + true_ordinal[child]] += true_count[child]


@kernel
def keep_positive_kernel(  # noqa: C901, PLR0913, PLR0917 - one pass, plain arrays
    x: NDArray[np.int64],
    start: NDArray[np.int64],
    first_area: NDArray[np.int32],
    value: NDArray[np.int64],
    truth: NDArray[np.int64],
    true_start: NDArray[np.int64],
    true_ordinal: NDArray[np.int32],
    out_area: NDArray[np.int32],
    out_value: NDArray[np.int64],
    out_truth: NDArray[np.int64],
    n_survivors: NDArray[np.int64],
) -> int:
    """Children with a positive count, and where each stands among the true ones.

    Args:
        x: int64, optimised counts of the children.
        start: int64[parents + 1], slices of x; empty for a parent with an only child.
        first_area: int32[parents], area of the first child on the refined axis.
        value: int64[parents], released counts, which only children inherit.
        truth: int64[parents], place among the true parents or -1.
        true_start: int64[true parents + 1], slices of the next.
        true_ordinal: int32, ascending within a slice.
        out_area: int32, written: area of each surviving child on the refined axis.
        out_value: int64, written: its count.
        out_truth: int64, written: its place among the true children or -1.
        n_survivors: int64[parents], written.

    Returns:
        Number of surviving children.
    """
    n = np.uint64(0)
    one = np.uint64(1)
    for parent in range(np.uint64(truth.size)):
        place = truth[parent]
        child = end = 0
        if place >= 0:
            child, end = true_start[place], true_start[place + 1]
        before = n
        low, high = np.uint64(start[parent]), np.uint64(start[parent + one])
        if low == high:
            out_area[n] = first_area[parent]
            out_value[n] = value[parent]
            out_truth[n] = child if child < end else -1
            n += one
        i = low
        while i < high:
            # Most children are zero: look at eight at a time. None is negative.
            if i + np.uint64(8) <= high:
                any_of_eight = np.int64(0)
                for k in range(np.uint64(8)):
                    any_of_eight |= x[i + k]
                if any_of_eight == 0:
                    i += np.uint64(8)
                    continue
                stop = i + np.uint64(8)
            else:
                stop = high
            while i < stop:
                if x[i] > 0:
                    ordinal = np.int64(i - low)
                    while child < end and true_ordinal[child] < ordinal:
                        child += 1
                    out_area[n] = first_area[parent] + ordinal
                    out_value[n] = x[i]
                    out_truth[n] = child if child < end and true_ordinal[child] == ordinal else -1
                    n += one
                i += one
        n_survivors[parent] = n - before
    return int(n)
