"""VanillaGauss: every possible cell gets noise, once."""

import itertools

import numpy as np
import pytest

from fake_noise import Record, always, cells, setting_of
from inftda.errors import PrivacyError
from inftda.hierarchy import Hierarchy
from inftda.lab.baselines import vanilla_gauss
from inftda.lab.baselines.vanilla_gauss import VanillaGauss, add_and_keep
from inftda.privacy.plan import make_plan
from inftda.privacy.unit import PrivacyUnit
from inftda.tree import Axis, Tree
from inftda.truth import Truth

AREAS = Hierarchy.read({"region": ["N", "N", "N", "S", "S"], "town": list("abcde")})
ABROAD = Hierarchy.read({"city": list("xyz")})
MODES = Hierarchy.read({"mode": ["car", "train"]})
OD = Tree.destination_first(AREAS, ABROAD)
THREE = Tree.build(
    [Axis("origin", AREAS), Axis("destination", ABROAD), Axis("mode", MODES)],
    ["origin", "mode", "destination", "origin"],
)
TRUTH = {
    OD: {(0, 0): 9, (4, 2): 5, (1, 1): 2, (1, 2): 100},
    THREE: {(0, 0, 1): 9, (4, 2, 1): 5, (1, 1, 0): 2, (4, 2, 0): 1},
}


def counts_of(tree):
    columns = [np.array(column, np.int32) for column in zip(*TRUTH[tree], strict=True)]
    return Truth.from_leaves(tree, columns, np.array(list(TRUTH[tree].values()), np.int64))


def all_cells(tree):
    sizes = [axis.hierarchy.n_areas(axis.hierarchy.depth) for axis in tree.axes]
    return list(itertools.product(*map(range, sizes)))


def run(tree, noise, *, negative="kept", threads=1):
    record = Record(noise)
    mechanism = VanillaGauss("vanilla", negative)
    plan = mechanism.plan(tree, PrivacyUnit(), rho=1)
    found = cells(mechanism.run(counts_of(tree), setting_of(plan, record, threads=threads)))
    return found, record


@pytest.mark.parametrize("tree", [OD, THREE])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 14, 15, 16, 29, 30, 31, 1 << 18])
def test_every_possible_cell_gets_noise_exactly_once(monkeypatch, tree, size):
    """The n-th draw is 1000 + n, so that each can be told from all others."""
    monkeypatch.setattr(vanilla_gauss, "BLOCK_CELLS", size)
    found, record = run(tree, itertools.count(1000))
    cells_there_are = all_cells(tree)
    assert set(found) == set(cells_there_are)
    noise = [found[cell] - TRUTH[tree].get(cell, 0) for cell in cells_there_are]
    assert noise == list(range(1000, 1000 + len(cells_there_are)))
    assert record.n_draws == len(cells_there_are)
    assert max(record.sizes) <= size


@pytest.mark.parametrize("size", [1, 4, 100])
def test_without_noise_the_release_is_the_truth(monkeypatch, size):
    monkeypatch.setattr(vanilla_gauss, "BLOCK_CELLS", size)
    for tree in (OD, THREE):
        for negative in ("kept", "clamped"):
            assert run(tree, always(0), negative=negative)[0] == TRUTH[tree]


@pytest.mark.parametrize("noise", [-9, -3, -2, 1])
def test_negative_counts_are_kept_or_dropped_with_the_zeros(noise):
    expected = {cell: TRUTH[OD].get(cell, 0) + noise for cell in all_cells(OD)}
    kept, _ = run(OD, always(noise))
    assert kept == {cell: value for cell, value in expected.items() if value != 0}
    clamped, _ = run(OD, always(noise), negative="clamped")
    assert clamped == {cell: value for cell, value in expected.items() if value > 0}
    assert VanillaGauss(negative="clamped").options == {"negative": "clamped"}


def test_blocks_come_in_order_whatever_the_number_of_threads(monkeypatch):
    monkeypatch.setattr(vanilla_gauss, "BLOCK_CELLS", 4)
    one, two = ([*run(OD, None, threads=threads)[0].items()] for threads in (1, 3))
    assert one == two
    assert [cell for cell, _ in one] == sorted(cell for cell, _ in one)


def test_only_the_leaves_are_planned_and_drawn_and_the_scale_is_theirs():
    for unit in (PrivacyUnit(), PrivacyUnit("add-remove", trips=2)):
        plan = VanillaGauss().plan(OD, unit, epsilon=1, delta=1e-8)
        assert plan == make_plan(OD, unit, epsilon=1, delta=1e-8, scope="leaves")
        record = Record()
        list(VanillaGauss().run(counts_of(OD), setting_of(plan, record)))
        assert record.scales == [plan.levels[0].sigma2]
        assert plan.levels[0].cells == 15


def test_it_needs_less_noise_than_a_release_of_every_level():
    leaves = VanillaGauss().plan(OD, PrivacyUnit(), epsilon=1, delta=1e-8)
    levels = make_plan(OD, PrivacyUnit(), epsilon=1, delta=1e-8)
    assert leaves.levels[0].sigma2 < min(level.sigma2 for level in levels.levels)


def test_progress_is_the_number_of_possible_cells_which_is_public(monkeypatch):
    monkeypatch.setattr(vanilla_gauss, "BLOCK_CELLS", 4)
    _, record = run(OD, None)
    assert [step[1:] for step in record.steps] == [(0, 15), (4, 15), (8, 15), (12, 15), (15, 15)]


def test_more_cells_than_can_be_numbered_are_refused():
    areas = Hierarchy.read({"x": [str(i) for i in range(2000)]})
    tree = Tree.build([Axis(f"axis {i}", areas) for i in range(6)], [f"axis {i}" for i in range(6)])
    plan = VanillaGauss().plan(tree, PrivacyUnit(), rho=1)
    counts = Truth.from_leaves(tree, [np.zeros(1, np.int32)] * 6, np.ones(1, np.int64))
    with pytest.raises(PrivacyError, match="use inftda"):
        list(VanillaGauss().run(counts, setting_of(plan)))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("is_clamped", [False, True])
def test_adding_the_truth_does_what_its_twin_does(seed, is_clamped):
    random = np.random.default_rng(seed)
    n, first = int(random.integers(1, 60)), int(random.integers(0, 10**6))
    noise = random.integers(-3, 4, n)
    true = {first + int(i): int(random.integers(1, 5)) for i in random.permutation(n)[: n // 3]}
    expected = [
        (first + i, value)
        for i, value in enumerate(noise.tolist())
        for value in [value + true.get(first + i, 0)]
        if value > 0 or (value < 0 and not is_clamped)
    ]
    places = np.array(sorted(true), np.int64)
    count = np.array([true[place] for place in sorted(true)], np.int64)
    cell, value = add_and_keep(noise, first, places, count, is_clamped=is_clamped)
    assert list(zip(cell.tolist(), value.tolist(), strict=True)) == expected
