"""Tumult Analytics: one count by groups for each level of the tree, with equal parts."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from tables import Task
from tmlt.analytics import AddOneRow, KeySet, QueryBuilder, RhoZCDPBudget, Session

task = Task()
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.driver.memory", "6g")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "4")
    .config("spark.sql.warehouse.dir", str(task.out / "warehouse"))
    .config(
        "spark.driver.extraJavaOptions",
        "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED -Dio.netty.tryReflectionSetAccessible=true",
    )
    .getOrCreate()
)
areas = spark.createDataFrame(
    [tuple(row[level] for level in task.levels) for row in task.areas], task.levels
)
trips = spark.read.parquet(str(task.input / "trips.parquet")).select("origin", "destination")
for end in ("origin", "destination"):
    named = areas.select(*[f.col(level).alias(f"{end}_{level}") for level in task.levels])
    trips = trips.join(f.broadcast(named), trips[end] == named[f"{end}_{task.levels[-1]}"])
trips = trips.drop("origin", "destination")
rho = task.settings["rho of a row"]
session = Session.from_dataframe(
    privacy_budget=RhoZCDPBudget(rho),
    source_id="trips",
    dataframe=trips,
    protected_change=AddOneRow(),
)
tables = task.tree()
for ends in tables:
    columns = {
        f"{name}_{level}": level
        for name, level in zip(("origin", "destination"), ends, strict=True)
        if level != "all"
    }
    keys = KeySet.from_dict({column: task.codes[level] for column, level in columns.items()})
    query = QueryBuilder("trips").groupby(keys).count(name="flow")
    made = session.evaluate(query, privacy_budget=RhoZCDPBudget(rho / len(tables))).toPandas()
    codes = [
        made[f"{name}_{level}"] if level != "all" else ["all"] * len(made)
        for name, level in zip(("origin", "destination"), ends, strict=True)
    ]
    is_finest = ends == (task.levels[-1],) * 2
    task.write(*codes, made["flow"].to_numpy(), "finest" if is_finest else "__".join(ends))
spark.stop()
