"""What to think of a count, against sums over all that it may be."""

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from inftda.estimates import prior
from inftda.estimates.balance import Evidence, SumDuals, shift_kernel
from inftda.estimates.prior import (
    LEAST_MEAN,
    LEAST_NOISY,
    MEAN_STEPS,
    NOISY_STEPS,
    CountDistribution,
    interpolate,
    posterior_of,
)
from inftda.noise.distribution import Noise
from inftda.publication.measured import Families

#: Both have a standard deviation of about ten.
GAUSSIAN, LAPLACE = Noise(Fraction(100)), Noise.laplace(Fraction(7))
LAWS = pytest.mark.parametrize("law", [GAUSSIAN, LAPLACE], ids=["gaussian", "laplace"])


def _weight(law, off):
    """Of noise, up to a factor."""
    if law.is_laplace:
        return math.exp(-abs(off) / law.scale)
    return math.exp(-(off**2) / (2 * law.square))


def _level(law, noisy, mean):
    """A level whose counts are one family, and the logarithms of their means."""
    families = Families(
        np.array([0, len(noisy)]), np.zeros(1, np.int64), noisy, np.empty(0, np.int32), law.sigma
    )
    layer = SimpleNamespace(noise=law, families=families, parts=lambda: [(0, 1)])
    return layer, np.log(np.full(len(noisy), mean) / law.sigma).astype(np.float32)


def _posterior(law, counts, mean, seed=0):
    random = np.random.default_rng(seed)
    if law.is_laplace:
        noise = random.laplace(0, float(law.scale), len(counts))
    else:
        noise = random.normal(0, law.sigma, len(counts))
    noisy = np.round(counts + noise).astype(np.int64)
    layer, log_mean = _level(law, noisy, mean)
    return posterior_of(layer, log_mean, map), noisy


@pytest.fixture(scope="module")
def counts():
    """Zeros, and one count in five that is not."""
    random = np.random.default_rng(1)
    return np.where(random.random(20_000) < 0.2, random.poisson(25, 20_000), 0)


def _weights(law, chances, noisy):
    """Of each count, by Bayes' rule."""
    weights = np.array([p * _weight(law, noisy - x) for x, p in enumerate(chances)])
    return weights / math.fsum(weights)


@pytest.fixture(scope="module", params=[GAUSSIAN, LAPLACE], ids=["gaussian", "laplace"])
def known(request, counts):
    """Noise, and the posterior of what was measured with it."""
    return request.param, _posterior(request.param, counts, 5.0)[0]


@pytest.mark.parametrize("noisy", [-25, -1, 0, 3, 12, 30, 55, 79])
@pytest.mark.parametrize("row", [20, 40, 48, 55])
def test_a_posterior_is_that_of_all_counts_one_by_one(known, noisy, row):
    law, found = known
    weights = _weights(
        law, prior._counts(CountDistribution.of(law), found.spread, found.zeros)[row], noisy
    )
    mean = math.fsum(x * w for x, w in enumerate(weights))
    variance = math.fsum((x - mean) ** 2 * w for x, w in enumerate(weights))
    at = LEAST_MEAN + row / MEAN_STEPS, noisy / law.sigma
    by_table = interpolate.py_func(found.moments, *at)
    # Between the cells of a table, a quarter of a noise scale apart, lines are straight.
    assert by_table[0] * law.sigma == pytest.approx(mean, rel=0.02, abs=0.02 * law.sigma)
    assert by_table[1] * law.sigma**2 == pytest.approx(variance, rel=0.05, abs=0.02 * law.sigma**2)


def test_below_zero_laplace_noise_says_nothing_more(counts):
    """Whatever the count is, a value of -20 is as much less likely than one of 0."""
    found, _ = _posterior(LAPLACE, counts, 5.0)
    zero = round(-LEAST_NOISY * NOISY_STEPS)
    assert found.moments[:, :zero] == pytest.approx(
        np.broadcast_to(found.moments[:, [zero]], found.moments[:, :zero].shape)
    )


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(7), Fraction(100)])
def test_what_is_counted_near_a_value_is_as_likely_as_noise_is(scale):
    """Of a count of 0, for which half a cell matters: probabilities of the cells next to it."""
    law = Noise.laplace(scale)
    near = CountDistribution.of(law).near[0]
    zero = round(-LEAST_NOISY * NOISY_STEPS)
    x = np.arange(-40 * math.ceil(law.sigma), 40 * math.ceil(law.sigma) + 1)
    chance = np.exp(-np.abs(x) / float(scale))
    cell = np.rint((x / law.sigma - LEAST_NOISY) * NOISY_STEPS)
    for one in range(zero - 4, zero + 5):
        wanted = chance[cell == one].sum() / chance.sum()
        assert near[one] / near.sum() == pytest.approx(wanted, rel=0.05, abs=1e-4)


@pytest.mark.parametrize("more", [-8.0, 3.0, 20.0])
def test_estimates_add_up_and_all_that_are_uncertain_move(known, more):
    """With Laplace noise also those below zero, whose noisy value could be shifted in vain."""
    law, found = known
    noisy = np.array([-30, -12, 0, 14, 40, 300])
    layer, log_mean = _level(law, noisy, 5.0)
    evidence = Evidence(log_mean, found.moments, not law.is_laplace, np.empty(0), np.empty(0))
    duals = SumDuals(np.empty((0, 1), np.int64), np.empty(0), np.empty((2, 0)))

    def estimates(count):
        into = np.zeros(1), np.empty(len(noisy))
        shift_kernel((0, 1), layer.families, evidence, np.array([count]), duals, 0.01, into)
        return into[1]

    at = log_mean[0], noisy / law.sigma
    own = [interpolate.py_func(found.moments, at[0], y)[0] * law.sigma for y in at[1][:-1]]
    alone = estimates(sum(own) + 300.0)
    assert alone == pytest.approx([*own, 300.0], rel=0.01)
    moved = estimates(alone.sum() + more)
    assert moved.sum() == pytest.approx(alone.sum() + more)
    assert (moved >= 0).all()
    assert (np.sign(moved - alone) == np.sign(more)).all()
