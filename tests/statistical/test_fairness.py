"""No area gains by its position: equal siblings get equal flows on average."""

from fractions import Fraction
from itertools import pairwise

import numpy as np

from inftda.engines.local import LocalEngine
from inftda.hierarchy import Hierarchy
from inftda.mechanisms.base import Setting
from inftda.mechanisms.topdown import TopDown
from inftda.noise.discrete_gaussian import DiscreteGaussian
from inftda.noise.entropy import SeededSource
from inftda.privacy.plan import make_plan
from inftda.privacy.unit import PrivacyUnit
from inftda.tree import Tree
from inftda.truth import Truth
from slow_optimizers import algorithm_2

RUNS = 400
SIDE = 6
#: Largest of 36 standard normal means that is exceeded with odds below 1e-6 in all.
THRESHOLD = 5.6


def mean_flows(mechanism, runs=RUNS):
    """Mean and standard error of every cell over seeded runs on a uniform table."""
    areas = Hierarchy.read(
        {"region": [str(i // 3) for i in range(SIDE)], "town": [f"t{i}" for i in range(SIDE)]}
    )
    tree = Tree.destination_first(areas)
    origin, destination = np.divmod(np.arange(SIDE * SIDE, dtype=np.int32), np.int32(SIDE))
    counts = Truth.from_leaves(tree, (origin, destination), np.full(SIDE * SIDE, 3))
    released = np.zeros((runs, SIDE, SIDE))
    for seed in range(runs):
        setting = Setting(
            spending=make_plan(tree, PrivacyUnit(), rho=Fraction(8)).account(),
            make_sampler=DiscreteGaussian,
            source=SeededSource(seed),
            engine=LocalEngine(1),
        )
        for block in mechanism.run(counts, setting):
            released[seed][block.areas] += block.value
    return released.mean(axis=0), released.std(axis=0, ddof=1) / runs**0.5


def test_equal_siblings_get_equal_flows_on_average():
    mean, error = mean_flows(TopDown())
    assert np.abs((mean - 3) / error).max() < THRESHOLD


def by_position(x, offsets, total, seed, out):
    """IntOpt as the paper has it: equal values give way in order of their position."""
    del seed
    end = 0
    out.offsets[0] = 0
    for i, (low, high) in enumerate(pairwise(offsets.tolist())):
        found = algorithm_2(x[low:high].tolist(), int(total[i])) if high > low else [total[i]]
        kept = np.flatnonzero(found)
        out.index[end : end + len(kept)] = kept
        out.value[end : end + len(kept)] = np.array(found)[kept]
        end += len(kept)
        out.offsets[i + 1] = end
    return 0


def test_the_test_sees_ties_broken_by_position():
    mean, error = mean_flows(TopDown(by_position))
    assert np.abs((mean - 3) / error).max() > THRESHOLD
