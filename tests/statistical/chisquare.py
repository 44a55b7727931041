"""Chi-square tests of draws against exact probabilities, and of two samples against each other.

The probabilities are summed here in plain floating point, which is good to 14 digits: far
better than any sample can tell, and independent of how the samplers compute theirs.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

CHUNK = 1 << 20


@dataclass(frozen=True)
class Pmf:
    """Probabilities of -reach, ..., reach; what lies beyond has probability below 10^-15."""

    p: np.ndarray

    @property
    def reach(self):
        return self.p.size // 2


def gaussian_pmf(sigma2):
    """P[x] proportional to exp(-x^2 / (2 sigma2))."""
    x = _symmetric_range(9 * float(sigma2) ** 0.5)
    return _normalise(np.exp(-(x * x) / (2 * float(sigma2))))


def laplace_pmf(scale):
    """P[x] proportional to exp(-|x| / scale)."""
    return _normalise(np.exp(-np.abs(_symmetric_range(36 * float(scale))) / float(scale)))


def count_draws(sampler, n, bits, reach):
    """Draw n times and count the values -reach, ..., reach; farther ones count as the nearest."""
    fill = getattr(sampler, "fill_rows", sampler.fill)
    counts = np.zeros(2 * reach + 1, dtype=np.int64)
    buffer = np.empty(min(n, CHUNK), dtype=np.int64)
    for start in range(0, n, CHUNK):
        part = buffer[: min(CHUNK, n - start)]
        fill(part, bits, np.array([start]), np.array([0, len(part)]))
        np.clip(part, -reach, reach, out=part)
        part += reach
        counts += np.bincount(part, minlength=counts.size)
    return counts


def goodness_of_fit(counts, pmf, *, n_bins=40):
    """The p-value of the counts under the probabilities, in bins of about equal probability."""
    bins = equal_bins(pmf.p, n_bins)
    expected = np.bincount(bins, weights=pmf.p) * counts.sum()
    return _p_value(np.bincount(bins, weights=counts), expected, bins.max())


def cell_by_cell(counts, pmf, *, min_expected=100):
    """The same with one bin to each value, but for the tails where few draws are expected."""
    expected = pmf.p * counts.sum()
    inner = np.flatnonzero(expected >= min_expected)
    # A tail with fewer than five expected draws is not chi-square distributed; its neighbour is.
    first = inner[0] - (expected[: inner[0]].sum() >= 5)
    last = inner[-1] + (expected[inner[-1] + 1 :].sum() >= 5)
    bins = np.clip(np.arange(expected.size), first, last) - first
    binned = np.bincount(bins, weights=expected)
    return _p_value(np.bincount(bins, weights=counts), binned, bins.max())


def two_samples(counts, others, *, n_bins=40):
    """The p-value of two samples under the assumption that they have one distribution."""
    both = counts + others
    bins = equal_bins(both / both.sum(), n_bins)
    pooled = np.bincount(bins, weights=both) / both.sum()
    statistic = 0.0
    for sample in (counts, others):
        expected = pooled * sample.sum()
        statistic += np.sum((np.bincount(bins, weights=sample) - expected) ** 2 / expected)
    return chi2.sf(statistic, bins.max())


def equal_bins(p, n_bins):
    """The bin of each value, 0, 1, ...: at most n_bins bins of about equal probability."""
    middles = np.cumsum(p) - p / 2
    raw = np.clip(middles * n_bins, 0, n_bins - 1).astype(np.int64)
    return np.unique(raw, return_inverse=True)[1]


def _p_value(observed, expected, degrees):
    return chi2.sf(np.sum((observed - expected) ** 2 / expected), degrees)


def _symmetric_range(reach):
    reach = int(reach) + 9
    return np.arange(-reach, reach + 1, dtype=np.float64)


def _normalise(weights):
    return Pmf(weights / weights.sum())
