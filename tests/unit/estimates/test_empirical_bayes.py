"""Posteriors of counts that were measured with noise, against sums over all that they may be."""

from fractions import Fraction

import numpy as np
import pytest

from inftda.noise.distribution import Noise
from inftda.publication.empirical_bayes import MISSED, CellPosteriors, Deconvolution, deconvolution

#: Both have a standard deviation of about ten.
GAUSSIAN, LAPLACE = Noise(Fraction(100)), Noise.laplace(Fraction(7))
LAWS = pytest.mark.parametrize("law", [GAUSSIAN, LAPLACE], ids=["gaussian", "laplace"])
N = 20_000


def measured(law, seed=1):
    """Counts of which four in five are 0, and what was measured."""
    random = np.random.default_rng(seed)
    counts = np.where(random.random(N) < 0.2, random.poisson(25, N), 0)
    if law.is_laplace:
        noise = random.laplace(0, float(law.scale), N)
    else:
        noise = random.normal(0, law.sigma, N)
    return counts, np.round(counts + noise).astype(np.int64)


def posteriors(law, noisy):
    rule = deconvolution(law)
    return CellPosteriors.of(rule, [rule.counted(noisy)])


def mixture(rule, weight):
    """Probability of each count before it is measured, of all that may be measured."""
    chances = (weight / rule._seen[1]) @ rule._bumps
    return chances / chances.sum()


@LAWS
@pytest.mark.parametrize("noisy", [-25, 0, 7, 30, 90])
def test_an_interval_is_the_shortest_that_has_enough_of_the_posterior(law, noisy):
    rule = deconvolution(law)
    weight = rule.fit(rule.counted(measured(law)[1]))
    found, at = rule.posterior(weight), int(rule.place(np.array([noisy]))[0])
    count = np.arange(len(rule._counts))
    off = np.abs(noisy - count)
    likely = np.exp(-off / float(law.scale)) if law.is_laplace else np.exp(-(off**2) / 200)
    chances = mixture(rule, weight) * likely
    chances /= chances.sum()
    low, high = found.low[at], found.high[at]
    assert chances[low : high + 1].sum() >= 1 - MISSED - 1e-6
    shorter = high - low  # one less
    assert (
        max((chances[i : i + shorter].sum() for i in range(len(chances))), default=0)
        < 1 - MISSED + 1e-6
    )
    assert found.mean[at] == pytest.approx((count * chances).sum(), abs=1e-6)
    variance = (count**2 * chances).sum() - (count * chances).sum() ** 2
    assert found.variance[at] == pytest.approx(variance, abs=1e-4)
    assert found.noise[at] == pytest.approx(chances[: int(np.ceil(law.sigma / 2))].sum(), abs=1e-6)


@LAWS
def test_intervals_hold_in_classes_of_what_was_measured(law):
    counts, noisy = measured(law)
    low, high = posteriors(law, noisy).ends(np.zeros(N, np.int8), noisy, noisy)
    holds = (low <= counts) & (counts <= high)
    assert 0.95 <= holds.mean() <= 0.99
    for least in range(-20, 50, 10):
        inside = (noisy >= least) & (noisy < least + 10)
        assert inside.sum() > 100
        assert holds[inside].mean() >= 0.93


@LAWS
def test_means_and_noise_are_those_of_the_counts(law):
    counts, noisy = measured(law)
    found, kind = posteriors(law, noisy), np.zeros(N, np.int8)
    mean, variance = found.moments(kind, noisy)
    assert mean.mean() == pytest.approx(counts.mean(), rel=0.06)
    assert np.mean((counts - mean) ** 2) == pytest.approx(variance.mean(), rel=0.05)
    is_noise = counts < law.sigma / 2
    assert found.noise(kind, noisy).mean() == pytest.approx(is_noise.mean(), abs=0.03)


@LAWS
def test_far_above_the_noise_an_interval_is_that_of_the_noise(law):
    noisy = np.array([10**6, 2**61, 2**63 - 1])
    number = np.minimum(noisy, 2**62)
    low, high = posteriors(law, noisy).ends(np.zeros(3, np.int8), noisy, number)
    half = law.half_width(MISSED)
    assert (noisy[0] - low[0], high[0] - noisy[0]) == (half, half)
    assert (low <= high).all()


def test_ends_follow_the_smaller_and_the_larger_of_both_numbers():
    found, kind = posteriors(GAUSSIAN, measured(GAUSSIAN)[1]), np.zeros(1, np.int8)

    def ends(noisy, number):
        return [int(end[0]) for end in found.ends(kind, np.array([noisy]), np.array([number]))]

    assert ends(30, 60) == [ends(30, 30)[0], ends(60, 60)[1]] == ends(60, 30)


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(50_000)])
def test_noise_of_any_width_has_posteriors(scale):
    law = Noise(scale**2)
    rule = Deconvolution(law)
    noisy = np.rint(np.random.default_rng(0).normal(0, law.sigma, 500)).astype(np.int64)
    low, high = posteriors(law, noisy).ends(np.zeros(500, np.int8), noisy, noisy)
    assert (low == 0).mean() > 0.95, "all are 0"
    assert rule.n_values < 10_000
    assert (high <= max(1, 6 * law.sigma)).all()
