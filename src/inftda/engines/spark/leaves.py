"""The truth on a cluster: non-zero leaf counts as a Spark frame that is kept by the executors.

Of it the driver sees sums over the first levels, which it noises, and whether rows are
flawed; the leaves stay where they are.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from inftda.engines.spark.packing import PACKED, Batches, Made, gather, pack_table

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

    def close(self) -> None:
        """Let the executors forget the leaves."""
        self.forget()

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
