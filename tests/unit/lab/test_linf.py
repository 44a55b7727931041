"""A random vertex of the Chebyshev-nearest vectors."""

from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare

from inftda.lab.baselines import linf
from inftda.lab.baselines.linf import linf_kernel, linf_segment
from inftda.noise.entropy import SeededSource
from inftda.optimize.chebyshev import intopt
from inftda.optimize.reference import chebyshev_optimum, exhaustive
from inftda.optimize.selection import EMPTY, LIMIT, NEGATIVE, OK, TOO_LARGE
from optimize_vectors import chebyshev, run, sparse_vectors, vectors, words

P_FALSE_ALARM = 1e-7


def is_vertex(x, y, alpha):
    """Whether all elements but at most one lie at an end of what alpha allows."""
    inside = (y != np.maximum(0, x - alpha)) & (y != x + alpha)
    return np.count_nonzero(inside) <= 1


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6])
def test_the_result_is_an_optimal_vertex(size):
    for number, (x, total) in enumerate(vectors(1500, size, seed=9)):
        status, y = run(linf_kernel, x, total, number)
        assert status == OK
        alpha, best = exhaustive(x, total)
        assert tuple(y.tolist()) in best
        assert is_vertex(x, y, alpha)


@pytest.mark.parametrize(("size", "sigma"), [(10, 2), (100, 20), (3000, 300)])
def test_longer_vectors_have_the_least_distance(size, sigma):
    for number, (x, total) in enumerate(sparse_vectors(20, size, sigma, seed=10)):
        status, y = run(linf_kernel, x, total, number)
        assert status == OK
        assert y.sum() == total
        assert chebyshev(x, y) == chebyshev_optimum(x, total)
        assert is_vertex(x, y, chebyshev(x, y))


def test_equal_elements_are_raised_in_every_order_alike():
    # alpha = 2, so 0..4 each, and 6 to give: one gets 4, another 2; 12 ways.
    x = np.array([2, 2, 2, 2, -2], np.int64)
    counts = Counter(tuple(run(linf_kernel, x, 6, word)[1].tolist()) for word in words(9000))
    assert len(counts) == 12
    assert chisquare(list(counts.values())).pvalue > P_FALSE_ALARM
    counts[4, 2, 0, 0, 0] += 1000  # one in ten decided by position
    assert len(counts) == 12
    assert chisquare(list(counts.values())).pvalue < P_FALSE_ALARM


def test_it_keeps_more_false_positives_than_intopt():
    kept = Counter()
    for number, (x, total) in enumerate(sparse_vectors(100, 40, 5, seed=11)):
        kept["linf"] += np.count_nonzero(run(linf_kernel, x, total, number)[1])
        kept["intopt"] += np.count_nonzero(intopt(x, total, source=SeededSource(number)))
    assert kept["intopt"] < 0.9 * kept["linf"]


def test_equal_keys_do_not_spoil_the_sum(monkeypatch):
    for name in ("linf_segment", "_choose_vertex", "_gaps_above"):
        function = getattr(linf, name)
        monkeypatch.setattr(linf, name, getattr(function, "py_func", function))
    monkeypatch.setattr(linf, "_key", lambda seed, i: int(seed) + i // 3)
    x = np.array([2, 2, 2, 2, -2, 9, 1, 1, 4], np.int64)
    for total in range(1, 60):
        y = x.copy()
        assert linf.linf_segment(y, 0, 9, total, np.uint64(5)) == OK
        assert y.sum() == total
        assert y.min() >= 0
        assert chebyshev(x, y) == chebyshev_optimum(x, total)


def test_the_kernel_works_in_place_and_leaves_other_input_alone():
    x = np.array([4, -3, 9, 0, 2], np.int64)
    _, y = run(linf_kernel, x, 8, 5)
    assert x.tolist() == [4, -3, 9, 0, 2]
    assert linf_kernel(x, 8, np.uint64(5), x) == OK
    assert (x == y).all()


def test_a_segment_leaves_its_neighbours_alone():
    buffer = np.array([100, 4, -3, 9, 0, 2, -100], np.int64)
    assert linf_segment(buffer, 1, 6, 8, np.uint64(5)) == OK
    assert (buffer[0], buffer[-1], buffer[1:6].sum()) == (100, -100, 8)


@pytest.mark.parametrize(
    ("x", "total", "status"),
    [
        ([], 0, OK),
        ([], 1, EMPTY),
        ([1, 2], -1, NEGATIVE),
        ([1 << 60] * 3, 5, TOO_LARGE),
        ([-(1 << 63), 1], 5, TOO_LARGE),
        ([1, 2], LIMIT + 1, TOO_LARGE),
        ([1 << 62], 7, OK),
    ],
)
def test_what_cannot_be_summed_is_refused_by_status(x, total, status):
    assert run(linf_kernel, np.array(x, np.int64), total, 0)[0] == status


@pytest.mark.parametrize("size", [2, 3, 7])
def test_the_largest_values_accepted_give_exact_results(size):
    bound = LIMIT // size
    generator = np.random.default_rng(size)
    for number in range(150):
        x = generator.choice([-bound, bound, 0, 1, bound // 2], size)
        total = int(generator.choice([1, 2, bound, LIMIT - 1, LIMIT]))
        status, y = run(linf_kernel, x, total, number)
        assert status == OK
        assert sum(y.tolist()) == total
        assert y.min() >= 0
        assert chebyshev(x, y) == chebyshev_optimum(x, total)
