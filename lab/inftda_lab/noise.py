"""Splits of the budget and noise distributions, side by side on tables from files.

    python -m inftda_lab.noise FOLDER [FOLDER ...] [--epsilons 0.1 1 10] [--seeds 1 2 3]

A folder has `flows.parquet` and `areas.csv`, and perhaps other columns with a hierarchy each, as
`COLUMNs.csv`. Noise is seeded: results can be repeated, and have no guarantee. Errors are
computed from the true counts, so results on a confidential table are as confidential as the table.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from fractions import Fraction
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import inftda
from inftda.privacy import noise_plan
from inftda.tree import Marginal, Tree
from inftda_lab.baselines import stability_noise
from inftda_lab.tables import Numbers, numbers_of

#: Options of a release for each way to place noise.
WAYS: Final[dict[str, dict[str, Any]]] = {
    "uniform": {"split": "uniform", "cross_tables": 0.08},
    "log": {"split": "log of cells", "cross_tables": 0.08},
    "half": {},
    "default": {},
    "pure": {"delta": 0},
    "paper": {"method": "paper"},
}
HISTOGRAM: Final = "histogram"
#: Half of the default weight of Laplace noise at the finest level (docs/decisions.md, "The split of
#: the budget").
HALF: Final = Fraction(8, 25)
DELTA: Final = 1e-8

Leaves = tuple[list[Numbers], Numbers]


def read(folder: Path) -> tuple[pa.Table, dict[str, Any]]:
    """A table, and options to release it with."""
    flows = pq.read_table(folder / "flows.parquet")
    ends = dict.fromkeys(("origin", "destination"), folder / "areas.csv")
    others = [name for name in flows.column_names if name not in {*ends, "count"}]
    return flows, {"axis": ends | {name: folder / f"{name}s.csv" for name in others}}


def leaves_of(tree: Tree, table: pa.Table, value: str) -> Leaves:
    """Finest areas by number, one array for each axis, and values."""
    areas = [
        numbers_of(table[axis.name], axis.hierarchy.codes(axis.hierarchy.depth))
        for axis in tree.axes
    ]
    return areas, table[value].to_numpy().astype(np.int64)


def side_by_side(marginal: Marginal, *both: Leaves) -> list[Numbers]:
    """Two tables summed up to the same cells."""
    sums = [marginal.sum_up([a.astype(np.int32) for a in areas], value) for areas, value in both]
    keys = [marginal.numbers(areas) for areas, _ in sums]
    every = np.union1d(*keys)
    found = [np.zeros(len(every), np.int64) for _ in both]
    for row, key, (_, value) in zip(found, keys, sums, strict=True):
        row[np.searchsorted(every, key)] = value
    return found


def described(tree: Tree, released: Leaves, truth: Leaves) -> dict[str, Any]:
    """Common part, error of large flows, largest error of each level, mean errors of totals."""
    x, y = side_by_side(tree.levels[-1], released, truth)
    large = y >= 100
    row: dict[str, Any] = {
        "common": 2 * np.minimum(x, y).sum() / (x.sum() + y.sum()),
        "false": 100 * ((x > 0) & (y == 0)).sum() / max(1, (x > 0).sum()),
        "off": 100 * np.mean(np.abs(x - y)[large] / y[large]) if large.any() else 0.0,
    }
    row["largest"] = [
        int(np.abs(np.subtract(*side_by_side(level, released, truth))).max())
        for level in tree.levels[1:]
        if not level.is_trivial
    ]
    for number, axis in enumerate(tree.axes):
        depths = [axis.hierarchy.depth * (number == other) for other in range(len(tree.axes))]
        sums = side_by_side(Marginal(tree.axes, tuple(depths)), released, truth)
        row[f"total {axis.name}"] = float(np.abs(sums[0] - sums[1]).mean())
    return row


def histogram(truth: Leaves, epsilon: float, seed: int) -> Leaves:
    """The stability histogram of the finest cells."""
    areas, count = truth
    scale, threshold = stability_noise(epsilon, DELTA)
    noisy = inftda.Noise.laplace(scale).sample(len(count), inftda.SeededSource(seed)) + count
    kept = noisy > threshold
    return [numbers[kept] for numbers in areas], noisy[kept]


def logarithms(tree: Tree) -> list[float]:
    """Weights of the split by logarithms, for Gaussian noise everywhere."""
    return [float(np.log(20 * lv.n_nodes)) for lv in tree.levels[1:] if not lv.is_trivial]


def results(  # noqa: PLR0913 - what is released, and how
    flows: pa.Table,
    options: dict[str, Any],
    ways: list[str],
    *,
    epsilon: float,
    seed: int,
    is_estimated: bool,
) -> Iterator[dict[str, Any]]:
    """One row for each way."""
    tree = inftda.build_tree(**options)
    truth = leaves_of(tree, flows, "count")
    for way in ways:
        if way == HISTOGRAM:
            yield {"way": way} | described(tree, histogram(truth, epsilon, seed), truth)
            continue
        asked = {"delta": DELTA} | options | WAYS[way]
        if way == "log":
            asked["split"] = logarithms(tree)
        started = time.process_time()
        source = inftda.SeededSource(seed)
        with patch.object(noise_plan, "_FINEST", HALF) if way == "half" else nullcontext():
            made = inftda.release(flows, epsilon=epsilon, source=source, **asked)
        took = time.process_time() - started
        found = {"way": way, "seconds": took}
        yield found | described(tree, leaves_of(tree, made.flows(), "flow"), truth)
        if is_estimated:
            guess = leaves_of(tree, inftda.estimate(made).table, "estimate")
            yield {"way": f"{way}, estimate"} | described(tree, guess, truth)


def main() -> None:
    """Print means over seeds, a line for each table, epsilon and way."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 1, 10])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--ways", nargs="+", default=["uniform", "log", "default", HISTOGRAM])
    parser.add_argument("--estimates", action="store_true")
    given = parser.parse_args()
    for folder in given.folders:
        flows, options = read(folder)
        for epsilon in given.epsilons:
            rows: dict[str, list[dict[str, Any]]] = {}
            for seed in given.seeds:
                asked = {"epsilon": epsilon, "seed": seed, "is_estimated": given.estimates}
                for row in results(flows, options, given.ways, **asked):
                    rows.setdefault(row.pop("way"), []).append(row)
            for way, found in rows.items():
                sys.stdout.write(f"{folder.name}, epsilon {epsilon:g}, {way}: {_words(found)}\n")
                sys.stdout.flush()


def _words(rows: list[dict[str, Any]]) -> str:
    levels = np.mean([row["largest"] for row in rows], axis=0)
    totals = [np.mean([row[key] for row in rows]) for key in rows[0] if key.startswith("total")]
    plain = {key: np.mean([row[key] for row in rows]) for key in ("common", "false", "off")}
    took = min(row.get("seconds", 0.0) for row in rows)
    return (
        f"common part {plain['common']:.4f}, false flows {plain['false']:.1f} %, flows from 100 "
        f"off by {plain['off']:.1f} %, largest error {levels.max():.0f} "
        f"({' '.join(f'{one:.0f}' for one in levels)}), totals off by "
        f"{' '.join(f'{one:.1f}' for one in totals)}, {took:.1f} s"
    )


if __name__ == "__main__":
    main()
