"""What a reader finds out by arithmetic: cells that follow exactly from what is published.

Every number is the sum of its children, and every total the sum of its leaves. The bounds that a
reader knows of each are propagated along these sums until nothing changes. Along the tree alone
this finds all that follows: no two sums share more than one number, and none in a circle. With
totals across it finds at least a part: linear programming could find more.

What comes out is about the truth, and as confidential.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inftda.disclosure.methods import Numbers, ProtectedTables
from inftda.truth import Truth

#: Rounds of carrying bounds across; after a few hardly anything changes.
MAX_ROUNDS = 100


@dataclass(frozen=True, slots=True)
class Attack:
    """What a reader can find out. Confidential.

    Attributes:
        trips: in the table, one for each person.
        cells: finest cells with trips.
        small_cells: of these, cells of a single trip.
        hidden_cells: finest cells that are published as hidden.
        hidden_trips: trips in them.
        exact_by_levels: finest cells that are not published as they are, but follow exactly from
            the numbers of all levels.
        exact_with_totals: the same with out- and in-totals of the finest areas, at least.
        exact_ones: of these, cells of a single trip: one person is known.
        n_reidentified: trips of which two editions, with and without, show where from and where
            to exactly.
        n_seen_anywhere: trips of which they show something below the grand total.
    """

    trips: int
    cells: int
    small_cells: int
    hidden_cells: int
    hidden_trips: int
    exact_by_levels: int
    exact_with_totals: int
    exact_ones: int
    n_reidentified: int
    n_seen_anywhere: int

    @property
    def share_reidentified(self) -> float:
        """Part of the trips of which two editions show where from and where to exactly."""
        return self.n_reidentified / max(self.trips, 1)


def attack(published: ProtectedTables) -> Attack:
    """Find out what can be found out."""
    leaves = published.levels[-1]
    bounds = Bounds(published)
    # What is published as it is needs no finding out.
    was_open = leaves.low < leaves.high
    bounds.along_tree()
    by_levels = int(np.count_nonzero(was_open & bounds.is_exact))
    bounds.everywhere()
    exact = was_open & bounds.is_exact
    return Attack(
        trips=published.truth.total,
        cells=len(leaves.true),
        small_cells=int(np.count_nonzero(leaves.true == 1)),
        hidden_cells=int(np.count_nonzero(leaves.is_hidden)),
        hidden_trips=int(leaves.true[leaves.is_hidden].sum()),
        exact_by_levels=by_levels,
        exact_with_totals=int(np.count_nonzero(exact)),
        exact_ones=int(np.count_nonzero(exact & (leaves.true == 1))),
        n_reidentified=published.n_reidentified,
        n_seen_anywhere=published.n_seen_anywhere,
    )


class Bounds:
    """What a reader of an edition knows of every cell: at least `low`, at most `high`, by level."""

    def __init__(self, published: ProtectedTables) -> None:
        truth, most = published.truth, published.max_count_shown_as_zero
        self.low = [table.low.copy() for table in published.levels]
        # No cell is larger than what is known of the whole.
        whole = int(published.levels[0].high[0])
        self.high = [np.minimum(table.high, whole) for table in published.levels]
        self._totals = published.totals
        self._offsets = [level.offsets for level in truth.levels]
        #: Where the parents of each splitting level stand among the nodes above.
        self._above = [truth.above(number) for number in range(len(truth.levels))]
        #: What cells without a count may come to, by parent and by finest area.
        self._slack = [most * missing for missing in _missing_children(truth)]
        self._across = _missing_leaves(truth, most, whole)
        self._areas = truth.leaves[0]

    @property
    def is_exact(self) -> NDArray[np.bool_]:
        """Which leaves are known exactly."""
        return np.asarray(self.low[-1] == self.high[-1])

    def along_tree(self) -> None:
        """Carry bounds up and down the tree, once each, which is enough."""
        for i in range(len(self._offsets) - 1, -1, -1):
            sums, above = self._sums(i), self._above[i]
            self.low[i][above] = np.maximum(self.low[i][above], sums[0])
            self.high[i][above] = np.minimum(self.high[i][above], sums[1])
        for i, offsets in enumerate(self._offsets):
            (low, high), above = self._sums(i), self._above[i]
            n = np.diff(offsets)
            self._tighten(
                i + 1,
                np.repeat(self.low[i][above] - high, n),
                np.repeat(self.high[i][above] - low, n),
            )

    def everywhere(self) -> None:
        """Carry bounds along the tree and across it until nothing changes."""
        for _ in range(MAX_ROUNDS):
            before = self._width()
            self._across_tree()
            self.along_tree()
            if self._width() == before:
                return

    def _sums(self, i: int) -> tuple[Numbers, Numbers]:
        """Of each parent, what its children come to at least and at most."""
        first = self._offsets[i][:-1]
        low = np.add.reduceat(self.low[i + 1], first)
        return low, np.add.reduceat(self.high[i + 1], first) + self._slack[i]

    def _tighten(self, i: int, low: Numbers, high: Numbers) -> None:
        """A cell is what its sum is, less all others: their bounds without its own."""
        low, high = low + self.high[i], high + self.low[i]
        self.low[i], self.high[i] = np.maximum(self.low[i], low), np.minimum(self.high[i], high)

    def _across_tree(self) -> None:
        for area, total, slack in zip(self._areas, self._totals, self._across, strict=True):
            sums = np.zeros((2, len(total.low)), np.int64)
            np.add.at(sums[0], area, self.low[-1])
            np.add.at(sums[1], area, self.high[-1])
            low, high = total.low - (sums[1] + slack), total.high - sums[0]
            self._tighten(-1, low[area], high[area])

    def _width(self) -> int:
        return sum(int((high - low).sum()) for low, high in zip(self.low, self.high, strict=True))


def _missing_children(truth: Truth) -> list[Numbers]:
    """For each splitting level, how many possible children of each parent have no count."""
    missing = []
    for level in truth.levels:
        areas = level.level.areas_of(level.key)
        possible = np.diff(level.level.child_offsets)[areas[level.level.axis]]
        missing.append(np.asarray(possible - np.diff(level.offsets), np.int64))
    return missing


def _missing_leaves(truth: Truth, most: int, whole: int) -> list[Numbers]:
    """For each axis, what cells without a count may come to for each finest area."""
    sizes = [axis.hierarchy.n_areas(axis.hierarchy.depth) for axis in truth.tree.axes]
    n_cells, slack = math.prod(sizes), []
    for area, size in zip(truth.leaves[0], sizes, strict=True):
        missing = n_cells // size - np.bincount(area, minlength=size)
        # Beyond all trips a bound says nothing more.
        slack.append(np.minimum(missing * most, whole).astype(np.int64))
    return slack
