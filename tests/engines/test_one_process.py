"""The steps of a release on a cluster, on random trees, without a cluster."""

from collections import Counter

import numpy as np
import pytest

pytest.importorskip("pyspark", reason="pyspark is missing: pip install 'inftda[spark]'")

from hypothesis import given, settings
from hypothesis import strategies as st
from one_process import OneProcess, true_cells

from inftda.engines.spark import shipment, trunk
from inftda.engines.spark.frontier import Frontier
from inftda.engines.spark.keys import KeyedSource
from inftda.errors import BudgetError, ReleaseError
from inftda.hierarchy import Hierarchy
from inftda.lab.generators.country import make_country
from inftda.privacy.unit import PrivacyUnit
from inftda.tree import Axis, Tree
from random_trees import random_counts, random_trees

UNITS = st.builds(
    PrivacyUnit,
    st.sampled_from(["substitute", "add-remove"]),
    st.integers(1, 3),
    exactly=st.sampled_from([None, False]),
    distinct=st.booleans(),
)


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_with_next_to_no_noise_the_release_is_the_truth(data):
    """Also where the driver can take few nodes at a time, or none at all."""
    tree = data.draw(random_trees())
    areas, counts = data.draw(random_counts(tree)).leaves
    groups, most_nodes = data.draw(st.integers(1, 9)), data.draw(st.sampled_from([0, 5, 20, 1000]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trunk, "MOST_NODES", most_nodes)
        made = OneProcess(tree, areas, counts, groups=groups, unit=data.draw(UNITS), rho=5000)
    assert made.release() == true_cells(tree, areas, counts)


def test_subtrees_in_which_nobody_travels_are_refined_beside_those_with_trips():
    """Two released regions of which only the second has trips; towns get next to no noise."""
    towns = Hierarchy.read({"region": [*"NNNSSS"], "town": [*"abcdef"]})
    tree = Tree.build([Axis("town", towns)], ["town", "town"])
    made = OneProcess(tree, (np.array([4], np.int32),), np.array([10]), groups=1, rho=5000)
    made.frontier = Frontier.of(
        made.model, [(tree.levels[1], (np.array([0, 1], np.int32),), np.array([5, 10]))], groups=1
    )
    cells = made.release()
    assert cells.pop(("e",)) == 10
    assert set(cells) <= {("a",), ("b",), ("c",)}
    assert sum(cells.values()) == 5


@pytest.mark.parametrize("mechanism", ["inftda", "inftda-descending", "tda-l2", "tda-linf"])
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_a_release_is_positive_and_has_the_public_total(mechanism, data):
    tree = data.draw(random_trees())
    areas, counts = data.draw(random_counts(tree)).leaves
    groups, seed = data.draw(st.integers(1, 9)), data.draw(st.integers(0, 99))
    made = OneProcess(
        tree, areas, counts, groups=groups, rho="1/10", mechanism=mechanism, seed=seed
    )
    cells = made.release()
    assert all(flow > 0 for flow in cells.values())
    assert sum(cells.values()) == counts.sum() == made.frontier.total


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_no_stream_of_random_bits_is_taken_twice(data):
    """Two parts with one stream would get the same noise."""
    tree = data.draw(random_trees())
    areas, counts = data.draw(random_counts(tree)).leaves
    made = OneProcess(tree, areas, counts, groups=data.draw(st.integers(1, 9)), rho="1/10")
    taken = Counter()
    original = KeyedSource.stream

    def noted(self, *labels):
        taken[self.place, labels] += 1
        return original(self, *labels)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KeyedSource, "stream", noted)
        made.release()
    assert set(taken.values()) <= {1}


@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_a_task_that_runs_twice_gives_the_same_flows_whatever_the_order_of_its_rows(data):
    tree = data.draw(random_trees())
    areas, counts = data.draw(random_counts(tree)).leaves
    made = OneProcess(tree, areas, counts, groups=3, rho="1/10")
    for batches in made.partitions():
        first, second = made.run_task(batches), made.run_task(batches[::-1])
        assert [batch.to_pydict() for batch in first] == [batch.to_pydict() for batch in second]


@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_subtrees_are_disjoint_in_tree_order_and_hold_every_surviving_leaf(data):
    tree = data.draw(random_trees())
    areas, counts = data.draw(random_counts(tree)).leaves
    frontier = OneProcess(tree, areas, counts, groups=5, rho=5000).frontier
    found = frontier.find(areas)
    assert (found >= 0).all(), "next to no noise: every leaf survives"
    assert (np.diff(found) >= 0).all(), "leaves and subtrees are both in tree order"
    assert (np.diff(frontier.group_start) > 0).all(), "no group is empty"
    sums = np.bincount(found, counts, minlength=len(frontier.value))
    assert sums.tolist() == frontier.value.tolist()


def test_every_level_was_charged_before_anything_is_drawn():
    country = make_country((2, 4), 100)
    tree = Tree.destination_first(country.areas)
    made = OneProcess(tree, (country.origin, country.destination), country.count, groups=2)
    made.spending.finish()
    with pytest.raises(BudgetError, match="drawn already"):
        made.spending.charge(1)
    part = made.shipment.charged.below(2)
    assert [level.index for level in made.shipment.charged.plan.levels] == [1, 2, 3, 4]
    with pytest.raises(BudgetError, match="not in the plan"):
        part.charge(2)
    part.charge(3)
    with pytest.raises(BudgetError, match="already"):
        part.charge(3)
    with pytest.raises(BudgetError, match="not drawn"):
        part.finish()


def test_an_executor_with_another_version_draws_nothing(monkeypatch):
    country = make_country((2, 4), 100)
    tree = Tree.destination_first(country.areas)
    made = OneProcess(tree, (country.origin, country.destination), country.count, groups=2)
    monkeypatch.setattr(shipment, "own_version", lambda: "0.0.0")
    with pytest.raises(ReleaseError, match="same version everywhere"):
        made.release()
