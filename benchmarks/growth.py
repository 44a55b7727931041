"""Time and memory of a release over numbers of trips and of geographic levels.

python benchmarks/growth.py [--quick]
"""

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
    is_quick = measure.options(__doc__).parse_args().quick
    cases, repeats = (QUICK_CASES, 1) if is_quick else (CASES, REPEATS)
    with tempfile.TemporaryDirectory() as name:
        print(json.dumps({"rows": grow(Path(name), cases, repeats)}, indent=1))


if __name__ == "__main__":
    main()
