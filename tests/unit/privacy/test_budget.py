"""Budgets of data sets: what adds up, what is refused, and on which side it is rounded."""

from fractions import Fraction

import pytest
from msgspec import structs

from inftda.errors import LedgerError, PrivacyError
from inftda.privacy.accounting import epsilon_of_rho
from inftda.privacy.budget import Budget, Cost, Dataset, Entry
from inftda.privacy.noise_plan import make_plan
from inftda.privacy.unit import Unit
from inftda.tree import Tree
from inftda.tree.hierarchy import Hierarchy
from inftda.util.exact_numbers import exact_number

TREE = Tree.destination_first(Hierarchy.read({"region": ["N", "N", "S"], "town": ["1", "2", "3"]}))
UNIT = Unit()


def dataset(costs=(), **budget):
    entries = [
        Entry(
            *(cost.rho, cost.epsilon, cost.delta),
            number=number,
            charged="",
            published=None,
            mechanism="inftda",
            note="",
        )
        for number, cost in enumerate(costs, start=1)
    ]
    return Dataset("census", "", UNIT, Budget.make(**budget), tuple(entries))


def rho(text):
    return Cost(Fraction(text))


def cost_of(plan):
    return Cost(plan.rho, exact_number(plan.epsilon), exact_number(plan.delta))


def epsilon_at(spent_rho, delta):
    return epsilon_of_rho(spent_rho, delta=delta)


def test_costs_add_up_exactly():
    spent = [rho("1/3")] * 2
    dataset(spent, rho="1").check(rho("1/3"), UNIT)
    full = dataset([*spent, rho("1/3")], rho="1")
    assert full.spending.spent == 1
    with pytest.raises(LedgerError, match="nothing is left"):
        full.check(rho("1/1000000000000"), UNIT)


def test_a_cost_above_what_is_left_by_less_than_a_float_can_hold_is_refused():
    third = dataset(rho="1/3")
    third.check(rho("1/3"), UNIT)
    with pytest.raises(LedgerError, match="costs"):
        third.check(Cost(Fraction(1, 3) + Fraction(1, 3 * 10**30)), UNIT)


def test_what_is_spent_is_rounded_up_in_words_and_in_refusals():
    spent = dataset([rho("1/3")] * 2, rho="1")
    assert spent.spent_words() == ["rho = 0.666667 by 2 releases"]
    with pytest.raises(LedgerError, match=r"of which 0\.666667 is spent"):
        spent.check(rho("1/2"), UNIT)


def test_a_refusal_says_what_would_fit_and_that_does_fit():
    part = dataset([rho("0.03000000001")], rho="0.1")
    with pytest.raises(LedgerError, match="at most `rho=") as refused:
        part.check(rho("0.08"), UNIT)
    suggested = str(refused.value).rpartition("`rho=")[2].partition("`")[0]
    part.check(rho(suggested), UNIT)
    assert Fraction(suggested) > Fraction("0.0699")


@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-8"), ("0.1", "1e-6"), ("10", "1e-12")])
def test_a_budget_of_epsilon_is_the_largest_rho_that_implies_it(epsilon, delta):
    budget = Budget.make(epsilon=epsilon, delta=delta)
    assert epsilon_at(budget.rho, delta) <= float(epsilon)
    assert epsilon_at(budget.rho * Fraction("1.00000001"), delta) > float(epsilon)


def test_what_is_spent_is_stated_in_epsilon_at_the_delta_of_the_budget():
    budget = {"rho": "0.1", "delta": "1e-6"}
    assert dataset(**budget).spending.epsilon == 0
    spent = dataset([rho("0.01"), rho("0.02")], **budget)
    assert spent.spending.epsilon == epsilon_at(Fraction("0.03"), 1e-6)
    assert dataset([rho("0.03")], rho="0.1").spending.epsilon is None


def test_one_release_that_promises_the_whole_budget_fits_although_its_rho_is_larger():
    plan, budget = (
        make_plan(TREE, UNIT, epsilon=1, delta=1e-8, method="paper"),
        {"epsilon": "1", "delta": "1e-8"},
    )
    fresh = dataset(**budget)
    assert plan.rho > fresh.budget.rho, "otherwise this test shows nothing"
    fresh.check(cost_of(plan), UNIT)
    spent = dataset([cost_of(plan)], **budget)
    assert spent.spending.epsilon == 1
    with pytest.raises(LedgerError, match="whole budget"):
        spent.check(rho("1e-9"), UNIT)


def test_only_the_first_release_may_be_accounted_for_alone():
    plan = make_plan(TREE, UNIT, epsilon=1, delta=1e-8, method="paper")
    with pytest.raises(LedgerError, match="spent"):
        dataset([rho("1e-9")], epsilon="1", delta="1e-8").check(cost_of(plan), UNIT)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.01, 1e-8), (1, 1.01e-8), (0.9, 1e-6)])
def test_a_first_release_that_promises_less_than_the_budget_asks_for_is_refused(epsilon, delta):
    plan = make_plan(TREE, UNIT, epsilon=epsilon, delta=delta, method="paper")
    with pytest.raises(LedgerError, match="costs"):
        dataset(epsilon="1", delta="1e-8").check(cost_of(plan), UNIT)


def test_a_budget_of_rho_has_no_exception_for_the_first_release():
    plan = make_plan(TREE, UNIT, epsilon=1, delta=1e-8, method="paper")
    with pytest.raises(LedgerError, match="costs"):
        dataset(rho=plan.rho * Fraction("0.999"), delta="1e-8").check(cost_of(plan), UNIT)


@pytest.mark.parametrize("unit", [Unit(trips=2), Unit("add-remove"), Unit(exactly=False)])
def test_another_privacy_unit_is_refused_because_costs_would_not_add_up(unit):
    with pytest.raises(LedgerError, match="do not add up"):
        dataset(rho="1").check(rho("0.1"), unit)


def test_a_single_trip_is_distinct_whether_or_not_it_is_said():
    dataset(rho="1").check(rho("0.1"), Unit(distinct=True))


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"rho": "1", "epsilon": "1", "delta": "1e-6"},
        {"epsilon": "1"},
        {"delta": "1e-6"},
        {"rho": "0"},
        {"rho": "-1"},
        {"rho": "1e999999999"},
        {"rho": "1", "delta": "2"},
        {"epsilon": "nan", "delta": "1e-6"},
        {"epsilon": "1", "delta": "1"},
    ],
)
def test_a_budget_that_makes_no_sense_is_refused(given):
    with pytest.raises(PrivacyError):
        Budget.make(**given)


def monthly(*charged, **budget):
    """A data set with a budget of epsilon 0.3 for each month, charged for (month, cost)."""
    whole = dataset([cost for _, cost in charged], **budget)
    periods = [month for month, _ in charged]
    entries = tuple(
        structs.replace(entry, period=period)
        for entry, period in zip(whole.entries, periods, strict=True)
    )
    each = Budget.make(epsilon="0.3", delta="1e-8")
    return structs.replace(whole, entries=entries, each_period=each)


def test_a_period_has_its_own_budget_and_all_periods_have_one():
    plan = make_plan(TREE, UNIT, epsilon=0.3, delta=1e-8, method="paper")
    cost, months = cost_of(plan), [f"2024-{month:02}" for month in range(1, 13)]
    year = monthly(*[(month, cost) for month in months], epsilon="1.2", delta="1e-8")
    assert year.by_period["2024-05"].epsilon == 0.3
    assert year.spending.epsilon == epsilon_at(12 * cost.rho, 1e-8)
    with pytest.raises(LedgerError, match="period '2024-05': its first release took the whole"):
        monthly(("2024-05", cost), rho="1").check(cost, UNIT, "2024-05")
    monthly(("2024-05", cost), rho="1").check(cost, UNIT, "2024-06")
    with pytest.raises(LedgerError, match="say which period"):
        year.check(cost, UNIT)
    with pytest.raises(LedgerError, match="'census': the budget"):
        monthly(("2024-05", cost), rho=str(cost.rho)).check(cost, UNIT, "2024-06")


@pytest.mark.parametrize(
    ("first", "other"),
    [
        ("2024-Q1", ["2024-01", "2024", "2024-01-31"]),
        ("2024-01", ["2024", "2024-Q1", "2024-1", "2024.01", "202401", "Jan-2024", "2024-13"]),
        ("2024", ["2024-01", "24", "2024-q1", "2024-00"]),
        ("2024-02-29", ["2024-02", "2024-02-30", "20240229"]),
    ],
)
def test_all_periods_of_a_data_set_have_the_form_of_the_first(first, other):
    charged = monthly((first, rho("0.001")), rho="1")
    charged.check(rho("0.001"), UNIT, first.replace("2024", "2028"))
    for period in other:
        with pytest.raises(LedgerError, match=rf"such as '{first}'; got '{period}', .* overlap"):
            charged.check(rho("0.001"), UNIT, period)


@pytest.mark.parametrize("period", ["2024-q1", "2024-1", "Jan-2024", "2023-02-29", "2024-Q5", "x"])
def test_a_period_that_is_not_in_the_calendar_is_refused_from_the_start(period):
    with pytest.raises(LedgerError, match=f"periods must not overlap.*YYYY-MM.*got '{period}'"):
        monthly(rho="1").check(rho("0.001"), UNIT, period)


def test_periods_without_a_budget_of_their_own_may_have_any_name():
    dataset([rho("0.1")], rho="1").check(rho("0.1"), UNIT, "wave-2")


def test_a_release_that_takes_the_budget_alone_says_why_its_rho_is_larger():
    cost = cost_of(make_plan(TREE, UNIT, epsilon=0.3, delta=1e-8))
    _, in_one_period = monthly(("2024-05", cost), rho="1").spent_words()
    assert "epsilon = 0.3 at delta = 1e-08 by its own accountant" in in_one_period
    assert "its rho may exceed that of the budget" in in_one_period
    assert "accountant" not in monthly(("2024-05", rho("0.0001")), rho="1").spent_words()[1]


def test_twelve_months_against_an_independent_accountant():
    """The guarantee for a person with a trip in every month, by another library."""
    from dp_accounting import dp_event  # noqa: PLC0415 - a second
    from dp_accounting.pld import pld_privacy_accountant as pld  # noqa: PLC0415 - likewise

    plan = make_plan(TREE, UNIT, epsilon=0.3, delta=1e-9, split="uniform", method="paper")
    year = monthly(*[(str(month), cost_of(plan)) for month in range(12)], rho="1", delta="1e-8")
    accountant = pld.PLDAccountant()
    for level in plan.levels:
        noise = level.sigma / level.sensitivity.l2
        accountant.compose(dp_event.GaussianDpEvent(noise), 12)
    independent = accountant.get_epsilon(1e-8)
    # Composition by rho is an upper bound, and not a loose one.
    assert independent <= year.spending.epsilon <= 1.1 * independent
