"""The top-down loop."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from fake_noise import Record, always, cells, setting_of
from inftda.errors import BudgetError
from inftda.hierarchy import Hierarchy
from inftda.mechanisms.topdown import TopDown, release_total
from inftda.privacy.plan import make_plan
from inftda.privacy.unit import Unit
from inftda.tree import Axis, Tree
from inftda.truth import Truth

#: Towns 0 and 1 are in E, 2 to 4 in N, and 5 is the only one in S.
AREAS = Hierarchy.read({"region": list("EENNNS"), "town": ["e1", "e2", "n1", "n2", "n3", "s1"]})
TREE = Tree.destination_first(AREAS)
UNIT = Unit()
TRUTH = {(0, 1): 40, (0, 5): 7, (5, 5): 25, (1, 0): 3, (3, 2): 11}
#: Draws of each level if there is no noise.
DRAWS = [3, 9, 2 + 0 + 0 + 3, 2 + 2 + 2 + 0 + 3]


def counts_of(truth, tree=TREE):
    columns = [np.array(column, np.int32) for column in zip(*truth, strict=True)]
    if not truth:
        columns = [np.zeros(0, np.int32) for _ in tree.axes]
    return Truth.from_leaves(tree, columns, np.array(list(truth.values()), np.int64))


# The loop


@pytest.mark.parametrize("noise", [-1000, -87, -86, -85, 0, 12])
def test_a_noised_total_is_clamped_at_zero(noise):
    plan = make_plan(TREE, Unit("add-remove"), rho=1)
    counts = counts_of(TRUTH)
    assert counts.total == 86
    assert release_total(86, setting_of(plan, Record(always(noise)))) == max(86 + noise, 0)
    found = cells(TopDown().run(counts, setting_of(plan, Record(always(noise)))))
    assert sum(found.values()) == max(86 + noise, 0)


def test_a_public_total_gets_no_noise():
    record = Record(always(5))
    assert release_total(86, setting_of(make_plan(TREE, UNIT, rho=1), record)) == 86
    assert record.n_draws == 0


def test_trips_may_be_released_where_there_are_none():
    plan = make_plan(TREE, Unit("add-remove"), rho=1)
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
    plan = make_plan(tree, Unit("add-remove"), rho=1)
    found = cells(TopDown().run(counts_of({}, tree), setting_of(plan, record)))
    assert found == {(0,): 2, (1,): 3}
    assert record.sizes == [1, 3, 2]


def test_every_level_gets_the_scale_that_was_planned_for_it():
    for unit in (UNIT, Unit("add-remove", trips=3)):
        plan = make_plan(TREE, unit, epsilon=1, delta=1e-8, split="geometric:1.5")
        record = Record()
        list(TopDown().run(counts_of(TRUTH), setting_of(plan, record)))
        assert record.scales == [level.sigma2 for level in plan.levels]
        assert len(set(record.scales)) == len(record.scales)


def test_what_was_spent_cannot_be_spent_again():
    setting = setting_of(make_plan(TREE, UNIT, epsilon=1, delta=1e-8))
    list(TopDown().run(counts_of(TRUTH), setting))
    with pytest.raises(BudgetError):
        list(TopDown().run(counts_of(TRUTH), setting))


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


def test_a_release_does_not_end_unless_all_that_was_planned_was_drawn():
    plan = make_plan(TREE, UNIT, epsilon=1, delta=1e-8)
    blocks = TopDown().run(
        counts_of(TRUTH), setting_of(plan, spending=Padded(plan.account(), index=99))
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
def test_where_items_end_does_not_change_what_is_done(size, threads):
    record = Record(always(0))
    setting = setting_of(make_plan(TREE, UNIT, rho=1), record, threads=threads)
    assert cells(TopDown(item_children=size).run(counts_of(TRUTH), setting)) == TRUTH
    assert record.n_draws == sum(DRAWS)


def test_progress_goes_up_to_the_work_of_each_level_and_names_it():
    record = Record()
    setting = setting_of(make_plan(TREE, UNIT, rho=1), record)
    list(TopDown(item_children=4).run(counts_of(TRUTH), setting))
    names = [level.name for level in TREE.levels[1:]]
    for name in names:
        steps = [(done, total) for step, done, total in record.steps if step == name]
        assert steps[0][0] == 0
        assert steps[-1][0] == steps[-1][1]
        assert len({total for _, total in steps}) == 1
        assert steps == sorted(steps)
    work = {name: total for name, _, total in record.steps}
    assert sum(work.values()) == record.n_draws


def test_every_item_of_work_has_a_stream_of_its_own():
    taken = []

    class Source:
        is_secure = False

        def stream(self, *labels):
            from inftda.noise.entropy import SeededSource  # noqa: PLC0415

            taken.append(labels)
            return SeededSource(1).stream(*labels)

    plan = make_plan(TREE, Unit("add-remove"), rho=Fraction(1, 2))
    list(TopDown(item_children=3).run(counts_of(TRUTH), setting_of(plan, source=Source())))
    assert len(taken) > 10
    assert len(set(taken)) == len(taken), "equal labels would be equal noise"


# Across the tree


def test_every_level_and_table_gets_the_scale_that_was_planned_for_it():
    for unit in (UNIT, Unit("add-remove", trips=3, distinct=True)):
        plan = make_plan(TREE, unit, rho=Fraction(1, 100), split="geometric:1.5", across=0.08)
        record = Record()
        setting = setting_of(plan, record)
        list(TopDown().run(counts_of(TRUTH), setting))
        assert plan.tables
        assert sorted(record.scales) == sorted(part.sigma2 for part in plan.parts)
        planned = {table.depths: table.sigma2 for table in plan.tables}
        assert all(planned[found.table.depths] == found.sigma2 for found in setting.totals)


def test_without_noise_the_release_is_the_truth_across_too():
    record = Record(always(0))
    setting = setting_of(make_plan(TREE, UNIT, rho=Fraction(1, 100), across=0.08), record)
    assert cells(TopDown().run(counts_of(TRUTH), setting)) == TRUTH
    for found in setting.totals:
        axis, depth = found.table.level.axis, max(found.table.depths)
        above = AREAS.ancestor(2, depth)
        sums = np.zeros(AREAS.n_areas(depth), np.int64)
        for leaf, count in TRUTH.items():
            sums[above[leaf[axis]]] += count
        assert found.value.tolist() == sums.tolist()
    assert len(setting.totals) == 3, "regions and towns of origins, towns of destinations"


def test_a_table_that_is_planned_but_not_of_this_tree_is_never_passed_over():
    plan = make_plan(TREE, UNIT, rho=Fraction(1, 100), across=0.08)
    stranger = replace(plan.tables[0], depths=(7, 7))
    with pytest.raises(BudgetError, match="not drawn"):
        list(
            TopDown().run(
                counts_of(TRUTH), setting_of(replace(plan, tables=(*plan.tables, stranger)))
            )
        )


def test_only_tables_of_the_plan_are_measured():
    """A plan without one of the tables: it gets no noise because nobody looks at it."""
    plan = make_plan(TREE, UNIT, rho=Fraction(1, 100), across=0.08)
    record = Record()
    setting = setting_of(replace(plan, tables=plan.tables[1:]), record)
    list(TopDown().run(counts_of(TRUTH), setting))
    assert len(record.scales) == len(plan.parts) - 1
    assert plan.tables[0].depths not in {found.table.depths for found in setting.totals}


def test_all_of_nothing_is_released_across_too():
    plan = make_plan(TREE, Unit("add-remove"), rho=Fraction(1, 100), across=0.08)
    setting = setting_of(plan, Record(always(-3)))
    assert cells(TopDown().run(counts_of({}), setting)) == {}
    assert all((found.value == -3).all() for found in setting.totals)


def test_progress_is_the_same_whatever_the_truth_is_when_all_survives():
    """What is said of the work follows from what is released, not from totals."""
    record = Record(always(0))
    setting = setting_of(make_plan(TREE, UNIT, rho=Fraction(1, 100), across=0.08), record)
    list(TopDown().run(counts_of(TRUTH), setting))
    plain = Record(always(0))
    list(TopDown().run(counts_of(TRUTH), setting_of(make_plan(TREE, UNIT, rho=1), plain)))
    assert record.steps == plain.steps
