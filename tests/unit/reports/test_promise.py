import math
from fractions import Fraction

import pytest

from inftda.reports.promise import guess_bound, promise_section, scientific


def test_a_guess_by_epsilon_alone_follows_the_textbook():
    # e / (1 + e) = 0.7310..., rounded up.
    assert guess_bound(1.0, 0.0, None) == 0.732


def test_a_guess_by_rho_alone_follows_pinsker():
    assert guess_bound(None, None, Fraction(2, 100)) == pytest.approx(0.55, abs=1.1e-3)


def test_the_stronger_of_two_promises_counts():
    assert guess_bound(10.0, 1e-8, Fraction(1, 50)) == guess_bound(None, None, Fraction(1, 50))
    assert guess_bound(0.01, 1e-8, Fraction(10)) == guess_bound(0.01, 1e-8, None)


@pytest.mark.parametrize("sigma", [0.8, 2.0, 10.0])
def test_the_bound_is_never_below_what_an_observer_can_do(sigma):
    # One discrete Gaussian count that differs by one: the best guess is right so often.
    weights = [math.exp(-(k**2) / (2 * sigma**2)) for k in range(-200, 201)]
    total = sum(weights)
    apart = sum(abs(a - b) for a, b in zip([0.0, *weights], [*weights, 0.0], strict=True)) / 2
    best = (1 + apart / total) / 2
    assert guess_bound(None, None, Fraction(1 / (2 * sigma**2))) >= best


def test_without_any_promise_the_observer_is_sure():
    assert guess_bound(None, None, None) == 1.0


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (1e-8, "10<sup>\N{MINUS SIGN}8</sup>"),
        (2.5e-9, "2.5 × 10<sup>\N{MINUS SIGN}9</sup>"),  # noqa: RUF001 - as people write it
        (0.01, "0.01"),
        (0.0, "0"),
    ],
)
def test_small_numbers_are_written_as_powers_of_ten(value, written):
    assert scientific(value) == written


def test_the_promise_states_the_numbers_of_the_manifest(od):
    section = promise_section(od)
    plan = od.manifest.plan
    assert f"{plan.epsilon:g}" in section
    assert plan.unit.describe() in section
    guess = guess_bound(plan.epsilon, plan.delta, plan.rho)
    assert f"{100 * guess:.1f}\N{NO-BREAK SPACE}%" in section
