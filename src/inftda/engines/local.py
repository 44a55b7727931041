"""All cores of one machine."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from inftda.bars import Progress
from inftda.errors import InftdaError
from inftda.mechanisms.across import AcrossStep
from inftda.mechanisms.base import Keeper, Written
from inftda.mechanisms.prices import Map
from inftda.mechanisms.step import Divided, Drawn, LevelStep, Nodes, Work, join
from inftda.noise.entropy import RandomSource
from inftda.privacy.unit import Unit
from inftda.publication.tables import join_flows, write_flows
from inftda.reading import Columns, read_leaves
from inftda.threads import Crew, available_cores
from inftda.tree import Tree
from inftda.truth import Truth

Item = TypeVar("Item")
Result = TypeVar("Result")

#: With tens of thousands DuckDB runs out of memory, and ends the process.
MOST_THREADS = 1024
#: A group of more items than this is divided on all threads.
LARGE = 8


@dataclass(frozen=True)
class LocalEngine:
    """Carries out a release on the threads of this machine."""

    threads: int = field(default_factory=available_cores)
    _crew: Crew = field(init=False, repr=False, compare=False)
    _has_begun: threading.Event = field(
        default_factory=threading.Event, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise InftdaError(f"threads must be at least 1, got {self.threads}")
        if self.threads > MOST_THREADS:
            raise InftdaError(f"threads must be at most {MOST_THREADS:,}, got {self.threads:,}")
        object.__setattr__(self, "_crew", Crew(self.threads))

    @contextmanager
    def started(self) -> Iterator["LocalEngine"]:
        """The engine, ready to work."""
        yield self

    def read(  # noqa: PLR0913 - the table, what it means, and what it is read for
        self,
        table: Any,
        columns: Columns,
        tree: Tree,
        *,
        unit: Unit,
        source: RandomSource,
        say: Callable[[str], object] | None = None,
    ) -> Truth:
        """The confidential table, counted per leaf and summed up level by level.

        Raises:
            InftdaError: it cannot be read as counts, or must not be read that way.
        """
        return Truth.of(
            tree,
            read_leaves(
                table,
                columns,
                tree.axes,
                unit=unit,
                random_source=source,
                say=say,
                threads=self.threads,
            ),
            threads=self.threads,
        )

    def root(self, truth: Truth, value: int) -> Nodes:
        """The root; nothing at all if its released count is 0."""
        n = int(value > 0)
        return Nodes(
            tuple(np.zeros(n, np.int32) for _ in truth.tree.axes),
            np.full(n, value, np.int64),
        )

    def step(
        self,
        parents: Nodes,
        truth: Truth,
        step: LevelStep,
        progress: Progress,
        keeper: Keeper | None = None,
    ) -> Nodes:
        """Released children of released parents, items of work on all threads."""
        parents = parents.take(step.group_order(parents.areas))
        offsets = item_offsets(step, parents)
        name, done = step.level.name, 0
        total = _n_draws(step.n_children(parents.areas[step.level.axis]))
        progress(name, 0, total)
        divide = self._items if step.across is None else self._groups
        parts = [parents.take(slice(0))]
        kept = None if keeper is None else Kept(step, keeper)
        for part in divide(parents, offsets, truth, step, is_kept=keeper is not None):
            done += part.n_draws
            progress(name, done, total)
            parts.append(part.children)
            if kept is not None:
                kept.add(part.drawn)
        if kept is not None and keeper is not None:
            keep_totals(step, keeper)
            kept.finish()
        return join(parts)

    def _items(
        self,
        parents: Nodes,
        offsets: NDArray[np.int64],
        truth: Truth,
        step: LevelStep,
        *,
        is_kept: bool,
    ) -> Iterator[Divided]:
        """Children and draws of every item, each on a thread."""
        true_children = truth.level(step.level)

        def divide(item: int) -> Divided:
            part = parents.take(slice(offsets[item], offsets[item + 1]))
            return step.divide(item, part, true_children, is_kept=is_kept)

        return self.map(divide, range(len(offsets) - 1))

    def _groups(
        self,
        parents: Nodes,
        offsets: NDArray[np.int64],
        truth: Truth,
        step: LevelStep,
        *,
        is_kept: bool,
    ) -> Iterator[Divided]:
        """Children and draws of whole groups with prices, a very large one on all threads."""
        across = AcrossStep.of(step)
        true_children = truth.level(step.level)

        def divide(items: range, threads: int = 1, map_: Map = map) -> Divided:
            parts = [(i, parents.take(slice(offsets[i], offsets[i + 1]))) for i in items]
            return across.divide_groups(
                parts,
                true_children,
                threads=threads,
                map_=map_,
                is_kept=is_kept,
            )

        bundles = _bundles(offsets, parents.areas[step.level.axis])
        for is_large, some in groupby(bundles, lambda items: len(items) > LARGE):
            if is_large:
                yield from (divide(items, self.threads, self.map) for items in some)
            else:
                yield from self.map(divide, some)

    def write(self, flows: Iterable[Nodes], path: Path, tree: Tree) -> Written:
        """Released leaves as one Parquet file."""
        found = join_flows(tree, ((part.areas, part.value) for part in flows))
        write_flows(path, tree, found)
        return Written(found.total, len(found.flow))

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Results of `work` for every item, in the order of the items.

        The very first item is the caller's alone: kernels are compiled or loaded for it. If
        two threads did that and one were interrupted, the other would wait for its lock forever.
        """
        left = iter(items)
        if not self._has_begun.is_set():
            for item in left:
                result = work(item)
                self._has_begun.set()
                yield result
                break
        yield from self._crew.map(work, left)


class Kept:
    """Noisy counts of a step on their way to whoever keeps them: one table after the other.

    Those of the tree, nine tenths of all, are handed on at once, those of other tables after them.
    The one-way table of a step is not among them, as all of it was measured before.
    """

    def __init__(self, step: LevelStep, keeper: Keeper) -> None:
        self._step, self._keeper = step, keeper
        self._across: dict[tuple[int, ...], list[Drawn]] = {}

    def add(self, drawn: Iterable[Drawn]) -> None:
        """Take counts of some groups."""
        for some in drawn:
            if some.depths == self._step.level.depths:
                self._keeper.keep(some)
            else:
                self._across.setdefault(some.depths, []).append(some)

    def finish(self) -> None:
        """Hand on what waits."""
        for measured in self._step.across.tables if self._step.across else ():
            for some in self._across.pop(measured.table.depths, ()):
                self._keeper.keep(some)


def keep_totals(step: LevelStep, keeper: Keeper) -> None:
    """Hand on the one-way table of a step, if it has one."""
    if step.across is not None:
        for some in AcrossStep.of(step).drawn_totals():
            keeper.keep(some)


def item_offsets(step: LevelStep, parents: Nodes) -> NDArray[np.int64]:
    """int64[items + 1]: slices of parents in group order."""
    key = step.keys(parents.areas)
    children = step.n_children(parents.areas[step.level.axis])
    group_key = key // step.n_others * step.n_others

    def cells_of(groups: NDArray[np.int64]) -> Work:
        found = [slice(*np.searchsorted(key, [at, at + step.n_others])) for at in groups]
        here = np.concatenate([np.arange(part.start, part.stop) for part in found])
        return _summed(key[here], children[here])

    firsts = step.item_keys(_summed(group_key, children), cells_of)
    return np.append(np.searchsorted(key, firsts), len(key))


def _bundles(offsets: NDArray[np.int64], refined: NDArray[np.int32]) -> list[range]:
    """Items that hold whole groups: mostly one, several for a group that is cut into them."""
    starts = offsets[:-1]
    is_first = np.ones(len(starts), bool)
    is_first[1:] = refined[starts[1:]] != refined[starts[1:] - 1]
    return [range(a, b) for a, b in pairwise([*np.flatnonzero(is_first).tolist(), len(starts)])]


def _summed(key: NDArray[np.int64], children: NDArray[np.int64]) -> Work:
    """Children by key, for ascending keys."""
    first = np.flatnonzero(np.diff(key, prepend=-1))
    return Work(key[first], np.add.reduceat(children, first) if len(first) else children[:0])


def _n_draws(n_children: NDArray[np.int64]) -> int:
    return int(n_children[n_children > 1].sum())
