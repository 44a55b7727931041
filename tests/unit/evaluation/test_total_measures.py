"""Errors of totals across the tree."""

import numpy as np
import pyarrow as pa
import pytest

from inftda.evaluation.evaluate import compare, read_truth
from inftda.evaluation.measures import measure_totals
from inftda.hierarchy import Hierarchy
from inftda.noise.entropy import SeededSource
from inftda.publish import release
from inftda.tree import Tree
from inftda.truth import Truth

AREAS = Hierarchy.read({"region": ["N", "N", "S"], "town": ["001", "002", "003"]})
TREE = Tree.destination_first(AREAS)


def counts(flows, tree=TREE):
    *areas, count = zip(*flows, strict=True)
    return Truth.from_leaves(tree, [np.array(a, np.int32) for a in areas], np.array(count))


def test_totals_off_the_tree_are_measured_with_their_errors():
    truth = counts([(0, 1, 100), (1, 2, 10), (2, 0, 7)])
    released = counts([(0, 1, 90), (1, 2, 12), (1, 0, 15)])
    regions, towns, destinations = measure_totals(truth, released)
    assert (regions.axis, regions.level, regions.n_areas) == ("origin", "region", 2)
    # Origins: 100, 10, 7 became 90, 27, 0; the regions 110, 7 became 117, 0.
    assert (regions.max_abs_error, regions.mean_abs_error) == (7, 7.0)
    assert (towns.max_abs_error, towns.mean_abs_error) == (17, pytest.approx(34 / 3))
    assert towns.bias_of_largest == pytest.approx(-0.1)
    # The first level of destinations is the tree's own; towns 7, 100, 10 became 15, 90, 12.
    assert (destinations.axis, destinations.level) == ("destination", "town")
    assert (destinations.max_abs_error, destinations.mean_abs_error) == (10, pytest.approx(20 / 3))


def test_a_level_that_splits_nothing_is_not_measured_twice():
    areas = Hierarchy.read({"country": ["X"] * 3, "region": ["N", "N", "S"], "town": list("abc")})
    tree = Tree.destination_first(areas)
    found = measure_totals(*[counts([(0, 1, 5)], tree)] * 2)
    assert [(one.axis, one.level) for one in found] == [
        ("origin", "region"), ("origin", "town"), ("destination", "town"),
    ]  # fmt: skip


def test_intervals_of_measured_totals_are_compared_with_the_truth():
    codes = [f"{i:03d}" for i in range(60)]
    areas = {"region": [code[:2] for code in codes], "town": codes}
    flows = pa.table({
        "origin": codes * 2, "destination": codes[1:] + codes + codes[:1], "count": [900] * 120
    })  # fmt: skip
    budget = {"epsilon": 1, "delta": 1e-6}
    for across in (0.0, 0.08):
        made = release(flows, areas, **budget, across=across, source=SeededSource(4))
        found = compare(made, read_truth(made, flows)).totals
        assert len(found) == 3
        if across:
            # Of 60 areas; the interval is said to hold for 95 %.
            assert all(one.in_interval > 0.8 and one.sigma > 1 for one in found)
        else:
            assert all(one.in_interval is None and one.sigma is None for one in found)
