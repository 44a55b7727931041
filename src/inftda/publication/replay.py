"""The released table, made again from its measurements, as anybody can.

Which values were drawn depends on what was released before: on the tree all children of every
released parent (but no only child), off the tree all cells of every row that holds one, and
all areas of a one-way table. So a file of measurements is complete, and has no more than it
should, exactly if it has these and each once. What was made of them follows from them and from the
seed that the manifest states, level by level from the total to the leaves.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from inftda.errors import OptimizeError, ReleaseError
from inftda.inference.measured import Measurements
from inftda.mechanism.intopt import words_of
from inftda.mechanism.prices import Groups
from inftda.mechanism.step import Nodes, Noisy, Step, divide_again
from inftda.publication.manifest import DAMAGED, GET_AGAIN, MEASUREMENTS_FILE
from inftda.publication.measurements import PlannedMeasurement
from inftda.publication.tables import Flows
from inftda.threads import Crew
from inftda.tree import Tree

Areas = tuple[NDArray[np.int32], ...]


def check_follows(
    released: Flows,
    measurements: Measurements,
    planned: Sequence[PlannedMeasurement],
    tree: Tree,
    seed: str,
) -> Iterator[str]:
    """Divide again, and compare.

    Args:
        released: the flows.
        measurements: of the same release.
        planned: tables that its plan measures.
        tree: the public tree.
        seed: what decided ties, as the manifest states it.

    Yields:
        What was found right.

    Raises:
        ReleaseError: a value is missing or too many, or flows do not follow from the values.
    """
    words, crew = words_of(bytes.fromhex(seed)), Crew()
    tables = list(zip(planned, measurements.tables, strict=True))
    n_levels = 0
    nodes = Nodes.root(len(tree.axes), released.total)
    for known, measured in tables:
        if not known.is_on_tree:
            continue
        level = known.level
        if level.refined is None:
            _check_areas(measured.areas, tuple(np.zeros(1, np.int32) for _ in level.axes), known)
            if released.total != max(int(measured.value[0]), 0):
                raise ReleaseError(
                    f"the flows do not sum to the noisy total of {MEASUREMENTS_FILE}; {DAMAGED}"
                )
            continue
        off_tree = {one.depths: one for one in tree.off_tree_at(level)}
        here = [(one, noisy) for one, noisy in tables if one.level is level and one is not known]
        step = Step(
            level,
            known.sigma2,
            tuple((off_tree[one.depths], one.sigma2) for one, _ in here),
            next((noisy.value for one, noisy in here if one.is_one_way), None),
        )
        parents = nodes.in_group_order(level, crew)
        _check_areas(measured.areas, _cells(step, parents.areas, known), known)
        for one, noisy in here:
            if one.is_one_way:
                n = level.axes[level.axis].hierarchy.n_areas(level.depths[level.axis])
                cells = [np.zeros(n, np.int32) for _ in level.axes]
                cells[level.axis] = np.arange(n, dtype=np.int32)
                _check_areas(noisy.areas, tuple(cells), one)
            else:
                rows = Groups.of(level, parents).areas_of(off_tree[one.depths])
                _check_areas(noisy.areas, _cells(step, rows, one), one)
        two_way = {one.depths: noisy.value for one, noisy in here if not one.is_one_way}
        try:
            nodes = divide_again(step, parents, measured.value, two_way, words)
        except OptimizeError:
            raise ReleaseError(
                f"{MEASUREMENTS_FILE} has values that no release can have, at the level "
                f"{level.name!r}; {DAMAGED}"
            ) from None
        n_levels += 1
    yield "measurements are all values that were drawn for these flows, and no others"
    if not _is_same(nodes, released):
        raise ReleaseError(
            f"the released flows do not follow from {MEASUREMENTS_FILE} and the seed; one of them "
            f"was edited or damaged: {GET_AGAIN}"
        )
    yield f"flows follow from the measurements and the seed, at {_levels(n_levels)}"


def _cells(step: Step, rows: Areas, known: PlannedMeasurement) -> Areas:
    """Areas of all values of a table that must have been drawn, in order, given its rows."""
    sizes = np.diff(step.level.child_offsets)[rows[step.level.axis]]
    n = int(sizes[sizes > known.is_on_tree].sum())  # off the tree only children are drawn, too
    return Noisy.below(step.level, known.depths, rows, np.zeros(n, np.int64)).cells()


def _is_same(nodes: Nodes, released: Flows) -> bool:
    """Whether two sets of leaves are equal."""
    here, there = np.lexsort(nodes.areas), np.lexsort(released.areas)
    areas = zip(nodes.areas, released.areas, strict=True)
    return np.array_equal(nodes.value[here], released.flow[there]) and all(
        np.array_equal(one[here], other[there]) for one, other in areas
    )


def _check_areas(found: Areas, expected: Areas, known: PlannedMeasurement) -> None:
    if not all(map(np.array_equal, found, expected)):
        raise ReleaseError(
            f"{MEASUREMENTS_FILE} must list every value of the table {known.name!r} that was drawn "
            f"for the released flows, once and in order, and no other; {DAMAGED}"
        )


def _levels(n: int) -> str:
    return "one level" if n == 1 else f"{n} levels"
