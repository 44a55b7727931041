"""Add noise to true counts; no other module does. The input is confidential, the output is not.

Noise is drawn first, from the distribution in the account, for every measured count; then the true
count is added to it. The counts released before determine which counts are measured.
"""

from typing import Any

import numpy as np

from inftda.mechanism.data import MeasuredTable, Step
from inftda.noise.bits import Secret
from inftda.privacy.measurement import Measurement
from inftda.reading.truth import Children
from inftda.tree import CellRows, CrossTable, Ints
from inftda.tree.cells import differ
from inftda.util.kernels import kernel


def measure_root(root: Measurement, total: int, secret: Secret) -> MeasuredTable:
    """Measure the total of the table."""
    return measure_whole(root, np.array([total]), secret)


def measure_totals(step: Step, of_axis: Ints, secret: Secret) -> list[MeasuredTable]:
    """Measure the cross tables of a step that are measured as a whole: totals of areas.

    Args:
        step: the step.
        of_axis: int64[finest areas], the true total of every area on the refined axis.
        secret: the noise is a function of it.
    """
    level = step.level
    sums = level.axes[level.axis].hierarchy.sum_up(of_axis, level.depths[level.axis])
    return [measure_whole(one, sums, secret) for one in step.cross if one.marginal.is_whole]


def measure_whole(measurement: Measurement, sums: Ints, secret: Secret) -> MeasuredTable:
    """Measure all cells of a table, also below areas that were dropped.

    Args:
        measurement: of the root, or of totals of areas.
        sums: int64, the true count of each cell.
        secret: the noise is a function of it.
    """
    table = measurement.marginal
    noisy = np.empty(len(sums), np.int64)
    measurement.noise.fill(noisy, secret.bits(*table.label))
    add_totals(noisy, sums)
    return MeasuredTable(measurement, table.all_rows(), noisy)


def measure(
    measurement: Measurement, rows: CellRows, truth: Children, secret: Secret
) -> MeasuredTable:
    """Measure some rows of a level or of a cross table.

    Args:
        measurement: the level or table, with its noise.
        rows: rows that released parents belong to.
        truth: true children, of these parents at least.
        secret: the noise is a function of it.
    """
    table = measurement.marginal
    noisy = np.empty(int(rows.offsets[-1]), np.int64)
    measurement.noise.fill_rows(noisy, secret.bits(*table.label), rows.key, rows.offsets)
    if isinstance(table, CrossTable):
        _add_sums(noisy, table, rows, truth)
    else:
        bits = table.numbering.ordinal_bits
        first = np.searchsorted(truth.node, rows.key[0] << bits) if len(rows.key) else 0
        here = truth.node[first:], truth.count[first:], bits
        add_truth_kernel(noisy, rows.offsets, rows.key, here)
    return MeasuredTable(measurement, rows, noisy)


def add_totals(noisy: Ints, sums: Ints) -> None:
    """Add true sums to their noise, in place."""
    noisy += sums


def _add_sums(noisy: Ints, table: CrossTable, rows: CellRows, truth: Children) -> None:
    """Add true children to the noise of the cells of a cross table that contain them."""
    level, n = table.level, table.rows_per_group
    refined, fields, bits = rows.key >> 32, level.numbering.fields, level.numbering.ordinal_bits
    is_first = differ([refined])
    row_of = np.full(int(is_first.sum()) * n, -1)
    row_of[(np.cumsum(is_first) - 1) * n + (rows.key & 0xFFFFFFFF)] = np.arange(len(refined))
    others = tuple(
        (fields[axis].shift, (1 << fields[axis].bits) - 1, code)
        for axis, code in table.row_codes.items()
    )
    area, below = refined[is_first], fields[level.axis].shift + bits
    first, last = np.searchsorted(truth.node, np.stack([area, area + 1]) << below)
    here = truth.node, truth.count, bits
    add_sums_kernel(noisy, (rows.offsets, row_of.reshape(-1, n)), (first, last), others, here)


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
    at = 0
    for parent in range(key.size):
        while at < node.size and node[at] >> bits < key[parent]:
            at += 1
        first, is_drawn = offsets[parent], offsets[parent + 1] > offsets[parent]
        while at < node.size and node[at] >> bits == key[parent]:
            if is_drawn:
                x[first + (node[at] & ((1 << bits) - 1))] += count[at]
            at += 1


@kernel
def add_sums_kernel(
    cells: Ints, rows: tuple[Ints, Ints], slices: tuple[Ints, Ints], others: Any, truth: Any
) -> None:
    """Add true counts to the noise of the cells they are summed up in, in place.

    Args:
        cells: int64, row by row.
        rows: int64[rows + 1], slices of these; and int64[groups, rows of a group], the row by its
            number, -1 if it is not measured.
        slices: int64[groups] twice, first and last (exclusive) true node of each group.
        others: for each other axis of the table its shift and mask in the key, and int64[areas],
            what each area adds to the number of the row.
        truth: number and count of each true node, as in `Children`, and bits of its index.
    """
    node, count, bits = truth
    first, last = slices
    row_offsets, row_of = rows
    for group in range(first.size):
        for at in range(first[group], last[group]):
            number = 0
            for other_shift, mask, code in others:
                number += code[(node[at] >> (other_shift + bits)) & mask]
            row = row_of[group, number]
            if row >= 0:
                cells[row_offsets[row] + (node[at] & ((1 << bits) - 1))] += count[at]
