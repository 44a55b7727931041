"""What a release takes before it does anything, beside loading the libraries it is built on.

python benchmarks/start_up.py [--quick] [--json] [--before FOLDER]

A release of a tiny country has nothing to do but to start: load libraries and kernels, plan,
open and write files. It is compared with a process that only loads numpy, DuckDB and pyarrow.
Processor seconds are compared, in turn and the least of each, so that a busy machine matters
little. With --before the source of another version (its folder `src`) is measured as well.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

import measure

REPEATS = 9
LIBRARIES = "import numpy, duckdb, pyarrow"


def processor_seconds(command, variables):
    """Of one process and all it starts. Fails if it fails."""
    # Whoever forbids Python to keep what it compiled waits for that, which is not ours.
    environment = {**os.environ, **variables}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def processes(folder, before):
    """Name to command and variables."""
    given = measure.table(measure.TINY, folder)
    release = [
        sys.executable, "-m", "inftda", "release", str(given.flows), "--areas", str(given.areas),
        "--epsilon", "1", "--delta", "1e-8", "--out", str(folder / "out"), "--quiet", "--force",
    ]  # fmt: skip
    cases = {
        LIBRARIES: ([sys.executable, "-c", LIBRARIES], {}),
        "inftda --help": ([sys.executable, "-m", "inftda", "--help"], {}),
        "a release of a tiny country": (release, {}),
    }
    if before:
        cases["the same by the other version"] = (release, {"PYTHONPATH": before})
    return cases


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="once each")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--before", help="source folder of another version")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        cases = processes(Path(name), given.before)
        for case in cases.values():  # compiles, fills the file cache
            processor_seconds(*case)
        seconds = dict.fromkeys(cases, float("inf"))
        for _ in range(1 if given.quick else REPEATS):
            for case, process in cases.items():
                seconds[case] = min(seconds[case], processor_seconds(*process))
    rows = [
        {"case": case, "seconds": spent, "ratio": spent / seconds[LIBRARIES]}
        for case, spent in seconds.items()
    ]
    if given.json:
        print(json.dumps({"rows": rows}))
        return
    for row in rows:
        print(f"{row['case']:40} {row['seconds']:.2f} s  {row['ratio']:.2f}")


if __name__ == "__main__":
    main()
