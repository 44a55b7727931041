"""The part of a release that draws noise: the trunk on the driver, the rest on executors."""

from dataclasses import dataclass, replace
from math import ceil, log
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it
from pyspark.sql.types import LongType, StringType, StructField, StructType

from inftda.engines.spark import tasks
from inftda.engines.spark.cost import CostModel
from inftda.engines.spark.frontier import Frontier
from inftda.engines.spark.keys import draw_secret
from inftda.engines.spark.leaves import SparkLeaves
from inftda.engines.spark.scales import Charged, charge_all
from inftda.engines.spark.session import carry_out, sent, settings
from inftda.engines.spark.shipment import Shipment, pack
from inftda.engines.spark.staging import read_back, write_flows
from inftda.engines.spark.trunk import Trunk
from inftda.errors import ReleaseError
from inftda.mechanisms.base import Mechanism, Setting
from inftda.mechanisms.topdown import TopDown
from inftda.publication.query import FLOW
from inftda.tree import Tree

#: In force while noise is drawn: Spark must not choose partitions by the size of the truth.
WHILE_DRAWING = {"spark.sql.adaptive.enabled": "false"}
#: For people, in place of the name of a level.
ON_EXECUTORS = "on the executors"


def is_supported(mechanism: Mechanism) -> bool:
    """Whether a mechanism runs on Spark."""
    return mechanism.description.splits_into is not None


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """One release, read and about to be drawn.

    Attributes:
        leaves: the truth, on the executors.
        folder: the folder of Parquet files to make.
        tree: the public tree.
        mechanism: how to draw.
        setting: the release's account, noise and random bits.
        staging: address of a folder that driver and executors both reach, or None.
        groups: into how many groups subtrees are cut, at least about.
        group_cost: the most work of a group, in draws, about.
    """

    leaves: SparkLeaves
    folder: Path
    tree: Tree
    mechanism: Mechanism
    setting: Setting
    staging: str | None
    groups: int
    group_cost: float

    def run(self, plan: Any) -> tuple[int, int]:
        """Charge the plan, draw and write; returns sum and number of the flows.

        Raises:
            ReleaseError: Spark failed, or the files do not hold what was released.
        """
        charged = charge_all(plan, self.setting.spending)
        if self.mechanism.description.splits_into == "subtrees":
            return self._refine(cast("TopDown", self.mechanism), charged)
        return self._draw_leaves(charged)

    @property
    def _session(self) -> SparkSession:
        return self.leaves.frame.sparkSession

    def _refine(self, mechanism: TopDown, charged: Charged) -> tuple[int, int]:
        """Top-down: the trunk here, the subtrees on the executors."""
        on_driver = replace(self.setting, spending=charged.whole())
        trunk = Trunk(
            model=CostModel.of(self.tree, charged.plan),
            leaves=self.leaves,
            mechanism=mechanism,
            setting=on_driver,
            groups=self.groups,
            group_cost=self.group_cost,
        )
        frontier = trunk.grow()
        if frontier.n_groups:
            self._write_subtrees(frontier, charged)
        else:
            self.folder.mkdir(mode=0o700)
        return self._checked(read_back(self.folder, self.tree), frontier.total)

    def _write_subtrees(self, frontier: Frontier, charged: Charged) -> None:
        keys = self._keys(frontier.n_groups)
        with (
            sent(self._session, (frontier, keys)) as routes,
            sent(self._session, self._shipment(charged)) as shipment,
        ):

            def route(batches: tasks.Batches) -> tasks.Made:
                return tasks.route(*routes.value, batches)

            def refine(batches: tasks.Batches) -> tasks.Made:
                return tasks.refine(shipment.value, routes.value[0], batches)

            seeds = self._seeds(frontier, keys)
            rows = self.leaves.frame.mapInArrow(route, seeds.schema).unionByName(seeds)
            self._write(rows.repartition(frontier.n_groups, "key"), refine, frontier.n_groups)

    def _draw_leaves(self, charged: Charged) -> tuple[int, int]:
        """Every true leaf on its own: each goes to a partition by its areas alone."""
        with sent(self._session, self._shipment(charged)) as shipment:

            def draw(batches: tasks.Batches) -> tasks.Made:
                return tasks.draw_leaves(shipment.value, batches)

            rows = self.leaves.frame.repartition(self.groups, *self.leaves.areas)
            self._write(rows, draw, self.groups)
        return read_back(self.folder, self.tree)

    def _write(self, rows: DataFrame, work: Any, n_tasks: int) -> None:
        names = [axis.name for axis in self.tree.axes]
        released = StructType([StructField(name, StringType()) for name in names])
        flows = rows.mapInArrow(work, released.add(FLOW, LongType()))
        self.setting.progress(ON_EXECUTORS, 0, n_tasks)
        with settings(self._session, WHILE_DRAWING):
            write_flows(flows, self.folder, self.staging)
        self.setting.progress(ON_EXECUTORS, n_tasks, n_tasks)

    def _shipment(self, charged: Charged) -> Shipment:
        source = self.setting.source
        return Shipment(
            tree=self.tree,
            packed=pack(self.mechanism),
            charged=charged,
            make_sampler=self.setting.make_sampler,
            secret=draw_secret(source),
            is_secure=source.is_secure,
        )

    def _keys(self, groups: int) -> NDArray[np.int64]:
        """int64[groups]: a number for each group that Spark puts into a partition of its own.

        Spark sends a row to the partition that the hash of its key says. Groups would share
        partitions by chance if they were their own keys; so the keys are chosen.
        """
        session = self._session
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
        columns = {
            "key": keys,
            "node": frontier.group_start[:-1].astype(np.int32),
            **{name: np.zeros(len(keys), np.int32) for name in self.leaves.areas},
            "n": np.zeros(len(keys), np.int64),
        }
        return self._session.createDataFrame(pa.table(columns))

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
