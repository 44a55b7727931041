"""Arrays that come in parts."""

import numpy as np
import pytest

from inftda.growing import Growing


def test_parts_are_joined_in_the_order_they_come():
    growing = Growing()
    parts = np.split(np.random.default_rng(0).integers(0, 99, 5_000), [0, 7, 7, 900, 4_999])
    for part in parts:
        growing.add(part)
    assert np.array_equal(growing.cut(), np.concatenate(parts))


@pytest.mark.parametrize("largest", [2**31 - 1, -(2**31)])
def test_numbers_that_fit_are_kept_in_32_bits(largest):
    growing = Growing()
    growing.add(np.array([largest]))
    assert growing.cut().dtype == np.int32


@pytest.mark.parametrize("too_large", [2**31, -(2**31) - 1])
def test_a_number_that_does_not_fit_makes_all_64_bits(too_large):
    growing = Growing()
    growing.add(np.array([1, 2]))
    growing.add(np.array([too_large]))
    growing.add(np.array([3]))
    assert growing.cut().tolist() == [1, 2, too_large, 3]


def test_what_was_cut_stays_as_it_is():
    growing = Growing()
    growing.add(np.arange(5))
    cut = growing.cut()
    growing.add(np.arange(10_000))
    assert cut.tolist() == [0, 1, 2, 3, 4]
    assert len(growing.cut()) == 10_000


def test_without_parts_there_is_nothing():
    assert Growing(np.int64).cut().dtype == np.int64
