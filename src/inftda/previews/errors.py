"""Typical errors of a release to come, from simulated releases of a table that stands in for it.

Errors are stated by level and by the size of the *published* number, since that is what a
reader sees: among simulated numbers of a size class, half err by no more than `median`, and
95 % by no more than `p95`, counting those whose simulated truth is zero. A class by true size
would look better (large noise on a small flow moves it to another class) and would answer a
question nobody can ask without the truth.

What is guaranteed is in `inftda.privacy.bounds`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inftda.evaluation.cells import CLASS_STARTS, Cells, class_of, match_cells
from inftda.mechanism.topdown import release_counts
from inftda.noise.bits import RandomSource
from inftda.privacy.plan import Plan
from inftda.publication.tables import Areas
from inftda.screen import Progress
from inftda.tree import Marginal, Tree
from inftda.truth import Truth

#: Errors below are counted one by one, larger ones in bins this much apart.
EXACT_ERRORS, BIN_RATIO = 256, 1.01
N_BINS = EXACT_ERRORS + int(np.log(2.0**62 / EXACT_ERRORS) / np.log(BIN_RATIO)) + 2
#: Fewer simulated numbers than this say nothing about a 95 % point; such a class is joined
#: with its neighbour.
MIN_SIMULATED = 40


@dataclass(frozen=True)
class Simulation:
    """A table taken for the truth, and all that is needed to release it again and again.

    The table is a public stand-in or, where what comes out is marked confidential, the truth. What
    is drawn here promises nothing and is charged to nothing.

    Attributes:
        counts: the table.
        plan: its noise.
        source: random bits.
    """

    counts: Truth
    plan: Plan
    source: RandomSource

    def run(self, progress: Progress) -> tuple[Areas, NDArray[np.int64]]:
        """One simulated release: areas and flows of its leaves."""
        leaves = release_counts(
            self.counts, self.plan.account(), self.source, progress=progress
        ).leaves
        return leaves.areas, leaves.value


@dataclass(frozen=True, slots=True)
class TypicalError:
    """Error of published numbers of one size.

    Attributes:
        low: smallest number of the class.
        high: largest number of the class; None if it is open.
        n_released: how many numbers of the stand-in are of this size.
        n_simulated: how many simulated numbers the estimate rests on.
        median: half of the simulated numbers err by no more.
        p95: 95 % of the simulated numbers err by no more.
        false: share of the simulated numbers whose truth was zero.
        lost: share of simulated *true* flows of this size that were published as zero.
    """

    low: int
    high: int | None
    n_released: int
    n_simulated: int
    median: int
    p95: int
    false: float
    lost: float


@dataclass(frozen=True, slots=True)
class LevelErrors:
    """Typical errors of one level.

    Attributes:
        overall: all published numbers together.
        classes: by size, ascending.
    """

    overall: TypicalError
    classes: tuple[TypicalError, ...]


class ErrorHistogram:
    """Errors of one level over all simulations, by size class and size of error.

    Args:
        tree: what is released.
        depths: level on each axis.
        areas: finest areas of what is taken for the truth.
        flow: its flows.
    """

    def __init__(
        self, tree: Tree, depths: tuple[int, ...], areas: Areas, flow: NDArray[np.int64]
    ) -> None:
        self._marginal = Marginal(tree.axes, depths)
        self._truth = Cells.of(self._marginal, areas, flow)
        n_classes = len(CLASS_STARTS)
        self._released = np.bincount(class_of(self._truth.value), minlength=n_classes)
        self._errors = np.zeros((n_classes, N_BINS), np.int64)
        self._false = np.zeros(n_classes, np.int64)
        self._lost = np.zeros(n_classes, np.int64)
        self._runs = 0

    def add(
        self, areas: Areas, flow: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Count the errors of one simulated release; its numbers, and the truth of each."""
        simulated = Cells.of(self._marginal, areas, flow)
        truth, is_lost = match_cells(simulated, self._truth)
        size = class_of(simulated.value)
        bins = bin_of(np.abs(simulated.value - truth))
        tally = np.bincount(size * N_BINS + bins, minlength=self._errors.size)
        self._errors += tally.reshape(self._errors.shape)
        n_classes = len(CLASS_STARTS)
        self._false += np.bincount(size[truth == 0], minlength=n_classes)
        self._lost += np.bincount(class_of(self._truth.value[is_lost]), minlength=n_classes)
        self._runs += 1
        return simulated.value, truth

    def errors(self) -> LevelErrors:
        """What the tally says."""
        used = np.flatnonzero(self._released + self._errors.sum(axis=1))
        groups = _joined(used, self._errors.sum(axis=1))
        classes = tuple(self._entry(group) for group in groups)
        return LevelErrors(self._entry(np.arange(len(CLASS_STARTS))), classes)

    def _entry(self, group: NDArray[np.intp]) -> TypicalError:
        bins = self._errors[group].sum(axis=0)
        n_simulated, n_released = int(bins.sum()), int(self._released[group].sum())
        last = int(group[-1])
        is_open = last == len(CLASS_STARTS) - 1
        return TypicalError(
            low=CLASS_STARTS[int(group[0])],
            high=None if is_open else CLASS_STARTS[last + 1] - 1,
            n_released=n_released,
            n_simulated=n_simulated,
            median=quantile(bins, 0.5),
            p95=quantile(bins, 0.95),
            false=int(self._false[group].sum()) / max(n_simulated, 1),
            lost=int(self._lost[group].sum()) / max(n_released * self._runs, 1),
        )


def _joined(used: NDArray[np.intp], weight: NDArray[np.int64]) -> list[NDArray[np.intp]]:
    """Neighbouring classes joined, from the large end, until each has enough to go by."""
    groups: list[list[int]] = []
    for index in reversed(used.tolist()):
        if groups and weight[groups[-1]].sum() < MIN_SIMULATED:
            groups[-1].append(index)
        else:
            groups.append([index])
    if len(groups) > 1 and weight[groups[-1]].sum() < MIN_SIMULATED:
        smallest = groups.pop()
        groups[-1] += smallest
    return [np.array(sorted(group), np.intp) for group in reversed(groups)]


def bin_of(error: NDArray[np.int64]) -> NDArray[np.int64]:
    """Bin of each error: exact while small, then 1 % apart."""
    steps = np.log(np.maximum(error, EXACT_ERRORS) / EXACT_ERRORS) / np.log(BIN_RATIO)
    return np.where(error < EXACT_ERRORS, error, EXACT_ERRORS + np.floor(steps).astype(np.int64))


def quantile(bins: NDArray[np.int64], share: float) -> int:
    """Smallest error that `share` of the counted ones do not exceed, to the end of its bin."""
    total = int(bins.sum())
    if total == 0:
        return 0
    at = int(np.searchsorted(np.cumsum(bins), share * total))
    if at < EXACT_ERRORS:
        return at
    return int(np.ceil(EXACT_ERRORS * BIN_RATIO ** (at - EXACT_ERRORS + 1)))


def first_of(at: int) -> int:
    """Smallest number of a bin."""
    if at < EXACT_ERRORS:
        return at
    return int(np.ceil(EXACT_ERRORS * BIN_RATIO ** (at - EXACT_ERRORS)))


def last_above(n: NDArray[np.int64], hits: NDArray[np.int64], share: float) -> int:
    """The last bin in which hits are more than a share of all; -1 if there is none.

    The larger a size, the rarer the hits. The best decreasing fit (isotonic regression) crosses
    `share` where this cumulative excess is largest.
    """
    excess = np.cumsum(hits - share * n)
    last = int(np.argmax(excess))
    return last if excess[last] > 0 else -1
