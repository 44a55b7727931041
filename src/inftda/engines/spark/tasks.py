"""What runs on executors: batches of Arrow rows in, batches of Arrow rows out.

A task may run more than once; every run gives the same rows, because rows are sorted before
they are used and random bits follow from a secret (see `inftda.noise.entropy.KeyedSource`).
Nothing here prints or logs, because the executors' logs are not part of the release.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark import TaskContext

from inftda import __version__
from inftda.engines.local import Kept
from inftda.engines.spark.packing import TASK, Batches, Made
from inftda.errors import ReleaseError
from inftda.mechanisms.across import AcrossStep
from inftda.mechanisms.base import Keeper
from inftda.mechanisms.step import Divided, LevelStep, Nodes
from inftda.threads import Crew, map_in_order
from inftda.tree import TreeLevel
from inftda.truth import Children

Areas = tuple[NDArray[np.int32], ...]
#: Columns of rows on their way to a task, besides the areas and `TASK`: whether the row is a
#: released parent (its count is released) or a true child (its count is true).
IS_PARENT, COUNT = "is_parent", "n"


class Ascent:
    """From leaves to the nodes of one level that they lie below."""

    def __init__(self, level: TreeLevel) -> None:
        depths = [axis.hierarchy.depth for axis in level.axes]
        self.ends_at_leaves = list(level.depths) == depths
        self._tables = [
            axis.hierarchy.ancestor(axis.hierarchy.depth, depth)
            for axis, depth in zip(level.axes, level.depths, strict=True)
        ]

    def __call__(self, leaves: Areas) -> Areas:
        """Area numbers at the level, from int32 numbers of finest areas, one array per axis."""
        return tuple(table[numbers] for table, numbers in zip(self._tables, leaves, strict=True))


def climb(ascent: Ascent, batches: Batches) -> Made:
    """From leaves to the nodes of a level that they lie below, counts summed up in each batch.

    Args:
        ascent: to the level.
        batches: area numbers on each axis, and the count.
    """
    for batch in batches:
        areas, n = _climbed(ascent, batch)
        columns = [pa.array(column) for column in (*areas, n)]
        yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _climbed(ascent: Ascent, batch: pa.RecordBatch) -> tuple[Areas, NDArray[np.int64]]:
    """Nodes above the leaves of a batch, and their counts; few rows where nodes are large."""
    *leaves, n = _columns(batch)
    areas = ascent(tuple(leaves))
    if ascent.ends_at_leaves:
        return areas, n
    names = [str(axis) for axis in range(len(areas))]
    nodes = pa.Table.from_arrays([pa.array(column) for column in (*areas, n)], [*names, "n"])
    summed = nodes.group_by(names, use_threads=False).aggregate([("n", "sum")])
    *numbers, n = (column.to_numpy() for column in summed.select([*names, "n_sum"]).columns)
    return tuple(numbers), n


@dataclass(frozen=True, repr=False)
class Division:
    """One level step cut into tasks: everything a task needs but its rows.

    It holds the random bits' secret, so it never shows itself.

    Attributes:
        step: the level step.
        item_keys: int64[items], the smallest key of each item of work.
        n_tasks: how many tasks the items are dealt out to.
        version: of this package on the driver.
    """

    step: LevelStep
    item_keys: NDArray[np.int64]
    n_tasks: int
    version: str = field(default=__version__)

    def __repr__(self) -> str:
        return "Division(confidential)"

    def __reduce__(self) -> tuple[Any, ...]:
        step = replace(self.step, optimize=by_name(self.step.optimize))
        return _unpack, (step, self.item_keys, self.n_tasks, self.version)

    @classmethod
    def of(cls, step: LevelStep, item_keys: NDArray[np.int64], most: int) -> "Division":
        """With at most `most` tasks, and none without work."""
        alone = cls(step, item_keys, 1)
        return replace(alone, n_tasks=max(1, min(most, len(alone.bundles))))

    def check_version(self) -> None:
        """Complain if this executor has another version of this package than the driver.

        Raises:
            ReleaseError: it has.
        """
        if __version__ != self.version:
            raise ReleaseError(
                f"an executor has inftda {__version__}, the driver {self.version}; install the "
                "same version everywhere"
            )

    @cached_property
    def bundles(self) -> NDArray[np.int64]:
        """int64[bundles]: the first item of each; the items of a bundle stay in one task.

        With prices a bundle holds whole groups: an item, or all items of a group that is cut
        into several. Otherwise every item is a bundle.
        """
        items = np.arange(len(self.item_keys))
        if self.step.across is None:
            return items
        is_first: NDArray[np.bool_] = np.diff(self.item_keys // self.step.n_others, prepend=-1) != 0
        return items[is_first]

    def items_of(self, parents: Areas) -> NDArray[np.int64]:
        """int64: the item that each parent belongs to."""
        return np.searchsorted(self.item_keys, self.step.keys(parents), side="right") - 1

    def task_of(self, parents: Areas) -> NDArray[np.int32]:
        """int32: the task that each parent belongs to; neighbouring bundles go together.

        With prices also a true parent that is not released belongs to the task of its group.
        """
        keys, firsts = self.step.keys(parents), self.item_keys[self.bundles]
        if self.step.across is not None:
            keys, firsts = keys // self.step.n_others, firsts // self.step.n_others
        bundle = np.maximum(np.searchsorted(firsts, keys, side="right") - 1, 0)
        return (bundle * self.n_tasks // len(firsts)).astype(np.int32)


class Named(NamedTuple):
    """A function of a module."""

    module: str
    name: str


def by_name(function: Any) -> Any:
    """A function of a module as its name: compiled ones would be sent to be compiled anew."""
    named = Named(function.__module__, getattr(function, "__qualname__", ""))
    is_there = getattr(import_module(named.module), named.name, None) is function
    return named if is_there else function


def _unpack(step: LevelStep, *rest: Any) -> Division:
    optimize: Any = step.optimize
    if isinstance(optimize, Named):
        optimize = getattr(import_module(optimize.module), optimize.name)
    return Division(replace(step, optimize=optimize), *rest)


def send_parents(division: Division, batches: Batches) -> Made:
    """Released parents with the task that divides them."""
    for batch in batches:
        *areas, value = _columns(batch)
        yield _routed(division.task_of(tuple(areas)), areas, value, is_parent=True)


def send_truth(division: Division, ascent: Ascent, batches: Batches) -> Made:
    """True children, as rows that may repeat, with the task that divides their parent."""
    for batch in batches:
        children, n = _climbed(ascent, batch)
        task = division.task_of(division.step.level.parents(children))
        yield _routed(task, children, n, is_parent=False)


def _routed(
    task: NDArray[np.int32],
    areas: Iterable[NDArray[np.int32]],
    n: NDArray[np.int64],
    *,
    is_parent: bool,
) -> pa.RecordBatch:
    columns = [task, *areas, n, np.full(len(n), is_parent)]
    names = [TASK, *(f"area_{i}" for i in range(len(columns) - 3)), COUNT, IS_PARENT]
    return pa.RecordBatch.from_arrays([pa.array(column) for column in columns], names=names)


def divide(division: Division, batches: Batches, keeper: Keeper | None = None) -> Made:
    """Released children of the parents of one task.

    Args:
        division: the level step.
        batches: what `send_parents` and `send_truth` give for this task, in any order.
        keeper: gets the noisy counts.
    """
    division.check_version()
    received = _received(batches)
    if received is None:
        return
    step, is_kept = division.step, keeper is not None
    truth = Children.of(step.level, *received.children, Crew(1))
    parts = _items(division, _in_group_order(step, *received.parents))
    del received  # dividing takes the room again
    if step.across is None:
        made = divide_items(step, parts, truth, is_kept=is_kept)
    else:
        made = divide_bundles(division, parts, truth, is_kept=is_kept)
    kept = None if keeper is None else Kept(step, keeper)
    for part in made:
        if kept is not None:
            kept.add(part.drawn)
        yield _as_batch(part.children)
    if kept is not None:
        kept.finish()


class Received(NamedTuple):
    """What a task was sent: areas and counts of released parents, and of true children."""

    parents: tuple[Areas, NDArray[np.int64]]
    children: tuple[Areas, NDArray[np.int64]]


def _received(batches: Batches) -> Received | None:
    """All rows of a task, in any order; None if there are none."""
    held = [_columns(batch) for batch in batches]
    if not held:
        return None
    _, *areas, n, is_parent = (np.concatenate(column) for column in zip(*held, strict=True))
    return Received(
        (tuple(numbers[is_parent] for numbers in areas), n[is_parent]),
        (tuple(numbers[~is_parent] for numbers in areas), n[~is_parent]),
    )


def _in_group_order(step: LevelStep, areas: Areas, value: NDArray[np.int64]) -> Nodes:
    """Released parents in group order."""
    return Nodes(areas, value).take(step.group_order(areas))


def _items(division: Division, parents: Nodes) -> list[tuple[int, Nodes]]:
    """Number and parents of each item of work, from parents in group order."""
    item = division.items_of(parents.areas)
    starts = np.flatnonzero(np.diff(item, prepend=-1)).tolist()
    ranges = pairwise([*starts, len(item)])
    return [(int(item[low]), parents.take(slice(low, high))) for low, high in ranges]


def _as_batch(nodes: Nodes) -> pa.RecordBatch:
    """Areas and released counts."""
    columns = [*map(pa.array, nodes.areas), pa.array(nodes.value)]
    names = [*(f"area_{i}" for i in range(len(nodes.areas))), COUNT]
    return pa.RecordBatch.from_arrays(columns, names=names)


def divide_items(
    step: LevelStep, parts: Sequence[tuple[int, Nodes]], truth: Children, *, is_kept: bool
) -> Iterator[Divided]:
    """Children of each item."""

    def divide_item(part: tuple[int, Nodes]) -> Divided:
        return step.divide(*part, truth, is_kept=is_kept)

    return map_in_order(divide_item, parts, _threads())


def divide_bundles(
    division: Division, parts: Sequence[tuple[int, Nodes]], truth: Children, *, is_kept: bool
) -> Iterator[Divided]:
    """Children of each bundle, with prices."""
    across, threads = AcrossStep.of(division.step), _threads()
    bundle = np.searchsorted(division.bundles, [item for item, _ in parts], side="right")
    starts = np.flatnonzero(np.diff(bundle, prepend=-1)).tolist()

    def divide_on_all(work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        return map_in_order(work, list(items), threads)

    for low, high in pairwise([*starts, len(parts)]):
        yield across.divide_groups(
            parts[low:high],
            truth,
            threads=threads,
            map_=divide_on_all,
            is_kept=is_kept,
        )


def tally(axes: tuple[int, ...], among: NDArray[np.int64] | None, batches: Batches) -> Made:
    """How many nodes have the same areas on some axes.

    Args:
        axes: the axes.
        among: areas on the first of them that are of interest; all without it.
        batches: areas on each axis, and the count.
    """
    names = [f"area_{axis}" for axis in axes]
    for batch in batches:
        nodes = pa.Table.from_batches([batch])
        if among is not None:
            nodes = nodes.filter(pc.is_in(nodes[names[0]], pa.array(among.astype(np.int32))))
        found = nodes.group_by(names, use_threads=False).aggregate([([], "count_all")])
        yield from found.select([*names, "count_all"]).rename_columns([*names, COUNT]).to_batches()


def margins(n_axes: int, batches: Batches) -> Made:
    """True trips of every finest area of every axis, summed up in each batch."""
    for batch in batches:
        *areas, n = _columns(batch)
        for axis in range(n_axes):
            nodes = pa.table({"area": areas[axis], COUNT: n})
            summed = nodes.group_by("area", use_threads=False).aggregate([(COUNT, "sum")])
            columns = [
                pa.array(np.full(len(summed), axis, np.int32)),
                summed["area"],
                summed[f"{COUNT}_sum"],
            ]
            yield from pa.table(columns, names=["axis", "area", COUNT]).to_batches()


def _columns(batch: pa.RecordBatch) -> list[NDArray[Any]]:
    return [column.to_numpy(zero_copy_only=False) for column in batch.columns]


def _threads() -> int:
    """Cores that Spark gives this task."""
    context = TaskContext.get()
    return 1 if context is None else context.cpus()
