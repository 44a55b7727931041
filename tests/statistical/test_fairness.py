"""No area gains by its position: equal siblings get equal flows on average."""

from collections import Counter
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import chisquare

from inftda.mechanism import intopt
from inftda.mechanism.intopt import DIGITS, write_candidates_kernel
from inftda.mechanism.reference import algorithm_3
from inftda.mechanism.topdown import release_counts
from inftda.noise.bits import SeededSource
from inftda.privacy.noise_plan import make_plan
from inftda.privacy.unit import Unit
from inftda.reading.truth import Truth
from inftda.tree import Tree
from inftda.tree.hierarchy import Hierarchy

pytestmark = pytest.mark.slow

RUNS = 400
SIDE = 6
#: Largest of 36 standard normal means that is exceeded with odds below 1e-6 in all.
THRESHOLD = 5.6


def mean_flows(runs=RUNS):
    """Mean and standard error of every cell over seeded runs on a uniform table."""
    areas = Hierarchy.read(
        {"region": [str(i // 3) for i in range(SIDE)], "town": [f"t{i}" for i in range(SIDE)]}
    )
    tree = Tree.destination_first(areas)
    origin, destination = np.divmod(np.arange(SIDE * SIDE, dtype=np.int32), np.int32(SIDE))
    counts = Truth.from_leaves(tree, (origin, destination), np.full(SIDE * SIDE, 3))
    released = np.zeros((runs, SIDE, SIDE))
    for seed in range(runs):
        account = make_plan(tree, Unit(), rho=Fraction(8), method="paper").account()
        leaves = release_counts(counts, account, SeededSource(seed), threads=1).leaves
        released[seed][leaves.areas] += leaves.value
    return released.mean(axis=0), released.std(axis=0, ddof=1) / runs**0.5


def test_equal_siblings_get_equal_flows_on_average():
    mean, error = mean_flows()
    assert np.abs((mean - 3) / error).max() < THRESHOLD


def by_position(vectors, level, seed, candidates):
    """Candidates without fractions: equal values give way in order of their position."""
    write_candidates_kernel(vectors, level, seed, candidates)
    candidates.noisy[:] &= ~np.int64((1 << DIGITS) - 1)


def test_the_test_sees_ties_broken_by_position(monkeypatch):
    monkeypatch.setattr(intopt, "write_candidates_kernel", by_position)
    mean, error = mean_flows()
    assert np.abs((mean - 3) / error).max() > THRESHOLD


@pytest.mark.parametrize(("x", "total"), [([2, 2, 2], 2), ([5, 1, 1, 1, 1], 7), ([0, 0], 1)])
def test_all_choices_between_equal_elements_are_equally_likely(x, total):
    """Over seeds; a fraction of 16 digits is the same for two elements once in 65,536 times."""
    runs = 3_000
    seeds = np.random.default_rng(7).bytes(16 * runs)
    found = Counter(
        tuple(intopt.intopt(x, total, seed=seeds[16 * i : 16 * i + 16]).tolist())
        for i in range(runs)
    )
    equal = max(set(x), key=x.count)
    places = [i for i, value in enumerate(x) if value == equal]
    shares = algorithm_3(x, total)
    given = sorted(shares[i] for i in places)
    possible = {tuple(order_) for order_ in permutations(given)}
    seen = Counter()
    for y, times in found.items():
        seen[tuple(y[i] for i in places)] += times
    assert set(seen) == possible
    if len(possible) > 1:
        assert chisquare(list(seen.values())).pvalue > 1e-6
