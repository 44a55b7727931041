"""What cannot occur, on any tree: by brute force over the leaves, and in whole releases."""

from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import inftda
from inftda.errors import TreeError
from inftda.privacy.unit import Unit
from inftda.publication.parquet import leaf_areas
from inftda.reading import Columns, read_leaves
from inftda.tree import Marginal
from inftda.tree.structural_zeros import ZeroBoxes
from leaf_counts import leaf_counts
from random_trees import random_trees
from tiers import some


@st.composite
def random_boxes(draw, tree):
    """Rows of a table, each with an area of any level on every axis: its level, and its number."""
    box = st.tuples(
        *(
            st.integers(0, axis.hierarchy.depth).flatmap(
                lambda depth, axis=axis: st.tuples(
                    st.just(depth), st.integers(0, axis.hierarchy.n_areas(depth) - 1)
                )
            )
            for axis in tree.axes
        )
    )
    return draw(st.lists(box, min_size=1, max_size=5))


def table_of(tree, boxes):
    """The same as a publisher writes it."""
    columns = {}
    for number, axis in enumerate(tree.axes):
        columns[axis.name] = [
            f"{axis.hierarchy.level_name(depth)}:{axis.hierarchy.codes(depth)[area].as_py()}"
            if depth
            else "all"
            for depth, area in (box[number] for box in boxes)
        ]
    return columns


def leaves_of(tree, depths, areas):
    """Where the leaves of a node are among all leaves, axis by axis."""
    return np.ix_(
        *(
            np.flatnonzero(axis.hierarchy.ancestor(axis.hierarchy.depth, depth) == area)
            for axis, depth, area in zip(tree.axes, depths, areas, strict=True)
        )
    )


def never_of(tree, boxes):
    """bool[finest areas of every axis]: which leaves cannot occur."""
    never = np.zeros([axis.hierarchy.n_areas(axis.hierarchy.depth) for axis in tree.axes], bool)
    for box in boxes:
        never[leaves_of(tree, *zip(*box, strict=True))] = True
    return never


@settings(max_examples=some(200), deadline=None)
@given(st.data())
def test_a_node_is_possible_if_one_of_its_leaves_is(data):
    tree = data.draw(random_trees())
    boxes = data.draw(random_boxes(tree))
    never = never_of(tree, boxes)
    if never.all():
        with pytest.raises(TreeError, match="nothing can occur"):
            ZeroBoxes.read(table_of(tree, boxes), tree)
        return
    known = ZeroBoxes.read(table_of(tree, boxes), tree)
    for depths in product(*(range(axis.hierarchy.depth + 1) for axis in tree.axes)):
        marginal = Marginal(tree.axes, depths, structural_zeros=known)
        cells = marginal.areas_at(np.arange(marginal.n_nodes))
        expected = [
            not never[leaves_of(tree, depths, areas)].all() for areas in zip(*cells, strict=True)
        ]
        assert marginal.is_possible(cells).tolist() == expected
    # No leaf is in two boxes, and what is written says the same, to the bit.
    sizes = [_volumes(tree, *kind).sum() for kind in known.boxes.items()]
    assert sum(sizes) == never.sum()
    again = ZeroBoxes.read(pa_csv.read_csv(pa.BufferReader(known.to_text())), tree)
    assert again.to_text() == known.to_text()


def _volumes(tree, depths, numbers):
    areas = Marginal(tree.axes, depths).areas_at(numbers)
    return np.prod(
        [
            axis.hierarchy.leaves_under(depth)[here]
            for axis, depth, here in zip(tree.axes, depths, areas, strict=True)
        ],
        axis=0,
    )


@settings(max_examples=some(60), deadline=None)
@given(st.data())
def test_children_can_all_occur_where_boxes_do_not_tell_them_apart(data):
    tree = data.draw(random_trees())
    boxes = data.draw(random_boxes(tree))
    assume(not never_of(tree, boxes).all())
    tree = replace(tree, structural_zeros=ZeroBoxes.read(table_of(tree, boxes), tree))
    for level in tree.splitting_levels:
        areas = level.areas_at(np.arange(level.n_nodes))
        above = Marginal(tree.axes, level.parent_depths, structural_zeros=tree.structural_zeros)
        is_there = above.is_possible(level.parents(areas))
        assert level.measures_zeros or level.is_possible(areas)[is_there].all()


@pytest.mark.slow
@settings(max_examples=some(60), deadline=None)
@given(st.data())
def test_nothing_of_it_is_in_a_release_or_an_estimate(data):
    """Any tree, with totals and without, a total that is public or noised, and on two threads."""
    tree = data.draw(random_trees())
    boxes = data.draw(random_boxes(tree))
    never = never_of(tree, boxes)
    assume(not never.all())
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    possible = np.argwhere(~never)
    rows = possible[rng.integers(0, len(possible), 300)]
    flows = pa.table(
        {
            axis.name: axis.hierarchy.codes(axis.hierarchy.depth).take(pa.array(rows[:, number]))
            for number, axis in enumerate(tree.axes)
        }
    )
    options = {
        "axis": {axis.name: axis.hierarchy for axis in tree.axes}, "order": tree.order,
        "structural_zeros": table_of(tree, boxes), "columns": Columns(count=None),
        "cross_tables": data.draw(st.sampled_from([0, 0.1])), "rho": 1.0,
        "unit": Unit(data.draw(st.sampled_from(["substitute", "add-remove"]))),
    }  # fmt: skip
    seed = int(rng.integers(1000))
    made = [
        inftda.release(flows, **options, threads=n, source=inftda.SeededSource(seed))
        for n in (1, 2)
    ]
    assert made[0].table.equals(made[1].table)
    release = made[0]
    assert not never[release.leaves().areas].any()
    for table in release.measurements().tables:
        marginal = Marginal(tree.axes, table.depths, structural_zeros=release.tree.structural_zeros)
        assert not table.value[~marginal.is_possible(table.areas)].any()
    estimate = inftda.estimate(release, threads=1)
    assert estimate.total == release.total
    assert not never[leaf_areas(tree, estimate.table)].any()


@pytest.mark.parametrize("policy", ["drop", "outside"])
@pytest.mark.parametrize(
    "unit",
    [
        Unit("add-remove", 2),
        Unit("add-remove", 2, distinct=True),
        Unit("add-remove", 3, once_per="day"),
    ],
    ids=["repeated", "distinct", "once a day"],
)
@settings(max_examples=some(40), deadline=None)
@given(st.data())
def test_one_person_changes_no_more_than_the_unit_says(unit, policy, data):
    """Rows that cannot occur are dropped or moved before contributions are bounded."""
    row = st.tuples(*(st.sampled_from("abc") for _ in range(3)), st.sampled_from("xyz"))
    rows = data.draw(st.lists(row, min_size=1, max_size=12))
    axes = {name: {name: [*"abc"]} for name in ("place", "kind", "day")}
    columns = Columns(count=None, person="who", unplaceable=policy)
    zeros = data.draw(st.sampled_from([{"place": ["a"]}, {"place": [*"ab"], "kind": [*"bc"]}]))
    tree = columns.tree(axis=axes, structural_zeros=zeros)

    def counts(of):
        names = (*axes, "who")
        table = {name: pa.array([row[i] for row in of], "string") for i, name in enumerate(names)}
        found = read_leaves(
            pa.table(table), columns, tree.axes, unit=unit, structural_zeros=tree.structural_zeros,
            random_source=inftda.SeededSource(1),
        )  # fmt: skip
        return leaf_counts(found)

    whole, without = counts(rows), counts([row for row in rows if row[3] != "x"])
    own = {leaf: whole[leaf] - without[leaf] for leaf in whole | without}
    assert min(own.values(), default=0) >= 0
    assert sum(own.values()) <= unit.trips
    if unit.distinct:
        assert max(own.values(), default=0) <= 1
    if unit.once_per:
        days = [leaf[2] for leaf, n in own.items() for _ in range(n)]
        assert len(days) == len({*days})
