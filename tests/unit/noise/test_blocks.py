"""Blocks: pairs of block and element kept or dropped exactly."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from scripted_stream import ScriptedStream

from inftda.errors import PrivacyError
from inftda.noise.blocks import Blocks, keep_pairs_kernel
from inftda.noise.discrete_gaussian import DiscreteGaussian
from inftda.noise.discrete_laplace import DiscreteLaplace
from inftda.noise.entropy import SeededSource
from inftda.noise.ladder import gaussian_ladder, laplace_ladder
from inftda.noise.table import Table

SIGMA2, BITS = Fraction(121, 2), 3  # so narrow that many pairs are dropped


def narrow_gaussian():
    size = 1 << BITS
    table = Table(partial(gaussian_ladder, SIGMA2 / size**2, is_half=True), 32)
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
    words = rng.integers(0, 2**64, (n, 2), dtype=np.uint64)
    n_kept = n_dropped = n_open = 0
    for i in range(n):
        out, state = np.zeros(1, dtype=np.int64), np.zeros(2, dtype=np.int64)
        is_decided = keep_pairs_kernel(
            numbers[i : i + 1], words[i : i + 1], slopes, BITS, out, state
        )
        block, element = abs(int(numbers[i])), int(words[i, 0]) >> (64 - BITS)
        is_negative = int(words[i, 0]) & 1
        magnitude = (block << BITS) + element
        gamma = gap(block, element)
        with ctx.workprec(200):
            bound = (-arb(fmpq(gamma.numerator, gamma.denominator))).exp() * arb(2) ** 64
            is_below = int(words[i, 1]) + 1 <= bound
        if not is_decided:
            n_open += 1
            assert state.tolist() == [0, 0]
        elif is_below and (magnitude or not is_negative):
            n_kept += 1
            assert state.tolist() == [1, 1]
            assert out[0] == (-magnitude if is_negative else magnitude)
        else:
            n_dropped += 1
            assert state.tolist() == [1, 0]
    assert min(n_kept, n_dropped, n_open) > 100


def open_pair(uniform, *further, sign=0):
    """The stream of one pair, block 1 and element 5, and the number that decides about it."""
    blocks = narrow_gaussian()
    block_word = np.uint32((int(blocks.table._cdf[0]) + 1) << 1)
    word = 5 << (64 - BITS) | sign
    return blocks, ScriptedStream(block_word, np.array([word, uniform, *further], dtype=np.uint64))


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
    out = np.zeros(1, dtype=np.int64)
    blocks, stream = open_pair(*same, last - 1, sign=sign)
    assert blocks._fill_some(out, stream) == 1
    assert out[0] == (-13 if sign else 13)
    assert not stream.data
    blocks, stream = open_pair(*same, last + 1, sign=sign)
    assert blocks._fill_some(out, stream) == 0
    assert not stream.data


def test_zero_is_drawn_with_one_sign_only():
    blocks = narrow_gaussian()
    for uniform in (0, 2**64 - 1):  # decided, and settled the slow way
        kept = []
        for sign in (0, 1):
            words = np.array([sign, uniform], dtype=np.uint64)
            out = np.zeros(1, dtype=np.int64)
            kept.append(blocks._fill_some(out, ScriptedStream(np.uint32(0), words)))
        assert kept == [1, 0]


@pytest.mark.parametrize("n", [0, 1, 1000, 16384, 16385, 50_000])
def test_every_place_is_filled(n):
    out = np.full(n, 2**62, dtype=np.int64)
    DiscreteGaussian(10**12).fill(out, SeededSource(1).stream())
    assert np.all(np.abs(out) < 10**7)


def test_the_widest_scale_fits_into_int64_with_room_to_spare():
    sampler = DiscreteGaussian(2**100)
    assert 13 * 2**50 < sampler.max_abs < 2**54
    draws = sampler.sample(10_000, SeededSource(1))
    assert np.abs(draws).max() < sampler.max_abs
    assert abs(draws.std() / 2**50 - 1) < 0.05


def test_wider_scales_are_refused():
    with pytest.raises(PrivacyError, match="sigma2 must be from"):
        DiscreteGaussian(2**100 + 1)
    with pytest.raises(PrivacyError, match="scale must be from"):
        DiscreteLaplace(2**50 + 1)
