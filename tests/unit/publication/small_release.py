"""A release written by hand: two countries of different depth, and a table with other axes."""

import itertools

import pyarrow as pa

from inftda.privacy.noise_plan import make_plan
from inftda.privacy.unit import Unit
from inftda.publication.folder import axis_entries
from inftda.publication.manifest import ALGORITHM, FORMAT, Counting, Manifest, software_versions
from inftda.publication.release import Release
from inftda.tree import Axis, Tree
from inftda.tree.hierarchy import Hierarchy

#: Region and town 3 have a code in common, and are the same area.
HOME = Hierarchy.read(
    {
        "region": ["N", "N", "N", "S", "S", "3"],
        "province": ["n1", "n1", "n2", "s1", "s2", "e1"],
        "town": ["001", "002", "010", "1", "2", "3"],
    }
)
#: The code A is a state, and a city in another state.
ABROAD = Hierarchy.read({"state": ["A", "A", "B", "B"], "city": ["x", "y", "z", "A"]})
OD = Tree.destination_first(HOME, ABROAD)
DISEASES = Hierarchy.read({"chapter": ["I", "I", "II"], "disease": ["flu", "cold", "gout"]})
SEXES = Hierarchy.read({"sex": ["f", "m"]})
HEALTH = Tree.build(
    [Axis("what's up", DISEASES), Axis('the "sex"', SEXES)], ["what's up", 'the "sex"', "what's up"]
)


def rows_of(tree):
    """Two thirds of all cells, each with a flow of its own."""
    codes = [axis.hierarchy.codes(axis.hierarchy.depth).to_pylist() for axis in tree.axes]
    cells = enumerate(itertools.product(*codes), start=1)
    return {cell: 7 * number for number, cell in cells if number % 3}


def manifest_of(tree, rows, **changes):
    facts = {
        "format": FORMAT,
        "requires": {},
        "private": True,
        "edition": "",
        "counted": Counting(bounded=False, unplaceable="error", what="trips"),
        "total": sum(rows.values()),
        "n_flows": len(rows),
        "guarantee": make_plan(tree, Unit(), rho="1/2", method="paper").stated(),
        "axes": axis_entries(tree),
        "order": tree.order,
        "measurements": "none",
        "algorithm": ALGORITHM,
        "division_seed": "00" * 16,
        "files": {},
        "software": software_versions(),
    }
    return Manifest(**{**facts, **changes})


def table_of(tree, rows):
    names = [axis.name for axis in tree.axes]
    columns = {name: [cell[i] for cell in rows] for i, name in enumerate(names)}
    return pa.table({**columns, "flow": pa.array(list(rows.values()), pa.int64())})


def make_release(tree):
    """The release in memory, and its rows: cell to flow."""
    rows = rows_of(tree)
    return Release(manifest_of(tree, rows), tree, table_of(tree, rows)), rows


def ancestors(hierarchy, level_name):
    """Finest code to the code at a level, by the table of areas alone, in its order."""
    table = hierarchy.to_table().take(hierarchy.as_read(hierarchy.depth))
    finest = table.column(hierarchy.level_names[-1]).to_pylist()
    if level_name == "all":
        return dict.fromkeys(finest, "all")
    return dict(zip(finest, table.column(level_name).to_pylist(), strict=True))


def grouped(tree, rows, levels, *, kept=lambda _: True):
    """Sums by the codes at one level for each axis ("all" is left out), as a dictionary."""
    names = [levels.get(axis.name, "all") for axis in tree.axes]
    above = [ancestors(axis.hierarchy, name) for axis, name in zip(tree.axes, names, strict=True)]
    sums = {}
    for cell, flow in rows.items():
        if kept(cell):
            codes = zip(above, cell, names, strict=True)
            key = tuple(of[code] for of, code, name in codes if name != "all")
            sums[key] = sums.get(key, 0) + flow
    return sums


def as_dict(table):
    """An answer as a dictionary; fails if a key stands twice."""
    *names, flow = table.column_names
    assert flow == "flow"
    keys = [tuple(row[name] for name in names) for row in table.to_pylist()]
    assert len(set(keys)) == len(keys)
    return dict(zip(keys, table.column("flow").to_pylist(), strict=True))
