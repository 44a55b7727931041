"""Mechanisms by name: our own at once, others by entry points, unknown ones refused."""

from importlib.metadata import EntryPoint

import pytest

from inftda.errors import InftdaError
from inftda.hierarchy import Hierarchy
from inftda.mechanisms import catalogue
from inftda.mechanisms.catalogue import description_of, mechanism_named, mechanism_names, options_of
from inftda.mechanisms.topdown import INFTDA
from inftda.optimize.segments import optimize_intopt
from inftda.privacy.unit import PrivacyUnit
from inftda.tree import Tree

TREE = Tree.destination_first(Hierarchy.read({"region": list("NNSS"), "town": list("abcd")}))


def offer(monkeypatch, *values, name="novel"):
    """Let installed packages have these entry points."""
    points = [EntryPoint(name, value, catalogue.GROUP) for value in values]
    monkeypatch.setattr(
        catalogue,
        "entry_points",
        lambda **asked: [p for p in points if asked.get("name", p.name) == p.name],
    )


def test_our_own_mechanism_is_found_without_looking_at_other_packages(monkeypatch):
    monkeypatch.setattr(catalogue, "entry_points", None)
    assert mechanism_named("inftda") is INFTDA
    assert description_of("inftda") == INFTDA.description


def test_the_laboratory_offers_the_baselines():
    assert mechanism_names() == [
        "inftda", "inftda-descending", "stability-histogram", "tda-l2", "tda-l2-blackbox",
        "tda-linf", "tda-linf-blackbox", "vanilla-gauss", "vanilla-gauss-clamped",
    ]  # fmt: skip


@pytest.mark.parametrize("name", mechanism_names())
def test_every_mechanism_is_what_it_says(name):
    mechanism = mechanism_named(name)
    assert mechanism.name == name
    assert mechanism_named(name) is mechanism
    stated = description_of(name)
    assert stated == mechanism.description
    assert (stated.error_bound is None) or stated.is_top_down
    plan = mechanism.plan(TREE, PrivacyUnit("add-remove"), epsilon=1, delta=1e-8)
    assert plan.scope == stated.measures
    assert stated.read_plan(plan.to_dict()) == plan
    assert options_of(name) == mechanism.options
    is_intopt = getattr(mechanism, "optimize", None) is optimize_intopt
    assert stated.replay == ("intopt" if is_intopt else None)


def test_an_unknown_mechanism_is_refused_with_those_there_are():
    for look in (mechanism_named, description_of):
        with pytest.raises(InftdaError, match=r"no mechanism 'inftda-2'.* inftda, .*vanilla-gauss"):
            look("inftda-2")


def test_nobody_takes_the_place_of_our_own(monkeypatch):
    offer(monkeypatch, "inftda.lab.baselines.catalogue:TDA_L2", name="inftda")
    assert mechanism_named("inftda") is INFTDA
    assert mechanism_names() == ["inftda"]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (["a_package_that_is_not_there:X"], "cannot be loaded"),
        (["inftda.mechanisms.topdown:NOTHING"], "cannot be loaded"),
        (["inftda.lab.baselines.catalogue:TDA_L2"], "calls itself 'tda-l2'"),
        (["inftda.mechanisms.topdown:INFTDA"] * 2, "several packages"),
    ],
)
def test_an_entry_point_that_is_wrong_is_refused(monkeypatch, values, says):
    offer(monkeypatch, *values)
    with pytest.raises(InftdaError, match=says):
        mechanism_named("novel")
