"""Published totals on random hierarchies, sums and measurements; and on whole random releases."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import inftda
from handmade_tables import totals_table
from inftda.noise.bits import SeededSource
from inftda.publication.totals import _divided, totals_by_level
from inftda.tree import Axis, Tree
from random_trees import random_counts, random_hierarchies, random_trees
from tiers import some

#: Measurements in a file from elsewhere may be anything.
ANY = st.integers(-(2**62), 2**62)
USUAL = st.integers(-500, 3_000)


@given(data=st.data())
@settings(max_examples=some(300), deadline=None)
def test_totals_add_up_and_are_not_negative(data):
    hierarchy = data.draw(random_hierarchies())
    splitting = [d for d in range(1, hierarchy.depth + 1) if hierarchy.splits(d)]
    assume(splitting)
    first = data.draw(st.sampled_from(splitting))
    n = hierarchy.n_areas(hierarchy.depth)
    flows = data.draw(st.sampled_from([st.integers(0, 3_000), st.integers(0, 2**55)]))
    listed = np.array(data.draw(st.lists(flows, min_size=n, max_size=n)), np.int64)
    sigma2 = data.draw(st.sampled_from([Fraction(1), Fraction(7_000), Fraction(1, 3)]))
    values = data.draw(st.sampled_from([ANY, USUAL]))
    measured = {}
    for depth in splitting[splitting.index(first) :]:
        size = hierarchy.n_areas(depth)
        value = data.draw(st.lists(values, min_size=size, max_size=size))
        measured[depth] = totals_table(value, sigma2)
    tree = Tree((Axis("origin", hierarchy),), ())
    found = totals_by_level(tree, 0, listed, measured)
    # Levels above the first that was measured have totals too: the sums of finer ones.
    assert [*found] == [*range(splitting[0], hierarchy.depth + 1)]
    above = hierarchy.sum_up(listed, splitting[0] - 1)
    for depth, totals in found.items():
        offsets = hierarchy.child_offsets(depth - 1)
        assert np.add.reduceat(totals.flow, offsets[:-1]).tolist() == above.tolist()
        assert (totals.flow >= 0).all()
        assert totals.listed.tolist() == hierarchy.sum_up(listed, depth).tolist()
        above = totals.flow
    again = totals_by_level(tree, 0, listed, measured)
    assert all(again[depth].flow.tolist() == found[depth].flow.tolist() for depth in found)


def divided_slowly(total, guess, variance):
    """The same by bisection: how far all have to be moved, those that would be negative to 0."""
    low, high = -1e9, 1e9
    for _ in range(200):
        middle = (low + high) / 2
        is_less = np.maximum(guess + middle * variance, 0).sum() < total
        low, high = (middle, high) if is_less else (low, middle)
    return np.maximum(guess + low * variance, 0)


@given(data=st.data())
@settings(max_examples=some(200), deadline=None)
def test_guesses_are_moved_in_proportion_to_their_variances(data):
    sizes = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    guess, variance = (
        np.array(data.draw(st.lists(numbers, min_size=sum(sizes), max_size=sum(sizes))))
        for numbers in (st.floats(-300, 2_000), st.floats(1, 400))
    )
    above = np.array([data.draw(st.integers(0, 5_000)) for _ in sizes])
    found = _divided(above, offsets, guess, variance)
    for parent, ends in enumerate(pairwise(offsets)):
        part = slice(*ends)
        slow = divided_slowly(above[parent], guess[part], variance[part])
        assert np.abs(found[part] - slow).max() < 1.001  # it is rounded


@given(data=st.data())
@settings(max_examples=some(40), deadline=None)
def test_every_question_about_one_axis_has_one_answer(data):
    """By any level, filter or dimension with a single area; listed sums are those of flows."""
    tree = data.draw(random_trees())
    counts = data.draw(random_counts(tree, most=100_000))
    assume(counts.total)
    areas, count = counts.leaves
    axes = {axis.name: axis.hierarchy for axis in tree.axes}
    table = {
        name: hierarchy.codes(hierarchy.depth).take(numbers)
        for (name, hierarchy), numbers in zip(axes.items(), areas, strict=True)
    } | {"count": count}
    made = inftda.release(
        table, axis=axes, order=tree.order, rho=0.05, cross_tables=0.3, source=SeededSource(3)
    )
    for axis in made.tree.axes:
        for depth, totals in made.totals_of(axis.name).items():
            level = axis.hierarchy.level_name(depth)
            shown = dict.fromkeys(axes, "all") | {axis.name: level}
            rows = made.flows(level=shown, intervals=True).to_pylist()
            known = {
                code: number for number, code in enumerate(axis.hierarchy.codes(depth).to_pylist())
            }
            assert sum(row["flow"] for row in rows) == made.total
            assert sum(row["listed"] for row in rows) == made.total
            for row in rows:
                at = known[row[axis.name]]
                assert (row["flow"], row["listed"]) == (totals.flow[at], totals.listed[at])
                assert row["low"] <= row["flow"] <= row["high"]
                (alone,) = made.flows(
                    level=dict.fromkeys(axes, "all"),
                    where={axis.name: f"{level}:{row[axis.name]}"},
                    intervals=True,
                ).to_pylist()
                del row[axis.name]
                assert alone == row
