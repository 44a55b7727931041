"""Tables so small that every other one can be tried out."""

import numpy as np

from inftda.hierarchy import Hierarchy
from inftda.tree import Tree
from inftda.truth import Truth

TOWNS = Hierarchy.read({"region": ["N", "N", "S", "S"], "town": ["1", "2", "3", "4"]})
TWO = Hierarchy.read({"town": ["1", "2"]})


def counts_of(hierarchy, flows):
    """Counts of (origin, destination, trips)."""
    areas = np.array([(o, d) for o, d, _ in flows], np.int32).T
    counts = np.array([n for _, _, n in flows], np.int64)
    return Truth.from_leaves(Tree.destination_first(hierarchy), list(areas), counts)


def random_counts(hierarchy, seed, *, cells, most):
    random = np.random.default_rng(seed)
    n = hierarchy.n_areas(hierarchy.depth)
    chosen = random.choice(n * n, cells, replace=False)
    return counts_of(hierarchy, [(c // n, c % n, random.integers(1, most + 1)) for c in chosen])
