"""The local engine beside Spark on the same table with 1 and 2 workers, and what that says of
a release of 10 billion rows on a cluster.

python benchmarks/spark.py [--rows N] [--json]

Times are of a process that has made a release before: Java is warm, kernels are compiled.
Processor seconds are those of all processes that took part, so they hardly depend on what else
the machine does. Costs a row, a leaf and a draw follow from two tables of different size, so that
what every release costs is left out.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import measure
from inftda.counts import Counts
from inftda.engines.local import LocalEngine
from inftda.engines.spark import SparkEngine
from inftda.engines.spark.drawing import ON_EXECUTORS
from inftda.engines.spark.session import PRIVATE, QUIET, without_pandas_warning
from inftda.experiments.country import make_country
from inftda.hierarchy import Hierarchy
from inftda.mechanisms.base import Setting
from inftda.mechanisms.catalogue import mechanism_named
from inftda.noise.discrete_gaussian import DiscreteGaussian
from inftda.noise.entropy import SecureSource
from inftda.privacy.plan import make_plan
from inftda.privacy.unit import PrivacyUnit
from inftda.publication.folder import FlowsWriter
from inftda.reading import TableSpec, read_leaves
from inftda.tree import Tree

BUDGET = {"epsilon": 1, "delta": 1e-8}
MEMORY_MB = 4096
#: What is estimated: a year of mobile-phone trips, see the design.
YEAR = {"rows": 10_000_000_000, "leaves": 500_000_000, "draws": 10_000_000_000}
CLUSTER_CORES = 20 * 16
#: Share of the cores that is at work on average: stragglers, shuffles, waiting for disks.
UTILISATION = 0.5
#: How many times smaller the other table is.
SMALLER = 5
PARTS = ("warm-up", "small", "table")
SIZE_OF = {"warm-up": "small", "small": "small", "table": "table"}
N_FILES = 8


class Clock:
    """Wall-clock and processor seconds of this process and all that it started."""

    def __init__(self):
        self.laps = {}
        self.restart()

    def restart(self):
        self.wall, self.processor = time.perf_counter(), processor_seconds()

    def lap(self, name):
        wall, processor = time.perf_counter(), processor_seconds()
        self.laps[name] = {"seconds": wall - self.wall, "processor": processor - self.processor}
        self.wall, self.processor = wall, processor


def processor_seconds():
    parents, used = {}, {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = file.read_text().rpartition(")")
        except OSError:
            continue
        fields = rest.split()
        number = int(name.split()[0])
        parents[number] = int(fields[1])
        used[number] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return sum(used[number] for number in parents if _is_ours(number, parents))


def _is_ours(number, parents):
    while number and number != os.getpid():
        number = parents.get(number, 0)
    return number == os.getpid()


def write_trips(folder, rows):
    """A row for every trip of a country with census sections, in any order, in some files."""
    country = make_country(measure.SECTIONS, rows)
    codes = country.areas.codes(country.areas.depth)
    trips = np.repeat(np.arange(len(country.count)), country.count)
    np.random.default_rng(1).shuffle(trips)
    (folder / "trips").mkdir(parents=True)
    for number, part in enumerate(np.array_split(trips, N_FILES)):
        ends = {"origin": country.origin[part], "destination": country.destination[part]}
        columns = {
            name: pa.DictionaryArray.from_arrays(pa.array(numbers), codes)
            for name, numbers in ends.items()
        }
        pq.write_table(pa.table(columns), folder / "trips" / f"{number}.parquet")
    pq.write_table(country.areas.to_table(), folder / "areas.parquet")


def load(folder):
    areas = Hierarchy.read(folder / "areas.parquet")
    tree = Tree.destination_first(areas)
    return tree, [("origin", areas), ("destination", areas)], str(folder / "trips")


def settings(tree, engine, progress):
    plan = make_plan(tree, PrivacyUnit(), **BUDGET)
    return plan, Setting(plan.spending(), DiscreteGaussian, SecureSource(), engine, progress)


def run_local(folder, threads, out):
    tree, axes, trips = load(folder)
    draws = {}
    clock = Clock()
    leaves = read_leaves(trips, TableSpec(axes=axes), threads=threads)
    counts = Counts.from_leaves(tree, leaves.areas, leaves.counts)
    clock.lap("read")
    engine = LocalEngine(threads)
    _, setting = settings(tree, engine, lambda level, _, total: draws.update({level: total}))
    writer = FlowsWriter(out, tree)
    for block in mechanism_named("inftda").run(counts, setting):
        writer.write(block.areas, block.value)
    writer.close()
    clock.lap("draw")
    sizes = {"leaves": len(leaves.counts), "draws": sum(draws.values()), "flows": writer.n_flows}
    return {**sizes, **clock.laps}


def run_spark(folder, workers, out):
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_SUBMIT_OPTS"] = f"-Dlog4j2.configurationFile={QUIET}"
    builder = SparkSession.builder.master(f"local-cluster[{workers},1,{MEMORY_MB}]")
    own = {"spark.driver.host": "127.0.0.1", "spark.executor.memory": f"{MEMORY_MB}m"}
    for name, value in (PRIVATE | own).items():
        builder = builder.config(name, value)
    with without_pandas_warning():
        session = builder.getOrCreate()
    results = {}
    for part in PARTS:
        tree, axes, trips = load(folder / SIZE_OF[part])
        clock = Clock()
        with SparkEngine(session).started() as started:
            leaves = started.read(
                trips, axes, count="auto", person=None, unit=PrivacyUnit(), unplaceable="error",
                random_source=SecureSource(),
            )  # fmt: skip
            clock.lap("read")

            def note(level, done, _, clock=clock):
                if level == ON_EXECUTORS:
                    clock.lap("executors" if done else "driver")

            plan, setting = settings(tree, LocalEngine(), note)
            _, flows = started.write(
                leaves, out / part, tree=tree, plan=plan, mechanism=mechanism_named("inftda"),
                setting=setting,
            )  # fmt: skip
        results[part] = {"flows": flows, **clock.laps}
    session.stop()
    return results


def compare(rows):
    """One row for each engine and number of cores, each run in a process of its own."""
    found = []
    with tempfile.TemporaryDirectory() as temporary:
        for part, n in (("small", rows // SMALLER), ("table", rows)):
            write_trips(Path(temporary) / part, n)
        for engine in ("local", "spark"):
            for cores in (1, 2):
                command = [sys.executable, __file__, "--one", engine, str(cores), temporary]
                print(f"{engine} {cores} ...", file=sys.stderr, flush=True)
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                parts = json.loads(done.stdout.splitlines()[-1])
                found.append({"engine": engine, "cores": cores, **parts})
    return found


def run_one(engine, cores, folder):
    with tempfile.TemporaryDirectory() as out:
        if engine == "spark":
            return run_spark(Path(folder), cores, Path(out))
        return {
            part: run_local(Path(folder) / SIZE_OF[part], cores, Path(out) / part) for part in PARTS
        }


def estimate(found, rows):
    """Processor time a row, a leaf and a draw on Spark, and what a year would take."""
    local, spark = found[0], found[-1]

    def more(run, phase):
        """Processor nanoseconds that the large table takes beyond the small one."""
        return (run["table"][phase]["processor"] - run["small"][phase]["processor"]) * 1e9

    leaves = local["table"]["leaves"] - local["small"]["leaves"]
    draws = local["table"]["draws"] - local["small"]["draws"]
    costs = {
        "row": more(spark, "read") / (rows - rows // SMALLER),
        # One pass over the leaves: from Java to Python, up the tree, summed up in Java.
        "leaf, summed up": more(spark, "driver") / leaves,
        # What routing, sorting and writing take beyond the draws.
        "leaf, shipped": (more(spark, "executors") - more(local, "draw")) / leaves,
        "draw": more(local, "draw") / draws,
    }
    times = dict(
        zip(costs, (YEAR["rows"], YEAR["leaves"], YEAR["leaves"], YEAR["draws"]), strict=True)
    )
    seconds = {
        name: times[name] * cost / 1e9 / (CLUSTER_CORES * UTILISATION)
        for name, cost in costs.items()
    }
    return {"costs_ns": costs, "seconds": seconds, "minutes": sum(seconds.values()) / 60}


def show(result):
    print(f"{result['rows']:,} rows; wall-clock (processor) seconds")
    print("engine  cores  read           first levels   the rest       flows")
    for row in result["runs"]:
        table = row["table"]
        parts = [table["read"], table.get("driver"), table.get("executors") or table.get("draw")]
        cells = [
            f"{part['seconds']:6.1f} ({part['processor']:5.1f})" if part else "-" for part in parts
        ]
        shown = "  ".join(f"{cell:13}" for cell in cells)
        print(f"{row['engine']:6}  {row['cores']:5}  {shown}  {table['flows']:,}")
    year = result["year"]
    print("processor ns:", ", ".join(f"{ns:.0f} a {name}" for name, ns in year["costs_ns"].items()))
    parts = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in year["seconds"].items())
    print(
        f"{YEAR['rows']:,} rows, {YEAR['leaves']:,} pairs, {YEAR['draws']:,} draws on "
        f"{CLUSTER_CORES} cores at {UTILISATION:.0%} use: {parts}; {year['minutes']:.1f} minutes"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000, help="trips in the table")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        engine, cores, folder = given.one
        print(json.dumps(run_one(engine, int(cores), folder)))
        return
    runs = compare(given.rows)
    result = {"benchmark": "spark", "rows": given.rows, "runs": runs}
    result["year"] = estimate(runs, given.rows)
    if given.json:
        print(json.dumps(result))
    else:
        show(result)


if __name__ == "__main__":
    main()
