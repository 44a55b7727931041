"""The attacks find what follows from published numbers: checked by trying out every table."""

from itertools import product

import numpy as np
import pytest

import inftda
from inftda.confidential.methods import find_method, perturbation_matrix
from inftda_lab import attack as command
from inftda_lab.attack import Bounds, attack, attack_table, change_of, count_nodes, publish
from inftda_lab.tables import Table, write_table

TOWNS = inftda.Hierarchy.read({"region": ["N", "N", "S", "S"], "town": ["1", "2", "3", "4"]})
TWO = inftda.Hierarchy.read({"town": ["1", "2"]})


def table_of(areas, flows):
    """A table of (origin, destination, trips)."""
    return Table("small", areas, *(np.array(column) for column in zip(*flows, strict=True)))


def random_table(areas, seed, *, cells, most):
    random = np.random.default_rng(seed)
    n = areas.n_areas(areas.depth)
    chosen = random.choice(n * n, cells, replace=False)
    return table_of(areas, [(c // n, c % n, random.integers(1, most + 1)) for c in chosen])


def published(table, method, seed=0):
    return publish(table, find_method(method), np.random.default_rng(seed))


def compositions(total, parts):
    """All ways to write a total as a sum of positive numbers."""
    if parts == 0:
        if total == 0:
            yield ()
        return
    for first in range(1, total - parts + 2):
        for rest in compositions(total - first, parts - 1):
            yield first, *rest


def agrees(made, leaves, *, with_totals):
    """Whether a table with these flows could have been published so, as far as a reader knows."""
    ends = made.table.origin, made.table.destination
    places = [np.zeros(len(leaves), int), *(level.of_leaf for level in made.nodes)]
    shown, flows = list(made.levels), leaves[made.nodes[-1].of_leaf]
    if with_totals:
        places, shown = [*places, *ends], [*shown, *made.totals]
    for place, at in zip(places, shown, strict=True):
        here = np.zeros(len(at.true), np.int64)
        np.add.at(here, place, flows)
        if not ((at.low <= here) & (here <= at.high)).all():
            return False
    return True


def known(made, *, with_totals):
    """Which leaves are the same in all tables that a reader must reckon with."""
    shown = made.levels[-1]
    hidden = np.flatnonzero(shown.is_hidden)
    tables = []
    for parts in compositions(int(shown.true[hidden].sum()), len(hidden)):
        leaves = np.where(shown.is_hidden, 0, shown.true)
        leaves[hidden] = parts
        if agrees(made, leaves, with_totals=with_totals):
            tables.append(leaves)
    return np.min(tables, axis=0) == np.max(tables, axis=0)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("method", ["suppress:3", "suppress-primary:3"])
def test_all_that_follows_from_the_levels_is_found(seed, method):
    made = published(random_table(TOWNS, seed, cells=8, most=4), method)
    bounds = Bounds(made)
    bounds.along_tree()
    exact = known(made, with_totals=False)
    assert bounds.is_exact.tolist() == exact.tolist()
    assert attack(made).exact_by_levels == np.count_nonzero(exact & made.levels[-1].is_hidden)


@pytest.mark.parametrize("seed", range(8))
def test_what_is_found_with_totals_does_follow(seed):
    made = published(random_table(TOWNS, 100 + seed, cells=8, most=4), "suppress-primary:3")
    bounds = Bounds(made)
    bounds.everywhere()
    assert not (bounds.is_exact & ~known(made, with_totals=True)).any()
    # Bounds always hold the truth.
    for low, high, level in zip(bounds.low, bounds.high, made.levels, strict=True):
        assert (low <= level.true).all()
        assert (level.true <= high).all()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("method", ["round:3", "round-nearest:3", "cell-key:2"])
def test_what_follows_from_changed_numbers_is_found_too(method, seed):
    """Every table of two towns that is near enough at each level, zeros included."""
    table = random_table(TWO, seed, cells=3, most=6)
    made = published(table, method, seed)
    bounds = Bounds(made)
    bounds.along_tree()
    cells, ends = made.nodes[-1].of_leaf, made.nodes[0].of_leaf
    place = np.zeros(len(table.count), int)
    place[cells] = table.destination * 2 + table.origin  # destination first
    end = np.zeros(len(made.levels[1].true), int)
    end[ends] = table.destination
    most = made.max_count_shown_as_zero
    low, high = np.zeros(4, int), np.full(4, most)
    low[place], high[place] = made.levels[-1].low, made.levels[-1].high
    node_low, node_high = np.zeros(2, int), np.full(2, 2 * most)
    node_low[end], node_high[end] = made.levels[1].low, made.levels[1].high
    root = made.levels[0]
    tables = []
    for flows in product(*(range(a, b + 1) for a, b in zip(low, high, strict=True))):
        ins = np.array([flows[0] + flows[1], flows[2] + flows[3]])
        fits = (node_low <= ins).all() and (ins <= node_high).all()
        if fits and root.low[0] <= ins.sum() <= root.high[0]:
            tables.append(flows)
    same = np.min(tables, axis=0) == np.max(tables, axis=0)
    # Cells that are zero in truth are not listed, and bounds are carried past them only once.
    assert not (bounds.is_exact & ~same[place]).any()


def test_one_hidden_cell_is_what_its_family_lacks_unless_another_is_hidden_with_it():
    table = table_of(TWO, [(0, 0, 3), (1, 0, 30), (0, 1, 40), (1, 1, 50)])
    naive = attack_table(table, "suppress-primary:10")
    assert (naive.hidden_cells, naive.exact_by_levels) == (1, 1)
    careful = attack_table(table, "suppress:10")
    assert (careful.hidden_cells, careful.exact_by_levels) == (2, 0)
    assert careful.hidden_trips == 33
    assert careful.n_reidentified == table.total - 33


@pytest.mark.parametrize("seed", range(5))
def test_trips_seen_after_rounding_are_those_without_which_the_flow_is_another(seed):
    """The second edition is made for each flow in turn; no count is 1, so no cell vanishes."""
    flows = [(0, 0, 7), (1, 0, 12), (0, 1, 5), (1, 1, 23)]
    first = published(table_of(TWO, flows), "round:5", seed)
    seen = somewhere = 0
    for i, (origin, destination, n) in enumerate(flows):
        without = [*flows[:i], (origin, destination, n - 1), *flows[i + 1 :]]
        second = published(table_of(TWO, without), "round:5", seed)
        differ = [
            (a.value != b.value).any()
            for a, b in zip(first.levels[1:], second.levels[1:], strict=True)
        ]
        seen += n * differ[-1]
        somewhere += n * any(differ)
    assert (first.n_reidentified, first.n_seen_anywhere) == (seen, somewhere)


def test_a_key_picks_the_change_of_its_row():
    """One by one, as the matrix is read by hand."""
    matrix = perturbation_matrix(3, 2.0)
    random = np.random.default_rng(2)
    true, keys = random.integers(0, 8, 500), random.integers(0, 1 << 64, 500, np.uint64)
    for count, key, change in zip(true, keys, change_of(true, keys, matrix), strict=True):
        chance = (int(key) >> 11) / 2**53
        row = matrix[min(count, 3)]
        assert change == next(at for at, up_to in enumerate(row) if chance < up_to) - 3


def test_trips_seen_by_cell_keys_are_those_without_which_a_number_is_another():
    table = random_table(TOWNS, 3, cells=10, most=6)
    made = published(table, "cell-key:3", 4)
    matrix = perturbation_matrix(3, 2.0)
    keys = np.random.default_rng(4).integers(0, 1 << 64, table.total, np.uint64)
    owner = np.repeat(np.arange(len(table.count)), table.count)
    seen = somewhere = 0
    for gone in range(len(owner)):
        changes = []
        for level, shown in zip(made.nodes, made.levels[1:], strict=True):
            here = level.of_leaf[owner[gone]]
            rest = (level.of_leaf[owner] == here) & (np.arange(len(owner)) != gone)
            n, key = np.array([rest.sum()]), keys[rest].sum(keepdims=True)
            changes.append((n + change_of(n, key, matrix))[0] != shown.value[here])
        seen += changes[-1]
        somewhere += any(changes)
    assert (made.n_reidentified, made.n_seen_anywhere) == (seen, somewhere)


@pytest.mark.parametrize("method", ["suppress:10", "round:5", "round-nearest:7", "cell-key:3"])
def test_zeros_stay_zeros_and_bounds_hold_the_truth(method):
    made = published(table_of(TWO, [(0, 0, 3), (1, 0, 30)]), method, 1)
    for shown in [*made.levels, *made.totals]:
        assert (shown.value[shown.true == 0] == 0).all()
        assert (shown.low <= shown.true).all()
        assert (shown.true <= shown.high).all()


def test_a_table_of_one_area_shows_nobody():
    table = table_of(inftda.Hierarchy.read({"town": ["a"]}), [(0, 0, 9)])
    for method in ("suppress:10", "round:5", "cell-key:3"):
        found = attack_table(table, method)
        assert (found.n_reidentified, found.n_seen_anywhere) == (0, 0)


def test_counts_of_all_levels_add_up():
    table = random_table(TOWNS, 5, cells=9, most=7)
    above = np.array([table.total])
    for level in count_nodes(table):
        assert np.add.reduceat(level.count, level.offsets[:-1]).tolist() == above.tolist()
        assert (level.missing >= 0).all()
        above = level.count
    assert sorted(above) == sorted(table.count)


def test_one_line_is_printed_for_each_table_and_method(tmp_path, capsys):
    write_table(random_table(TOWNS, 1, cells=6, most=5), tmp_path / "small")
    command.main([str(tmp_path / "small"), "--methods", "cbs", "suppress:10"])
    head, *lines = (line.split("\t") for line in capsys.readouterr().out.splitlines())
    assert head[:3] == ["table", "method", "trips"]
    assert [line[:2] for line in lines] == [["small", "cbs"], ["small", "suppress:10"]]
