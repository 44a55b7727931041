"""Slow, obvious twins of the counting kernels and of `Counts` as a whole: dicts of codes."""

from collections import Counter
from itertools import groupby


def radix_pass(words, counts, word, shift, digit_bits):
    """Keys (columns of `words`) and counts sorted by one digit of one word, stably."""
    keys = [tuple(int(w) for w in key) for key in words.T]
    pairs = list(zip(keys, counts.tolist(), strict=True))
    pairs.sort(key=lambda pair: (pair[0][word] >> shift) % 2**digit_bits)
    return [key for key, _ in pairs], [count for _, count in pairs]


def nodes_of_level(words, counts, word, shift):
    """First key, sum, and first leaf of every run of keys that agree down to a bit of a word."""
    keys = [tuple(int(w) for w in key) for key in words.T]
    leaves = enumerate(zip(keys, counts.tolist(), strict=True))
    nodes = []
    for _, run in groupby(leaves, lambda leaf: (leaf[1][0][:word], leaf[1][0][word] >> shift)):
        members = list(run)
        first, (key, _) = members[0]
        nodes.append((key, sum(count for _, (_, count) in members), first))
    return nodes


def code_paths(hierarchy, depth=None):
    """Code paths of the areas of a level (the finest by default), in order of area number."""
    rows = zip(*hierarchy.to_table().to_pydict().values(), strict=True)
    depth = hierarchy.depth if depth is None else depth
    return sorted({row[:depth] for row in rows})


def refinement_path(tree, index, node):
    """The codes met on the way to a node of tree level `index`; `node` has a path per axis."""
    return tuple(node[step.axis][step.level - 1] for step in tree.steps[:index])


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
    step = tree.steps[index - 1]
    mine = [i for i in range(index) if tree.steps[i].axis == step.axis]
    area = tuple(path[i] for i in mine)
    siblings = code_paths(tree.axes[step.axis].hierarchy, step.level)
    return [p for p in siblings if p[:-1] == area[:-1]].index(area)


def read_nodes(tree, index, nodes):
    """What `Counts.nodes` gave, as (refinement path, count), in its own order."""
    areas, counts = nodes
    depths = tree.levels[index].depths
    paths = [code_paths(axis.hierarchy, d) for axis, d in zip(tree.axes, depths, strict=True)]
    return [
        (refinement_path(tree, index, [p[n] for p, n in zip(paths, numbers, strict=True)]), count)
        for *numbers, count in zip(*(a.tolist() for a in areas), counts.tolist(), strict=True)
    ]
