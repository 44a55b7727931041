"""The truth on a cluster: non-zero leaf counts as a Spark frame that is kept by the executors.

This is the only place of the Spark engine that holds the truth. Of it the driver sees sums
over the first levels, which it noises, and whether rows are flawed; the leaves stay where
they are.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

from inftda.engines.spark import tasks
from inftda.engines.spark.matching import Ascent, Matcher
from inftda.engines.spark.session import carry_out, sent


@dataclass(frozen=True, eq=False)
class SparkLeaves:
    """The confidential leaf counts: one row per leaf with trips, in any order.

    Attributes:
        frame: the columns area_0, area_1, ... (int, depth-first numbers of the finest areas)
            and `n` (bigint, above zero), kept by the executors.
        forget: lets the executors forget the leaves.
    """

    frame: DataFrame
    forget: Callable[[], object]

    @property
    def areas(self) -> list[str]:
        """Names of the area columns."""
        return self.frame.columns[:-1]

    def sum_up(self, within: Matcher | None, ascent: Ascent) -> pa.Table:
        """True nodes of a level, summed up by the executors; see `trunk.Leaves`.

        Raises:
            ReleaseError: Spark failed.
        """
        with sent(self.frame.sparkSession, (within, ascent)) as ladder:

            def climb(batches: tasks.Batches) -> tasks.Made:
                return tasks.climb(*ladder.value, batches)

            nodes = self.frame.mapInArrow(climb, self.frame.schema)
            return carry_out(nodes.groupBy(*self.areas).agg(F.sum("n").alias("n")).toArrow)

    def close(self) -> None:
        """Let the executors forget the leaves."""
        self.forget()

    def __repr__(self) -> str:
        return f"SparkLeaves({len(self.areas)} axes, confidential)"
