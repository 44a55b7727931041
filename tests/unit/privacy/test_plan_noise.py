"""Where noise goes: the split by logarithms, Laplace noise at the finest level, delta 0."""

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from inftda.errors import BudgetError, PrivacyError
from inftda.noise.distribution import Noise
from inftda.planning.plan import balanced_areas, plan
from inftda.privacy.accountants import privacy_curve
from inftda.privacy.noise_plan import METHODS, Plan, make_plan, measured_tables
from inftda.privacy.unit import Unit
from inftda.tree import Axis, Tree
from inftda.tree.hierarchy import Hierarchy

TREE = Tree.destination_first(Hierarchy.read(balanced_areas([3, 11, 43, 581])))
BUDGET = {"epsilon": 1, "delta": 1e-8}


def planned(unit=None, tree=TREE, **changes):
    return make_plan(tree, unit or Unit(), **({"method": "inftda"} | BUDGET | changes))


def largest_draw(level):
    """What one of 20 tables has beyond it, if all cells are drawn."""
    odds = math.log(20 * level.cells)
    if level.noise.is_laplace:
        return float(level.noise.scale) * odds
    return level.sigma * math.sqrt(2 * odds)


@pytest.mark.parametrize("sizes", [(3, 11, 43, 581), (20, 110, 8092), (265,)])
@pytest.mark.parametrize("epsilon", [0.1, 1, 10])
def test_the_largest_draw_is_as_large_at_every_level_above_the_finest(sizes, epsilon):
    tree = Tree.destination_first(Hierarchy.read(balanced_areas(sizes)))
    *above, finest = map(largest_draw, planned(tree=tree, epsilon=epsilon).levels)
    assert max(above) <= 1.02 * min(above)
    assert finest / max(above) == pytest.approx(math.sqrt(25 / 32), rel=0.03)


def test_the_finest_level_has_laplace_noise_and_the_promise_is_used_up():
    made = planned()
    assert made.accountant == "exact"
    assert [level.noise.family for level in made.levels] == ["gaussian"] * 7 + ["laplace"]
    assert {table.noise.family for table in made.tables} == {"gaussian"}
    assert Plan.from_dict(made.to_dict()) == made
    leaf = replace(
        made.levels[-1], noise=Noise.laplace(made.levels[-1].noise.scale * Fraction("0.98"))
    )
    with pytest.raises(BudgetError, match="its noise gives"):
        replace(made, levels=(*made.levels[:-1], leaf)).verify(TREE)


def test_laplace_noise_costs_the_leaves_less_than_gaussian_noise():
    weights = [math.log(20 * level.cells) for level in planned().levels]
    gaussian = planned(split=weights)
    assert planned().levels[-1].sigma < 0.8 * gaussian.levels[-1].sigma
    assert gaussian.levels[-1].sigma < 0.85 * planned(split="uniform").levels[-1].sigma


def test_there_is_none_where_it_does_not_pay():
    def families(**changes):
        return {level.noise.family for level in planned(**changes).levels}

    assert families(epsilon=None, delta=None, rho="0.02") == {"gaussian"}
    assert families(split="uniform") == {"gaussian"}
    assert families(unit=Unit(trips=10, distinct=True)) == {"gaussian"}
    assert families(unit=Unit(trips=10)) == {"gaussian", "laplace"}
    assert families(unit=Unit("add-remove")) == {"gaussian", "laplace"}
    short = Hierarchy.read({"sex": ["f", "m"]})
    axes = [*TREE.axes, Axis("sex", short)]
    assert families(tree=Tree.build(axes, [*TREE.order, "sex"])) == {"gaussian"}


# --- the split for pairs


@pytest.mark.parametrize("unit", [Unit(), Unit("add-remove"), Unit(trips=4), Unit(exactly=False)])
@pytest.mark.parametrize("epsilon", [0.1, 1, 10])
def test_for_pairs_the_finest_level_has_more_and_the_promise_is_kept(unit, epsilon):
    usual, made = (planned(unit, epsilon=epsilon, split=split) for split in ("log", "pairs"))
    assert [one.noise.family for one in made.levels] == [one.noise.family for one in usual.levels]
    ratios = [new.sigma / old.sigma for new, old in zip(made.levels, usual.levels, strict=True)]
    assert min(ratios[:-1]) > 1 > ratios[-1]
    found = privacy_curve(made.accountant, made.measured)(epsilon)
    assert 0.99e-8 < found <= 1e-8
    assert made.used_share <= made.cross_table_share * (1 + Fraction(1, 10**8))
    assert Plan.from_dict(made.to_dict()) == made


def test_for_pairs_the_finest_level_has_four_times_its_share_beside_other_noise():
    usual, made = (planned(split=split).levels for split in ("log", "pairs"))
    parts = [levels[-1].rho / levels[0].rho for levels in (usual, made)]
    assert float(parts[1] / parts[0]) == pytest.approx(4, rel=0.03)


def test_for_pairs_the_finest_level_has_half_where_all_noise_is_of_one_kind():
    pure = planned(delta=0, split="pairs")
    costs = [float(level.epsilon) for level in pure.levels]
    assert costs[-1] == pytest.approx(sum(costs[:-1]), rel=1e-8)
    usual = [float(level.epsilon) for level in planned(delta=0).levels]
    assert costs[0] / costs[1] == pytest.approx(usual[0] / usual[1], rel=1e-8)
    gaussian = planned(epsilon=None, delta=None, rho="0.02", split="pairs")
    costs = [float(level.rho) for level in gaussian.levels]
    assert {level.noise.family for level in gaussian.levels} == {"gaussian"}
    assert costs[-1] == pytest.approx(sum(costs[:-1]), rel=0.03)


@pytest.mark.parametrize("delta", [0, 1e-8])
def test_for_pairs_the_finest_level_of_few_has_no_less(delta):
    tree = Tree.destination_first(Hierarchy.read(balanced_areas([3])))
    usual, made = (planned(tree=tree, delta=delta, split=split) for split in ("log", "pairs"))
    assert made.levels[-1].sigma <= usual.levels[-1].sigma


@pytest.mark.parametrize("unit", [Unit(), Unit("add-remove"), Unit(trips=4), Unit(exactly=False)])
@pytest.mark.parametrize("epsilon", [0.1, 10])
def test_guarantees_of_other_units_and_epsilons_hold(unit, epsilon):
    made = planned(unit, epsilon=epsilon)
    found = privacy_curve(made.accountant, made.measured)(epsilon)
    assert 0.99e-8 < found <= 1e-8
    assert made.used_share <= made.cross_table_share * (1 + Fraction(1, 10**8))
    assert made.cross_table_share == METHODS["inftda"][1]


def test_tables_off_the_tree_get_their_share():
    for across in (0.03, 0.08, 0.3):
        made = planned(cross_tables=across)
        assert 0.85 * across < float(made.used_share) <= across
        finest = {t.depths for t in TREE.cross_tables if t.is_finest_one_way}
        costs = [float(t.rho) for t in made.tables if t.depths in finest]
        assert sum(costs) == pytest.approx(across * float(made.rho) / 2, rel=0.15)


def test_the_paper_by_one_word():
    made = planned(method="paper")
    assert made == make_plan(
        TREE, Unit(), **BUDGET, split="uniform", cross_tables=0, method="paper"
    )
    assert {(level.noise.square, level.noise.family) for level in made.levels} == {
        (made.levels[0].noise.square, "gaussian")
    }
    assert not made.tables
    with pytest.raises(PrivacyError, match="inftda or paper"):
        planned(method="papers")


# --- delta 0


@pytest.mark.parametrize(
    "unit", [Unit(), Unit("add-remove"), Unit(trips=3, exactly=False), Unit(trips=3, distinct=True)]
)
def test_with_delta_0_costs_add_up_to_epsilon(unit):
    made = planned(unit, delta=0)
    assert (made.accountant, made.epsilon, made.delta) == ("pure", 1.0, 0.0)
    costs = [
        (2 if unit.is_substitute and part.index else 1) * unit.trips / part.noise.scale
        for part in made.parts
    ]
    assert Fraction(999_999_999, 10**9) < sum(costs) <= 1
    assert {part.noise.family for part in made.parts} == {"laplace"}
    assert Plan.from_dict(made.to_dict()) == made
    totals = measured_tables(TREE, is_pure=True)
    assert [table.depths for table in made.tables] == [table.depths for table in totals]
    assert all(table.is_finest_one_way for table in totals)


def test_an_epsilon_is_taken_as_it_is_written():
    """The float nearest to 0.1 is a little more than a tenth."""
    made = planned(epsilon=0.1, delta=0)
    assert sum(part.epsilon for part in made.parts) <= Fraction(1, 10)


@pytest.mark.parametrize("accountant", ["exact", "zcdp"])
def test_delta_0_has_its_own_accountant(accountant):
    with pytest.raises(PrivacyError, match="'pure'"):
        planned(delta=0, accountant=accountant)
    with pytest.raises(PrivacyError, match="`delta=0`"):
        planned(accountant="pure")


def test_the_noise_is_said_in_a_sentence():
    assert planned(method="paper").describe_noise() == (
        "discrete Gaussian noise of standard deviation 20.4 at every level"
    )
    words = planned().describe_noise()
    finest = planned().levels[-1]
    assert words.startswith(f"discrete Laplace noise of standard deviation {finest.sigma:.3g} ")
    b = float(finest.noise.scale)
    assert finest.sigma == pytest.approx(math.sqrt(2) * b, rel=0.01), "and not the parameter b"
    assert str(finest.noise) == (
        f"discrete Laplace, standard deviation {finest.sigma:.5g} (b = {b:.5g})"
    )
    assert "at the finest level" in words
    assert planned(delta=0).describe_noise().endswith(" at every level")


def test_a_flat_table_can_be_planned():
    """Nothing but the finest level, with Laplace noise: no Gaussian is left to shift."""
    made = plan(axis={"town": {"town": [str(i) for i in range(50)]}}, **BUDGET).plan
    assert [level.noise.family for level in made.levels] == ["laplace"]
    assert float(made.levels[0].noise.scale) == pytest.approx(2, rel=1e-6)
