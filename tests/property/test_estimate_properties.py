"""Estimates of any release add up: any tree, only children, noised totals, uneven splits."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import inftda
from inftda.privacy.unit import Unit
from inftda.reading import Columns
from random_trees import random_trees


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
        order=tree.order, rho=2.0, unit=Unit(neighbours=neighbours), split="geometric:1.3",
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
