"""Levels that are mostly noise, told from the release alone."""

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from small_release import HEALTH

from inftda import SeededSource, release
from inftda.demo import make_country
from inftda.evaluation.cells import Cells
from inftda.noise.law import Law
from inftda.publication.trust import ENOUGH, LevelUse, is_drowned, usable_from

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
    found = sparse.uses
    assert [one.level for one in found] == list(tree.splitting_levels)
    sigma = {level.index: level.noise.sigma for level in sparse.manifest.plan.levels}
    for one in found:
        above = tree.levels[one.level.index - 1]
        axis = one.level.axis
        children = np.diff(tree.axes[axis].hierarchy.child_offsets(one.level.depths[axis] - 1))
        parents = above.areas_at(Cells.of(above, areas, flow).number)[axis]
        value = Cells.of(one.level, areas, flow).value
        assert one.n_drawn == children[parents].sum()
        assert one.n_published == len(value)
        assert one.n_small == (value < sigma[one.level.index]).sum()
        used = value[value >= one.smallest]
        assert (one.n_used, one.share) == (len(used), used.sum() / value.sum())


def test_a_sparse_table_is_called_noise_at_its_finest_level_only_if_it_is(sparse):
    names = [use.level.name for use in sparse.uses if use.is_mostly_noise]
    assert names[-1] == "municipality > municipality"
    assert "region > region" not in names
    assert sparse.uses[-1].describe().endswith("smaller ones are mostly noise")
    assert not any(use.is_mostly_noise for use in released((3, 6, 12), 2_000_000).uses)


def test_the_folder_of_a_release_tells_the_same(sparse, tmp_path):
    assert sparse.save(tmp_path / "release").uses == sparse.uses


def test_names_of_axes_may_be_anything():
    codes = [axis.hierarchy.codes(axis.hierarchy.depth).to_pylist() for axis in HEALTH.axes]
    rows = [(disease, sex) for disease in codes[0] for sex in codes[1]]
    names = [axis.name for axis in HEALTH.axes]
    table = pa.table(dict(zip(names, zip(*rows, strict=True), strict=True)))
    axes = {axis.name: axis.hierarchy for axis in HEALTH.axes}
    made = release(table, axis=axes, **BUDGET)
    assert len(made.uses) == 3


def use(*, n_published, n_drawn=0, n_small=0, smallest=92, n_used=1, share=0.829):
    level = released((3,), 100).tree.levels[-1]
    return LevelUse(
        level, "flows", "people", smallest, n_used, share, n_published, n_drawn, n_small
    )


def test_nothing_is_said_of_few_numbers():
    assert use(n_published=ENOUGH, n_drawn=10 * ENOUGH, n_small=ENOUGH).is_mostly_noise
    few = ENOUGH - 1
    assert not use(n_published=few, n_drawn=10 * ENOUGH, n_small=few).is_mostly_noise
    assert use(n_published=0).noise_share == 0


def test_what_is_said_of_a_level():
    many = {"n_published": 100, "n_drawn": 1000}
    assert use(**many).describe() == (
        "use flows of 92 or more: 82 % of all people; smaller ones may be noise"
    )
    assert use(**many, n_small=90).describe().endswith("smaller ones are mostly noise")
    assert "less than 1 % of all people" in use(**many, share=0.009).describe()
    assert use(n_published=5, n_used=5).describe() == "all flows can be used"
    assert use(**many, smallest=None, n_used=0).describe() == (
        "no flows are large enough to use; these may be noise"
    )


@pytest.mark.parametrize("noise", [Law(Fraction(400)), Law.laplace(Fraction(20))])
def test_flows_are_of_use_from_twice_their_noise_on_if_few_are_false(noise):
    half, flow = noise.half_width(0.025), np.array([50, 90, 130, 2000] * 50)
    assert usable_from(flow, len(flow), noise) == 2 * half
    # Of a million empty cells hundreds reach that size by noise alone, so that more is asked for.
    more = usable_from(flow, 1_000_000, noise)
    assert more > 2 * half
    n_false = 1_000_000 * tail(noise, more)
    assert n_false <= 0.025 * (flow >= more).sum() <= 4 * n_false
    assert usable_from(flow[:2], 1_000_000, noise) is None


def tail(noise, size):
    """Probability of at least `size`."""
    if noise.is_laplace:
        odds = math.exp(-1 / noise.scale)
        return odds**size / (1 + odds)
    weights = np.exp(-0.5 * (np.arange(-400, 401) / noise.sigma) ** 2)
    return weights[400 + size :].sum() / weights.sum()


def test_before_a_release_the_mean_flow_decides():
    assert is_drowned(20_000, 1_000_000, 18.35)
    assert not is_drowned(20_000, 40_000, 18.35)
