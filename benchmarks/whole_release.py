"""A whole release beside DuckDB sorting and writing the same table, as processes, in one run.

python benchmarks/whole_release.py [--quick] [--json]

Both start from Parquet on disk and end with Parquet on disk, start-up included, and run in turn,
so that both meet the same machine; the shortest of each counts. Kernels are compiled before;
what compiling them takes on a new machine is measured apart, and so is start-up alone.
"""

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

import measure

REPEATS = 5
#: (country, epsilon)
CASES = (
    (measure.MUNICIPALITIES, 1),
    (measure.TRACTS, 1),
    (measure.SECTIONS, 1),
    (measure.SECTIONS, 10),
)
QUICK_CASES = ((measure.TINY, 1),)
#: Part of the budget for cross tables.
PART = 0.08
#: A release should take at most this many times as long.
TARGET = 2


def compare(given, folder, *, epsilon, repeats):
    """Time a release, a release without cross tables, and DuckDB in turn."""
    out, sorted_file = folder / "release", folder / "sorted.parquet"
    script = Path(__file__).with_name("sort_and_write.py")
    command = [sys.executable, script, given.flows, given.areas, sorted_file]
    measure.release(given, out, epsilon=epsilon)  # compiles, fills the file cache
    releases, plain, sorts = [], [], []
    for _ in range(repeats):
        plain.append(measure.release(given, out, "--cross-tables", 0, epsilon=epsilon))
        releases.append(measure.release(given, out, "--cross-tables", PART, epsilon=epsilon))
        sorts.append(measure.timed(command))
    seconds, plain_seconds, sort_seconds = (
        min(one.seconds for one in runs) for runs in (releases, plain, sorts)
    )
    return {
        "case": given.title,
        "epsilon": epsilon,
        "pairs": given.pairs,
        "flows": pq.ParquetFile(out / "flows.parquet").metadata.num_rows,
        "seconds": seconds,
        "peak_gb": max(one.peak_gb for one in releases),
        "plain_seconds": plain_seconds,
        "plain_peak_gb": max(one.peak_gb for one in plain),
        "sort_seconds": sort_seconds,
        "sort_peak_gb": max(one.peak_gb for one in sorts),
        "ratio": seconds / sort_seconds,
        "plain_ratio": plain_seconds / sort_seconds,
    }


def start_up(given, folder):
    """Seconds until help is shown; and of a first release, nothing compiled, and a second."""
    kernels = folder / "kernels"
    shutil.rmtree(kernels, ignore_errors=True)
    first, second = (
        measure.release(given, folder / "release", NUMBA_CACHE_DIR=str(kernels)).seconds
        for _ in range(2)
    )
    help_seconds = min(measure.run("--help").seconds for _ in range(REPEATS))
    return {"help_seconds": help_seconds, "first_seconds": first, "second_seconds": second}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tiny country, once")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for country, epsilon in QUICK_CASES if given.quick else CASES:
            table = measure.table(country, folder)
            repeats = 1 if given.quick else REPEATS
            rows.append(compare(table, folder, epsilon=epsilon, repeats=repeats))
        result = {
            "rows": rows,
            "start_up": start_up(
                measure.table(measure.TINY if given.quick else measure.MUNICIPALITIES, folder),
                folder,
            ),
        }
    if given.json:
        print(json.dumps(result))
        return
    for row in rows:
        print(
            f"{row['case']}, epsilon {row['epsilon']}: {row['seconds']:.2f} s, "
            f"{row['peak_gb']:.2f} GB; without cross tables {row['plain_seconds']:.2f} s, "
            f"{row['plain_peak_gb']:.2f} GB; DuckDB {row['sort_seconds']:.2f} s; ratios "
            f"{row['ratio']:.2f} and {row['plain_ratio']:.2f} (at most {TARGET})"
        )
    print(result["start_up"])


if __name__ == "__main__":
    main()
