"""The level step: group order, batches, and kernels against slow and obvious twins."""

from fractions import Fraction

import numpy as np
import pytest

from fake_noise import Record
from inftda.mechanism import batches as module
from inftda.mechanism.batches import batches, in_group_order, n_children, parts_of
from inftda.mechanism.data import Step
from inftda.mechanism.intopt import words_of
from inftda.mechanism.measure import add_truth_kernel
from inftda.mechanism.reference import shares
from inftda.mechanism.topdown import Division, divide_all
from inftda.noise.bits import Secret, SeededSource
from inftda.noise.distribution import Noise
from inftda.privacy.measurement import Measurement
from inftda.privacy.unit import UNIT
from inftda.reading.truth import Truth
from inftda.tree import Axis, Cells, Tree
from inftda.tree.hierarchy import Hierarchy
from inftda.util.threads import ThreadPool
from slow_optimizers import algorithm_2

TOWNS = Hierarchy.read(
    {"region": list("EENNNSW"), "town": ["e1", "e2", "n1", "n2", "n3", "s1", "w1"]}
)
MODES = Hierarchy.read({"mode": ["bus", "car", "foot"]})
TREE = Tree.build(
    [Axis("origin", TOWNS), Axis("destination", TOWNS), Axis("mode", MODES)],
    ["destination", "origin", "destination", "origin", "mode"],
)
EVERY_LEVEL = pytest.mark.parametrize("level", TREE.splitting_levels, ids=lambda level: level.name)


def random_parents(level, seed, n=200):
    """Different released parents of a level, in any order."""
    random = np.random.default_rng(seed)
    sizes = [level.n_parent_areas(axis) for axis in range(len(level.axes))]
    cells = random.permutation(np.prod(sizes))[:n]
    areas = tuple(numbers.astype(np.int32) for numbers in np.unravel_index(cells, sizes))
    return Cells(areas, random.integers(1, 50, len(cells)))


@EVERY_LEVEL
@pytest.mark.parametrize("seed", range(3))
def test_group_order_goes_by_the_refined_area_and_then_by_the_longest_axis(level, seed):
    parents = random_parents(level, seed)
    in_order = in_group_order(level, parents, ThreadPool(1))
    assert level.group_axes[0] == level.axis
    lengths = [level.n_parent_areas(axis) for axis in level.group_axes[1:]]
    assert lengths == sorted(lengths, reverse=True)
    rows = list(zip(*(in_order.areas[axis].tolist() for axis in level.group_axes), strict=True))
    assert rows == sorted(rows)
    assert level.areas_of(level.keys(in_order.areas))[0].tolist() == in_order.areas[0].tolist()
    before = set(zip(*(a.tolist() for a in (*parents.areas, parents.value)), strict=True))
    after = set(zip(*(a.tolist() for a in (*in_order.areas, in_order.value)), strict=True))
    assert before == after


@EVERY_LEVEL
@pytest.mark.parametrize("size", [8, 40, 400, 1 << 19])
def test_parts_are_all_parents_in_order_and_no_larger_than_asked_for(monkeypatch, level, size):
    monkeypatch.setattr(module, "PART_CHILDREN", size)
    parents = in_group_order(level, random_parents(level, 1), ThreadPool(1))
    found = parts_of(level, parents)
    assert [part.start for part in found] == [0, *(part.stop for part in found[:-1])]
    assert found[-1].stop == len(parents.value)
    for part in found:
        work = n_children(level, parents.take(part)).sum()
        assert work <= size or part.stop - part.start == 1
    assert parts_of(level, parents.take(slice(0))) == []


@pytest.mark.parametrize("size", [8, 40, 1 << 19])
def test_with_tables_off_the_tree_groups_stay_whole(monkeypatch, size):
    monkeypatch.setattr(module, "PART_CHILDREN", size)
    for level in TREE.splitting_levels:
        noise = Noise(Fraction(1))
        tables = tuple(Measurement.of(t, UNIT, noise) for t in TREE.cross_tables_at(level))
        step = Step(Measurement.of(level, UNIT, noise), tables)
        parents = in_group_order(level, random_parents(level, 2), ThreadPool(1))
        found = batches(step, parents)
        assert [part.start for part in found] == [0, *(part.stop for part in found[:-1])]
        assert found[-1].stop == len(parents.value)
        refined = parents.areas[level.axis]
        inside = [set(refined[part].tolist()) for part in found]
        assert sum(map(len, inside)) == len(set(refined.tolist()))
        if tables:
            for part in found:
                sizes = np.unique(refined[part], return_counts=True)[1]
                assert len(set((sizes >= step.hard_from).tolist())) == 1


def offsets_of(sizes):
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def some_of(random, n, least):
    """At least this many of n children, ascending."""
    return np.sort(random.permutation(n)[: random.integers(least, n + 1)])


@pytest.mark.parametrize("seed", range(20))
def test_true_counts_are_added_where_their_twin_adds_them(seed):
    random = np.random.default_rng(seed)
    n_children = random.choice([1, 2, 7, 8, 9, 16, 17, 40], 30)
    offsets = offsets_of(np.where(n_children > 1, n_children, 0))
    key = np.sort(random.permutation(100)[:30])
    true_key = np.sort(random.permutation(100)[:40])  # of released parents, and of others
    size_of = dict(zip(key.tolist(), n_children.tolist(), strict=True))
    children = [some_of(random, size_of.get(k, 5), 1) for k in true_key.tolist()]
    ordinal = np.concatenate(children)
    count = random.integers(1, 100, len(ordinal))
    true_offsets = offsets_of([len(c) for c in children])
    x = random.integers(-5, 9, offsets[-1])
    expected = x.tolist()
    for parent, k in enumerate(key.tolist()):
        if k in true_key and n_children[parent] > 1:
            at = true_key.tolist().index(k)
            for child in range(*true_offsets[at : at + 2]):
                expected[offsets[parent] + ordinal[child]] += int(count[child])
    node = (np.repeat(true_key, np.diff(true_offsets)) << 6) + ordinal
    add_truth_kernel(x, offsets, key, (node, count, 6))
    assert x.tolist() == expected


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("size", [8, 1 << 19])
def test_a_step_does_what_it_says_parent_by_parent(monkeypatch, seed, size):
    """Noisy counts are noise plus truth; children are IntOpt of them; zeros are dropped."""
    monkeypatch.setattr(module, "PART_CHILDREN", size)
    level, random = TREE.splitting_levels[3], np.random.default_rng(seed)
    leaves = tuple(random.integers(0, n, 60).astype(np.int32) for n in (7, 7, 3))
    truth = Truth.from_leaves(TREE, leaves, random.integers(1, 30, 60))
    true = dict(
        zip(
            zip(*(a.tolist() for a in truth.levels[3].areas()), strict=True),
            truth.levels[3].count.tolist(),
            strict=True,
        )
    )
    parents = Cells(truth.levels[2].areas(), truth.levels[2].count)
    noise, step = iter(range(-200, 10_000)), Step(Measurement.of(level, UNIT, Noise(Fraction(4))))
    with Record(noise).watching():
        children, kept = divide_all(
            Division(step, (), Secret.of(SeededSource(seed)), words_of(bytes(16))),
            parents,
            truth.level(level),
            pool=ThreadPool(1),
        )
    cells = [cell for noisy in kept for cell in zip(*noisy.cells(), strict=True)]
    value = np.concatenate([noisy.value for noisy in kept])
    added = [int(v) - true.get(tuple(map(int, c)), 0) for c, v in zip(cells, value, strict=True)]
    assert added == list(range(-200, -200 + len(value)))
    noisy = dict(zip(((int(a), int(b), int(c)) for a, b, c in cells), value.tolist(), strict=True))
    found = dict(
        zip(zip(*(a.tolist() for a in children.areas), strict=True), children.value, strict=True)
    )
    assert (children.value > 0).all()
    for cell, total in zip(
        zip(*(a.tolist() for a in parents.areas), strict=True), parents.value, strict=True
    ):
        low, high = level.child_offsets[cell[level.axis] : cell[level.axis] + 2].tolist()
        below = [(*cell[: level.axis], c, *cell[level.axis + 1 :]) for c in range(low, high)]
        got = [int(found.pop(child, 0)) for child in below]
        if len(below) == 1:
            assert got == [total]
            assert below[0] not in noisy, "nothing is drawn for an only child"
        else:
            x = [noisy[child] for child in below]
            assert shares(x, got) == shares(x, algorithm_2(x, int(total)))
    assert not found
