"""Levels that are mostly noise, told from the release alone."""

import numpy as np
import pyarrow as pa
import pytest
from small_release import HEALTH

from inftda import SeededSource, release
from inftda.demo import make_country
from inftda.evaluation.cells import Cells
from inftda.publication.trust import (
    ENOUGH,
    LevelNoise,
    is_drowned,
    level_noise,
    mostly_noise,
    noise_warnings,
)

BUDGET = {"epsilon": 1, "delta": 1e-8, "source": SeededSource(5)}


def released(sizes, trips, **options):
    country = make_country(sizes, trips, seed=3)
    return release(country.flows(), country.areas, **BUDGET, **options)


@pytest.fixture(scope="module")
def sparse():
    """20,000 trips between 300 towns: far less than one for each pair."""
    return released((4, 24, 300), 20_000)


def test_what_is_counted_is_what_the_release_holds(sparse):
    tree, (areas, flow) = sparse.tree, sparse.leaves()
    found = level_noise(sparse)
    assert [one.level for one in found] == list(tree.splitting_levels)
    sigma = {level.index: float(level.sigma2) ** 0.5 for level in sparse.manifest.plan.levels}
    for one in found:
        above = tree.levels[one.level.index - 1]
        axis = one.level.axis
        children = np.diff(tree.axes[axis].hierarchy.child_offsets(one.level.depths[axis] - 1))
        parents = above.areas_at(Cells.of(above, areas, flow).number)[axis]
        value = Cells.of(one.level, areas, flow).value
        assert one.n_drawn == children[parents].sum()
        assert one.n_published == len(value)
        assert one.n_small == (value < sigma[one.level.index]).sum()


def test_a_sparse_table_is_called_noise_at_its_finest_level_only_if_it_is(sparse):
    names = [level.name for level in mostly_noise(sparse)]
    assert names[-1] == "municipality > municipality"
    assert "region > region" not in names
    assert noise_warnings(sparse)[-1] == (
        "do not use the level municipality > municipality: most of its pairs are noise"
    )
    assert mostly_noise(released((3, 6, 12), 2_000_000)) == ()


def test_the_folder_of_a_release_tells_the_same(sparse, tmp_path):
    assert level_noise(sparse.save(tmp_path / "release")) == level_noise(sparse)


def test_names_of_axes_may_be_anything():
    codes = [axis.hierarchy.codes(axis.hierarchy.depth).to_pylist() for axis in HEALTH.axes]
    rows = [(disease, sex) for disease in codes[0] for sex in codes[1]]
    names = [axis.name for axis in HEALTH.axes]
    table = pa.table(dict(zip(names, zip(*rows, strict=True), strict=True)))
    axes = {axis.name: axis.hierarchy for axis in HEALTH.axes}
    made = release(table, axis=axes, **BUDGET)
    assert len(level_noise(made)) == 3


def test_nothing_is_said_of_few_numbers():
    level = released((3,), 100).tree.levels[-1]
    assert LevelNoise(level, ENOUGH, 10 * ENOUGH, ENOUGH).is_mostly_noise
    assert not LevelNoise(level, ENOUGH - 1, 10 * ENOUGH, ENOUGH - 1).is_mostly_noise
    assert LevelNoise(level, 0, 0, 0).share == 0


def test_before_a_release_the_mean_flow_decides():
    assert is_drowned(20_000, 1_000_000, 18.35)
    assert not is_drowned(20_000, 40_000, 18.35)
