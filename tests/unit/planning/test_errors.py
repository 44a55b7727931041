"""Errors of simulated releases are those of real ones."""

import numpy as np
import pyarrow as pa
import pytest

from inftda.demo import make_country
from inftda.noise.bits import SeededSource
from inftda.pipeline import release
from inftda.planning.accuracy import level_cells
from inftda.planning.findings import Setting, Usable
from inftda.planning.preview import (
    level_run,
    mean_errors,
    mean_usable,
    quantiles,
    simulate_settings,
    size_shares,
)
from inftda.planning.stand_in import StandIn
from inftda.privacy.noise_plan import make_plan
from inftda.privacy.unit import Unit
from inftda.reading.truth import Truth
from inftda.tree import Tree
from inftda.tree.hierarchy import Hierarchy

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
    plan = make_plan(tree, Unit(), rho=0.05 / factor**2, method="paper")
    setting = Setting(1.0, Unit())
    made = StandIn(Truth.from_leaves(tree, *leaves), "a table")
    tried = simulate_settings(made, [(setting, plan)], runs=40, source=SeededSource(5))
    return tried.settings[0].levels[-1].p95


@pytest.mark.slow
def test_the_stated_error_is_the_true_one(true_p95):
    assert 0.87 < stated_p95(1.0) / true_p95 < 1.13


@pytest.mark.slow
@pytest.mark.parametrize("factor", [0.75, 1.3])
def test_other_noise_would_be_found_out(true_p95, factor):
    assert not 0.87 < stated_p95(factor) / true_p95 < 1.13


def test_quantiles_are_errors_that_occur():
    assert quantiles(np.arange(1, 101)).tolist() == [50, 95]
    assert quantiles(np.array([7])).tolist() == [7, 7]
    assert quantiles(np.zeros(0, np.int64)).tolist() == [0, 0]


def test_means_of_errors_are_never_understated():
    assert mean_errors([np.array([1, 5]), np.array([2, 5])]) == [2, 5]


def test_usable_is_what_the_middle_run_says():
    runs = [Usable(40, 0.2, 0.8), Usable(None, 0.0, 0.0), Usable(60, 0.1, 0.7)]
    found = mean_usable(runs)
    assert (found.smallest, round(found.numbers, 3), round(found.trips, 3)) == (60, 0.1, 0.5)
    assert mean_usable([*runs[:2], runs[1]]).smallest is None


def test_shares_by_size_count_all_runs_and_leave_out_small_classes():
    sizes = np.zeros((4, 12), int)
    sizes[:, 0] = 20, 5, 30, 15  # published, false, true, lost
    sizes[:, 3] = 1, 1, 1, 0
    first, second = size_shares([sizes, sizes])
    assert (first.low, first.false, first.lost) == (1, 0.25, 0.5)
    assert (second.low, second.false, second.lost) == (30, None, None)


def test_usable_sizes_are_those_that_a_release_states():
    """A release with the same noise says of each level what one simulation says of it."""
    country = make_country((3, 8, 30), 20_000, seed=4)
    made = release(country.flows(), country.areas, rho=0.1, source=SeededSource(7))
    truth = Truth.from_leaves(made.tree, [country.origin, country.destination], country.count)
    released = Truth.from_leaves(made.tree, *made.leaves())
    cells = {one.level.index: one for one in level_cells(truth, released)}
    for use in made.uses:
        found = level_run(cells[use.level.index], made.intervals())
        assert found.usable.smallest == use.smallest
        assert found.usable.trips == use.share
        assert found.sizes[0].sum() == use.n_published
