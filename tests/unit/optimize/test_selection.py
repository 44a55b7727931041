"""The kernels that the optimisers share."""

import numpy as np
import pytest
from scipy.stats import chisquare

from inftda.optimize.selection import (
    LIMIT,
    above,
    ceil_div,
    describe,
    gather,
    is_too_large,
    random_below,
    random_word,
    water_level,
)
from optimize_vectors import sparse_vectors, words


@pytest.mark.parametrize("divisor", [1, 2, 3, 10, 1 << 40])
def test_ceil_div_rounds_up_for_either_sign(divisor):
    for number in (0, 1, 2, 9, 10, 11, (1 << 61) + 1):
        assert ceil_div(number, divisor) == -(-number // divisor)
        assert ceil_div(-number, divisor) == -(number // divisor)


def test_describe_and_above_of_a_slice():
    x = np.array([99, 4, -3, 4, 0, -99], np.int64)[1:5]
    assert describe(x) == (5, -3, 4)
    assert above(x, 0) == (2, 8)
    assert above(x, 4) == (0, 0)
    assert above(x, -4) == (4, 5)


@pytest.mark.parametrize("size", [0, 1, 2, 9, 64, 500])
@pytest.mark.parametrize("level", [-100, -1, 0, 2, 100])
def test_gather_writes_index_and_value_in_order_and_nothing_beyond(size, level):
    x = np.random.default_rng(size).integers(-4, 5, size)
    expected = np.flatnonzero(x > level)
    index, value = np.full(size + 3, -7, np.int32), np.full(size + 3, -7)
    n = gather(x, level, index, value)
    assert index[:n].tolist() == expected.tolist()
    assert value[:n].tolist() == x[expected].tolist()
    assert (index[size:] == -7).all()
    assert (value[size:] == -7).all()


def test_the_water_level_is_the_least_at_which_the_sum_fits():
    for x, total in sparse_vectors(100, 12, 5, seed=14):
        start = -total
        level, over = water_level(x, total, start)
        assert over == np.maximum(x - level, 0).sum() <= total
        assert level == start or np.maximum(x - level + 1, 0).sum() > total


@pytest.mark.parametrize("size", [1, 2, 3, 1000, (1 << 20) + 1, 1 << 30])
def test_vectors_are_too_large_just_above_the_limit(size):
    bound = LIMIT // size
    assert not is_too_large(size, -bound, bound, LIMIT)
    assert is_too_large(size, -bound - 1, bound, LIMIT)
    assert is_too_large(size, -bound, bound + 1, LIMIT)
    assert is_too_large(size, -bound, bound, LIMIT + 1)


def test_random_words_are_those_of_splitmix64():
    # First outputs of the published generator for the seed 1234567.
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [random_word(np.uint64(1234567), n) for n in (1, 2, 3)] == expected


def test_random_below_stays_below_for_every_word():
    for bound in (1, 2, 3, 7, 1 << 20, (1 << 31) + 1):
        assert random_below(np.uint64(0), bound) == 0
        assert random_below(np.uint64((1 << 64) - 1), bound) == bound - 1


def test_random_below_is_uniform():
    draws = [random_below(word, 7) for word in words(20_000)]
    assert chisquare(np.bincount(draws)).pvalue > 1e-7
    assert chisquare(np.bincount(draws) + np.array([500, 0, 0, 0, 0, 0, 0])).pvalue < 1e-7
