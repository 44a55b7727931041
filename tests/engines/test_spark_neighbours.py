"""On Spark, too, one row more changes what is read of that row, and of nobody else's."""

import pytest

pytest.importorskip("pyspark", reason="pyspark is missing: pip install 'inftda[spark]'")

from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from inftda.engines.spark.reading import read_leaves
from inftda.engines.spark.session import settings as spark_settings
from inftda.leaves import Leaves
from neighbour_tables import (
    RANDOM,
    UnmadeError,
    check_neighbours,
    further_rows,
    make,
    outcome,
    spec_of,
    tables,
)


def read(spark, kind, rows, folder, *, is_bounded):
    source = make("pyarrow" if kind == "a frame" else kind, rows, folder)
    if kind == "a frame":
        try:
            source = spark.createDataFrame(source)
        except Exception as problem:
            raise UnmadeError from problem

    def collect():
        leaves = read_leaves(spark, source, spec_of(is_bounded=is_bounded), random_source=RANDOM)
        try:
            *areas, counts = (column.to_numpy() for column in leaves.frame.toArrow().columns)
        finally:
            leaves.close()
        return Leaves(tuple(areas), counts)

    with spark_settings(spark):
        return outcome(collect)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["a frame", "pandas", "CSV", "Parquet", "a folder, the row first"])
@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.function_scoped_fixture],
)
@given(rows=tables(), row=further_rows, is_bounded=st.booleans())
def test_a_further_row_changes_nothing_for_anybody_else(  # noqa: PLR0917 - by name
    spark, tmp_path_factory, kind, rows, row, is_bounded
):
    try:
        before, after = (
            read(spark, kind, table, tmp_path_factory.mktemp("table"), is_bounded=is_bounded)
            for table in (rows, [*rows, row])
        )
    except UnmadeError:
        reject()
    check_neighbours(before, after)
