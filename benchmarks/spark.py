"""Releases on Spark, encrypted and not, beside one machine, and where their time goes.

python benchmarks/spark.py [--quick]

Each in a process of its own, on all cores of this machine: the command line, which starts an
encrypted session, and then sessions that are started here, with a first release (Java and the
workers are cold) and a second. The phases are told by the calls of `progress`, tasks and
shuffles by Spark's own metrics.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import measure

COUNTRIES = (measure.TRACTS, measure.SECTIONS)
QUICK_COUNTRIES = (measure.TINY,)
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "OFF",
    "spark.driver.memory": "6g",
}
ENCRYPTED = {"spark.authenticate": "true", "spark.io.encryption.enabled": "true"}
RUNS = ("first", "second")


class Phases:
    """Seconds between calls of `progress`, by what was being done."""

    def __init__(self):
        self.seconds, self._name, self._last = {}, "reading", time.perf_counter()

    def __call__(self, _level, done, total):
        # On executors a level is one piece of work; what comes after the last is writing.
        on_executors = "writing" if done else "on the executors"
        self.now(on_executors if total == 1 else "on the driver")

    def now(self, name):
        """What went on until now is over; from now on it is `name`."""
        now = time.perf_counter()
        spent = self.seconds.get(self._name, 0) + now - self._last
        self.seconds[self._name], self._name, self._last = spent, name, now


def metrics(session):
    """What Spark's tasks took so far, all cores together."""
    context = session.sparkContext
    store = context._jsc.sc().statusStore()  # noqa: SLF001 - pyspark has no face for metrics
    java = context._gateway  # noqa: SLF001 - likewise
    nothing = java.new_array(java.jvm.double, 0), java.jvm.java.util.ArrayList()
    stages = store.stageList(None, False, False, *nothing)
    stages = [stages.apply(number) for number in range(stages.size())]
    return {
        "task_seconds": sum(stage.executorRunTime() for stage in stages) / 1e3,
        "shuffle_write_seconds": sum(stage.shuffleWriteTime() for stage in stages) / 1e9,
        "shuffle_wait_seconds": sum(stage.shuffleFetchWaitTime() for stage in stages) / 1e3,
        "shuffle_gb": sum(stage.shuffleWriteBytes() for stage in stages) / 1e9,
        "stages": len(stages),
    }


def run_one(flows, areas, *, is_encrypted):
    """Start a session and release twice in it."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - only in its own process

    import inftda  # noqa: PLC0415 - likewise
    from inftda.spark import SparkEngine  # noqa: PLC0415

    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    started = time.perf_counter()
    builder = SparkSession.builder.master("local[*]").appName("benchmark")
    for name, value in (SETTINGS | (ENCRYPTED if is_encrypted else {})).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    found = {"start_up_seconds": time.perf_counter() - started}
    before = dict.fromkeys(metrics(session), 0)
    for name in RUNS:
        with tempfile.TemporaryDirectory() as folder:
            phases, started = Phases(), time.perf_counter()
            made = inftda.release(
                flows, areas, out=Path(folder) / "out", engine=SparkEngine(session),
                progress=phases, **measure.BUDGET,
            )  # fmt: skip
            phases.now("the end")
            seconds = time.perf_counter() - started
        after = metrics(session)
        spent = {key: after[key] - before[key] for key in after}
        before = after
        found[name] = {"seconds": seconds, "phases": phases.seconds, **spent}
    found["flows"] = made.manifest.n_flows
    session.stop()
    return found


def compare(given, folder):
    """One table: one machine, the command line, and sessions with and without encryption."""
    out = folder / "release"
    row = {"case": given.title, "pairs": given.pairs}
    measure.release(given, out)  # compiles, fills the file cache
    for engine in ("local", "spark"):
        row[f"{engine}_process_seconds"] = measure.release(given, out, "--engine", engine).seconds
    shutil.rmtree(out)
    for name in ("encrypted", "plain"):
        command = [sys.executable, __file__, "--one", name, given.flows, given.areas]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        row[name] = json.loads(done.stdout.splitlines()[-1])
    return row


def main():
    parser = measure.options(__doc__)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        kind, flows, areas = given.one
        print(json.dumps(run_one(flows, areas, is_encrypted=kind == "encrypted")))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        countries = QUICK_COUNTRIES if given.quick else COUNTRIES
        rows = [compare(measure.table(one, folder), folder) for one in countries]
    print(json.dumps({"rows": rows}, indent=1))


if __name__ == "__main__":
    main()
