"""Time and memory of a release over numbers of trips and of geographic levels.

python benchmarks/growth.py [--quick] [--json]
"""

import argparse
import json
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

import measure

REPEATS = 3
#: (trips, geographic levels)
CASES = (*((10**power, 3) for power in (5, 6, 7, 8)), (10**7, 4), (10**7, 5))
QUICK_CASES = ((10**4, 3), (10**5, 3))


def grow(folder, cases, repeats):
    rows = []
    for trips, levels in cases:
        country = measure.Country(f"{trips} {levels}", measure.SECTIONS.sizes[:levels], trips)
        given, out = measure.table(country, folder), folder / "release"
        measure.release(given, out)
        runs = [measure.release(given, out) for _ in range(repeats)]
        rows.append(
            {
                "trips": trips,
                "levels": levels,
                "areas": country.sizes[-1],
                "pairs": given.pairs,
                "flows": pq.ParquetFile(out / "flows.parquet").metadata.num_rows,
                "seconds": min(one.seconds for one in runs),
                "peak_gb": max(one.peak_gb for one in runs),
            }
        )
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small tables, once")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    cases, repeats = (QUICK_CASES, 1) if given.quick else (CASES, REPEATS)
    with tempfile.TemporaryDirectory() as name:
        rows = grow(Path(name), cases, repeats)
    if given.json:
        print(json.dumps({"rows": rows}))
        return
    for row in rows:
        print(f"{row['trips']:>11,} trips, {row['levels']} levels: {row['seconds']:.2f} s")


if __name__ == "__main__":
    main()
