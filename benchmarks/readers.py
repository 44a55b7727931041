"""What readers run on a release, as processes, beside the release itself in the same run.

python benchmarks/readers.py [--quick] [CASE ...]

A release with all measurements, the same with totals only, and then each command as a user would
type it, in turn; the least processor time of each counts, and its largest memory. A tiny country
comes first, so that kernels are compiled.
"""

import json
import shutil
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

import measure

REPEATS = 1
COUNTRIES = (measure.MUNICIPALITIES, measure.TRACTS, measure.SECTIONS)
QUICK_COUNTRIES = (measure.TINY,)
#: Processor time of each command should be at most so many times that of the release.
TARGETS = {
    "report": 2.5, "query --intervals": 1.5, "change": 3, "export": 2,
    "estimate": 2.5, "verify": 1.3,
}  # fmt: skip
#: A release with all measurements beside one with totals only; memory of a reader beside a release.
MEASURED, MEMORY = 1.15, 2


def commands(released, other, out, centroids):
    """What readers type."""
    located = ["--centroids", centroids] if centroids.exists() else []
    return {
        "report": ["report", released, "--out", out / "page.html", "--quiet", *located],
        "query --intervals": ["query", released, "--intervals", "--out", out / "flows.parquet"],
        "change": ["change", released, other, "--out", out / "change.parquet"],
        "export": ["export", released, "--to", "csv", "--out", out / "export", "--quiet"],
        "estimate": ["estimate", released, "--out", out / "estimate", "--quiet", *located],
        "verify": ["verify", released],
    }


def compare(given, folder, repeats):
    """Processor time and memory of the commands, as parts of those of the release."""
    released, totals, other, out = (folder / one for one in ("all", "totals", "other", "out"))
    spent = {}
    for _ in range(repeats):
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        runs = {
            "totals": measure.release(given, totals, "--measurements", "totals"),
            "release": measure.release(given, released),
        }
        if not other.exists():
            measure.release(given, other)
        for name, words in commands(
            released, other, out, given.areas.with_name("centroids.csv")
        ).items():
            runs[name] = measure.run(*words)
        for name, one in runs.items():
            spent.setdefault(name, []).append(one)
    cpu = {name: min(one.cpu_seconds for one in some) for name, some in spent.items()}
    peak = {name: max(one.peak_gb for one in some) for name, some in spent.items()}
    file = released / "measurements.parquet"
    found = {
        "case": given.title,
        "measurements": pq.ParquetFile(file).metadata.num_rows,
        "measurements_mb": file.stat().st_size / 1e6,
        "release_cpu_seconds": cpu["release"],
        "release_peak_gb": peak["release"],
        "measured": cpu["release"] / cpu["totals"],
        "cpu": {name: cpu[name] / cpu["release"] for name in TARGETS},
        "peak": {name: peak[name] / peak["release"] for name in TARGETS},
    }
    for place in (released, totals, other, out):
        shutil.rmtree(place)
    return found


def main():
    parser = measure.options(__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="by default all")
    given = parser.parse_args()
    countries, repeats = (QUICK_COUNTRIES, 1) if given.quick else (COUNTRIES, REPEATS)
    countries = [one for one in countries if not given.cases or one.title in given.cases]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        compare(measure.table(measure.TINY, folder), folder, 1)  # compiles
        rows = [compare(measure.table(one, folder), folder, repeats) for one in countries]
    found = {"rows": rows, "targets": TARGETS, "measured": MEASURED, "memory": MEMORY}
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
