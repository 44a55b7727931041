"""What Laplace noise costs, alone and beside Gaussian noise, against enumeration and a library."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from oracle import library_delta

from inftda.errors import PrivacyError
from inftda.noise.distribution import Noise
from inftda.privacy.accountants import privacy_curve, total_rho
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
from inftda.tree.hierarchy import Hierarchy
from inftda.util.exact_numbers import root_up

AREAS = Hierarchy.read({"region": ["N", "N", "S", "S"], "town": ["1", "2", "3", "4"]})


def laplace(scale, n_shifts=2):
    return Noise.laplace(Fraction(scale)), Sensitivity(n_shifts, n_shifts)


def gaussian(sigma2, n_shifts=2):
    return Noise.gaussian(Fraction(sigma2)), Sensitivity(n_shifts, n_shifts)


def law_of(noise, reach):
    x = np.arange(-reach, reach + 1, dtype=float)
    if noise.is_laplace:
        weight = np.exp(-np.abs(x) / float(noise.scale))
    else:
        weight = np.exp(-(x**2) / (2 * float(noise.square)))
    return weight / weight.sum()


def delta_by_enumeration(parts, epsilon, reach=90):
    """Over all values of the noise of every cell that changes by one."""
    joint = np.ones(1)
    shifted = np.ones(1)
    for noise, sensitivity in parts:
        law = law_of(noise, reach)
        for _ in range(sensitivity.sides):
            joint = np.outer(joint, law[:-1]).ravel()
            shifted = np.outer(shifted, law[1:]).ravel()
    return float(np.maximum(joint - math.exp(epsilon) * shifted, 0).sum())


CASES = {
    "laplace alone": [laplace(3, 2)],
    "one cell each": [gaussian(9, 1), laplace("5/2", 1)],
    "two and one": [gaussian(16, 2), laplace(4, 1)],
    "two scales": [laplace(2, 1), laplace("7/2", 1), gaussian(25, 1)],
}


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.0])
@pytest.mark.parametrize("name", CASES)
def test_delta_is_that_of_enumeration_and_never_less(name, epsilon):
    found = privacy_curve("exact", CASES[name])(epsilon)
    true = delta_by_enumeration(CASES[name], epsilon)
    assert true * (1 - 1e-7) - 1e-12 <= found <= true * (1 + 1e-6) + 1e-12


def test_one_cell_is_as_private_as_its_scale_says():
    curve = privacy_curve("exact", [laplace(4, 1)])
    assert curve(0.25) <= 1e-99
    a = math.exp(-1 / 4)
    assert curve(0.0) == pytest.approx((1 - a) / (1 + a), rel=1e-9)


def test_many_scales_are_bounded_by_the_worst_loss():
    parts = [laplace(Fraction(10 + i, 3), 2) for i in range(12)]
    worst = sum(float(2 / noise.scale) for noise, _ in parts)
    curve = privacy_curve("exact", parts)
    assert curve(worst * (1 + 1e-12)) <= 1e-99
    assert 0 < curve(0.8 * worst) <= 1 - math.exp(-0.2 * worst) + 1e-9


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("scale", [2, 7, 40])
def test_zcdp_bounds_it(scale, epsilon):
    parts = [gaussian(400), laplace(scale)]
    assert privacy_curve("zcdp", parts)(epsilon) >= privacy_curve("exact", parts)(epsilon)
    assert total_rho(parts) == Fraction(1, 400) + Fraction(1, scale**2)


def losses_of(noise, change, reach=300):
    """What a cell loses that changes by so much, and how likely that is."""
    law = law_of(noise, reach)
    here, there = law[change:], law[: len(law) - change]
    loss, inverse = np.unique(np.round(np.log(here / there), 12), return_inverse=True)
    return loss, np.bincount(inverse, here)


def losses_of_changes(cells):
    """Losses of (noise, change) pairs together, and how likely they are."""
    loss, chance = np.zeros(1), np.ones(1)
    for noise, change in cells:
        more, odds = losses_of(noise, change)
        sums = np.round(np.add.outer(loss, more).ravel(), 12)
        loss, inverse = np.unique(sums, return_inverse=True)
        chance = np.bincount(inverse, np.outer(chance, odds).ravel())
    return loss, chance


@pytest.mark.parametrize("sides", [1, 2])
def test_several_trips_cost_no_more_than_is_said_however_they_are_spread(sides):
    """Three trips of one side may change one cell by three, or several by less."""
    bell, leaf = Noise.gaussian(150), Noise.laplace(8)
    parts = [(noise, Sensitivity(sides * 9, sides, 3)) for noise in (bell, leaf)]
    curve = privacy_curve("auto", parts)
    ways = [(3,), (2, 1), (1, 1, 1), (2,), (1,)]
    worst = dict.fromkeys((0.0, 0.5, 1.0, 2.0), 0.0)
    for spread in itertools.combinations_with_replacement(ways, sides):
        cells = [(bell, 3)] * sides + [(leaf, k) for side in spread for k in side]
        loss, chance = losses_of_changes(cells)
        for epsilon in worst:
            gain = loss > epsilon
            found = float((chance[gain] * -np.expm1(epsilon - loss[gain])).sum())
            assert found <= curve(epsilon) * (1 + 1e-9)
            worst[epsilon] = max(worst[epsilon], found)
    # It is no wild guess: a change of one cell by three is nearly as bad.
    assert all(worst[epsilon] > 0.3 * curve(epsilon) for epsilon in (0.0, 0.5))
    with pytest.raises(PrivacyError, match="one trip"):
        privacy_curve("exact", parts)


@pytest.mark.parametrize("shift", [1, 2, 3])
def test_a_change_of_several_costs_no_more_zcdp_than_a_gaussian(shift):
    """Renyi divergences of all orders, by sums."""
    scale, x = 4.0, np.arange(-400, 401, dtype=float)
    here, there = -np.abs(x) / scale, -np.abs(x - shift) / scale
    for order in (1.01, 1.5, 2, 5, 50):
        terms = np.exp(order * here + (1 - order) * there) / np.exp(here).sum()
        divergence = math.log(terms.sum()) / (order - 1)
        assert divergence <= order * shift**2 / (2 * scale**2) * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_a_library_comes_to_the_same_delta(epsilon):
    """dp-accounting rounds losses up to a grid, so its delta lies above the exact one."""
    parts = [gaussian(400, 2)] * 5 + [laplace(7, 2)]
    theirs = library_delta(parts, epsilon, value_discretization_interval=1e-4)
    ours = delta_of("exact", epsilon=epsilon, parts=parts)
    assert 0.98 * theirs <= ours <= theirs * 1.0001


def test_calibrated_noise_keeps_the_promise_and_less_does_not():
    asked = [
        Share(Fraction(4), Sensitivity(2, 2)),
        Share(Fraction(9), Sensitivity(2, 2)),
        Share(Fraction(30), Sensitivity(2, 2), "laplace"),
    ]
    shares = commensurable(asked, 3)
    assert shares[2].weight / shares[1].weight == Fraction(30, 9)
    rho = max_rho("auto", epsilon=1, delta=1e-8, shares=shares)
    noise = noise_at(rho, shares)
    assert noise[2].scale ** 2 == noise[2].square
    parts = with_noise(noise, shares)
    assert delta_of("auto", epsilon=1, parts=parts) <= 1e-8 * (1 + 1e-8)
    assert epsilon_of("auto", delta=1e-8, parts=parts) == pytest.approx(1, rel=1e-6)
    less = [replace(one, square=one.square * Fraction(98, 100) ** 2) for one in noise]
    assert delta_of("auto", epsilon=1, parts=with_noise(less, shares)) > 1e-8


@pytest.mark.parametrize("value", ["2", "9", "1/3", "123456789/1000", "1e-9"])
def test_roots_are_rounded_up_to_fractions(value):
    found = root_up(Fraction(value))
    assert Fraction(value) <= found**2 <= Fraction(value) * (1 + Fraction(1, 2**28))
