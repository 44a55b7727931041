"""The top-down loop."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from fake_noise import Record, always, cells, release
from inftda.errors import BudgetError
from inftda.mechanism import topdown
from inftda.mechanism.batches import in_group_order
from inftda.mechanism.data import MeasuredTable
from inftda.mechanism.intopt import words_of
from inftda.mechanism.step import divide_again
from inftda.noise.bits import Bits, Secret
from inftda.privacy.noise_plan import make_plan
from inftda.privacy.unit import Unit
from inftda.reading.truth import Truth
from inftda.tree import Axis, Cells, Tree
from inftda.tree.hierarchy import Hierarchy
from inftda.util.threads import ThreadPool

#: Towns 0 and 1 are in E, 2 to 4 in N, and 5 is the only one in S.
AREAS = Hierarchy.read({"region": list("EENNNS"), "town": ["e1", "e2", "n1", "n2", "n3", "s1"]})
TREE = Tree.destination_first(AREAS)
UNIT = Unit()
TRUTH = {(0, 1): 40, (0, 5): 7, (5, 5): 25, (1, 0): 3, (3, 2): 11}


def counts_of(truth, tree=TREE):
    columns = [np.array(column, np.int32) for column in zip(*truth, strict=True)]
    if not truth:
        columns = [np.zeros(0, np.int32) for _ in tree.axes]
    return Truth.from_leaves(tree, columns, np.array(list(truth.values()), np.int64))


# The loop


@pytest.mark.parametrize("noise", [-1000, -87, -86, -85, 0, 12])
def test_a_noised_total_is_clamped_at_zero(noise):
    plan = make_plan(TREE, Unit("add-remove"), rho=1, method="paper")
    counts = counts_of(TRUTH)
    assert counts.total == 86
    found = cells(release(counts, plan, Record(always(noise))))
    assert sum(found.values()) == max(86 + noise, 0)


def test_only_children_are_never_drawn():
    """All trips go to the only town of S; noise would be seen if it were drawn."""
    record = Record(always(0))
    truth = {(2, 5): 9, (5, 5): 4}
    assert (
        cells(release(counts_of(truth), make_plan(TREE, UNIT, rho=1, method="paper"), record))
        == truth
    )
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
    plan = make_plan(tree, Unit("add-remove"), rho=1, method="paper")
    found = cells(release(counts_of({}, tree), plan, record))
    assert found == {(0,): 2, (1,): 3}
    assert record.sizes == [1, 3, 2]


def test_what_was_spent_cannot_be_spent_again():
    plan = make_plan(TREE, UNIT, epsilon=1, delta=1e-8, method="paper")
    account = plan.account()
    release(counts_of(TRUTH), plan, account=account)
    with pytest.raises(BudgetError):
        release(counts_of(TRUTH), plan, account=account)


def test_a_plan_for_another_tree_is_refused():
    deeper = Tree.build([Axis("x", AREAS), Axis("y", AREAS), Axis("z", AREAS)], "xyzxyz")
    with pytest.raises(BudgetError, match="not drawn"):
        release(counts_of(TRUTH), make_plan(deeper, UNIT, rho=1, method="paper"))
    with pytest.raises(BudgetError, match="not in the plan"):
        release(counts_of({(0, 0, 0): 5}, deeper), make_plan(TREE, UNIT, rho=1, method="paper"))


def test_another_seed_is_another_release_and_ties_have_a_seed_of_their_own():
    plan = make_plan(TREE, UNIT, rho=Fraction(1, 50), method="paper")
    found = [release(counts_of(TRUTH), plan, seed=seed) for seed in range(4)]
    assert len({tuple(sorted(cells(one).items())) for one in found}) > 1
    assert len({one.seed for one in found}) == 4
    assert all(len(one.seed) == 16 for one in found)


def test_anybody_can_divide_again_from_measurements_and_seed():
    plan = make_plan(TREE, UNIT, rho=Fraction(1, 30), cross_tables=0.3, method="paper")
    expected = release(counts_of(TRUTH), plan, seed=9)
    account, nodes = plan.account(), Cells.root(2, expected.leaves.value.sum())
    measured = {}
    for noisy in expected.noisy:
        measured.setdefault(noisy.depths, []).append(noisy.value)
    for level in TREE.splitting_levels:
        step = topdown.step_to(level, TREE, account)
        parents = in_group_order(level, nodes, ThreadPool(1))
        nothing = np.zeros(0, np.int64)
        here = [
            MeasuredTable.of(
                one, parents.areas, np.concatenate([nothing, *measured.get(one.depths, [])])
            )
            for one in (step.children, *step.cross)
        ]
        nodes = divide_again(step, parents, here, words_of(expected.seed))
    assert cells(expected._replace(leaves=nodes)) == cells(expected)


def test_progress_goes_up_to_the_work_of_each_level_and_names_it():
    record = Record()
    release(counts_of(TRUTH), make_plan(TREE, UNIT, rho=1, method="paper"), record, part=8)
    names = [level.name for level in TREE.levels[1:]]
    for name in names:
        steps = [(done, total) for step, done, total in record.steps if step == name]
        assert steps[0][0] == 0
        assert steps[-1][0] == steps[-1][1]
        assert len({total for _, total in steps}) == 1
        assert steps == sorted(steps)
    work = {name: total for name, _, total in record.steps}
    assert sum(work.values()) == record.n_draws


@pytest.mark.parametrize("across", [0, 0.3])
def test_no_address_of_random_bits_is_used_twice(monkeypatch, across):
    """Under one key all blocks that are encrypted have numbers of their own."""
    used, keys = [], []
    right = Bits._encrypt

    def noted(self, counters, random):
        used.extend((self._key, *map(int, counter)) for counter in counters.tolist())
        right(self, counters, random)

    made = Secret.bits

    def labelled(self, *labels):
        found = made(self, *labels)
        keys.append((labels, found._key))
        return found

    monkeypatch.setattr(Bits, "_encrypt", noted)
    monkeypatch.setattr(Secret, "bits", labelled)
    plan = make_plan(
        TREE, Unit("add-remove"), rho=Fraction(1, 2), cross_tables=across, method="paper"
    )
    release(counts_of(TRUTH), plan, part=8)
    assert len(used) > 12
    assert len(set(used)) == len(used)
    assert len(set(keys)) == len({key for _, key in keys}) == len(plan.parts)


# Cross tables


def test_every_level_and_table_gets_the_scale_that_was_planned_for_it():
    weights = {UNIT: [1, 2, 3, 4], Unit("add-remove", trips=3, distinct=True): [1, 2, 3, 4, 5]}
    for unit, split in weights.items():
        plan = make_plan(
            TREE, unit, rho=Fraction(1, 100), split=split, cross_tables=0.08, method="paper"
        )
        record = Record()
        release(counts_of(TRUTH), plan, record)
        assert plan.tables
        assert sorted(record.scales) == sorted(part.noise.square for part in plan.parts)


def test_only_tables_of_the_plan_are_measured():
    """A plan without one of the tables: it gets no noise because nobody looks at it."""
    plan = make_plan(TREE, UNIT, rho=Fraction(1, 100), cross_tables=0.08, method="paper")
    record = Record()
    outcome = release(counts_of(TRUTH), replace(plan, tables=plan.tables[1:]), record)
    assert len(record.scales) == len(plan.parts) - 1
    assert plan.tables[0].depths not in {noisy.depths for noisy in outcome.noisy}


def test_progress_is_the_same_whatever_the_truth_is_when_all_survives():
    """What is said of the work follows from what is released, not from totals."""
    across, plain = Record(always(0)), Record(always(0))
    release(
        counts_of(TRUTH),
        make_plan(TREE, UNIT, rho=Fraction(1, 100), cross_tables=0.08, method="paper"),
        across,
    )
    release(counts_of(TRUTH), make_plan(TREE, UNIT, rho=1, method="paper"), plain)
    assert across.steps == plain.steps
