"""Posterior of a count, given its expected share and its measurement: one table per level.

A count x with mean m is Poisson with rate l. With probability phi s / (m + phi s) the rate
is 0 (s is the noise scale): most pairs of areas have no trips at all. Otherwise it is
log-logistic with mean m + phi s and spread psi: a few pairs have many. So the mean is m
whatever phi and psi are, which each level chooses by maximum likelihood.

Given a noisy count y and its noise distribution, the posterior of x has a mean and a variance. They
depend on m / s and y / s and are smooth (if noise is Laplace, but for y = 0, which
is in the table), so they are looked up in a table and interpolated.
Counts are integers; where the noise is much larger than one, steps of s / 40 stand for them.
"""

import math
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from inftda.noise.distribution import Noise
from inftda.publication.measured import Families, Layer, Map, Part
from inftda.util.kernels import inlined_kernel, kernel

Grid = NDArray[np.float64]

#: A noisy count above this many noise scales needs no prior: it is taken as it is. Laplace noise
#: goes as far once in about 160,000 draws.
PRIOR_FREE_SIGMAS: Final = 8.0
#: Logarithm of mean / s, and noisy count / s: where the table starts, how fine it is, its end.
LEAST_MEAN, MEAN_STEPS, MOST_MEAN = -12.0, 4, 3.0
LEAST_NOISY, NOISY_STEPS, MOST_NOISY = -7.0, 4, 16.0
#: Rates: logarithm of rate / s. What is not clear is well below 16 s.
_RATES: Final = np.arange(-6.0, math.log(16.0), 0.2)
_MEANS: Final = np.arange(LEAST_MEAN, MOST_MEAN + 1e-9, 1 / MEAN_STEPS)
_NOISY: Final = np.arange(LEAST_NOISY, MOST_NOISY + 1e-9, 1 / NOISY_STEPS)
#: Steps in a noise scale at most.
_STEPS: Final = 40
#: Spreads and shares of zeros to choose from, and the choice that others must beat clearly.
SPREADS: Final = (0.2, 0.35, 0.5, 0.7, 1.0, 1.4)
ZEROS: Final = (0.01, 0.03, 0.1, 0.3, 0.6, 1.0, 1.7, 3.0, 5.0)
_DEFAULT: Final = (1.0, 0.3)
_CLEARLY: Final = 2.0


@dataclass(frozen=True)
class Posterior:
    """Posterior of a count by its mean and its noisy value; all in noise scales.

    Attributes:
        spread: psi.
        zeros: phi.
        moments: float64[means, noisy values, 2], mean and variance.
    """

    spread: float
    zeros: float
    moments: Grid


def posterior_of(layer: Layer, log_mean: NDArray[np.float32], map_: Map) -> Posterior:
    """The table of a level, with the prior that explains its counts best."""

    def count(part: Part) -> NDArray[np.int64]:
        seen = np.zeros((len(_MEANS), len(_NOISY)), np.int64)
        seen_kernel(part, layer.families, log_mean, seen)
        return seen

    known = CountDistribution.of(layer.noise)
    seen = sum(map_(count, layer.parts()), np.zeros((len(_MEANS), len(_NOISY)), np.int64))
    spread, zeros = _most_likely(known, seen)
    counts = _counts(known, spread, zeros)
    evidence = counts @ known.noise + 1e-300
    mean = counts @ (known.count[:, None] * known.noise) / evidence
    square = counts @ (known.count[:, None] ** 2 * known.noise) / evidence
    moments = np.stack([np.maximum(mean, 1e-9), np.maximum(square - mean**2, 1e-9)], axis=-1)
    return Posterior(spread, zeros, moments)


def _counts(known: "CountDistribution", spread: float, zeros: float) -> Grid:
    """float64[means, counts]: probability of each count before it is measured."""
    weights, none = _rate_weights(spread, zeros)
    counts = weights @ known.counts
    counts[:, 0] += none
    return counts


@dataclass(frozen=True)
class CountDistribution:
    """Counts given rates, and noisy counts given counts; counts in noise scales.

    Attributes:
        count: float64[counts].
        counts: float64[rates, counts], probability.
        noise: float64[counts, noisy values], likelihood.
        near: the same of all noisy counts to which a noisy value is the nearest one.
    """

    count: Grid
    counts: Grid
    noise: Grid
    near: Grid

    @classmethod
    def of(cls, noise: Noise) -> "CountDistribution":
        """Distribution of the counts of a level with this noise."""
        sigma = noise.sigma
        step = max(1.0, sigma / _STEPS)
        rate = np.exp(_RATES) * sigma
        count = np.arange(math.ceil((rate[-1] + 8 * math.sqrt(rate[-1])) / step) + 5) * step
        if step == 1.0:
            log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, len(count))))])
            log = count * np.log(rate)[:, None] - rate[:, None] - log_factorial
        else:
            log = -0.5 * (count - rate[:, None]) ** 2 / (rate[:, None] + step**2 / 4)
        counts = np.exp(log)
        counts /= counts.sum(axis=1, keepdims=True)
        likelihood = _likelihood(noise, _NOISY * sigma, count)
        near = _near(noise, count, step) if noise.is_laplace else likelihood
        return cls(count / sigma, counts, likelihood, near)


def _likelihood(noise: Noise, noisy: Grid, count: Grid) -> Grid:
    """float64[counts, noisy counts], up to a factor that all have in common."""
    off = noisy - count[:, None]
    if noise.is_laplace:
        return np.asarray(np.exp(-np.abs(off) / float(noise.scale)))
    return np.asarray(np.exp(-0.5 * (off / noise.sigma) ** 2))


def _near(noise: Noise, count: Grid, step: float) -> Grid:
    """float64[counts, noisy values]: likelihood summed up over the noisy counts near each.

    A Laplace has a peak that is narrower than the steps of the table. Counts of 0 are most of a
    level, so a peak that is too high by a tenth would be explained by counts that are not there.
    """
    ends = np.array([LEAST_NOISY, MOST_NOISY]) * noise.sigma / step
    steps = np.arange(math.ceil(ends[0]), math.floor(ends[1]) + 1)
    # Steps that are not those of whole numbers: in the middle, so that none is between two values.
    noisy = steps * step if step == 1.0 else (steps + 0.5) * step
    column = np.rint((noisy / noise.sigma - LEAST_NOISY) * NOISY_STEPS).astype(int)
    is_there = np.minimum(column, len(_NOISY) - 1)[:, None] == np.arange(len(_NOISY))
    return np.asarray(_likelihood(noise, noisy, count) @ is_there)


@cache
def _rate_weights(spread: float, zeros: float) -> tuple[Grid, Grid]:
    """float64[means, rates]: probability of each rate; and of rate 0."""
    places = np.arange(-14.0, 8.0, 0.05)
    mean_at = _log_logistic(places, spread) @ np.exp(_RATES)
    wanted = np.exp(_MEANS) + zeros
    weights = _log_logistic(np.interp(wanted, mean_at, places), spread)
    positive = np.minimum(np.exp(_MEANS) / (weights @ np.exp(_RATES)), 1.0)
    return weights * positive[:, None], 1 - positive


def _log_logistic(place: Grid, spread: float) -> Grid:
    """float64[places, rates]: cut off where the rates end."""
    weights = np.cosh((_RATES - place[:, None]) / (2 * spread)) ** -2.0
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _most_likely(known: CountDistribution, seen: NDArray[np.int64]) -> tuple[float, float]:
    """Spread and share of zeros; the default unless another is clearly more likely."""
    by_rate, by_none = known.counts @ known.near, known.near[0]

    def likelihood(choice: tuple[float, float]) -> float:
        weights, none = _rate_weights(*choice)
        evidence = weights @ by_rate + none[:, None] * by_none
        # Clear counts are not among those seen.
        evidence /= evidence[:, _NOISY <= PRIOR_FREE_SIGMAS].sum(axis=1, keepdims=True) + 1e-300
        return float((seen * np.log(evidence + 1e-300)).sum())

    best = max(((spread, zeros) for spread in SPREADS for zeros in ZEROS), key=likelihood)
    return best if likelihood(best) > likelihood(_DEFAULT) + _CLEARLY else _DEFAULT


@inlined_kernel
def interpolate(table: Grid, log_mean: float, noisy: float) -> tuple[float, float]:
    """Both values of float64[means, noisy values, 2] between four of its cells."""
    row = (log_mean - LEAST_MEAN) * MEAN_STEPS
    column = (noisy - LEAST_NOISY) * NOISY_STEPS
    row = min(max(row, 0.0), table.shape[0] - 1.000001)
    column = min(max(column, 0.0), table.shape[1] - 1.000001)
    i, j = int(row), int(column)
    a, b = row - i, column - j
    p, q, r, s = (1 - a) * (1 - b), (1 - a) * b, a * (1 - b), a * b
    return (
        p * table[i, j, 0] + q * table[i, j + 1, 0]
        + r * table[i + 1, j, 0] + s * table[i + 1, j + 1, 0],
        p * table[i, j, 1] + q * table[i, j + 1, 1]
        + r * table[i + 1, j, 1] + s * table[i + 1, j + 1, 1],
    )  # fmt: skip


@kernel
def seen_kernel(
    part: Part,
    families: Families,
    log_mean: NDArray[np.float32],
    seen: NDArray[np.int64],
) -> None:
    """Count the counts of some families that are not clear by the nearest cell of `seen`."""
    offsets, noisy, sigma = families.offsets, families.noisy, families.sigma
    for f in range(part[0], part[1]):
        if offsets[f + 1] - offsets[f] == 1:  # an only child was not measured
            continue
        for i in range(offsets[f], offsets[f + 1]):
            if noisy[i] > PRIOR_FREE_SIGMAS * sigma:
                continue
            row = int(np.rint((log_mean[i] - LEAST_MEAN) * MEAN_STEPS))
            column = int(np.rint((noisy[i] / sigma - LEAST_NOISY) * NOISY_STEPS))
            row = min(max(row, 0), seen.shape[0] - 1)
            seen[row, min(max(column, 0), seen.shape[1] - 1)] += 1
