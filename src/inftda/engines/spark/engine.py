"""The Spark engine: what `release(..., engine=SparkEngine(session))` is given."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it
from pyspark.sql.types import IntegerType, LongType, StructType

from inftda.bars import Progress
from inftda.engines.local import LocalEngine, keep_totals
from inftda.engines.spark import measurements, tasks
from inftda.engines.spark.flows import FILES, make_files, one_by_one, read_back, write_files
from inftda.engines.spark.packing import (
    CELLS,
    FOR_CELLS,
    PACKED,
    TASK,
    Batches,
    Made,
    addressed_cells,
    cell_table,
    pack,
    pack_by,
    unpack,
)
from inftda.engines.spark.reading import read_leaves
from inftda.engines.spark.session import PARTITIONS, carry_out, opened, sent, settings
from inftda.engines.spark.truth import SparkTruth
from inftda.errors import InftdaError, ReleaseError
from inftda.mechanisms.base import Keeper, Written
from inftda.mechanisms.step import LevelStep, Nodes, Work
from inftda.noise.entropy import KeyedSource, RandomSource
from inftda.privacy.unit import Unit
from inftda.reading import Columns
from inftda.tree import Tree

#: Tasks of a step for each core, so that slow ones even out.
TASKS_PER_CORE: Final = 4
#: Levels with at most this many possible nodes are divided on the driver: some 20 MB.
DRIVER_NODES: Final = 1 << 20
#: Into how many partitions Spark shuffles by default: far too many for two cores and too few
#: for hundreds.
SPARK_DEFAULT: Final = "200"


@dataclass(frozen=True)
class Scattered:
    """Released nodes of one level, kept by the executors.

    Attributes:
        frame: cells (see `packing`) with int32 area numbers on each axis and the released count.
        total: sum of the released counts.
    """

    frame: DataFrame
    total: int


#: Released nodes: on the driver while there are few, on the executors after that.
SparkNodes = Nodes | Scattered


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
        """The engine with a session; at the end executors forget the truth.

        Raises:
            InftdaError: Spark does not start.
        """
        given = None if self.session is None else nullcontext(self.session)
        with given or opened(self.master) as session, ExitStack() as stack:
            cores = session.sparkContext.defaultParallelism
            tasks_ = self.tasks or TASKS_PER_CORE * cores
            asked = session.conf.get(PARTITIONS)
            shuffles = {} if asked != SPARK_DEFAULT else {PARTITIONS: str(tasks_)}
            stack.enter_context(settings(session, shuffles))
            yield RunningSpark(session, tasks_, self.driver_nodes, stack)


@dataclass(frozen=True)
class RunningSpark:
    """A Spark session at work on one release.

    Attributes:
        session: the session.
        tasks: see `SparkEngine`.
        driver_nodes: likewise.
        stack: what to do when the release is made or has failed.
    """

    session: SparkSession
    tasks: int
    driver_nodes: int
    stack: ExitStack
    _local: LocalEngine = field(default_factory=LocalEngine, repr=False)

    def read(  # noqa: PLR0913 - the table, what it means, and what it is read for
        self,
        table: Any,
        columns: Columns,
        tree: Tree,
        *,
        unit: Unit,
        source: RandomSource,
        say: Callable[[str], object] | None,
    ) -> SparkTruth:
        """The confidential table, counted per leaf and kept by the executors.

        Raises:
            InftdaError: it cannot be read as counts, or must not be read that way.
        """
        leaves = read_leaves(
            self.session, table, columns, tree.axes, unit=unit, random_source=source, say=say
        )
        self.stack.callback(leaves.forget)
        # From here on rows are cells.
        self.stack.enter_context(settings(self.session, FOR_CELLS))
        return SparkTruth(tree, leaves, self.driver_nodes)

    def root(self, truth: SparkTruth, value: int) -> SparkNodes:
        """The root with its released count."""
        return self._local.root(truth.trunk, value)

    def step(
        self,
        parents: SparkNodes,
        truth: SparkTruth,
        step: LevelStep,
        progress: Progress,
        keeper: Keeper | None = None,
    ) -> SparkNodes:
        """Released children of released parents: here if there are few, else on executors."""
        step = replace(step, source=_repeatable(step.source))
        if isinstance(parents, Nodes) and step.level.index <= truth.trunk_end.index:
            return self._local.step(parents, truth.trunk, step, progress, keeper)
        if keeper is not None:
            keep_totals(step, keeper)
        if isinstance(parents, Nodes) and not len(parents.value):
            return parents
        scattered = self._scatter(parents) if isinstance(parents, Nodes) else parents
        progress(step.level.name, 0, 1)
        children = self._divide(scattered.frame, truth, step, keeper)
        progress(step.level.name, 1, 1)
        return replace(scattered, frame=children)

    def write(self, flows: Iterable[SparkNodes], path: Path, tree: Tree) -> Written:
        """Released leaves as a folder of Parquet files, or as a file if they are few.

        Raises:
            ReleaseError: Spark failed, or the files do not hold what was released.
        """
        (nodes,) = flows
        if isinstance(nodes, Nodes):
            return self._local.write([nodes], path, tree)
        with sent(self.session, tree) as shared:

            def make(batches: Batches) -> Made:
                return make_files(shared.value, unpack(batches))

            write_files(nodes.frame.mapInArrow(make, FILES), path)
        written = read_back(path, tree)
        if written.total != nodes.total:
            raise ReleaseError(
                "the files do not hold all that was released; nothing was published. Please "
                "report it, with the versions of Spark and inftda"
            )
        return written

    def _divide(
        self, parents: DataFrame, truth: SparkTruth, step: LevelStep, keeper: Keeper | None
    ) -> DataFrame:
        """One shuffle: parents and true children to the task of their item of work."""
        item_keys = self._item_keys(parents, step)
        division = tasks.Division.of(step, item_keys, self.tasks)
        shared = self.stack.enter_context(sent(self.session, (division, tasks.Ascent(step.level))))

        def send_parents(batches: Batches) -> Made:
            return pack_by(TASK, tasks.send_parents(shared.value[0], unpack(batches)))

        def send_truth(batches: Batches) -> Made:
            return pack_by(TASK, tasks.send_truth(*shared.value, unpack(batches)))

        def divide(batches: Batches) -> Made:
            return pack(tasks.divide(shared.value[0], unpack(batches)))

        def divide_and_keep(batches: Batches) -> Made:
            return measurements.divide_and_keep(shared.value[0], unpack(batches))

        routed = addressed_cells(TASK)
        cells = parents.mapInArrow(send_parents, routed).unionByName(
            truth.leaves.frame.mapInArrow(send_truth, routed)
        )
        cells = cells.repartitionById(division.n_tasks, F.col(TASK))
        if keeper is None:
            return self._persisted(cells.mapInArrow(divide, CELLS))
        both = self._persisted(cells.mapInArrow(divide_and_keep, measurements.KINDS))
        is_file = F.col(measurements.IS_FILE)
        for file in one_by_one(both.where(is_file).select(PACKED)):
            keeper.keep_file(file)
        return both.where(~is_file).select(PACKED)

    def _persisted(self, cells: DataFrame) -> DataFrame:
        """Cells computed now, and kept by the executors until the release is made."""
        persisted = cells.persist(StorageLevel.MEMORY_AND_DISK)
        self.stack.callback(persisted.unpersist)
        carry_out(persisted.count)
        return persisted

    def _item_keys(self, parents: DataFrame, step: LevelStep) -> NDArray[np.int64]:
        """Items of work, from how many released parents each group has."""
        first_axes = step.sort_axes[:2]

        def work(*axes: int, among: NDArray[np.int64] | None = None) -> Work:
            def tally(batches: Batches) -> Made:
                return tasks.tally(axes, among, unpack(batches))

            names = [f"area_{axis}" for axis in axes]
            counted = parents.mapInArrow(tally, _schema(*names).add(tasks.COUNT, LongType()))
            summed = counted.groupBy(*names).agg(F.sum(tasks.COUNT).alias(tasks.COUNT))
            found = carry_out(summed.toArrow)
            areas = [found[name].to_numpy().astype(np.int32) for name in names]
            children = found[tasks.COUNT].to_numpy() * step.n_children(areas[0])
            key = areas[0].astype(np.int64) * step.n_others + (areas[1] if len(areas) > 1 else 0)
            order = np.argsort(key)
            return Work(key[order], children[order])

        def cells_of(groups: NDArray[np.int64]) -> Work:
            return work(*first_axes, among=groups // step.n_others)

        return step.item_keys(work(first_axes[0]), cells_of)

    def _scatter(self, nodes: Nodes) -> Scattered:
        """Released nodes of the driver for the executors; the true index stays here."""
        columns = {f"area_{i}": areas for i, areas in enumerate(nodes.areas)}
        table = pa.table({**columns, tasks.COUNT: nodes.value})
        frame = self.session.createDataFrame(cell_table(table), CELLS)
        return Scattered(frame, int(nodes.value.sum()))


def _repeatable(source: RandomSource) -> RandomSource:
    """Random bits that a task can be asked for twice; seeded ones already are."""
    return KeyedSource.of(source) if source.is_secure else source


def _schema(*names: str) -> StructType:
    schema = StructType()
    for name in names:
        schema = schema.add(name, IntegerType())
    return schema
