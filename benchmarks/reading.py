"""How long trip rows take to become leaf counts, beside a plain GROUP BY in the same run.

Run `python benchmarks/reading.py [--rows N] [--areas N] [--folder DIR] [--json]`. A Parquet file
of trips with few large and many small areas and mostly short ways is written to a temporary
folder and removed again (about 3 bytes a row). The plain GROUP BY is what DuckDB does with that
file by default: count trips by the two codes, and hand over the result as Arrow. Both are run in
turn, and the shortest of each is compared. With `--bounded`, trips also have persons (four each
on average) of whom at most two trips are kept, beside a GROUP BY of the same columns.
"""

import argparse
import json
import platform
import resource
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from inftda.hierarchy import Hierarchy
from inftda.privacy.unit import Unit
from inftda.reading import Columns, read_leaves
from inftda.tree import Axis

ROWS, AREAS, REPEATS = 20_000_000, 8_000, 3
BLOCK = 2_000_000
TARGET = 1.5
#: Trips a person makes on average, and how many are kept.
TRIPS, KEPT = 4, 2


def write_trips(path, codes, n_rows, *, has_persons):
    """Trips whose origins are Pareto-distributed and whose destinations are mostly near."""
    rng = np.random.default_rng(1)
    n_areas = len(codes)
    names = ["origin", "destination"] + ["person"] * has_persons
    types = [pa.string(), pa.string()] + [pa.int64()] * has_persons
    with pq.ParquetWriter(path, pa.schema(zip(names, types, strict=True))) as writer:
        for start in range(0, n_rows, BLOCK):
            n = min(BLOCK, n_rows - start)
            rank = np.minimum(rng.pareto(1.2, n) * n_areas / 200, n_areas - 1).astype(np.int64)
            origin = rank * 7_919 % n_areas
            way = np.clip(2 * rng.pareto(0.9, n), 0, n_areas).astype(np.int64)
            destination = (origin + rng.choice([-1, 1], n) * way) % n_areas
            columns = [codes.take(pa.array(end)) for end in (origin, destination)]
            if has_persons:
                columns.append(rng.integers(max(n_rows // TRIPS, 1), size=n))
            writer.write_table(pa.table(columns, names=names), row_group_size=BLOCK // 2)


def best_of_each(runs):
    """The shortest time of several runs in turn, so that whatever interferes hits all alike."""
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(REPEATS):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def group_plainly(path, columns):
    """A GROUP BY and nothing else."""
    with duckdb.connect() as connection:
        query = f"SELECT {columns}, count(*) AS n FROM read_parquet('{path}') GROUP BY ALL"
        return connection.sql(query).to_arrow_table().num_rows


def measure(folder, *, n_rows, n_areas, is_bounded):
    codes = pa.array([f"{i:09d}" for i in range(n_areas)])
    areas = Hierarchy.read({"area": codes})
    axes = [Axis("origin", areas), Axis("destination", areas)]
    path = Path(folder) / "trips.parquet"
    write_trips(path, codes, n_rows, has_persons=is_bounded)
    unit = Unit("add-remove", trips=KEPT)
    meaning = Columns(person="person" if is_bounded else None)
    columns = "origin, destination" + (", person" if is_bounded else "")
    # The first reading also warms the file cache.
    n_pairs = len(read_leaves(path, meaning, axes, unit=unit).counts)
    peak_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    seconds = best_of_each(
        {
            "plain": lambda: group_plainly(path, columns),
            "read": lambda: read_leaves(path, meaning, axes, unit=unit),
        }
    )
    return {
        "rows": n_rows,
        "areas": n_areas,
        "pairs": n_pairs,
        "bounded": is_bounded,
        "plain_seconds": round(seconds["plain"], 3),
        "read_seconds": round(seconds["read"], 3),
        "ratio": round(seconds["read"] / seconds["plain"], 3),
        "million_rows_per_second": round(n_rows / seconds["read"] / 1e6, 1),
        "peak_gb": round(peak_gb, 2),
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "duckdb": duckdb.__version__,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=ROWS)
    parser.add_argument("--areas", type=int, default=AREAS)
    parser.add_argument("--folder", help="where the file is made; the temporary folder by default")
    parser.add_argument("--bounded", action="store_true", help="with persons")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        result = measure(folder, n_rows=given.rows, n_areas=given.areas, is_bounded=given.bounded)
    if given.json:
        print(json.dumps(result, indent=2))
        return
    print(
        f"{result['rows']:,} trips, {result['areas']:,} areas, {result['pairs']:,} pairs: "
        f"plain GROUP BY {result['plain_seconds']} s, reading {result['read_seconds']} s"
        f"{' with bounding' if result['bounded'] else ''}, ratio {result['ratio']}"
        f"{'' if result['bounded'] else f' (target: at most {TARGET})'}, "
        f"peak {result['peak_gb']} GB"
    )


if __name__ == "__main__":
    main()
