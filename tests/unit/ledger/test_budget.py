"""Budgets of data sets: what adds up, what is refused, and on which side it is rounded."""

from fractions import Fraction

import pytest

from inftda.errors import LedgerError, PrivacyError
from inftda.hierarchy import Hierarchy
from inftda.lab.baselines.stability_histogram import make_stability_plan
from inftda.ledger.budget import Budget, Cost, Spent
from inftda.privacy.accounting import epsilon_of
from inftda.privacy.plan import make_plan
from inftda.privacy.unit import PrivacyUnit
from inftda.tree import Tree

TREE = Tree.destination_first(Hierarchy.read({"region": ["N", "N", "S"], "town": ["1", "2", "3"]}))


def rho(text):
    return Cost(Fraction(text), None, None)


def approximate(epsilon, delta):
    return Cost.stated(epsilon=epsilon, delta=delta)


def epsilon_at(spent_rho, delta):
    return epsilon_of("zcdp", delta=delta, noise=[(1 / (2 * spent_rho), 1, 0)])


def test_the_costs_of_zcdp_releases_add_up_exactly():
    budget, spent = Budget.make(rho="1"), Spent()
    for _ in range(3):
        assert budget.pool_for(spent, rho("1/3")) == "zcdp"
        spent = spent.plus("zcdp", rho("1/3"))
    assert spent.rho == 1
    with pytest.raises(LedgerError, match="nothing is left"):
        budget.pool_for(spent, rho("1/1000000000000"))


def test_a_refusal_says_what_would_fit_and_that_does_fit():
    budget, spent = Budget.make(rho="0.1"), Spent().plus("zcdp", rho("0.03000000001"))
    with pytest.raises(LedgerError, match="at most --rho") as refused:
        budget.pool_for(spent, rho("0.08"))
    suggested = str(refused.value).rpartition("--rho ")[2].split()[0]
    assert budget.pool_for(spent, rho(suggested)) == "zcdp"
    assert Fraction(suggested) > Fraction("0.0699")


@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-8"), ("0.1", "1e-6"), ("10", "1e-12")])
def test_a_budget_of_epsilon_is_the_largest_rho_that_implies_it(epsilon, delta):
    budget = Budget.make(epsilon=epsilon, delta=delta)
    assert epsilon_at(budget.rho, delta) <= float(epsilon)
    assert epsilon_at(budget.rho * Fraction("1.00000001"), delta) > float(epsilon)


def test_what_is_spent_is_stated_in_epsilon_at_the_delta_of_the_budget():
    budget = Budget.make(rho="0.1", delta="1e-6")
    assert budget.epsilon_at_delta(Spent()) == 0
    spent = Spent().plus("zcdp", rho("0.03"))
    assert budget.epsilon_at_delta(spent) == epsilon_at(Fraction("0.03"), 1e-6)
    assert Budget.make(rho="0.1").epsilon_at_delta(spent) is None


def test_all_that_fits_into_a_budget_of_epsilon_comes_to_no_more_than_that_epsilon():
    budget = Budget.make(
        epsilon="2", delta="1e-6", approximate_epsilon="0.5", approximate_delta="4e-7"
    )
    spent = Spent().plus("zcdp", rho(budget.rho))
    spent = spent.plus("approximate", approximate("0.5", "4e-7"))
    assert budget.epsilon_at_delta(spent) <= 2 + 1e-12
    assert budget.epsilon_at_delta(spent) > 1.999999


def test_one_release_that_promises_the_whole_budget_fits_although_its_rho_is_larger():
    plan = make_plan(TREE, PrivacyUnit(), epsilon=1, delta=1e-8)
    budget = Budget.make(epsilon="1", delta="1e-8")
    assert plan.rho > budget.rho, "otherwise this test shows nothing"
    assert budget.pool_for(Spent(), Cost.of(plan)) == "alone"
    spent = Spent().plus("alone", Cost.of(plan))
    assert budget.epsilon_at_delta(spent) == 1
    with pytest.raises(LedgerError, match="whole budget"):
        budget.pool_for(spent, rho("1e-9"))


def test_only_the_first_release_may_be_accounted_for_alone():
    plan = make_plan(TREE, PrivacyUnit(), epsilon=1, delta=1e-8)
    budget = Budget.make(epsilon="1", delta="1e-8")
    with pytest.raises(LedgerError, match="spent"):
        budget.pool_for(Spent().plus("zcdp", rho("1e-9")), Cost.of(plan))


@pytest.mark.parametrize(("epsilon", "delta"), [(1.01, 1e-8), (1, 1.01e-8), (0.9, 1e-6)])
def test_a_first_release_that_promises_less_than_the_budget_asks_for_is_refused(epsilon, delta):
    plan = make_plan(TREE, PrivacyUnit(), epsilon=epsilon, delta=delta)
    with pytest.raises(LedgerError, match="costs"):
        Budget.make(epsilon="1", delta="1e-8").pool_for(Spent(), Cost.of(plan))


def test_a_budget_of_rho_has_no_exception_for_the_first_release():
    plan = make_plan(TREE, PrivacyUnit(), epsilon=1, delta=1e-8)
    with pytest.raises(LedgerError, match="costs"):
        Budget.make(rho=plan.rho * Fraction("0.999"), delta="1e-8").pool_for(Spent(), Cost.of(plan))


def test_a_release_that_is_not_zcdp_needs_a_part_set_aside():
    plan = make_stability_plan(TREE, PrivacyUnit(), epsilon=0.25, delta=1e-7)
    with pytest.raises(LedgerError, match="nothing set aside"):
        Budget.make(epsilon="1", delta="1e-6").pool_for(Spent(), Cost.of(plan))
    budget = Budget.make(
        epsilon="1", delta="1e-6", approximate_epsilon="0.5", approximate_delta="2e-7"
    )
    spent = Spent()
    for _ in range(2):
        assert budget.pool_for(spent, Cost.of(plan)) == "approximate"
        spent = spent.plus("approximate", Cost.of(plan))
    with pytest.raises(LedgerError, match="0 and 0 are left"):
        budget.pool_for(spent, Cost.of(plan))


@pytest.mark.parametrize(("epsilon", "delta"), [("0.51", "1e-8"), ("0.1", "3e-7")])
def test_neither_the_epsilon_nor_the_delta_set_aside_may_be_overspent(epsilon, delta):
    budget = Budget.make(
        epsilon="1", delta="1e-6", approximate_epsilon="0.5", approximate_delta="2e-7"
    )
    with pytest.raises(LedgerError, match="set aside"):
        budget.pool_for(Spent(), approximate(epsilon, delta))


def test_what_is_set_aside_is_not_there_for_zcdp_releases():
    whole = Budget.make(epsilon="1", delta="1e-6")
    part = Budget.make(
        epsilon="1", delta="1e-6", approximate_epsilon="0.5", approximate_delta="5e-7"
    )
    assert part.rho == Budget.make(epsilon="0.5", delta="5e-7").rho < whole.rho


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
        {"epsilon": "nan", "delta": "1e-6"},
        {"epsilon": "1", "delta": "1"},
        {"epsilon": "1", "delta": "1e-6", "approximate_epsilon": "0.5"},
        {"epsilon": "1", "delta": "1e-6", "approximate_epsilon": "1", "approximate_delta": "1e-7"},
        {
            "epsilon": "1",
            "delta": "1e-6",
            "approximate_epsilon": "0.5",
            "approximate_delta": "1e-6",
        },
        {"rho": "1", "approximate_epsilon": "0.5", "approximate_delta": "1e-7"},
    ],
)
def test_a_budget_that_makes_no_sense_is_refused(given):
    with pytest.raises(PrivacyError):
        Budget.make(**given)


@pytest.mark.parametrize("given", [{}, {"rho": 1, "epsilon": 1, "delta": 0.1}, {"epsilon": 1}])
def test_a_stated_cost_is_rho_or_epsilon_with_delta(given):
    with pytest.raises(PrivacyError, match="either rho, or epsilon and delta"):
        Cost.stated(**given)
