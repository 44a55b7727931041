"""From releases of two neighbouring tables to a lower bound on epsilon.

If a release is (epsilon, delta)-private, then for every event E about what is released

    P[E | left] <= e^epsilon P[E | right] + delta,   and the same with the sides exchanged.

So an event that is too frequent on one side disproves the claim. Events are looked for in one
sample and judged in another that took no part in the search; the judgement is Clopper and
Pearson's, exact for every sample size. Nothing here knows how the release is made.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

#: What one audit may be wrong by chance with. Some 300 are made at a time.
ODDS: Final = 1e-9
#: How sure the search wants to be: nearly as much as the judgement, or it falls for rare events
#: that were frequent by chance. With 1e-3 it did once in thirty audits.
_SEARCH_ODDS: Final = 1e-7
_N_THRESHOLDS: Final = 80
_N_CELLS: Final = 6
_REACHES: Final = (1.0, 4.0)
_TRAINING_SHARE: Final = 0.25
_MOST_AT_ONCE: Final = 25_000

Features = NDArray[np.float64]
Scorer = Callable[[Features], NDArray[np.float64]]


@dataclass(frozen=True)
class Sample:
    """What independent releases of two neighbouring tables show.

    Attributes:
        left: float[n, features], one row for each release of the first table.
        right: likewise of the second.
        epsilon: what the releases claim.
        delta: likewise.
    """

    left: Features
    right: Features
    epsilon: float
    delta: float


class Box(Protocol):
    """A sealed box: releases of two neighbouring tables, and what they claim."""

    def draw(self, n: int, batch: int) -> Sample:
        """`n` releases of either table; different batches are independent."""


@dataclass(frozen=True)
class Event:
    """Something that may be said of one release: its score is at least, or at most, so much."""

    name: str
    scorer: Scorer
    threshold: float
    is_above: bool
    is_left_likelier: bool

    def hits(self, features: Features) -> int:
        """Number of releases it is true of."""
        score = self.scorer(features)
        return int(np.sum(score >= self.threshold if self.is_above else score < self.threshold))


@dataclass(frozen=True)
class Finding:
    """What an audit found.

    Attributes:
        epsilon: claimed.
        delta: claimed.
        lower: epsilon is at least this, but for odds of `ODDS`; -inf if nothing was found.
        event: what told the two sides apart.
        n: releases of either table that it was judged by.
    """

    epsilon: float
    delta: float
    lower: float
    event: str
    n: int

    @property
    def is_caught(self) -> bool:
        """Whether the claim is disproved."""
        return self.lower > self.epsilon


def audit(box: Box, n: int, *, odds: float = ODDS) -> Finding:
    """Look for an event in a part of `n` releases of either table, and judge it by the others."""
    n_training = int(n * _TRAINING_SHARE)
    sample = box.draw(n_training, 0)
    event = best_event(sample)
    hits = np.zeros(2, np.int64)
    done = 0
    while done < n - n_training:
        size = min(_MOST_AT_ONCE, n - n_training - done)
        fresh = box.draw(size, 1 + done // _MOST_AT_ONCE)
        hits += event.hits(fresh.left), event.hits(fresh.right)
        done += size
    often, seldom = hits if event.is_left_likelier else hits[::-1]
    lower = float(lower_epsilon(often, seldom, done, delta=sample.delta, odds=odds))
    return Finding(sample.epsilon, sample.delta, lower, event.name, done)


def lower_epsilon(often, seldom, n: int, *, delta: float, odds: float):
    """The epsilon that an event proves, but for `odds`; -inf where it proves nothing.

    Args:
        often: releases of one table that the event is true of.
        seldom: releases of the other.
        n: number of releases of either.
        delta: claimed.
        odds: of being wrong, shared by the two probabilities.
    """
    excess = at_least(often, n, odds / 2) - delta
    with np.errstate(divide="ignore"):
        log_excess = np.log(np.maximum(excess, 0.0))
    return log_excess - np.log(at_most(seldom, n, odds / 2))


def at_least(hits, n: int, odds: float):
    """Clopper and Pearson's lower bound on a probability, wrong with at most these odds."""
    k = np.asarray(hits, np.float64)
    return np.where(k > 0, beta.ppf(odds, np.maximum(k, 1), n - k + 1), 0.0)


def at_most(hits, n: int, odds: float):
    """Clopper and Pearson's upper bound on a probability, wrong with at most these odds."""
    return 1 - at_least(n - np.asarray(hits, np.int64), n, odds)


def best_event(sample: Sample) -> Event:
    """The event that proves most of epsilon in this sample."""
    found: list[tuple[float, Event]] = []
    for name, scorer in scorers(sample.left, sample.right):
        left, right = np.sort(scorer(sample.left)), np.sort(scorer(sample.right))
        both = np.concatenate([left, right])
        cuts = np.unique(np.quantile(both, np.linspace(0, 1, _N_THRESHOLDS), method="higher"))
        below = np.stack([np.searchsorted(left, cuts), np.searchsorted(right, cuts)])
        for is_above, is_left_likelier in product((True, False), repeat=2):
            hits = len(left) - below if is_above else below
            often, seldom = hits if is_left_likelier else hits[::-1]
            proved = lower_epsilon(often, seldom, len(left), delta=sample.delta, odds=_SEARCH_ODDS)
            best = int(np.argmax(proved))
            event = Event(name, scorer, float(cuts[best]), is_above, is_left_likelier)
            found.append((float(proved[best]), event))
    return max(found, key=lambda pair: pair[0])[1]


def scorers(left: Features, right: Features) -> Iterator[tuple[str, Scorer]]:
    """Ways to put a release on a scale with one world at either end."""
    # Simple ones first: of two that do equally well in the search the first is taken, and
    # weights fitted to a small sample separate it by chance.
    middle = (left.mean(axis=0) + right.mean(axis=0)) / 2
    spread = (left.std(axis=0) + right.std(axis=0)) / 2
    gap = np.abs(left.mean(axis=0) - right.mean(axis=0)) / (spread + 1e-9)
    for cell in np.argsort(-gap, kind="stable")[:_N_CELLS]:
        yield f"number {cell}", partial(_single, int(cell))
    for name, side in (("left", left), ("right", right)):
        rows, times = np.unique(side, axis=0, return_counts=True)
        yield f"what is commonest on the {name}", partial(_equal_to, rows[np.argmax(times)])
    yield "linear score", _linear(left, right)
    for reach in _REACHES:
        # Best where noise is Laplace: beyond it, the size of a number adds no information.
        clip = partial(_clipped, middle, reach)
        yield f"linear score, clipped at {reach}", _linear(left, right, clip)


def _single(cell, features):
    return features[:, cell]


def _equal_to(row, features):
    return (features == row).all(axis=1).astype(np.float64)


def _clipped(middle, reach, features):
    return np.clip(features - middle, -reach, reach)


def _linear(left: Features, right: Features, clip=lambda features: features) -> Scorer:
    """Fisher's linear discriminant: the best weights where noise is Gaussian."""
    left, right = clip(left), clip(right)
    centred = np.concatenate([left - left.mean(axis=0), right - right.mean(axis=0)])
    covariance = centred.T @ centred / len(centred)
    scale = max(float(np.trace(covariance)), 1e-12)
    # A trifle on the diagonal: sums may be fixed, so that some directions have no noise. In
    # these a difference tells everything, and the weights there become as large as they should.
    regular = covariance + 1e-9 * scale * np.eye(len(covariance))
    weights = np.linalg.solve(regular, left.mean(axis=0) - right.mean(axis=0))
    return lambda features: clip(features) @ weights
