"""The table: each word to its draw, undecided words settled exactly."""

import threading
from bisect import bisect_left
from collections import Counter
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scripted_bits import ROW, ScriptedBits, fill

from inftda.errors import PrivacyError
from inftda.noise.bits import SeededSource
from inftda.noise.distribution import Noise
from inftda.noise.ladder import Ladder, gaussian_ladder, laplace_ladder
from inftda.noise.table import WordTable


def make_gaussian(sigma2, word_bits):
    return WordTable(partial(gaussian_ladder, Fraction(sigma2)), word_bits)


def obvious_draw(cdf, word):
    """The slow twin of the kernel: the draw of one word, or None if it is undecided."""
    u, sign = word >> 1, word & 1
    k = bisect_left(cdf, u)  # the first k with c_k >= u
    if u == cdf[k]:
        return None
    return -k if sign else k


def first_words(word_bits, seed, n):
    """The words a table of so many bits reads for its first n draws."""
    words = np.empty(n, dtype=np.uint32 if word_bits <= 32 else np.uint64)
    SeededSource(seed).bits().fill(words, ROW, np.array([0, n]))
    return [int(word) >> (8 * words.itemsize - word_bits) for word in words]


@pytest.mark.parametrize("word_bits", [16, 32, 33, 64])
@pytest.mark.parametrize("sigma2", ["1/10000", "1/4", "20", "90000", "1000000"])
def test_every_word_becomes_the_draw_its_slow_twin_says(sigma2, word_bits):
    table = make_gaussian(sigma2, word_bits)
    cdf = [int(c) for c in table._cdf]
    draws = np.empty(5_000, dtype=np.int64)
    fill(table, draws, SeededSource(9).bits())
    expected = [obvious_draw(cdf, word) for word in first_words(word_bits, 9, draws.size)]
    agree = [
        want is None or got == want for got, want in zip(draws.tolist(), expected, strict=True)
    ]
    assert all(agree)
    assert sum(want is not None for want in expected) > 1_000


@pytest.mark.parametrize(
    "ladder_of",
    [
        partial(gaussian_ladder, Fraction(4)),
        partial(gaussian_ladder, Fraction(1, 4)),
        partial(gaussian_ladder, Fraction(90000)),  # far more rungs than words
        partial(laplace_ladder, Fraction(3)),
    ],
)
def test_the_256_words_of_8_bits_are_shared_out_exactly(ladder_of):
    table = WordTable(ladder_of, 8)
    floors = ladder_of(7).floors(7)
    words = np.arange(256, dtype=np.uint32) << np.uint32(24)
    counts, n_undecided = Counter(), 0
    for word in words:
        out = np.empty(1, dtype=np.int64)
        try:
            fill(table, out, ScriptedBits(word))
        except AssertionError:  # asked for more bits
            n_undecided += 1
        else:
            counts[int(out[0])] += 1
    n_decided = {
        k: max(0, c - b - 1) for k, (b, c) in enumerate(zip([-1, *floors], floors, strict=False))
    }
    assert n_undecided == 2 * len(set(floors))
    for k, n in n_decided.items():
        assert counts[k] == counts[-k] == (n if k else 2 * n)


def bits_of(value, n):
    """The first n bits of a number in [0, 1) given as an integer of 400 bits."""
    return value >> (400 - n)


def script(u, n_words, *, sign):
    """The bits that spell sign and u, 31 + 64 n_words bits, as the table will read it."""
    first = u >> (64 * n_words) << 1 | sign
    further = [u >> (64 * i) & (2**64 - 1) for i in reversed(range(n_words))]
    return ScriptedBits(np.uint32(first), np.array(further, dtype=np.uint64))


@pytest.mark.parametrize("sign", [0, 1])
@pytest.mark.parametrize("k", [0, 1, 7, 60, 125])
@pytest.mark.parametrize("n_words", [1, 2, 4])
def test_words_that_start_like_a_boundary_are_settled_by_the_first_bit_that_differs(
    k, n_words, sign
):
    table = make_gaussian(400, 32)
    ladder = gaussian_ladder(Fraction(400), 400 - 31)
    boundary = ladder.lower[k] >> (ladder.bits - 400)  # 400 bits of F(k)
    n_bits = 31 + 64 * n_words
    for step, expected in ((-1, k), (1, k + 1)):
        # Agrees with F(k) up to its last bits, so all words before the last leave it open.
        u = bits_of(boundary, n_bits) + step
        bits = script(u, n_words, sign=sign)
        out = np.empty(1, dtype=np.int64)
        fill(table, out, bits)
        assert out[0] == (-expected if sign else expected)
        assert not bits.data  # every word was needed


def test_the_tail_beyond_the_table_is_drawn_too():
    # 200 leading ones mean that P[|X| > k] is about 2^-200: 6.6 sigma for the table, 16 here.
    table = make_gaussian(400, 32)
    u = ((1 << 200) - 1) << 23  # 223 = 31 + 3 * 64 bits
    out = np.empty(1, dtype=np.int64)
    fill(table, out, script(u, 3, sign=0))
    ladder = gaussian_ladder(Fraction(400), 300)
    expected = bisect_left(ladder.lower, (u + 1) << (ladder.bits - 223))
    assert out[0] == expected > 2.4 * len(table._cdf)


def test_almost_no_noise_is_still_exact():
    table = make_gaussian(Fraction(1, 10000), 32)  # P[X != 0] is about 10^-2171
    out = np.empty(1, dtype=np.int64)
    fill(table, out, script((1 << 95) - 2, 1, sign=1))
    assert out[0] == 0
    with pytest.raises(AssertionError, match="asked for"):  # only ones: still open
        fill(table, out, script((1 << 95) - 1, 1, sign=1))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 131_071, 131_073, 300_000])
def test_any_number_of_draws_uses_that_many_words_in_order(n):
    table = make_gaussian(400, 32)
    words = np.empty(n, dtype=np.uint32)
    SeededSource(5).bits().fill(words, ROW, np.array([0, n]))
    bits = ScriptedBits(words)
    draws = np.empty(n, dtype=np.int64)
    fill(table, draws, bits)
    assert not bits.data
    cdf = table._cdf
    expected = np.searchsorted(cdf, words >> 1) * np.where(words & 1, -1, 1)
    assert np.array_equal(draws, expected)


def test_settling_does_not_disturb_the_words_around_it():
    table = make_gaussian(400, 32)
    boundary = int(table._cdf[3]) << 1
    words = np.array([5, boundary, 7, boundary | 1, boundary, 9], dtype=np.uint32)
    further = np.array([0, 2**64 - 1, 0], dtype=np.uint64)  # below F(3), above it, below it
    draws = np.empty(6, dtype=np.int64)
    fill(table, draws, ScriptedBits(words, further))
    assert draws.tolist() == [0, 3, 0, -4, 3, 0]


def test_one_table_serves_many_threads_each_with_its_own_bits():
    table = make_gaussian(400, 16)  # 16 bits: the slow path is shared too
    alone, together = ([np.empty(20_000, dtype=np.int64) for _ in range(4)] for _ in range(2))
    for label, out in enumerate(alone):
        fill(table, out, SeededSource(2).bits(label))
    table._kept.clear()
    threads = [
        threading.Thread(target=fill, args=(table, out, SeededSource(2).bits(label)))
        for label, out in enumerate(together)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert np.array_equal(alone, together)


def test_floors_that_are_uncertain_are_computed_again_more_precisely():
    asked = []

    def ladder_of(bits, *, guard=64):
        asked.append(guard)
        good = gaussian_ladder(Fraction(4), bits, guard=guard)
        return Ladder(good.lower, 1 << (good.bits - bits), good.bits) if guard == 64 else good

    assert np.array_equal(WordTable(ladder_of, 32)._cdf, make_gaussian(4, 32)._cdf)
    assert asked == [64, 128]


@pytest.mark.parametrize("word_bits", [-1, 0, 1, 65])
def test_words_of_impossible_length_are_refused(word_bits):
    with pytest.raises(PrivacyError, match=f"word_bits must be from 2 to 64, got {word_bits}"):
        make_gaussian(4, word_bits)


@pytest.mark.parametrize(
    "out",
    [
        np.empty(4, dtype=np.int32),
        np.empty((2, 2), dtype=np.int64),
        np.empty(8, dtype=np.int64)[::2],
        np.frombuffer(bytes(16), dtype=np.int64),
    ],
)
def test_arrays_that_cannot_be_filled_in_place_are_refused(out):
    with pytest.raises(PrivacyError, match="out must be a writable"):
        Noise.gaussian(4).fill(out, SeededSource(1).bits())
