"""Errors of simulated releases: those of real ones, counted in bins."""

import numpy as np
import pyarrow as pa
import pytest

from inftda.hierarchy import Hierarchy
from inftda.noise.bits import SeededSource
from inftda.previews.errors import (
    EXACT_ERRORS,
    N_BINS,
    ErrorHistogram,
    Simulation,
    bin_of,
    quantile,
)
from inftda.privacy.plan import make_plan
from inftda.privacy.unit import Unit
from inftda.publish import release
from inftda.tree import Tree
from inftda.truth import Truth

TOWNS = [f"{number}" for number in range(1, 9)]
AREAS = Hierarchy.read({"region": list("AABBCCDD"), "town": TOWNS})
#: Apart by more than the noise: the optimiser looks at the order of the flows.
COUNT = np.array([5000 + 300 * (37 * i % 64) for i in range(64)])


@pytest.fixture(scope="module")
def true_p95():
    """95 % error between towns over many releases."""
    ends = {
        "origin": [a for a in TOWNS for _ in TOWNS],
        "destination": [b for _ in TOWNS for b in TOWNS],
    }
    errors = []
    for seed in range(12):
        made = release(
            pa.table(ends | {"count": COUNT}), AREAS, rho=0.05, source=SeededSource(seed)
        )
        errors += np.abs(made.flows().column("flow").to_numpy() - COUNT).tolist()
    return float(np.quantile(errors, 0.95))


def stated_p95(factor):
    """The same by simulation, with noise that is wrong by a factor."""
    tree = Tree.destination_first(AREAS)
    leaves = [*np.divmod(np.arange(64, dtype=np.int32), 8)], COUNT
    plan = make_plan(tree, Unit(), rho=0.05 / factor**2)
    simulation = Simulation(Truth.from_leaves(tree, *leaves), plan, SeededSource(5))
    tally = ErrorHistogram(tree, (2, 2), *leaves)
    for _ in range(40):
        tally.add(*simulation.run(lambda *_: None))
    return tally.errors().overall.p95


@pytest.mark.slow
def test_the_stated_error_is_the_true_one(true_p95):
    assert 0.87 < stated_p95(1.0) / true_p95 < 1.13


@pytest.mark.slow
@pytest.mark.parametrize("factor", [0.75, 1.3])
def test_other_noise_would_be_found_out(true_p95, factor):
    assert not 0.87 < stated_p95(factor) / true_p95 < 1.13


@pytest.mark.parametrize("share", [0.5, 0.95])
@pytest.mark.parametrize("largest", [200, 10**4, 10**12])
def test_quantiles_are_exact_while_small_and_one_percent_off_at_most(share, largest):
    values = np.random.default_rng(1).integers(0, largest, 5000)
    bins = np.bincount(bin_of(values), minlength=N_BINS)
    exact = int(np.sort(values)[int(np.ceil(share * 5000)) - 1])
    found = quantile(bins, share)
    if exact < EXACT_ERRORS:
        assert found == exact
    else:
        assert exact <= found <= 1.011 * exact + 1
