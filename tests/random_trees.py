"""Random small hierarchies, trees and counts for property tests."""

import numpy as np
import pyarrow as pa
from hypothesis import assume
from hypothesis import strategies as st

from inftda.reading.truth import Truth
from inftda.tree import Axis, Tree
from inftda.tree.hierarchy import Hierarchy
from inftda.tree.tree import interleave


def origin_first(origin, destination=None):
    """The origin tree of the paper: origin 1, destination 1, origin 2, ..."""
    axes = [Axis("origin", origin), Axis("destination", destination or origin)]
    return Tree.build(axes, interleave(axes))


@st.composite
def random_hierarchies(draw, max_depth=3, max_children=4):
    """Hierarchies with uneven splits, only children and trivial levels among them."""
    depth = draw(st.integers(1, max_depth))
    paths = [()]
    for _ in range(depth):
        n = len(paths)
        children = draw(st.lists(st.integers(1, max_children), min_size=n, max_size=n))
        paths = [
            (*path, f"{'/'.join(path)}.{child}")
            for path, n in zip(paths, children, strict=True)
            for child in range(n)
        ]
    columns = {f"level{i}": [path[i] for path in paths] for i in range(depth)}
    return Hierarchy.read(pa.table(columns))


@st.composite
def random_trees(draw, max_axes=3):
    """Trees with one to three axes in any order of refinement."""
    n_axes = draw(st.integers(1, max_axes))
    axes = [Axis(f"axis{i}", draw(random_hierarchies())) for i in range(n_axes)]
    order = [axis.name for axis in axes for _ in range(axis.hierarchy.depth)]
    tree = Tree.build(axes, draw(st.permutations(order)))
    assume(tree.depth > 0)
    return tree


@st.composite
def random_counts(draw, tree, most=1000):
    """Counts with a few non-zero leaves, or none."""
    n = draw(st.integers(0, 20))
    areas = tuple(
        np.array(
            draw(
                st.lists(
                    st.integers(0, axis.hierarchy.n_areas(axis.hierarchy.depth) - 1),
                    min_size=n,
                    max_size=n,
                )
            ),
            np.int32,
        )
        for axis in tree.axes
    )
    count = np.array(draw(st.lists(st.integers(0, most), min_size=n, max_size=n)), np.int64)
    return Truth.from_leaves(tree, areas, count)


def dense(areas, value):
    """Cell to value, as a dictionary."""
    cells = zip(*(axis.tolist() for axis in areas), strict=True)
    return dict(zip(cells, value.tolist(), strict=True))
