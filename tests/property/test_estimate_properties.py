"""Estimates of any release add up: any tree, only children, noised totals, uneven splits."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import inftda
from inftda.privacy.unit import Unit
from inftda.reading import Columns
from inftda.tree import Axis, Tree
from inftda.tree.hierarchy import Hierarchy
from random_trees import random_hierarchies, random_trees


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(random_trees(), st.integers(0, 2**32 - 1), st.sampled_from(["substitute", "add-remove"]))
def test_an_estimate_is_whole_positive_and_has_the_released_total(tree, seed, neighbours):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(neighbours == "substitute", 300))  # that unit has no empty tables
    columns = {
        axis.name: axis.hierarchy.codes(axis.hierarchy.depth).take(
            pa.array(rng.integers(0, axis.hierarchy.n_areas(axis.hierarchy.depth), n))
        )
        for axis in tree.axes
    }
    release = inftda.release(
        pa.table(columns), axis={axis.name: axis.hierarchy for axis in tree.axes},
        order=tree.order, rho=2.0, unit=Unit(neighbours=neighbours), split="uniform",
        columns=Columns(count=None), source=inftda.SeededSource(seed),
    )  # fmt: skip
    table = inftda.estimate(release, threads=1).table
    estimate, low, high = (table.column(name).to_numpy() for name in ("estimate", "low", "high"))
    assert estimate.sum() == release.total
    assert (estimate > 0).all()
    assert (low <= estimate).all()
    assert (estimate <= high).all()
    shown = release.flows(intervals=True)
    assert shown.column("low").null_count == (0 if release.total else len(shown))


ENDS = ("origin", "destination")
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
    tree=od_trees(),
    seed=st.integers(0, 2**32 - 1),
    unit=st.sampled_from([Unit(), Unit("add-remove"), Unit("add-remove", trips=3)]),
    delta=st.sampled_from([0, 1e-6]),
    across=st.sampled_from([0, 0.08, 0.5]),
)
def test_every_release_has_an_estimate(tree, seed, unit, delta, across):
    """Whatever the budget and its split, even with far more noise on coarse levels than below."""
    rng = np.random.default_rng(seed)
    n_flows, n_levels = int(rng.integers(1, 40)), tree.depth + (not unit.root_is_public)
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
    flows = inftda.estimate(release, threads=1).table
    assert sum(flows.column("estimate").to_pylist()) == release.total
