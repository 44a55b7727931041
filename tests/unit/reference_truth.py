"""Slow, obvious twins of `Truth`: dicts of codes."""

from collections import Counter


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
