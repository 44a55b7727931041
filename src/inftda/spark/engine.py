"""The Spark engine, for `release(..., engine=SparkEngine(session))`."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

from inftda.errors import InftdaError, ReleaseError
from inftda.mechanism.data import MeasuredTable
from inftda.mechanism.topdown import Division, Outcome, divide_all, top_down
from inftda.noise.bits import RandomSource
from inftda.privacy.noise_plan import Account
from inftda.reading import Request
from inftda.reading.truth import Truth
from inftda.spark import tasks
from inftda.spark.reading import SparkLeaves, read_leaves
from inftda.spark.session import PARTITIONS, broadcast, carry_out, opened, settings
from inftda.spark.tasks import Batches, Made, SharedDivision
from inftda.tree import CellRows, Cells, Marginal, Tree, TreeLevel
from inftda.util.screen import Progress
from inftda.util.threads import ThreadPool, available_cores

#: Tasks of a step for each core, so that slow ones even out.
TASKS_PER_CORE: Final = 4
#: Levels with at most this many possible nodes are divided on the driver: some 20 MB.
DRIVER_NODES: Final = 1 << 20
#: Spark's default number of shuffle partitions: too many for two cores, too few for hundreds.
SPARK_DEFAULT: Final = "200"


@dataclass(frozen=True, repr=False)
class SparkTruth:
    """The confidential counts of a tree: leaves that stay with the executors, and a few sums here.

    Nothing else of the Spark engine holds the truth on the driver: sums over the first levels,
    which have few nodes, trips of single areas, and the total.
    """

    tree: Tree
    leaves: SparkLeaves
    driver_nodes: int

    @property
    def total(self) -> int:
        """Number of trips."""
        return self.leaves.total

    @cached_property
    def trunk_end(self) -> TreeLevel:
        """The last level that is divided on the driver; the root if there is none."""
        end = self.tree.levels[0]
        for level in self.tree.splitting_levels:
            if level.n_nodes > self.driver_nodes:
                break
            end = level
        return end

    @property
    def trunk(self) -> Truth:
        """True counts of the levels down to `trunk_end`; finer ones have none."""
        return self._sums[0]

    @property
    def marginal_totals(self) -> list[NDArray[np.int64]]:
        """int64[finest areas] for each axis: the true trips of every area."""
        return self._sums[1]

    @cached_property
    def _sums(self) -> tuple[Truth, list[NDArray[np.int64]]]:
        """Compute the trunk of the tree and the marginal totals, in one job."""
        end, axes, frame = self.trunk_end, self.tree.axes, self.leaves.frame
        finest = [axis.hierarchy.depth for axis in axes]
        one_way = [self.tree.one_way(axis, depth) for axis, depth in enumerate(finest)]
        marginals = [Marginal(axes, depths) for depths in (end.depths, *one_way)]
        # Here rows are no cells, and come in large batches.
        session = frame.sparkSession
        with settings(session), broadcast(session, marginals) as shared:

            def sum_up(batches: Batches) -> Made:
                return tasks.sum_up(shared.value, tasks.unpack(batches))

            names = [tasks.KIND, *tasks.area_names(len(axes))]
            schema = ", ".join([*(f"{name} int" for name in names), f"{tasks.COUNT} bigint"])
            rows = frame.mapInArrow(sum_up, schema).groupBy(*names).agg(F.sum(tasks.COUNT))
            kind, *areas, n = (column.to_numpy() for column in carry_out(rows.toArrow).columns)
        # Each node is represented by its first leaf.
        leaves = [
            axis.hierarchy.descendant_offsets(depth, axis.hierarchy.depth)[numbers[kind == 0]]
            for axis, depth, numbers in zip(axes, end.depths, areas, strict=True)
        ]
        marginal_totals = []
        for number, (axis, depth) in enumerate(zip(axes, finest, strict=True)):
            of_axis = np.zeros(axis.hierarchy.n_areas(depth), np.int64)
            is_here = kind == number + 1
            of_axis[areas[number][is_here]] = n[is_here]
            marginal_totals.append(of_axis)
        return Truth.from_leaves(self.tree, leaves, n[kind == 0]), marginal_totals

    def __repr__(self) -> str:
        return f"SparkTruth({len(self.tree.axes)} axes, confidential)"


@dataclass(frozen=True)
class SparkEngine:
    """Carries out a release as Spark jobs.

    Attributes:
        session: a classic Spark session; without it the active one, or a new one that lives
            as long as the release.
        master: URL of the cluster for a new session; all cores of this machine by default.
        tasks: how many tasks a level step is cut into, at most; by default a few for each core
            of the cluster. It does not change what is released.
        driver_nodes: levels with at most this many possible nodes are divided on the driver.
    """

    session: SparkSession | None = None
    master: str | None = None
    tasks: int | None = None
    driver_nodes: int = DRIVER_NODES

    def __post_init__(self) -> None:
        if self.tasks is not None and self.tasks < 1:
            raise InftdaError(f"tasks must be at least 1, got {self.tasks}")
        given: object = self.session
        if given is not None and not isinstance(given, SparkSession):
            kind = f"{type(given).__module__}.{type(given).__name__}"
            raise InftdaError(f"session must be a classic Spark session, got {kind}")

    @contextmanager
    def started(self) -> Iterator["RunningSpark"]:
        """The engine with a session; at the end executors forget the truth."""
        given = None if self.session is None else nullcontext(self.session)
        with given or opened(self.master) as session, ExitStack() as stack:
            n_tasks = self.tasks or TASKS_PER_CORE * session.sparkContext.defaultParallelism
            is_default = session.conf.get(PARTITIONS) == SPARK_DEFAULT
            shuffles = {PARTITIONS: str(n_tasks)} if is_default else {}
            stack.enter_context(settings(session, shuffles))
            yield RunningSpark(session, n_tasks, self.driver_nodes, stack)


@dataclass(frozen=True)
class RunningSpark:
    """A Spark session at work on one release; `stack` is undone when it is made or has failed."""

    session: SparkSession
    tasks: int
    driver_nodes: int
    stack: ExitStack

    def read(self, table: Any, tree: Tree, request: Request) -> SparkTruth:
        """The confidential table, counted per leaf and kept by the executors."""
        leaves = read_leaves(
            self.session, table, request.columns, tree.axes, unit=request.unit,
            random_source=request.source, say=request.say,
        )  # fmt: skip
        self.stack.callback(leaves.forget)
        # From here on rows are cells.
        self.stack.enter_context(settings(self.session, tasks.FOR_CELLS))
        return SparkTruth(tree, leaves, self.driver_nodes)

    def release(
        self,
        truth: SparkTruth,
        account: Account,
        source: RandomSource,
        *,
        progress: Progress,
    ) -> Outcome:
        """Released leaves, which come to the driver part by part, as in `release_counts`.

        Released nodes are on the driver while there are few. After that they are cells (see
        `tasks`) that the executors keep, from one partition to the next in group order. Noisy
        counts stay with the executors, and are read from there whenever they are iterated over.
        """
        pool = ThreadPool(available_cores())
        total = 0

        def take_step(
            division: Division, parents: Cells | DataFrame
        ) -> tuple[Cells | DataFrame, Iterable[MeasuredTable]]:
            nonlocal total
            step = division.step
            if isinstance(parents, Cells):
                if step.level.index <= truth.trunk_end.index:
                    true = truth.trunk.level(step.level)
                    return divide_all(division, parents, true, pool=pool, progress=progress)
                total = int(parents.value.sum())
                table = pa.Table.from_batches([tasks.as_batch(parents.areas, parents.value)])
                parents = self.session.createDataFrame(tasks.cell_table(table), tasks.CELLS)
            n_tasks = min(self.tasks, len(step.level.child_offsets) - 1)
            shared = SharedDivision(division, n_tasks)
            progress(step.level.name, 0, 1)
            cells = self._divide(parents, truth, shared)
            progress(step.level.name, 1, 1)
            return _of_kind(cells, tasks.CHILDREN), NoisyCounts(cells, division)

        drawn = top_down(truth, account, source, take_step)
        if isinstance(drawn.leaves, Cells):
            return drawn
        leaves = Cells.join([Cells.root(len(truth.tree.axes), 0), *_one_by_one(drawn.leaves)])
        if int(leaves.value.sum()) != total:
            raise ReleaseError(
                "the executors did not give all that was released; nothing was published. Please "
                "report it, with the versions of Spark and inftda"
            )
        return drawn._replace(leaves=leaves)

    def _divide(self, parents: DataFrame, truth: SparkTruth, division: SharedDivision) -> DataFrame:
        """One shuffle: parents and true children to the task of their group."""
        shared = self.stack.enter_context(broadcast(self.session, division))

        def send_parents(batches: Batches) -> Made:
            return tasks.pack_by(
                tasks.TASK, tasks.send_parents(shared.value, tasks.unpack(batches))
            )

        def send_truth(batches: Batches) -> Made:
            return tasks.pack_by(tasks.TASK, tasks.send_truth(shared.value, tasks.unpack(batches)))

        def divide(batches: Batches) -> Made:
            return tasks.divide(shared.value, tasks.unpack(batches))

        routed = f"{tasks.TASK} int, {tasks.CELLS}"
        cells = parents.mapInArrow(send_parents, routed).unionByName(
            truth.leaves.frame.mapInArrow(send_truth, routed)
        )
        cells = cells.repartitionById(division.n_tasks, F.col(tasks.TASK))
        divided = cells.mapInArrow(divide, f"{tasks.KIND} int, {tasks.CELLS}")
        divided = divided.persist(StorageLevel.MEMORY_AND_DISK)
        self.stack.callback(divided.unpersist)
        carry_out(divided.count)  # computed now, and kept until the release is made
        return divided


@dataclass(frozen=True)
class NoisyCounts:
    """Noisy counts of a step, table after table, read from the executors that keep them."""

    cells: DataFrame
    division: Division

    def __iter__(self) -> Iterator[MeasuredTable]:
        step, whole = self.division.step, {one.depths: one for one in self.division.totals}
        kinds = {one.depths: kind for kind, one in enumerate(step.by_rows)}
        for one in (step.children, *step.cross):
            if one.depths in whole:
                yield whole[one.depths]
                continue
            for part in _one_by_one(_of_kind(self.cells, kinds[one.depths])):
                alone = np.ones(len(part.value), np.int64)
                yield MeasuredTable(one, CellRows(step.level.axis, part.areas, alone), part.value)


def _of_kind(cells: DataFrame, kind: int) -> DataFrame:
    return cells.where(F.col(tasks.KIND) == kind).select(tasks.PACKED)


def _one_by_one(cells: DataFrame) -> Iterator[Cells]:
    """Rows that executors keep, cell by cell, in the order of their tasks."""
    found = carry_out(cells.toLocalIterator)
    while (row := carry_out(lambda: next(found, None))) is not None:
        yield from map(tasks.as_cells, tasks.unpack_cell(row[0]))
