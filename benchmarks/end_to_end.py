"""`inftda release` as a process, from Parquet to release folder.

python benchmarks/end_to_end.py [--census] [--growth] [--json]

Cold runs have an empty cache of compiled kernels, as on a new machine. Growth is time and
memory over numbers of trips and of geographic levels, beside the work: draws plus pairs.
"""

import argparse
import json
import multiprocessing
import shutil
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pyarrow.parquet as pq

import measure
from inftda.counts import Counts
from inftda.hierarchy import Hierarchy
from inftda.reading import TableSpec, read_leaves
from inftda.tree import Tree

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
    cases = [(trips, 3) for trips in (10**5, 10**6, 10**7, 10**8)]
    cases += [(10**7, levels) for levels in (4, 5)]
    rows = []
    for trips, levels in cases:
        sizes = measure.SECTIONS[:levels]
        files = measure.write_country(folder / f"{trips}-{levels}", sizes, trips)
        result = best(*files, folder, repeats=3)
        draws = apart(count_draws, folder / "release" / "flows.parquet", files[1])
        rows.append({"trips": trips, "levels": levels, "draws": draws, **result})
    return rows


def count_draws(flows, areas):
    """Draws a release took: one for every child of a surviving node that is not the only one."""
    hierarchy = Hierarchy.read(areas)
    ends = [("origin", hierarchy), ("destination", hierarchy)]
    leaves = read_leaves(str(flows), TableSpec(axes=ends, count="flow"))
    tree = Tree.destination_first(hierarchy)
    released = Counts.from_leaves(tree, leaves.areas, leaves.counts)
    draws = 0
    for number, level in enumerate(tree.splitting_levels):
        parent = released.nodes(number)[0][level.axis]
        n_children = level.child_start[parent + 1] - level.child_start[parent]
        draws += int(n_children[n_children > 1].sum())
    return draws


def apart(function, *arguments):
    """A result from a process of its own: a child's peak memory is never below its parent's."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


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
                {"epsilon": epsilon, **best(*files, folder, repeats=3, epsilon=epsilon)}
                for epsilon in (1, 10)
            ]
        if given.growth:
            result["growth"] = growth(folder)
    print(json.dumps(result, indent=None if given.json else 2))


if __name__ == "__main__":
    main()
