"""What executors do with parts of a table: however it is cut, the leaves are the same."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="pyspark is missing: pip install 'inftda[spark]'")

from inftda.engines.spark import packing, parts
from inftda.engines.spark.parts import PartError, Parts
from inftda.hierarchy import Hierarchy
from inftda.noise.entropy import SeededSource
from inftda.privacy.unit import PrivacyUnit
from inftda.reading import TableSpec, bounding, read_leaves
from inftda.reading.reader import open_source
from inftda.reading.roles import choose_roles
from inftda.reading.rows import Rows
from inftda.reading.workspace import Workspace

TOWNS = Hierarchy.read({"town": ["1", "2", "3"]}).with_outside()
AXES = (("origin", TOWNS), ("destination", TOWNS))


def people(n_rows=2000, n_people=150):
    rng = np.random.default_rng(1)
    codes = np.array(["1", "2", "3", "x"])
    count = rng.integers(0, 4, n_rows)
    count[:3] = [2**40, 2**62, 5000]
    origin, destination = (codes[rng.integers(0, 4, n_rows)] for _ in range(2))
    person = rng.integers(0, n_people, n_rows)
    columns = {"origin": origin, "destination": destination, "person": person, "count": count}
    return pa.table(columns)


def cut_up(table, spec, source, *, size):
    """Leaves of a table that is read in parts of some size, by the steps of the cluster."""
    with Workspace() as workspace:
        opened = open_source(table.slice(0, 0), workspace)
        roles = choose_roles(opened, spec)
        work = Parts(
            Rows.of(opened, roles, spec, workspace), spec.unit, bounding.draw_secret(source)
        )
    raw = table.select([use.name for use in roles.uses]).rename_columns(
        [use.alias for use in roles.uses]
    )
    made = pa.Table.from_batches(
        (work.gather if spec.person else work.count)(raw.to_batches(max_chunksize=size))
    )
    if spec.person:
        made = made.sort_by([("person", "ascending")])
        made = pa.Table.from_batches(work.bound(made.to_batches(max_chunksize=size)))
    merged = pa.Table.from_batches(work.merge(made.to_batches(max_chunksize=size))).to_pydict()
    cells = list(zip(merged["area_0"], merged["area_1"], strict=True))
    assert len(cells) == len({*cells})
    return {cell: n for cell, n in zip(cells, merged["n"], strict=True) if n}


@pytest.mark.parametrize("size", [7, 100, 10_000])
@pytest.mark.parametrize("person", [None, "person"])
@pytest.mark.parametrize("distinct", [False, True])
def test_leaves_do_not_depend_on_how_a_table_is_cut(monkeypatch, size, person, distinct):
    for module in (packing, parts):
        monkeypatch.setattr(module, "CELL_ROWS", 3 * size)
    table = people() if person else people().set_column(3, "count", pa.array([1] * 2000))
    unit = PrivacyUnit("add-remove", 2, distinct=distinct and person is not None)
    spec = TableSpec(axes=AXES, person=person, unit=unit, unplaceable="outside")
    leaves = read_leaves(table, spec, random_source=SeededSource(3))
    whole = Counter()
    cells = zip(*(axis.tolist() for axis in leaves.areas), strict=True)
    for cell, n in zip(cells, leaves.counts.tolist(), strict=True):
        whole[cell] += n
    assert cut_up(table, spec, SeededSource(3), size=size) == whole


def test_what_duckdb_says_of_a_cell_stays_on_the_executor(monkeypatch):
    def quoting(*_):
        raise ValueError("person 12345")

    spec = TableSpec(axes=AXES)
    monkeypatch.setattr(Workspace, "fetch", quoting)
    with pytest.raises(PartError) as caught:
        cut_up_count(people(5), spec)
    assert "12345" not in str(caught.value)
    assert caught.value.__suppress_context__


def cut_up_count(table, spec):
    with Workspace() as workspace:
        opened = open_source(table.slice(0, 0), workspace)
        rows = Rows.of(opened, choose_roles(opened, spec), spec, workspace)
    return list(Parts(rows, None, "").count(table.to_batches()))
