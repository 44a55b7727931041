"""What goes into an optimiser from Python."""

import numpy as np
import pytest

from inftda.errors import OptimizeError
from inftda.optimize.inputs import as_total, as_vector
from inftda.optimize.intopt import intopt


@pytest.mark.parametrize(
    "x", [[3, -1, 2], (3, -1, 2), np.array([3, -1, 2], np.int8), np.array([[3, -1, 2]])[0]]
)
def test_any_vector_of_integers_is_taken(x):
    vector = as_vector(x)
    assert vector.dtype == np.int64
    assert vector.tolist() == [3, -1, 2]


def test_strided_and_unsigned_vectors_are_taken():
    strided = np.arange(12)[::3]
    assert as_vector(strided).tolist() == [0, 3, 6, 9]
    assert as_vector(np.array([3, 5], np.uint64)).tolist() == [3, 5]
    assert intopt(strided, 18).tolist() == [0, 3, 6, 9]


def test_the_vector_is_a_copy():
    x = np.array([3, -1, 2], np.int64)
    as_vector(x)[0] = 7
    assert x[0] == 3


def test_an_empty_vector_is_taken():
    assert as_vector([]).dtype == np.int64
    assert intopt([], 0).tolist() == []


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([0.5, 1], "got float64"),
        ([True, False], "got bool"),
        (["1", "2"], "must hold integers"),
        ([[1, 2], [3, 4]], "one dimension, got 2"),
        ([[1, 2], [3]], "vector of integers"),
        (7, "one dimension, got 0"),
        ([1 << 64, 1], "below 2\\^63"),
        ([-(1 << 70), 1], "below 2\\^63"),
        (np.array([1 << 63], np.uint64), "below 2\\^63"),
        ([None, 1], "must hold integers"),
    ],
)
def test_anything_else_is_refused(x, message):
    with pytest.raises(OptimizeError, match=message):
        as_vector(x)


@pytest.mark.parametrize("total", [0, 5, np.int32(5), np.uint64(5)])
def test_any_whole_total_is_taken(total):
    assert as_total(total) == int(total)


@pytest.mark.parametrize(
    ("total", "message"),
    [
        (-1, "got -1"),
        (1 << 63, "0..2\\^63-1"),
        (5.0, "got a float"),
        ("5", "got a str"),
        (None, "got a NoneType"),
    ],
)
def test_any_other_total_is_refused(total, message):
    with pytest.raises(OptimizeError, match=message):
        as_total(total)
