"""What runs on executors: batches of Arrow rows in, batches of Arrow rows out.

A task may run more than once; every run gives the same rows (see `keys`). Nothing here prints
or logs, because the executors' logs are not part of the release.
"""

from collections.abc import Iterable, Iterator
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import TaskContext

from inftda.counts import Counts
from inftda.engines.spark.frontier import Frontier
from inftda.engines.spark.matching import Areas, Ascent, Matcher
from inftda.engines.spark.shipment import Shipment
from inftda.errors import ReleaseError
from inftda.mechanisms.base import Flows
from inftda.mechanisms.topdown import Nodes, TopDown
from inftda.publication.query import FLOW
from inftda.tree import Tree

#: Rows of a batch that goes back to Spark, at least, unless there are no more.
BATCH_ROWS = 1 << 16

Batches = Iterable[pa.RecordBatch]
Made = Iterator[pa.RecordBatch]


def climb(within: Matcher | None, ascent: Ascent, batches: Batches) -> Made:
    """From leaves to the nodes of a level that they lie below; counts stay as they are.

    Args:
        within: only leaves below these nodes are kept; None keeps all.
        ascent: to the level.
        batches: area numbers on each axis, and `n`.
    """
    for batch in batches:
        *areas, n = (column.to_numpy(zero_copy_only=False) for column in batch.columns)
        leaves: Areas = tuple(areas)
        if within is not None:
            is_inside = within.find_leaves(leaves) >= 0
            leaves, n = tuple(numbers[is_inside] for numbers in leaves), n[is_inside]
        yield pa.RecordBatch.from_arrays(
            [*map(pa.array, ascent(leaves)), pa.array(n)], names=batch.schema.names
        )


def route(frontier: Frontier, keys: NDArray[np.int64], batches: Batches) -> Made:
    """Leaves with the key of their group and the place of their subtree; others are dropped.

    Args:
        frontier: the released subtrees.
        keys: int64[groups], what the rows of each group carry to get to their partition.
        batches: area numbers on each axis, and `n`.
    """
    for batch in batches:
        *areas, n = (column.to_numpy(zero_copy_only=False) for column in batch.columns)
        node = frontier.find(tuple(areas))
        survives = node >= 0
        node = node[survives]
        columns = [keys[frontier.group_of(node)], node.astype(np.int32)]
        columns += [numbers[survives] for numbers in (*areas, n)]
        names = ["key", "node", *batch.schema.names]
        yield pa.RecordBatch.from_arrays([pa.array(column) for column in columns], names=names)


def refine(shipment: Shipment, frontier: Frontier, batches: Batches) -> Made:
    """From released subtrees and the true leaves in them to released leaves.

    Args:
        shipment: what to draw with.
        frontier: the released subtrees.
        batches: what `route` gives, and for every group a row with its first subtree and no
            trips, so that subtrees in which nobody travels are refined as well.
    """
    columns = _gather(batches)
    if not columns:
        return
    _, node, *areas, n = columns
    group = frontier.group_of(node)
    for number in np.unique(group):
        here = (group == number) & (n > 0)
        leaves = tuple(numbers[here] for numbers in areas)
        flows = _refine_group(shipment, frontier, int(number), node[here], leaves, n[here])
        yield from encode(shipment.tree, flows)


def _refine_group(  # noqa: PLR0913, PLR0917 - a group is its number and its rows
    shipment: Shipment,
    frontier: Frontier,
    group: int,
    node: NDArray[np.int64],
    leaves: Areas,
    n: NDArray[np.int64],
) -> Iterator[Flows]:
    """Released leaves of one group; subtrees that stand at the same level go together."""
    mechanism = cast("TopDown", shipment.mechanism)
    members = np.arange(*frontier.group_start[group : group + 2])
    for top in np.unique(frontier.level[members]):
        places = members[frontier.level[members] == top]
        here = frontier.level[node] == top
        counts = Counts.from_leaves(
            shipment.tree, [numbers[here] for numbers in leaves], n[here], top=int(top)
        )
        # Both are in tree order, so the true roots are the subtrees that have leaves, in order.
        with_truth = np.unique(node[here])
        if len(with_truth) != len(counts.root_count):
            raise ReleaseError("rows of the table came to the wrong subtree; please report it")
        truth = np.full(len(places), -1, np.int64)
        truth[np.searchsorted(places, with_truth)] = np.arange(len(with_truth))
        areas = tuple(numbers[places] for numbers in frontier.areas)
        setting = shipment.setting(group, int(top), top=int(top), threads=_threads())
        yield from mechanism.refine(Nodes(areas, frontier.value[places], truth), counts, setting)
        setting.spending.finish()


def draw_leaves(shipment: Shipment, batches: Batches) -> Made:
    """Released leaves by a mechanism that takes every true leaf on its own.

    Args:
        shipment: what to draw with.
        batches: area numbers on each axis, and `n`; each leaf is in one partition.
    """
    columns = _gather(batches)
    if not columns:
        return
    *areas, n = columns
    counts = Counts.from_leaves(shipment.tree, areas, n)
    setting = shipment.setting(_partition(), top=-1, threads=_threads())
    yield from encode(shipment.tree, shipment.mechanism.run(counts, setting))


def encode(tree: Tree, flows: Iterable[Flows]) -> Made:
    """Released leaves with codes, in batches of some size."""
    waiting: list[Flows] = []
    n_waiting = 0
    for block in flows:
        waiting.append(block)
        n_waiting += len(block.value)
        if n_waiting >= BATCH_ROWS:
            yield _encode(tree, waiting)
            waiting, n_waiting = [], 0
    if n_waiting:
        yield _encode(tree, waiting)


def _encode(tree: Tree, blocks: list[Flows]) -> pa.RecordBatch:
    columns = []
    for number, axis in enumerate(tree.axes):
        areas = np.concatenate([block.areas[number] for block in blocks])
        columns.append(axis.hierarchy.codes(axis.hierarchy.depth).take(pa.array(areas)))
    columns.append(pa.array(np.concatenate([block.value for block in blocks])))
    return pa.RecordBatch.from_arrays(columns, names=[*(a.name for a in tree.axes), FLOW])


def _gather(batches: Batches) -> list[NDArray[Any]]:
    """All rows of the partition, one array per column; no columns if there are no batches."""
    held = list(batches)
    return [
        np.concatenate([batch.column(i).to_numpy(zero_copy_only=False) for batch in held])
        for i in range(held[0].num_columns if held else 0)
    ]


def _threads() -> int:
    """Cores that Spark gives this task."""
    context = TaskContext.get()
    return 1 if context is None else context.cpus()


def _partition() -> int:
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()
