"""Slow, obvious twins of `Truth`: dicts of codes."""

from collections import Counter
from itertools import pairwise

import numpy as np

from inftda.reading.truth import Truth


def code_paths(hierarchy, depth=None):
    """Code paths of the areas of a level (the finest by default), in order of area number."""
    rows = zip(*hierarchy.to_table().to_pydict().values(), strict=True)
    depth = hierarchy.depth if depth is None else depth
    return sorted({row[:depth] for row in rows})


def refinement_path(tree, index, node):
    """The codes met on the way to a node of tree level `index`; `node` has a path per axis."""
    steps = tree.levels[1 : index + 1]
    return tuple(node[level.axis][level.depths[level.axis] - 1] for level in steps)


def true_nodes(tree, areas, counts):
    """For every level of the tree: sorted list of (refinement path, count), zeros left out."""
    paths = [code_paths(axis.hierarchy) for axis in tree.axes]
    levels = [Counter() for _ in tree.levels]
    for *numbers, count in zip(*(axis.tolist() for axis in areas), counts.tolist(), strict=True):
        leaf = [path[number] for path, number in zip(paths, numbers, strict=True)]
        for level in tree.levels:
            if count:
                levels[level.index][refinement_path(tree, level.index, leaf)] += count
    return [sorted(level.items()) for level in levels]


def child_ordinal(tree, index, path):
    """Place of a node among all children of its parent, counted by hand on the refined axis."""
    axis = tree.levels[index].axis
    mine = [i for i in range(index) if tree.levels[i + 1].axis == axis]
    area = tuple(path[i] for i in mine)
    siblings = code_paths(tree.axes[axis].hierarchy, tree.levels[index].depths[axis])
    return [p for p in siblings if p[:-1] == area[:-1]].index(area)


def paths_of(tree, index, areas):
    """Refinement paths of nodes of a level."""
    depths = tree.levels[index].depths
    paths = [code_paths(axis.hierarchy, d) for axis, d in zip(tree.axes, depths, strict=True)]
    rows = zip(*(numbers.tolist() for numbers in areas), strict=True)
    return [
        refinement_path(tree, index, [p[n] for p, n in zip(paths, row, strict=True)])
        for row in rows
    ]


def check_nodes(tree, areas, value):
    """Nodes, counts, places and parents of all levels are those of the twin."""
    expected = true_nodes(tree, areas, value)
    truth = Truth.from_leaves(tree, areas, value)
    assert truth.total == value.sum()
    assert [known.level for known in truth.levels] == list(tree.splitting_levels)
    for number, known in enumerate(truth.levels):
        index = known.level.index
        paths = paths_of(tree, index, known.areas())
        assert sorted(zip(paths, known.count.tolist(), strict=True)) == expected[index]
        assert known.ordinal.tolist() == [child_ordinal(tree, index, path) for path in paths]
        parents = paths_of(tree, index - 1, known.level.areas_of(known.key))
        slices = pairwise(known.offsets.tolist())
        for parent, (low, high) in zip(parents, slices, strict=True):
            assert {path[:-1] for path in paths[low:high]} == {parent}
        sums = zip(parents, known.parents().value.tolist(), strict=True)
        assert sorted(sums) == expected[index - 1]
        assert (np.diff(known.key) > 0).all()
        if number:
            above = truth.levels[number - 1]
            assert above.count[truth.above(number)].tolist() == known.parents().value.tolist()
    leaves, count = truth.leaves
    paths = paths_of(tree, len(tree.order), leaves)
    assert sorted(zip(paths, count.tolist(), strict=True)) == expected[-1]
