"""Estimates as processes, beside the releases they are made from.

python benchmarks/estimates.py [--quick] [--json]

A release, the same with totals only, and an estimate of it, each as a user
would type it, in turn; the shortest counts. How good estimates are, `inftda experiment` finds
out (`estimates = true`).
"""

import argparse
import json
import shutil
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

import measure

REPEATS = 3
COUNTRIES = (measure.MUNICIPALITIES, measure.TRACTS)
QUICK_COUNTRIES = (measure.TINY,)


def estimate(released, out, centroids):
    """Estimate a release, as a process."""
    shutil.rmtree(out, ignore_errors=True)
    located = ["--centroids", centroids] if centroids.exists() else []
    return measure.run("estimate", released, "--out", out, "--quiet", *located)


def compare(given, folder, repeats):
    """Releases with all measurements and with totals only, and the estimate."""
    released, out = folder / "release", folder / "estimate"
    centroids = given.areas.with_name("centroids.csv")
    measure.release(given, released)
    estimate(released, out, centroids)  # compiles, fills the file cache
    whole, small, estimated = [], [], []
    for _ in range(repeats):
        small.append(measure.release(given, released, "--measurements", "totals"))
        whole.append(measure.release(given, released))
        estimated.append(estimate(released, out, centroids))
    file = released / "measurements.parquet"
    return {
        "case": given.title,
        "measurements": pq.ParquetFile(file).metadata.num_rows,
        "measurements_mb": file.stat().st_size / 1e6,
        "has_locations": centroids.exists(),
        "release_seconds": min(one.seconds for one in whole),
        "totals_seconds": min(one.seconds for one in small),
        "seconds": min(one.seconds for one in estimated),
        "peak_gb": max(one.peak_gb for one in estimated),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tiny country, once")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    countries, repeats = (QUICK_COUNTRIES, 1) if given.quick else (COUNTRIES, REPEATS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [compare(measure.table(one, folder), folder, repeats) for one in countries]
    if given.json:
        print(json.dumps({"rows": rows}))
        return
    for row in rows:
        print(
            f"{row['case']}: release with {row['measurements']:,} measurements "
            f"{row['release_seconds']:.2f} s, with totals {row['totals_seconds']:.2f} s; estimate "
            f"{row['seconds']:.2f} s, {row['peak_gb']:.2f} GB"
        )


if __name__ == "__main__":
    main()
