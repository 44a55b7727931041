"""Typical error of released numbers, estimated from the release itself by simulation.

The release is taken for the truth and released again, several times, by the same mechanism
with the same noise. How far the simulated releases are from the release shows how far the
release typically is from the truth. Only published numbers go in, so this is post-processing:
it costs no privacy, and anybody can repeat it.

Errors are stated by level and by the size of the *published* number, since that is what a
reader sees: among simulated numbers of a size class, half err by no more than `median`, and
95 % by no more than `p95`, counting those whose simulated truth is zero. A class by true size
would look better (large noise on a small flow moves it to another class) and would answer a
question nobody can ask without the truth.

It is an estimate, not a guarantee: the release is not the truth, and where noise has replaced
most of the detail simulation cannot know what was lost. Sums across the tree are the worst: their
errors are stated enlarged. How often it held on tables with known truth is in
`docs/guides/read.md`, as are the reasons for the factors below.

What is guaranteed is in `inftda.privacy.bounds`. This module never sees the truth.
"""

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from inftda.evaluation.cells import MAX_CELLS, Cells, match_cells
from inftda.mechanism.topdown import release_counts
from inftda.noise.bits import RandomSource, SecureSource
from inftda.privacy.plan import Plan
from inftda.publication.release import Release
from inftda.publication.tables import Areas
from inftda.screen import Progress
from inftda.tree import Marginal, Tree
from inftda.truth import Truth

#: Errors below are counted one by one, larger ones in bins this much apart.
EXACT_ERRORS, BIN_RATIO = 256, 1.01
N_BINS = EXACT_ERRORS + int(np.log(2.0**62 / EXACT_ERRORS) / np.log(BIN_RATIO)) + 2
#: Lower ends of the size classes; the last class is open.
CLASS_STARTS = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 1_000_000)
#: By how much simulated errors are enlarged for sums across the tree, without measured tables
#: there and with them.
ACROSS_FACTOR, MEASURED_FACTOR = 2, 4 / 3
#: Fewer simulated numbers than this say nothing about a 95 % point; such a class is joined
#: with its neighbour.
MIN_SIMULATED = 40
#: True numbers of a size of which a larger share vanishes are often lost.
OFTEN_LOST = 0.05
#: How many times more often numbers of such a size vanish in a simulation.
LOSS_FACTOR = 2


@dataclass(frozen=True)
class Simulation:
    """A table taken for the truth, and all that is needed to release it again and again.

    The table is one that may be known: a release, a public stand-in, or, where what comes out is
    marked confidential, the truth. What is drawn here promises nothing and is charged to nothing.

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
        n_released: how many numbers of the release are of this size.
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
    """Typical errors of one level: one level of each axis's hierarchy.

    Attributes:
        depths: level on each axis, 0 for the whole.
        name: for people, as `TreeLevel.name`.
        is_rough: whether these are sums across the tree, whose errors are stated enlarged.
        overall: all published numbers together.
        classes: by size, ascending.
        often_lost: simulated true flows up to this are often published as zero; 0 if none are.
        rarely_lost: flows from here on are not; between the two lie too few to tell. None if
            there are too few larger ones.
    """

    depths: tuple[int, ...]
    name: str
    is_rough: bool
    overall: TypicalError
    classes: tuple[TypicalError, ...]
    often_lost: int
    rarely_lost: int | None


@dataclass(frozen=True, slots=True)
class TypicalErrors:
    """Typical errors of a release.

    Attributes:
        runs: number of simulated releases.
        levels: by level, coarse to fine.
    """

    runs: int
    levels: tuple[LevelErrors, ...]

    def at(self, depths: Sequence[int]) -> LevelErrors | None:
        """Errors at one level of each axis; None if that level was left out."""
        for level in self.levels:
            if level.depths == tuple(depths):
                return level
        return None


def typical_errors(  # noqa: PLR0913 - what to look at, for how long, and who is told
    release: Release,
    *,
    runs: int = 20,
    seconds: float = 20.0,
    depths: Iterable[Sequence[int]] | None = None,
    source: RandomSource | None = None,
    progress: Progress | None = None,
) -> TypicalErrors:
    """Estimate the typical error of every level of a release by simulating it again.

    Args:
        release: the release; only what is published is used.
        runs: number of simulations at most.
        seconds: no new simulation is begun after so long; there is always one.
        depths: levels (one number for each axis) to look at; by default every combination
            for tables of one or two axes, and the levels of the tree for larger ones.
        source: random bits; secure and fresh by default.
        progress: called with what is done, and how much of the work or time of 100.

    Raises:
        ReleaseError: the release cannot be read.

    Privacy:
        Post-processing of the release: no cost.
    """
    areas, flow = release.leaves()
    truth = Truth.from_leaves(release.tree, areas, flow)
    simulation = Simulation(truth, release.manifest.plan, source or SecureSource())
    factor = MEASURED_FACTOR if release.has_totals else ACROSS_FACTOR
    tallies = [
        ErrorHistogram(release.tree, at, areas, flow, factor=factor)
        for at in _chosen_depths(release.tree, depths)
    ]
    began, done = time.monotonic(), 0

    def show(*_: object) -> None:
        if progress is not None:
            passed = time.monotonic() - began
            share = max(done / max(runs, 1), passed / max(seconds, passed, 1e-9))
            progress("simulating", int(100 * share), 100)

    while not done or (done < runs and time.monotonic() - began < seconds):
        simulated = simulation.run(show)
        for tally in tallies:
            tally.add(*simulated)
        done += 1
    return TypicalErrors(done, tuple(tally.errors() for tally in tallies))


def _chosen_depths(tree: Tree, depths: Iterable[Sequence[int]] | None) -> list[tuple[int, ...]]:
    if depths is not None:
        chosen = [tuple(at) for at in depths]
    elif len(tree.axes) <= 2:
        chosen = list(product(*(range(axis.hierarchy.depth + 1) for axis in tree.axes)))
        chosen.sort(key=lambda at: (sum(at), at))
    else:
        chosen = [level.depths for level in tree.levels]
    return [at for at in chosen if Marginal(tree.axes, at).n_nodes <= MAX_CELLS]


class ErrorHistogram:
    """Errors of one level over all simulations, by size class and size of error.

    Args:
        tree: what is released.
        depths: level on each axis.
        areas: finest areas of what is taken for the truth.
        flow: its flows.
        factor: by how much errors are enlarged where the level is not one of the tree.
    """

    def __init__(
        self,
        tree: Tree,
        depths: tuple[int, ...],
        areas: Areas,
        flow: NDArray[np.int64],
        *,
        factor: float,
    ) -> None:
        self.depths = depths
        self._marginal = Marginal(tree.axes, depths)
        self.name = self._marginal.name
        self.is_rough = all(level.depths != depths for level in tree.levels)
        self._factor = factor if self.is_rough else 1
        self._truth = Cells.of(self._marginal, areas, flow)
        n_classes = len(CLASS_STARTS)
        self._released = np.bincount(class_of(self._truth.value), minlength=n_classes)
        self._errors = np.zeros((n_classes, N_BINS), np.int64)
        self._false = np.zeros(n_classes, np.int64)
        self._lost = np.zeros(n_classes, np.int64)
        self._true_bin = bin_of(self._truth.value)
        self._lost_bins = np.zeros(N_BINS, np.int64)
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
        self._lost_bins += np.bincount(self._true_bin[is_lost], minlength=N_BINS)
        self._runs += 1
        return simulated.value, truth

    def errors(self) -> LevelErrors:
        """What the tally says."""
        used = np.flatnonzero(self._released + self._errors.sum(axis=1))
        groups = _joined(used, self._errors.sum(axis=1))
        classes = tuple(self._entry(group) for group in groups)
        everything = np.arange(len(CLASS_STARTS))
        overall = self._entry(everything)
        n_true = self._runs * np.bincount(self._true_bin, minlength=N_BINS)
        losses = _losses(n_true, self._lost_bins)
        return LevelErrors(self.depths, self.name, self.is_rough, overall, classes, *losses)

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
            median=math.ceil(self._factor * quantile(bins, 0.5)),
            p95=math.ceil(self._factor * quantile(bins, 0.95)),
            false=int(self._false[group].sum()) / max(n_simulated, 1),
            lost=int(self._lost[group].sum()) / max(n_released * self._runs, 1),
        )


def class_of(value: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number of the size class of each published number."""
    return np.searchsorted(np.array(CLASS_STARTS), value, side="right") - 1


def _losses(n_true: NDArray[np.int64], n_lost: NDArray[np.int64]) -> tuple[int, int | None]:
    """Largest flow that is often lost, and one from which on they rarely are; by bin."""
    last = last_above(n_true, n_lost, LOSS_FACTOR * OFTEN_LOST)
    if last < 0:
        return 0, None
    seen = np.cumsum(n_true[last + 1 :])
    enough = last + 1 + int(np.searchsorted(seen, MIN_SIMULATED))
    return first_of(last + 1) - 1, first_of(enough) if enough < len(n_true) else None


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
