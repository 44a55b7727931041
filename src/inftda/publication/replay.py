"""The released table, made again from its measurements, as anybody can.

Which values were drawn depends on what was released before: on the tree all children of every
released parent (but no only child), off the tree all cells of every row that holds one, and
all areas of a one-way table. So a file of measurements is complete, and has no more than it
should, exactly if it has these and each once. What was made of them follows from them and from the
seed that the manifest states, level by level from the total to the leaves.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from inftda.errors import OptimizeError, ReleaseError
from inftda.inference.measured import Measurements
from inftda.mechanism.intopt import words_of
from inftda.mechanism.prices import Groups
from inftda.mechanism.step import Nodes, Noisy, Step, divide_again
from inftda.publication.manifest import DAMAGED, GET_AGAIN, MEASUREMENTS_FILE
from inftda.publication.measurements import PlannedTable
from inftda.publication.tables import Areas, Flows
from inftda.threads import Crew
from inftda.tree import OffTree, Tree, TreeLevel


def check_follows(
    released: Flows,
    measurements: Measurements,
    planned: Sequence[PlannedTable],
    tree: Tree,
    seed: str,
) -> Iterator[str]:
    """Divide again, and compare; yields what was found right.

    Raises:
        ReleaseError: a value is missing or too many, or flows do not follow from the values.
    """
    words, crew = words_of(bytes.fromhex(seed)), Crew()
    noisy = {table.depths: table for table in measurements.tables}
    sigma2 = {table.depths: table.sigma2 for table in planned}
    nodes = Nodes.root(len(tree.axes), released.total)
    for level in tree.levels:
        if level.depths not in sigma2:
            continue  # trivial, or a public total
        here = noisy[level.depths]
        if level.refined is None:
            _check_areas(here.areas, nodes.areas, level)
            if released.total != max(int(here.value[0]), 0):
                raise ReleaseError(
                    f"the flows do not sum to the noisy total of {MEASUREMENTS_FILE}; {DAMAGED}"
                )
            continue
        tables = [table for table in tree.off_tree_at(level) if table.depths in sigma2]
        totals = [noisy[table.depths].value for table in tables if table.across is None]
        step = Step(
            level,
            sigma2[level.depths],
            tuple((table, sigma2[table.depths]) for table in tables),
            totals[0] if totals else None,
        )
        parents = nodes.in_group_order(level, crew)
        every: list[TreeLevel | OffTree] = [level, *tables]
        for table in every:
            _check_areas(noisy[table.depths].areas, _cells(step, parents, table), table)
        two_way = {of.depths: noisy[of.depths].value for of in tables if of.across is not None}
        try:
            nodes = divide_again(step, parents, here.value, two_way, words)
        except OptimizeError:
            raise ReleaseError(
                f"{MEASUREMENTS_FILE} has values that no release can have, at the level "
                f"{level.name!r}; {DAMAGED}"
            ) from None
    yield "measurements are all values that were drawn for these flows, and no others"
    if not _is_same(nodes, released):
        raise ReleaseError(
            f"the released flows do not follow from {MEASUREMENTS_FILE} and the seed; one of them "
            f"was edited or damaged: {GET_AGAIN}"
        )
    n = tree.depth
    yield f"flows follow from the measurements and the seed, at {n} level{'' if n == 1 else 's'}"


def _cells(step: Step, parents: Nodes, table: TreeLevel | OffTree) -> Areas:
    """Areas of all values of a table that must have been drawn, in order."""
    level = step.level
    if isinstance(table, TreeLevel):
        rows = parents.areas
    elif table.across is not None:
        rows = Groups.of(level, parents).areas_of(table)
    else:
        refined = np.arange(level.n_parent_areas(level.axis), dtype=np.int32)
        rows = tuple(refined * (axis == level.axis) for axis in range(len(level.axes)))
    sizes = level.n_children[rows[level.axis]]
    n = int(
        sizes[sizes > isinstance(table, TreeLevel)].sum()
    )  # off it only children are drawn, too
    return Noisy.below(level, table.depths, rows, np.zeros(n, np.int64)).cells()


def _is_same(nodes: Nodes, released: Flows) -> bool:
    """Whether two sets of leaves are equal."""
    here, there = np.lexsort(nodes.areas), np.lexsort(released.areas)
    areas = zip(nodes.areas, released.areas, strict=True)
    return np.array_equal(nodes.value[here], released.flow[there]) and all(
        np.array_equal(one[here], other[there]) for one, other in areas
    )


def _check_areas(found: Areas, expected: Areas, table: TreeLevel | OffTree) -> None:
    if not all(map(np.array_equal, found, expected)):
        raise ReleaseError(
            f"{MEASUREMENTS_FILE} must list every value of the table {table.name!r} that was drawn "
            f"for the released flows, once and in order, and no other; {DAMAGED}"
        )
