"""The same measures for everything that a tool publishes.

A result is a folder with `finest.parquet` (origin, destination, flow), and `O__D.parquet` for each
other table that the tool publishes, O and D being names of levels or `all`. Flows may be real, and
below 0.
"""

from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

import inftda
from inftda_lab.tables import Table, numbers_of

Depths = tuple[int, int]
Matrix = NDArray[np.float64]
#: True flows from here up should be published.
LARGE: Final = 10
#: What a real-valued flow has to reach to be printed as one or more.
SHOWN: Final = 0.5


def measure(table: Table, folder: Path) -> dict[str, Any]:
    """All measures of a result."""
    areas, finest = table.areas, (table.areas.depth, table.areas.depth)
    truth = np.zeros((areas.n_areas(areas.depth),) * 2)
    truth[table.origin, table.destination] = table.count
    published = dict(_read(folder, areas))
    flows = published[finest]
    levels = []
    for depth in range(1, areas.depth + 1):
        at = (depth, depth)
        found = published.get(at, summed(flows, finest, at, areas))
        levels.append(_level(summed(truth, finest, at, areas), found))
    totals = []
    for at in ((areas.depth, 0), (0, areas.depth)):
        found = published.get(at, summed(flows, finest, at, areas))
        totals.append(float(np.abs(found - summed(truth, finest, at, areas)).mean()))
    shown = (flows >= SHOWN) | (flows < 0)
    large = truth >= LARGE
    return {
        "levels": levels,
        "totals": totals,
        "false": float((shown & (truth == 0)).sum() / max(1, shown.sum())),
        "lost": float((large & (flows < SHOWN)).sum() / max(1, large.sum())),
        "negative": int(sum((found < 0).sum() for found in published.values())),
        "gap": max(_gaps(published, areas), default=0.0),
    }


def summed(flows: Matrix, depths: Depths, to: Depths, areas: inftda.Hierarchy) -> Matrix:
    """Sums of a table by coarser areas."""
    for axis in (0, 1):
        starts = areas.descendant_offsets(to[axis], depths[axis])[:-1]
        flows = np.add.reduceat(flows, starts, axis=axis)
    return flows


def _level(truth: Matrix, found: Matrix) -> dict[str, float]:
    """Common part, largest error, and mean error of the true flows."""
    kept, error, real = np.maximum(found, 0), np.abs(found - truth), truth > 0
    both = truth.sum() + kept.sum()
    return {
        "common": float(2 * np.minimum(truth, kept).sum() / both) if both else 1.0,
        "largest": float(error.max()),
        "mean": float(error[real].mean()) if real.any() else 0.0,
    }


def _gaps(published: dict[Depths, Matrix], areas: inftda.Hierarchy) -> Iterator[float]:
    """Largest differences between published numbers and sums of finer published ones."""
    for (at, coarse), (below, fine) in permutations(published.items(), 2):
        if at[0] <= below[0] and at[1] <= below[1]:
            yield float(np.abs(coarse - summed(fine, below, at, areas)).max())


def _read(folder: Path, areas: inftda.Hierarchy) -> Iterator[tuple[Depths, Matrix]]:
    """The published tables, by their levels."""
    finest = areas.level_name(areas.depth)
    for path in sorted(folder.glob("*.parquet")):
        names = (finest, finest) if path.stem == "finest" else path.stem.split("__")
        depths = (areas.level_of(names[0]), areas.level_of(names[1]))
        table = pq.read_table(path)
        found = np.zeros(tuple(areas.n_areas(depth) for depth in depths))
        ends = [
            numbers_of(table.column(axis), areas.codes(depth))
            if depth
            else np.zeros(table.num_rows, np.int64)
            for axis, depth in enumerate(depths)
        ]
        np.add.at(found, (ends[0], ends[1]), table.column(2).to_numpy().astype(np.float64))
        yield depths, found
