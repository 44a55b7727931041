"""The attack finds what follows from published numbers: checked by trying out every table."""

from itertools import product

import numpy as np
import pytest
from small_tables import TOWNS, TWO, counts_of, random_counts

from inftda.disclosure.attack import Bounds, attack
from inftda.disclosure.methods import CellKey, PrimarySuppression, Rounding, Suppression


def compositions(total, parts):
    """All ways to write a total as a sum of positive numbers."""
    if parts == 0:
        if total == 0:
            yield ()
        return
    for first in range(1, total - parts + 2):
        for rest in compositions(total - first, parts - 1):
            yield first, *rest


def sums_of(truth, leaves):
    """Counts of every level, from leaves."""
    levels = [leaves]
    for number, level in reversed(list(enumerate(truth.levels))):
        sums = np.add.reduceat(levels[0], level.offsets[:-1])
        levels.insert(0, np.empty_like(sums))
        levels[0][truth.above(number)] = sums
    return levels


def agrees(published, leaves, *, with_totals):
    """Whether a table could have been published so, as far as a reader knows."""
    for shown, here in zip(published.levels, sums_of(published.truth, leaves), strict=True):
        if not ((shown.low <= here) & (here <= shown.high)).all():
            return False
    if not with_totals:
        return True
    for axis, shown in enumerate(published.totals):
        here = np.zeros(len(shown.true), np.int64)
        np.add.at(here, published.truth.leaves[0][axis], leaves)
        if not ((shown.low <= here) & (here <= shown.high)).all():
            return False
    return True


def possible(published, *, with_totals):
    """All tables a reader must reckon with."""
    shown = published.levels[-1]
    hidden = np.flatnonzero(shown.is_hidden)
    for parts in compositions(int(shown.true[hidden].sum()), len(hidden)):
        leaves = np.where(shown.is_hidden, 0, shown.true)
        leaves[hidden] = parts
        if agrees(published, leaves, with_totals=with_totals):
            yield leaves


def known(published, *, with_totals):
    """Which leaves are the same in all tables."""
    tables = np.array(list(possible(published, with_totals=with_totals)))
    return tables.min(axis=0) == tables.max(axis=0)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("method", [Suppression(3), PrimarySuppression(3)])
def test_all_that_follows_from_the_levels_is_found(seed, method):
    truth = random_counts(TOWNS, seed, cells=8, most=4)
    published = method.publish(truth, np.random.default_rng(seed))
    bounds = Bounds(published)
    bounds.along_tree()
    exact = known(published, with_totals=False)
    assert bounds.is_exact.tolist() == exact.tolist()
    is_hidden = published.levels[-1].is_hidden
    assert attack(published).exact_by_levels == np.count_nonzero(exact & is_hidden)


@pytest.mark.parametrize("seed", range(8))
def test_what_is_found_with_totals_does_follow(seed):
    truth = random_counts(TOWNS, 100 + seed, cells=8, most=4)
    published = PrimarySuppression(3).publish(truth, np.random.default_rng(seed))
    bounds = Bounds(published)
    bounds.everywhere()
    exact = known(published, with_totals=True)
    assert not (bounds.is_exact & ~exact).any()
    # Bounds always hold the truth.
    for low, high, level in zip(bounds.low, bounds.high, published.levels, strict=True):
        assert (low <= level.true).all()
        assert (level.true <= high).all()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("method", [Rounding(3), CellKey(2)])
def test_what_follows_from_changed_numbers_is_found_too(method, seed):
    """Every table of two towns that is near enough at each level, zeros included."""
    truth = random_counts(TWO, seed, cells=3, most=6)
    published = method.publish(truth, np.random.default_rng(seed))
    bounds = Bounds(published)
    bounds.along_tree()
    areas, _ = truth.leaves
    place = areas[1] * 2 + areas[0]  # destination first
    low, high = np.zeros(4, int), np.full(4, published.max_count_shown_as_zero)
    low[place], high[place] = published.levels[-1].low, published.levels[-1].high
    ends = np.unique(areas[1])
    node_low, node_high = np.zeros(2, int), np.full(2, published.max_count_shown_as_zero)
    node_low[ends], node_high[ends] = published.levels[1].low, published.levels[1].high
    root = published.levels[0]
    tables = []
    for cells in product(*(range(a, b + 1) for a, b in zip(low, high, strict=True))):
        ins = np.array([cells[0] + cells[1], cells[2] + cells[3]])
        fits = (node_low <= ins).all() and (ins <= node_high).all()
        if fits and root.low[0] <= ins.sum() <= root.high[0]:
            tables.append(cells)
    same = np.array(tables).min(axis=0) == np.array(tables).max(axis=0)
    # Cells that are zero in truth are not listed, and bounds are carried past them only once.
    assert not (bounds.is_exact & ~same[place]).any()


def test_one_hidden_cell_is_what_its_family_lacks_unless_another_is_hidden_with_it():
    truth = counts_of(TWO, [(0, 0, 3), (1, 0, 30), (0, 1, 40), (1, 1, 50)])
    naive = attack(PrimarySuppression(10).publish(truth, np.random.default_rng(0)))
    assert (naive.hidden_cells, naive.exact_by_levels) == (1, 1)
    careful = attack(Suppression(10).publish(truth, np.random.default_rng(0)))
    assert (careful.hidden_cells, careful.exact_by_levels) == (2, 0)
    assert careful.hidden_trips == 33
