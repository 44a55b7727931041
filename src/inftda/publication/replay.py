"""The released table, followed from its measurements as far as anybody can follow it.

Which values were drawn depends on what was released before: on the tree all children of every
released parent (but no only child), off the tree all cells of every row that holds one, and
all areas of a one-way table. So a file of measurements is complete, and has no more than it
should, exactly if it has these and each once. What was made of them is known as well: the total,
the measured totals, and the children of each parent, which the optimiser makes of their noisy
counts. Random bits decide between equal counts only. Where tables off the tree steer how parents
are divided, what can be followed is which children could be released at all.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inftda.errors import ReleaseError
from inftda.inference.measured import Measurements
from inftda.lattice import SHORT
from inftda.mechanisms.prices import candidate_depth, count_candidates_kernel
from inftda.mechanisms.step import Drawn, group_order, sort_by_area
from inftda.optimize.segments import Survivors, optimize_intopt
from inftda.publication.inventory import DAMAGED, GET_AGAIN, MEASUREMENTS_FILE
from inftda.publication.measurements import PlannedMeasurement
from inftda.publication.tables import Flows
from inftda.tree import TreeLevel, differ

Areas = tuple[NDArray[np.int32], ...]
#: A count and what is released for it differ by no more than this many noise scales for each
#: level down to its own: largest noise (6), largest price (4), and both once more for its rivals.
_FAR = 20


def check_follows(
    released: Flows,
    measurements: Measurements,
    planned: Sequence[PlannedMeasurement],
) -> Iterator[str]:
    """Check that all was drawn for the released flows that must have been, and what follows.

    Args:
        released: the flows.
        measurements: of the same release.
        planned: tables that its plan measures.

    Yields:
        What was found right.

    Raises:
        ReleaseError: a value is missing or too many, or flows do not follow from the values.
    """
    n_divided = n_steered = 0
    far = 0.0
    tables = list(zip(planned, measurements.tables, strict=True))
    for on_tree in [known for known in planned if known.is_on_tree]:
        level = on_tree.level
        far += _FAR * math.sqrt(on_tree.sigma2)
        here = [(known, table) for known, table in tables if known.level is level]
        step = None if level.step is None else _Step.of(released, level)
        for known, table in here:
            _check_areas(table.areas, _root(level) if step is None else step.drawn(known), known)
        if step is not None:
            across = [known for known, _ in here if not known.is_on_tree]
            _check_children(step, measurements.level(level.index).value, on_tree, across, far)
            n_divided += not across
            n_steered += bool(across)
    yield "measurements are all values that were drawn for these flows, and no others"
    if n_divided:
        yield f"flows follow from the measurements at {_levels(n_divided)}, parent by parent"
    if n_steered:
        yield (
            f"at {_levels(n_steered)}, where totals across the tree steer, each flow is near "
            "its noisy count; how it was chosen is not checked there"
        )


def check_noisy_total(total: int, measurements: Measurements) -> None:
    """Compare the sum of the flows with the noisy total, if that was measured.

    Raises:
        ReleaseError: it is another one.
    """
    if 0 in measurements.levels and total != max(int(measurements.level(0).value[0]), 0):
        raise ReleaseError(
            f"the flows do not sum to the noisy total of {MEASUREMENTS_FILE}; {DAMAGED}"
        )


def _check_areas(found: Areas, expected: Areas, known: PlannedMeasurement) -> None:
    if not all(map(np.array_equal, found, expected)):
        raise ReleaseError(
            f"{MEASUREMENTS_FILE} must list every value of the table {known.name!r} that was drawn "
            f"for the released flows, once and in order, and no other; {DAMAGED}"
        )


def _check_children(
    step: "_Step",
    noisy: NDArray[np.int64],
    on_tree: PlannedMeasurement,
    across: Sequence[PlannedMeasurement],
    far: float,
) -> None:
    """Released children follow from their noisy counts, or can do so where others steered them."""
    if across:
        is_near = bool((abs(step.value - noisy[step.index]) <= far).all())
        is_right = is_near and step.is_among_candidates(noisy, _deepest(on_tree, across))
    else:
        is_right = step.is_intopt(noisy)
    if not is_right:
        raise ReleaseError(
            f"the released flows do not follow from {MEASUREMENTS_FILE} at the level "
            f"{step.level.name!r}; one of both was edited or damaged: {GET_AGAIN}"
        )


def _levels(n: int) -> str:
    return "one level" if n == 1 else f"{n} levels"


def _root(level: TreeLevel) -> Areas:
    return tuple(np.zeros(1, np.int32) for _ in level.axes)


def _deepest(on_tree: PlannedMeasurement, across: Sequence[PlannedMeasurement]) -> int:
    """How far below the least count that survives without prices others may survive, at most.

    How many parents a group had is not seen here, so every total of a short axis may be hard.
    """
    refined = on_tree.level.axes[on_tree.level.axis].hierarchy
    is_short = refined.n_areas(refined.depth) <= SHORT
    may_be_hard = is_short and any(table.is_one_way for table in across)
    return candidate_depth(math.sqrt(on_tree.sigma2), is_hard=may_be_hard)


@dataclass(frozen=True)
class _Step:
    """The step to a level, as far as it can be seen from the leaves.

    Attributes:
        level: the level.
        parents: int32[parents] for each axis, in group order.
        total: int64[parents], released counts.
        offsets: int64[parents + 1], slices of the noisy counts of their children; an empty one
            for an only child.
        parent: int64[children], the parent of each released child that was drawn.
        index: int64[children], of its noisy count.
        value: int64[children], its released count.
    """

    level: TreeLevel
    parents: Areas
    total: NDArray[np.int64]
    offsets: NDArray[np.int64]
    parent: NDArray[np.int64]
    index: NDArray[np.int64]
    value: NDArray[np.int64]

    @classmethod
    def of(cls, released: Flows, level: TreeLevel) -> "_Step":
        """Released leaves summed up to the children and parents of a level."""
        refined, depth = level.axes[level.axis].hierarchy, level.depths[level.axis]
        child = refined.ancestor(refined.depth, depth)[released.areas[level.axis]]
        above = [
            axis.hierarchy.ancestor(axis.hierarchy.depth, depth - (number == level.axis))[finest]
            for number, (axis, depth, finest) in enumerate(
                zip(level.axes, level.depths, released.areas, strict=True)
            )
        ]
        order = sort_by_area(np.arange(len(child)), child, refined.n_areas(depth))
        order = group_order(level, above, order)
        above, child, flow = [area[order] for area in above], child[order], released.flow[order]
        is_parent = differ(above)
        is_child = is_parent | differ([child])
        parents = tuple(area[is_parent] for area in above)
        first_child = level.child_offsets[parents[level.axis]]
        sizes = np.diff(level.child_offsets)[parents[level.axis]].astype(np.int64)
        offsets = np.concatenate([[0], np.cumsum(np.where(sizes > 1, sizes, 0))])
        parent = (np.cumsum(is_parent) - 1)[is_child]
        index = offsets[parent] + child[is_child] - first_child[parent]
        value, is_drawn = _sums(flow, is_child), sizes[parent] > 1
        return cls(
            level,
            parents,
            _sums(flow, is_parent),
            offsets,
            parent[is_drawn],
            index[is_drawn],
            value[is_drawn],
        )

    def drawn(self, known: PlannedMeasurement) -> Areas:
        """Areas of all values of a table that must have been drawn, in order."""
        rows = self.parents if known.is_on_tree else self._rows(known)
        sizes = np.diff(self.level.child_offsets)[rows[self.level.axis]]
        n = int(sizes[sizes > known.is_on_tree].sum())  # off the tree only children are drawn, too
        return Drawn.below(self.level, known.depths, rows, np.zeros(n, np.int64)).cells()

    def _rows(self, known: PlannedMeasurement) -> Areas:
        """Rows of a table off the tree: all of a one-way table, else those that hold a parent."""
        level = self.level
        if known.is_one_way:
            n = len(level.child_offsets) - 1
            rows = [np.zeros(n, np.int32) for _ in level.axes]
            rows[level.axis] = np.arange(n, dtype=np.int32)
            return tuple(rows)
        (axis,) = (axis for axis, depth in enumerate(known.depths) if depth and axis != level.axis)
        hierarchy, depth = level.axes[axis].hierarchy, known.depths[axis]
        across = hierarchy.ancestor(level.depths[axis], depth)[self.parents[axis]]
        n = hierarchy.n_areas(depth)
        found = np.unique(self.parents[level.axis].astype(np.int64) * n + across)
        rows = [np.zeros(len(found), np.int32) for _ in level.axes]
        rows[level.axis], rows[axis] = (found // n).astype(np.int32), (found % n).astype(np.int32)
        return tuple(rows)

    def is_intopt(self, x: NDArray[np.int64]) -> bool:
        """Whether released counts are what the optimiser makes of noisy ones.

        Of children with equal noisy counts any may have the larger released count.
        """
        again = self._optimized(x)
        if again is None:
            return False
        n = int(again.offsets[-1])
        parent = np.repeat(np.arange(len(self.total)), np.diff(again.offsets))
        is_drawn = np.diff(self.offsets)[parent] > 0
        parent = parent[is_drawn]
        index = self.offsets[parent] + again.index[:n][is_drawn]
        expected = _in_order(parent, x[index], again.value[:n][is_drawn])
        found = _in_order(self.parent, x[self.index], self.value)
        return all(map(np.array_equal, found, expected))

    def is_among_candidates(self, x: NDArray[np.int64], depth: int) -> bool:
        """Whether all released children have noisy counts that are high enough for that."""
        again = self._optimized(x)
        if again is None:
            return False
        sums, least, bound = (np.empty_like(self.total) for _ in range(3))
        count_candidates_kernel(
            x, self.offsets, again.index, again.offsets, depth, sums, least, bound,
            np.empty_like(self.offsets),
        )  # fmt: skip
        return bool((x[self.index] >= bound[self.parent]).all())

    def _optimized(self, x: NDArray[np.int64]) -> Survivors | None:
        """What the optimiser makes of noisy counts; None if they are such that it cannot."""
        n_parents = len(self.total)
        survivors = Survivors.of(len(x) + n_parents).for_vectors(n_parents)
        seeds = np.zeros(n_parents, np.uint64)
        status = optimize_intopt(x.copy(), self.offsets, self.total, seeds, survivors)
        return None if status else survivors


def _sums(flow: NDArray[np.int64], is_first: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Sums of stretches of flows."""
    return np.add.reduceat(flow, np.flatnonzero(is_first)) if len(flow) else flow


def _in_order(*columns: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Rows of some columns, sorted."""
    order = np.lexsort(columns[::-1])
    return [column[order] for column in columns]
