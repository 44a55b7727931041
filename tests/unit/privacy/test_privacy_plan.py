"""Plans, splits and account."""

import json
import math
import re
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from handmade import UNEVEN_TREE, HandmadeTree
from hypothesis import given
from hypothesis import strategies as st

from inftda.errors import BudgetError, PrivacyError
from inftda.hierarchy import Hierarchy
from inftda.numbers import rounded_down, rounded_up
from inftda.privacy.plan import Plan, make_plan
from inftda.privacy.unit import Unit
from inftda.tree import Tree

ONE_TRIP = Unit()
#: Two regions of two provinces of two towns; six measured levels.
TREE = Tree.destination_first(
    Hierarchy.read(
        {
            "region": list("AAAABBBB"),
            "province": list("ccddeeff"),
            "town": list("01234567"),
        }
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
    return make_plan(tree, unit, **({"epsilon": 1, "delta": 1e-8} | budget))


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_plan_measures_what_it_must_and_costs_add_up(unit):
    plan = plan_of(unit)
    first = 1 if unit.root_is_public else 0
    assert [level.index for level in plan.levels] == list(range(first, 7))
    assert plan.rho == sum(level.rho for level in plan.levels)
    for level in plan.levels:
        tree_level = TREE.levels[level.index]
        assert level.squared_sensitivity == unit.squared_sensitivity(tree_level)
        assert level.rho == level.squared_sensitivity / (2 * level.sigma2)
        assert (level.name, level.cells) == (tree_level.name, tree_level.n_nodes)


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_uniform_split_gives_every_level_the_same_share(unit):
    costs = [level.rho for level in plan_of(unit).levels]
    assert max(costs) <= min(costs) * (1 + Fraction(1, 10**8))


def test_trivial_steps_get_nothing_and_the_others_more():
    plan = plan_of(tree=UNEVEN_TREE)
    assert [level.index for level in plan.levels] == [1, 3]
    assert plan.levels[0].sigma < plan_of().levels[0].sigma
    with pytest.raises(PrivacyError, match="level 2, which is not measured"):
        plan_of(tree=UNEVEN_TREE, split={1: 1, 2: 1, 3: 1})


def test_a_geometric_split_grows_by_its_ratio():
    plan = plan_of(split="geometric:1.3", accountant="zcdp")
    costs = [float(level.rho) for level in plan.levels]
    for above, below in pairwise(costs):
        assert below == pytest.approx(1.3 * above, rel=0.01), "shares are whole multiples of one"
    assert float(plan.rho) == pytest.approx(float(plan_of(accountant="zcdp").rho), rel=1e-8)


@pytest.mark.parametrize(
    "split",
    [
        [1, 1, 2, 2, 4, 4],
        {1: 1, 2: 1, 3: 2, 4: 2, 5: 4, 6: 4},
        {"1": 0.5, "2": 0.5, "3": 1, "4": 1, "5": Fraction(2), "6": 2},
        {level.name: weight for level, weight in zip(TREE.levels[1:], (1, 1, 2, 2, 4, 4))},  # noqa: B905 - lengths are plain
    ],
)
def test_weights_may_be_given_in_order_or_by_level(split):
    costs = [float(level.rho) for level in plan_of(split=split, accountant="zcdp").levels]
    assert [cost / costs[0] for cost in costs] == pytest.approx([1, 1, 2, 2, 4, 4], rel=1e-8)


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ("even", "geometric:1.3"),
        *((f"geometric{ratio}", "ratio") for ratio in ("", ":0", ":-1", ":1e9", ":1/0", ":nan")),
        ([1, 2], "one weight for each of the 6"),
        *(([1, 1, 1, 1, 1, bad], "> 0") for bad in (0, -1, math.nan, math.inf, "1", True)),
        ({1: 1}, "no weight for the level"),
        ({"nowhere": 1}, "nowhere"),
        (dict.fromkeys(range(7), 1), "level 0, which is not measured"),
        ({**dict.fromkeys(range(1, 7), 1), "6": 1}, "twice"),
        (3, "split"),
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


def test_a_tree_without_anything_to_measure_is_refused():
    with pytest.raises(PrivacyError, match="nothing to measure"):
        plan_of(tree=HandmadeTree.of((0,), (0,)))


def test_a_single_area_still_has_a_total_to_protect():
    plan = plan_of(Unit("add-remove"), tree=HandmadeTree.of((0,), (0,)))
    assert [level.index for level in plan.levels] == [0]


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_plan_survives_writing_and_reading(unit):
    for budget in ({}, {"rho": 0.5, "epsilon": None}, {"across": 0.08}):
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
        (("epsilon",), 0.99),
        (("epsilon",), None),
        (("epsilon",), math.nan),
        (("delta",), 0.99e-8),
        (("rho",), "1/100"),
        (("trips",), 2),
        (("exactly",), False),
        (("neighbours",), "add-remove"),
        (("accountant",), "auto"),
        (("further",), 1),
        (("levels",), []),
        (("levels", 0), None),
        (("levels", 0, "index"), 0),
        (("levels", 0, "index"), 2),
        (("levels", 0, "sigma2"), "312"),
        (("levels", 0, "sigma2"), 312),
        (("levels", 0, "sigma2"), "1/0"),
        (("levels", 0, "squared_sensitivity"), 1),
        (("levels", 0, "sigma"), 1.0),
        # What would ask for much work: `pld` took 10 GB for a manifest of 3 KB.
        (("accountant",), "pld"),
        (("levels",), plan_of().to_dict()["levels"] * 2000),
        (("levels", 0, "sigma2"), "1" * 10_001),
        (("levels", 0, "sigma2"), "1e99999"),
        (("levels", 0, "sigma2"), "1e60"),
        (("levels", 0, "squared_sensitivity"), 10**12),
        (("levels", 0, "sigma2"), "1/257"),
    ],
)
def test_a_plan_that_was_tampered_with_is_refused(path, value):
    """All of a plan is forged among the forged releases."""
    with pytest.raises(PrivacyError):
        Plan.from_dict(tampered(path, value))


def test_less_noise_with_matching_costs_is_refused_too():
    plan = plan_of()
    levels = tuple(replace(level, sigma2=level.sigma2 * Fraction(99, 100)) for level in plan.levels)
    bold = replace(plan, levels=levels)
    with pytest.raises(BudgetError, match="promises delta"):
        bold.verify()
    replace(bold, epsilon=1.02).verify()


def test_a_plan_is_only_good_for_its_tree():
    with pytest.raises(BudgetError, match="levels of this tree"):
        plan_of().verify(UNEVEN_TREE)
    unit = Unit("add-remove", trips=3, distinct=True)
    plan = plan_of(unit)
    # The same cost with a smaller sensitivity: only the tree can tell.
    first = plan.levels[1]
    smaller = replace(first, squared_sensitivity=5)
    levels = (plan.levels[0], smaller, *plan.levels[2:])
    bold = replace(plan, levels=levels)
    bold.verify()
    with pytest.raises(BudgetError, match="not the one of this tree"):
        bold.verify(TREE)


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
