"""Where truth meets noise, and nowhere else: what goes in is confidential, what comes out is not.

Noise is drawn first, at the scale that the account states, for every count that is asked for; then
the truth is added to it. Which counts are asked for follows from what was released before. What
cannot occur is 0, whatever was drawn.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from inftda.kernels import kernel
from inftda.mechanism.prices import Groups
from inftda.mechanism.step import Ints, Nodes, Step, possible_children
from inftda.noise.bits import Secret
from inftda.noise.law import Law
from inftda.tree import OffTree
from inftda.truth import Children


def measure_root(total: int, noise: Law, secret: Secret) -> Ints:
    """int64[1]: the noisy number of all trips."""
    noisy = np.empty(1, np.int64)
    noise.sampler().fill(noisy, secret.bits(0))
    add_totals(noisy, np.array([total]))
    return noisy


def measure(step: Step, parents: Nodes, truth: Children, secret: Secret) -> Ints:
    """Noisy counts of all children of some parents in group order.

    Args:
        step: the step.
        parents: the parents.
        truth: true children, of these parents at least.
        secret: what the noise follows from.
    """
    level, key, offsets = step.level, step.level.keys(parents.areas), step.offsets(parents)
    noisy = np.empty(int(offsets[-1]), np.int64)
    step.noise.sampler().fill_rows(noisy, secret.bits(level.index), key, offsets)
    add_truth_kernel(noisy, offsets, key, (truth.node, truth.count, level.ordinal_bits))
    if (possible := possible_children(level, parents)) is not None:
        noisy[~possible] = 0
    return noisy


def measure_totals(step: Step, margin: Ints, secret: Secret) -> Ints:
    """The one-way table of a step, noisy: all its cells, also below areas that were dropped.

    Args:
        step: a step that has such a table.
        margin: int64[finest areas], the true trips of every area on the refined axis.
        secret: what the noise follows from.
    """
    level = step.level
    if step.one_way is None:
        raise ValueError("the step measures no totals")
    table, noise = step.one_way
    sums = level.axes[level.axis].hierarchy.sum_up(margin, level.depths[level.axis])
    totals = np.empty(len(sums), np.int64)
    noise.sampler().fill(totals, secret.bits(level.index, *table.depths))
    add_totals(totals, sums)
    totals[~table.is_possible(table.areas_at(np.arange(len(totals))))] = 0
    return totals


def measure_table(
    step: Step, known: tuple[OffTree, Law], groups: Groups, truth: Children, secret: Secret
) -> Ints:
    """Noisy cells of a two-way table of a step, wherever some groups have a parent.

    Args:
        step: the step.
        known: the table, and the law of its noise.
        groups: whole groups.
        truth: true children of these groups, at least.
        secret: what the noise follows from.
    """
    table, noise = known
    level, rows = step.level, groups.rows(table)
    offsets = np.concatenate([[0], np.cumsum(groups.n_children[rows.group])])
    cells = np.empty(int(offsets[-1]), np.int64)
    address = (groups.area[rows.group].astype(np.int64) << 32) | rows.across
    bits = secret.bits(level.index, *table.depths)
    noise.sampler().fill_rows(cells, bits, address, offsets)
    shift, width = level.key_field(rows.axis)
    across = shift, (1 << width) - 1, rows.ancestor
    add_sums_kernel(
        cells, offsets, rows.of_cells, groups.area, level.key_field(level.axis)[0], across,
        (truth.node, truth.count, level.ordinal_bits),
    )  # fmt: skip
    if (possible := groups.possible(table, rows)) is not None:
        cells[~possible] = 0
    return cells


def add_totals(totals: Ints, sums: Ints) -> None:
    """Add true totals of areas to their noise, in place."""
    totals += sums


@kernel
def add_truth_kernel(x: Ints, offsets: Ints, key: Ints, truth: Any) -> None:
    """Add the true counts to the noise of the children, in place.

    Args:
        x: int64, noise of the children of all parents, one parent after another.
        offsets: int64[parents + 1], slices of x; empty for a parent with an only child.
        key: int64[parents], ascending.
        truth: number and count of each true node, as in `Children`, and bits of its index.
    """
    node, count, bits = truth
    if key.size == 0:
        return
    at = np.searchsorted(node, key[0] << bits)
    for parent in range(key.size):
        while at < node.size and node[at] >> bits < key[parent]:
            at += 1
        first, is_drawn = offsets[parent], offsets[parent + 1] > offsets[parent]
        while at < node.size and node[at] >> bits == key[parent]:
            if is_drawn:
                x[first + (node[at] & ((1 << bits) - 1))] += count[at]
            at += 1


@kernel
def add_sums_kernel(  # noqa: PLR0913, PLR0917 - kernels take plain arrays
    cells: Ints,
    row_offsets: Ints,
    row_of: Ints,
    area: NDArray[np.int32],
    shift: int,
    across: tuple[int, int, NDArray[np.int32]],
    truth: Any,
) -> None:
    """Add true counts to the noise of the cells they are summed up in, in place.

    Args:
        cells: int64, row by row.
        row_offsets: int64[rows or one more], slices of these.
        row_of: int64[groups, areas across], the row of each; -1 if it is not measured.
        area: int32[groups], the area that each refines.
        shift: where that area lies in the key of a parent; all below it are other areas.
        across: shift and mask of the area across in the key, and int32, the area of the table that
            holds each.
        truth: number and count of each true node, as in `Children`, and bits of its index.
    """
    across_shift, mask, ancestor = across
    node, count, bits = truth
    for group in range(area.size):
        refined = np.int64(area[group])
        at = np.searchsorted(node, refined << (shift + bits))
        while at < node.size and node[at] >> (shift + bits) == refined:
            row = row_of[group, ancestor[(node[at] >> (across_shift + bits)) & mask]]
            if row >= 0:
                cells[row_offsets[row] + (node[at] & ((1 << bits) - 1))] += count[at]
            at += 1
