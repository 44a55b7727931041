"""Estimates and intervals against tables whose truth is known.

    python benchmarks/estimates.py TABLE... --epsilon 1 --seeds 1

A TABLE is a folder with flows.parquet, areas.csv and perhaps centroids.csv. For each it prints
lines of a Markdown table: common part of commuters, root mean squared error over all cells, mean
errors of out- and in-totals, of the release and of the estimate, with and without totals across;
and the lowest coverage of intervals in any class of published size with 1,000 numbers at any
level of the tree. Use public tables only: what is printed is computed from the truth.
"""

import argparse
import math
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


def line(folder, epsilon, seed, across):
    """One line of the table."""
    with TemporaryDirectory() as scratch:
        release = inftda.release(
            folder / "flows.parquet", folder / "areas.csv", epsilon=epsilon, delta=1e-8,
            across=across, measurements=True, source=inftda.SeededSource(seed),
            out=Path(scratch) / "release",
        )  # fmt: skip
        file = folder / "centroids.csv"
        made = inftda.estimate(release, centroids=file if file.exists() else None)
        true = leaves(release.tree, pq.read_table(folder / "flows.parquet"), "count")
        before = measures(release.tree, true, released_leaves(release))
        after = measures(release.tree, true, leaves(release.tree, made.table, "estimate"))
        coverage = lowest_coverage(release, true)
    cells = [f"{a:.3g} → {b:.3g}" for a, b in zip(before, after, strict=True)]
    return f"| {folder.name} | {epsilon:g} | {across:g} | {' | '.join(cells)} | {coverage:.1%} |"


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0])
    parser.add_argument("--seeds", type=int, default=1)
    chosen = parser.parse_args()
    print("| table | epsilon | across | common part | RMSE | out | in | lowest coverage |")
    print("|---|---|---|---|---|---|---|---|")
    for folder in chosen.tables:
        for epsilon in chosen.epsilon:
            for across in (0.0, 0.08):
                for seed in range(1, chosen.seeds + 1):
                    print(line(folder, epsilon, seed, across), flush=True)


if __name__ == "__main__":
    main()
