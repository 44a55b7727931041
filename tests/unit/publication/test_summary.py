"""First lines of the summary of a release or a plan: the guarantee for a person."""

import pytest

from inftda.privacy.noise_plan import make_plan
from inftda.privacy.risk import risk_of
from inftda.privacy.unit import Unit
from inftda.publication.summary import guarantee_sentence
from inftda.tree import Tree
from inftda.tree.hierarchy import Hierarchy

TREE = Tree.destination_first(Hierarchy.read({"region": ["N", "N", "S"], "town": ["1", "2", "3"]}))


@pytest.mark.parametrize(
    ("unit", "entries", "who", "what"),
    [
        (Unit(), (), "every person with exactly 1 trip", "which of two trips that person made"),
        (
            Unit(trips=3), (), "every person with exactly 3 trips",
            "which of two sets of trips that person made",
        ),
        (
            Unit("add-remove", 2), (), "every person with at most 2 trips",
            "whether that person is in the table",
        ),
        (
            Unit(), ("entry", "entries"), "every person with exactly 1 entry",
            "which of two entries that person has",
        ),
    ],
)  # fmt: skip
def test_the_guarantee_says_who_is_protected_and_what_an_attacker_learns(unit, entries, who, what):
    plan = make_plan(TREE, unit, epsilon=1, delta=1e-6)
    said = guarantee_sentence(plan, *entries)
    assert said.startswith(f"{who} is protected (epsilon = 1, delta = 1e-06): ")
    assert f"can tell {what} at most {risk_of(plan).figures[0]} of the time" in said


def test_a_budget_of_rho_is_stated_as_rho():
    assert "is protected (rho = 0.1): " in guarantee_sentence(make_plan(TREE, Unit(), rho=0.1))
