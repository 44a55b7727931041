"""Sums of cross tables: which children they sum up, and the effect of dual variables."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import inftda
from count_tables import table_of
from inftda.errors import ReleaseError
from inftda.estimates.balance import NestedTable, _solve
from inftda.estimates.model import Fit, estimate_layers
from inftda.publication.measured import CrossTableSums, Totals, layers_of, totals_by_depth
from inftda.tree import Marginal
from inftda.util.threads import ThreadPool

#: Areas of six groups, of which the last has one only.
GROUP = np.minimum(np.arange(51) // 10, 5)
CODES = np.array([f"a{i:02}" for i in range(len(GROUP))])
MODES = ("bus", "car", "ferry")


@pytest.fixture(scope="module")
def flows():
    """int64[areas, areas, modes]: each area sends its trips to one group, a mode to each group."""
    random = np.random.default_rng(2)
    at = (GROUP[None, :] == (np.arange(len(GROUP)) % 6)[:, None])[:, :, None]
    by_mode = np.where(np.arange(3) == (GROUP % 3)[None, :, None], 8.0, 0.5)
    return random.poisson(np.where(at, 6.0, 0.4) * by_mode)


@pytest.fixture(scope="module")
def released(flows):
    table = table_of(flows, origin=CODES, destination=CODES, mode=MODES)
    areas = pa.table({"group": [f"g{i}" for i in GROUP], "area": CODES})
    return inftda.release(
        table, areas, axis={"mode": pa.table({"mode": MODES})}, epsilon=2, delta=1e-6,
        cross_tables=0.2, source=inftda.SeededSource(4),
    )  # fmt: skip


@pytest.fixture(scope="module")
def layers(released):
    """The layers of a release, with their cross tables."""
    return layers_of(released.tree, released.measurements())


def test_every_child_is_in_the_cell_of_its_areas(layers):
    n_tables = 0
    for layer in layers:
        sizes = np.diff(layer.offsets)
        family = np.repeat(np.arange(len(sizes)), sizes)
        ordinal = np.arange(len(layer.noisy)) - layer.offsets[family]
        for table in (table for chain in layer.chains for table in chain):
            n_tables += 1
            cell = table.start[family] + ordinal
            is_known = np.isfinite(table.variance[cell])
            assert is_known[sizes[family] > 1].all()
            assert (table.area[cell] == layer.first[family] + ordinal)[is_known].all()
            if table.across is not None:
                other = table.up[layer.areas[table.across][family]]
                assert (table.other[cell] == other)[is_known].all()
    assert n_tables > 8


def test_missing_cells_are_damage(released, layers):
    measured, layer = released.measurements(), layers[-1]
    table = next(
        table
        for table in measured.tables
        if table.depths[2] and table.depths[0] and not table.depths[1]
    )
    cut = table.take(slice(3, None))
    (planned,) = (one for one in released.tree.cross_tables if one.depths == table.depths)
    assert len(CrossTableSums.of_pairs(layer, table, planned, 0).value) == len(table.value) + 1
    with pytest.raises(ReleaseError, match="edited or damaged"):
        CrossTableSums.of_pairs(layer, cut, planned, 0)


def test_totals_of_finer_areas_sharpen_those_of_coarser_ones(released):
    tree, measured = released.tree, released.measurements()
    found = totals_by_depth(tree, measured, 0)
    one_way = {t.depths[0]: t.noise.sigma**2 for t in measured.tables if not any(t.depths[1:])}
    from_finer = one_way[2] * np.bincount(GROUP)
    assert found[2].variance == pytest.approx(np.full(len(GROUP), one_way[2]))
    assert found[1].variance == pytest.approx(1 / (1 / one_way[1] + 1 / from_finer))


def test_totals_are_weighed_by_their_variances():
    one, other = (
        Totals(np.array([10.0]), np.array([1.0])),
        Totals(np.array([16.0]), np.array([2.0])),
    )
    both = one.weighed(other)
    assert both.value == pytest.approx(12) == other.weighed(one).value
    assert both.variance == pytest.approx(2 / 3)
    summed = Totals(np.array([1.0, 2, 4]), np.array([1.0, 1, 3])).summed(np.array([0, 0, 1]))
    assert summed.value.tolist() == [3, 4]
    assert summed.variance.tolist() == [2, 3]


@pytest.mark.parametrize("seed", range(20))
def test_dual_variables_of_a_chain_are_those_of_least_squares(seed):
    """Beside a dense solution of the same equations, some cells of which nothing is known."""
    random = np.random.default_rng(seed)
    middle, fine = random.integers(0, 3, 7), random.integers(0, 7, 20)
    inside = [np.empty(0, int), middle, 3 + fine]
    cells = [slice(0, 3), slice(3, 10), slice(10, 30)]
    ratio = np.where(random.random(30) < 0.1, 0.0, random.lognormal(0, 2, 30))
    rise = np.zeros(30)
    rise[10:] = random.lognormal(0, 2, 20)
    pull = np.where(ratio > 0, random.normal(0, 5, 30), 0)
    chain = [NestedTable(*one) for one in zip(cells, inside, strict=True)]
    step = _solve(chain, ratio, pull, rise)
    is_in = np.zeros((20, 30))  # which cells a count of the finest table is in
    is_in[np.arange(20), 10 + np.arange(20)] = 1
    is_in[np.arange(20), 3 + fine] = 1
    is_in[np.arange(20), middle[fine]] = 1
    moved = is_in.T @ (rise[10:, None] * is_in)
    assert step + ratio * (moved @ step) == pytest.approx(pull, abs=1e-6)


def test_sums_off_the_tree_make_estimates_better_where_the_model_knows_nothing(
    released, layers, flows
):
    """Origins by groups of destinations, and by mode: shares have one factor for each area."""
    errors = []
    totals_only = [
        replace(layer, chains=[chain[:1] for chain in layer.chains[:1]]) for layer in layers
    ]
    for used in (layers, totals_only):
        levels = estimate_layers(used, float(released.total), {}, ThreadPool(1).map)
        leaves = Fit(released.tree, released.total, levels, 1).leaves(0)
        found = np.zeros(flows.shape)
        found[leaves.areas] = leaves.value
        off = np.add.reduceat(found - flows, np.arange(0, 51, 10), axis=1)
        errors.append(np.abs(off).sum())
    with_pairs, without = errors
    assert with_pairs < 0.9 * without


def misfits(released, leaves):
    """Root mean square of misfits over noise scales, of each table with a mode."""
    found = {}
    for table in released.measurements().tables:
        # All modes alone have three cells, whose noise has a sum that no numbers can follow.
        if table.depths[2] and sum(table.depths[:2]) > 0 and not all(table.depths):
            marginal = Marginal(released.tree.axes, table.depths)
            sums = np.zeros(marginal.n_nodes)
            np.add.at(sums, marginal.numbers(marginal.above(leaves.areas)), leaves.value)
            off = sums[marginal.numbers(table.areas)] - table.value
            found[table.depths] = float(np.sqrt((off**2).mean() / table.noise.sigma**2))
    return found


def test_sums_by_a_further_axis_agree_with_what_was_measured(released, layers, monkeypatch):
    levels = estimate_layers(layers, float(released.total), {}, ThreadPool(1).map)
    fit = Fit(released.tree, released.total, levels, 1)
    searched = fit.leaves(0)
    monkeypatch.setattr("inftda.estimates.rounding.needs_local_search", lambda _: False)
    before, after = misfits(released, fit.leaves(0)), misfits(released, searched)
    assert max(before.values()) > 2  # the model knows nothing of modes and groups
    assert max(after.values()) < 1.15
    assert searched.value.sum() == released.total
    assert (searched.value > 0).all()


def test_settled_numbers_do_not_depend_on_threads(released, layers):
    levels = estimate_layers(layers, float(released.total), {}, ThreadPool(1).map)
    one, two = (Fit(released.tree, released.total, levels, n).leaves(0) for n in (1, 2))
    assert sorted(zip(*one.areas, one.value, strict=True)) == sorted(
        zip(*two.areas, two.value, strict=True)
    )
