"""The self-check passes a sound build and catches noise that is slightly wrong."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

from inftda import selftest
from inftda.noise.bits import SeededSource
from inftda.noise.distribution import Noise
from inftda.selftest import N_DRAWS, check_draws, chi_square_p, self_check_samplers

SIGMA = pytest.mark.parametrize("sigma", ["0.5", "2", "4.4721", "20", "300", "20000"])
SEED = SeededSource(11)


def test_a_sound_build_passes():
    checks = self_check_samplers(source=SEED)
    assert [check.name for check in checks if not check.ok] == []
    assert len({check.name for check in checks}) == len(checks) == 12


def test_fresh_secure_bits_are_used_by_default():
    # Not the p-values, which may be anything, but that they are not the same twice.
    first, second = (self_check_samplers() for _ in range(2))
    assert first != second


@SIGMA
@pytest.mark.parametrize("factor", ["1.03", "0.97"])
def test_a_gaussian_with_a_variance_three_percent_off_is_caught(sigma, factor):
    sigma2 = Fraction(sigma) ** 2
    wrong = Noise.gaussian(sigma2 * Fraction(factor)).sample(N_DRAWS, SEED)
    check = check_draws(Noise.gaussian(sigma2), wrong)
    assert not check.ok
    assert "p = " in check.detail


@pytest.mark.parametrize("factor", ["1.02", "0.98"])
def test_a_laplace_with_a_scale_two_percent_off_is_caught(factor):
    wrong = Noise.laplace(7 * Fraction(factor)).sample(N_DRAWS, SEED)
    assert not check_draws(Noise.laplace(7), wrong).ok


def test_draws_without_a_sign_are_caught():
    law = Noise.gaussian(400)
    assert not check_draws(law, np.abs(law.sample(N_DRAWS, SEED))).ok


def test_a_draw_that_cannot_be_is_caught():
    assert chi_square_p(np.array([0, 0, 4]), np.ones(7)) == 0


def test_the_p_value_is_that_of_the_chi_square_distribution():
    rng = np.random.default_rng(3)
    draws = rng.integers(-2, 3, 1000)
    observed = np.bincount(draws + 2)
    statistic = np.sum((observed - 200) ** 2 / 200)
    assert chi_square_p(draws, np.ones(5)) == pytest.approx(chi2.sf(statistic, 4), rel=1e-9)


def test_a_broken_cipher_is_caught(monkeypatch):
    class Zeros:
        def __init__(self, *_, **__):
            pass

        def words(self, n):
            return np.zeros(n, dtype=np.uint64)

    monkeypatch.setattr(selftest, "Bits", Zeros)
    assert not selftest.check_cipher().ok


def test_keys_that_repeat_each_other_are_caught(monkeypatch):
    monkeypatch.setattr(selftest, "SecureSource", lambda: SeededSource(1))
    assert not selftest.check_keys_differ().ok
