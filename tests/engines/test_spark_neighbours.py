"""On Spark, too, one row more changes what is read of that row, and of nobody else's."""

from functools import partial

import pytest

pytest.importorskip("pyspark", reason="pyspark is missing: pip install 'inftda-od[spark]'")

from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from spark_leaves import collect

from inftda.spark.reading import read_leaves
from inftda.spark.session import settings as spark_settings
from neighbour_tables import (
    AXES,
    RANDOM,
    UNIT,
    UnmadeError,
    check_neighbours,
    columns_of,
    further_rows,
    make,
    neighbours,
    outcome,
    tables,
)


def make_source(spark, kind, rows, folder):
    if kind != "a frame":
        return make(kind, rows, folder)
    table = make("pyarrow", rows, folder)
    try:
        return spark.createDataFrame(table)
    except Exception as problem:
        raise UnmadeError from problem


def read(spark, source, *, is_bounded):
    columns = columns_of(is_bounded=is_bounded)
    with spark_settings(spark):
        return outcome(
            lambda: collect(
                read_leaves(spark, source, columns, AXES, unit=UNIT, random_source=RANDOM)
            )
        )


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["a frame", "pandas", "Parquet", "a folder, the row first"])
@settings(
    max_examples=12,
    derandomize=True,
    deadline=None,
    # A reading takes a second here, and a smaller table would take hundreds.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.function_scoped_fixture],
)
@given(rows=tables(), row=further_rows, is_bounded=st.booleans())
@example(rows=[(1, 1, 0, 1000)], row=(None, "1", 1, "zoe"), is_bounded=True)
@example(rows=[(1, 1, 0, 1000)], row=(1, 1, 1, "zoe"), is_bounded=False)
@example(rows=[("1", "1", "0", "ann")], row=("1", "1", b"+\xe6", "zoe"), is_bounded=False)
def test_a_further_row_changes_nothing_for_anybody_else(  # noqa: PLR0917 - by name
    spark, tmp_path_factory, kind, rows, row, is_bounded
):
    made = partial(make_source, spark, kind)
    sources = neighbours(made, rows, row, tmp_path_factory.mktemp("tables"))
    check_neighbours(*(read(spark, source, is_bounded=is_bounded) for source in sources))
