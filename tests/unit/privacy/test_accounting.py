"""All accountants: against published figures, against each other, against the truth."""

import math
import subprocess
import sys
from fractions import Fraction

import pytest
from oracle import delta_by_convolution, delta_by_enumeration

from inftda.errors import PrivacyError
from inftda.privacy import accounting
from inftda.privacy.accounting import (
    ACCOUNTANTS,
    calibrate,
    delta_of,
    epsilon_of,
    max_rho,
    privacy_curve,
    resolve,
)
from inftda.privacy.levels import MAX_RHO, Measured, Share, levels_at, round_up, total_rho
from inftda.privacy.pld import transform_error
from inftda.selftest import self_check_accounting

SIX_LEVELS = [Share(Fraction(1), 2, 2)] * 6
ADD_REMOVE = [Share(Fraction(1), 1, 1)] * 7
GEOMETRIC = [Share(Fraction(13, 10) ** k, 2, 2) for k in range(6)]
THREE_TRIPS = [Share(Fraction(1), 18, 0)] * 6


def sigma_of(accountant, epsilon, *, shares=SIX_LEVELS, delta=1e-8):
    rho = max_rho(accountant, epsilon=epsilon, delta=delta, parts=shares)
    return math.sqrt(levels_at(rho, shares)[0].sigma2)


def uniform(sigma2, *, n_levels=6):
    return [Measured(Fraction(sigma2), 2, 2)] * n_levels


@pytest.mark.parametrize(
    ("epsilon", "paper", "zcdp", "digits"),
    [(0.1, 210.5, 169.5, 1), (1, 21.3, 18.7, 1), (10, 2.36, 2.23, 2)],
)
def test_published_noise_scales_are_met_to_the_last_digit(epsilon, paper, zcdp, digits):
    assert round(sigma_of("paper", epsilon), digits) == paper
    assert round(sigma_of("zcdp", epsilon), digits) == zcdp


@pytest.mark.parametrize(("epsilon", "pld"), [(0.1, 160.1), (1, 17.7), (10, 2.14)])
def test_composed_noise_scales_are_met_and_the_exact_ones_lie_below(epsilon, pld):
    composed = sigma_of("pld", epsilon)
    assert abs(composed - pld) < 0.002 * pld
    assert 0.99 * composed < sigma_of("exact", epsilon) <= composed


def test_composition_reaches_down_to_its_least_delta():
    used = {"epsilon": 1, "delta": 1e-11, "parts": SIX_LEVELS}
    composed, exact = max_rho("pld", **used), max_rho("exact", **used)
    assert 0.9 * exact < composed < exact


@pytest.mark.parametrize("accountant", ["paper", "zcdp", "exact"])
@pytest.mark.parametrize("delta", [1e-3, 1e-8, 1e-30])
@pytest.mark.parametrize("epsilon", [1e-4, 0.1, 1, 10])
def test_calibrated_noise_keeps_the_promise_and_less_noise_does_not(accountant, delta, epsilon):
    rho = max_rho(accountant, epsilon=epsilon, delta=delta, parts=SIX_LEVELS)
    kept = privacy_curve(accountant, levels_at(rho, SIX_LEVELS))(epsilon)
    broken = privacy_curve(accountant, levels_at(rho * Fraction(1001, 1000), SIX_LEVELS))(epsilon)
    assert 0.999 * delta < kept <= delta < broken


@pytest.mark.parametrize("shares", [SIX_LEVELS, ADD_REMOVE], ids=["substitute", "add-remove"])
@pytest.mark.parametrize("epsilon", [1, 4])
def test_calibrated_noise_keeps_the_promise_by_ball_arithmetic(epsilon, shares):
    used, rho = calibrate("auto", epsilon=epsilon, delta=1e-8, parts=shares)
    assert used == "exact"
    sigma2, cells = levels_at(rho, shares)[0].sigma2, sum(share.n_shifts for share in shares)
    low, high = delta_by_convolution(sigma2, cells, epsilon)
    assert 0.999e-8 < low <= high <= 1e-8
    low, _ = delta_by_convolution(sigma2 * Fraction(999, 1000), cells, epsilon)
    assert low > 1e-8, "a thousandth less noise would break it"


@pytest.mark.parametrize("sigma2", ["2", "20", "312.16"])
@pytest.mark.parametrize("z", [0.5, 5.0])
def test_every_accountant_lies_above_the_truth_and_the_tight_ones_close(sigma2, z):
    levels = uniform(sigma2)
    rho = float(total_rho(levels))
    epsilon = rho + z * math.sqrt(2 * rho)
    low, _ = delta_by_convolution(Fraction(sigma2), 12, epsilon)
    for name in ACCOUNTANTS:
        found = delta_of(name, epsilon=epsilon, levels=levels)
        assert found >= low
        if name in {"exact", "pld", "auto"}:
            assert found <= 1.15 * low


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
def test_composition_of_unequal_noise_lies_above_the_truth_and_close(epsilon):
    levels = [Measured(Fraction(7), 1, 1), Measured(Fraction(12), 1, 1)]
    truth = delta_by_enumeration([level.sigma2 for level in levels], epsilon)
    for name in ("pld", "auto"):
        assert truth <= delta_of(name, epsilon=epsilon, levels=levels) <= 1.15 * truth
    assert delta_of("zcdp", epsilon=epsilon, levels=levels) > 1.15 * truth


def test_transforms_err_far_less_than_what_is_added_for_them():
    # 12 cells at sigma 4: the delta at this epsilon is below 1e-20, so what is left of the
    # composed one is rounding and what the library cuts off.
    levels = uniform(16)
    noise = privacy_curve("pld", levels)(9.0)
    assert privacy_curve("exact", levels)(9.0) < 1e-20
    slack = transform_error({Fraction(16): 12}, math.sqrt(12) / 4 / 2000)
    assert slack <= noise < 1.01 * slack


def test_the_continuous_gaussian_would_claim_too_much():
    levels = uniform(Fraction(3, 5), n_levels=3)  # rho = 5
    found = epsilon_of("exact", delta=1e-6, levels=levels)
    assert found == pytest.approx(19.64, abs=0.005)
    mu = math.sqrt(10)
    tails = [math.erfc(x / math.sqrt(2)) / 2 for x in (19.42 / mu - mu / 2, 19.42 / mu + mu / 2)]
    claimed = tails[0] - math.exp(19.42) * tails[1]
    assert claimed == pytest.approx(1e-6, rel=0.01)
    assert delta_by_convolution(Fraction(3, 5), 6, 19.42)[0] > 1.2 * claimed


def test_with_little_noise_more_of_it_can_be_worse():
    # One cell, epsilon 10: at sigma2 0.051 a shift is hidden unless the draw is not 0, and
    # at 0.1 draws other than 0 are more frequent.
    less, more = ([Measured(Fraction(s), 1, 1)] for s in ("0.051", "0.1"))
    assert delta_of("exact", epsilon=10, levels=less) < delta_of("exact", epsilon=10, levels=more)
    assert delta_of("zcdp", epsilon=10, levels=less) > delta_of("zcdp", epsilon=10, levels=more)


@pytest.mark.parametrize("epsilon", [20, 60, 200, 700])
def test_calibration_with_little_noise_returns_what_it_tried(epsilon):
    rho = max_rho("exact", epsilon=epsilon, delta=1e-8, parts=SIX_LEVELS)
    (level, *_) = levels_at(rho, SIX_LEVELS)
    assert delta_by_convolution(level.sigma2, 12, epsilon)[1] <= 1e-8


@pytest.mark.parametrize(
    ("name", "sigma2"),
    [(name, s) for name in ACCOUNTANTS for s in ("4", "400") if (name, s) != ("pld", "4")],
)
def test_epsilon_and_delta_are_inverse_on_the_safe_side(name, sigma2):
    levels = uniform(sigma2)
    epsilon = epsilon_of(name, delta=1e-6, levels=levels)
    assert 0.999e-6 < delta_of(name, epsilon=epsilon, levels=levels) <= 1e-6
    assert delta_of(name, epsilon=0.999 * epsilon, levels=levels) > 1e-6


def test_a_large_delta_needs_no_epsilon():
    assert epsilon_of("exact", delta=0.9, levels=uniform(10**6)) == 0.0


def test_rho_is_the_exact_sum():
    levels = [Measured(Fraction(3), 2, 2), Measured(Fraction(7), 18, 0)]
    assert total_rho(levels) == Fraction(1, 3) + Fraction(9, 7)


def test_the_tightest_valid_accountant_is_taken():
    ask = {"epsilon": 1, "delta": 1e-8}
    assert calibrate("auto", parts=SIX_LEVELS, **ask)[0] == "exact"
    assert calibrate("auto", parts=THREE_TRIPS, **ask)[0] == "zcdp"
    used, rho = calibrate("auto", parts=GEOMETRIC, **ask)
    assert used == "pld"
    assert rho > 1.1 * max_rho("zcdp", parts=GEOMETRIC, **ask)
    assert calibrate("auto", parts=GEOMETRIC, epsilon=1, delta=1e-12)[0] == "zcdp"
    assert calibrate("auto", parts=GEOMETRIC, epsilon=1e-5, delta=1e-8)[0] == "zcdp"


def test_auto_is_resolved_for_given_noise_too():
    assert resolve("auto", uniform(5)) == "exact"
    unequal = [Measured(Fraction(5), 2, 2), Measured(Fraction(7), 2, 2)]
    assert resolve("auto", unequal, delta=1e-8) == "pld"
    assert resolve("auto", unequal, delta=1e-12) == "zcdp"
    assert resolve("paper", unequal) == "paper"


@pytest.mark.parametrize("name", ["pld", "exact"])
def test_several_trips_need_an_accountant_that_is_valid_for_them(name):
    with pytest.raises(PrivacyError, match="one trip"):
        max_rho(name, epsilon=1, delta=1e-8, parts=THREE_TRIPS)


def test_unequal_noise_needs_an_accountant_that_is_valid_for_it():
    with pytest.raises(PrivacyError, match="whole fractions"):
        max_rho("exact", epsilon=1, delta=1e-8, parts=GEOMETRIC)


def test_composition_is_refused_where_transforms_blur_delta():
    with pytest.raises(PrivacyError, match="1e-11"):
        max_rho("pld", epsilon=1, delta=1e-12, parts=GEOMETRIC)
    with pytest.raises(PrivacyError, match="can tell"):
        epsilon_of("pld", delta=1e-30, levels=uniform(5))


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, 1e9, 1e-12, "x", None, True, "1/0"])
def test_an_epsilon_that_means_nothing_is_refused(epsilon):
    with pytest.raises(PrivacyError, match="epsilon"):
        max_rho("auto", epsilon=epsilon, delta=1e-8, parts=SIX_LEVELS)


@pytest.mark.parametrize("delta", [0, -1, 1, 2, math.nan, math.inf, 1e-200, "x", None, False])
def test_a_delta_that_means_nothing_is_refused(delta):
    with pytest.raises(PrivacyError, match="delta"):
        max_rho("auto", epsilon=1, delta=delta, parts=SIX_LEVELS)


def test_numbers_may_be_fractions_or_text():
    asked = [(1, 1e-8), (Fraction(1), Fraction(1, 10**8)), ("1", "1e-8")]
    assert len({max_rho("exact", epsilon=e, delta=d, parts=SIX_LEVELS) for e, d in asked}) == 1


def test_unknown_accountants_and_broken_levels_are_refused():
    with pytest.raises(PrivacyError, match="accountant"):
        max_rho("moments", epsilon=1, delta=1e-8, parts=SIX_LEVELS)
    for levels in ([], [(Fraction(0), 2, 2)], [(Fraction(1), 0, 0)], [(Fraction(1), 2, 1)]):
        with pytest.raises(PrivacyError):
            delta_of("zcdp", epsilon=1, levels=levels)


def test_rho_ends_where_it_means_nothing():
    assert max_rho("exact", epsilon=1000, delta=0.999999, parts=SIX_LEVELS[:1]) <= MAX_RHO


@pytest.mark.parametrize("value", ["1/3", "2/7919", "123456789.123456789", "1e-9", "1e20", "5e-4"])
def test_variances_are_rounded_up_by_less_than_a_billionth(value):
    exact = Fraction(value) * Fraction(10**15 + 37, 10**15)
    rounded = round_up(exact)
    assert exact <= rounded <= exact * (1 + Fraction(1, 10**9))
    assert float(rounded) == rounded, "a float holds it exactly"
    assert round_up(exact / 2) == rounded / 2


def test_simple_variances_stay_as_they_are():
    for value in (Fraction(12), Fraction(60, 7), Fraction(5, 1024)):
        assert round_up(value) == value


def test_the_default_accountant_imports_no_slow_library():
    code = (
        "import sys; from fractions import Fraction as F\n"
        "from inftda.privacy.accounting import calibrate\n"
        "calibrate('auto', epsilon=1, delta=1e-8, parts=[(F(1), 2, 2)] * 6)\n"
        "assert not {'scipy', 'dp_accounting', 'numba'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_self_check_passes_and_can_fail(monkeypatch):
    assert all(check.ok for check in self_check_accounting())
    honest, largest = privacy_curve, accounting._largest_rho
    monkeypatch.setattr(accounting, "_largest_rho", largest.__wrapped__)  # forgets what it found
    monkeypatch.setattr(
        "inftda.privacy.accounting.privacy_curve",
        lambda name, levels: lambda e: honest(name, levels)(e) * (1 if name == "zcdp" else 0.8),
    )
    failed = [check.name for check in self_check_accounting() if not check.ok]
    assert "delta equals its definition" in failed
    assert any("known noise scales" in name for name in failed)
