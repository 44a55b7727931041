"""Dividing with dual variables beside a slow twin, and what is guaranteed of it."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from slow_adjustment import divide

from inftda.errors import OptimizeError
from inftda.mechanism.adjustment import (
    HARD,
    ONE,
    BalancedCounts,
    MeasuredCells,
    Shifts,
    balance,
    bound_with_duals_kernel,
    divide_kernel,
    solve_kernel,
)
from inftda.mechanism.intopt import Candidates, Vectors, check_exact, intopt, words_of
from inftda.mechanism.local_search import local_search
from inftda.tree import cross_tables
from inftda.util.threads import ThreadPool
from tiers import some

HARD_REACH = cross_tables.HARD.down


def ints(values):
    return np.array(values, np.int64)


def one_row(n_columns, *, measured=None, ratio=1.0, n_parents=1):
    """All parents in one row of one table."""
    return MeasuredCells(
        row=np.zeros((1, n_parents), np.int64),
        first=ints([0, 1]),
        above=ints([-1]),
        is_finest=np.array([True]),
        offsets=ints([0, n_columns]),
        measured=ints([0] * n_columns if measured is None else measured),
        ratio=np.array([ratio]),
        sigma=np.array([5.0]),
        n_parents=ints([n_parents]),
    )


def candidates_of(noisy, fraction, total, is_candidate):
    chosen = np.flatnonzero(is_candidate)
    key = ints(noisy) * ONE + ints(fraction)
    return Candidates(
        offsets=ints([0, len(chosen)]),
        column=chosen.astype(np.int32),
        noisy=key[chosen],
        total=ints([total]),
        size=ints([len(noisy)]),
        sum=ints([sum(noisy)]),
        least=ints([min(noisy)]),
    )


@st.composite
def divisions(draw, reach=12):
    """Noisy children of one parent, dual variables, and candidates: the largest and some more."""
    n = draw(st.integers(1, 12))
    spread = draw(st.sampled_from([3, 30, 1000]))
    noisy = draw(st.lists(st.integers(-spread, spread), min_size=n, max_size=n))
    dual = draw(st.lists(st.integers(-reach * ONE, reach * ONE), min_size=n, max_size=n))
    fraction = draw(st.lists(st.integers(0, ONE - 1), min_size=n, max_size=n, unique=True))
    total = draw(st.integers(1, max(1, 2 * spread)))
    unadjusted = divide(noisy, fraction, [0] * n, total, [True] * n)
    least = min(x for x, y in zip(noisy, unadjusted, strict=True) if y > 0)
    is_candidate = [x >= least - reach for x in noisy]
    return noisy, fraction, dual, total, is_candidate


def divided_by(candidates, cells, shifts):
    n = len(cells.measured)
    found = BalancedCounts(np.empty_like(candidates.noisy), *np.zeros((2, n), np.int64))
    divide_kernel((0, 1), candidates, cells, shifts, found)
    return found


def run(noisy, fraction, dual, total, is_candidate, *, reach=12.0, ratio=1.0):
    n = len(noisy)
    candidates = candidates_of(noisy, fraction, total, is_candidate)
    cells = one_row(n, ratio=ratio)
    most = int(reach * ONE)
    shifts = Shifts(ints(dual), -most if ratio != HARD else -HARD_REACH * most, most)
    divided = divided_by(candidates, cells, shifts)
    value = np.zeros(n, np.int64)
    value[candidates.column] = divided.value
    assert (divided.sum == value).all()
    assert (divided.positive == (value > 0)).all()
    return value.tolist()


@given(divisions())
@settings(max_examples=some(400), deadline=None)
def test_it_divides_as_the_slow_twin_does(case):
    assert run(*case) == divide(*case)


@st.composite
def large_divisions(draw):
    """The same with numbers as large as are taken, dual variables often as low as they can be."""
    n, bits = draw(st.integers(2, 12)), draw(st.integers(10, 44))
    spread = draw(st.integers(0, bits - 1))
    centre = draw(st.sampled_from([0, 1 << (bits - 1), -(1 << (bits - 1))]))
    number = st.integers(centre - (1 << spread), centre + (1 << spread))
    noisy = draw(st.lists(number, min_size=n, max_size=n))
    reach = 1 << draw(st.integers(0, bits - 2))
    highest = draw(st.sampled_from([-reach, reach]))
    dual = draw(st.lists(st.integers(-reach * ONE, highest * ONE), min_size=n, max_size=n))
    fraction = draw(st.lists(st.integers(0, ONE - 1), min_size=n, max_size=n, unique=True))
    total = draw(st.integers(1, 1 << draw(st.integers(0, bits))))
    is_candidate = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    is_candidate[noisy.index(max(noisy))] = True
    return (noisy, fraction, dual, total, is_candidate), reach


@given(large_divisions(), st.booleans())
@settings(max_examples=some(400), deadline=None)
def test_numbers_as_large_as_are_taken_are_divided_exactly(case, is_hard):
    (noisy, fraction, dual, total, is_candidate), reach = case
    if is_hard:
        dual = [HARD_REACH * p if p < 0 else p for p in dual]
    largest = max(*map(abs, noisy), math.ceil(HARD_REACH * reach))
    check_exact(largest, ints([total]), ints([len(noisy)]))
    divided = (noisy, fraction, dual, total, is_candidate)
    ratio = HARD if is_hard else 1.0
    assume(sum(is_candidate) > 1)  # one takes all: `balance` asks for no more
    assert run(*divided, reach=reach, ratio=ratio) == divide(*divided)


@pytest.mark.parametrize(("bits", "n_bits"), [(24, 20), (28, 16), (34, 10), (43, 1)])
def test_many_large_counts_sum_up_exactly(bits, n_bits):
    """Every other child is a candidate, whose dual variable is too low for the lift of all."""
    n = 2 << n_bits
    x = (1 << bits) - np.random.default_rng(1).integers(0, 1 << (bits - 1), n)
    x[1::2] = 0
    total = int(x.sum())
    check_exact(1 << bits, ints([total]), ints([n]))
    candidates = (np.zeros(n), np.full(n, -10 * ONE), total, x > 0)
    value = ints(run(x, *candidates, reach=50.0))
    assert sum(value.tolist()) == total
    assert np.abs(value - x).max() <= 20


@pytest.mark.parametrize(
    ("largest", "total", "size"),
    [((1 << 44) + 1, 1, 2), (1, (1 << 44) + 1, 2), (1 << 44, 1, (1 << 16) + 1)],
)
def test_numbers_that_leave_no_room_are_refused(largest, total, size):
    with pytest.raises(OptimizeError, match="larger epsilon"):
        check_exact(largest, ints([1, total]), ints([size, 1]))


@given(divisions(), st.sampled_from([0.5, 3.0]))
@settings(max_examples=some(200), deadline=None)
def test_dual_variables_count_up_to_their_limit_only(case, reach):
    noisy, fraction, dual, total, is_candidate = case
    limit = int(reach * ONE)
    clipped = [min(max(p, -limit), limit) for p in dual]
    assert run(*case, reach=reach) == divide(noisy, fraction, clipped, total, is_candidate)


@given(divisions())
@settings(max_examples=some(200), deadline=None)
def test_without_prices_it_is_intopt(case):
    noisy, fraction, _, total, is_candidate = case
    value = run(noisy, fraction, [0] * len(noisy), total, is_candidate)
    assert sorted(value) == sorted(intopt(noisy, total).tolist())


def moved(released, case, data, *, reach, ratio):
    """The same after trips have moved towards some measured sums."""
    noisy, fraction, _, total, is_candidate = case
    n = len(noisy)
    candidates = candidates_of(noisy, fraction, total, is_candidate)
    before = released[candidates.column]
    goal = data.draw(st.lists(st.integers(-500, 500), min_size=n, max_size=n))
    cells = one_row(n, measured=goal, ratio=ratio)._replace(sigma=np.array([0.1]))
    value = np.zeros(n, np.int64)
    value[candidates.column] = local_search(
        candidates, before, cells, ints([0, 1]), sigma=reach, pool=ThreadPool(1)
    )
    assert value.sum() == total
    assert (value >= 0).all()
    return value


@given(divisions(), st.sampled_from([1.0, 2.3, 4.7, 12.0]), st.booleans(), st.data())
@settings(max_examples=some(1000), deadline=None)
def test_bounds_of_errors_grow_by_no_more_than_is_proved(case, reach, is_hard, data):
    """Theorems 2 and 3 of docs/proofs/cross-tables.md: fractional dual variables, hard totals."""
    noisy, fraction, dual, total, is_candidate = case
    n = len(noisy)
    assume(n > 1)
    scale = (HARD_REACH if is_hard else 1) * reach / 12
    dual = [int(p * scale) for p in dual]
    true = ints(data.draw(st.lists(st.integers(0, 1000), min_size=n, max_size=n)))
    ratio = HARD if is_hard else 1.0
    released = ints(run(noisy, fraction, dual, total, is_candidate, reach=reach, ratio=ratio))
    if data.draw(st.booleans()):
        released = moved(released, case, data, reach=reach, ratio=ratio)
    noise = ints(noisy) - true
    error = total - true.sum()
    up, down = math.ceil(reach), math.ceil((HARD_REACH if is_hard else 1) * reach)
    lift = -((sum(noisy) - total) // n)
    share = 1 - 1 / n
    rise = noise - noise.mean() + (error + n - 1) / n + (up + down + 1) * share
    assert (released - true <= np.maximum(0, rise) + 1e-9).all()
    assert (released - true < np.maximum(0, noise + lift + (up + down) * share) + 1).all()
    for i in range(n):
        corner = min(lift, n - 1 - lift) - noise[i]
        others = max(abs(noise[j]) - noise[i] for j in range(n) if j != i)
        own = max(others, -noise[i], corner) + 2 * max(up, down)
        assert true[i] - released[i] <= max(-error, own)


def test_a_hard_price_may_go_below_the_reach_but_not_above_it():
    case = ([50, 60, 0, 0], [1, 2, 3, 4], [-40 * ONE, 40 * ONE, 0, 0], 70, [True] * 4)
    noisy, fraction, dual, total, is_candidate = case
    candidates = candidates_of(noisy, fraction, total, is_candidate)
    shifts = Shifts(ints(dual), -HARD_REACH * 10 * ONE, 10 * ONE)
    sums = divided_by(candidates, one_row(4), shifts)
    expected = divide(noisy, fraction, [-40 * ONE, 10 * ONE, 0, 0], total, is_candidate)
    assert sums.sum.tolist() == expected


@given(st.data())
@settings(max_examples=some(100), deadline=None)
def test_best_prices_are_those_of_weighted_least_squares(data):
    """A chain of two tables: three fine rows, two of them in one coarse row."""
    number = st.floats(0.01, 2)
    fine, coarse = data.draw(number), data.draw(number)
    measured = ints(data.draw(st.lists(st.integers(-50, 50), min_size=5, max_size=5)))
    total = ints(data.draw(st.lists(st.integers(0, 50), min_size=3, max_size=3)))
    positive = ints(data.draw(st.lists(st.integers(1, 9), min_size=3, max_size=3)))
    dual = np.array([*data.draw(st.lists(st.floats(-5, 5), min_size=3, max_size=3)), 0, 0])
    cells = MeasuredCells(
        row=np.zeros((1, 1), np.int64),
        first=ints([0, 5]),
        above=ints([3, 3, 4, -1, -1]),
        is_finest=np.array([True] * 3 + [False] * 2),
        offsets=np.arange(6),
        measured=measured,
        ratio=np.array([fine] * 3 + [coarse] * 2),
        sigma=np.ones(5),
        n_parents=np.ones(5, np.int64),
    )
    pad = np.zeros(2, np.int64)
    best, none = np.empty(5), ints([])
    divided = BalancedCounts(none, np.concatenate([total, pad]), np.concatenate([positive, pad]))
    solve_kernel(cells, cells.first, divided, dual, best)
    # Sums are linear in the dual variables p; minimise the children's moves and the misfits.
    base = total - positive * dual[:3]
    tables = np.vstack([np.eye(3), [[1, 1, 0], [0, 0, 1]]]) * positive
    scale = np.sqrt(np.concatenate([positive, [fine] * 3, [coarse] * 2]))
    rows = np.vstack([np.eye(3), tables]) * scale[:, None]
    goal = np.concatenate(
        [np.zeros(3), measured - np.vstack([np.eye(3), [[1, 1, 0], [0, 0, 1]]]) @ base]
    )
    expected = np.linalg.lstsq(rows, goal * scale, rcond=None)[0]
    assert best[:3] == pytest.approx(expected, rel=1e-6, abs=1e-6)


def random_groups(rng, n_parents, n_columns, n_rows):
    """Candidates (all children) of some parents, in rows of a table measured without noise."""
    true = rng.poisson(rng.gamma(0.2, 30, (n_parents, n_columns)))
    true[:, 0] += 1
    x = true + rng.normal(0, 10, true.shape).round().astype(np.int64)
    candidates = Candidates(
        offsets=np.arange(n_parents + 1) * n_columns,
        column=np.tile(np.arange(n_columns, dtype=np.int32), n_parents),
        noisy=x.ravel() * ONE + rng.integers(0, ONE, x.size),
        total=true.sum(1),
        size=np.full(n_parents, n_columns),
        sum=x.sum(1),
        least=x.min(1),
    )
    row = np.sort(rng.integers(0, n_rows, n_parents))
    measured = np.zeros((n_rows, n_columns), np.int64)
    np.add.at(measured, row, true)
    cells = MeasuredCells(
        row=row[None],
        first=ints([0, n_rows]),
        above=np.full(n_rows, -1),
        is_finest=np.full(n_rows, True),
        offsets=np.arange(n_rows + 1) * n_columns,
        measured=measured.ravel(),
        ratio=np.full(n_rows, 1.0),
        sigma=np.full(n_rows, 10.0),
        n_parents=np.bincount(row, minlength=n_rows),
    )
    return candidates, cells


def misfit(candidates, value, cells):
    sums = np.zeros_like(cells.measured)
    n_columns = cells.offsets[1]
    parent = np.repeat(np.arange(len(candidates.total)), np.diff(candidates.offsets))
    np.add.at(sums, cells.row[0][parent] * n_columns + candidates.column, value)
    return np.abs(sums - cells.measured).sum()


def test_sums_come_closer_to_what_was_measured():
    candidates, cells = random_groups(np.random.default_rng(1), 300, 10, 6)
    without = balance(candidates, cells, sigma=0.0, pool=ThreadPool(1))
    value = balance(candidates, cells, sigma=10.0, pool=ThreadPool(1))
    assert misfit(candidates, value, cells) < 0.5 * misfit(candidates, without, cells)
    parts = np.add.reduceat(value, candidates.offsets[:-1])
    assert (parts == candidates.total).all()
    assert (value >= 0).all()


@pytest.mark.parametrize("ratio", [0.1, HARD])
def test_the_number_of_threads_changes_nothing(ratio):
    released = []
    for threads in (1, 2, 7):
        candidates, cells = random_groups(np.random.default_rng(2), 100, 6, 3)
        cells = cells._replace(ratio=np.full(3, ratio))
        groups, pool = np.searchsorted(cells.row[0], range(4)), ThreadPool(threads)
        value = balance(candidates, cells, sigma=10.0, pool=pool)
        value = local_search(candidates, value, cells, groups, sigma=10.0, pool=pool)
        released.append(value.tolist())
    assert released[0] == released[1] == released[2]


def test_sums_agree_with_hard_totals():
    candidates, cells = random_groups(np.random.default_rng(3), 400, 5, 1)
    goal = ints(np.roll(cells.measured, 1) // 8 + cells.measured * 7 // 8)
    goal[0] += candidates.total.sum() - goal.sum()
    value = balance(
        candidates,
        cells._replace(measured=goal, ratio=np.array([HARD])),
        sigma=10.0,
        pool=ThreadPool(1),
    )
    sums = np.bincount(candidates.column, weights=value)
    assert np.abs(sums - goal).max() <= 0.01 * goal.max()


def test_two_chains_and_hard_totals_are_all_met():
    """Rows that bind, of two axes, on a table whose small counts are biased without dual variables.

    Parents have a handful of trips, far below the noise, nine of ten in one of two columns.
    """
    rng = np.random.default_rng(4)
    n, n_rows = 6_000, 12
    areas = rng.integers(0, n_rows, (2, n))
    share = np.where((areas[0] + areas[1]) % 2 == 0, 0.9, 0.1)
    total = 1 + rng.poisson(4, n)
    true = np.stack([rng.binomial(total, share), np.zeros(n, np.int64)], axis=1)
    true[:, 1] = total - true[:, 0]
    x = true + rng.normal(0, 18, true.shape).round().astype(np.int64)
    candidates = Candidates(
        np.arange(n + 1) * 2, np.tile(np.arange(2, dtype=np.int32), n),
        x.ravel() * ONE + rng.integers(0, ONE, x.size), total, np.full(n, 2), x.sum(1), x.min(1),
    )  # fmt: skip
    rows = np.stack([np.zeros(n, np.int64), 1 + areas[0], 1 + n_rows + areas[1]])
    measured = np.zeros((1 + 2 * n_rows, 2), np.int64)
    for row in rows:
        np.add.at(measured, row, true)
    n_all = len(measured)
    cells = MeasuredCells(
        rows, ints([0, 1, 1 + n_rows, n_all]), np.full(n_all, -1), np.full(n_all, True),
        np.arange(n_all + 1) * 2, measured.ravel(), np.array([HARD] + [0.3] * (n_all - 1)),
        np.full(n_all, 33.0), np.bincount(rows.ravel()),
    )  # fmt: skip
    value = balance(candidates, cells, sigma=18.0, pool=ThreadPool(1))
    value = local_search(
        candidates, value, cells, ints([0, n]), sigma=18.0, pool=ThreadPool(1)
    ).reshape(-1, 2)
    found = np.zeros_like(measured)
    for row in rows:
        np.add.at(found, row, value)
    # Without dual variables the worst is 165 off.
    assert np.abs(found - measured)[1:].max() < 25
    assert np.abs(found - measured)[0].max() <= 5


def test_candidates_are_those_not_far_below_the_least_that_is_kept():
    x, offsets = ints([5, -3, 9, 1, 0, 7, 7]), ints([0, 5, 5, 7])
    vectors = Vectors.of(x, offsets, ints([12, 4, 7]), ints([3, 4, 8]))
    assert vectors.sum.tolist() == [12, 0, 14]
    assert vectors.least.tolist() == [-3, 0, 7]
    seed = words_of(bytes(16))
    kept = vectors.candidates(1, seed)
    # All that are positive survive.
    bound_with_duals_kernel(kept, kept.noisy >> 16, 4, vectors.bound)
    least = [min(v for v in part if v > 0) for part in ([5, 9], [7, 7])]
    assert vectors.bound[[0, 2]].tolist() == [low - 4 for low in least]
    vectors.bound[1] = 0
    found = vectors.candidates(1, seed)
    assert found.offsets.tolist() == [0, 3, 4, 6]
    assert found.column.tolist() == [0, 2, 3, 0, 0, 1]
    assert (found.noisy >> 16).tolist() == [5, 9, 1, 0, 7, 7]
    assert found.noisy[4] != found.noisy[5], "chance decides between equals"
