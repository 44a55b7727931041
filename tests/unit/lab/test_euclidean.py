"""The Euclidean projection alone: fair ties, and segments of a buffer."""

from collections import Counter

import numpy as np
from scipy.stats import chisquare

from inftda.lab.baselines.nearest import nearest_segment
from inftda.optimize.selection import OK
from optimize_vectors import words
from optimizers import OPTIMIZERS
from slow_optimizers import exhaustive

P_FALSE_ALARM = 1e-7


def test_every_nearest_vector_is_equally_likely():
    # Lowered by 3; the 18 - 14 missing units go to four of the five elements above that.
    x = np.array([6, 6, 6, -2, 6, 1, 5], np.int64)
    run = OPTIMIZERS["l2"].run
    counts = Counter(tuple(run(x, 18, word)[1].tolist()) for word in words(9000))
    assert set(counts) == set(exhaustive(x, 18, is_euclidean=True)[1])
    assert len(counts) == 5
    assert chisquare(list(counts.values())).pvalue > P_FALSE_ALARM
    counts[4, 4, 4, 0, 4, 0, 2] += 1000  # one in ten decided by size
    assert len(counts) == 5
    assert chisquare(list(counts.values())).pvalue < P_FALSE_ALARM


def test_a_segment_leaves_its_neighbours_alone():
    buffer = np.array([100, 4, -3, 9, 0, 2, -100], np.int64)
    _, alone = OPTIMIZERS["l2"].run(buffer[1:6].copy(), 8, 5)
    assert nearest_segment(buffer, 1, 6, 8, np.uint64(5), True) == OK
    assert buffer.tolist() == [100, *alone, -100]
