"""IntOpt in closed form against the paper's algorithms, and its treatment of ties."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import chi2_contingency, chisquare

from inftda.errors import OptimizeError
from inftda.noise.entropy import SeededSource
from inftda.optimize.chebyshev import chebyshev_kernel, chebyshev_survivors, intopt
from inftda.optimize.reference import algorithm_2, algorithm_3, exhaustive, shares
from inftda.optimize.selection import EMPTY, GATHER_ROOM, LIMIT, NEGATIVE, OK, TOO_LARGE
from optimize_vectors import chebyshev, run, sparse_vectors, vectors, words

P_FALSE_ALARM = 1e-7


@pytest.mark.parametrize("is_descending", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6])
def test_the_closed_form_equals_both_algorithms_and_the_exhaustive_search(size, is_descending):
    for number, (x, total) in enumerate(vectors(1000, size, seed=3)):
        status, y = run(chebyshev_kernel, x, total, number, is_descending)
        assert status == OK
        assert y.sum() == total
        assert y.min() >= 0
        expected = algorithm_2(x, total, is_descending=is_descending)
        assert shares(x, y) == shares(x, expected)
        assert shares(x, y) == shares(x, algorithm_3(x, total, is_descending=is_descending))
        assert chebyshev(x, y) == exhaustive(x, total)[0]


@pytest.mark.parametrize("is_descending", [False, True])
@pytest.mark.parametrize(
    ("n", "size"), [(8000, 2), (6000, 3), (4000, 5), (2000, 9), (600, 20), (100, 60)]
)
@pytest.mark.parametrize("sigma", [0.7, 2, 30])
def test_the_closed_form_equals_algorithm_3_on_noisy_sparse_vectors(n, size, sigma, is_descending):
    for number, (x, total) in enumerate(sparse_vectors(n // 4, size, sigma, seed=4)):
        _, y = run(chebyshev_kernel, x, total, number, is_descending)
        assert shares(x, y) == shares(x, algorithm_3(x, total, is_descending=is_descending))


@pytest.mark.parametrize("is_descending", [False, True])
@pytest.mark.parametrize(("size", "sigma"), [(1000, 2), (3000, 20), (20_000, 300)])
def test_long_vectors_get_the_exact_sum_with_few_units_moved(size, sigma, is_descending):
    for number, (x, total) in enumerate(sparse_vectors(3, size, sigma, seed=5)):
        status, y = run(chebyshev_kernel, x, total, number, is_descending)
        assert status == OK
        assert y.sum() == total
        assert y.min() >= 0
        lift = -((x.sum() - total) // size)
        drop = max(abs(lift), -x.min())
        if np.maximum(x - drop, 0).sum() <= total:  # the least possible distance, then
            assert np.abs(y - x).max() <= drop


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


def test_the_kernel_works_in_place_and_leaves_other_input_alone():
    x = np.array([4, -3, 9, 0, 2, 2, -1], np.int64)
    before = x.copy()
    _, y = run(chebyshev_kernel, x, 8, 5, False)
    assert (x == before).all()
    assert chebyshev_kernel(x, 8, np.uint64(5), False, x) == OK
    assert (x == y).all()


@pytest.mark.parametrize("is_descending", [False, True])
@pytest.mark.parametrize("before", [0, 1, 63, 64, 200])
def test_a_stretch_is_optimised_as_if_it_were_alone(before, is_descending):
    """Wherever it lies, and although elements are looked at eight at a time."""
    for size in (3, 5, 63, 64, 65, 130):
        for number, (x, total) in enumerate(sparse_vectors(30, size, 3, seed=15)):
            _, alone = run(chebyshev_kernel, x, total, number, is_descending)
            buffer = np.concatenate([np.full(before, 10**6), x, [10**6]])
            place = np.full(7 + 2 * (size + GATHER_ROOM), -7, np.int32)
            value = np.full(7 + size + GATHER_ROOM, -7)
            end = chebyshev_survivors(
                buffer,
                before,
                before + size,
                total,
                np.uint64(number),
                is_descending,
                place,
                value,
                7,
            )
            assert place[7:end].tolist() == np.flatnonzero(alone).tolist()
            assert value[7:end].tolist() == alone[alone > 0].tolist()
            assert (buffer[:before] == 10**6).all()
            assert buffer[-1] == 10**6
            assert (place[:7] == -7).all()


# Too large, negative, empty


@pytest.mark.parametrize(
    ("x", "total", "status"),
    [
        ([], 0, OK),
        ([], 1, EMPTY),
        ([1, 2], -1, NEGATIVE),
        ([], -1, NEGATIVE),
        ([1 << 60, 1 << 60, 1 << 60], 5, TOO_LARGE),
        ([-(1 << 60), 1 << 60, 3], 5, TOO_LARGE),
        ([(1 << 63) - 1, 1], 5, TOO_LARGE),
        ([-(1 << 63), 1], 5, TOO_LARGE),
        ([-(1 << 63), 1, 2], 5, TOO_LARGE),
        ([1, 2], LIMIT + 1, TOO_LARGE),
        ([1, 2, 3], (1 << 63) - 1, TOO_LARGE),
        ([(1 << 63) - 1], 7, OK),
        ([(1 << 63) - 1] * 4, 0, OK),
    ],
)
def test_what_cannot_be_summed_is_refused_by_status(x, total, status):
    assert run(chebyshev_kernel, np.array(x, np.int64), total, 0, False)[0] == status


@pytest.mark.parametrize("is_descending", [False, True])
@pytest.mark.parametrize("size", [2, 3, 4, 7])
def test_the_largest_values_accepted_give_exact_results(size, is_descending):
    bound = LIMIT // size
    generator = np.random.default_rng(size)
    for number in range(150):
        choice = [-bound, bound, -bound + 1, bound - 1, 0, 1, -1, bound // 2, -bound // 3]
        x = generator.choice(choice, size)
        total = int(generator.choice([1, 2, bound, LIMIT // 2, LIMIT - 1, LIMIT]))
        status, y = run(chebyshev_kernel, x, total, number, is_descending)
        assert status == OK
        assert sum(y.tolist()) == total
        assert shares(x, y) == shares(x, algorithm_3(x, total, is_descending=is_descending))


def test_one_more_than_the_largest_value_is_refused():
    x = np.array([LIMIT // 3, 5, 5], np.int64)
    assert run(chebyshev_kernel, x, 5, 0, False)[0] == OK
    x[0] += 1
    assert run(chebyshev_kernel, x, 5, 0, False)[0] == TOO_LARGE
    x[0] = -(LIMIT // 3) - 1
    assert run(chebyshev_kernel, x, 5, 0, False)[0] == TOO_LARGE


@pytest.mark.parametrize(
    ("x", "total", "message"),
    [
        ([1 << 60] * 3, 5, "2\\^61"),
        ([], 5, "got none"),
        ([1, 2], -5, "total must be in"),
    ],
)
def test_the_python_function_raises_a_clear_error(x, total, message):
    with pytest.raises(OptimizeError, match=message):
        intopt(x, total)


def test_an_unknown_order_is_refused():
    with pytest.raises(OptimizeError, match="order must be 'ascending' or 'descending', got 'up'"):
        intopt([1], 1, order="up")


# Ties


def outcomes(x, total, n, *, is_descending=False, label=0):
    """How often each result came out of n seeds."""
    x = np.array(x, np.int64)
    counts = Counter()
    out = np.empty_like(x)
    for seed in words(n, label):
        assert chebyshev_kernel(x, total, seed, is_descending, out) == OK
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
    places = [0, 6, 7, 8, 9, 15, 16, 31, 38, 39]
    x = np.full(40, -9, np.int64)
    x[places] = 4
    wins = np.zeros(40, np.int64)
    out = np.empty_like(x)
    for seed in words(20_000):
        assert chebyshev_kernel(x, 33, seed, False, out) == OK
        wins += out > 0
    assert wins.sum() == wins[places].sum() == 3 * 20_000
    # Three of ten are drawn without replacement, so counts vary less than chi-square has it.
    assert chisquare(wins[places]).pvalue > P_FALSE_ALARM
    assert wins[places].std() > 10


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


def test_the_same_seed_gives_the_same_result_and_another_one_another():
    x = [5] * 30
    first = intopt(x, 100, source=SeededSource(1))
    assert (first == intopt(x, 100, source=SeededSource(1))).all()
    assert (first != intopt(x, 100, source=SeededSource(2))).any()


def test_secure_bits_are_used_unless_a_source_is_given():
    results = {tuple(intopt([5] * 30, 100)) for _ in range(5)}
    assert len(results) == 5
