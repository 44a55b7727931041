"""IntOpt alone: worked examples, its order, what it writes, and fair ties."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import chi2_contingency, chisquare

from inftda.errors import OptimizeError
from inftda.optimize.intopt import find_positive, intopt, intopt_into
from inftda.optimize.reference import shares
from inftda.optimize.selection import OK
from optimize_vectors import sparse_vectors, words
from optimizers import OPTIMIZERS
from slow_optimizers import algorithm_2

P_FALSE_ALARM = 1e-7


@pytest.mark.parametrize(
    ("x", "total", "ascending", "descending"),
    [
        ([7], 3, [3], [3]),
        ([-7], 3, [3], [3]),
        ([5, 2], 0, [0, 0], [0, 0]),
        ([-5, -2, -9], 0, [0, 0, 0], [0, 0, 0]),
        ([-5, -1, -9], 4, [0, 4, 0], [2, 2, 0]),
        ([-5, -1, -9], 12, [4, 8, 0], [4, 8, 0]),
        ([12, -3, 2, 0], 10, [10, 0, 0, 0], [9, 0, 1, 0]),
        ([10, 6, 3], 19, [10, 6, 3], [10, 6, 3]),
        ([10, 6, 3], 18, [10, 6, 2], [9, 6, 3]),
        ([10, 6, 3], 20, [11, 7, 2], [9, 7, 4]),
        ([1000, 50, 45, -2], 1000, [969, 18, 13, 0], [968, 18, 14, 0]),
    ],
)
def test_worked_examples(x, total, ascending, descending):
    assert shares(x, algorithm_2(x, total)) == shares(x, ascending)
    assert intopt(x, total).tolist() == ascending
    assert intopt(x, total, order="descending").tolist() == descending


def test_ascending_order_keeps_fewer_elements_than_descending():
    kept = {"ascending": 0, "descending": 0}
    for x, total in sparse_vectors(300, 30, 5, seed=6):
        for order in kept:
            kept[order] += np.count_nonzero(intopt(x, total, order=order))
    assert kept["ascending"] < 0.8 * kept["descending"]


def test_an_unknown_order_is_refused():
    with pytest.raises(OptimizeError, match="order must be 'ascending' or 'descending', got 'up'"):
        intopt([1], 1, order="up")


@pytest.mark.parametrize("name", ["intopt", "intopt-descending"])
@pytest.mark.parametrize("room", [0, 1, 100])
def test_only_positive_elements_are_written_and_nothing_after_the_vector(name, room):
    for size in (1, 2, 3, 5, 63, 130):
        for number, (x, total) in enumerate(sparse_vectors(30, size, 3, seed=15)):
            _, y = OPTIMIZERS[name].run(x, total, number)
            index, value = np.full(size + room, -7, np.int32), np.full(size + room, -7)
            is_descending = name == "intopt-descending"
            n = find_positive(x, total, np.uint64(number), is_descending, index, value)
            assert index[:n].tolist() == np.flatnonzero(y).tolist()
            assert value[:n].tolist() == y[y > 0].tolist()
            assert (index[size:] == -7).all()
            assert (value[size:] == -7).all()


# Ties


def outcomes(x, total, n, *, is_descending=False, label=0):
    """How often each result came out of n seeds."""
    x = np.array(x, np.int64)
    counts = Counter()
    out = np.empty_like(x)
    for seed in words(n, label):
        assert intopt_into(x, total, seed, is_descending, out) == OK
        counts[tuple(out.tolist())] += 1
    return counts


#: Three elements get a share of [3] * 6: two of them all, one a part; 60 ways.
WITH_PART = ([-5, 3, 3, 3, 3, 3, 3], 7)
#: Four of eight get one more; 70 ways.
WITHOUT_PART = ([5] * 8, 28)
#: Both of a pair, one gets the odd unit.
PAIR = ([4, 4], 7)
TIES = [(WITH_PART, 60), (WITHOUT_PART, 70), (PAIR, 2)]
N_SEEDS = 20_000


@pytest.mark.parametrize("is_descending", [False, True])
@pytest.mark.parametrize(("problem", "ways"), TIES)
def test_every_way_to_break_ties_is_equally_likely(problem, ways, is_descending):
    counts = outcomes(*problem, N_SEEDS, is_descending=is_descending)
    assert len(counts) == ways
    assert chisquare(list(counts.values())).pvalue > P_FALSE_ALARM


@pytest.mark.parametrize(("problem", "ways"), TIES)
def test_the_test_of_ties_sees_one_result_in_ten_decided_by_position(problem, ways):
    counts = outcomes(*problem, N_SEEDS * 9 // 10)
    counts[tuple(algorithm_2(*problem))] += N_SEEDS // 10
    assert len(counts) == ways
    assert chisquare(list(counts.values())).pvalue < P_FALSE_ALARM


def test_ties_far_apart_in_a_long_vector_share_alike():
    indices = [0, 6, 7, 8, 9, 15, 16, 31, 38, 39]
    x = np.full(40, -9, np.int64)
    x[indices] = 4
    wins = np.zeros(40, np.int64)
    out = np.empty_like(x)
    for seed in words(20_000):
        assert intopt_into(x, 33, seed, False, out) == OK
        wins += out > 0
    assert wins.sum() == wins[indices].sum() == 3 * 20_000
    # Three of ten are drawn without replacement, so counts vary less than chi-square has it.
    assert chisquare(wins[indices]).pvalue > P_FALSE_ALARM
    assert wins[indices].std() > 10


def test_permuted_input_gives_the_permuted_distribution():
    x, total = [-5, 3, 3, 3, 1], 7
    n = 3000
    base = outcomes(x, total, n)
    results = sorted(base)
    for label, order in enumerate(list(permutations(range(5)))[::17], start=1):
        permuted = outcomes([x[i] for i in order], total, n, label=label)
        back = Counter()
        for y, count in permuted.items():
            back[tuple(y[order.index(i)] for i in range(5))] += count
        assert sorted(back) == results
        table = [[base[y] for y in results], [back[y] for y in results]]
        assert chi2_contingency(table).pvalue > P_FALSE_ALARM
