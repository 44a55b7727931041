"""Counts: leaves in tree order, run sums and child slices, against slow and obvious twins."""

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from reference_counts import (
    child_ordinal,
    nodes_of_level,
    radix_pass,
    read_nodes,
    true_nodes,
)

from inftda.counts import (
    Counts,
    count_nodes_kernel,
    merge_equal_kernel,
    write_nodes_kernel,
)
from inftda.errors import IngestError
from inftda.hierarchy import Hierarchy
from inftda.threads import Crew
from inftda.tree import Axis, Tree
from inftda.tree_order import DIGIT_BITS, Layout, radix_pass_kernel, sort_buckets_kernel

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
    "different depths": Tree.origin_first(AREAS, comb(3, 3)),
    "trivial steps": Tree.destination_first(
        Hierarchy.read(
            {"s": ["I"] * 3, "r": ["N", "N", "S"], "a": ["n", "n", "s"], "t": list("123")}
        ),
        AREAS,
    ),
    "one axis": Tree.build([Axis("x", comb(4, 5, at=2))], "xxxx"),
    "many children": Tree.build([Axis("x", comb(1, 5000)), Axis("y", AREAS)], "yxy"),
    "one word to the last bit": Tree.build([Axis(n, comb(2, 256)) for n in "abcd"], "abcdabcd"),
    "two words": Tree.build([Axis(n, comb(3, 50, at=7)) for n in "abcd"], "abcdabcdabcd"),
    "three words and a short one": Tree.build(
        [Axis(n, comb(4 - (n == "d"), 300)) for n in "abcd"], "abcdabcdabcdabc"
    ),
    "three words": Tree.build([Axis(n, comb(4, 300)) for n in "abcd"], "aabcdbcdabcdabcd"),
}


def random_leaves(tree, n, *, seed=0, spread=None):
    """Random leaves with repeats and zero counts."""
    rng = np.random.default_rng(seed)
    sizes = [axis.hierarchy.n_areas(axis.hierarchy.depth) for axis in tree.axes]
    areas = [rng.integers(0, min(size, spread or size), n, dtype=np.int32) for size in sizes]
    return areas, rng.integers(0, 4, n)


def random_keys(n_words, n, *, seed=0):
    """Keys that often agree in their upper bits, and counts."""
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 2**64, (n_words, n), np.uint64, endpoint=False)
    words &= rng.choice(np.array([0, 0xF000000000000FFF, 2**64 - 1], np.uint64), (n_words, 1))
    return words, rng.integers(1, 100, n)


def test_a_small_table_counted_by_hand():
    # From town 0 to towns 0 and 2, from town 2 to town 1; tree order goes by destination first.
    areas = [np.array([2, 0, 0], np.int32), np.array([1, 2, 0], np.int32)]
    counts = Counts.from_leaves(TREES["destination tree"], areas, np.array([7, 2, 3]))
    assert counts.total == 12
    assert counts.n_leaves == 3
    assert [level.level.name for level in counts.levels] == [
        "all > region",
        "region > region",
        "region > town",
        "town > town",
    ]
    assert [level.count.tolist() for level in counts.levels] == [
        [10, 2],  # to N, to S
        [3, 7, 2],  # N > N, S > N, N > S
        [3, 7, 2],  # N > 1, S > 2, N > 3
        [3, 7, 2],  # 1 > 1, 3 > 2, 1 > 3
    ]
    assert [level.offsets.tolist() for level in counts.levels] == [
        [0, 2],
        [0, 2, 3],
        [0, 1, 2, 3],
        [0, 1, 2, 3],
    ]
    assert [level.ordinal.tolist() for level in counts.levels] == [
        [0, 1],
        [0, 1, 0],
        [0, 1, 0],
        [0, 0, 0],
    ]
    (origins, destinations), value = counts.leaves
    assert origins.tolist() == [0, 2, 0]
    assert destinations.tolist() == [0, 1, 2]
    assert value.tolist() == [3, 7, 2]


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("spread", [None, 3])
def test_nodes_and_sums_of_every_level_are_those_of_the_twin(name, spread):
    tree = TREES[name]
    areas, value = random_leaves(tree, 60, spread=spread)
    expected = true_nodes(tree, areas, value)
    counts = Counts.from_leaves(tree, areas, value)
    assert [level.level for level in counts.levels] == list(tree.splitting_levels)
    assert read_nodes(tree, 0, counts.nodes(0)) == expected[0]
    for place, level in enumerate(counts.levels, start=1):
        assert (
            read_nodes(tree, level.level.index, counts.nodes(place)) == expected[level.level.index]
        )
    assert read_nodes(tree, len(tree.steps), counts.leaves) == expected[-1]
    assert counts.n_leaves == len(expected[-1])


@pytest.mark.parametrize("name", TREES)
def test_margins_are_the_trips_of_every_area(name):
    tree = TREES[name]
    areas, value = random_leaves(tree, 60, seed=2)
    found = Counts.from_leaves(tree, areas, value).margins
    for axis, numbers, margin in zip(tree.axes, areas, found, strict=True):
        expected = np.zeros(axis.hierarchy.n_areas(axis.hierarchy.depth), np.int64)
        np.add.at(expected, numbers, value)
        assert margin.tolist() == expected.tolist()


@pytest.mark.parametrize("name", TREES)
def test_ordinals_and_slices_of_every_level_are_those_of_the_twin(name):
    tree = TREES[name]
    areas, value = random_leaves(tree, 40, seed=1)
    expected = true_nodes(tree, areas, value)
    for level in Counts.from_leaves(tree, areas, value).levels:
        index = level.level.index
        paths = [path for path, _ in expected[index]]
        parents = [path for path, _ in expected[index - 1]]
        of_parent = [[p for p in paths if p[:-1] == parent] for parent in parents]
        assert np.diff(level.offsets).tolist() == [len(children) for children in of_parent]
        assert level.offsets[0] == 0
        assert level.ordinal.tolist() == [child_ordinal(tree, index, path) for path in paths]


def test_arrays_have_the_promised_types():
    tree = TREES["two words"]
    counts = Counts.from_leaves(tree, *random_leaves(tree, 20))
    for level in counts.levels:
        types = (level.offsets.dtype, level.ordinal.dtype, level.count.dtype)
        assert types == (np.int64, np.int32, np.int64)


@pytest.mark.parametrize("name", TREES)  # sorting takes an even number of passes in some
@pytest.mark.parametrize("least", [0, 1])
def test_what_the_caller_gave_is_not_changed(name, least):
    tree = TREES[name]
    areas, value = random_leaves(tree, 100)
    value += least
    before = [array.copy() for array in (*areas, value)]
    Counts.from_leaves(tree, areas, value)
    for array, old in zip((*areas, value), before, strict=True):
        np.testing.assert_array_equal(array, old)


def test_axes_may_come_as_arrays_of_different_kinds():
    tree = Tree.build([Axis("from", AREAS), Axis("to", AREAS)], ["from", "to"] * 2)
    start, end, trips = np.array([0, 2, 1]), np.array([1, 1, 0], np.int32), np.array([3, 1, 2])
    fixed = end.copy()
    fixed.flags.writeable = False
    expected = Counts.from_leaves(tree, [start.astype(np.int32), end], trips).leaves
    for other in (fixed, np.stack([end, end], 1)[:, 0], end.astype(np.int64)):
        for axes in ([start, other], [start.astype(np.int32), other]):
            areas, counts = Counts.from_leaves(tree, axes, trips).leaves
            assert [area.tolist() for area in areas] == [area.tolist() for area in expected[0]]
            assert counts.tolist() == expected[1].tolist()


def test_counts_are_shown_without_any_number_of_trips():
    areas = [np.array([0, 1, 2], np.int32)] * 2
    counts = Counts.from_leaves(TREES["destination tree"], areas, np.array([4711, 815, 333]))
    for shown in (repr(counts), str(counts), repr(counts.levels)):
        assert not any(number in shown for number in ["4711", "815", "333", "5526", "5859"])


def test_nothing_travelled_is_no_node_at_all():
    tree = TREES["two words"]
    for n in (0, 3):
        areas = [np.zeros(n, np.int32) for _ in tree.axes]
        counts = Counts.from_leaves(tree, areas, np.zeros(n, np.int64))
        assert (counts.total, counts.n_leaves) == (0, 0)
        assert len(counts.levels) == tree.depth
        assert [level.offsets.tolist() for level in counts.levels] == [[0]] * tree.depth


def test_a_tree_that_never_splits_has_its_root_only():
    areas = [np.zeros(3, np.int32)] * 2
    counts = Counts.from_leaves(Tree.destination_first(ONE), areas, np.array([1, 0, 4]))
    assert counts.levels == ()
    assert (counts.total, counts.n_leaves) == (5, 1)
    assert [axis.tolist() for axis in counts.leaves[0]] == [[0], [0]]


def test_the_largest_total_is_counted_exactly():
    tree = TREES["destination tree"]
    areas = [np.array([0, 1, 2], np.int32)] * 2
    value = np.array([2**59, 2**59 - 1, 1])
    counts = Counts.from_leaves(tree, areas, value)
    assert counts.total == 2**60
    assert counts.levels[0].count.tolist() == [2**60 - 1, 1]


@pytest.mark.parametrize(
    "value",
    [
        pytest.param([2**60, 1, 0, 0], id="just beyond"),
        pytest.param([2**62] * 4, id="wraps around to zero in 64 bits"),
        pytest.param([2**63 - 1] * 4, id="wraps around to a negative sum"),
    ],
)
def test_a_total_beyond_the_limit_is_refused_without_showing_it(value):
    areas = [np.zeros(4, np.int32)] * 2
    with pytest.raises(IngestError, match=r"beyond 2\^60") as caught:
        Counts.from_leaves(TREES["destination tree"], areas, np.array(value))
    assert not any(str(count) in str(caught.value) for count in [*value, sum(value)] if count > 99)


def test_memory_follows_the_leaves_and_not_the_pairs_of_areas():
    areas = Hierarchy.read({"town": np.arange(100_000).astype(str)})
    tree = Tree.destination_first(areas)  # 10^10 pairs, 80 GB as a dense table
    leaves = [np.arange(100_000, dtype=np.int32)] * 2
    tracemalloc.start()
    counts = Counts.from_leaves(tree, leaves, np.ones(100_000, np.int64))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert counts.n_leaves == 100_000
    assert peak < 100 * 10**6


@pytest.mark.parametrize("n_words", [1, 2, 3])
@pytest.mark.parametrize(
    ("size", "low", "n", "out_low"), [(1, 0, 1, 0), (2, 0, 2, 0), (500, 0, 500, 7), (90, 20, 50, 3)]
)
def test_one_pass_of_the_radix_sort_does_what_its_twin_does(n_words, size, low, n, out_low):
    here, there = slice(low, low + n), slice(out_low, out_low + n)
    for seed in range(5):
        words, counts = random_keys(n_words, size, seed=seed)
        for word in range(n_words):
            for shift in (0, 11, 33, 60):
                out_words = np.zeros((n_words, out_low + n), np.uint64)
                out_counts = np.zeros(out_low + n, np.int64)
                ends = np.empty(1 << DIGIT_BITS, np.int64)
                before = words.copy()
                moved = radix_pass_kernel(
                    words, counts, low, n, word, shift, 0, out_words, out_counts, out_low, ends
                )
                keys, sums = radix_pass(words[:, here], counts[here], word, shift, DIGIT_BITS)
                np.testing.assert_array_equal(words, before)
                if not moved:  # all digits are equal: the input is the answer
                    out_words[:, there], out_counts[there] = words[:, here], counts[here]
                assert [tuple(key) for key in out_words[:, there].T.tolist()] == keys
                assert out_counts[there].tolist() == sums
                assert not out_counts[:out_low].any()


def test_a_radix_pass_says_whether_it_moved_anything():
    words, counts = np.array([[5, 3, 5]], np.uint64), np.array([1, 2, 3])
    spare = np.zeros_like(words), np.zeros_like(counts), 0, np.empty(1 << DIGIT_BITS, np.int64)
    assert radix_pass_kernel(words, counts, 0, 3, 0, 0, 0, *spare)
    assert spare[0].tolist() == [[3, 5, 5]]
    assert spare[1].tolist() == [2, 1, 3]
    assert not radix_pass_kernel(words, counts, 0, 3, 0, DIGIT_BITS, 0, *spare)


@pytest.mark.parametrize(("n_words", "top"), [(1, 0), (2, 0), (2, 1), (3, 1)])
def test_buckets_are_sorted_each_on_its_own(n_words, top):
    words, counts = random_keys(n_words, 300, seed=1)
    offsets = np.array([0, 0, 100, 101, 299, 300])
    words[:top] = np.searchsorted(offsets[1:], np.arange(300), side="right")  # no digit is of these
    digits = [(w, s) for w in reversed(range(top, n_words)) for s in range(0, 64, DIGIT_BITS)]
    place = [np.array(column, np.int64) for column in zip(*digits, strict=True)]
    keys = [tuple(key) for key in words.T.tolist()]
    pairs = list(zip(keys, counts.tolist(), strict=True))
    expected = [
        pair
        for low, high in pairwise(offsets.tolist())
        for pair in sorted(pairs[low:high], key=lambda pair: pair[0])
    ]
    spare = np.empty_like(words), np.empty_like(counts), np.empty(1 << DIGIT_BITS, np.int64)
    sort_buckets_kernel(words, counts, offsets, 0, len(offsets) - 1, *place, *spare)
    found = zip([tuple(key) for key in words.T.tolist()], counts.tolist(), strict=True)
    assert list(found) == expected


@pytest.mark.parametrize("n_words", [1, 2, 3])
@pytest.mark.parametrize("cuts", [[], [0, 0], [1], [2, 3, 150, 151, 299]])
def test_nodes_of_all_levels_are_written_as_their_twin_has_them(n_words, cuts):
    place = [
        (word, *ends) for word in range(n_words) for ends in ((60, 4), (34, 26), (4, 30), (0, 4))
    ]
    word, shift, bits = (np.array(column) for column in zip(*place, strict=True))
    for seed in range(5):
        words = np.unique(random_keys(n_words, 300, seed=seed)[0], axis=1)
        counts = np.random.default_rng(seed).integers(1, 100, words.shape[1])
        expected = [nodes_of_level(words, counts, w, s) for w, s, _ in place]
        edges = [min(edge, len(counts)) for edge in (0, *cuts, len(counts))]
        n_nodes = np.zeros((len(edges), len(place)), np.int64)
        for part, (low, high) in enumerate(pairwise(edges), start=1):
            count_nodes_kernel(words, low, high, low - 1, word, shift, n_nodes[part])
        assert n_nodes.sum(axis=0).tolist() == [len(nodes) for nodes in expected]

        starts = np.concatenate([[0], np.cumsum(n_nodes.sum(axis=0))])
        ordinal, count = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.int64)
        offsets = np.full(starts[-1] + len(starts), -1, np.int64)
        carried = np.zeros((len(edges) - 1, len(place)), np.int64)
        firsts = starts[:-1] + np.cumsum(n_nodes, axis=0)
        for part, (low, high) in enumerate(pairwise(edges)):
            write_nodes_kernel(
                words, counts, low, high, low - 1, word, shift, bits, starts, firsts[part],
                firsts[part].copy(), np.zeros_like(word), ordinal, count, offsets, carried[part],
            )  # fmt: skip
            is_carried = carried[part] > 0
            count[firsts[part][is_carried] - 1] += carried[part][is_carried]
        assert count.tolist() == [node[1] for nodes in expected for node in nodes]
        assert ordinal.tolist() == [
            key[w] >> s & (1 << b) - 1
            for (w, s, b), nodes in zip(place, expected, strict=True)
            for key, *_ in nodes
        ]
        for level, (nodes, children) in enumerate(pairwise(expected)):
            firsts_below = [first for *_, first in children]
            start = starts[level] + level
            found = offsets[start : start + len(nodes)].tolist()
            assert found == [firsts_below.index(first) for *_, first in nodes]


def test_equal_keys_are_merged_and_their_counts_added_up():
    words = np.array([[9, 1, 1, 2, 9], [0, 5, 5, 5, 0]], np.uint64)
    counts = np.array([7, 1, 2, 3, 4])
    assert merge_equal_kernel(words, counts, 1, 4) == 2
    assert words[:, :3].tolist() == [[9, 1, 2], [0, 5, 5]]
    assert counts[:3].tolist() == [7, 3, 3]


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_parts_on_several_threads_give_what_one_thread_gives(tree, monkeypatch):
    """Few leaves are not worth threads, so the limit is lowered for the test."""
    leaves = random_leaves(tree, 5_000)
    monkeypatch.setattr("inftda.counts.FEW", 0)
    alone = Counts.from_leaves(tree, *leaves, threads=1)
    together = Counts.from_leaves(tree, *leaves, threads=3)
    for a, b in zip(alone.levels, together.levels, strict=True):
        for name in ("offsets", "ordinal", "count"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


@pytest.mark.parametrize("name", ["two words", "three words and a short one"])
def test_buckets_of_a_whole_word_give_what_others_give(name, monkeypatch):
    """Few leaves are not worth so many buckets, so the limit is lowered for the test."""
    tree = TREES[name]
    leaves = random_leaves(tree, 5_000)
    layout = Layout.of(tree)
    few = Counts.from_leaves(tree, *leaves)
    assert layout.cut(5_000) or layout.used_bits(0) <= DIGIT_BITS
    monkeypatch.setattr("inftda.tree_order.BUCKET_LEAVES", 0)
    assert layout.cut(5_000) == 0
    many = Counts.from_leaves(tree, *leaves)
    for a, b in zip(few.levels, many.levels, strict=True):
        for array in ("offsets", "ordinal", "count"):
            np.testing.assert_array_equal(getattr(a, array), getattr(b, array))


@pytest.mark.parametrize(("threads", "used"), [(1, 1), (3, 3), (None, 5)])
def test_sorting_keeps_to_the_threads_it_is_given(threads, used, monkeypatch):
    given = []

    class Watched(Crew):
        def map(self, work, items):
            given.append(self.threads)
            return map(work, items)

    monkeypatch.setattr("inftda.counts.FEW", 0)
    monkeypatch.setattr("inftda.counts.available_cores", lambda: 5)
    monkeypatch.setattr("inftda.counts.Crew", Watched)
    tree = TREES["destination tree"]
    Counts.from_leaves(tree, *random_leaves(tree, 100), threads=threads)
    assert set(given) == {used}
