"""Posterior distribution of the true counts of a measured table, by empirical Bayes.

A noisy value y is the truth x and noise of a known distribution. The distribution of x is not
known, but many cells of the same table were measured, so it is estimated from all their noisy
values (deconvolution): a mixture of a point at 0 and narrow bumps, whose weights are fitted by
expectation and maximization. A class of cells of about the same expected size has weights of its
own, which start at those of the table. An interval is the shortest that has 95.5 % of the posterior
of x; it is stated as 95 %, since the mixture is only fitted.

The published number p of a cell also depends on its siblings and on the total of its parent. So the
lower end is that of the smaller of p and y, and the upper end that of the larger. Far above the
noise no prior is needed: there the interval is y and a quantile of the noise on either side.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inftda.noise.distribution import Noise
from inftda.publication.measured import Ends, Floats
from inftda.util.kernels import kernel

Ints = NDArray[np.int64]
#: Class of each cell, by number.
Kinds = NDArray[np.int8]

#: Part of the posterior outside of an interval that is stated as 95 %.
MISSED: Final = 0.045
#: In standard deviations of the noise: noisy values that need no prior, and the largest count.
_CLEAR, _MOST = 10.0, 18.0
#: Bumps: one over the variance of their relative width, their first mean, and the ratio of means.
_SHAPE, _FIRST_MEAN, _RATIO = 100.0, 0.05, 2**0.15
#: Largest numbers per standard deviation: steps of counts, bins of noisy values, and steps of noisy
#: values in posteriors.
_STEPS, _BINS, _PLACES = 12, 8, 200
#: Noisy values for which the posterior is computed; between these it is interpolated.
_POINTS: Final = 300
#: Noisy values further below zero, in standard deviations, share one bin.
_LOWEST: Final = 14
#: Steps of the fit, and weights, in cells, of the flat prior and of the prior of the table.
_ITERATIONS, _FLAT, _TABLE = 100, 3.0, 10.0
#: Upper limit of a count, also for measurements of an untrusted release.
LARGEST: Final = 1 << 62
#: Up to this scale noise is far from normal, or has wider tails.
_FAR: Final = {False: 12, True: 32}


class CountPosterior(NamedTuple):
    """Posterior of a count by its noisy value, from the lowest value on, in equal steps.

    Attributes:
        low: int64, lower end of the interval.
        high: int64, upper end.
        mean: float64, of the count.
        variance: float64, of the count.
        noise: float64, probability that the count is below half a standard deviation.
    """

    low: Ints
    high: Ints
    mean: Floats
    variance: Floats
    noise: Floats


@dataclass(frozen=True)
class Deconvolution:
    """Estimator of the distribution of counts that were measured with some noise.

    Attributes:
        noise: distribution of the noise.
    """

    noise: Noise

    @cached_property
    def bin(self) -> int:
        """Width of the bins of noisy values."""
        return max(1, int(self.noise.sigma / _BINS))

    @cached_property
    def lowest(self) -> int:
        """The first bin."""
        return -math.ceil(_LOWEST * self.noise.sigma / self.bin)

    @cached_property
    def n_bins(self) -> int:
        """Number of bins; larger noisy values are in none."""
        return int(_MOST * self.noise.sigma / self.bin) - self.lowest

    @cached_property
    def half(self) -> int:
        """Half width of an interval that needs no prior."""
        return self.noise.half_width(MISSED)

    @cached_property
    def _counts(self) -> Ints:
        """Grid of true counts."""
        step = max(1, int(self.noise.sigma / _STEPS))
        return np.arange(int(_MOST * self.noise.sigma / step) + 2) * step

    @cached_property
    def _bumps(self) -> Floats:
        """float64[components, counts]: probabilities; the first component is 0."""
        sigma, count = self.noise.sigma, self._counts
        means = _FIRST_MEAN * sigma * _RATIO ** np.arange(200)
        mean = means[means < 0.8 * _MOST * sigma, None]
        step = int(count[1])
        if step == 1:  # negative binomial
            factorial = np.array([math.lgamma(x + _SHAPE) - math.lgamma(x + 1) for x in count])
            log = factorial + _SHAPE * np.log(_SHAPE / (_SHAPE + mean))
            log += count * np.log(mean / (_SHAPE + mean))
            bumps = np.exp(log - log.max(axis=1, keepdims=True))
        else:  # gamma, averaged over each step
            at = (count[:, None] + step * ((np.arange(8) + 0.5) / 8 - 0.5)).ravel()
            log = (_SHAPE - 1) * np.log(np.maximum(at, 1e-9)) - _SHAPE * at / mean
            density = np.exp(log - log.max(axis=1, keepdims=True)) * (at > 0)
            bumps = density.reshape(len(mean), -1, 8).mean(axis=2)
        bumps /= bumps.sum(axis=1, keepdims=True)
        return np.vstack([np.eye(1, len(count)), bumps])

    @cached_property
    def _probabilities(self) -> Floats:
        """float64: probabilities of the noise, from its lowest to its highest value."""
        noise = self.noise
        furthest = math.ceil(_FAR[noise.is_laplace] * noise.sigma) + 2
        off = np.abs(np.arange(-furthest, furthest + 1.0))
        scale = float(noise.scale) if noise.is_laplace else math.sqrt(noise.square)
        weight = np.exp(-off / scale if noise.is_laplace else -0.5 * (off / scale) ** 2)
        return np.asarray(weight / weight.sum())

    @cached_property
    def _seen(self) -> tuple[Floats, Floats]:
        """float64[components, bins]: likelihood of each bin, given any bin; and of any bin."""
        below = np.append(0.0, np.cumsum(self._probabilities))
        furthest = len(self._probabilities) // 2
        ends = (self.lowest + np.arange(self.n_bins + 1)) * self.bin - self._counts[:, None]
        inside = np.diff(below[np.clip(ends + furthest, 0, len(below) - 1)], axis=1)
        seen = self._bumps @ inside
        hit = np.maximum(seen.sum(axis=1), 1e-9)
        return seen / hit[:, None], hit

    @cached_property
    def _points(self) -> Ints:
        """Noisy values for which the posterior is computed."""
        low, high = self.lowest * self.bin, int(_CLEAR * self.noise.sigma)
        return np.unique(np.linspace(low, high, min(_POINTS, high - low + 1)).astype(np.int64))

    @cached_property
    def _likelihood(self) -> Floats:
        """float64[counts, points]."""
        furthest = len(self._probabilities) // 2
        off = self._points - self._counts[:, None]
        found = self._probabilities[np.clip(off + furthest, 0, 2 * furthest)]
        return np.where(np.abs(off) <= furthest, found, 0)

    def counted(self, noisy: Ints) -> Ints:
        """int64[bins]: number of noisy values in each."""
        at = noisy // self.bin - self.lowest
        return np.bincount(np.maximum(at[at < self.n_bins], 0), minlength=self.n_bins)

    def fit(self, seen: Ints, start: Floats | None = None) -> Floats:
        """Fit the weights of the components to the number of noisy values in each bin.

        Args:
            seen: int64[bins].
            start: weights of the whole table; None when it is the whole table that is fitted.
        """
        n, likelihood = len(self._bumps), self._seen[0]
        flat = np.append(n, np.ones(n - 1)) / (2 * n - 1)
        start, known = (flat, _FLAT) if start is None else (start, _TABLE)
        is_seen, weight = seen > 0, start
        likelihood, count = likelihood[:, is_seen], seen[is_seen]
        for _ in range(_ITERATIONS):
            weight = weight * (likelihood @ (count / (weight @ likelihood + 1e-300)))
            weight += known * start
            weight /= weight.sum()
        return weight

    def posterior(self, weight: Floats) -> CountPosterior:
        """Compute the posterior of counts with these weights."""
        count, points = self._counts.astype(float), self._points
        found = self._likelihood * ((weight / self._seen[1]) @ self._bumps)[:, None]
        found /= found.sum(axis=0) + 1e-300
        low, high = shortest_kernel(np.cumsum(found, axis=0))
        mean = count @ found
        variance = np.maximum((count**2) @ found - mean**2, 1e-6)
        noise = found[count < self.noise.sigma / 2].sum(axis=0)
        at = points[0] + np.arange(self.n_values) * self.step
        columns = (np.interp(at, points, of) for of in (count[low], count[high], mean, variance))
        lower, higher, mean, variance = columns
        return CountPosterior(
            np.floor(lower + 1e-6).astype(np.int64), np.ceil(higher - 1e-6).astype(np.int64),
            mean, variance, np.interp(at, points, noise),
        )  # fmt: skip

    @cached_property
    def step(self) -> int:
        """Number of noisy values that share an entry of a `CountPosterior`."""
        return max(1, int(self.noise.sigma / _PLACES))

    @cached_property
    def n_values(self) -> int:
        """Number of entries of a `CountPosterior`."""
        return int(self._points[-1] - self._points[0]) // self.step + 1

    def place(self, noisy: NDArray[np.integer]) -> Ints:
        """int64: entries of noisy values in a `CountPosterior`, whose ends are open."""
        at = (np.clip(noisy, -LARGEST, LARGEST) - self._points[0]) // self.step
        return np.asarray(np.clip(at, 0, self.n_values - 1))

    def is_clear(self, noisy: NDArray[np.integer]) -> NDArray[np.bool_]:
        """bool: which noisy values need no prior."""
        return np.asarray(noisy > int(_CLEAR * self.noise.sigma))


@lru_cache(maxsize=32)
def deconvolution(noise: Noise) -> Deconvolution:
    """Make the estimator for a noise distribution; cached."""
    return Deconvolution(noise)


@dataclass(frozen=True)
class CellPosteriors:
    """Posteriors of the cells of a table.

    Attributes:
        rule: the estimator for the noise of the table.
        classes: posteriors of the classes of its cells.
    """

    rule: Deconvolution
    classes: Sequence[CountPosterior]

    @classmethod
    def of(cls, rule: Deconvolution, seen: Sequence[Ints]) -> "CellPosteriors":
        """Compute posteriors of all classes from the number of noisy values in each bin."""
        table = rule.fit(np.sum(seen, axis=0))
        weights = [rule.fit(one, table) for one in seen] if len(seen) > 1 else [table]
        return cls(rule, [rule.posterior(weight) for weight in weights])

    def ends(self, kind: Kinds, noisy: Ints, number: Ints) -> Ends:
        """Intervals of some cells.

        Args:
            kind: their classes.
            noisy: their noisy values.
            number: their published numbers.
        """
        noisy = np.clip(noisy, -LARGEST, LARGEST)
        least, most = np.minimum(noisy, number), np.maximum(noisy, number)
        low, high = self._of("low", kind, least), self._of("high", kind, most)
        rule = self.rule
        low = np.where(rule.is_clear(least), least - rule.half, low)
        high = np.where(rule.is_clear(most), most + rule.half, high)
        return np.maximum(low, 0), high

    def moments(self, kind: Kinds, noisy: Ints) -> tuple[Floats, Floats]:
        """Mean and variance of the true counts of some cells."""
        mean, variance = self._of("mean", kind, noisy), self._of("variance", kind, noisy)
        is_clear = self.rule.is_clear(noisy)
        return np.where(is_clear, noisy, mean), np.where(
            is_clear, self.rule.noise.sigma**2, variance
        )

    def noise(self, kind: Kinds, noisy: Ints) -> Floats:
        """Probability of each cell that its true count is below half a standard deviation."""
        return np.where(self.rule.is_clear(noisy), 0.0, self._of("noise", kind, noisy))

    def _of(self, name: str, kind: Kinds, noisy: Ints) -> NDArray[Any]:
        table = np.stack([getattr(one, name) for one in self.classes])
        return np.asarray(table[kind, self.rule.place(noisy)])


@kernel
def shortest_kernel(below: Floats) -> tuple[Ints, Ints]:
    """First and last row of the shortest range that leaves out at most `MISSED` of each column.

    All rows if there is none. `below` has the sums of the probabilities of the rows up to each.
    """
    n_rows, n_columns = below.shape
    low, high = np.zeros(n_columns, np.int64), np.full(n_columns, n_rows - 1)
    for column in range(n_columns):
        last, size = 0, n_rows
        for first in range(n_rows):
            least = (below[first - 1, column] if first else 0.0) + 1 - MISSED - 1e-9
            while last < n_rows and below[last, column] < least:
                last += 1
            if last == n_rows:
                break
            if last - first < size:
                size, low[column], high[column] = last - first, first, last
    return low, high
