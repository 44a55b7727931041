"""Cells of every level of the destination tree, and how far a release is from the truth there.

A cell of a level is numbered by its two areas: origin * (number of destinations) + destination.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Final, NamedTuple

import numpy as np

import inftda
from inftda_lab.tables import Numbers


@dataclass(frozen=True)
class Level:
    """A level of the tree.

    Attributes:
        index: its number, 0 for the whole.
        name: for people.
        depths: levels of the hierarchy at both ends.
        areas: the hierarchy.
    """

    index: int
    name: str
    depths: tuple[int, int]
    areas: inftda.Hierarchy

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self.areas.n_areas(self.depths[0]) * self.areas.n_areas(self.depths[1])

    def cells(self, origin: Numbers, destination: Numbers) -> Numbers:
        """Cells of flows between finest areas."""
        depth = self.areas.depth
        ends = [
            self.areas.ancestor(depth, at)[number].astype(np.int64)
            for at, number in zip(self.depths, (origin, destination), strict=True)
        ]
        return ends[0] * self.areas.n_areas(self.depths[1]) + ends[1]

    def parents(self, above: "Level") -> Numbers:
        """Cell of a coarser level that each cell is in."""
        up = [
            self.areas.ancestor(here, there).astype(np.int64)
            for here, there in zip(self.depths, above.depths, strict=True)
        ]
        n = self.areas.n_areas(above.depths[1])
        return (up[0][:, None] * n + up[1][None, :]).ravel()

    def summed(self, flows: "Flows") -> "Cells":
        """Flows summed up at this level; cells in ascending order."""
        cell, inverse = np.unique(self.cells(flows.origin, flows.destination), return_inverse=True)
        count = np.zeros(len(cell), np.int64)
        np.add.at(count, inverse, flows.trips)
        return Cells(cell, count)

    def published(self, release: "Release") -> "Cells":
        """What is published at this level: totals of their own, else sums of flows."""
        if release.totals is None or self.index != NO_LEVEL:
            return self.summed(release.flows)
        return Cells(np.arange(self.n_cells), release.totals[0 if self.depths[0] else 1])


class Flows(NamedTuple):
    """Flows between finest areas."""

    origin: Numbers
    destination: Numbers
    trips: Numbers


class Release(NamedTuple):
    """What a mechanism publishes.

    Attributes:
        flows: between finest areas.
        totals: of all origins and all destinations, where they are not the sums of flows.
    """

    flows: Flows
    totals: tuple[Numbers, Numbers] | None = None


class Cells(NamedTuple):
    """Cells of a level in ascending order, with their trips."""

    cell: Numbers
    trips: Numbers

    def at(self, cell: Numbers) -> Numbers:
        """Counts of these cells, 0 for those that are not there."""
        if len(self.cell) == 0:
            return np.zeros(len(cell), np.int64)
        place = np.minimum(np.searchsorted(self.cell, cell), len(self.cell) - 1)
        return np.where(self.cell[place] == cell, self.trips[place], 0)


def levels_of(areas: inftda.Hierarchy) -> list[Level]:
    """All levels of the destination tree, from the whole to the leaves."""
    tree = inftda.build_tree(areas)
    return [
        Level(level.index, level.name, (level.depths[0], level.depths[1]), areas)
        for level in tree.levels
    ]


def totals_of(areas: inftda.Hierarchy) -> list[Level]:
    """Totals of all finest origins, and of all finest destinations: not levels of the tree."""
    ends = ((areas.depth, 0), (0, areas.depth))
    names = (f"total of {end}" for end in ("origins", "destinations"))
    return [Level(NO_LEVEL, name, depths, areas) for name, depths in zip(names, ends, strict=True)]


#: Number of what is not a level of the tree.
NO_LEVEL: Final = -1


def measure(true: Cells, released: Cells, n_cells: int) -> dict[str, float]:
    """Errors of one level; a cell that is missing is 0.

    The mean is over cells that are not zero in both, the root of the mean square over all; the
    common part is that of commuters, with released flows below 0 counted as 0.
    """
    cell = np.union1d(true.cell, released.cell)
    truth, found = true.at(cell), released.at(cell)
    either = (truth != 0) | (found != 0)
    error = np.abs(found - truth)
    n_found, n_true = int((found > 0).sum()), int((truth > 0).sum())
    n_false = int(((found > 0) & (truth == 0)).sum())
    n_lost = int(((truth > 0) & (found <= 0)).sum())
    kept = np.maximum(found, 0)
    both = int(truth.sum()) + int(kept.sum())
    return {
        "max_abs_error": float(error.max(initial=0)),
        "mean_abs_error_nonzero": float(error[either].mean()) if either.any() else 0.0,
        "root_mean_squared_error": sqrt(float((error.astype(np.float64) ** 2).sum()) / n_cells),
        "false_discovery_rate": n_false / max(n_found, 1),
        "false_negative_rate": n_lost / max(n_true, 1),
        "common_part": 2 * int(np.minimum(truth, kept).sum()) / both if both else 1.0,
    }
