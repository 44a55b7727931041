"""The rows of the confidential table with the numbers of their areas, as Spark operations.

Codes become numbers by a join with the (small, broadcast) table of areas, before anything is
grouped: numbers are less to move than codes. A row that cannot be counted does not stop the
job; it carries minus its flaw as first area, so that one pass finds how many there are of
each kind.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

from inftda.engines.spark import columns
from inftda.engines.spark.table import MALFORMED, Table
from inftda.hierarchy import Hierarchy
from inftda.ingest.columns import Flaw
from inftda.ingest.rows import (
    SHOWN_CODES,
    area_lookup,
    check_header,
    check_roles,
    count_column,
    find_outside,
    lost_codes,
)

#: The flaw of a CSV line with another number of cells than the header: reported first of all.
BAD_LINE: Final = len(Flaw) + 1


def area_columns(n_axes: int) -> list[str]:
    """Names of the columns with area numbers."""
    return [f"area_{i}" for i in range(n_axes)]


@dataclass(frozen=True)
class Rows:
    """Rows of the input with area numbers.

    Attributes:
        table: what is read.
        axes: column and hierarchy of each axis.
        frame: `code_i` and `at_i` (null if unknown) for each axis, `person` if there is one,
            `n` trips, and their `flaw`.
        count_name: the count column of the input, or None if every row is one trip.
        outside: code of the area for unknown codes, or None.
    """

    table: Table
    axes: tuple[tuple[str, Hierarchy], ...]
    frame: DataFrame
    count_name: str | None
    outside: str | None

    @classmethod
    def of(
        cls,
        table: Table,
        axes: Sequence[tuple[str, Hierarchy]],
        *,
        count: str | None,
        person: str | None,
        outside: str | None,
    ) -> "Rows":
        """Choose the columns and look the areas up.

        Raises:
            IngestError: a column is missing, has two roles, or cannot hold what it should.
        """
        names = [name for name, _ in axes]
        check_header(table.described, names, count=count, person=person)
        count = count_column(table.described, names, count=count, person=person)
        check_roles(table.described, names, count=count, person=person)
        selected = [
            columns.area_text(table.column(name, role="area codes"), table.label).alias(f"code_{i}")
            for i, name in enumerate(names)
        ]
        n, flaw = F.lit(1), F.lit(0)
        if count is not None:
            n, flaw = columns.count_value(table.column(count, role="counts"), table.label)
        if person is not None:
            group = columns.person_group(table.column(person, role="persons"), table.label)
            selected.append(group.alias("person"))
            flaw = F.when(group.isNull(), int(Flaw.NOBODY)).otherwise(flaw)
        if table.is_csv:
            flaw = F.when(F.col(MALFORMED).isNotNull(), BAD_LINE).otherwise(flaw)
        frame = table.frame.select(*selected, n.cast("bigint").alias("n"), flaw.alias("flaw"))
        return cls(table, tuple(axes), _look_up(frame, axes), count, outside)

    def placed(self, *, is_dropping: bool) -> DataFrame:
        """Rows with the columns of `area_columns`, `person` if there is one, and `n`.

        A row with a flaw has minus the flaw as first area, 0 as the others, nobody as person
        and 1 as `n`.
        """
        numbers = [self._number(i) for i in range(len(self.axes))]
        lost = numbers[0].isNull()
        for number in numbers[1:]:
            lost |= number.isNull()
        status = F.when(F.col("flaw") > 0, F.col("flaw")).when(lost, int(Flaw.UNPLACEABLE))
        frame = self.frame.withColumn("status", status.otherwise(0))
        if is_dropping:
            frame = frame.where(F.col("status") != int(Flaw.UNPLACEABLE))
        is_fine = F.col("status") == 0
        kept = [
            F.when(is_fine, number).otherwise(-F.col("status") if i == 0 else 0).cast("int")
            for i, number in enumerate(numbers)
        ]
        chosen = [e.alias(name) for e, name in zip(kept, area_columns(len(kept)), strict=True)]
        if "person" in frame.columns:
            chosen.append(F.when(is_fine, F.col("person")).alias("person"))
        return frame.select(*chosen, F.when(is_fine, F.col("n")).otherwise(1).alias("n"))

    def describe_lost(self) -> str:
        """Which codes are unknown, the first few of each axis in order, and which are missing."""
        found: list[str] = []
        for i, (name, _) in enumerate(self.axes):
            lost = (
                self.frame.where(F.col(f"at_{i}").isNull())
                .select(f"code_{i}")
                .distinct()
                .orderBy(F.col(f"code_{i}").asc_nulls_first())
                .limit(SHOWN_CODES + 2)
            )
            rows = self.table.attempt(lost.collect)
            found += lost_codes(name, [row[0] for row in rows])
        return "; ".join(found)

    def _number(self, axis: int) -> Expression:
        number = F.col(f"at_{axis}")
        if self.outside is None:
            return number
        fallback = find_outside(*self.axes[axis], self.outside)
        return F.coalesce(number, F.lit(fallback))


def _look_up(frame: DataFrame, axes: Sequence[tuple[str, Hierarchy]]) -> DataFrame:
    session: SparkSession = frame.sparkSession
    tables: dict[int, DataFrame] = {}
    for i, (_, hierarchy) in enumerate(axes):
        if id(hierarchy) not in tables:  # origin and destination often share one
            tables[id(hierarchy)] = session.createDataFrame(area_lookup(hierarchy))
        areas = tables[id(hierarchy)].toDF(f"code_{i}", f"at_{i}")
        frame = frame.join(F.broadcast(areas), f"code_{i}", "left")
    return frame
