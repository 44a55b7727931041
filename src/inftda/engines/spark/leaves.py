"""The truth on a cluster: non-zero leaf counts as a Spark frame that is kept by the executors.

Of it the driver sees sums over the first levels, which it noises, and whether rows are
flawed; the leaves stay where they are.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame


@dataclass(frozen=True, eq=False)
class SparkLeaves:
    """The confidential leaf counts: a row for each leaf with trips, which may repeat, in any order.

    Attributes:
        frame: the columns area_0, area_1, ... (int, depth-first numbers of the finest areas)
            and `n` (bigint, above zero), kept by the executors.
        total: number of trips.
        forget: lets the executors forget the leaves.
    """

    frame: DataFrame
    total: int
    forget: Callable[[], object]

    @property
    def areas(self) -> list[str]:
        """Names of the area columns."""
        return self.frame.columns[:-1]

    def close(self) -> None:
        """Let the executors forget the leaves."""
        self.forget()

    def __repr__(self) -> str:
        return f"SparkLeaves({len(self.areas)} axes, confidential)"
