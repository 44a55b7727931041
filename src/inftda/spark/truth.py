"""The truth on a cluster: leaves that stay with the executors, and a few first levels here.

This is the only module of the Spark engine that holds the truth on the driver: sums over the
first levels, which have few nodes, trips of single areas, and the total. The leaves stay where
they are.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from inftda.spark import tasks
from inftda.spark.packing import PACKED, Batches, Made, gather, pack_table, unpack
from inftda.spark.session import carry_out, sent
from inftda.tree import Tree, TreeLevel
from inftda.truth import Truth

#: What `pack_leaves` gives.
LEAF_CELLS: Final = f"flaw int, total decimal(38, 0), {PACKED} binary"
_TYPES: Final = [pa.int32(), pa.decimal128(38, 0), pa.binary()]


@dataclass(frozen=True, eq=False)
class SparkLeaves:
    """The confidential leaf counts: a row for each leaf with trips, which may repeat, in any order.

    Attributes:
        frame: cells (see `packing`) with the columns area_0, area_1, ... (int32, depth-first
            numbers of the finest areas) and `n` (int64, above zero), kept by the executors.
        total: number of trips.
        forget: lets the executors forget the leaves.
    """

    frame: DataFrame
    total: int
    forget: Callable[[], object]

    def __repr__(self) -> str:
        return "SparkLeaves(confidential)"


def pack_leaves(batches: Batches) -> Made:
    """Leaves in cells, and what the driver may know of them: flaws, and sums.

    Args:
        batches: areas and `n`; a flawed row has minus the flaw as first area.
    """
    for table in gather(batches):
        found = list(_described(table))
        columns = zip(*found, strict=True)
        yield pa.RecordBatch.from_arrays(
            [pa.array(column, kind) for column, kind in zip(columns, _TYPES, strict=True)],
            names=["flaw", "total", PACKED],
        )


def _described(table: pa.Table) -> Iterator[tuple[int, Decimal, bytes | None]]:
    flaw = np.maximum(-table.column(0).to_numpy(), 0)
    n = table["n"].to_numpy()
    for kind in np.unique(flaw).tolist():
        # Sums of int64 may need more than 64 bits.
        low, high = (int((part[flaw == kind]).sum()) for part in (n & 0xFFFFFFFF, n >> 32))
        rows = table.filter(pa.array((flaw == 0) & (n > 0))) if kind == 0 else None
        yield kind, Decimal(low + (high << 32)), None if rows is None else pack_table(rows)


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
    def trunk(self) -> Truth:
        """True counts of the levels down to `trunk_end`.

        Finer levels, and the margins, do not hold true counts.
        """
        end = self.trunk_end
        frame = self.leaves.frame
        names = [f"area_{axis}" for axis in range(len(self.tree.axes))]
        schema = StructType([*(StructField(name, IntegerType()) for name in names)])
        with sent(frame.sparkSession, end) as level:

            def climb(batches: Batches) -> Made:
                return tasks.climb(level.value, unpack(batches))

            nodes = frame.mapInArrow(climb, schema.add("n", LongType()))
            summed = nodes.groupBy(*names).agg(F.sum("n").alias("n"))
            *areas, n = (column.to_numpy() for column in carry_out(summed.toArrow).columns)
        # Each node is represented by its first leaf.
        leaves = [
            axis.hierarchy.descendant_offsets(depth, axis.hierarchy.depth)[numbers.astype(np.int32)]
            for axis, depth, numbers in zip(end.axes, end.depths, areas, strict=True)
        ]
        return Truth.from_leaves(self.tree, leaves, n.astype(np.int64))

    @cached_property
    def margins(self) -> list[NDArray[np.int64]]:
        """int64[finest areas] for each axis: the true trips of every area."""
        sizes = [axis.hierarchy.n_areas(axis.hierarchy.depth) for axis in self.tree.axes]

        def sum_up(batches: Batches) -> Made:
            return tasks.margins(sizes, unpack(batches))

        rows = self.leaves.frame.mapInArrow(sum_up, "axis int, area int, n bigint")
        summed = rows.groupBy("axis", "area").agg(F.sum("n").alias("n"))
        axis, area, n = (column.to_numpy() for column in carry_out(summed.toArrow).columns)
        found = []
        for number, size in enumerate(sizes):
            of_axis = np.zeros(size, np.int64)
            of_axis[area[axis == number]] = n[axis == number]
            found.append(of_axis)
        return found

    def __repr__(self) -> str:
        return f"SparkTruth({len(self.tree.axes)} axes, confidential)"
