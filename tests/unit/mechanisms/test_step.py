"""The level step: group order, items of work, and kernels against slow and obvious twins."""

from itertools import pairwise

import numpy as np
import pytest

from fake_noise import Record
from inftda.engines.local import item_offsets
from inftda.hierarchy import Hierarchy
from inftda.mechanisms import step as step_module
from inftda.mechanisms.step import (
    LevelStep,
    Nodes,
    Work,
    add_truth_kernel,
    child_areas_kernel,
    count_draws_kernel,
)
from inftda.noise.entropy import SeededSource
from inftda.optimize.segments import optimize_intopt
from inftda.tree import Axis, Tree
from inftda.truth import Truth

TOWNS = Hierarchy.read(
    {"region": list("EENNNSW"), "town": ["e1", "e2", "n1", "n2", "n3", "s1", "w1"]}
)
MODES = Hierarchy.read({"mode": ["bus", "car", "foot"]})
TREE = Tree.build(
    [Axis("origin", TOWNS), Axis("destination", TOWNS), Axis("mode", MODES)],
    ["destination", "origin", "destination", "origin", "mode"],
)


def step_of(level, *, item_children=step_module.ITEM_CHILDREN, sampler=None):
    return LevelStep(level, sampler, optimize_intopt, SeededSource(1), item_children)


def random_parents(level, seed, n=200):
    """Different released parents of a level, in any order."""
    random = np.random.default_rng(seed)
    sizes = [level.n_parent_areas(axis) for axis in range(len(level.axes))]
    cells = random.permutation(np.prod(sizes))[:n]
    areas = tuple(numbers.astype(np.int32) for numbers in np.unravel_index(cells, sizes))
    n = len(cells)
    return Nodes(areas, random.integers(1, 50, n))


# Group order


@pytest.mark.parametrize("level", TREE.splitting_levels, ids=lambda level: level.name)
@pytest.mark.parametrize("seed", range(3))
def test_group_order_goes_by_the_refined_area_and_then_by_the_longest_axis(level, seed):
    parents = random_parents(level, seed)
    step = step_of(level)
    in_order = parents.take(step.group_order(parents.areas))
    assert step.sort_axes[0] == level.axis
    lengths = [level.n_parent_areas(axis) for axis in step.sort_axes[1:]]
    assert lengths == sorted(lengths, reverse=True)
    rows = list(zip(*(in_order.areas[axis].tolist() for axis in step.sort_axes), strict=True))
    assert rows == sorted(rows)
    assert sorted(in_order.value.tolist()) == sorted(parents.value.tolist())


# Items of work


@pytest.mark.parametrize("level", TREE.splitting_levels, ids=lambda level: level.name)
@pytest.mark.parametrize("item_children", [1, 3, 10, 40, 10**6])
def test_items_are_whole_groups_or_parts_of_one_huge_group(level, item_children):
    step = step_of(level, item_children=item_children)
    parents = random_parents(level, 1)
    parents = parents.take(step.group_order(parents.areas))
    offsets = item_offsets(step, parents)
    assert offsets[0] == 0
    assert offsets[-1] == len(parents.value)
    assert (np.diff(offsets) > 0).all()
    group = parents.areas[level.axis]
    children = step.n_children(group)
    of_group = {area: children[group == area].sum() for area in np.unique(group).tolist()}
    for low, high in pairwise(offsets):
        inside = np.unique(group[low:high]).tolist()
        is_whole = all((group == area).sum() == (group[low:high] == area).sum() for area in inside)
        if is_whole and all(of_group[area] <= item_children for area in inside):
            assert children[low:high].sum() <= item_children
        else:
            assert len(inside) == 1
            assert of_group[inside[0]] > item_children
            cells = np.unique(step.keys(tuple(axis[low:high] for axis in parents.areas)))
            assert children[low:high].sum() <= item_children or len(cells) == 1


def test_without_parents_there_are_no_items():
    step = step_of(TREE.splitting_levels[0])
    nobody = random_parents(step.level, 0).take(slice(0))
    assert item_offsets(step, nobody).tolist() == [0]


@pytest.mark.parametrize("children", [0, 1, 65_536, 131_072, 300_000, 2_813_007, 57_251_395])
def test_items_of_a_level_get_smaller_but_never_small(children):
    step = step_of(TREE.splitting_levels[0])
    n = min(children, 100_000)
    work = Work(np.arange(n), np.full(n, children // max(n, 1)))
    firsts = step.item_keys(work, lambda _: Work(np.zeros(0, np.int64), np.zeros(0, np.int64)))
    sizes = np.diff(np.append(firsts, n)) * (children // max(n, 1))
    assert sizes.sum() == work.children.sum()
    assert (sizes <= step_module.ITEM_CHILDREN).all()
    rough = 0.99 * step_module.FEWEST_CHILDREN
    assert (sizes >= rough).all() or len(sizes) <= 1
    # The last to begin is done soon: nobody waits for more than one small item.
    assert (sizes[-1:] <= 2 * step_module.FEWEST_CHILDREN).all()


# Kernels and their twins


def random_step(seed):
    """Parents with 1 to 40 children (an only child has no draw), some of them true.

    Of the children, some survive: none of some parents, all of others.
    """
    random = np.random.default_rng(seed)
    n_children = random.choice([1, 2, 7, 8, 9, 16, 17, 40], 30)
    draws = np.where(n_children > 1, n_children, 0)
    true_index = np.full(30, -1, np.int64)
    true_parents = np.sort(random.permutation(30)[:20])
    true_index[true_parents] = np.arange(20)
    children = [some_of(random, n_children[p], 1) for p in true_parents]
    surviving = [some_of(random, n, random.choice([0, 0, n])) for n in n_children]
    return {
        "n_children": n_children,
        "draw_offsets": offsets_of(draws),
        "true_index": true_index,
        "true_offsets": offsets_of([len(c) for c in children]),
        "true_ordinal": np.concatenate(children).astype(np.int32),
        "x": random.integers(-5, 9, draws.sum()),
        "offsets": offsets_of([len(c) for c in surviving]),
        "index": np.concatenate(surviving).astype(np.int32),
    }


def some_of(random, n, least):
    """At least this many of n children, ascending."""
    return np.sort(random.permutation(n)[: random.integers(least, n + 1)])


def offsets_of(sizes):
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


@pytest.mark.parametrize("seed", range(20))
def test_true_counts_are_added_where_their_twin_adds_them(seed):
    made = random_step(seed)
    count = np.random.default_rng(seed).integers(1, 100, len(made["true_ordinal"]))
    x = made["x"] - 3
    expected = x.tolist()
    for parent, at in enumerate(made["true_index"]):
        low, high = made["draw_offsets"][parent : parent + 2]
        if at >= 0 and high > low:
            for child in range(*made["true_offsets"][at : at + 2]):
                expected[low + made["true_ordinal"][child]] += int(count[child])
    true_key = np.flatnonzero(made["true_index"] >= 0) * 3
    truth = true_key, made["true_offsets"], made["true_ordinal"], count
    add_truth_kernel(x, made["draw_offsets"], np.arange(30) * 3, truth)
    assert x.tolist() == expected


@pytest.mark.parametrize("seed", range(20))
def test_a_parent_takes_a_draw_for_every_child_unless_it_is_the_only_one(seed):
    made = random_step(seed)
    areas = np.random.default_rng(seed).permutation(30).astype(np.int32)
    n_children = np.empty(30, np.int64)
    n_children[areas] = made["n_children"]
    before = np.full(31, -7)
    count_draws_kernel(areas, offsets_of(n_children).astype(np.int32), before)
    assert before.tolist() == made["draw_offsets"].tolist()


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("n_axes", [1, 2, 3])
def test_children_are_in_areas_of_their_own_on_one_axis_and_their_parents_on_others(seed, n_axes):
    made, random = random_step(seed), np.random.default_rng(seed)
    child_offsets = offsets_of(random.integers(1, 50, 1000)).astype(np.int32)
    areas = tuple(random.integers(0, 1000, 30).astype(np.int32) for _ in range(n_axes))
    for refined in range(n_axes):
        out = tuple(np.full(len(made["index"]), -7, np.int32) for _ in areas)
        child_areas_kernel(areas, refined, child_offsets, made["offsets"], made["index"], out)
        of_parents = [np.repeat(area, np.diff(made["offsets"])) for area in areas]
        of_parents[refined] = child_offsets[of_parents[refined]] + made["index"]
        assert [area.tolist() for area in out] == [area.tolist() for area in of_parents]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("item_children", [2, 7, 1000])
def test_a_step_is_what_the_optimiser_makes_of_every_parent_alone(seed, item_children):
    """Noise is recorded as it is drawn and handed out again, parent by parent, in group order."""
    from inftda.bars import no_progress  # noqa: PLC0415
    from inftda.engines.local import LocalEngine  # noqa: PLC0415
    from inftda.noise.discrete_gaussian import DiscreteGaussian  # noqa: PLC0415
    from inftda.optimize.segments import Survivors  # noqa: PLC0415

    level = TREE.splitting_levels[3]
    random = np.random.default_rng(seed)
    leaves = tuple(random.integers(0, n, 60).astype(np.int32) for n in (7, 7, 3))
    truth = Truth.from_leaves(TREE, leaves, random.integers(1, 30, 60))
    true_areas, true_count = truth.levels[3].areas(), truth.levels[3].count
    true = {
        cell: int(n)
        for *cell, n in zip(*(axis.tolist() for axis in true_areas), true_count, strict=True)
        for cell in [tuple(cell)]
    }
    parents = Nodes(truth.levels[2].areas(), truth.levels[2].count)
    drawn = []

    class Keeping:
        def fill(self, out, stream):
            DiscreteGaussian(4).fill(out, stream)
            drawn.append(out.copy())

    step = step_of(level, item_children=item_children, sampler=Keeping())
    children = LocalEngine(1).step(parents, truth, step, no_progress)
    noise, position = np.concatenate(drawn), 0
    expected_total = {}
    for at in step.group_order(parents.areas):
        cell = [int(axis[at]) for axis in parents.areas]
        low, high = level.child_offsets[cell[level.axis] : cell[level.axis] + 2].tolist()
        below = [(*cell[: level.axis], c, *cell[level.axis + 1 :]) for c in range(low, high)]
        if high - low == 1:
            expected_total[below[0]] = [int(parents.value[at])]
            continue
        x = noise[position : position + high - low].copy()
        position += high - low
        x += [true.get(child, 0) for child in below]
        out = Survivors.of(len(x) + 1).for_vectors(1)
        optimize_intopt(
            x, np.array([0, len(x)]), parents.value[at : at + 1], np.zeros(1, np.uint64), out
        )
        made = dict(zip(out.index[: out.offsets[1]].tolist(), out.value.tolist(), strict=False))
        # Ties are broken at random, so only what equal elements get together is compared.
        expected_total[tuple(below)] = sorted(made.values())
        assert sum(made.values()) == parents.value[at]
    assert position == len(noise)
    found = {}
    for *cell, value in zip(*(a.tolist() for a in children.areas), children.value, strict=True):
        found[tuple(cell)] = int(value)
    for below, values in expected_total.items():
        cells = [below] if isinstance(below[0], int) else below
        assert sorted(found[cell] for cell in cells if cell in found) == values


def test_equal_seeds_give_equal_children_on_any_number_of_threads():
    from inftda.engines.local import LocalEngine  # noqa: PLC0415

    level = TREE.splitting_levels[3]
    parents = random_parents(level, 3)
    truth = Truth.from_leaves(TREE, tuple(np.zeros(1, np.int32) for _ in range(3)), np.array([5]))
    made = []
    for threads in (1, 2, 5):
        record = Record()
        step = step_of(level, item_children=5, sampler=record.make_sampler(9))
        made.append(LocalEngine(threads).step(parents, truth, step, record.progress))
        assert len(record.sizes) > 10
    for other in made[1:]:
        assert [a.tolist() for a in other.areas] == [a.tolist() for a in made[0].areas]
        assert other.value.tolist() == made[0].value.tolist()
