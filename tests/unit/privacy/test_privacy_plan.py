"""Plans, splits and account."""

import json
import math
import re
from dataclasses import replace
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from handmade import UNEVEN_TREE, HandmadeTree
from hypothesis import given
from hypothesis import strategies as st

from inftda.errors import BudgetError, PrivacyError
from inftda.noise.distribution import Noise
from inftda.privacy.noise_plan import Plan, make_plan
from inftda.privacy.unit import Unit
from inftda.tree import Tree
from inftda.tree.hierarchy import Hierarchy
from inftda.util.exact_numbers import rounded_down, rounded_up

ONE_TRIP = Unit()
#: Two regions of two provinces of two towns; six measured levels.
TREE = Tree.destination_first(
    Hierarchy.read(
        {"region": list("AAAABBBB"), "province": list("ccddeeff"), "town": list("01234567")}
    )
)
UNITS = [
    Unit(),
    Unit(exactly=False),
    Unit("add-remove"),
    Unit(trips=3),
    Unit("add-remove", trips=3, distinct=True),
    Unit("substitute", trips=5, exactly=False, distinct=True),
]


def plan_of(unit=ONE_TRIP, tree=TREE, **budget):
    return make_plan(tree, unit, **({"epsilon": 1, "delta": 1e-8, "method": "paper"} | budget))


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_plan_measures_what_it_must_and_costs_add_up(unit):
    plan = plan_of(unit)
    first = 1 if unit.root_is_public else 0
    assert [level.index for level in plan.levels] == list(range(first, 7))
    assert plan.rho == sum(level.rho for level in plan.levels)
    for level in plan.levels:
        tree_level = TREE.levels[level.index]
        assert level.sensitivity == unit.sensitivity(tree_level)
        assert level.rho == level.sensitivity.squared / (2 * level.noise.square)
        assert (level.name, level.cells) == (tree_level.name, tree_level.n_nodes)


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_uniform_split_gives_every_level_the_same_share(unit):
    costs = [level.rho for level in plan_of(unit).levels]
    assert max(costs) <= min(costs) * (1 + Fraction(1, 10**8))


def test_trivial_steps_get_nothing_and_the_others_more():
    plan = plan_of(tree=UNEVEN_TREE)
    assert [level.index for level in plan.levels] == [1, 3]
    assert plan.levels[0].sigma < plan_of().levels[0].sigma
    with pytest.raises(PrivacyError, match="one weight for each of the 2"):
        plan_of(tree=UNEVEN_TREE, split=[1, 1, 1])


@pytest.mark.parametrize("split", [[1, 1, 2, 2, 4, 4], (0.5, 0.5, 1, 1, Fraction(2), 2)])
def test_weights_are_given_in_the_order_of_levels(split):
    costs = [float(level.rho) for level in plan_of(split=split, accountant="zcdp").levels]
    assert [cost / costs[0] for cost in costs] == pytest.approx([1, 1, 2, 2, 4, 4], rel=1e-8)


def test_with_any_weights_the_whole_budget_is_used():
    plans = [plan_of(split=split, accountant="zcdp") for split in ("uniform", [1, 2, 3, 5, 8, 13])]
    assert float(plans[1].rho) == pytest.approx(float(plans[0].rho), rel=1e-8)


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ("even", "'log', 'pairs', 'uniform' or a list of weights.*got 'even'$"),
        ("geometric:1.3", "or a list of weights"),
        ([1, 2], "one weight for each of the 6"),
        *(([1, 1, 1, 1, 1, bad], "> 0") for bad in (0, -1, math.nan, math.inf, "1", True)),
        (dict.fromkeys(range(1, 7), 1), "or a list of weights"),
        (3, "or a list of weights"),
    ],
)
def test_a_split_that_does_not_fit_is_refused(split, message):
    with pytest.raises(PrivacyError, match=message):
        plan_of(split=split)


def test_rho_may_be_given_instead():
    plan = plan_of(rho="7/10", epsilon=None, delta=None)
    assert (plan.rho, plan.epsilon, plan.delta) == (Fraction(7, 10), None, None)
    assert plan.accountant == "zcdp"
    assert plan_of(rho=0.7, epsilon=None, delta=None).rho == Fraction(7, 10)


def test_rho_with_delta_tells_epsilon_and_the_other_way_round():
    plan = plan_of(rho=0.02, epsilon=None)
    assert plan.delta == 1e-8
    assert 1 < plan.epsilon < 1.03
    back = plan_of(rho=0.02, epsilon=plan.epsilon, delta=None)
    assert back.delta == pytest.approx(1e-8, rel=1e-6)


def test_rho_that_is_no_simple_number_is_never_exceeded():
    asked = Fraction(1, 3**30) * 10**14
    plan = plan_of(rho=asked, epsilon=None, delta=None)
    assert asked * (1 - Fraction(1, 10**8)) < plan.rho <= asked


@pytest.mark.parametrize(
    "budget",
    [
        {"epsilon": None},
        {"delta": None},
        {"epsilon": None, "delta": None},
        {"rho": 1},
        *(
            {"epsilon": None, "delta": None, "rho": rho}
            for rho in (0, -1, math.nan, math.inf, 1e9, "much")
        ),
        {"epsilon": 1e9},
        {"accountant": "best"},
        {"epsilon": 1e-9, "delta": None, "rho": 5000},
    ],
)
def test_a_budget_that_means_nothing_is_refused(budget):
    with pytest.raises(PrivacyError):
        plan_of(**budget)


def test_noise_that_is_too_wide_to_be_drawn_is_refused_when_the_plan_is_made():
    widest = Fraction(6, 200_000**2)  # six levels, each with the squared sensitivity 2
    plan = plan_of(epsilon=None, delta=None, rho=widest)
    assert {level.sigma for level in plan.levels} == {200_000}
    Plan.from_dict(plan.to_dict())
    too_wide = "standard deviation of 210,818, but it must be above 0 and at most 200,000"
    with pytest.raises(PrivacyError, match=f"{too_wide}; use a larger epsilon or rho, or fewer"):
        plan_of(epsilon=None, delta=None, rho=widest * Fraction(9, 10))
    with pytest.raises(PrivacyError, match=r"Laplace .* at most 56,568"):
        plan_of(epsilon=1e-5, delta=0)


def test_a_tree_without_anything_to_measure_is_refused():
    with pytest.raises(PrivacyError, match="nothing to measure"):
        plan_of(tree=HandmadeTree.of((0,), (0,)))


def test_a_single_area_still_has_a_total_to_protect():
    plan = plan_of(Unit("add-remove"), tree=HandmadeTree.of((0,), (0,)))
    assert [level.index for level in plan.levels] == [0]


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_plan_survives_writing_and_reading(unit):
    for budget in ({}, {"rho": 0.5, "epsilon": None}, {"cross_tables": 0.08}):
        plan = plan_of(unit, **budget)
        again = Plan.from_dict(json.loads(json.dumps(plan.to_dict())))
        assert again == plan
        again.verify(TREE)


def tampered(path, value):
    data = plan_of().to_dict()
    place = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return data


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("levels", 0, "noise", "squared_scale"), 312),
        (("levels", 0, "noise", "squared_scale"), "1/0"),
        # What would ask for much work: `pld` took 10 GB for a manifest of 3 KB.
        (("accountant",), "pld"),
        (("levels",), plan_of().to_dict()["levels"] * 2000),
        (("levels", 0, "noise", "squared_scale"), "1" * 10_001),
        (("levels", 0, "noise", "squared_scale"), "1e99999"),
        (("levels", 0, "noise", "squared_scale"), "1e60"),
        (("levels", 0, "squared_sensitivity"), 10**12),
        (("levels", 0, "noise", "squared_scale"), "1/257"),
    ],
)
def test_a_plan_that_asks_for_much_work_or_nonsense_is_refused(path, value):
    """All other facts of a plan are forged among the forged releases."""
    with pytest.raises(PrivacyError):
        Plan.from_dict(tampered(path, value))


@pytest.mark.parametrize("accountant", ["exact", "zcdp"])
def test_laplace_noise_at_many_levels_is_refused_before_it_is_accounted_for(accountant):
    """A manifest of 28 KB took 22 s; a plan has such noise at the finest level, or everywhere."""
    plan = plan_of(accountant=accountant)
    levels = tuple(
        replace(plan.levels[0], index=1 + n, noise=Noise.laplace(Fraction(20 + n, 7)))
        for n in range(80)
    )
    crafted = replace(plan, levels=levels).to_dict()
    with (
        patch("inftda.privacy.noise_plan.privacy_curve", side_effect=AssertionError),
        pytest.raises(BudgetError, match="Laplace noise above the finest level"),
    ):
        Plan.from_dict(crafted)


def test_many_levels_with_delta_0_are_accounted_for_without_their_losses():
    plan = plan_of(delta=0)
    levels = tuple(replace(plan.levels[0], index=1 + n, noise=Noise.laplace(30)) for n in range(80))
    with patch("inftda.privacy.accountants._laplace_losses", side_effect=AssertionError):
        Plan.from_dict(replace(plan, levels=levels, epsilon=6.0).to_dict())
        with pytest.raises(BudgetError, match="the plan states delta 0"):
            Plan.from_dict(replace(plan, levels=levels, epsilon=5.0).to_dict())


def test_a_rho_with_more_digits_than_python_writes_is_refused():
    level = plan_of(accountant="zcdp").levels[0]
    primes = [n for n in range(10**9, 10**9 + 20_000) if pow(2, n - 1, n) == 1][:600]
    levels = [
        replace(level, index=1 + n, noise=Noise(Fraction(prime))).stated().to_dict()
        for n, prime in enumerate(primes)
    ]
    with pytest.raises(BudgetError, match="too long"):
        Plan.from_dict(plan_of(accountant="zcdp").to_dict() | {"levels": levels})


@pytest.mark.parametrize("data", [None, [], {}, "plan"])
def test_what_is_no_plan_is_refused(data):
    with pytest.raises(BudgetError):
        Plan.from_dict(data)


@pytest.mark.parametrize("thousandths", range(1, 40, 4))
def test_what_is_described_is_never_better_than_what_is_promised(thousandths):
    plan = plan_of(rho=Fraction(thousandths, 977), epsilon=None, accountant="zcdp")
    epsilon, delta, rho = map(Fraction, re.findall(r"= ([0-9.e-]+)", plan.describe()))
    assert Fraction(repr(plan.epsilon)) <= epsilon <= Fraction(plan.epsilon) * Fraction("1.00001")
    assert delta == Fraction(repr(plan.delta))
    assert plan.rho <= rho <= plan.rho * Fraction("1.00001")


@given(st.fractions(min_value=Fraction(1, 10**12), max_value=10**6))
def test_six_digits_lie_on_the_safe_side(value):
    lower, upper = Fraction(rounded_down(value)), Fraction(rounded_up(value))
    assert lower <= value <= upper
    assert upper - lower <= value / 10**5


def test_numbers_of_six_digits_are_shown_as_they_are():
    for text in ("1", "0.1", "1e-08", "17.5", "0.333333", "123456"):
        for number in (float(text), Fraction(text)):
            assert rounded_up(number) == rounded_down(number) == text


def test_floats_of_other_libraries_are_numbers():
    assert plan_of(epsilon=np.float64(1), delta=np.float64(1e-8)) == plan_of()
    rho = {"epsilon": None, "delta": None}
    assert plan_of(rho=np.float64(0.1), **rho) == plan_of(rho=0.1, **rho)


@pytest.mark.parametrize("delta", [0, 0.0, "0", "0.0", "0e-5", Fraction(0)])
def test_no_delta_is_pure_however_it_is_written(delta):
    assert plan_of(delta=delta) == plan_of(delta=0)
    assert plan_of(delta=delta).is_pure


@pytest.mark.parametrize("delta", ["", "0x", "-1", "1e-400"])
def test_what_is_no_delta_is_refused(delta):
    with pytest.raises(PrivacyError, match="delta"):
        plan_of(delta=delta)


def test_a_plan_has_the_method_of_a_release_by_default():
    budget = {"epsilon": 1, "delta": 1e-8}
    assert make_plan(TREE, Unit(), **budget) == make_plan(TREE, Unit(), **budget, method="inftda")


def test_the_levels_of_a_plan_are_known_where_its_tree_is():
    plan = plan_of(cross_tables=0.08)
    read = Plan.from_dict(plan.to_dict())
    with pytest.raises(BudgetError, match="without its tree"):
        _ = read.levels[0].marginal
    for part, same in zip(read.on(TREE).parts, plan.parts, strict=True):
        assert part.marginal is same.marginal
        assert part.depths == part.marginal.depths
        assert part.is_on_tree == (part.marginal in TREE.levels)
