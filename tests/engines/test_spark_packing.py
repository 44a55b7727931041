"""Rows in cells are the rows that were packed."""

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="pyspark is missing: pip install 'inftda-od[spark]'")

from inftda.spark import tasks
from inftda.spark.reading import pack_leaves


@pytest.fixture
def batches():
    table = pa.table(
        {"task": pa.array([2, 0, 2, 1, 0], pa.int32()), "n": pa.array([1, 2, 3, 2**62, 5])}
    )
    return table.to_batches(max_chunksize=2)


@pytest.mark.parametrize(("cell_rows", "n_cells"), [(100, 1), (2, 3), (3, 2)])
def test_cells_hold_what_was_packed_in_order(monkeypatch, batches, cell_rows, n_cells):
    monkeypatch.setattr(tasks, "CELL_ROWS", cell_rows)
    cells = list(tasks.pack(batches))
    assert len(cells) == n_cells
    rows = pa.Table.from_batches(tasks.unpack(cells))
    assert rows.equals(pa.Table.from_batches(batches).combine_chunks())
    assert list(tasks.pack([])) == []


def test_rows_go_to_the_task_that_they_name(batches):
    (cells,) = tasks.pack_by("task", batches)
    assert cells.column("task").to_pylist() == [0, 1, 2]
    found = [pa.Table.from_batches(tasks.unpack([cells.slice(i, 1)])).to_pydict() for i in range(3)]
    assert [one["n"] for one in found] == [[2, 5], [2**62], [1, 3]]
    assert [set(one["task"]) for one in found] == [{0}, {1}, {2}]


def test_sums_of_leaves_are_exact_and_flaws_are_counted_apart():
    table = pa.table(
        {
            "area_0": pa.array([0, 1, -3, 2, -3], pa.int32()),
            "area_1": pa.array([0, 1, 0, 2, 0], pa.int32()),
            "n": pa.array([2**63 - 1, 2**63 - 1, 4, 0, 1]),
        }
    )
    (cells,) = pack_leaves(table.to_batches())
    described = zip(
        cells.column("flaw").to_pylist(), cells.column("total").to_pylist(), strict=True
    )
    assert dict(described) == {0: 2**64 - 2, 3: 5}
    kept = pa.Table.from_batches(tasks.unpack([cells.filter(cells.column("packed").is_valid())]))
    assert kept["area_0"].to_pylist() == [0, 1], "neither flaws nor zeros"
