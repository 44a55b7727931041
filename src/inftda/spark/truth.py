"""The truth on a cluster: leaves that stay with the executors, and a few sums here.

This is the only module of the Spark engine that holds the truth on the driver: sums over the
first levels, which have few nodes, trips of single areas, and the total.
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

from inftda.spark import tasks
from inftda.spark.packing import PACKED, Batches, Made, gather, pack_table, unpack
from inftda.spark.session import carry_out, sent, settings
from inftda.tree import Marginal, Tree, TreeLevel
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
        columns = zip(*_described(table), strict=True)
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

    @property
    def trunk(self) -> Truth:
        """True counts of the levels down to `trunk_end`; finer ones have none."""
        return self._sums[0]

    @property
    def margins(self) -> list[NDArray[np.int64]]:
        """int64[finest areas] for each axis: the true trips of every area."""
        return self._sums[1]

    @cached_property
    def _sums(self) -> tuple[Truth, list[NDArray[np.int64]]]:
        """Trunk and margins, in one job."""
        end, axes, frame = self.trunk_end, self.tree.axes, self.leaves.frame
        finest = [axis.hierarchy.depth for axis in axes]
        one_way = [
            tuple(d if i == a else 0 for i, d in enumerate(finest)) for a in range(len(axes))
        ]
        marginals = [Marginal(axes, depths) for depths in (end.depths, *one_way)]
        # Here rows are no cells, and come in large batches.
        session = frame.sparkSession
        with settings(session), sent(session, marginals) as shared:

            def sum_up(batches: Batches) -> Made:
                return tasks.sum_up(shared.value, unpack(batches))

            names = [tasks.KIND, *tasks.area_names(len(axes))]
            schema = ", ".join([*(f"{name} int" for name in names), f"{tasks.COUNT} bigint"])
            rows = frame.mapInArrow(sum_up, schema).groupBy(*names).agg(F.sum(tasks.COUNT))
            kind, *areas, n = (column.to_numpy() for column in carry_out(rows.toArrow).columns)
        # Each node is represented by its first leaf.
        leaves = [
            axis.hierarchy.descendant_offsets(depth, axis.hierarchy.depth)[numbers[kind == 0]]
            for axis, depth, numbers in zip(axes, end.depths, areas, strict=True)
        ]
        margins = []
        for number, (axis, depth) in enumerate(zip(axes, finest, strict=True)):
            of_axis = np.zeros(axis.hierarchy.n_areas(depth), np.int64)
            is_here = kind == number + 1
            of_axis[areas[number][is_here]] = n[is_here]
            margins.append(of_axis)
        return Truth.from_leaves(self.tree, leaves, n[kind == 0]), margins

    def __repr__(self) -> str:
        return f"SparkTruth({len(self.tree.axes)} axes, confidential)"
