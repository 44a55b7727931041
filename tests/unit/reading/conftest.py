"""A small country and a way to read a table back as codes and counts."""

from collections import Counter

import pytest

from inftda.reading import Columns, read_leaves
from inftda.tree import Axis
from inftda.tree.hierarchy import Hierarchy

TOWNS = {"region": ["N", "N", "S"], "town": ["001", "002", "003"]}


@pytest.fixture
def towns():
    return Hierarchy.read(TOWNS)


READER_OPTIONS = {"unit", "random_source", "say", "memory_limit", "threads"}


@pytest.fixture
def read(towns):
    """Read a table and give {(origin, destination): count}."""

    def read(source, *, axes=None, **options):
        axes = axes or [("origin", towns), ("destination", towns)]
        others = {name: options.pop(name) for name in READER_OPTIONS & {*options}}
        named = [Axis(name, hierarchy) for name, hierarchy in axes]
        leaves = read_leaves(source, Columns(**options), named, **others)
        codes = [
            hierarchy.codes(hierarchy.depth).take(numbers).to_pylist()
            for (_, hierarchy), numbers in zip(axes, leaves.areas, strict=True)
        ]
        found = Counter()
        for key, count in zip(zip(*codes, strict=True), leaves.value.tolist(), strict=True):
            found[key] += count
        return dict(found)

    return read
