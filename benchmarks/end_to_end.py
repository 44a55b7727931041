"""`inftda release` as a process, from Parquet to release folder.

python benchmarks/end_to_end.py [--census] [--growth] [--json]

Cold runs have an empty cache of compiled kernels, as on a new machine. Growth is time and
memory over numbers of trips and of geographic levels, beside the work: draws plus pairs.
"""

import argparse
import json
import shutil
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

import measure

REPEATS = 5


def release(flows, areas, out, *, epsilon=1, env=None):
    shutil.rmtree(out, ignore_errors=True)
    return measure.run(
        "release", flows, "--areas", areas, "--epsilon", epsilon, "--delta", 1e-8,
        "--out", out, "--quiet", env=env,
    )  # fmt: skip


def best(flows, areas, folder, *, repeats=REPEATS, **options):
    """Shortest of several runs, all warm, and the largest peak."""
    out = folder / "release"
    release(flows, areas, out, **options)
    runs = [release(flows, areas, out, **options) for _ in range(repeats)]
    return {
        "seconds": min(seconds for seconds, _ in runs),
        "peak_gb": max(peak for _, peak in runs),
        "pairs": pq.ParquetFile(flows).metadata.num_rows,
        "flows": pq.ParquetFile(out / "flows.parquet").metadata.num_rows,
    }


def cold(flows, areas, folder):
    """One run with no compiled kernels, one with them."""
    env = {"NUMBA_CACHE_DIR": str(folder / "kernels")}
    shutil.rmtree(folder / "kernels", ignore_errors=True)
    first, _ = release(flows, areas, folder / "release", env=env)
    second, _ = release(flows, areas, folder / "release", env=env)
    return {"first_seconds": first, "second_seconds": second, "extra_seconds": first - second}


def growth(folder):
    rows = []
    for trips in (10**5, 10**6, 10**7, 10**8):
        files = measure.write_country(folder / f"t{trips}", measure.MUNICIPALITIES, trips)
        rows.append({"trips": trips, "levels": 3, **best(*files, folder, repeats=1)})
    for levels in (3, 4, 5):
        sizes = measure.SECTIONS[:levels]
        files = measure.write_country(folder / f"l{levels}", sizes, 10**7)
        rows.append({"trips": 10**7, "levels": levels, **best(*files, folder, repeats=1)})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--census", action="store_true", help="census sections")
    parser.add_argument("--growth", action="store_true", help="over trips and levels")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        result = {"benchmark": "end_to_end", "start_up_seconds": measure.run("--help")[0]}
        for case in ("italy_semisynthetic", "us_lodes2018_intracounty"):
            files = measure.data_set(case, folder)
            result[case] = best(*files, folder)
        files = measure.data_set("italy_semisynthetic", folder)
        result["cold"] = cold(*files, folder)
        if given.census:
            files = measure.write_country(folder / "census", measure.SECTIONS, measure.TRIPS)
            result["census"] = [
                {"epsilon": epsilon, **best(*files, folder, repeats=1, epsilon=epsilon)}
                for epsilon in (1, 10)
            ]
        if given.growth:
            result["growth"] = growth(folder)
    print(json.dumps(result, indent=None if given.json else 2))


if __name__ == "__main__":
    main()
