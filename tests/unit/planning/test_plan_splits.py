"""What a plan says of other splits of the same budget."""

from fractions import Fraction

import pytest

from inftda.planning.plan import plan
from inftda.planning.target_accuracy import typical_errors
from inftda.privacy.bounds import guaranteed_errors
from inftda.privacy.noise_plan import SPLITS
from inftda.privacy.risk import risk_of

SIZES = [3, 11, 60]
BUDGETS = [
    {"epsilon": 1, "delta": 1e-8},
    {"epsilon": 1, "delta": 0},
    {"rho": Fraction(1, 40)},
    {"rho": Fraction(1, 40), "delta": 1e-8},
]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_each_split_is_what_a_plan_with_it_says(budget):
    found = plan(sizes=SIZES, **budget)
    assert [one.split for one in found.splits] == [*SPLITS]
    assert [one.is_planned for one in found.splits] == [True, False, False]
    for one in found.splits:
        alone = plan(sizes=SIZES, split=one.split, **budget)
        typical = typical_errors(alone.tree, alone.plan)
        guaranteed = guaranteed_errors(alone.tree, alone.plan)
        ends = [alone.plan.levels[end].index for end in (0, -1)]
        assert one.typical == tuple(typical[end] for end in ends)
        assert one.guaranteed == tuple(guaranteed[end] for end in ends)
        assert one.risk == risk_of(alone.plan)
    log, pairs, uniform = found.splits
    assert pairs.typical[1] < log.typical[1] <= uniform.typical[1]
    assert pairs.typical[0] > log.typical[0] > uniform.typical[0]
    stated = found.to_dict()["splits"]
    assert [one["split"] for one in stated] == [*SPLITS]
    assert stated[1]["finest"] == {
        "typical_error": pairs.typical[1],
        "max_error": pairs.guaranteed[1],
    }


def test_the_planned_split_is_marked_and_weights_are_none_of_them():
    budget = BUDGETS[0]
    marked = [one.is_planned for one in plan(sizes=SIZES, split="pairs", **budget).splits]
    assert marked == [False, True, False]
    by_paper = plan(sizes=SIZES, method="paper", **budget)
    assert [one.is_planned for one in by_paper.splits] == [False, False, True]
    weights = plan(sizes=SIZES, split=[1, 1, 1, 1, 1, 2], **budget)
    assert not any(one.is_planned for one in weights.splits)
    assert len(weights.splits) == len(SPLITS)


@pytest.mark.parametrize("delta", [None, 1e-8])
def test_with_an_accuracy_that_is_wanted_other_splits_have_the_budget_that_was_found(delta):
    found = plan(sizes=SIZES, delta=delta, want={"level 1 > level 1": 100})
    assert [one.is_planned for one in found.splits] == [True, False, False]
    budget = {"rho": found.plan.rho} if delta is None else {"epsilon": found.plan.epsilon}
    alone = plan(sizes=SIZES, delta=delta, split="uniform", **budget)
    assert found.splits[2].guaranteed[0] == alone.errors[alone.plan.levels[0].index]
