"""The audit's own arithmetic: bounds that hold, and that are nearly as good as they can be."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from audit.evidence import ODDS, Sample, at_least, at_most, audit, best_event, lower_epsilon
from audit.independence import LARGEST, likeness


def tail(hits, n, p):
    """P[at least so many hits], exactly."""
    return sum(math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(hits, n + 1))


@pytest.mark.parametrize("odds", [0.05, 1e-9])
@pytest.mark.parametrize("hits", [0, 1, 7, 19, 20])
def test_bounds_on_a_probability_are_those_of_clopper_and_pearson(hits, odds):
    n = 20
    low, high = float(at_least(hits, n, odds)), float(at_most(hits, n, odds))
    assert 0 <= low <= hits / n <= high <= 1
    if hits > 0:
        assert tail(hits, n, Fraction(low)) == pytest.approx(odds, rel=1e-6)
    if hits < n:
        assert 1 - tail(hits + 1, n, Fraction(high)) == pytest.approx(odds, rel=1e-6)


@pytest.mark.slow
def test_an_event_that_is_not_more_frequent_than_delta_proves_nothing():
    assert lower_epsilon(100, 0, 10_000, delta=0.02, odds=ODDS) == -math.inf


@pytest.mark.slow
def test_bounds_are_wrong_no_more_often_than_they_may_be():
    # Randomised response attains its epsilon, so a bound that is too high by chance shows.
    rng = np.random.default_rng(1)
    epsilon, n, odds = 1.0, 2000, 0.05
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    often, seldom = rng.binomial(n, p, 20_000), rng.binomial(n, 1 - p, 20_000)
    wrong = np.mean(lower_epsilon(often, seldom, n, delta=0.0, odds=odds) > epsilon)
    assert wrong < odds
    assert np.median(lower_epsilon(often, seldom, n, delta=0.0, odds=odds)) > 0.8 * epsilon


@dataclass(frozen=True)
class Gaussian:
    """Two worlds that differ by `shift` standard deviations, spread over several numbers."""

    shift: float
    epsilon: float = 1.0
    delta: float = 0.1

    def draw(self, n, batch):
        rng = np.random.default_rng([7, batch])
        left, right = rng.normal(size=(2, n, 8))
        left[:, :4] += self.shift / 2
        return Sample(left, right, self.epsilon, self.delta)


def shift_for(epsilon, delta):
    """The shift at which a Gaussian is (epsilon, delta)-private and no better."""
    low, high = 0.0, 10.0
    for _ in range(60):
        mu = (low + high) / 2
        found = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(
            -mu / 2 - epsilon / mu
        )
        low, high = (mu, high) if found < delta else (low, mu)
    return low


@pytest.mark.slow
def test_what_is_claimed_and_no_more_is_found():
    finding = audit(Gaussian(shift_for(1.0, 0.1)), 400_000)
    assert 0.9 < finding.lower < finding.epsilon == 1.0
    assert finding.event == "linear score"
    assert finding.n == 300_000
    assert not finding.is_caught


@pytest.mark.slow
def test_noise_a_tenth_too_small_is_caught_with_enough_releases():
    assert audit(Gaussian(shift_for(1.0, 0.1) / 0.9), 1_000_000).is_caught


@pytest.mark.slow
def test_two_worlds_that_are_the_same_are_not_told_apart():
    finding = audit(Gaussian(0.0), 40_000)
    assert finding.lower < 0.1


@pytest.mark.slow
def test_something_rare_that_happens_on_one_side_only_is_found():
    sides = np.zeros((2, 1000, 3))
    sides[1, :200, 2] = 5
    event = best_event(Sample(sides[0], sides[1], 1.0, 0.01))
    assert not event.is_left_likelier
    assert event.hits(sides[0]) == 0
    assert event.hits(sides[1]) == 200


@pytest.mark.slow
def test_rows_that_repeat_further_on_are_seen():
    rows = np.random.default_rng(3).normal(size=(30_000, 6))
    assert likeness(rows) < LARGEST
    rows[20_000:, :3] = rows[5_000:15_000, :3]
    assert likeness(rows) > 5 * LARGEST
