"""What executors do with parts of a table: however it is cut, the leaves are the same."""

from collections import Counter
from functools import partial
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="pyspark is missing: pip install 'inftda-od[spark]'")

from inftda.noise.bits import SeededSource
from inftda.privacy.unit import Unit
from inftda.reading import Columns, bounding, read_leaves
from inftda.reading.rows import Rows
from inftda.reading.sources import open_source
from inftda.reading.workspace import Workspace
from inftda.spark import tasks
from inftda.spark.reading import PartError, Parts
from inftda.tree import Axis
from inftda.tree.hierarchy import Hierarchy
from leaf_counts import leaf_counts

pytestmark = pytest.mark.slow

TOWNS = Hierarchy.read({"town": ["1", "2", "3"]}).with_outside()
AXES = (Axis("origin", TOWNS), Axis("destination", TOWNS))


def people(n_rows=2000, n_people=150):
    rng = np.random.default_rng(1)
    codes = np.array(["1", "2", "3", "x"])
    count = rng.integers(0, 4, n_rows)
    count[:3] = [2**40, 2**62, 5000]
    origin, destination = (codes[rng.integers(0, 4, n_rows)] for _ in range(2))
    person = rng.integers(0, n_people, n_rows)
    columns = {"origin": origin, "destination": destination, "person": person, "count": count}
    return pa.table(columns)


def parts_of(table, columns, unit, source):
    """What executors are sent, and the columns that they get."""
    with Workspace() as workspace:
        opened = open_source(table.slice(0, 0), [], workspace)
        rows = Rows.of(opened, columns, AXES, workspace)
    raw = table.select(list(rows.positions))
    work = Parts(rows, unit, bounding.draw_key(source))
    return work, raw.rename_columns([f"c{i}" for i in range(raw.num_columns)])


def cut_up(table, columns, unit, source, *, size):
    """Leaves of a table that is read in parts of some size, by the steps of the cluster."""
    work, raw = parts_of(table, columns, unit, source)
    step = work.gather if columns.person else work.count
    made = pa.Table.from_batches(step(raw.to_batches(max_chunksize=size)))
    if columns.person:
        order = bounding.sort_keys(work.rows.numbers, work.rows.once(unit))
        made = made.sort_by([(name, "ascending") for name in order])
        parts = partial(bounding.by_person, most=3 * size)
        with patch.object(bounding, "by_person", parts):
            made = pa.Table.from_batches(work.bound(made.to_batches(max_chunksize=size)))
    found = Counter()
    for origin, destination, n in zip(*made.to_pydict().values(), strict=True):
        found[origin, destination] += n
    return +found


@pytest.mark.parametrize("size", [pytest.param(7, marks=pytest.mark.nightly), 100, 10_000])
@pytest.mark.parametrize("person", [None, "person"])
@pytest.mark.parametrize("bound", [{}, {"distinct": True}, {"once_per": "destination"}], ids=str)
def test_leaves_do_not_depend_on_how_a_table_is_cut(monkeypatch, size, person, bound):
    monkeypatch.setattr(tasks, "CELL_ROWS", 3 * size)
    table = people() if person else people().set_column(3, "count", pa.array([1] * 2000))
    unit = Unit("add-remove", 2, **(bound if person else {}))
    columns = Columns(person=person, unplaceable="outside", repeated_rows="add")
    leaves = read_leaves(table, columns, AXES, unit=unit, random_source=SeededSource(3))
    assert cut_up(table, columns, unit, SeededSource(3), size=size) == leaf_counts(leaves)


def test_what_duckdb_says_of_a_cell_stays_on_the_executor(monkeypatch):
    def quoting(*_):
        raise ValueError("person 12345")

    work, raw = parts_of(people(5), Columns(unplaceable="outside"), Unit(), SeededSource(1))
    monkeypatch.setattr(Workspace, "fetch", quoting)
    with pytest.raises(PartError) as caught:
        list(work.count(raw.to_batches()))
    assert "12345" not in str(caught.value)
    assert caught.value.__context__ is None
