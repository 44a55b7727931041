"""The Spark engine: reads the table, divides the first levels, sends the rest to executors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, log
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from inftda.engines.spark import tasks
from inftda.engines.spark.frontier import Frontier
from inftda.engines.spark.keys import draw_secret
from inftda.engines.spark.leaves import SparkLeaves, read_leaves
from inftda.engines.spark.scales import Charged, charge_all
from inftda.engines.spark.session import carry_out, settings
from inftda.engines.spark.shipment import Shipment, pack
from inftda.engines.spark.staging import read_back, write_flows
from inftda.engines.spark.trunk import Trunk
from inftda.errors import InftdaError, ReleaseError
from inftda.hierarchy import Hierarchy
from inftda.mechanisms.base import Mechanism, Setting
from inftda.mechanisms.stability_histogram import StabilityHistogram
from inftda.mechanisms.topdown import TopDown
from inftda.publication.query import FLOW
from inftda.tree import Tree

#: Groups of subtrees for each core, so that slow ones even out.
GROUPS_PER_CORE = 4
#: In force while noise is drawn: Spark must not choose partitions by the size of the truth.
WHILE_DRAWING = {"spark.sql.adaptive.enabled": "false"}
#: For people, in place of the name of a level.
ON_EXECUTORS = "on the executors"


@dataclass(frozen=True)
class SparkEngine:
    """Carries out a release as Spark jobs.

    Attributes:
        session: a Spark session (not of Spark Connect); its settings are left as they are.
        groups: into how many groups the subtrees are cut, at least about; a few for each core
            of the cluster by default. A seeded release repeats for the same number only.
        staging: address of a private folder that driver and executors both reach, such as
            "hdfs:///user/me/private"; not needed where they share the disk of the output.
    """

    session: SparkSession
    groups: int | None = None
    staging: str | None = None

    def __post_init__(self) -> None:
        if self.groups is not None and self.groups < 1:
            raise InftdaError(f"groups must be at least 1, got {self.groups}")
        if not hasattr(self.session, "sparkContext"):
            raise InftdaError("the Spark engine needs a classic session, not one of Spark Connect")

    def read(
        self, flows: Any, axes: Sequence[tuple[str, Hierarchy]], **options: Any
    ) -> SparkLeaves:
        """The confidential table, counted per leaf and kept by the executors.

        Args:
            flows: a Spark frame, or what Spark reads; see `table.open_table`.
            axes: the column of each axis and the hierarchy its codes come from.
            options: as `leaves.read_leaves` takes them.

        Raises:
            IngestError: it cannot be read as counts.
            PrivacyError: the options would break the privacy promise.
        """
        with settings(self.session):
            return read_leaves(self.session, flows, axes, **options)

    def write(  # noqa: PLR0913 - a release is all of these
        self,
        leaves: SparkLeaves,
        folder: Path,
        *,
        tree: Tree,
        plan: Any,
        mechanism: Mechanism,
        setting: Setting,
    ) -> tuple[int, int]:
        """Draw the noise, once, and write the released flows.

        Args:
            leaves: the truth; forgotten by the executors afterwards.
            folder: the folder of Parquet files to make.
            tree: the public tree.
            plan: what is drawn; all of it is charged in `setting.spending` first.
            mechanism: how.
            setting: the release's account, noise and random bits.

        Returns:
            Sum and number of the flows, read back from the files.

        Raises:
            InftdaError: the mechanism does not run on Spark.
            ReleaseError: Spark failed, or the files do not hold what was released.
        """
        try:
            with settings(self.session, WHILE_DRAWING):
                charged = charge_all(plan, setting.spending)
                job = _Drawing(self, leaves, folder, tree, mechanism, setting, charged)
                return job.run()
        finally:
            leaves.close()

    @property
    def n_groups(self) -> int:
        """Into how many groups subtrees are cut, at least about."""
        return self.groups or GROUPS_PER_CORE * self.session.sparkContext.defaultParallelism


@dataclass(frozen=True)
class _Drawing:
    """The part of a release that draws noise."""

    engine: SparkEngine
    leaves: SparkLeaves
    folder: Path
    tree: Tree
    mechanism: Mechanism
    setting: Setting
    charged: Charged

    def run(self) -> tuple[int, int]:
        mechanism: object = self.mechanism
        if isinstance(mechanism, TopDown):
            return self._refine(mechanism)
        if isinstance(mechanism, StabilityHistogram):
            return self._draw_leaves()
        raise InftdaError(
            f"the mechanism {self.mechanism.name!r} runs on one machine only; leave out the "
            "engine, or use inftda"
        )

    def _refine(self, mechanism: TopDown) -> tuple[int, int]:
        """Top-down: the trunk here, the subtrees on the executors."""
        on_driver = replace(self.setting, spending=self.charged.whole())
        trunk = Trunk(self.tree, self.leaves, mechanism, on_driver, self.engine.n_groups)
        frontier = trunk.grow()
        if frontier.n_groups:
            self._write_subtrees(frontier)
        else:
            self.folder.mkdir(mode=0o700)
        return self._checked(read_back(self.folder, self.tree), frontier.total)

    def _write_subtrees(self, frontier: Frontier) -> None:
        context = self.engine.session.sparkContext
        keys = self._keys(frontier.n_groups)
        routes = context.broadcast((frontier, keys))
        sent = context.broadcast(self._shipment())

        def route(batches):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202 - called by Spark
            return tasks.route(*routes.value, batches)

        def refine(batches):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202 - called by Spark
            return tasks.refine(sent.value, routes.value[0], batches)

        areas = [StructField(name, IntegerType()) for name in self.leaves.areas]
        routed = StructType(
            [
                StructField("key", LongType()),
                StructField("node", IntegerType()),
                *areas,
                StructField("n", LongType()),
            ]
        )
        rows = self.leaves.frame.mapInArrow(route, routed)
        rows = rows.unionByName(self._seeds(frontier, keys))
        self._write(rows.repartition(frontier.n_groups, "key"), refine, frontier.n_groups)
        routes.destroy()
        sent.destroy()

    def _draw_leaves(self) -> tuple[int, int]:
        """Every true leaf on its own: each goes to a partition by its areas alone."""
        sent = self.engine.session.sparkContext.broadcast(self._shipment())

        def draw(batches):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202 - called by Spark
            return tasks.draw_leaves(sent.value, batches)

        groups = self.engine.n_groups
        rows = self.leaves.frame.repartition(groups, *self.leaves.areas)
        self._write(rows, draw, groups)
        sent.destroy()
        return read_back(self.folder, self.tree)

    def _write(self, rows: DataFrame, work: Any, n_tasks: int) -> None:
        names = [axis.name for axis in self.tree.axes]
        released = StructType([StructField(name, StringType()) for name in names])
        flows = rows.mapInArrow(work, released.add(FLOW, LongType()))
        self.setting.progress(ON_EXECUTORS, 0, n_tasks)
        write_flows(flows, self.folder, self.engine.staging)
        self.setting.progress(ON_EXECUTORS, n_tasks, n_tasks)

    def _shipment(self) -> Shipment:
        source = self.setting.source
        return Shipment(
            tree=self.tree,
            packed=pack(self.mechanism),
            charged=self.charged,
            make_sampler=self.setting.make_sampler,
            secret=draw_secret(source),
            is_secure=source.is_secure,
        )

    def _keys(self, groups: int) -> NDArray[np.int64]:
        """int64[groups]: a number for each group that Spark puts into a partition of its own.

        Spark sends a row to the partition that the hash of its key says. Groups would share
        partitions by chance if they were their own keys; so the keys are chosen.
        """
        session = self.engine.session
        n = ceil(groups * (log(groups) + 8))
        candidates = session.createDataFrame(pa.table({"key": np.arange(n, dtype=np.int64)}))
        hashed = candidates.select("key", F.pmod(F.hash("key"), F.lit(groups)).alias("partition"))
        found = carry_out(hashed.toArrow)
        partition = found["partition"].to_numpy()
        # Groups whose partition no candidate leads to (odds of some 1 in 3000) share another.
        keys = np.arange(groups, dtype=np.int64)
        keys[partition[::-1]] = found["key"].to_numpy()[::-1]
        return keys

    def _seeds(self, frontier: Frontier, keys: NDArray[np.int64]) -> DataFrame:
        """A row without trips for every group, so that each has rows whatever the truth is."""
        columns: Mapping[str, Any] = {
            "key": keys,
            "node": frontier.group_start[:-1].astype(np.int32),
            **{name: np.zeros(len(keys), np.int32) for name in self.leaves.areas},
            "n": np.zeros(len(keys), np.int64),
        }
        return self.engine.session.createDataFrame(pa.table(columns))

    def _checked(self, written: tuple[int, int], released: int) -> tuple[int, int]:
        """What the files hold must be what the driver released.

        Raises:
            ReleaseError: it is not.
        """
        if written[0] != released:
            raise ReleaseError(
                "the files do not hold all that was released; nothing was published. Executors "
                "and driver must reach the same folder: give the staging folder of the engine"
            )
        return written
