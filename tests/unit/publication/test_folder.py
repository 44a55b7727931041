"""The folder of a release: what is in it, and which folders may be replaced by one."""

import hashlib
import os

import numpy as np
import pyarrow.parquet as pq
import pytest
from small_release import HEALTH, HOME, OD, manifest_of, rows_of

from inftda.errors import ReleaseError
from inftda.publication import parquet as tables
from inftda.publication.folder import axis_entries, check_release
from inftda.publication.parquet import is_ascending, order_keys, read_flows, write_flows
from inftda.tree import Cells, Tree
from inftda.util.files import whole_folder


def files_of(text):
    """A release in which every file holds this text."""
    others = dict.fromkeys(("areas-1.csv", "areas-2.csv", "flows.parquet"), text)
    files = dict.fromkeys(others, hashlib.sha256(text.encode()).hexdigest())
    return {"manifest.json": manifest_of(OD, {}, total=len(text), files=files).to_text(), **others}


def fill(folder, text="new"):
    for name, content in files_of(text).items():
        (folder / name).write_text(content)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def write(out, *, force=False):
    """Write a new release."""
    with whole_folder(out, check=check_release, force=force) as folder:
        fill(folder)


OLD = files_of("older")


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


@pytest.fixture
def old(out):
    """A release that is there already."""
    out.mkdir()
    fill(out, "older")
    return out


def in_a_folder(folder):
    (folder / "areas-1.csv").unlink()
    (folder / "areas-1.csv").mkdir()
    (folder / "areas-1.csv" / "thesis.txt").write_text("years of work")


UNEXPECTED = {
    "thesis.txt": lambda folder: (folder / "thesis.txt").write_text("years of work"),
    "areas.csv": lambda folder: (folder / "areas.csv").write_text("years of work"),
    "areas-3.csv": lambda folder: (folder / "areas-3.csv").write_text("years of work"),
    "work": lambda folder: (folder / "work").mkdir(),
    ".git": lambda folder: (folder / ".git").symlink_to("elsewhere"),
    "areas-1.csv": in_a_folder,
}


def everything(folder):
    return {
        str(path.relative_to(folder)): path.read_text() if path.is_file() else None
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize("unexpected", UNEXPECTED)
def test_a_release_that_holds_anything_else_is_not_replaced(old, unexpected):
    UNEXPECTED[unexpected](old)
    before = everything(old)
    with pytest.raises(ReleaseError, match=f"not replaced.*{unexpected}.*move it elsewhere"):
        write(old, force=True)
    assert everything(old) == before
    assert names(old.parent) == ["out"]


def test_what_has_no_manifest_is_not_replaced(old):
    (old / "manifest.json").unlink()
    with pytest.raises(ReleaseError, match=r"not replaced: there is no manifest\.json in"):
        write(old, force=True)
    assert (old / "flows.parquet").exists()


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        ("{}", "not that of a release"),
        (OLD["manifest.json"].replace('"total"', '"sum"'), "total"),
        ("", "not readable as JSON"),
        # A manifest cannot make other files part of a release.
        (OLD["manifest.json"].replace("areas-1.csv", "thesis.txt"), "not that of a release"),
        (OLD["manifest.json"].replace("areas-1.csv", "areas-3.csv"), "other files of areas"),
        (OLD["manifest.json"].replace('flows.parquet"', 'estimate.parquet"'), "must list"),
    ],
)
def test_what_has_another_manifest_is_not_replaced(old, manifest, says):
    (old / "manifest.json").write_text(manifest)
    before = everything(old)
    with pytest.raises(ReleaseError, match=f"not replaced.*{says}.*remove this one yourself"):
        write(old, force=True)
    assert everything(old) == before


def test_a_manifest_that_is_a_pipe_is_refused_and_not_waited_for(out):
    out.mkdir()
    os.mkfifo(out / "manifest.json")
    with pytest.raises(ReleaseError, match="not replaced"):
        write(out, force=True)


def flows_of(tree, rows):
    areas = (
        axis.hierarchy.find(axis.hierarchy.depth, [cell[i] for cell in rows])
        for i, axis in enumerate(tree.axes)
    )
    return Cells(tuple(areas), np.array(list(rows.values()), np.int64))


def read_rows(path):
    columns = [column.to_pylist() for column in pq.read_table(path).columns]
    return {tuple(cell): flow for *cell, flow in zip(*columns, strict=True)}


@pytest.mark.parametrize("tree", [OD, HEALTH])
@pytest.mark.parametrize("n", [0, 3, 10, 99])
def test_a_file_of_flows_follows_from_its_rows(tmp_path, monkeypatch, tree, n):
    """Whatever the order they come in."""
    monkeypatch.setattr(tables, "ROW_GROUP", 5)
    rows = dict(list(rows_of(tree).items())[:n])
    files = []
    for order in (rows, dict(reversed(rows.items()))):
        write_flows(path := tmp_path / "flows.parquet", tree, flows_of(tree, order))
        files.append(path.read_bytes())
        found = read_flows(path, tree, n_flows=len(rows))
        assert (found.value.sum(), len(found.value)) == (sum(rows.values()), len(rows))
        assert is_ascending(order_keys(tree, found.areas))
    assert files[0] == files[1]
    assert read_rows(path) == rows
    assert pq.read_table(path).column_names == [*(axis.name for axis in tree.axes), "flow"]
    metadata = pq.read_metadata(path)
    groups = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    assert [n for n in groups if n] == [5] * (len(rows) // 5) + [len(rows) % 5] * (
        len(rows) % 5 > 0
    )


def test_flows_are_ordered_by_the_parent_of_the_area_that_is_refined_last():
    """Diseases are; two are of the first chapter, one of the second."""
    cells = [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (2, 1)]
    areas = tuple(np.array(numbers, np.int32) for numbers in zip(*cells, strict=True))
    assert is_ascending(order_keys(HEALTH, areas))
    by_columns = np.lexsort(areas[::-1])
    assert not is_ascending(order_keys(HEALTH, tuple(axis[by_columns] for axis in areas)))


def test_a_row_group_lists_the_codes_in_use_and_no_others(tmp_path):
    areas = (np.array([4, 0], np.int32), np.array([1, 1], np.int32))
    write_flows(path := tmp_path / "flows.parquet", OD, Cells(areas, np.array([3, 9])))
    table = pq.read_table(path, read_dictionary=["origin", "destination"])
    for name, axis, numbers in zip(table.column_names, OD.axes, areas, strict=False):
        codes = axis.hierarchy.codes(axis.hierarchy.depth).take(np.unique(numbers)).to_pylist()
        assert sorted(table.column(name).chunk(0).dictionary.to_pylist()) == sorted(codes)


def test_axes_share_a_file_of_areas_only_if_they_share_their_areas():
    shared = Tree.destination_first(HOME)
    assert [entry.file for entry in axis_entries(shared)] == ["areas.csv", "areas.csv"]
    assert [entry.file for entry in axis_entries(OD)] == ["areas-1.csv", "areas-2.csv"]
