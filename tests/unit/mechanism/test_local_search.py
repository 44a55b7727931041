"""Trips that even out misfits, beside a slow twin."""

import numpy as np
import pytest
from test_adjustment import ints, random_groups

from inftda.mechanism.adjustment import HARD, ONE, MeasuredCells, balance
from inftda.mechanism.local_search import (
    ATTEMPTS,
    BETTER,
    BINDING,
    FEW,
    SLACK,
    SLACK_OF_SEVERAL,
    SWEEPS,
    local_search,
    spread_out,
)
from inftda.tree import cross_tables
from inftda.util.threads import ThreadPool


def rows_of(cells, chain, parent):
    """All rows that hold a parent in one chain, fine to coarse."""
    row = cells.row[chain, parent]
    while row >= 0:
        yield row
        row = cells.above[row]


def slow_settle(candidates, before, cells, reach):  # noqa: C901 - as it is described
    """The same in plain Python, misfits summed up again after every move."""
    value = before.copy()
    offsets, column = candidates.offsets, candidates.column
    x = candidates.noisy // ONE
    ratio = (reach / cells.sigma) ** 2
    weight = np.where(ratio * cells.n_parents >= BETTER, BINDING * np.sqrt(ratio), ratio)
    slack = cells.sigma * (SLACK if len(cells.row) == 1 else SLACK_OF_SEVERAL)
    slack = np.where(cells.ratio == HARD, 0.0, slack)
    up = int(np.ceil(reach))
    down = int(np.ceil(cross_tables.HARD.down * reach)) if np.isinf(cells.ratio).any() else up
    n_parents = len(candidates.total)

    def pull(parent, i):
        found = 0.0
        for chain in range(len(cells.row)):
            for row in rows_of(cells, chain, parent):
                members = [p for p in range(n_parents) if row in list(rows_of(cells, chain, p))]
                here = -cells.measured[cells.offsets[row] + column[i]]
                for p in members:
                    for j in range(offsets[p], offsets[p + 1]):
                        here += value[j] * (column[j] == column[i])
                beyond = max(abs(here) - slack[row], 0.0) * np.sign(here)
                found += weight[row] * beyond
        return found

    moved = []
    for _ in range(SWEEPS):
        n_moved = 0
        for parent in range(n_parents):  # fewer than a run, so one after the other
            children = range(offsets[parent], offsets[parent + 1])
            size = candidates.size[parent]
            room = -((candidates.sum[parent] - candidates.total[parent]) // size)
            room += (up + down) * (size - 1) // size
            floor = {i: max(0, x[i] - 2 * max(up, down)) for i in children}
            rows = [r for c in range(len(cells.row)) for r in rows_of(cells, c, parent)]
            whole = sum(weight[r] for r in rows)
            crowd = sum(weight[r] * cells.n_parents[r] for r in rows)
            least = min(candidates.noisy[i] for i in children if before[i] > 0)
            pulls = {i: pull(parent, i) for i in children}
            for _ in range(ATTEMPTS):
                give = {i: pulls[i] + value[i] - before[i] for i in children if value[i] > floor[i]}
                take = {
                    i: pulls[i] + value[i] - before[i]
                    + (max(0, least - candidates.noisy[i]) / ONE if value[i] == 0 else 0)
                    for i in children
                    if value[i] < x[i] + room
                }  # fmt: skip
                if not give or not take:
                    break
                giver, taker = max(give, key=give.get), min(take, key=take.get)
                gain = give[giver] - take[taker]
                if gain <= 1 + whole:
                    break
                trips = max(1, int(gain / (2 * (1 + crowd))))
                trips = min(trips, value[giver] - floor[giver], x[taker] + room - value[taker])
                value[giver] -= trips
                value[taker] += trips
                pulls[giver] -= trips * whole
                pulls[taker] += trips * whole
                n_moved += trips
        moved.append(n_moved)
        if n_moved * FEW <= moved[0]:
            break
    return value


def two_chains(rng, *, is_hard):
    """A few parents, in rows of two tables and of one above the first."""
    candidates, cells = random_groups(rng, 8, 4, 3)
    row = np.stack([cells.row[0], 4 + rng.integers(0, 2, 8)])
    measured = rng.integers(-20, 150, 6 * 4)
    ratio = np.full(6, 0.2)
    ratio[4:] = HARD if is_hard else 0.2
    n_parents = np.bincount(np.concatenate([row.ravel(), np.full(8, 3)]), minlength=6)
    return candidates, MeasuredCells(
        row, ints([0, 4, 6]), ints([3, 3, 3, -1, -1, -1]), np.array([1, 1, 1, 0, 1, 1], bool),
        np.arange(7) * 4, measured, ratio, np.full(6, 20.0), n_parents,
    )  # fmt: skip


@pytest.mark.parametrize("is_hard", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_it_moves_what_the_slow_twin_moves(seed, is_hard):
    candidates, cells = two_chains(np.random.default_rng(seed), is_hard=is_hard)
    before = balance(candidates, cells, sigma=10.0, pool=ThreadPool(1))
    expected = slow_settle(candidates, before, cells, 10.0)
    value = local_search(candidates, before, cells, ints([0, 8]), sigma=10.0, pool=ThreadPool(1))
    assert value.tolist() == expected.tolist()
    assert (before != expected).any()
    sums = np.add.reduceat(value, candidates.offsets[:-1])
    assert (sums == candidates.total).all()


def test_sums_that_agree_with_what_was_measured_stay():
    candidates, cells = random_groups(np.random.default_rng(1), 50, 6, 3)
    before = balance(candidates, cells, sigma=10.0, pool=ThreadPool(1))
    parent = np.repeat(np.arange(50), 6)
    cell = cells.row[0][parent] * 6 + candidates.column
    agreed = np.bincount(cell, before, minlength=18).astype(np.int64)
    cells = cells._replace(measured=agreed)
    value = local_search(candidates, before, cells, ints([0, 50]), sigma=10.0, pool=ThreadPool(1))
    assert (value == before).all()


@pytest.mark.parametrize("n", [1, 2, 3, 10, 64, 97, 618, 1000])
def test_all_are_visited_in_turn(n):
    step = spread_out.py_func(n)
    assert sorted(step * i % n for i in range(n)) == list(range(n))
