"""Measures against a slow twin that walks over every possible cell; sums at any level."""

from itertools import product
from math import sqrt

import numpy as np
import pytest

from inftda.errors import TreeError
from inftda.planning.accuracy import SIZE_BOUNDS, TOP, measure, measure_totals
from inftda.reading.truth import Truth
from inftda.tree import Axis, Marginal, Tree
from inftda.tree.hierarchy import Hierarchy

AREAS = Hierarchy.read(
    {"region": ["N", "N", "N", "S", "S"], "town": ["1", "2", "3", "4", "5"]}  # uneven
)
#: The step from block to zone splits nothing.
CHAIN = Hierarchy.read(
    {"block": ["a", "b"], "zone": ["a1", "b1"], "flat": ["a11", "b11"]}  # only level 1 splits
)
SEX = Hierarchy.read({"sex": ["f", "m"]})

TREES = {
    "origin and destination": Tree.destination_first(AREAS),
    "levels that split nothing": Tree.destination_first(AREAS, CHAIN),
    "three axes": Tree.build(
        [Axis("origin", AREAS), Axis("destination", AREAS), Axis("sex", SEX)],
        ["destination", "sex", "origin", "origin", "destination"],
    ),
    "one axis": Tree.build([Axis("region", AREAS)], ["region", "region"]),
}


def counts_of(tree, leaves):
    """Counts from a mapping of area numbers to count."""
    keys = np.array(list(leaves), np.int32).reshape(-1, len(tree.axes))
    return Truth.from_leaves(tree, list(keys.T), np.array(list(leaves.values()), np.int64))


def random_leaves(tree, random, *, share=0.5, low=1):
    sizes = [axis.hierarchy.n_areas(axis.hierarchy.depth) for axis in tree.axes]
    cells = [cell for cell in product(*map(range, sizes)) if random.random() < share]
    flows = np.ceil(random.pareto(0.4, len(cells)).clip(max=30_000)).astype(int) + low - 1
    return {c: int(f) for c, f in zip(cells, flows, strict=True) if f}


def every_cell(tree, level, leaves):
    """Count of every possible cell of a level, by summing up the leaves one by one."""
    sizes = [
        axis.hierarchy.n_areas(depth) for axis, depth in zip(tree.axes, level.depths, strict=True)
    ]
    up = [
        axis.hierarchy.ancestor(axis.hierarchy.depth, depth)
        for axis, depth in zip(tree.axes, level.depths, strict=True)
    ]
    cells = dict.fromkeys(product(*map(range, sizes)), 0)
    for leaf, count in leaves.items():
        cells[tuple(int(u[area]) for u, area in zip(up, leaf, strict=True))] += count
    return cells


def slow_measures(pairs):
    """Everything but the top and size classes, from (true, released) of every possible cell."""
    errors = [abs(r - t) for t, r in pairs]
    either = [e for e, (t, r) in zip(errors, pairs, strict=True) if t or r]
    released = [(t, r) for t, r in pairs if r > 0]
    true = [(t, r) for t, r in pairs if t > 0]
    weight = sum(t + max(r, 0) for t, r in pairs)
    return {
        "n_cells": len(pairs),
        "n_true": len(true),
        "n_released": len(released),
        "n_either": len(either),
        "total_true": sum(t for t, _ in pairs),
        "total_released": sum(r for _, r in pairs),
        "max_abs_error": max(errors),
        "mean_abs_error": sum(errors) / len(pairs),
        "mean_abs_error_nonzero": sum(either) / max(len(either), 1),
        "rmse": sqrt(sum(e * e for e in errors) / len(pairs)),
        "rmse_nonzero": sqrt(sum(e * e for e in either) / max(len(either), 1)),
        "false_discovery_rate": sum(t == 0 for t, _ in released) / max(len(released), 1),
        "false_negative_rate": sum(r <= 0 for _, r in true) / max(len(true), 1),
        "common_part": 2 * sum(min(t, max(r, 0)) for t, r in pairs) / weight if weight else 1,
    }


def slow_sizes(pairs):
    classes = []
    for place, low in enumerate(SIZE_BOUNDS):
        high = SIZE_BOUNDS[place + 1] if place + 1 < len(SIZE_BOUNDS) else float("inf")
        inside = [(t, r) for t, r in pairs if low <= t < high]
        errors = [r - t for t, r in inside]
        n = len(inside)
        row = {"smallest": low, "largest": None if place + 1 == len(SIZE_BOUNDS) else high - 1}
        row |= {"n_cells": n, "max_abs_error": max(map(abs, errors), default=0)}
        if n:
            row |= {"mean_abs_error": sum(map(abs, errors)) / n, "bias": sum(errors) / n}
            row |= {"rmse": sqrt(sum(e * e for e in errors) / n)}
            row |= {"kept": sum(r > 0 for _, r in inside) / n}
        if n and low:
            row["mean_relative_error"] = sum(abs(r - t) / t for t, r in inside) / n
        classes.append(row)
    return classes


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
@pytest.mark.parametrize("seed", range(4))
def test_every_level_agrees_with_a_walk_over_all_cells(tree, seed):
    random = np.random.default_rng(seed)
    true, made = random_leaves(tree, random), random_leaves(tree, random)
    levels = measure(counts_of(tree, true), counts_of(tree, made))
    assert [level.name for level in levels] == [level.name for level in tree.levels]
    for level, got in zip(tree.levels, levels, strict=True):
        truth, released = every_cell(tree, level, true), every_cell(tree, level, made)
        pairs = [(truth[cell], released[cell]) for cell in truth]
        for name, value in slow_measures(pairs).items():
            assert getattr(got, name) == pytest.approx(value), (level.name, name)
        for size, slow in zip(got.sizes, slow_sizes(pairs), strict=True):
            for name in size.__slots__:
                assert getattr(size, name) == pytest.approx(slow.get(name)), (level.name, name)


def test_the_largest_flows_are_measured_on_their_own():
    areas = Hierarchy.read({"town": [f"{i:03d}" for i in range(TOP + 50)]})
    tree = Tree.build([Axis("town", areas)], ["town"])
    # 60 large flows, then more flows of 5 than the top has room for: the first of them count.
    true = {(i,): 1000 + i if i < 60 else 5 for i in range(TOP + 50)}
    made = {(i,): 1000 + i + 10 if i < 60 else 4 if i < TOP else 500 for i in range(TOP + 50)}
    last = measure(counts_of(tree, true), counts_of(tree, made))[-1]
    assert last.top_cells == TOP
    assert last.top_max_abs_error == 10
    assert last.top_mean_abs_error == pytest.approx((60 * 10 + 40 * 1) / 100)
    expected = (sum(10 / (1000 + i) for i in range(60)) + 40 / 5) / 100
    assert last.top_mean_relative_error == pytest.approx(expected)


def test_counts_of_two_trees_are_not_compared():
    one, other = TREES["one axis"], TREES["origin and destination"]
    with pytest.raises(TreeError, match="same tree"):
        measure(counts_of(one, {(0,): 1}), counts_of(other, {(0, 0): 1}))


@pytest.mark.parametrize(("n", "is_sorted"), [(4, False), (1, True)])
def test_sums_are_exact_by_counting_and_by_sorting(n, is_sorted):
    """Also beyond what floating point holds."""
    marginal = Marginal(TREES["origin and destination"].axes, (1, 0))
    assert (marginal.n_nodes > n) == is_sorted
    areas = np.array([0, 4, 2, 1][:n], np.int32), np.array([3, 0, 0, 1][:n], np.int32)
    found, value = marginal.sum_up(areas, np.array([2**54 + 1, 8, 1, 2**59][:n]))
    assert value.tolist() == ([2**54 + 1] if is_sorted else [2**59 + 2**54 + 2, 8])
    regions = [0] if is_sorted else [0, 1]
    assert [numbers.tolist() for numbers in found] == [regions, [0] * len(regions)]


def test_totals_off_the_tree_are_measured_with_their_errors():
    areas = Hierarchy.read({"region": ["N", "N", "S"], "town": ["001", "002", "003"]})
    tree = Tree.destination_first(areas)
    truth = counts_of(tree, {(0, 1): 100, (1, 2): 10, (2, 0): 7})
    released = counts_of(tree, {(0, 1): 90, (1, 2): 12, (1, 0): 15})
    regions, towns, destinations = measure_totals(truth, released)
    assert (regions.axis, regions.level, regions.n_areas) == ("origin", "region", 2)
    # Origins: 100, 10, 7 became 90, 27, 0; the regions 110, 7 became 117, 0.
    assert (regions.max_abs_error, regions.mean_abs_error) == (7, 7.0)
    assert (towns.max_abs_error, towns.mean_abs_error) == (17, pytest.approx(34 / 3))
    assert towns.bias_of_largest == pytest.approx(-0.1)
    # The first level of destinations is the tree's own; towns 7, 100, 10 became 15, 90, 12.
    assert (destinations.axis, destinations.level) == ("destination", "town")
    assert (destinations.max_abs_error, destinations.mean_abs_error) == (10, pytest.approx(20 / 3))
