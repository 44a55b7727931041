"""Plans that also measure cross tables."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from handmade import contributions

from inftda.errors import BudgetError, PrivacyError
from inftda.privacy.noise_plan import Plan, make_plan
from inftda.privacy.unit import Unit
from inftda.tree import Axis, Tree
from inftda.tree.hierarchy import Hierarchy

AREAS = Hierarchy.read(
    {"region": list("NNNSSS"), "province": list("aabccd"), "town": list("123456")}
)
MODES = Hierarchy.read({"mode": ["walk", "car", "ferry"]})
TREE = Tree.destination_first(AREAS)
BY_MODE = Tree.build(
    [Axis("origin", AREAS), Axis("destination", AREAS), Axis("mode", MODES)],
    ["destination", "origin"] * 3 + ["mode"],
)
UNITS = {
    "substitute": Unit(),
    "add-remove": Unit("add-remove"),
    "trips": Unit(trips=3, exactly=False),
    "distinct": Unit("add-remove", trips=3, distinct=True),
}


USUAL = {"epsilon": 1, "delta": 1e-8, "cross_tables": 0.08}


def plan_of(tree=TREE, unit=UNITS["substitute"], **budget):
    return make_plan(tree, unit, **({"method": "paper"} | USUAL | budget))


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
@pytest.mark.parametrize("tree", [TREE, BY_MODE], ids=["two axes", "three axes"])
def test_rho_is_the_sum_over_levels_and_tables(tree, unit):
    plan = plan_of(tree, unit)
    assert [table.depths for table in plan.tables] == [t.depths for t in tree.cross_tables]
    assert (plan.accountant == "exact") == unit.is_single_trip
    parts = [*plan.levels, *plan.tables]
    assert plan.rho == sum(part.sensitivity.squared / (2 * part.noise.square) for part in parts)
    across = sum(table.rho for table in plan.tables)
    assert 0.04 * plan.rho < across <= 0.08 * plan.rho * (1 + Fraction(1, 10**8))


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
def test_sensitivities_are_those_of_all_neighbours(unit):
    """Every pair of neighbours, by brute force, on a tree of four by four leaves."""
    areas = Hierarchy.read({"region": list("NNNS"), "town": list("1234")})
    tree = Tree.destination_first(areas)
    plan = plan_of(tree, unit, rho=1, epsilon=None, delta=None)

    class Leaves:
        n_leaves = 16

    own = contributions(Leaves, unit)
    for table in plan.tables:
        sizes = [areas.n_areas(depth) for depth in table.depths]
        origin, destination = np.divmod(np.arange(16), 4)
        above = [areas.ancestor(2, depth) for depth in table.depths]
        cell = above[0][origin] * sizes[1] + above[1][destination]
        sums = own @ (cell[:, None] == np.arange(sizes[0] * sizes[1]))
        squares = (sums**2).sum(axis=1)
        worst = squares.max()
        if unit.is_substitute:
            products = sums @ sums.T
            worst = (squares[:, None] + squares[None, :] - 2 * products).max()
        assert worst <= table.sensitivity.squared
        assert unit.distinct or worst == table.sensitivity.squared


@pytest.mark.parametrize("split", ["uniform", [1, 2, 3, 4, 5, 6]])
def test_with_any_split_tables_have_their_part_of_the_budget(split):
    plan = plan_of(split=split, accountant="zcdp")
    across = sum(table.rho for table in plan.tables)
    assert 0.04 * plan.rho < across <= 0.08 * plan.rho * (1 + Fraction(1, 10**8))


def test_below_a_scale_of_one_nothing_is_measured_across():
    plan = plan_of(epsilon=300)
    assert plan.levels[0].sigma < 1
    assert plan.tables == ()
    assert plan.cross_table_share == Fraction(8, 100)
    assert plan == replace(plan_of(epsilon=300, cross_tables=0), cross_table_share=Fraction(8, 100))
    assert Plan.from_dict(plan.to_dict()) == plan


def test_without_cross_tables_none_is_stated():
    plan = plan_of(cross_tables=0)
    assert plan == make_plan(TREE, UNITS["substitute"], epsilon=1, delta=1e-8, method="paper")
    assert (plan.stated().cross_table_share, plan.stated().cross_tables) == ("0", ())
    assert plan_of(Tree.build([Axis("x", AREAS)], "xxx")).tables == ()


@pytest.mark.parametrize("across", [-0.1, 0.51, 1, "much", "1/0", True, float("nan")])
def test_a_part_that_makes_no_sense_is_refused(across):
    with pytest.raises(PrivacyError, match="cross tables"):
        plan_of(cross_tables=across)


@pytest.mark.parametrize(
    "changes",
    [
        {"cross_tables": [1]},
        {"cross_tables": [{}]},
        {"cross_table_share": 0.08},
        {"cross_table_share": "3/4"},
        {"cross_table_share": "1/0"},
    ],
    ids=str,
)
def test_a_guarantee_that_states_something_else_is_refused(changes):
    with pytest.raises((BudgetError, PrivacyError)):
        Plan.from_dict({**plan_of().to_dict(), **changes})


# Accounts


def test_levels_and_tables_are_spent_once_each_and_all_of_them():
    """Noise that is not planned is never drawn, nor any twice; every account starts anew."""
    plan = plan_of()
    for left_out in (plan.levels[-1], plan.tables[-1]):
        account = plan.account()
        for part in plan.parts:
            if part != left_out:
                assert account.charge(part.key) == part
                assert account.is_planned(part.key)
                with pytest.raises(BudgetError, match="drawn already"):
                    account.charge(part.key)
        for stranger in (0, (9, 9)):
            assert not account.is_planned(stranger)
            with pytest.raises(BudgetError, match="not in the plan"):
                account.charge(stranger)
        with pytest.raises(BudgetError, match="planned but not drawn"):
            account.finish()
        account.charge(left_out.key)
        account.finish()
