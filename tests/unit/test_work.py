"""How much work a release is, counted and not timed, so that no machine can make it fail.

The work of a level is the number of children of surviving parents; everything else follows it,
or the number of non-zero leaves. Nothing follows the number of possible pairs of areas.
"""

import tracemalloc
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pytest

import fake_noise
from fake_noise import Record
from inftda.demo import make_country
from inftda.mechanism.topdown import release_counts
from inftda.noise import bits
from inftda.noise.bits import SeededSource
from inftda.privacy.noise_plan import make_plan
from inftda.privacy.unit import Unit
from inftda.reading.truth import Truth
from inftda.tree import Tree

#: Of the tree and of Python, whatever the number of leaves.
BYTES_FIXED = 1_500_000
#: Of a noisy count, which is kept.
BYTES_PER_DRAW = 8


@dataclass
class Work:
    """What was done in one release."""

    counts: Truth
    released: Truth
    steps: list = field(default_factory=list)
    fills: list = field(default_factory=list)
    words: Counter = field(default_factory=Counter)

    @property
    def draws(self):
        """Draws of each level, as progress tells them."""
        return {name: total for name, _, total in self.steps}

    @property
    def parents(self):
        """Number of surviving parents of each level."""
        return [len(level.key) for level in self.released.levels]


def release(counts, *, rho=1, unit=None, seed=1):
    """Release counts and note what was done."""
    words, record = Counter(), Record()
    original = bits.Bits.fill

    def noted(self, array, *rows):
        words[array.dtype.itemsize] += len(array)
        original(self, array, *rows)

    plan = make_plan(counts.tree, unit or Unit(), rho=rho, method="paper")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bits.Bits, "fill", noted)
        leaves = fake_noise.release(counts, plan, record, seed=seed).leaves
    released = Truth.from_leaves(counts.tree, leaves.areas, leaves.value)
    return Work(counts, released, record.steps, record.sizes, words)


def counts_of(sizes, trips, *, seed=3):
    country = make_country(sizes, trips, seed=seed)
    tree = Tree.destination_first(country.areas)
    return Truth.from_leaves(tree, (country.origin, country.destination), country.count)


def expected_draws(released):
    """Children of all surviving parents, only children left out, from the release alone."""
    draws = {}
    for level in released.levels:
        areas = level.level.areas_of(level.key)
        start = level.level.child_offsets
        n_children = np.diff(start)[areas[level.level.axis]]
        draws[level.level.name] = int(n_children[n_children > 1].sum())
    return draws


@pytest.fixture(scope="module")
def small():
    """50,000 trips between 200 towns."""
    return counts_of((4, 16, 200), 50_000)


# The top-down loop


@pytest.mark.parametrize("rho", ["1/100", 1, 5000])
@pytest.mark.parametrize("unit", [Unit(), Unit("add-remove", trips=2)])
def test_draws_are_the_children_of_surviving_parents_and_only_children_are_none(small, rho, unit):
    work = release(small, rho=rho, unit=unit)
    assert work.draws == expected_draws(work.released)
    is_root_drawn = not unit.root_is_public
    assert sum(work.fills) == sum(work.draws.values()) + is_root_drawn


def test_one_draw_takes_one_short_word(small):
    work = release(small)
    # The secret and the public seed of the release have 256 and 128 bits.
    assert work.words == {4: sum(work.draws.values()) + 8 + 4}


def test_memory_of_the_loop_follows_the_survivors_and_not_the_pairs():
    """1,000 trips between 50,000 towns: 2.5 billion pairs, and a few megabytes."""
    counts = counts_of((5, 50, 500, 5_000, 50_000), 1_000)
    assert counts.tree.levels[-1].n_nodes == 2_500_000_000

    def run():
        account = make_plan(counts.tree, Unit(), rho=1, method="paper").account()
        return release_counts(counts, account, SeededSource(1), threads=1)

    run()  # kernels are loaded, tables are made: that is not the loop's memory
    tracemalloc.start()
    made = run()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(made.leaves.value) <= 1_000
    noisy = BYTES_PER_DRAW * sum(len(one.value) for one in made.noisy)
    assert noisy <= peak < noisy + BYTES_FIXED
