"""Estimates of any release add up: any tree, only children, noised totals, uneven splits."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import inftda
from inftda.privacy.unit import Unit
from inftda.tree import Axis, Tree
from inftda.tree.hierarchy import Hierarchy
from random_trees import random_hierarchies, random_trees

FIVE_BY_FIVE = Hierarchy.read(
    {"region": [f"r{i // 5}" for i in range(25)], "town": [f"t{i}" for i in range(25)]}
)


@st.composite
def od_trees(draw):
    """Trees of origin and destination, mostly with the same areas, and perhaps one more axis."""
    areas = draw(st.one_of(st.just(FIVE_BY_FIVE), random_hierarchies()))
    axes = [
        Axis("origin", areas),
        Axis("destination", draw(st.one_of(st.just(areas), random_hierarchies()))),
        *(Axis("mode", draw(random_hierarchies(max_depth=1))) for _ in range(draw(st.booleans()))),
    ]
    order = [axis.name for axis in axes for _ in range(axis.hierarchy.depth)]
    tree = Tree.build(axes, draw(st.one_of(st.just(order[::-1]), st.permutations(order))))
    assume(tree.depth > 0)
    return tree


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(
    tree=st.one_of(od_trees(), random_trees()),
    seed=st.integers(0, 2**32 - 1),
    unit=st.sampled_from([Unit(), Unit("add-remove"), Unit("add-remove", trips=3)]),
    delta=st.sampled_from([0, 1e-6]),
    across=st.sampled_from([0, 0.08, 0.5]),
)
def test_every_release_has_an_estimate_that_is_whole_positive_and_has_its_total(
    tree, seed, unit, delta, across
):
    """Whatever the budget and its split, even with far more noise on coarse levels than below."""
    rng = np.random.default_rng(seed)
    # Only a table whose total has noise may be empty.
    n_flows = int(rng.integers(unit.root_is_public, 40))
    n_levels = tree.depth + (not unit.root_is_public)
    table = {
        axis.name: axis.hierarchy.codes(axis.hierarchy.depth).take(
            pa.array(rng.integers(0, axis.hierarchy.n_areas(axis.hierarchy.depth), n_flows))
        )
        for axis in tree.axes
    }
    table["count"] = (10 ** rng.uniform(0, 4, n_flows)).astype(int)
    weights = 10 ** rng.uniform(0, 1, n_levels)
    weights[-1] *= 10 ** rng.uniform(-1, 2.5)
    release = inftda.release(
        pa.table(table), axis={axis.name: axis.hierarchy for axis in tree.axes}, order=tree.order,
        epsilon=10 ** rng.uniform(-0.5, 1.5), delta=delta, unit=unit, cross_tables=across,
        split=weights.tolist(), columns=inftda.Columns(repeated_rows="add"),
        source=inftda.SeededSource(seed),
    )  # fmt: skip
    table = inftda.estimate(release, threads=1).table
    estimate, low, high = (table.column(name).to_numpy() for name in ("estimate", "low", "high"))
    assert sum(estimate.tolist()) == release.total
    assert (estimate > 0).all()
    assert ((low <= estimate) & (estimate <= high)).all()
    shown = release.flows(intervals=True)
    assert shown.column("low").null_count == (0 if release.total else len(shown))
