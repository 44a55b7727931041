"""One level step: from released parents to their released children.

All children of a surviving parent get noise, also those that are truly zero
(`inftda.mechanism.measure`). The optimiser turns the noisy counts into non-negative integers that
sum to the parent's released count; zeros are dropped, the rest are the next parents. Nothing here
sees the truth.

Parents are handled in *groups*: all that share the area being refined. Groups in ascending order,
and the parents of a group by their other areas, is *group order*. Where cross tables are measured,
a group is divided as a whole (`inftda.mechanism.adjustment`).

The noise of a count is derived from its level, parent and index, or from its row of a cross table.
The released children follow from noisy counts, the plan and a public seed. So equal secrets and
seeds give equal children, however parents are distributed to threads or tasks, and anybody who has
the published noisy counts and the seed can repeat the division.
"""

import math
from collections.abc import Sequence

import numpy as np

from inftda.mechanism.adjustment import MeasuredCells, balance, bound_with_duals_kernel
from inftda.mechanism.batches import batches, group_offsets
from inftda.mechanism.data import Depths, MeasuredTable, Step
from inftda.mechanism.intopt import Candidates, Seed, Vectors, optimize
from inftda.mechanism.local_search import local_search
from inftda.tree import Cells, Ints
from inftda.tree.cross_tables import HARD, SOFT
from inftda.util.threads import ThreadPool


def hard_tables(step: Step, parents: Cells) -> list[Depths]:
    """Cross tables that sums have to agree with in a batch."""
    n_parents = np.diff(group_offsets(step.level, parents))
    return step.hard(int(n_parents.max(initial=0)))


def find_candidates(
    step: Step, total: Ints, measured: MeasuredTable, seed: Seed, *, is_hard: bool
) -> Candidates:
    """Find the children that may become positive, however noisy counts will be adjusted.

    Args:
        step: the step and its measurements.
        total: int64, released counts of some parents of a batch.
        measured: noisy counts of all their children, except only children.
        seed: decides between equal counts.
        is_hard: whether sums have to agree with some cross table in this batch.
    """
    rows = measured.rows
    limit = math.ceil(HARD.down * step.sigma) if step.cross else 0
    vectors = Vectors.of(measured.value, rows.offsets, total, rows.key, limit=limit)
    found = vectors.candidates(step.level.index, seed)
    if step.cross:
        value, room = optimize(found, ThreadPool(1)), (HARD if is_hard else SOFT).room
        bound_with_duals_kernel(found, value, int(step.sigma * room), vectors.bound)
        found = vectors.candidates(step.level.index, seed)
    return found


def divide(
    step: Step,
    parents: Cells,
    candidates: Candidates,
    tables: Sequence[MeasuredTable],
    pool: ThreadPool,
) -> Cells:
    """Divide the parents of a batch and return their released children in group order.

    Args:
        step: the step and its measurements.
        parents: all parents of the batch.
        candidates: candidates of all its parents.
        tables: for each cross table the measured rows that parents belong to.
        pool: threads to divide on; the result does not depend on their number.
    """
    level, sigma = step.level, step.sigma
    if tables:
        hard = hard_tables(step, parents)
        cells = MeasuredCells.of(parents, tables, step.effective_sigma, hard=hard)
        value = balance(candidates, cells, sigma=sigma, pool=pool)
        groups = group_offsets(level, parents)
        value = local_search(candidates, value, cells, groups, sigma=sigma, pool=pool)
    else:
        value = optimize(candidates, pool)
    child = np.flatnonzero(value)
    sizes = np.diff(candidates.offsets)
    parent = np.repeat(np.arange(len(sizes)), sizes)[child]
    areas = [numbers[parent] for numbers in parents.areas]
    areas[level.axis] = level.child_offsets[areas[level.axis]] + candidates.column[child]
    return Cells(tuple(areas), value[child])


def divide_again(
    step: Step, parents: Cells, measured: Sequence[MeasuredTable], seed: Seed
) -> Cells:
    """Repeat the division of a release at one level from its published measurements.

    Args:
        step: the step and its measurements.
        parents: released parents, in group order.
        measured: the level, then each cross table of the step: all rows that parents belong to.
        seed: the public seed of the release.
    """
    pool, children = ThreadPool(1), [Cells.root(len(parents.areas), 0)]
    for batch in batches(step, parents):
        some = parents.take(batch)
        noisy, *tables = (one.take(one.measurement.marginal.rows(some.areas)) for one in measured)
        is_hard = bool(hard_tables(step, some))
        found = find_candidates(step, some.value, noisy, seed, is_hard=is_hard)
        children.append(divide(step, some, found, tables, pool))
    return Cells.join(children)
