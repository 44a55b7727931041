"""Structural zeros: reading it, rows that are there nevertheless, and what readers get."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import inftda
from inftda.areas.build import build_tree
from inftda.errors import IngestError, ReleaseError, TreeError
from inftda.privacy.unit import Unit
from inftda.publication.manifest import digest
from inftda.publication.parquet import Flows, write_flows
from inftda.reading import Columns, read_leaves
from inftda.tree import structural_zeros
from inftda.tree.structural_zeros import ZeroBoxes
from leaf_counts import leaf_counts

AREAS = {
    "region": ["N", "N", "N", "S", "S", "S"],
    "town": ["1", "2", "3", "4", "5", "S"],
}
MODES = {"mode": ["car", "ferry"]}
#: No ferry leaves the north, nobody lives in town 5, and nothing goes from town 4 to town 1.
ZEROS = {
    "origin": ["region:N", "5", "town:4"],
    "destination": ["all", "all", "1"],
    "mode": ["ferry", "all", "all"],
}
TREE = build_tree(AREAS, axis={"mode": MODES})
RANDOM = np.random.default_rng(3)


def trips(n=4000, *, structural_zeros=False):
    """Trips with some in structural zeros, or without."""
    origin, destination = (RANDOM.choice(AREAS["town"], n) for _ in range(2))
    mode = RANDOM.choice(MODES["mode"], n)
    never = np.isin(origin, ["1", "2", "3"]) & (mode == "ferry")
    never |= (origin == "5") | ((origin == "4") & (destination == "1"))
    kept = np.ones(n, bool) if structural_zeros else ~never
    columns = {"origin": origin, "destination": destination, "mode": mode}
    return pa.table({name: column[kept] for name, column in columns.items()}), never


def made(out=None, **options):
    asked = {"epsilon": 1, "delta": 1e-6, "structural_zeros": ZEROS, "axis": {"mode": MODES}}
    return inftda.release(trips()[0], AREAS, out=out, **(asked | options))


def never_in(table):
    """Rows of a table of flows that are structural zeros."""
    origin, destination, mode = (table.column(name).to_pylist() for name in ZEROS)
    return [
        row
        for row in zip(origin, destination, mode, strict=True)
        if (row[0] in "123" and row[2] == "ferry") or row[0] == "5" or row[:2] == ("4", "1")
    ]


# --- the table


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"from": ["1"]}, "must be axes, which are origin, destination, mode; it has from"),
        ({"origin": ["X"]}, "there is no area 'X' at any level"),
        ({"origin": ["S"]}, "'S' is more than one area: region:S; town:S in region S"),
        ({"origin": ["town:N"]}, "there is no area 'N' at level 'town'"),
        ({"origin": ["1", " "]}, "'origin' of the table of structural zeros has a blank"),
        ({"origin": []}, "has no rows"),
        ({"origin": ["N", "region:S"]}, "nothing can occur at all"),
    ],
)
def test_a_wrong_table_is_refused_in_words(table, words):
    with pytest.raises(TreeError, match="structural zeros") as problem:
        ZeroBoxes.read(
            pa.table({name: pa.array(x, pa.string()) for name, x in table.items()}), TREE
        )
    assert words in str(problem.value)


def test_outside_may_have_been_anywhere():
    tree = Columns(unplaceable={"origin": "outside"}).tree(AREAS)
    known = ZeroBoxes.read({"destination": ["1"]}, tree)
    outside = tree.axes[0].hierarchy.find(2, ["outside"])
    first = tree.axes[1].hierarchy.find(2, ["1"])
    assert known.is_possible((2, 2), [outside, first]).all()
    assert not known.is_possible((2, 2), [np.array([0], np.int32), first]).any()
    with pytest.raises(TreeError, match="'outside', where anything may be"):
        ZeroBoxes.read({"origin": ["outside"]}, tree)


def test_boxes_that_fill_a_larger_one_are_that():
    rows = {"origin": [*"112233", "1", "2", "3"], "destination": [*"454545", *["town:S"] * 3]}
    known = ZeroBoxes.read(rows, TREE)
    assert known.to_text() == b'"origin","destination","mode"\n"region:N","region:S","all"\n'


def test_too_many_pieces_are_refused(monkeypatch):
    monkeypatch.setattr("inftda.tree.structural_zeros._MOST", 3)
    with pytest.raises(TreeError, match="overlap in too many ways"):
        ZeroBoxes.read({"origin": ["1", "all"], "destination": ["all", "2"]}, TREE)


# --- rows in structural zeros


def counted(columns, unit=None, table=None):
    tree = columns.tree(AREAS, axis={"mode": MODES}, structural_zeros=ZEROS)
    flows = trips(structural_zeros=True)[0] if table is None else table
    return tree, read_leaves(
        flows, columns, tree.axes, unit=unit, structural_zeros=tree.structural_zeros
    )


def test_rows_in_structural_zeros_are_an_error_that_shows_none_of_them():
    table, never = trips(structural_zeros=True)
    with pytest.raises(IngestError) as problem:
        counted(Columns(), table=table)
    assert str(problem.value) == (
        f"{never.sum():,} rows of the table have areas that form structural zeros, by "
        "`structural_zeros=`. Correct the rows or that table, or choose what to do with them "
        "(`unplaceable=`)"
    )


def test_dropped_rows_are_those_and_no_others():
    table, never = trips(structural_zeros=True)
    _, leaves = counted(Columns(unplaceable="drop"), Unit("add-remove"), table)
    expected = read_leaves(table.filter(pa.array(~never)), Columns(), TREE.axes)
    assert leaf_counts(leaves) == leaf_counts(expected)


@pytest.mark.parametrize("way", ["outside", {"destination": "outside"}])
def test_rows_go_outside_on_every_axis_that_has_it(way):
    table, never = trips(structural_zeros=True)
    tree, leaves = counted(Columns(unplaceable=way), table=table)
    outside = [
        axis.hierarchy.find(axis.hierarchy.depth, ["outside"])[0]
        for axis in tree.axes
        if axis.hierarchy.has_outside
    ]
    ends = [leaves.areas[1]] if isinstance(way, dict) else leaves.areas
    is_out = np.logical_and.reduce([a == o for a, o in zip(ends, outside, strict=True)])
    assert leaves.value[is_out].sum() == never.sum()
    assert leaves.value.sum() == len(table)


def test_a_trip_that_is_dropped_does_not_push_out_one_that_can_be_counted():
    table = {
        "origin": ["5"] * 50 + ["1"],
        "destination": ["2"] * 51,
        "mode": ["car"] * 51,
        "who": ["ann"] * 51,
    }
    columns = Columns(unplaceable="drop", person="who")
    for seed in range(5):
        tree = columns.tree(AREAS, axis={"mode": MODES}, structural_zeros=ZEROS)
        leaves = read_leaves(
            table, columns, tree.axes, unit=Unit("add-remove"),
            structural_zeros=tree.structural_zeros, random_source=inftda.SeededSource(seed),
        )  # fmt: skip
        assert leaf_counts(leaves) == {(0, 1, 0): 1}


# --- releases


def test_a_release_has_none_of_it_and_says_so(tmp_path):
    release = made(tmp_path / "r")
    found = inftda.verify(tmp_path / "r")
    assert "no flow is one that impossible.csv rules out" in found
    assert not never_in(release.flows())
    measured = pq.read_table(tmp_path / "r/measurements.parquet")
    finest = measured.filter(
        pa.compute.equal(measured["table"].cast("string"), release.tree.levels[-1].name)
    )
    assert len(finest)
    assert not never_in(finest)
    text = (tmp_path / "r/impossible.csv").read_text()
    assert '"region:N","all","mode:ferry"' in text
    # A total that cannot be is zero, and not asked of noise.
    totals = release.totals_of("origin")[2]
    at = release.tree.axes[0].hierarchy.find(2, ["5"])[0]
    assert totals.flow[at] == 0
    assert totals.flow.sum() == release.total
    words = release.manifest.counted.words(release.manifest.unit, release.tree)
    assert words == ("structural zeros that the publisher declared (impossible.csv) are zero",)


def test_a_release_keeps_what_cannot_occur_wherever_it_goes(tmp_path):
    release = made()
    saved = release.save(tmp_path / "r")
    assert saved.tree.structural_zeros.to_text() == release.tree.structural_zeros.to_text()
    saved.in_memory().save(tmp_path / "s")
    assert digest(tmp_path / "r/impossible.csv") == digest(tmp_path / "s/impossible.csv")
    inftda.verify(tmp_path / "s")


def test_estimates_have_none_of_it():
    estimate = inftda.estimate(made(source=inftda.SeededSource(5)))
    assert not never_in(estimate.table)


def test_it_costs_nothing_and_leaves_the_rest_as_it_is():
    """The plan is the same, and so is a release in which boxes are where nothing is drawn."""
    flows = {"origin": ["1"] * 90, "destination": ["2"] * 90}
    asked = {"epsilon": 1, "delta": 1e-6, "cross_tables": 0}
    alone = inftda.release(flows, AREAS, **asked, source=inftda.SeededSource(1))
    with_it = inftda.release(
        flows,
        AREAS,
        **asked,
        structural_zeros={"origin": ["region:S"]},
        source=inftda.SeededSource(1),
    )
    assert with_it.manifest.guarantee == alone.manifest.guarantee
    assert with_it.total == alone.total == 90


@pytest.mark.parametrize("how", ["flow", "text", "order", "missing", "other", "measurement"])
def test_forgeries_are_refused(tmp_path, how):
    folder = tmp_path / "r"
    made(folder)
    file = folder / "impossible.csv"
    manifest = json.loads((folder / "manifest.json").read_text())
    if how == "flow":
        release = inftda.open_release(folder)
        areas, flow = release.leaves()
        areas = tuple(
            np.append(a, x).astype(np.int32) for a, x in zip(areas, (0, 0, 1), strict=True)
        )
        flow = np.append(flow, 1)
        write_flows(folder / "flows.parquet", release.tree, Flows(areas, flow))
        manifest |= {"n_flows": len(flow), "total": int(flow.sum())}
        manifest["flows_sha256"] = digest(folder / "flows.parquet")
    elif how == "missing":
        file.unlink()
    elif how == "measurement":
        path = folder / "measurements.parquet"
        table = pq.read_table(path)
        schema, table = table.schema, pa.concat_tables([table.slice(0, 5), table.slice(6)])
        pq.write_table(table.cast(schema), path, compression="zstd")
        manifest["measurements_sha256"] = digest(path)
    else:
        lines = file.read_bytes().splitlines(keepends=True)
        lines = {
            "text": [*lines, b"\n"],
            "order": [lines[0], *lines[:0:-1]],
            "other": lines[:-1],
        }[how]
        file.write_bytes(b"".join(lines))
        manifest["tree"]["impossible_sha256"] = digest(file)
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    with pytest.raises(ReleaseError):
        inftda.verify(folder)


TOWNS = [f"{number:03d}" for number in range(400)]
MANY = build_tree({"region": [town[:2] for town in TOWNS], "town": TOWNS})
#: Lists that no release has, and that would take long or much memory to make sense of.
NOT_WRITTEN = {
    "overlapping rows and columns": (
        {
            "origin": [f"town:{town}" for town in TOWNS[::2]] + ["all"] * 200,
            "destination": ["all"] * 200 + [f"town:{town}" for town in TOWNS[::2]],
        },
        "overlap",
    ),
    "codes without their level": ({"origin": ["001"], "destination": ["002"]}, "LEVEL:CODE"),
    "an unknown area": ({"origin": ["town:x"], "destination": ["all"]}, "LEVEL:CODE"),
}


@pytest.mark.parametrize("how", NOT_WRITTEN)
def test_a_list_that_no_release_has_is_refused_before_boxes_are_cut(how, monkeypatch):
    table, says = NOT_WRITTEN[how]
    made, distinct = [], structural_zeros._distinct
    monkeypatch.setattr(
        structural_zeros, "_distinct", lambda *of: made.append(len(of[0])) or distinct(*of)
    )
    with pytest.raises(TreeError, match=says):
        ZeroBoxes.read(table, MANY, is_written=True)
    assert max(made, default=0) <= len(table["origin"])


def test_all_of_an_axis_with_an_outside_is_not_cut_either():
    tree = replace(MANY, axes=tuple(
        replace(axis, hierarchy=axis.hierarchy.with_outside()) for axis in MANY.axes
    ))  # fmt: skip
    with pytest.raises(TreeError):
        ZeroBoxes.read({"origin": ["town:001"], "destination": ["all"]}, tree, is_written=True)


def test_a_file_that_no_manifest_names_is_a_stranger(tmp_path):
    made(tmp_path / "r")
    inftda.release(trips()[0], AREAS, axis={"mode": MODES}, rho=1, out=tmp_path / "s")
    shutil.copy(tmp_path / "r/impossible.csv", tmp_path / "s")
    with pytest.raises(ReleaseError, match=r"impossible\.csv.*is not part of the release"):
        inftda.verify(tmp_path / "s")


def test_plan_preview_and_compare_take_it():
    tree = {"axis": {"mode": MODES}, "structural_zeros": ZEROS}
    asked = {"epsilon": 1, "delta": 1e-6}
    alone = inftda.plan(AREAS, axis={"mode": MODES}, **asked)
    assert inftda.plan(AREAS, **tree, **asked).plan == alone.plan
    table, never = trips(structural_zeros=True)
    tried = inftda.preview(AREAS, stand_in=table, runs=1, **tree, **asked)
    assert tried.n_trips == len(table) - never.sum()
    assert tried.stand_in.endswith("without structural zeros")
    known = trips()[0]
    found = inftda.compare(known, AREAS, methods=["inftda"], **tree, **asked)
    assert found.trips == len(known)
    with pytest.raises(IngestError, match="form structural zeros"):
        inftda.compare(table, AREAS, methods=["inftda"], **tree, **asked)
