"""The exact accountant against ball arithmetic, enumeration and its own other paths."""

import math
from fractions import Fraction

import numpy as np
import pytest
from oracle import delta_by_convolution, delta_by_enumeration

from inftda.noise.tails import (
    gaussian_quantile,
    gaussian_tail,
    log_inflation,
    log_inflation_at_zero,
    log_theta_excess,
    sum_of_gaussians,
)
from inftda.privacy.exact import LossLattice

CASES = [
    (Fraction(sigma2), n_shifts, z)
    for sigma2 in ("1/100", "1/10", "1/2", "3/2", "8/5", "17/10", "4", "25", "312.16")
    for n_shifts in (1, 2, 7, 12)
    for z in (0.3, 3.0, 6.0)
]


def epsilon_at(sigma2, n_shifts, z):
    """An epsilon about z standard deviations above the mean loss."""
    rho = n_shifts / (2 * float(sigma2))
    return rho + z * math.sqrt(2 * rho)


@pytest.mark.parametrize(("sigma2", "n_shifts", "z"), CASES)
def test_delta_is_never_below_the_truth_and_hardly_above(sigma2, n_shifts, z):
    epsilon = epsilon_at(sigma2, n_shifts, z)
    low, high = delta_by_convolution(sigma2, n_shifts, epsilon)
    found = LossLattice(sigma2, (1,) * n_shifts).delta(epsilon)
    if high < 1e-100:
        assert found == 1e-100
    else:
        assert low <= found <= high * (1 + 1e-5)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0, 4.0])
@pytest.mark.parametrize("sigma2", [Fraction(1, 2), Fraction(2), Fraction(9)])
def test_adding_and_removing_give_the_same_delta(sigma2, epsilon):
    forth = delta_by_enumeration([sigma2, sigma2], epsilon)
    back = delta_by_enumeration([sigma2, sigma2], epsilon, swap=True)
    assert forth == pytest.approx(back, rel=1e-9)
    assert LossLattice(sigma2, (1, 1)).delta(epsilon) == pytest.approx(forth, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("sigma2", [Fraction(3, 2), Fraction(10)])
def test_variances_in_whole_ratios_are_accounted_for_exactly(sigma2, epsilon):
    # One cell with half the variance: the total under substitute, at most one trip.
    lattice = LossLattice.of([(sigma2 / 2, 1), (sigma2, 2)])
    assert lattice == LossLattice(sigma2, (1, 1, 2))
    truth = delta_by_enumeration([sigma2 / 2, sigma2, sigma2], epsilon)
    assert truth <= lattice.delta(epsilon) <= truth * (1 + 1e-4)


def test_only_ratios_of_small_whole_numbers_are_of_that_kind():
    assert LossLattice.of([(Fraction(3), 2), (Fraction(2), 2)]) == LossLattice(
        Fraction(6), (2, 2, 3, 3)
    )
    assert LossLattice.of([(Fraction(257), 2), (Fraction(1), 2)]) is None
    assert LossLattice.of([(Fraction(257), 2), (Fraction(256), 2)]) is None


def test_a_stranger_s_noise_asks_for_little_work():
    """Awkward ratios with little noise: a bound is given where convolving would take minutes."""
    for deviation in (3, 30, 300, 3000):
        cells = [(Fraction(deviation**2 * 256, ratio), 2) for ratio in (251, 253, 254, 255, 256)]
        lattice = LossLattice.of([*cells, *cells])
        assert 0 < lattice.delta(1.0) <= 1.0
        assert not lattice._is_convolved or len(lattice._law) < 10**6


@pytest.mark.parametrize("n_shifts", [1, 12, 40])
@pytest.mark.parametrize("z", [0.1, 2.0, 5.0, 8.0])
def test_integrals_lie_above_sums_and_close(n_shifts, z):
    lattice = LossLattice(Fraction(3000**2, n_shifts), (1,) * n_shifts)
    epsilon = epsilon_at(lattice.sigma2, n_shifts, z)
    start = Fraction(epsilon) * lattice.sigma2 - Fraction(n_shifts, 2)
    summed, integrated = lattice._summed(start), lattice._integrated(float(start))
    assert summed < integrated < 1.01 * summed


@pytest.mark.parametrize("n_shifts", [1, 2, 12])
@pytest.mark.parametrize("z", [0.5, 4.0, 7.0])
def test_sums_lie_above_convolutions_and_close(n_shifts, z):
    lattice = LossLattice(Fraction(2), (1,) * n_shifts)
    epsilon = epsilon_at(lattice.sigma2, n_shifts, z)
    start = Fraction(epsilon) * lattice.sigma2 - Fraction(n_shifts, 2)
    factor = math.exp(lattice._log_inflation)
    convolved, summed = lattice._convolved(start), lattice._summed(start) * factor
    # They differ by less than their common slack of 1e-9, plus what the factor gives away.
    assert convolved * (1 - 3e-9) <= summed <= convolved * (1 + 1e-6)


@pytest.mark.parametrize("sigma2", [0.3, 0.8, 1.6, 4.0, 35.0, 400.0])
@pytest.mark.parametrize(
    "ratios", [(1, 1), (1, 1, 1, 1), (1, 1, 2), (1, 1, 1, 3), (5, 7), (9, 10, 11), (6, 10, 15, 15)]
)
def test_no_probability_of_a_sum_exceeds_the_inflated_gaussian(sigma2, ratios):
    law = sum_of_gaussians(ratios, sigma2)
    y = np.arange(len(law)) - len(law) // 2
    variance = sigma2 * sum(ratios)
    gaussian = np.exp(-(y**2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)
    inside = np.abs(y) < 8 * math.sqrt(variance)
    ratio = (law[inside] / gaussian[inside]).max()
    assert ratio <= math.exp(log_inflation(ratios, sigma2)) * (1 + 1e-9)
    assert ratio == pytest.approx(law[len(law) // 2] / gaussian[len(law) // 2], rel=1e-9)
    at_zero = log_inflation_at_zero(ratios, sigma2)
    assert ratio <= math.exp(at_zero) * (1 + 1e-9)
    if sigma2 >= max(ratios):
        assert math.exp(at_zero) <= ratio * (1 + 1e-7), "the bound is reached at 0"
    if sigma2 == 0.3 and ratios == (1, 1):
        assert ratio > 1.01, "without the factor the bound would be wrong"


@pytest.mark.parametrize("tau2", [0.001, 0.05, 0.149, 0.151, 0.4, 1.0])
def test_the_excess_of_theta_is_never_understated(tau2):
    theta = math.fsum(math.exp(-(k**2) / (2 * tau2)) for k in range(-60, 61))
    truth = math.log(theta / math.sqrt(2 * math.pi * tau2))
    # Below 1e-15 the logarithm of a float knows nothing; the bound must only not be negative.
    assert truth - 1e-15 <= log_theta_excess(tau2) <= truth + 1e-5
    assert log_theta_excess(tau2) > 0


def test_hopeless_and_harmless_ends_are_reached():
    assert LossLattice(Fraction(1, 10**4), (1,)).delta(1.0) == 1.0
    assert LossLattice(Fraction(10**6), (1,)).delta(900.0) == 1e-100


def test_gaussian_quantiles_are_on_the_safe_side():
    for p in (0.4, 1e-3, 1e-12, 1e-30, 1e-100):
        x = gaussian_quantile(p)
        assert gaussian_tail(x) <= p < gaussian_tail(x - 1e-6)
