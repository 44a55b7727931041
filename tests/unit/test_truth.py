"""The truth: children by parent and their sums, against slow and obvious twins."""

import tracemalloc

import numpy as np
import pytest

from inftda.areas.build import build_tree
from inftda.errors import IngestError, TreeError
from inftda.reading.truth import FEW, MAX_TOTAL, Truth, check_total
from inftda.tree import Axis, Marginal, Tree
from inftda.tree.hierarchy import Hierarchy
from reference_truth import check_nodes

AREAS = Hierarchy.read({"region": ["N", "N", "S"], "town": ["1", "2", "3"]})
ONE = Hierarchy.read({"state": ["I"]})


def comb(depth, fan, *, at=0):
    """A hierarchy in which one area of each level (number `at` or the last) has `fan` children."""
    paths = [()]
    for _ in range(depth):
        chosen = min(at, len(paths) - 1)
        paths = [
            (*path, f"{path[-1] if path else ''}.{child}")
            for i, path in enumerate(paths)
            for child in range(fan if i == chosen else 1)
        ]
    columns = zip(*paths, strict=True)
    return Hierarchy.read({f"l{level}": list(codes) for level, codes in enumerate(columns)})


TREES = {
    "destination tree": Tree.destination_first(AREAS),
    "different depths": build_tree(
        axis={"origin": AREAS, "destination": comb(3, 3)}, order=("origin", "destination")
    ),
    "trivial steps": Tree.destination_first(
        Hierarchy.read(
            {"s": ["I"] * 3, "r": ["N", "N", "S"], "a": ["n", "n", "s"], "t": list("123")}
        ),
        AREAS,
    ),
    "one axis": Tree.build([Axis("x", comb(4, 5, at=2))], "xxxx"),
    "many children": Tree.build([Axis("x", comb(1, 5000)), Axis("y", AREAS)], "yxy"),
    "four axes": Tree.build([Axis(n, comb(4, 300)) for n in "abcd"], "aabcdbcdabcdabcd"),
}


def random_leaves(tree, n, *, seed=0, spread=None):
    """Random leaves with repeats and zero counts."""
    rng = np.random.default_rng(seed)
    sizes = [axis.hierarchy.n_areas(axis.hierarchy.depth) for axis in tree.axes]
    areas = [rng.integers(0, min(size, spread or size), n, dtype=np.int32) for size in sizes]
    return areas, rng.integers(0, 4, n)


def test_a_small_table_counted_by_hand():
    # From town 0 to towns 0 and 2, from town 2 to town 1.
    areas = [np.array([2, 0, 0], np.int32), np.array([1, 2, 0], np.int32)]
    truth = Truth.from_leaves(TREES["destination tree"], areas, np.array([7, 2, 3]))
    assert (truth.total, truth.n_leaves) == (12, 3)
    found = {
        level.level.name: [part.tolist() for part in (level.count, level.offsets, level.ordinal)]
        for level in truth.levels
    }
    assert found == {  # counts, where the children of each parent begin, and their places
        "all > region": [[10, 2], [0, 2], [0, 1]],  # to N, to S
        "region > region": [[3, 7, 2], [0, 2, 3], [0, 1, 0]],  # N > N, S > N, N > S
        "region > town": [[3, 7, 2], [0, 1, 2, 3], [0, 1, 0]],  # N > 1, S > 2, N > 3
        "town > town": [[3, 2, 7], [0, 1, 2, 3], [0, 0, 0]],  # 1 > 1, 1 > 3, 3 > 2
    }
    areas, value = truth.leaves
    assert [*(axis.tolist() for axis in areas), value.tolist()] == [[0, 0, 2], [0, 2, 1], [3, 2, 7]]


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("spread", [None, 3])
def test_nodes_of_every_level_are_those_of_the_twin(name, spread):
    check_nodes(TREES[name], *random_leaves(TREES[name], 60, spread=spread))


@pytest.mark.parametrize("name", TREES)
def test_margins_and_sums_at_any_depths_are_those_of_the_leaves(name):
    tree = TREES[name]
    areas, value = random_leaves(tree, 60, seed=2)
    found = Truth.from_leaves(tree, areas, value).marginal_totals
    for number, (axis, margin) in enumerate(zip(tree.axes, found, strict=True)):
        depths = [0] * len(tree.axes)
        depths[number] = axis.hierarchy.depth
        cells, sums = Marginal(tree.axes, tuple(depths)).sum_up(areas, value)
        expected = np.zeros_like(margin)
        np.add.at(expected, areas[number], value)
        assert margin.tolist() == expected.tolist()
        assert sums.tolist() == expected[cells[number]].tolist()
        assert cells[number].tolist() == np.unique(areas[number]).tolist()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_how_many_threads_sort_does_not_matter(monkeypatch, threads):
    tree = TREES["four axes"]
    areas, value = random_leaves(tree, 3_000, spread=40)
    expected = Truth.from_leaves(tree, areas, value, threads=1)
    monkeypatch.setattr("inftda.reading.truth.FEW", 0)
    found = Truth.from_leaves(tree, areas, value, threads=threads)
    for one, other in zip(found.levels, expected.levels, strict=True):
        assert (one.node.tolist(), one.count.tolist()) == (
            other.node.tolist(),
            other.count.tolist(),
        )


def test_arrays_of_any_kind_are_taken_and_none_is_changed():
    tree = Tree.build([Axis("from", AREAS), Axis("to", AREAS)], ["from", "to"] * 2)
    start, end, trips = np.array([0, 2, 1]), np.array([1, 1, 0], np.int32), np.array([3, 0, 2])
    expected = Truth.from_leaves(tree, [start.astype(np.int32), end], trips).leaves
    for array in (start, end, trips):
        array.flags.writeable = False
    for other in (end, np.stack([end, end], 1)[:, 0], end.astype(np.int64)):
        areas, counts = Truth.from_leaves(tree, [start, other], trips).leaves
        assert [area.tolist() for area in areas] == [area.tolist() for area in expected[0]]
        assert counts.tolist() == expected[1].tolist()


def test_nothing_travelled_is_no_node_at_all():
    tree = TREES["four axes"]
    for n in (0, 3):
        areas = [np.zeros(n, np.int32) for _ in tree.axes]
        truth = Truth.from_leaves(tree, areas, np.zeros(n, np.int64))
        assert (truth.total, truth.n_leaves) == (0, 0)
        assert [level.offsets.tolist() for level in truth.levels] == [[0]] * tree.depth


def test_a_tree_that_never_splits_has_its_root_only():
    areas = [np.zeros(3, np.int32)] * 2
    truth = Truth.from_leaves(Tree.destination_first(ONE), areas, np.array([1, 0, 4]))
    assert truth.levels == ()
    assert (truth.total, truth.n_leaves) == (5, 1)
    assert [axis.tolist() for axis in truth.leaves[0]] == [[0], [0]]


def test_the_largest_total_is_counted_exactly():
    areas = [np.array([0, 1, 2], np.int32)] * 2
    value = np.array([2**42, 2**42 - 1, 1])
    truth = Truth.from_leaves(TREES["destination tree"], areas, value)
    assert truth.total == 2**43
    assert truth.levels[0].count.tolist() == [2**43 - 1, 1]


@pytest.mark.parametrize(
    "value",
    [
        pytest.param([2**43, 1, 0, 0], id="just beyond"),
        pytest.param([2**62] * 4, id="wraps around to zero in 64 bits"),
        pytest.param([2**63 - 1] * 4, id="wraps around to a negative sum"),
    ],
)
def test_a_total_beyond_the_limit_is_refused_without_showing_it(value):
    areas = [np.zeros(4, np.int32)] * 2
    with pytest.raises(IngestError, match=r"beyond 2\^43") as caught:
        Truth.from_leaves(TREES["destination tree"], areas, np.array(value))
    assert not any(str(count) in str(caught.value) for count in [*value, sum(value)] if count > 99)


def test_a_tree_with_more_cells_than_there_are_numbers_is_refused():
    wide = Hierarchy.read({"x": [f"{i:04}" for i in range(2_000)]})
    axes = [Axis(f"axis{n}", wide) for n in range(7)]
    with pytest.raises(TreeError, match="leave out a column"):
        Tree.build(axes, [axis.name for axis in axes]).check_numbers()


def peak_of(tree, n):
    areas, value = random_leaves(tree, n)
    Truth.from_leaves(tree, areas, value)  # whatever is made once is made
    tracemalloc.start()
    Truth.from_leaves(tree, areas, value)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def test_memory_follows_the_leaves_and_not_the_pairs_of_areas():
    areas = Hierarchy.read({"town": np.arange(50_000).astype(str)})
    tree = Tree.destination_first(areas)  # 2.5 x 10^9 pairs, 20 GB as a dense table
    small, large = peak_of(tree, FEW // 2), peak_of(tree, FEW)
    assert large - small < 120 * FEW // 2
    assert large < 120 * FEW + 4 * 10**6


def test_a_total_that_is_refused_is_not_in_the_message():
    check_total(MAX_TOTAL)
    total = 98_765_432_123_456_789
    with pytest.raises(IngestError) as caught:
        check_total(total)
    digits = "".join(letter for letter in str(caught.value) if letter.isdigit())
    assert digits == "243"  # of 2^43, and of nothing else
    assert caught.value.__cause__ is None
