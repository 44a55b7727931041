"""One level step: from released parents to their released children.

All children of a surviving parent get noise, also those that are truly zero
(`inftda.mechanism.measure`). The optimiser turns the noisy counts into non-negative integers that
sum to the parent's released count; zeros are dropped, the rest are the next parents. Nothing here
sees the truth.

Parents are handled in *groups*: all that share the area being refined. Groups in ascending order,
and the parents of a group by their other areas, is *group order*. Where tables off the tree are
measured, a group is divided as a whole (`inftda.mechanism.prices`).

Noise belongs to the parent that it is drawn for, or to the row of a table. What is made of noisy
counts follows from them, from the plan and from a public seed. So equal secrets and seeds give
equal children, however parents are dealt out to threads or tasks; and with the noisy counts and the
seed, which may be published, anybody can divide again.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inftda.kernels import kernel
from inftda.mechanism.intopt import Candidates, Seed, Vectors, optimize_kernel
from inftda.mechanism.moves import settle
from inftda.mechanism.prices import (
    Groups,
    MeasuredCells,
    balance,
    bound_with_prices_kernel,
    keep_positive_kernel,
)
from inftda.noise.law import Law
from inftda.threads import Crew
from inftda.tree import HARD_REACH, OffTree, TreeLevel
from inftda.truth import sort_nodes

#: Children that are divided at a time, at most, unless a parent has more: enough that handing them
#: out costs little, few enough that the buffers of a thread stay small.
PART_CHILDREN: Final = 1 << 19

Areas = tuple[NDArray[np.int32], ...]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Nodes:
    """Released nodes of one level.

    Attributes:
        areas: int32 area numbers, one array per axis.
        value: int64 released counts, positive.
    """

    areas: Areas
    value: Ints

    @classmethod
    def root(cls, n_axes: int, value: int) -> "Nodes":
        """The root; nothing at all if its released count is 0."""
        n = int(value > 0)
        return cls(tuple(np.zeros(n, np.int32) for _ in range(n_axes)), np.full(n, value, np.int64))

    def take(self, index: slice) -> "Nodes":
        """Some of the nodes."""
        return Nodes(tuple(numbers[index] for numbers in self.areas), self.value[index])

    def in_group_order(self, level: TreeLevel, crew: Crew) -> "Nodes":
        """The same as parents of a level, in group order."""
        codes = level.parent_codes()
        key, value = sort_nodes(codes, self.areas, self.value, level.key_bits, crew)
        return Nodes(level.areas_of(key), value)

    @classmethod
    def join(cls, parts: Sequence["Nodes"]) -> "Nodes":
        """Nodes of several parts, one after the other."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            tuple(map(np.concatenate, zip(*(part.areas for part in parts), strict=True))),
            np.concatenate([part.value for part in parts]),
        )


class Noisy(NamedTuple):
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
    areas: Areas
    sizes: Ints
    value: Ints

    @classmethod
    def below(cls, level: TreeLevel, depths: tuple[int, ...], areas: Areas, value: Ints) -> "Noisy":
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

    def cells(self) -> Areas:
        """int32[counts] for each axis: the areas of every single count."""
        repeated = [np.repeat(numbers, self.sizes) for numbers in self.areas]
        start = np.repeat(np.cumsum(self.sizes) - self.sizes, self.sizes)
        repeated[self.refined] += (np.arange(len(self.value)) - start).astype(np.int32)
        return tuple(repeated)


@dataclass(frozen=True)
class Step:
    """What is measured to get from parents to the children of a level: all of it public.

    Attributes:
        level: the level of the children.
        noise: law of their noise.
        tables: tables off the tree that are measured beside them, and the law of each.
        totals: int64[areas], the one-way table among these as it was measured, for all areas that
            the refined axis has at the level; None if there is no such table.
    """

    level: TreeLevel
    noise: Law
    tables: tuple[tuple[OffTree, Law], ...] = ()
    totals: Ints | None = None

    @property
    def sigma(self) -> float:
        """Noise scale of the children."""
        return self.noise.sigma

    @property
    def one_way(self) -> tuple[OffTree, Law] | None:
        """The table that gives the totals of areas, and its noise, if there is one."""
        return next((known for known in self.tables if known[0].across is None), None)

    @property
    def two_way(self) -> tuple[tuple[OffTree, Law], ...]:
        """All other tables off the tree, and the noise of each."""
        return tuple(known for known in self.tables if known[0].across is not None)

    @property
    def doubt(self) -> float:
        """Noise scale of the children as tables off the tree are weighed against it.

        Laplace noise has more of its variance in few large draws, which a sum cannot tell from
        counts: sums of its children are trusted half as much as their variance says.
        """
        return self.sigma * (math.sqrt(2) if self.noise.is_laplace else 1)

    @property
    def sigmas(self) -> list[tuple[OffTree, float]]:
        """All tables off the tree, and the noise scale of each."""
        return [(table, noise.sigma) for table, noise in self.tables]

    def noisy_totals(self) -> Noisy:
        """The one-way table as it was measured: of all areas, also dropped ones."""
        if self.one_way is None or self.totals is None:
            raise ValueError("no totals were measured")
        areas = [np.zeros(len(self.level.child_offsets) - 1, np.int32) for _ in self.level.axes]
        areas[self.level.axis] = np.arange(len(self.level.child_offsets) - 1, dtype=np.int32)
        return Noisy.below(self.level, self.one_way[0].depths, tuple(areas), self.totals)

    @cached_property
    def hard_from(self) -> float:
        """Sums have to agree with totals of areas in groups with so many parents."""
        if self.one_way is None:
            return math.inf
        return self.one_way[0].hard_from((self.sigma / self.one_way[1].sigma) ** 2)

    def is_hard(self, groups: Groups) -> bool:
        """Whether they have to in these groups, which are one batch."""
        return bool((groups.n_parents >= self.hard_from).any())

    def n_children(self, parents: Nodes) -> Ints:
        """int64: children of each parent."""
        return self.level.n_children[parents.areas[self.level.axis]]

    def offsets(self, parents: Nodes) -> Ints:
        """int64[parents + 1]: slices of what is drawn for them.

        An only child has its parent's count whatever the noise, so none is drawn.
        """
        sizes = self.n_children(parents)
        offsets = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(np.where(sizes > 1, sizes, 0), out=offsets[1:])
        return offsets


def possible_children(level: TreeLevel, parents: Nodes) -> NDArray[np.bool_] | None:
    """bool: which of the children that counts are drawn for can occur; None if all can."""
    if not level.is_restricted:
        return None
    n = level.n_children[parents.areas[level.axis]]
    drawn = np.zeros(int(n[n > 1].sum()), np.int64)
    return level.is_possible(Noisy.below(level, level.depths, parents.areas, drawn).cells())


def find_candidates(
    step: Step, parents: Nodes, noisy: Ints, seed: Seed, *, is_hard: bool
) -> Candidates:
    """Children that may become positive, whatever their prices will be.

    Args:
        step: what was measured.
        parents: some parents of a batch, in group order.
        noisy: int64, noisy counts of all their children, but for only children.
        seed: decides between equal counts.
        is_hard: see `Step.is_hard`.
    """
    reach = math.ceil(HARD_REACH * step.sigma) if step.tables else 0
    key, offsets = step.level.keys(parents.areas), step.offsets(parents)
    possible = possible_children(step.level, parents)
    if possible is not None:
        ordinal = (np.arange(len(noisy)) - np.repeat(offsets[:-1], np.diff(offsets)))[possible]
        noisy, offsets = noisy[possible], np.append(0, np.cumsum(possible))[offsets]
    vectors = Vectors.of(noisy, offsets, parents.value, key, reach=reach)
    found = vectors.candidates(step.level.index, seed)
    optimize_kernel(found)
    if step.tables:
        # The price of a hard total goes further down, which makes room for lower counts.
        depth = int(step.sigma * (3 if is_hard else 1))
        bound_with_prices_kernel(found, depth, vectors.bound)
        found = vectors.candidates(step.level.index, seed)
    if possible is not None:  # its column is that among all children
        parent = np.repeat(np.arange(len(key)), np.diff(found.offsets))
        is_drawn = np.diff(offsets)[parent] > 0
        found.column[is_drawn] = ordinal[(offsets[parent] + found.column)[is_drawn]]
    return found


def divide(
    step: Step,
    groups: Groups,
    candidates: Candidates,
    tables: Mapping[tuple[int, ...], Ints],
    crew: Crew,
) -> Nodes:
    """Released children of the parents of a batch, in group order.

    Args:
        step: what was measured.
        groups: the batch.
        candidates: of all its parents.
        tables: depths of each two-way table of the step to its noisy cells, row by row.
        crew: threads to divide on; the result does not depend on how many.
    """
    if step.tables:
        cells = MeasuredCells.of(
            groups, step.sigmas, step.doubt, step.totals, tables, is_hard=step.is_hard(groups)
        )
        balance(candidates, cells, reach=step.sigma, crew=crew)
        settle(candidates, cells, groups.offsets, reach=step.sigma, crew=crew)
    offsets = np.empty_like(candidates.offsets)
    keep_positive_kernel(candidates, offsets)
    n, level, parents = int(offsets[-1]), step.level, groups.parents
    areas = tuple(np.empty(n, np.int32) for _ in parents.areas)
    child_areas_kernel(
        parents.areas, level.axis, level.child_offsets, offsets, candidates.column, areas
    )
    return Nodes(areas, candidates.value[:n].copy())


def divide_again(
    step: Step, parents: Nodes, noisy: Ints, tables: Mapping[tuple[int, ...], Ints], seed: Seed
) -> Nodes:
    """What a release made of its measurements at one level: anybody can do it again.

    Args:
        step: what was measured, with its totals.
        parents: released parents, in group order.
        noisy: int64, noisy counts of all their children, but for only children.
        tables: depths of each two-way table of the step to its noisy cells, row by row.
        seed: of the release.
    """
    offsets, crew = step.offsets(parents), Crew(1)
    done, children = dict.fromkeys(tables, 0), [Nodes.root(len(parents.areas), 0)]
    for batch in batches(step, parents):
        groups, cells = Groups.of(step.level, parents.take(batch)), {}
        for table, _ in step.two_way:
            first = done[table.depths]
            done[table.depths] += int(groups.n_children[groups.rows(table).group].sum())
            cells[table.depths] = tables[table.depths][first : done[table.depths]]
        counts = noisy[offsets[batch.start] : offsets[batch.stop]]
        is_hard = step.is_hard(groups)
        found = find_candidates(step, groups.parents, counts, seed, is_hard=is_hard)
        children.append(divide(step, groups, found, cells, crew))
    return Nodes.join(children)


def batches(step: Step, parents: Nodes) -> list[slice]:
    """Parents in group order in batches that can be divided one by one; how does not matter.

    Where tables off the tree are measured, a batch is whole groups, in all or none of which sums
    have to agree with totals.
    """
    if not step.tables:
        return parts_of(step, parents)
    n_parents = Groups.of(step.level, parents).n_parents
    ends, is_hard = np.cumsum(n_parents), n_parents >= step.hard_from
    walls = [*ends[:-1][is_hard[1:] != is_hard[:-1]].tolist(), len(parents.value)]
    found, first = [], 0
    for wall in walls:
        some = parents.take(slice(first, wall))
        inside = ends[(ends > first) & (ends <= wall)] - first
        found += [
            slice(part.start + first, part.stop + first) for part in parts_of(step, some, inside)
        ]
        first = wall
    return found


def small_parts(step: Step, batch: Nodes) -> list[slice]:
    """Parents of a batch in parts with few enough children to be measured at a time."""
    is_large = int(step.n_children(batch).sum()) > PART_CHILDREN
    return parts_of(step, batch) if is_large else [slice(0, len(batch.value))]


def parts_of(step: Step, parents: Nodes, ends: Ints | None = None) -> list[slice]:
    """Parents in parts of about equal work.

    A part has a quarter of what is left, within limits: large parts first, small ones last, so
    that no core waits long for another.

    Args:
        step: the step.
        parents: in group order.
        ends: int64, ascending, where a part may end; anywhere by default.
    """
    n = len(parents.value)
    ends = np.arange(1, n + 1) if ends is None else ends
    done = np.zeros(n + 1, np.int64)
    np.cumsum(step.n_children(parents), out=done[1:])
    work, parts, first, at = done[ends], [], 0, 0
    while first < n:
        left = int(done[-1] - done[first])
        goal = int(done[first]) + min(PART_CHILDREN, max(PART_CHILDREN // 8, left // 4))
        # The last end that is not beyond the goal, or the next one.
        at = max(at, int(np.searchsorted(work, goal, side="right")) - 1)
        parts.append(slice(first, int(ends[at])))
        first, at = int(ends[at]), at + 1
    return parts


@kernel
def child_areas_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    parents: Areas,
    refined: int,
    child_offsets: NDArray[np.int32],
    offsets: Ints,
    index: NDArray[np.int32],
    out: Areas,
) -> None:
    """Write areas of some children: on the refined axis their own, on others their parents'.

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
        for i in range(areas.size):
            for child in range(offsets[i], offsets[i + 1]):
                if axis == refined:
                    children[child] = child_offsets[areas[i]] + index[child]
                else:
                    children[child] = areas[i]
