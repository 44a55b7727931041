"""The exact integer projection on the simplex against an exhaustive search."""

from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare

from inftda.lab.baselines.euclidean import euclidean_kernel, euclidean_segment
from inftda.optimize.reference import euclidean_optimum, exhaustive
from inftda.optimize.selection import EMPTY, LIMIT, NEGATIVE, OK, TOO_LARGE
from optimize_vectors import run, sparse_vectors, squared, vectors, words

P_FALSE_ALARM = 1e-7


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6])
def test_the_projection_is_one_of_the_nearest_vectors(size):
    for number, (x, total) in enumerate(vectors(1500, size, seed=7)):
        status, y = run(euclidean_kernel, x, total, number)
        assert status == OK
        assert tuple(y.tolist()) in exhaustive(x, total, is_euclidean=True)[1]


@pytest.mark.parametrize(("size", "sigma"), [(10, 2), (30, 20), (100, 5)])
def test_longer_vectors_have_the_least_distance(size, sigma):
    for number, (x, asked) in enumerate(sparse_vectors(25, size, sigma, seed=8)):
        total = min(asked, 300)
        status, y = run(euclidean_kernel, x, total, number)
        assert status == OK
        assert y.sum() == total
        assert squared(x, y) == euclidean_optimum(x, total)


def test_every_nearest_vector_is_equally_likely():
    # Lowered by 3; the 18 - 14 missing units go to four of the five elements above that.
    x = np.array([6, 6, 6, -2, 6, 1, 5], np.int64)
    counts = Counter(tuple(run(euclidean_kernel, x, 18, word)[1].tolist()) for word in words(9000))
    assert set(counts) == set(exhaustive(x, 18, is_euclidean=True)[1])
    assert len(counts) == 5
    assert chisquare(list(counts.values())).pvalue > P_FALSE_ALARM
    counts[4, 4, 4, 0, 4, 0, 2] += 1000  # one in ten decided by size
    assert len(counts) == 5
    assert chisquare(list(counts.values())).pvalue < P_FALSE_ALARM


def test_the_kernel_works_in_place_and_on_a_segment():
    buffer = np.array([100, 4, -3, 9, 0, 2, -100], np.int64)
    inner = buffer[1:6].copy()
    _, alone = run(euclidean_kernel, inner, 8, 5)
    assert inner.tolist() == [4, -3, 9, 0, 2]
    assert euclidean_segment(buffer, 1, 6, 8, np.uint64(5)) == OK
    assert buffer.tolist() == [100, *alone, -100]
    assert euclidean_kernel(inner, 8, np.uint64(5), inner) == OK
    assert (inner == alone).all()


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
    assert run(euclidean_kernel, np.array(x, np.int64), total, 0)[0] == status


@pytest.mark.parametrize("size", [2, 3, 7])
def test_the_largest_values_accepted_give_exact_sums(size):
    bound = LIMIT // size
    generator = np.random.default_rng(size)
    for number in range(200):
        x = generator.choice([-bound, bound, 0, 1, bound // 2], size)
        total = int(generator.choice([1, 2, bound, LIMIT - 1, LIMIT]))
        status, y = run(euclidean_kernel, x, total, number)
        assert status == OK
        assert sum(y.tolist()) == total
        assert y.min() >= 0
        # Elements that are not 0 are all lowered (or raised) by the same, up to one unit.
        shift = [int(b) - int(a) for a, b in zip(x, y, strict=True) if b > 0]
        assert max(shift) - min(shift) <= 1
