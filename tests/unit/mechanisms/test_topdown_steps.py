"""The steps of the top-down loop, against slow and obvious twins."""

from fractions import Fraction

import numpy as np
import pytest
from fake_noise import Record, always, cells, setting_of

from inftda.counts import Counts
from inftda.errors import BudgetError, OptimizeError
from inftda.hierarchy import Hierarchy
from inftda.mechanisms import topdown
from inftda.mechanisms.catalogue import MECHANISMS, mechanism_named
from inftda.mechanisms.topdown import (
    TopDown,
    add_truth_kernel,
    child_areas_kernel,
    count_draws_kernel,
    find_truth_kernel,
    release_root,
)
from inftda.optimize.reference import algorithm_2, chebyshev_optimum, euclidean_optimum, shares
from inftda.optimize.segments import (
    Survivors,
    check_status,
    optimize_intopt,
    optimize_intopt_descending,
    optimize_l2,
    optimize_linf,
    optimize_one_by_one,
)
from inftda.privacy.plan import make_plan
from inftda.privacy.unit import PrivacyUnit
from inftda.tree import Axis, Tree

#: Towns 0 and 1 are in E, 2 to 4 in N, and 5 is the only one in S.
AREAS = Hierarchy.read({"region": list("EENNNS"), "town": ["e1", "e2", "n1", "n2", "n3", "s1"]})
TREE = Tree.destination_first(AREAS)
UNIT = PrivacyUnit()
TRUTH = {(0, 1): 40, (0, 5): 7, (5, 5): 25, (1, 0): 3, (3, 2): 11}
#: Draws of each level if there is no noise.
DRAWS = [3, 9, 2 + 0 + 0 + 3, 2 + 2 + 2 + 0 + 3]


def counts_of(truth, tree=TREE):
    columns = [np.array(column, np.int32) for column in zip(*truth, strict=True)]
    if not truth:
        columns = [np.zeros(0, np.int32) for _ in tree.axes]
    return Counts.from_leaves(tree, columns, np.array(list(truth.values()), np.int64))


# Kernels and their twins


def random_step(seed):
    """Parents with 1 to 40 children (an only child has no draw), some of them true.

    Of the children, some survive: none of some parents, all of others.
    """
    random = np.random.default_rng(seed)
    n_children = random.choice([1, 2, 7, 8, 9, 16, 17, 40], 30)
    draws = np.where(n_children > 1, n_children, 0)
    truth = np.full(30, -1, np.int64)
    true_parents = np.sort(random.permutation(30)[:20])
    truth[true_parents] = np.arange(20)
    children = [some_of(random, n_children[p], 1) for p in true_parents]
    surviving = [some_of(random, n, random.choice([0, 0, n])) for n in n_children]
    return {
        "n_children": n_children,
        "start": slices(draws),
        "truth": truth,
        "true_start": slices([len(c) for c in children]),
        "true_ordinal": np.concatenate(children).astype(np.int32),
        "x": random.integers(-5, 9, draws.sum()),
        "offsets": slices([len(c) for c in surviving]),
        "index": np.concatenate(surviving).astype(np.int32),
    }


def some_of(random, n, least):
    """At least so many of n children, ascending."""
    return np.sort(random.permutation(n)[: random.integers(least, n + 1)])


def slices(sizes):
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


@pytest.mark.parametrize("seed", range(20))
def test_true_counts_are_added_where_their_twin_adds_them(seed):
    step = random_step(seed)
    count = np.random.default_rng(seed).integers(1, 100, len(step["true_ordinal"]))
    x = step["x"] - 3
    expected = x.tolist()
    for parent, place in enumerate(step["truth"]):
        low, high = step["start"][parent : parent + 2]
        if place >= 0 and high > low:
            for child in range(*step["true_start"][place : place + 2]):
                expected[low + step["true_ordinal"][child]] += int(count[child])
    add_truth_kernel(
        x, step["start"], step["truth"], step["true_start"], step["true_ordinal"], count
    )
    assert x.tolist() == expected


@pytest.mark.parametrize("seed", range(20))
def test_a_parent_takes_a_draw_for_every_child_unless_it_is_the_only_one(seed):
    step = random_step(seed)
    areas = np.random.default_rng(seed).permutation(30).astype(np.int32)
    n_children = np.empty(30, np.int64)
    n_children[areas] = step["n_children"]
    before = np.full(31, -7)
    count_draws_kernel(areas, slices(n_children).astype(np.int32), before)
    assert before.tolist() == step["start"].tolist()


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("n_axes", [1, 2, 3])
def test_children_are_in_areas_of_their_own_on_one_axis_and_their_parents_on_others(seed, n_axes):
    step, random = random_step(seed), np.random.default_rng(seed)
    child_start = slices(random.integers(1, 50, 1000)).astype(np.int32)
    areas = tuple(random.integers(0, 1000, 30).astype(np.int32) for _ in range(n_axes))
    for refined in range(n_axes):
        out = tuple(np.full(len(step["index"]), -7, np.int32) for _ in areas)
        child_areas_kernel(areas, refined, child_start, step["offsets"], step["index"], out)
        of_parents = [np.repeat(area, np.diff(step["offsets"])) for area in areas]
        of_parents[refined] = child_start[of_parents[refined]] + step["index"]
        assert [area.tolist() for area in out] == [area.tolist() for area in of_parents]


@pytest.mark.parametrize("seed", range(40))
def test_children_are_found_among_the_true_ones_where_their_twin_finds_them(seed):
    step = random_step(seed)
    expected = []
    for parent, place in enumerate(step["truth"].tolist()):
        true = {}
        if place >= 0:
            span = range(*step["true_start"][place : place + 2].tolist())
            true = {int(step["true_ordinal"][child]): child for child in span}
        kept = slice(*step["offsets"][parent : parent + 2])
        expected += [true.get(ordinal, -1) for ordinal in step["index"][kept].tolist()]
    found = np.full(len(step["index"]), -7)
    find_truth_kernel(
        step["truth"],
        step["offsets"],
        step["index"],
        step["true_start"],
        step["true_ordinal"],
        found,
    )
    assert found.tolist() == expected


# Optimisers of many vectors at once


def segments(seed):
    """Vectors one behind the other, empty ones among them, and the sums they are to have."""
    random = np.random.default_rng(seed)
    sizes = random.choice([0, 2, 3, 5, 12, 70], 25)
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    x = random.integers(-6, 9, start[-1])
    return x, start, random.integers(0, 30, 25), random.integers(0, 2**63, 25, np.uint64)


def outcome(optimize, x, start, total, seeds):
    """Status, and every vector as a list, zeros put in again."""
    survivors = Survivors.of(len(x) + len(total)).for_vectors(len(total))
    for array in survivors:
        array[:] = -7
    index, value, offsets = survivors
    status = optimize(x.copy(), start, total, seeds, survivors)
    if status:
        return status, []
    found = []
    for size, low, high in zip(np.diff(start), offsets[:-1], offsets[1:], strict=True):
        vector = np.zeros(max(1, size), np.int64)  # an empty vector stands for an only child
        vector[index[low:high]] = value[low:high]
        assert (value[low:high] > 0).all()
        assert (np.diff(index[low:high]) > 0).all()
        found.append(vector.tolist())
    return status, found


def check_each(optimize, seed, check):
    x, start, total, seeds = segments(seed)
    status, found = outcome(optimize, x, start, total, seeds)
    assert status == 0
    for low, high, amount, after in zip(start[:-1], start[1:], total.tolist(), found, strict=True):
        assert sum(after) == amount
        if high > low:
            check(x[low:high].tolist(), after, amount)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(
    ("optimize", "is_descending"), [(optimize_intopt, False), (optimize_intopt_descending, True)]
)
def test_every_vector_is_what_the_papers_algorithm_makes_of_it(optimize, is_descending, seed):
    def check(before, after, amount):
        twin = algorithm_2(before, amount, is_descending=is_descending)
        assert shares(before, after) == shares(before, twin)  # ties are broken at random

    check_each(optimize, seed, check)


@pytest.mark.parametrize("seed", range(10))
def test_every_vector_is_as_near_as_can_be(seed):
    def check_l2(before, after, amount):
        away = sum((a - b) ** 2 for a, b in zip(after, before, strict=True))
        assert away == euclidean_optimum(before, amount)

    def check_linf(before, after, amount):
        away = max(abs(a - b) for a, b in zip(after, before, strict=True))
        assert away == chebyshev_optimum(before, amount)

    check_each(optimize_l2, seed, check_l2)
    check_each(optimize_linf, seed, check_linf)


def test_a_black_box_is_handed_every_vector_once():
    x, start, total, seeds = segments(3)
    before, asked = x.copy(), []

    def solve(vector, amount):
        asked.append((vector.tolist(), amount))
        return np.full(len(vector), amount)

    status, found = outcome(optimize_one_by_one(solve), x, start, total, seeds)
    assert status == 0
    expected = [
        (before[low:high].tolist(), amount)
        for low, high, amount in zip(start[:-1], start[1:], total.tolist(), strict=True)
        if high > low
    ]
    assert asked == expected
    assert found == [
        [amount] * max(1, size) for amount, size in zip(total, np.diff(start), strict=True)
    ]


@pytest.mark.parametrize(
    "optimize", [optimize_intopt, optimize_intopt_descending, optimize_l2, optimize_linf]
)
def test_a_count_too_large_to_be_summed_is_an_error_and_never_a_wrong_sum(optimize):
    x = np.array([1, 2, 2**61, 2**61, 3, 4], np.int64)
    start, total = np.array([0, 2, 4, 6]), np.array([3, 9, 7])
    status, _ = outcome(optimize, x, start, total, np.zeros(3, np.uint64))
    assert status != 0
    with pytest.raises(OptimizeError, match="larger epsilon"):
        check_status(status)
    check_status(0)


def test_noise_that_cannot_be_summed_stops_the_release():
    setting = setting_of(make_plan(TREE, UNIT, rho=1), Record(always(2**61)))
    with pytest.raises(OptimizeError):
        list(TopDown().run(counts_of(TRUTH), setting))


# The loop


@pytest.mark.parametrize("noise", [-1000, -87, -86, -85, 0, 12])
def test_a_noised_total_is_clamped_at_zero(noise):
    plan = make_plan(TREE, PrivacyUnit("add-remove"), rho=1)
    counts = counts_of(TRUTH)
    assert counts.total == 86
    nodes = release_root(counts, setting_of(plan, Record(always(noise))))
    assert nodes.value.tolist() == [86 + noise] * (86 + noise > 0)
    assert [axis.tolist() for axis in nodes.areas] == [[0] * (86 + noise > 0)] * 2
    found = cells(TopDown().run(counts, setting_of(plan, Record(always(noise)))))
    assert sum(found.values()) == max(86 + noise, 0)


def test_a_public_total_gets_no_noise():
    record = Record(always(5))
    nodes = release_root(counts_of(TRUTH), setting_of(make_plan(TREE, UNIT, rho=1), record))
    assert nodes.value.tolist() == [86]
    assert record.n_draws == 0


def test_trips_may_be_released_where_there_are_none():
    plan = make_plan(TREE, PrivacyUnit("add-remove"), rho=1)
    found = cells(TopDown().run(counts_of({}), setting_of(plan, Record(always(9)))))
    assert sum(found.values()) == 9


def test_without_noise_the_release_is_the_truth():
    record = Record(always(0))
    setting = setting_of(make_plan(TREE, UNIT, rho=1), record)
    assert cells(TopDown().run(counts_of(TRUTH), setting)) == TRUTH


def test_only_children_are_never_drawn():
    """All trips go to the only town of S; noise would be seen if it were drawn."""
    record = Record(always(0))
    setting = setting_of(make_plan(TREE, UNIT, rho=1), record)
    truth = {(2, 5): 9, (5, 5): 4}
    assert cells(TopDown().run(counts_of(truth), setting)) == truth
    # To 3 regions; from 3 regions to S; S has one town; from the 3 towns of N, S has one again.
    assert record.sizes == [3, 3, 0, 3]
    assert [step for step in record.steps if step[1] == step[2]] == [
        ("all > region", 3, 3),
        ("region > region", 3, 3),
        ("region > town", 0, 0),
        ("region > town", 0, 0),
        ("town > town", 3, 3),
    ]


def test_noise_goes_to_every_child_of_a_surviving_parent_and_to_no_other():
    """Nobody travels, so what is released is the noise: 5 in all, 5 in E, 2 and 3 in its towns."""
    tree = Tree.build([Axis("x", AREAS)], "xx")
    record = Record(iter([5, 5, 0, 0, 2, 3]))
    plan = make_plan(tree, PrivacyUnit("add-remove"), rho=1)
    found = cells(TopDown().run(counts_of({}, tree), setting_of(plan, record)))
    assert found == {(0,): 2, (1,): 3}
    assert record.sizes == [1, 3, 2]


def test_every_level_gets_the_scale_that_was_planned_for_it():
    for unit in (UNIT, PrivacyUnit("add-remove", trips=3)):
        plan = make_plan(TREE, unit, epsilon=1, delta=1e-8, split="geometric:1.5")
        record = Record()
        list(TopDown().run(counts_of(TRUTH), setting_of(plan, record)))
        assert record.scales == [level.sigma2 for level in plan.levels]
        assert len(set(record.scales)) == len(record.scales)


@pytest.mark.parametrize("name", ["inftda", "vanilla-gauss", "stability-histogram"])
def test_what_was_spent_cannot_be_spent_again(name):
    mechanism = mechanism_named(name)
    setting = setting_of(mechanism.plan(TREE, UNIT, epsilon=1, delta=1e-8))
    list(mechanism.run(counts_of(TRUTH), setting))
    with pytest.raises(BudgetError):
        list(mechanism.run(counts_of(TRUTH), setting))


class Padded:
    """A spending with one more planned level than the mechanism knows of."""

    def __init__(self, spending, index):
        self._spending, self._waiting = spending, {index}

    def charge(self, index):
        self._waiting.discard(index)
        return self._spending.charge(index)

    def is_planned(self, index):
        return self._spending.is_planned(index)

    def finish(self):
        self._spending.finish()
        if self._waiting:
            raise BudgetError("a planned level was not drawn")


@pytest.mark.parametrize("name", MECHANISMS)
def test_no_mechanism_ends_unless_all_that_was_planned_was_drawn(name):
    mechanism = mechanism_named(name)
    plan = mechanism.plan(TREE, UNIT, epsilon=1, delta=1e-8)
    blocks = mechanism.run(
        counts_of(TRUTH), setting_of(plan, spending=Padded(plan.spending(), index=99))
    )
    with pytest.raises(BudgetError, match="not drawn"):
        list(blocks)


def test_a_plan_for_another_tree_is_refused():
    deeper = Tree.build([Axis("x", AREAS), Axis("y", AREAS), Axis("z", AREAS)], "xyzxyz")
    with pytest.raises(BudgetError, match="not drawn"):
        list(TopDown().run(counts_of(TRUTH), setting_of(make_plan(deeper, UNIT, rho=1))))
    with pytest.raises(BudgetError, match="not in the plan"):
        list(
            TopDown().run(
                counts_of({(0, 0, 0): 5}, deeper), setting_of(make_plan(TREE, UNIT, rho=1))
            )
        )


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
@pytest.mark.parametrize("threads", [1, 3])
def test_where_blocks_end_does_not_change_what_is_done(monkeypatch, size, threads):
    monkeypatch.setattr(topdown, "BLOCK_DRAWS", size)
    record = Record(always(0))
    setting = setting_of(make_plan(TREE, UNIT, rho=1), record, threads=threads)
    assert cells(TopDown().run(counts_of(TRUTH), setting)) == TRUTH
    assert record.n_draws == sum(DRAWS)


@pytest.mark.parametrize("draws", [0, 1, 65_536, 131_072, 300_000, 2_813_007, 57_251_395])
def test_blocks_of_a_level_get_smaller_but_never_small(draws):
    sizes, left = [], draws
    while left:
        sizes.append(topdown.block_size(left))
        left -= sizes[-1]
    assert sum(sizes) == draws
    assert all(size <= topdown.BLOCK_DRAWS for size in sizes)
    assert all(size >= topdown.FEWEST_DRAWS for size in sizes) or len(sizes) <= 1
    assert sizes[:-1] == sorted(sizes[:-1], reverse=True)
    # The last to begin is done soon: nobody waits for more than one small block.
    assert sizes[-1:] <= [2 * topdown.FEWEST_DRAWS]


def test_progress_goes_up_to_the_work_of_each_level_and_names_it(monkeypatch):
    monkeypatch.setattr(topdown, "BLOCK_DRAWS", 4)
    record = Record()
    list(TopDown().run(counts_of(TRUTH), setting_of(make_plan(TREE, UNIT, rho=1), record)))
    names = [level.name for level in TREE.levels[1:]]
    for name in names:
        steps = [(done, total) for step, done, total in record.steps if step == name]
        assert steps[0][0] == 0
        assert steps[-1][0] == steps[-1][1]
        assert len({total for _, total in steps}) == 1
        assert steps == sorted(steps)
    work = {name: total for name, _, total in record.steps}
    assert sum(work.values()) == record.n_draws


def test_every_block_of_work_has_a_stream_of_its_own(monkeypatch):
    monkeypatch.setattr(topdown, "BLOCK_DRAWS", 3)
    taken = []

    class Source:
        is_secure = False

        def stream(self, *labels):
            from inftda.noise.entropy import SeededSource  # noqa: PLC0415

            taken.append(labels)
            return SeededSource(1).stream(*labels)

    plan = make_plan(TREE, PrivacyUnit("add-remove"), rho=Fraction(1, 2))
    list(TopDown().run(counts_of(TRUTH), setting_of(plan, source=Source())))
    assert len(taken) > 10
    assert len(set(taken)) == len(taken), "equal labels would be equal noise"
