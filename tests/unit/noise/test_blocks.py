"""Blocks: pairs of block and element kept or dropped exactly."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from scripted_bits import ScriptedBits

from inftda.noise.bits import SeededSource
from inftda.noise.blocks import DROPPED, KEPT, OPEN, Blocks, keep_pairs_kernel
from inftda.noise.gaussian import DiscreteGaussian
from inftda.noise.ladder import gaussian_ladder, laplace_ladder
from inftda.noise.laplace import DiscreteLaplace
from inftda.noise.table import WordTable

SIGMA2, BITS = Fraction(121, 2), 3  # so narrow that many pairs are dropped


def narrow_gaussian():
    size = 1 << BITS
    table = WordTable(partial(gaussian_ladder, SIGMA2 / size**2, is_half=True), 32)
    return Blocks(table, BITS, (size / SIGMA2, 1 / (2 * SIGMA2), Fraction(0)))


def gap(block, element):
    """The difference in log-probability between an element and the first of its block."""
    x, start = (block << BITS) + element, block << BITS
    return (x * x - start * start) / (2 * SIGMA2)


def test_slopes_give_the_gap_in_log_probability():
    for make, log_weight in (
        (DiscreteGaussian(10**12)._method, lambda x: Fraction(x * x, 2 * 10**12)),
        (DiscreteLaplace(10**6)._method, lambda x: Fraction(x, 10**6)),
    ):
        a, b, c = make.slopes
        for block, element in ((0, 0), (0, 5), (3, 1), (700, 1023), (1000, 2**make.block_bits - 1)):
            start = block << make.block_bits
            expected = log_weight(start + element) - log_weight(start)
            assert element * (a * block + b * element + c) == expected


def test_first_elements_are_drawn_with_the_scale_of_the_blocks():
    method = DiscreteGaussian(10**12)._method
    size = 1 << method.block_bits
    assert 256 < 10**6 / size <= 512
    expected = gaussian_ladder(Fraction(10**12, size**2), 31, is_half=True).floors(31)
    assert method.table._cdf.tolist() == expected
    method = DiscreteLaplace(10**6)._method
    assert 128 < 10**6 / (1 << method.block_bits) <= 256
    expected = laplace_ladder(Fraction(10**6, 1 << method.block_bits), 31, is_half=True).floors(31)
    assert method.table._cdf.tolist() == expected


def test_every_pair_is_kept_or_dropped_as_exact_arithmetic_says():
    blocks = narrow_gaussian()
    slopes = np.array([float(slope) for slope in blocks.slopes])
    rng = np.random.default_rng(5)
    n = 4_000
    numbers = rng.integers(-6, 7, n)
    words = rng.integers(0, 2**64, (n, 4), dtype=np.uint64)
    out, state = np.zeros(n, np.int64), np.zeros(n, np.uint8)
    keep_pairs_kernel(numbers, words, slopes, BITS, out, state)
    for i in range(n):
        block, element = abs(int(numbers[i])), int(words[i, 1]) >> (64 - BITS)
        is_negative = int(words[i, 1]) & 1
        magnitude = (block << BITS) + element
        gamma = gap(block, element)
        with ctx.workprec(200):
            bound = (-arb(fmpq(gamma.numerator, gamma.denominator))).exp() * arb(2) ** 64
            is_below = int(words[i, 2]) + 1 <= bound
        if state[i] == OPEN:
            continue
        if is_below and (magnitude or not is_negative):
            assert state[i] == KEPT
            assert out[i] == (-magnitude if is_negative else magnitude)
        else:
            assert state[i] == DROPPED
    assert min(np.bincount(state, minlength=3)) > 100


def tried(word, uniform, *further, block_word=0):
    """What becomes of one pair of a block and an element, and what is left of its bits."""
    blocks = narrow_gaussian()
    pairs = np.array([[block_word << 32, word, uniform, 0]], np.uint64)
    bits = ScriptedBits(np.array(further, np.uint64), pairs=pairs)
    nowhere = np.zeros(1, np.int64)
    (value,), (is_kept,) = blocks._try(bits, nowhere, nowhere, 0)
    assert not bits.data
    return value if is_kept else None


def open_pair(uniform, *further, sign=0):
    """Block 1 and element 5, and the number that decides about it."""
    block_word = (int(narrow_gaussian().table._cdf[0]) + 1) << 1
    return tried(5 << (64 - BITS) | sign, uniform, *further, block_word=block_word)


def exp_bits(gamma, n_words):
    """The first 64 n_words bits of exp(-gamma), as words."""
    with ctx.workprec(64 * n_words + 100):
        scaled = (-arb(fmpq(gamma.numerator, gamma.denominator))).exp() * arb(2) ** (64 * n_words)
        value = int(scaled.floor().unique_fmpz())
    return [value >> (64 * i) & (2**64 - 1) for i in reversed(range(n_words))]


@pytest.mark.parametrize("sign", [0, 1])
@pytest.mark.parametrize("n_words", [1, 2, 3])
def test_an_undecided_pair_is_settled_by_the_first_bit_that_differs(n_words, sign):
    *same, last = exp_bits(gap(1, 5), n_words)
    assert open_pair(*same, last - 1, sign=sign) == (-13 if sign else 13)
    assert open_pair(*same, last + 1, sign=sign) is None


def test_zero_is_drawn_with_one_sign_only():
    for uniform in (0, 2**64 - 1):  # decided, and settled the slow way
        assert tried(0, uniform) == 0
        assert tried(1, uniform) is None


@pytest.mark.parametrize("n", [0, 1, 1000, 16384, 16385, 50_000])
def test_every_place_is_filled(n):
    out = np.full(n, 2**62, dtype=np.int64)
    DiscreteGaussian(10**12).fill(out, SeededSource(1).bits())
    assert np.all(np.abs(out) < 10**7)


def test_the_widest_scale_fits_into_int64_with_room_to_spare():
    sampler = DiscreteGaussian(2**100)
    draws = sampler.sample(10_000, SeededSource(1))
    assert np.abs(draws).max() < 2**54
    assert abs(draws.std() / 2**50 - 1) < 0.05
