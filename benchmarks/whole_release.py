"""A whole release beside DuckDB sorting and writing the same table, as processes, in one run.

python benchmarks/whole_release.py [--quick]

Both start from Parquet on disk and end with Parquet on disk, start-up included, and run in turn,
so that both meet the same machine; the shortest of each counts. Kernels are compiled before;
what compiling them takes on a new machine is measured apart, and so is start-up alone.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

import measure

REPEATS = 3
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
    is_quick = measure.options(__doc__).parse_args().quick
    cases, repeats = (QUICK_CASES, 1) if is_quick else (CASES, REPEATS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [
            compare(measure.table(country, folder), folder, epsilon=epsilon, repeats=repeats)
            for country, epsilon in cases
        ]
        first, _ = cases[0]
        result = {"rows": rows, "start_up": start_up(measure.table(first, folder), folder)}
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
