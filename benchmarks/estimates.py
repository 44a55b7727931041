"""Estimates and intervals against tables whose truth is known.

    python benchmarks/estimates.py TABLE... --epsilon 0.1 1 10 --first-seed 1001 --seeds 3

A TABLE is a folder with flows.parquet, areas.csv and perhaps centroids.csv. For each it prints
lines of a Markdown table: common part of commuters, root mean squared error over all cells, mean
errors of out- and in-totals, of the release and of the estimate, with and without totals across,
all of them means over seeds; the lowest coverage of intervals in any class of published size
with 1,000 numbers at any level of the tree and with any seed; and how long an estimate took.
Use public tables only: what is printed is computed from the truth. Judge changes by other seeds
than those that constants are chosen on.
"""

import argparse
import math
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import inftda
from inftda.evaluation.sums import LevelSums
from inftda.evaluation.typical import CLASS_STARTS, released_leaves

LEAST = 1_000


def leaves(tree, table, column):
    """Areas and counts of a table with codes."""
    areas = []
    for axis in tree.axes:
        codes = axis.hierarchy.codes(axis.hierarchy.depth)
        found = pc.index_in(table.column(axis.name).cast(pa.string()), value_set=codes)
        areas.append(found.to_numpy().astype(np.int32))
    return tuple(areas), table.column(column).to_numpy()


def aligned(tree, depths, true, other):
    """Counts of all cells of a level that are not zero in both, by cell."""
    cells = [LevelSums(tree, depths).of(*counts) for counts in (true, other)]
    number = np.union1d(cells[0].number, cells[1].number)
    found = np.zeros((2, len(number)), np.int64)
    for row, part in zip(found, cells, strict=True):
        row[np.searchsorted(number, part.number)] = part.value
    return number, *found


def measures(tree, true, other):
    """Common part, root mean squared error over all cells, mean error of each axis's totals."""
    _, a, b = aligned(tree, [axis.hierarchy.depth for axis in tree.axes], true, other)
    n_cells = math.prod(axis.hierarchy.n_areas(axis.hierarchy.depth) for axis in tree.axes)
    totals = []
    for one, axis in enumerate(tree.axes):
        depths = [axis.hierarchy.depth if at == one else 0 for at in range(len(tree.axes))]
        _, x, y = aligned(tree, depths, true, other)
        totals.append(np.abs(x - y).sum() / axis.hierarchy.n_areas(axis.hierarchy.depth))
    common = 2 * np.minimum(a, b).sum() / (a.sum() + b.sum())
    return common, math.sqrt(((a - b) ** 2).sum() / n_cells), *totals


def lowest_coverage(release, true):
    """Of the intervals of published numbers, in any class with enough of them."""
    known, lowest = release.intervals(), 1.0
    for level in release.tree.splitting_levels:
        number, x, flow = aligned(release.tree, level.depths, true, released_leaves(release))
        number, x, flow = (values[flow > 0] for values in (number, x, flow))
        sizes = [
            a.hierarchy.n_areas(d) for a, d in zip(release.tree.axes, level.depths, strict=True)
        ]
        areas = tuple(part.astype(np.int32) for part in np.unravel_index(number, sizes))
        low, high = known.of(level.depths, areas, flow)
        class_of = np.searchsorted(CLASS_STARTS, flow, side="right")
        for one in np.flatnonzero(np.bincount(class_of) >= LEAST):
            is_one = class_of == one
            lowest = min(lowest, float(np.mean((low <= x)[is_one] & (x <= high)[is_one])))
    return lowest


def further_axes(folder):
    """Hierarchies of columns besides the two ends: that of `mode` is in modes.csv."""
    names = pq.read_schema(folder / "flows.parquet").names
    files = {name: folder / f"{name}s.csv" for name in names}
    return {name: file for name, file in files.items() if file.exists()}


def judged(folder, epsilon, seed, across, centroids):
    """Measures of a release and of its estimate, coverage, wall and processor seconds."""
    with TemporaryDirectory() as scratch:
        release = inftda.release(
            folder / "flows.parquet", folder / "areas.csv", axes=further_axes(folder),
            epsilon=epsilon, delta=1e-8, across=across, measurements=True,
            source=inftda.SeededSource(seed), out=Path(scratch) / "release",
        )  # fmt: skip
        wall, processor = time.perf_counter(), time.process_time()
        made = inftda.estimate(release, centroids=centroids, out=Path(scratch) / "estimate")
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        true = leaves(release.tree, pq.read_table(folder / "flows.parquet"), "count")
        estimated = leaves(release.tree, pq.read_table(made.table), "estimate")
        before = measures(release.tree, true, released_leaves(release))
        after = measures(release.tree, true, estimated)
        return np.array([*before, *after, lowest_coverage(release, true), wall, processor])


def line(folder, epsilon, seeds, across, centroids):
    """One line of the table: means over seeds, but the lowest coverage of all."""
    found = [judged(folder, epsilon, seed, across, centroids) for seed in seeds]
    *values, _, wall, processor = np.mean(found, axis=0)
    before, after = np.split(np.array(values), 2)
    cells = [f"{a:.3g} → {b:.3g}" for a, b in zip(before[:4], after[:4], strict=True)]
    lowest = min(one[-3] for one in found)
    return (
        f"| {folder.name} | {epsilon:g} | {across:g} | {' | '.join(cells)} | {lowest:.1%} | "
        f"{wall:.1f} | {processor:.1f} |"
    )


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0])
    parser.add_argument("--across", nargs="+", type=float, default=[0.0, 0.08])
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--centroids", type=Path, help="of all tables; their own by default")
    chosen = parser.parse_args()
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.seeds)
    print(
        "| table | epsilon | across | common part | RMSE | out | in | lowest coverage "
        "| seconds | of processor |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for folder in chosen.tables:
        own = folder / "centroids.csv"
        centroids = chosen.centroids or (own if own.exists() else None)
        for epsilon in chosen.epsilon:
            for across in chosen.across:
                print(line(folder, epsilon, seeds, across, centroids), flush=True)


if __name__ == "__main__":
    main()
