"""IntOpt: worked examples, its seed, and what it refuses."""

import numpy as np
import pytest

from inftda import selftest
from inftda.errors import OptimizeError
from inftda.mechanism import intopt as module
from inftda.mechanism.intopt import Vectors, intopt, optimize, words_of
from inftda.mechanism.reference import shares
from inftda.util.threads import ThreadPool
from slow_optimizers import algorithm_2, chebyshev, chebyshev_optimum, vectors


@pytest.mark.parametrize(
    ("x", "total", "expected"),
    [
        ([7], 3, [3]),
        ([-7], 3, [3]),
        ([5, 2], 0, [0, 0]),
        ([-5, -2, -9], 0, [0, 0, 0]),
        ([-5, -1, -9], 4, [0, 4, 0]),
        ([-5, -1, -9], 12, [4, 8, 0]),
        ([12, -3, 2, 0], 10, [10, 0, 0, 0]),
        ([10, 6, 3], 19, [10, 6, 3]),
        ([10, 6, 3], 18, [10, 6, 2]),
        ([10, 6, 3], 20, [11, 7, 2]),
        ([1000, 50, 45, -2], 1000, [969, 18, 13, 0]),
    ],
)
def test_worked_examples(x, total, expected):
    assert shares(x, algorithm_2(x, total)) == shares(x, expected)
    assert intopt(x, total).tolist() == expected


@pytest.mark.parametrize("size", [1, 2, 3, 7, 40])
def test_it_gives_what_the_paper_s_algorithm_gives(size):
    for x, total in vectors(150, size, 3):
        y = intopt(x, total).tolist()
        expected = algorithm_2(x.tolist(), total)
        assert shares(x, y) == shares(x, expected)
        assert chebyshev(x, y) == chebyshev_optimum(x.tolist(), total)


def test_a_seed_decides_between_equal_elements_and_nothing_else():
    x, total = [4, 4, 4, 4, 9], 12
    found = {tuple(intopt(x, total, seed=bytes([k] * 16)).tolist()) for k in range(40)}
    assert len(found) > 2
    assert len({tuple(sorted(y)) for y in found}) == 1
    same = {tuple(intopt(x, total, seed=bytes(16)).tolist()) for _ in range(5)}
    assert len(same) == 1
    assert len({tuple(intopt([9, 4, 1, 7], 12).tolist()) for _ in range(20)}) == 1


def test_equals_are_decided_anew_below_each_parent_and_at_each_level():
    n = 200
    vectors = Vectors.of(
        np.full(2 * n, 3), 2 * np.arange(n + 1), np.full(n, 5), np.arange(n, dtype=np.int64)
    )

    def first_has_more(level):
        found = vectors.candidates(level, words_of(bytes(range(16))))
        value = optimize(found, ThreadPool(1))
        return value[::2] > value[1::2]

    one, other = first_has_more(4), first_has_more(5)
    assert n / 4 < one.sum() < 3 * n / 4
    assert n / 4 < (one != other).sum() < 3 * n / 4


def test_many_vectors_at_once_are_each_optimised_by_itself():
    random = np.random.default_rng(1)
    sizes = random.choice([0, 2, 3, 9, 50], 200)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    x, total = random.integers(-20, 30, offsets[-1]), random.integers(1, 200, 200)
    key, seed = random.integers(0, 1 << 60, 200), bytes(range(16))
    found = Vectors.of(x, offsets, total, key).candidates(5, words_of(seed))
    value = optimize(found, ThreadPool(3))
    for i, size in enumerate(sizes):
        here = slice(found.offsets[i], found.offsets[i + 1])
        y = np.zeros(max(size, 1), np.int64)
        y[found.column[here]] = value[here]
        if size == 0:
            assert y.tolist() == [total[i]]
            continue
        part = x[offsets[i] : offsets[i + 1]]
        assert shares(part, y) == shares(part, algorithm_2(part.tolist(), int(total[i])))
        alone = Vectors.of(part, np.array([0, size]), total[i : i + 1], key[i : i + 1])
        again = alone.candidates(5, words_of(seed))
        assert optimize(again, ThreadPool(1)).tolist() == value[here].tolist()


@pytest.mark.parametrize(
    ("x", "total", "said"),
    [
        ([[1, 2], [3, 4]], 3, "one dimension, got 2"),
        ([1.5, 2.0], 3, "integers"),
        (["a"], 3, "integers"),
        ([2**70], 3, "integers"),
        ([[1], [2, 3]], 3, "vector of integers"),
        (np.array([2**63], np.uint64), 3, "scale them down"),
        ([], 3, "must have elements"),
        ([1, 2], -1, "total must be"),
        ([1, 2], 1.0, "must be an integer, got a float"),
        ([1, 2], 2**44 + 1, "total must be"),
        ([1 << 45, 0], 1, "too large"),
        ([1 << 43] * 200_000, 1, "too large"),
    ],
)
def test_what_cannot_be_optimised_is_refused(x, total, said):
    with pytest.raises(OptimizeError, match=said):
        intopt(x, total)


def test_a_wrong_optimiser_is_caught_by_the_self_test(monkeypatch):
    assert all(check.ok for check in selftest.self_check_optimizer())
    right = module.intopt

    def wrong(x, total, **how):
        y = right(x, total, **how)
        return np.sort(y)

    monkeypatch.setattr(selftest, "intopt", wrong)
    assert not all(check.ok for check in selftest.self_check_optimizer())
