"""Both accountants: against published figures, a library, each other, and the truth."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import delta_by_convolution, delta_by_enumeration, library_delta

from inftda.errors import PrivacyError
from inftda.noise.distribution import Noise
from inftda.options import Accountant
from inftda.privacy import accounting
from inftda.privacy.accountants import ACCOUNTANTS, AUTO, EXACT, ZCDP, privacy_curve, resolve
from inftda.privacy.accounting import (
    Share,
    commensurable,
    delta_of,
    epsilon_of,
    max_rho,
    noise_at,
    with_noise,
)
from inftda.privacy.unit import Sensitivity
from inftda.selftest import self_check_accounting
from inftda.util.exact_numbers import MAX_RHO, round_up

TWO_CELLS = Sensitivity(squared=2, sides=2)
SIX_LEVELS = [Share(Fraction(1), TWO_CELLS)] * 6
ADD_REMOVE = [Share(Fraction(1), Sensitivity(1, 1))] * 7
GEOMETRIC = [Share(Fraction(13, 10) ** k, TWO_CELLS) for k in range(6)]
ROUNDED = commensurable(GEOMETRIC, 6)
THREE_TRIPS = [Share(Fraction(1), Sensitivity(18, 2, trips=3))] * 6


def sigma_of(accountant, epsilon, *, shares=SIX_LEVELS, delta=1e-8):
    rho = max_rho(accountant, epsilon=epsilon, delta=delta, shares=shares)
    return math.sqrt(noise_at(rho, shares)[0].square)


def parts_at(rho, shares):
    return with_noise(noise_at(rho, shares), shares)


def uniform(sigma2, *, n_levels=6):
    return [(Noise.gaussian(Fraction(sigma2)), TWO_CELLS)] * n_levels


@pytest.mark.parametrize(
    ("epsilon", "zcdp", "digits"), [(0.1, 169.5, 1), (1, 18.7, 1), (10, 2.23, 2)]
)
def test_published_noise_scales_are_met_to_the_last_digit(epsilon, zcdp, digits):
    assert round(sigma_of("zcdp", epsilon), digits) == zcdp


@pytest.mark.slow
@pytest.mark.parametrize("shares", [SIX_LEVELS, ROUNDED], ids=["uniform", "geometric"])
@pytest.mark.parametrize("epsilon", [0.1, 1, 10])
def test_the_library_accountant_asks_for_hardly_more_noise(epsilon, shares):
    """dp-accounting rounds losses up to a grid, so its delta lies above the exact one."""
    rho = max_rho("exact", epsilon=epsilon, delta=1e-8, shares=shares)
    step = math.sqrt(2 * rho) / 2000
    found = library_delta(parts_at(rho, shares), epsilon, value_discretization_interval=step)
    assert 0.999e-8 <= found <= 1.15e-8


@pytest.mark.parametrize("accountant", ["zcdp", "exact"])
@pytest.mark.parametrize("delta", [1e-3, 1e-8, 1e-30])
@pytest.mark.parametrize("epsilon", [1e-4, 0.1, 1, 10])
@pytest.mark.parametrize("shares", [SIX_LEVELS, ROUNDED], ids=["uniform", "geometric"])
def test_calibrated_noise_keeps_the_promise_and_less_noise_does_not(
    accountant, delta, epsilon, shares
):
    rho = max_rho(accountant, epsilon=epsilon, delta=delta, shares=shares)
    kept = privacy_curve(accountant, parts_at(rho, shares))(epsilon)
    broken = privacy_curve(accountant, parts_at(rho * Fraction(1001, 1000), shares))(epsilon)
    assert 0.999 * delta < kept <= delta < broken


@pytest.mark.parametrize("shares", [SIX_LEVELS, ADD_REMOVE], ids=["substitute", "add-remove"])
@pytest.mark.parametrize("epsilon", [1, 4])
def test_calibrated_noise_keeps_the_promise_by_ball_arithmetic(epsilon, shares):
    rho = max_rho("auto", epsilon=epsilon, delta=1e-8, shares=shares)
    sigma2, cells = (
        noise_at(rho, shares)[0].square,
        sum(share.sensitivity.sides for share in shares),
    )
    low, high = delta_by_convolution(sigma2, cells, epsilon)
    assert 0.999e-8 < low <= high <= 1e-8
    low, _ = delta_by_convolution(sigma2 * Fraction(999, 1000), cells, epsilon)
    assert low > 1e-8, "a thousandth less noise would break it"


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("variances", [(7, 12), (3, 2, 5), ("1/2", "1/3"), ("40/3", 10)])
def test_unequal_noise_is_accounted_for_above_the_truth_and_close(epsilon, variances):
    variances = [Fraction(variance) for variance in variances]
    parts = [(Noise.gaussian(variance), Sensitivity(1, 1)) for variance in variances]
    truth = delta_by_enumeration(variances, epsilon)
    assert truth <= delta_of("exact", epsilon=epsilon, parts=parts) <= 1.0001 * truth
    assert delta_of("zcdp", epsilon=epsilon, parts=parts) > 1.15 * truth


@given(
    weights=st.lists(st.fractions(Fraction(1, 1000), 1000), min_size=1, max_size=9),
    n_tables=st.integers(0, 4),
    sensitivities=st.sampled_from([(1, 1), (2, 2), (1, 2)]),
)
@settings(max_examples=60, deadline=None)
def test_shares_become_whole_multiples_of_one_unit(weights, n_tables, sensitivities):
    n_levels = max(1, len(weights) - n_tables)
    root, below = sensitivities
    squared = [root, *[below] * (len(weights) - 1)]
    asked = [Share(weight, Sensitivity(d, d)) for weight, d in zip(weights, squared, strict=True)]
    found = commensurable(asked, n_levels)
    if n_levels == len(weights) or found != tuple(asked):  # else a table may have hardly a share
        assert resolve("exact", parts_at(Fraction(1, 7), found)) is EXACT
    precision = [1 / share.square for share in found]
    wanted = [1 / share.square for share in asked]
    whole = [p * max(wanted) / (w * max(precision)) for p, w in zip(precision, wanted, strict=True)]
    assert all(part >= 1 for part in whole[:n_levels]), "levels are rounded up"
    assert all(part <= 1 for part in whole[n_levels:]), "tables are rounded down"


def test_the_rounding_of_shares_is_below_a_hundredth_where_that_is_possible():
    relative = [share.weight / ROUNDED[-1].weight for share in ROUNDED]
    asked = [share.weight / GEOMETRIC[-1].weight for share in GEOMETRIC]
    assert all(a <= r <= a * Fraction(101, 100) for r, a in zip(relative, asked, strict=True))
    assert relative != asked
    simple = [Share(Fraction(weight), TWO_CELLS) for weight in (3, 5, 256)]
    assert [share.weight / 2 for share in commensurable(simple, 3)] == [3, 5, 256]
    steep = commensurable([Share(Fraction(100) ** k, TWO_CELLS) for k in range(4)], 4)
    assert [share.weight / 2 for share in steep] == [1, 1, 3, 256]


def test_several_trips_and_tables_with_hardly_a_share_stay_as_they_are():
    assert commensurable(THREE_TRIPS, 6) == tuple(THREE_TRIPS)
    tiny = [Share(Fraction(1), TWO_CELLS), Share(Fraction(1, 300), TWO_CELLS)]
    assert commensurable(tiny, 1) == tuple(tiny)
    assert resolve("auto", parts_at(Fraction(1), tiny)) is ZCDP


@pytest.mark.parametrize("epsilon", [20, 60, 200, 700])
def test_calibration_with_little_noise_returns_what_it_tried(epsilon):
    rho = max_rho("exact", epsilon=epsilon, delta=1e-8, shares=SIX_LEVELS)
    (level, *_) = noise_at(rho, SIX_LEVELS)
    assert delta_by_convolution(level.square, 12, epsilon)[1] <= 1e-8


@pytest.mark.parametrize("name", ["auto", "exact", "zcdp"])
@pytest.mark.parametrize("sigma2", ["4", "400"])
def test_epsilon_and_delta_are_inverse_on_the_safe_side(name, sigma2):
    parts = uniform(sigma2)
    epsilon = epsilon_of(name, delta=1e-6, parts=parts)
    assert 0.999e-6 < delta_of(name, epsilon=epsilon, parts=parts) <= 1e-6
    assert delta_of(name, epsilon=0.999 * epsilon, parts=parts) > 1e-6


def test_a_large_delta_needs_no_epsilon():
    assert epsilon_of("exact", delta=0.9, parts=uniform(10**6)) == 0.0


def test_the_tightest_valid_accountant_is_taken():
    ask = {"epsilon": 1, "delta": 1e-8}
    for shares in (SIX_LEVELS, ROUNDED):
        assert resolve("auto", parts_at(Fraction(1), shares)) is EXACT
        rho = max_rho("auto", shares=shares, **ask)
        assert rho > Fraction("1.1") * max_rho("zcdp", shares=shares, **ask)
    assert resolve("auto", parts_at(Fraction(1), THREE_TRIPS)) is ZCDP
    assert resolve("zcdp", parts_at(Fraction(1), SIX_LEVELS)) is ZCDP


def test_help_names_all_accountants():
    known = [AUTO, *(one.name for one in ACCOUNTANTS)]
    assert Accountant.__metadata__[0].metavar.split("|") == known


@pytest.mark.parametrize(
    ("shares", "says"), [(THREE_TRIPS, "one trip"), (GEOMETRIC, "whole fractions")]
)
def test_the_exact_accountant_is_refused_where_it_is_not_valid(shares, says):
    with pytest.raises(PrivacyError, match=says):
        max_rho("exact", epsilon=1, delta=1e-8, shares=shares)


BAD = (0, -1, math.nan, math.inf, "x", None, True, "1/0")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("epsilon", value) for value in (*BAD, 1e9, 1e-12)),
        *(("delta", value) for value in (*BAD, 1, 2, 1e-200)),
    ],
)
def test_an_epsilon_or_delta_that_means_nothing_is_refused(name, value):
    with pytest.raises(PrivacyError, match=name):
        max_rho("auto", **{"epsilon": 1, "delta": 1e-8, name: value}, shares=SIX_LEVELS)


def test_numbers_may_be_fractions_or_text():
    asked = [(1, 1e-8), (Fraction(1), Fraction(1, 10**8)), ("1", "1e-8")]
    assert len({max_rho("exact", epsilon=e, delta=d, shares=SIX_LEVELS) for e, d in asked}) == 1


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [(Noise(Fraction(0)), TWO_CELLS)],
        [(Noise.gaussian(1), Sensitivity(0, 0))],
        [(Noise.gaussian(1), Sensitivity(2, 1))],
    ],
)
def test_noise_that_makes_no_sense_is_refused(parts):
    with pytest.raises(PrivacyError):
        delta_of("zcdp", epsilon=1, parts=parts)


def test_rho_ends_where_it_means_nothing():
    assert max_rho("exact", epsilon=1000, delta=0.999999, shares=SIX_LEVELS[:1]) <= MAX_RHO


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


def test_the_self_check_passes_and_can_fail(monkeypatch):
    assert all(check.ok for check in self_check_accounting())
    honest, largest = EXACT.curve, accounting._largest_rho
    monkeypatch.setattr(accounting, "_largest_rho", largest.__wrapped__)  # forgets what it found
    monkeypatch.setattr(EXACT, "curve", lambda parts: lambda e: honest(parts)(e) * 0.8)
    failed = [check.name for check in self_check_accounting() if not check.ok]
    assert "delta equals its definition" in failed
    assert any("known noise" in name for name in failed)
