"""Which published numbers can be relied on: from what size on they are right within a part.

Among simulated numbers of a level, by the size that a reader sees, those that err by more than
the tolerated part of themselves are counted. The size is stated from which on no more than one
in 20 does.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from inftda.evaluation.cells import LevelSums, match_cells
from inftda.evaluation.typical import MIN_SIMULATED, N_BINS, bin_of, first_of, last_above
from inftda.publication.tables import Areas
from inftda.tree import Tree

#: Of the numbers from the stated size on, at most this part is further off.
RARELY: Final = 0.05
#: A level is usable if this part of its trips is in numbers that can be relied on.
ENOUGH: Final = 0.8


@dataclass(frozen=True, slots=True)
class Usable:
    """From what size on the numbers of a level are right within the tolerated part.

    Attributes:
        smallest: numbers from here on are; None if there are none, or too few to tell.
        numbers: share of the published numbers that are as large.
        trips: share of the published trips that are in them.
    """

    smallest: int | None
    numbers: float
    trips: float

    @property
    def is_enough(self) -> bool:
        """Whether the level can be used as a whole."""
        return self.trips >= ENOUGH


class Closeness:
    """Counts how many simulated numbers of a level are within a part of themselves.

    Args:
        tree: what is released.
        depths: level on each axis.
        areas: finest areas of what is taken for the truth.
        flow: its flows.
        tolerance: the part.
    """

    def __init__(
        self,
        tree: Tree,
        depths: tuple[int, ...],
        areas: Areas,
        flow: NDArray[np.int64],
        *,
        tolerance: float,
    ) -> None:
        self._sums, self._tolerance = LevelSums(tree, depths), tolerance
        self._truth = self._sums.of(areas, flow)
        self._n, self._far, self._trips = (np.zeros(N_BINS, np.int64) for _ in range(3))

    def add(self, areas: Areas, flow: NDArray[np.int64]) -> None:
        """Count one simulated release."""
        cells = self._sums.of(areas, flow)
        truth, _ = match_cells(cells, self._truth)
        at = bin_of(cells.value)
        is_far = np.abs(cells.value - truth) > self._tolerance * cells.value
        self._n += np.bincount(at, minlength=N_BINS)
        self._far += np.bincount(at[is_far], minlength=N_BINS)
        np.add.at(self._trips, at, cells.value)

    def usable(self) -> Usable:
        """What the count says."""
        first = last_above(self._n, self._far, RARELY) + 1
        n = int(self._n[first:].sum())
        if n < min(MIN_SIMULATED, int(self._n.sum())) or n == 0:
            return Usable(None, 0.0, 0.0)
        trips = int(self._trips[first:].sum()) / max(int(self._trips.sum()), 1)
        # The smallest number that was published at all says more than the bin it lies in.
        there = first + int(np.argmax(self._n[first:] > 0))
        return Usable(first_of(there), n / int(self._n.sum()), trips)
