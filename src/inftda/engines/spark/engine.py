"""The Spark engine: what `release(..., engine=SparkEngine(session))` is given."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from inftda.engines.spark.drawing import Drawing, is_supported
from inftda.engines.spark.leaves import SparkLeaves
from inftda.engines.spark.reading import read_leaves
from inftda.engines.spark.session import opened, settings
from inftda.errors import InftdaError
from inftda.mechanisms.base import Mechanism, Setting
from inftda.reading.spec import TableSpec
from inftda.tree import Tree

#: Groups of subtrees for each core, so that slow ones even out.
GROUPS_PER_CORE = 4
#: Work of a group, in draws: a few seconds and less than 1 GB on an executor.
GROUP_COST = float(1 << 26)
#: Into how many partitions Spark shuffles, and its own default: far too many for two cores
#: and too few for hundreds.
PARTITIONS, SPARK_DEFAULT = "spark.sql.shuffle.partitions", "200"


@dataclass(frozen=True)
class SparkEngine:
    """Carries out a release as Spark jobs.

    Attributes:
        session: a classic Spark session; without it the active one, or a new one that lives
            as long as the release.
        master: URL of the cluster for a new session; as Spark is configured by default.
        staging: address of a private folder that driver and executors both reach, such as
            "hdfs:///user/me/private"; not needed where they share the disk of the output.
        groups: into how many groups subtrees are cut, about; by default a few for each core of
            the cluster, and more if they would be large. A seeded release repeats for the
            same number only.
    """

    session: SparkSession | None = None
    master: str | None = None
    staging: str | None = None
    groups: int | None = None

    def __post_init__(self) -> None:
        if self.groups is not None and self.groups < 1:
            raise InftdaError(f"groups must be at least 1, got {self.groups}")
        given: object = self.session
        if given is not None and not isinstance(given, SparkSession):
            kind = f"{type(given).__module__}.{type(given).__name__}"
            raise InftdaError(f"session must be a classic Spark session, got {kind}")

    def check(self, mechanism: Mechanism) -> None:
        """Complain about a mechanism that does not run on Spark.

        Raises:
            InftdaError: it does not.
        """
        if not is_supported(mechanism):
            raise InftdaError(
                f"the mechanism {mechanism.name!r} runs on one machine only; leave out the engine, "
                "or use inftda"
            )

    @contextmanager
    def started(self) -> Iterator["StartedEngine"]:
        """The engine with a session; at the end executors forget the truth.

        Raises:
            InftdaError: Spark does not start.
        """
        given = None if self.session is None else nullcontext(self.session)
        with given or opened(self.master) as session, ExitStack() as stack:
            cores = session.sparkContext.defaultParallelism
            yield StartedEngine(
                session=session,
                staging=self.staging,
                groups=self.groups or GROUPS_PER_CORE * cores,
                group_cost=inf if self.groups else GROUP_COST,
                stack=stack,
            )


@dataclass(frozen=True)
class StartedEngine:
    """A Spark session at work on one release.

    Attributes:
        session: the session.
        staging: see `SparkEngine`.
        groups: likewise.
        group_cost: the most work of a group, in draws, about.
        stack: what to do when the release is made or has failed.
    """

    session: SparkSession
    staging: str | None
    groups: int
    group_cost: float
    stack: ExitStack

    def read(self, flows: Any, spec: TableSpec, **options: Any) -> SparkLeaves:
        """The confidential table, counted per leaf and kept by the executors.

        Args:
            flows: a Spark frame, what Spark reads, or a table in memory.
            spec: what its columns mean.
            options: as `reading.read_leaves` takes them.

        Raises:
            IngestError: it cannot be read as counts.
        """
        with settings(self.session, self._partitions()):
            leaves = read_leaves(self.session, flows, spec, **options)
        self.stack.callback(leaves.close)
        return leaves

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
            leaves: the truth.
            folder: the folder of Parquet files to make.
            tree: the public tree.
            plan: what is drawn; all of it is charged in `setting.spending` first.
            mechanism: how.
            setting: the release's account, noise and random bits.

        Returns:
            Sum and number of the flows, read back from the files.

        Raises:
            ReleaseError: Spark failed, or the files do not hold what was released.
        """
        drawing = Drawing(
            leaves=leaves,
            folder=folder,
            tree=tree,
            mechanism=mechanism,
            setting=setting,
            staging=self.staging,
            groups=self.groups,
            group_cost=self.group_cost,
        )
        with settings(self.session, self._partitions()):
            return drawing.run(plan)

    def _partitions(self) -> dict[str, str]:
        """As many partitions as groups, unless the session says how many."""
        asked = self.session.conf.get(PARTITIONS)
        return {} if asked != SPARK_DEFAULT else {PARTITIONS: str(self.groups)}
