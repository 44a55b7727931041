"""Vector instructions beside their twins, for values up to the largest and wherever they lie."""

import numpy as np
import pytest
from instruction_twins import TWINS
from numba import njit

from inftda.optimize import instructions

EXTREME = [-(1 << 63), -(1 << 62), -1, 0, 1, (1 << 62), (1 << 63) - 1]


@njit
def call_larger(x, at, level):
    return instructions.larger(x, at, level)


@njit
def call_sum_larger(x, at, level):
    return instructions.sum_larger(x, at, level)


@njit
def call_shift_apart(x, at, lower, upper, up, down):  # noqa: PLR0917 - as the instruction
    return instructions.shift_apart(x, at, lower, upper, up, down)


@njit
def call_put_places(bits, add, out, at):
    return instructions.put_places(bits, add, out, at)


@njit
def call_bit_length(number):
    return instructions.bit_length(number)


def vectors():
    """Small values with many equal ones, large ones, and the largest there are."""
    random = np.random.default_rng(5)
    for low, high in ((-3, 4), (-(1 << 55), 1 << 55)):
        for _ in range(60):
            x = random.integers(low, high, 20)
            yield x, int(random.integers(0, 13)), random.choice(x)
    for _ in range(60):
        yield random.choice(EXTREME, 20), int(random.integers(0, 13)), random.choice(EXTREME)


def test_larger_is_its_twin():
    for x, at, level in vectors():
        assert call_larger(x, at, level) == TWINS["larger"](x, at, level)


def test_sum_larger_is_its_twin():
    for x, at, level in vectors():
        number, total = TWINS["sum_larger"](x, at, level)
        wrapped = (total + (1 << 63)) % (1 << 64) - (1 << 63)
        assert call_sum_larger(x, at, level) == (number, wrapped)


@pytest.mark.parametrize(("up", "down"), [(2, -1), (-3, 1), (0, 0), (-(1 << 40), 1 << 40)])
def test_shift_apart_is_its_twin_and_leaves_the_others_alone(up, down):
    for x, at, level in vectors():
        if abs(int(level)) > 1 << 60:
            continue  # sums of values and levels do not wrap (docs/proofs/intopt.md)
        for lower, upper in ((level, level), (level - 1, level), (level - 2, level + 2)):
            expected = np.clip(x, -(1 << 62), 1 << 62)
            found = expected.copy()
            bits = TWINS["shift_apart"](expected, at, lower, upper, up, down)
            assert call_shift_apart(found, at, lower, upper, up, down) == bits
            assert (found == expected).all()


def test_put_places_is_its_twin_for_every_byte():
    for bits in range(256):
        for at, add in ((0, 0), (3, 7), (12, 1 << 30)):
            expected, found = np.full(20, -7, np.int32), np.full(20, -7, np.int32)
            end = TWINS["put_places"](bits, add, expected, at)
            assert call_put_places(np.uint64(bits), np.int32(add), found, np.uint64(at)) == end
            assert (found == expected).all()


@pytest.mark.parametrize("number", [0, 1, 2, 3, 4, 255, 256, (1 << 62) - 1, 1 << 62])
def test_bit_length_is_that_of_python(number):
    assert call_bit_length(number) == number.bit_length()
