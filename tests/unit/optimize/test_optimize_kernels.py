"""Kernels interpreted as plain Python, so that every line is seen, and their parts."""

import numpy as np
import pytest
from instruction_twins import TWINS
from scipy.stats import chisquare

from inftda.lab.baselines import euclidean, linf
from inftda.optimize import chebyshev, selection
from inftda.optimize.selection import (
    GATHER_ROOM,
    LIMIT,
    above,
    ceil_div,
    describe,
    gather,
    is_too_large,
    random_below,
    random_word,
    sink,
)
from optimize_vectors import run, sparse_vectors, vectors, words

KERNELS = [
    (chebyshev, "chebyshev_kernel", (False,)),
    (chebyshev, "chebyshev_kernel", (True,)),
    (euclidean, "euclidean_kernel", ()),
    (linf, "linf_kernel", ()),
]


def interpret(monkeypatch):
    """Let all kernels run as Python functions."""
    for module in (selection, chebyshev, euclidean, linf):
        for name, function in list(vars(module).items()):
            if name in TWINS:
                monkeypatch.setattr(module, name, TWINS[name])
            elif hasattr(function, "py_func"):
                monkeypatch.setattr(module, name, function.py_func)


@pytest.mark.parametrize(("module", "name", "flags"), KERNELS)
def test_interpreted_and_compiled_kernels_give_the_same(module, name, flags, monkeypatch):
    problems = [problem for size in (1, 2, 3, 6) for problem in vectors(40, size, seed=12)]
    problems += [problem for size in (11, 40) for problem in sparse_vectors(30, size, 2, seed=13)]
    problems += [(np.array(x, np.int64), 3) for x in ([], [1 << 60] * 3, [7, 7, 7, 7, 7])]
    problems += [(np.array([1, 2], np.int64), -1)]
    compiled = [
        run(getattr(module, name), x, total, number, *flags)
        for number, (x, total) in enumerate(problems)
    ]
    interpret(monkeypatch)
    assert not hasattr(getattr(module, name), "py_func")
    for number, (x, total) in enumerate(problems):
        status, y = run(getattr(module, name), x, total, number, *flags)
        assert status == compiled[number][0]
        if status == 0:
            assert (y == compiled[number][1]).all()


@pytest.mark.parametrize(("share", "looks"), [(0, 2), (255, 1)])
def test_where_candidates_are_looked_for_first_changes_nothing(share, looks, monkeypatch):
    """A first look that is too shallow is followed by deeper ones."""
    problems = list(sparse_vectors(40, 30, 4, seed=16))
    problems += [(x, 200) for x, _ in sparse_vectors(40, 30, 4, seed=17)]
    compiled = [run(chebyshev.chebyshev_kernel, *p, n, False) for n, p in enumerate(problems)]
    interpret(monkeypatch)
    taken = []

    def counted(*arguments):
        taken[-1] += 1
        return selection.gather(*arguments)

    monkeypatch.setattr(chebyshev, "gather", counted)
    monkeypatch.setattr(chebyshev, "_FIRST_DEPTH", np.full((64, 64), share, np.int16))
    for number, (x, total) in enumerate(problems):
        taken.append(0)
        status, y = run(chebyshev.chebyshev_kernel, x, total, number, False)
        assert (status, y.tolist()) == (compiled[number][0], compiled[number][1].tolist())
    assert max(taken) >= looks
    assert (max(taken) == 1) == (looks == 1)


@pytest.mark.parametrize("divisor", [1, 2, 3, 10, 1 << 40])
def test_ceil_div_rounds_up_for_either_sign(divisor):
    for number in (0, 1, 2, 9, 10, 11, (1 << 61) + 1):
        assert ceil_div(number, divisor) == -(-number // divisor)
        assert ceil_div(-number, divisor) == -(number // divisor)


def test_describe_and_above_look_at_the_segment_only():
    x = np.array([99, 4, -3, 4, 0, -99], np.int64)
    assert describe(x, 1, 5) == (5, -3, 4)
    assert above(x, 1, 5, 0) == (2, 8)
    assert above(x, 1, 5, 4) == (0, 0)
    assert above(x, 1, 5, -4) == (4, 5)


@pytest.mark.parametrize("start", [0, 1, 40, 64, 100])
@pytest.mark.parametrize("size", [0, 1, 2, 7, 8, 9, 63, 64, 65, 127, 128, 129, 500])
@pytest.mark.parametrize("level", [-100, -1, 0, 2, 100])
def test_gather_writes_down_what_its_twin_does(start, size, level):
    random = np.random.default_rng([start, size])
    x = random.integers(-4, 5, start + size + 3)
    expected = np.flatnonzero(x[start : start + size] > level)
    place = np.full(5 + size + GATHER_ROOM, -7, np.int32)
    value = np.full(5 + size + GATHER_ROOM, -7)
    end = gather(x, start, start + size, level, place, value, 5)
    assert place[5:end].tolist() == expected.tolist()
    assert value[5:end].tolist() == x[start + expected].tolist()
    assert (place[:5] == -7).all()
    assert (value[:5] == -7).all()


def test_sink_finds_the_least_level():
    for x, total in sparse_vectors(100, 12, 5, seed=14):
        start = -int(max(1, total))
        level, count, mass = sink(x, 0, 12, total, start, *above(x, 0, 12, start))
        assert (count, mass) == above(x, 0, 12, level)
        assert np.maximum(x - level, 0).sum() <= total
        if level > start:
            assert np.maximum(x - level + 1, 0).sum() > total


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
