"""How often the best attacker is right, by our accountant and by a library."""

import math
import re
from fractions import Fraction
from itertools import product
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
from oracle import library_delta

from inftda import Unit
from inftda.noise.distribution import Noise
from inftda.planning.plan import plan
from inftda.privacy.measurement import Measurement
from inftda.privacy.noise_plan import Plan
from inftda.privacy.risk import FALSE_ALARMS, PRECEDENTS, Risk, bare_advantage, risk_of
from inftda.privacy.unit import Sensitivity

DOCS = Path(__file__).parents[3] / "docs"
SIZES = [20, 110, 8092]
EPSILONS = np.linspace(0, 12, 6001)


def planned(method="paper", **budget):
    """By default with Gaussian noise everywhere."""
    return plan(sizes=SIZES, method=method, **budget).plan


def with_laplace(*, bells, scale):
    """A plan by hand: levels with Gaussian noise, and the finest one with Laplace noise."""
    laws = [Noise(Fraction(sigma2)) for sigma2 in bells] + [Noise.laplace(Fraction(scale))]
    levels = tuple(
        Measurement(index, f"level {index}", 100, law, Sensitivity(2, 2))
        for index, law in enumerate(laws, start=1)
    )
    return Plan(Unit(), "exact", None, None, levels)


def by_the_library(made, *, is_upper):
    """Losses of all that is measured, by dp-accounting, rounded up or down to a fine grid."""
    step = math.sqrt(2 * made.rho) / 4000
    grid = {"value_discretization_interval": step, "pessimistic_estimate": is_upper}
    return np.array(library_delta(made.measured, EPSILONS, **grid))


@pytest.mark.parametrize(("epsilon", "success", "mu"), [(1, 53.9, 0.196), (10, 79.1, 1.62)])
def test_success_at_usual_promises(epsilon, success, mu):
    found = risk_of(planned(epsilon=epsilon, delta=1e-8))
    assert round(100 * found.success, 1) == success
    assert found.mu == pytest.approx(mu, rel=2e-3)
    assert found.is_exact


@pytest.mark.slow
@pytest.mark.parametrize(
    "made",
    [
        planned(epsilon=1, delta=1e-8),
        planned(epsilon=10, delta=1e-8),
        planned(rho=0.1),
        planned("inftda", epsilon=1, delta=1e-8),
        planned("inftda", epsilon=1, delta=0),
        planned(epsilon=1, delta=1e-6, unit=Unit("add-remove")),
        with_laplace(bells=[400, 400, 100], scale=7),
        with_laplace(bells=[], scale=3),
    ],
    ids=["epsilon 1", "epsilon 10", "rho", "inftda", "pure", "add-remove", "both", "Laplace"],
)
def test_a_library_comes_to_the_same_figures(made):
    """It rounds losses to a grid, so its figures lie above or below the exact ones."""
    ours = risk_of(made)
    low, high = (by_the_library(made, is_upper=is_upper) for is_upper in (False, True))
    assert low[0] <= ours.advantage <= high[0] <= 1.03 * low[0]
    for rate, found in zip(FALSE_ALARMS, ours.detection, strict=True):
        least, most = (detection(delta, rate) for delta in (low, high))
        assert (1 - 2e-3) * least <= found <= most * (1 + 2e-3)  # of the grid of epsilons
        assert most <= 1.01 * least


def detection(delta, rate):
    """What a test finds at most, by the best of many epsilons."""
    missed = np.maximum(1 - delta - np.exp(EPSILONS) * rate, (1 - delta - rate) / np.exp(EPSILONS))
    return 1 - missed.max()


def test_gaussian_noise_is_as_hard_to_test_as_a_shifted_bell():
    """With wide noise, mu and detection are those of Gaussian differential privacy."""
    made = planned(epsilon=1, delta=1e-8)
    found, bell, mu = risk_of(made), NormalDist(), math.sqrt(2 * made.rho)
    assert found.mu == pytest.approx(mu, rel=1e-4)
    for rate, part in zip(FALSE_ALARMS, found.detection, strict=True):
        assert part == pytest.approx(bell.cdf(bell.inv_cdf(rate) + mu), rel=1e-4)


@pytest.mark.parametrize("epsilon", [0.1, 1, 10])
def test_several_trips_have_an_upper_bound_above_the_bell(epsilon):
    made = planned(epsilon=epsilon, delta=1e-8, unit=Unit("add-remove", trips=3))
    found, bell, mu = risk_of(made), NormalDist(), math.sqrt(2 * made.rho)
    assert not found.is_exact
    assert "upper bounds" in found.describe()
    assert 2 * bell.cdf(mu / 2) - 1 < found.advantage < bare_advantage(epsilon, 1e-8)
    for rate, part in zip(FALSE_ALARMS, found.detection, strict=True):
        assert part > bell.cdf(bell.inv_cdf(rate) + mu)


def test_pure_noise_of_one_cell_is_randomised_response():
    """One cell with Laplace noise of scale 1 loses 1 or -1: the bare guarantee is reached."""
    level = Measurement(0, "total", 1, Noise.laplace(1), Sensitivity(1, 1))
    found = risk_of(Plan(Unit("add-remove"), "pure", 1.0, 0.0, (level,)))
    assert found.advantage == pytest.approx(bare_advantage(1, 0))
    assert found.detection == pytest.approx([math.e * rate for rate in FALSE_ALARMS])


def test_many_levels_with_laplace_noise_have_the_figures_of_all_their_losses():
    """Thirteen scales, and all 8192 losses that these add up to, one by one."""
    scales = [10 + Fraction(i, 7) for i in range(13)]
    levels = tuple(
        Measurement(index, f"level {index}", 100, Noise.laplace(scale), Sensitivity(1, 1))
        for index, scale in enumerate(scales)
    )
    found = risk_of(Plan(Unit("add-remove"), "zcdp", None, None, levels))
    signs = np.array(list(product([1, -1], repeat=len(scales))))
    rates = np.array([float(1 / scale) for scale in scales])
    chance = np.prod(1 / (1 + np.exp(-signs * rates)), axis=1)
    plain = float((chance * -np.expm1(-np.maximum(signs @ rates, 0))).sum())
    assert plain < found.advantage < plain * (1 + 1e-4)
    assert found.is_exact


def test_nobody_reaches_the_figures_where_a_total_and_two_cells_cannot_change_together():
    at_most = planned("inftda", epsilon=1, delta=1e-8, unit=Unit(exactly=False))
    assert at_most.accountant == "exact"
    assert not risk_of(at_most).is_exact


def test_figures_for_people_are_rounded_up():
    words = Risk(Unit(), 0.0781, (0.01601, 0.0735), is_exact=True).describe()
    assert "54.0 % of cases; guessing gives 50 % (mu = 0.197)" in words
    assert (
        "1 % false alarms detects at most 1.7 %; one with 5 % false alarms detects at most 7.4 %"
        in (words)
    )


def test_where_everything_is_learned_no_mu_is_stated():
    found = Risk(Unit(), 1.0, (1.0, 1.0), is_exact=True)
    assert found.to_dict()["mu"] is None
    assert "100.0 % of cases; guessing gives 50 %. A test" in found.describe()


def test_the_guide_states_what_is_computed_and_whom_to_compare_with():
    guide = (DOCS / "guides/choose-epsilon.md").read_text("utf-8")
    row = re.compile(r"^\| ([\d.]+) \| ([\d.]+ %) \| ([\d.]+ %) \| ([\d.]+ %) \|$", re.MULTILINE)
    stated = row.findall(guide)
    assert len(stated) == 7
    for epsilon, *figures in stated:
        made = planned("inftda", epsilon=float(epsilon), delta=1e-8)
        assert tuple(figures) == risk_of(made).figures
    for one in PRECEDENTS:
        assert f"| [{one.what}]({one.source}) | {one.epsilon} | {one.protects} |" in guide
    here = plan(sizes=[5, 25, 300], epsilon=1, delta=1e-8).risk.figures[0]
    assert f"made at most {here} of the time" in (DOCS.parent / "README.md").read_text("utf-8")
