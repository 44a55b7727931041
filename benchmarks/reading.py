"""How long trip rows take to become leaf counts, beside a plain GROUP BY in the same run.

Run `python benchmarks/reading.py [--rows N] [--areas N] [--folder DIR]`. A Parquet file
of trips with few large and many small areas and mostly short ways is written to a temporary
folder and removed again (about 3 bytes a row). The plain GROUP BY is what DuckDB does with that
file by default: count trips by the two codes, and hand over the result as Arrow. Each is run in a
process of its own, in turn, and the shortest time and the largest memory of each are compared.

With `--bounded`, trips also have persons (ten each on average) of whom at most five trips are kept,
with `--once` at most one for each of twelve months, beside a GROUP BY of the same columns; and the
whole release of the table is timed, too.
"""

import argparse
import json
import multiprocessing
import platform
import resource
import shutil
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from inftda.pipeline import release
from inftda.privacy.unit import Unit
from inftda.reading import Columns, read_leaves
from inftda.tree import Axis
from inftda.tree.hierarchy import Hierarchy

ROWS, AREAS, REPEATS = 20_000_000, 8_000, 3
BLOCK = 2_000_000
#: Trips a person makes on average, and how many are kept.
TRIPS, KEPT = 10, 5
MONTHS = 12
#: Areas of a province, and provinces of a region.
NESTED = 20


def write_trips(path, codes, n_rows, *, has_persons):
    """Trips whose origins are Pareto-distributed and whose destinations are mostly near."""
    rng = np.random.default_rng(1)
    n_areas = len(codes)
    months = pa.array([f"{month:02d}" for month in range(1, MONTHS + 1)])
    names = ["origin", "destination"] + ["person", "month"] * has_persons
    types = [pa.string(), pa.string()] + [pa.int64(), pa.string()] * has_persons
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
                columns.append(months.take(pa.array(rng.integers(MONTHS, size=n))))
            writer.write_table(pa.table(columns, names=names), row_group_size=BLOCK // 2)


def make_areas(n_areas):
    codes = [f"{i:09d}" for i in range(n_areas)]
    above = [[f"{i // size:09d}" for i in range(n_areas)] for size in (NESTED**2, NESTED)]
    return {"region": above[0], "province": above[1], "area": codes}


def group_plainly(path, columns):
    """A GROUP BY and nothing else."""
    with duckdb.connect() as connection:
        query = f"SELECT {columns}, count(*) AS n FROM read_parquet('{path}') GROUP BY ALL"
        connection.execute("SET enable_progress_bar = false")
        connection.sql(query).to_arrow_table()


def read(path, n_areas, person, once):
    areas = Hierarchy.read(make_areas(n_areas))
    axes = [Axis("origin", areas), Axis("destination", areas)]
    if once:
        months = [f"{month:02d}" for month in range(1, MONTHS + 1)]
        axes.append(Axis("month", Hierarchy.read({"month": months})))
    read_leaves(path, Columns(person=person), axes, unit=unit_of(once))


def release_all(path, n_areas, person, once):
    months = {"month": {"month": [f"{month:02d}" for month in range(1, MONTHS + 1)]}}
    out = Path(path).with_name("release")
    release(
        path, make_areas(n_areas), axis=months if once else None, columns=Columns(person=person),
        unit=unit_of(once), epsilon=1, delta=1e-9, out=out,
    )  # fmt: skip
    shutil.rmtree(out)


def unit_of(once):
    return Unit("add-remove", trips=KEPT, once_per="month" if once else None)


def timed(results, run, *given):
    """Seconds, seconds of all processors, and gigabytes at most, of one run."""
    begun, busy = time.perf_counter(), time.process_time()
    run(*given)
    seconds, busy = time.perf_counter() - begun, time.process_time() - busy
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    results.put((seconds, busy, peak))


def best_of_each(runs):
    """Least seconds and most memory of several runs in turn: what interferes hits all alike."""
    found = {name: [] for name in runs}
    spawn = multiprocessing.get_context("spawn")
    for _ in range(REPEATS):
        for name, run in runs.items():
            results = spawn.Queue()
            process = spawn.Process(target=timed, args=(results, *run))
            process.start()
            found[name].append(results.get())
            process.join()
    best = {}
    for name, each in found.items():
        seconds, busy, peak = zip(*each, strict=True)
        best[name] = {
            "seconds": round(min(seconds), 3),
            "processor_seconds": round(min(busy), 3),
            "peak_gb": round(max(peak), 2),
        }
    return best


def measure(folder, *, n_rows, n_areas, is_bounded, is_once):
    codes = pa.array(make_areas(n_areas)["area"])
    path = Path(folder) / "trips.parquet"
    write_trips(path, codes, n_rows, has_persons=is_bounded)
    columns = "origin, destination" + ", person" * is_bounded + ", month" * is_once
    given = (str(path), n_areas, "person" if is_bounded else None, is_once)
    runs = {"plain": (group_plainly, str(path), columns), "read": (read, *given)}
    if is_bounded:
        runs["release"] = (release_all, *given)
    best = best_of_each(runs)
    return {
        "rows": n_rows,
        "areas": n_areas,
        "bounded": is_bounded,
        "once": is_once,
        **best,
        "ratio": round(best["read"]["seconds"] / best["plain"]["seconds"], 3),
        "million_rows_per_second": round(n_rows / best["read"]["seconds"] / 1e6, 1),
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "duckdb": duckdb.__version__,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=ROWS)
    parser.add_argument("--areas", type=int, default=AREAS)
    parser.add_argument("--folder", help="where the file is made; the temporary folder by default")
    parser.add_argument("--bounded", action="store_true", help="with persons")
    parser.add_argument("--once", action="store_true", help="and one trip for each month")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        result = measure(
            folder,
            n_rows=given.rows,
            n_areas=given.areas,
            is_bounded=given.bounded or given.once,
            is_once=given.once,
        )
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
