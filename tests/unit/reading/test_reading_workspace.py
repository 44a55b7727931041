"""The workspace: private, bounded, gone afterwards, offline."""

import os
import signal
import stat
import subprocess
import sys
import tempfile

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inftda.errors import IngestError
from inftda.privacy.unit import Unit
from inftda.reading import Columns, read_leaves
from inftda.reading.workspace import Workspace
from inftda.tree import Axis
from inftda.tree.hierarchy import Hierarchy
from patience import PATIENCE

pytestmark = pytest.mark.usefixtures("own_databases")


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Where temporary files go."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.mark.usefixtures("temporary")
def test_the_spill_directory_is_private_and_removed(tmp_path):
    with Workspace():
        (directory,) = tmp_path.iterdir()
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("temporary")
def test_the_spill_directory_is_removed_after_an_error(read, tmp_path):
    with pytest.raises(IngestError):
        read({"origin": ["X"], "destination": ["002"]})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("temporary")
def test_nothing_is_left_where_duckdb_refuses_its_settings(tmp_path):
    with pytest.raises(duckdb.Error), Workspace(memory_limit="lots"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_spill_directory_that_is_not_there_is_named(read, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    with pytest.raises(IngestError, match=r"cannot make a temporary directory in .*nowhere"):
        read({"origin": ["001"], "destination": ["002"]})


def test_reading_shows_no_progress_bar_of_its_own():
    """Nothing but results goes to standard output."""
    with Workspace() as workspace:
        sql = "SELECT current_setting('enable_progress_bar') AS bar"
        assert workspace.fetch(sql).to_pylist() == [{"bar": False}]


@pytest.mark.parametrize(
    "sql",
    [
        "FROM read_csv('{0}/other.csv')", "FROM read_text('{0}/other.csv')", "FROM glob('{0}/*')",
        "FROM read_text('http://127.0.0.1:1/x')", "ATTACH '{0}/other.db'", "INSTALL httpfs",
        "LOAD httpfs", "COPY (SELECT 1) TO '{0}/new.csv'", "SET enable_external_access = true",
        "SET autoload_known_extensions = true", "SET allowed_directories = ['/']",
    ],
)  # fmt: skip
def test_duckdb_opens_the_files_that_it_is_given_and_nothing_else(tmp_path, sql):
    for name in ("given.csv", "other.csv"):
        (tmp_path / name).write_text("town\n001\n")
    with Workspace([tmp_path / "given.csv"]) as workspace:
        assert workspace.fetch(f"FROM read_csv('{tmp_path}/given.csv')").num_rows == 1
        with pytest.raises(duckdb.Error):
            workspace.run(sql.format(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["given.csv", "other.csv"]


@pytest.mark.slow
def test_more_rows_than_memory_holds_are_counted_by_spilling(tmp_path, monkeypatch):
    n_areas, n_rows = 20_000, 800_000
    codes = np.array([f"{i:012d}" for i in range(n_areas)])
    draw = np.random.default_rng(1).integers(n_areas, size=(2, n_rows))
    table = pa.table({"origin": codes[draw[0]], "destination": codes[draw[1]]})
    pq.write_table(table, tmp_path / "trips.parquet", row_group_size=100_000)
    areas = Hierarchy.read({"area": codes})

    def read():
        axes = (Axis("origin", areas), Axis("destination", areas))
        path = tmp_path / "trips.parquet"
        return read_leaves(path, Columns(), axes, memory_limit="40MB", threads=2)

    leaves = read()
    found = leaves.areas[0].astype(np.int64) * n_areas + leaves.areas[1]
    expected, n = np.unique(draw[0] * n_areas + draw[1], return_counts=True)
    order = np.argsort(found)
    assert np.array_equal(found[order], expected)
    assert np.array_equal(leaves.value[order], n)

    connect = duckdb.connect
    no_disk = {"temp_directory": ""}
    monkeypatch.setattr(
        duckdb, "connect", lambda name, config: connect(name, config=config | no_disk)
    )
    with pytest.raises(IngestError, match=r"disk space ran out .* set TMPDIR"):
        read()  # so it did spill before


@pytest.mark.slow
def test_bounding_spills_as_well(tmp_path):
    n_rows, n_people = 400_000, 100_000
    rng = np.random.default_rng(1)
    codes = np.array([f"{i:03d}" for i in range(100)])
    trips = {name: codes[rng.integers(100, size=n_rows)] for name in ("origin", "destination")}
    who = rng.integers(n_people, size=n_rows)
    pq.write_table(pa.table({**trips, "who": who}), tmp_path / "trips.parquet")
    areas = Hierarchy.read({"area": codes})
    # An aggregate that keeps the first two of each person in memory needs 80 MB and more.
    leaves = read_leaves(
        tmp_path / "trips.parquet",
        Columns(person="who"),
        (Axis("origin", areas), Axis("destination", areas)),
        unit=Unit("add-remove", trips=2),
        memory_limit="60MB",
        threads=2,
    )
    assert leaves.value.sum() == np.minimum(np.bincount(who), 2).sum()


ENDLESS = """
import signal
import pyarrow as pa
from inftda.tree.hierarchy import Hierarchy
from inftda.reading import Columns, read_leaves
from inftda.tree import Axis

# Ignored otherwise, where a shell runs the tests in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)
batch = pa.record_batch({"town": ["001"] * 10_000})

def batches():
    for i in range(10**9):
        if i == 10:
            print("reading", flush=True)
        yield batch

towns = Hierarchy.read({"town": ["001"]})
stream = pa.RecordBatchReader.from_batches(batch.schema, batches())
try:
    read_leaves(stream, Columns(), [Axis("town", towns)])
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_is_heard_while_rows_are_read_and_nothing_is_left_behind(tmp_path):
    command, place = [sys.executable, "-c", ENDLESS], {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=place) as process:
        try:
            assert process.stdout.readline() == "reading\n"
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=PATIENCE)[0] == "interrupted\n"
        finally:
            process.kill()
    assert list(tmp_path.iterdir()) == []
