"""Contribution bounding as Spark operations: the same choice as `inftda.ingest.bounding`.

A person's trips are put in the order of SHA-256(secret, areas, copy, person) and the first m
are kept. The order is a function of the row and the secret, so a task that runs twice
keeps the same trips. The secret is joined on as a row of its own: as a literal it would stand
in the text of the plan, which Spark writes to its logs.
"""

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

from inftda.engines.spark.table import Table
from inftda.errors import IngestError
from inftda.ingest.bounding import MAX_COPIES, Bounding, copies_message, exactly_message
from inftda.privacy.unit import PrivacyUnit


def group_by_person(placed: DataFrame, areas: list[str], unit: PrivacyUnit) -> DataFrame:
    """Trips of each person between the same areas; one if the unit says different trips.

    Rows with a flaw have no person and are counted as they are.
    """
    copies = F.try_sum("n")
    if unit.distinct:
        some = F.when(F.max("n") > 0, F.lit(1)).otherwise(0)
        copies = F.when(F.col(areas[0]) < 0, copies).otherwise(some)
    return placed.groupBy("person", *areas).agg(copies.cast("bigint").alias("n"))


def keep_bounded(
    personal: DataFrame, areas: list[str], *, table: Table, bounding: Bounding
) -> DataFrame:
    """At most `unit.trips` trips of each person.

    Args:
        personal: what `group_by_person` gives, without flaws.
        areas: names of the area columns.
        table: what is read, for messages.
        bounding: how many trips of a person to keep.

    Returns:
        The columns of `areas` and `n`; leaves may repeat.

    Raises:
        IngestError: a person has another number of trips than the unit says exactly.

    Privacy:
        As `inftda.ingest.bounding.fetch_bounded`: whether a trip is kept depends on the same
        person's trips only.
    """
    unit = bounding.unit
    too_many = personal.where(F.col("n").isNull() | (F.col("n") > MAX_COPIES))
    if table.attempt(lambda: too_many.head(1)):
        raise IngestError(copies_message(table.label))
    if unit.root_is_public:
        others = personal.groupBy("person").agg(F.sum("n").alias("n"))
        if table.attempt(lambda: others.where(F.col("n") != unit.trips).head(1)):
            raise IngestError(exactly_message(unit, table.label))
        return personal.select(*areas, "n")
    return _choose(personal, areas, unit.trips, bounding.secret())


def _choose(personal: DataFrame, areas: list[str], most: int, secret: str) -> DataFrame:
    key = personal.sparkSession.createDataFrame(pa.table({"secret": [secret]}))
    trips = personal.where(F.col("n") > 0).select(
        "person", *areas, F.explode(F.sequence(F.lit(1), F.col("n"))).alias("copy")
    )
    # The person comes last and all before it are numbers: different trips, different text.
    text = F.concat_ws(",", "secret", *areas, "copy", F.col("person").cast("string"))
    order = Window.partitionBy("person").orderBy("place")
    return (
        trips.crossJoin(F.broadcast(key))
        .withColumn("place", F.sha2(text.cast("binary"), 256))
        .withColumn("rank", F.row_number().over(order))
        .where(F.col("rank") <= most)
        .select(*areas, F.lit(1).cast("bigint").alias("n"))
    )
