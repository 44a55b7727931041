"""Plans that somebody edited: what they state must follow from noise, unit and tree.

All facts of a plan are forged, one by one, among the forged releases; here several are changed so
that they agree with each other.
"""

from dataclasses import replace
from fractions import Fraction

import pytest
from handmade import UNEVEN_TREE

from inftda.errors import BudgetError, PrivacyError
from inftda.noise.distribution import Noise
from inftda.privacy.accountants import privacy_curve
from inftda.privacy.noise_plan import make_plan
from inftda.privacy.unit import Unit
from inftda.tree import Tree
from inftda.tree.hierarchy import Hierarchy

#: Two regions of two provinces of two towns; six measured levels.
TREE = Tree.destination_first(
    Hierarchy.read(
        {"region": list("AAAABBBB"), "province": list("ccddeeff"), "town": list("01234567")}
    )
)


def plan_of(unit=None, **budget):
    usual = {"epsilon": 1, "delta": 1e-8, "method": "paper"}
    return make_plan(TREE, unit or Unit(), **(usual | budget))


def across(**budget):
    """A plan with cross tables that states rho only: nothing but what is changed is wrong."""
    return replace(plan_of(cross_tables=0.08, **budget), epsilon=None, delta=None)


def edited(plan, change, *, of="levels", where=slice(None)):
    """The plan after a change of some of its levels or tables."""
    parts = list(getattr(plan, of))
    parts[where] = [replace(part, **change(part)) for part in parts[where]]
    return replace(plan, **{of: tuple(parts)})


FIRST, SECOND, LAST = slice(1), slice(1, 2), slice(-1, None)


def scaled(factor):
    return lambda part: {"noise": Noise(part.noise.square * factor, part.noise.family)}


def sensitive(**facts):
    return lambda part: {"sensitivity": part.sensitivity._replace(**facts)}


#: A plan, and words of the refusal; it is refused even by those who do not have its tree.
WITHOUT_TREE = {
    "less noise, at costs that match": (
        lambda: edited(plan_of(), scaled(Fraction(99, 100))), "the plan states delta",
    ),
    "Laplace noise with a scale that is no fraction": (
        lambda: edited(plan_of(), lambda _: {"noise": Noise(Fraction(2_000_000), "laplace")},
                       where=LAST),
        "no exact scale",
    ),
    "noise that nobody can have drawn": (
        lambda: edited(plan_of(epsilon=None, delta=None, rho="0.1"), scaled(10**10)),
        "at most 200,000",
    ),
    "more digits than any plan has": (
        lambda: edited(plan_of(accountant="zcdp"),
                       lambda _: {"noise": Noise(Fraction(3**200, 2**310))}),
        "256 bits",
    ),
    "one side in place of two": (
        lambda: edited(plan_of(Unit(trips=3)), sensitive(sides=1)), "does not fit the unit",
    ),
    "one trip in place of three": (
        lambda: edited(plan_of(Unit(trips=3)), sensitive(trips=1)), "does not fit the unit",
    ),
    "a squared sensitivity that no unit has": (
        lambda: edited(plan_of(Unit("add-remove", trips=3)), sensitive(squared=3)),
        "squared sensitivity 3, which does not fit",
    ),
    "tables that nobody paid for": (
        lambda: replace(plan_of(cross_tables=0.08, accountant="zcdp"),
                        levels=plan_of(accountant="zcdp").levels),
        "the plan states delta",
    ),
    "less noise with delta 0": (
        lambda: edited(plan_of(delta=0), scaled(Fraction(99, 100)**2), where=FIRST),
        "the plan states delta 0",
    ),
    "Gaussian noise with delta 0": (
        lambda: edited(plan_of(delta=0), lambda part: {"noise": Noise(part.noise.square)},
                       where=FIRST),
        "'pure'",
    ),
    "Laplace noise everywhere with another accountant": (
        lambda: replace(plan_of(delta=0), accountant="zcdp"), "which only plans with delta 0 have",
    ),
    "Laplace noise everywhere with another delta": (
        lambda: replace(plan_of(delta=0), delta=1e-8), "no other",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", WITHOUT_TREE)
def test_what_does_not_follow_is_refused_without_the_tree(what):
    make, says = WITHOUT_TREE[what]
    with pytest.raises(PrivacyError, match=says):
        make().verify()


#: Changes of the first of several cross tables.
TABLES = {
    "a smaller sensitivity": sensitive(squared=1),
    "no noise": scaled(0),
    "less noise": scaled(Fraction(1, 100)),
    "the level of the total": lambda _: {"index": 0},
    "the next level": lambda part: {"index": part.index + 1},
    "another name": lambda _: {"name": "another"},
    "a cell more": lambda part: {"cells": part.cells + 1},
    "no cross table": lambda _: {"cross": (0, 0)},
    "below the total": lambda _: {"cross": (-1, 1)},
}


@pytest.mark.parametrize("what", TABLES)
def test_a_table_with_other_facts_is_refused(what):
    with pytest.raises(BudgetError):
        edited(across(), TABLES[what], of="tables", where=FIRST).verify(TREE)


@pytest.mark.parametrize("left_out", [1, 100])
def test_tables_left_out_are_noticed(left_out):
    plan = across()
    plan.verify(TREE)
    with pytest.raises(BudgetError, match="cross tables"):
        replace(plan, tables=plan.tables[left_out:]).verify(TREE)
    with pytest.raises(BudgetError):
        replace(plan, cross_table_share=Fraction(0)).verify(TREE)


@pytest.mark.parametrize("accountant", ["exact", "zcdp"])
def test_a_delta_a_little_below_the_curve_is_refused(accountant):
    plan = plan_of(accountant=accountant)
    found = privacy_curve(accountant, plan.measured)(plan.epsilon)
    replace(plan, delta=found).verify(TREE)
    with pytest.raises(BudgetError, match="the plan states delta"):
        replace(plan, delta=found * 0.9995).verify(TREE)


def test_less_noise_is_right_where_less_is_promised():
    replace(edited(plan_of(), scaled(Fraction(99, 100))), epsilon=1.02).verify(TREE)


def test_a_plan_is_only_good_for_its_tree():
    with pytest.raises(BudgetError, match="levels of this tree"):
        plan_of().verify(UNEVEN_TREE)
    # The same cost with a smaller sensitivity of distinct trips: only the tree can tell.
    plan = plan_of(Unit("add-remove", trips=3, distinct=True))
    bold = edited(plan, sensitive(squared=5), where=SECOND)
    bold.verify()
    with pytest.raises(BudgetError, match="not the one of this tree"):
        bold.verify(TREE)
