"""The truth on a cluster: leaves that stay with the executors, and a few first levels here.

This is the only place of the Spark engine that holds the truth on the driver: sums over the
first levels, which have few nodes, trips of single areas, and the total. The leaves stay where
they are.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from inftda.counts import Counts
from inftda.engines.spark import tasks
from inftda.engines.spark.leaves import SparkLeaves
from inftda.engines.spark.packing import Batches, Made, unpack
from inftda.engines.spark.session import carry_out, sent
from inftda.tree import Tree, TreeLevel


@dataclass(frozen=True, repr=False)
class SparkTruth:
    """The confidential counts of a tree.

    Attributes:
        tree: the public tree.
        leaves: the leaf counts, on the executors.
        driver_nodes: levels with at most this many possible nodes are divided on the driver.
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

    @cached_property
    def trunk(self) -> Counts:
        """The truth of the levels down to `trunk_end`; further down, and margins, it is not."""
        end = self.trunk_end
        frame = self.leaves.frame
        names = [f"area_{axis}" for axis in range(len(self.tree.axes))]
        schema = StructType([*(StructField(name, IntegerType()) for name in names)])
        with sent(frame.sparkSession, tasks.Ascent(end)) as ascent:

            def climb(batches: Batches) -> Made:
                return tasks.climb(ascent.value, unpack(batches))

            nodes = frame.mapInArrow(climb, schema.add("n", LongType()))
            summed = nodes.groupBy(*names).agg(F.sum("n").alias("n"))
            *areas, n = (column.to_numpy() for column in carry_out(summed.toArrow).columns)
        # A node is stood in for by its first leaf.
        leaves = [
            axis.hierarchy.descend(depth, axis.hierarchy.depth)[numbers.astype(np.int32)]
            for axis, depth, numbers in zip(end.axes, end.depths, areas, strict=True)
        ]
        return Counts.from_leaves(self.tree, leaves, n.astype(np.int64))

    @cached_property
    def margins(self) -> list[NDArray[np.int64]]:
        """int64[finest areas] for each axis: the true trips of every area."""
        n_axes = len(self.tree.axes)

        def sum_up(batches: Batches) -> Made:
            return tasks.margins(n_axes, unpack(batches))

        rows = self.leaves.frame.mapInArrow(sum_up, "axis int, area int, n bigint")
        summed = rows.groupBy("axis", "area").agg(F.sum("n").alias("n"))
        axis, area, n = (column.to_numpy() for column in carry_out(summed.toArrow).columns)
        found = []
        for number, known in enumerate(self.tree.axes):
            of_axis = np.zeros(known.hierarchy.n_areas(known.hierarchy.depth), np.int64)
            of_axis[area[axis == number]] = n[axis == number]
            found.append(of_axis)
        return found

    def __repr__(self) -> str:
        return f"SparkTruth({len(self.tree.axes)} axes, confidential)"
