"""The random vertex alone: fair orders, equal keys, and segments of a buffer."""

from collections import Counter

import numpy as np
from scipy.stats import chisquare

from inftda.lab.baselines import nearest
from inftda.optimize.selection import OK
from optimize_vectors import chebyshev, sparse_vectors, words
from optimizers import OPTIMIZERS
from slow_optimizers import chebyshev_optimum

P_FALSE_ALARM = 1e-7


def test_equal_elements_are_raised_in_every_order_alike():
    # alpha = 2, so 0..4 each, and 6 to give: one gets 4, another 2; 12 ways.
    x = np.array([2, 2, 2, 2, -2], np.int64)
    run = OPTIMIZERS["linf"].run
    counts = Counter(tuple(run(x, 6, word)[1].tolist()) for word in words(9000))
    assert len(counts) == 12
    assert chisquare(list(counts.values())).pvalue > P_FALSE_ALARM
    counts[4, 2, 0, 0, 0] += 1000  # one in ten decided by position
    assert len(counts) == 12
    assert chisquare(list(counts.values())).pvalue < P_FALSE_ALARM


def test_it_keeps_more_false_positives_than_intopt():
    kept = Counter()
    for number, (x, total) in enumerate(sparse_vectors(100, 40, 5, seed=11)):
        for name in ("linf", "intopt"):
            kept[name] += np.count_nonzero(OPTIMIZERS[name].run(x, total, number)[1])
    assert kept["intopt"] < 0.9 * kept["linf"]


def test_equal_keys_do_not_spoil_the_sum(monkeypatch):
    for name in ("nearest_segment", "_choose_vertex", "_gaps_above"):
        function = getattr(nearest, name)
        monkeypatch.setattr(nearest, name, getattr(function, "py_func", function))
    monkeypatch.setattr(nearest, "_key", lambda seed, i: int(seed) + i // 3)
    x = np.array([2, 2, 2, 2, -2, 9, 1, 1, 4], np.int64)
    for total in range(1, 60):
        y = x.copy()
        assert nearest.nearest_segment(y, 0, 9, total, np.uint64(5), False) == OK
        assert y.sum() == total
        assert y.min() >= 0
        assert chebyshev(x, y) == chebyshev_optimum(x, total)


def test_a_segment_leaves_its_neighbours_alone():
    buffer = np.array([100, 4, -3, 9, 0, 2, -100], np.int64)
    assert nearest.nearest_segment(buffer, 1, 6, 8, np.uint64(5), False) == OK
    assert (buffer[0], buffer[-1], buffer[1:6].sum()) == (100, -100, 8)
