import numpy as np
import pyarrow as pa

from inftda.evaluate.typical import released_leaves
from inftda.noise.entropy import SeededSource
from inftda.publish import release
from inftda.report import contents
from inftda.report.contents import Quality, Table, pack_contents
from inftda.report.labels import Labels


def table_of(release, truth=None):
    return Table(release.tree, *released_leaves(release), truth)


def flows_of(header, sections, numbers):
    """{(row, column): value} of packed flows."""
    rows, gaps = numbers(sections["rows"]), numbers(sections["gaps"])
    values, found, at = numbers(sections["values"]), {}, 0
    for row, count in enumerate(rows):
        column = -1
        for _ in range(count):
            column += gaps[at] + 1
            found[row, column] = values[at]
            at += 1
    assert len(found) == header["flows"]["n"]
    return found


def test_the_page_holds_every_flow(od, unpacked, numbers):
    packed = pack_contents(table_of(od), Labels(), None, Quality())
    header, sections = unpacked(packed.packed)
    codes = header["axes"][0]["levels"][-1]["codes"]
    found = flows_of(header, sections, numbers)
    expected = {
        (codes.index(row["origin"]), codes.index(row["destination"])): row["flow"]
        for row in od.flows().to_pylist()
    }
    assert found == expected


def test_areas_shared_by_both_ends_stand_there_once(od, unpacked):
    header, _ = unpacked(pack_contents(table_of(od), Labels(), None, Quality()).packed)
    assert header["shared"]
    assert header["axes"][1]["levels"] is None


def test_a_page_that_would_be_too_heavy_leaves_out_the_finest_level(
    od, unpacked, numbers, monkeypatch
):
    whole = pack_contents(table_of(od), Labels(), None, Quality())
    monkeypatch.setattr(contents, "MAX_LETTERS", len(whole.packed) - 1)
    packed = pack_contents(table_of(od), Labels(), None, Quality())
    assert packed.depths == (2, 2)
    header, sections = unpacked(packed.packed)
    assert len(header["axes"][0]["levels"]) == 2
    found = flows_of(header, sections, numbers)
    expected = od.flows("province", "province")
    assert sorted(found.values()) == sorted(expected.column("flow").to_pylist())


def test_a_page_never_loses_its_coarsest_level(od, monkeypatch):
    monkeypatch.setattr(contents, "MAX_LETTERS", 1)
    assert pack_contents(table_of(od), Labels(), None, Quality()).depths == (1, 1)


def test_truth_stands_beside_the_release_also_where_only_one_is(od, unpacked, numbers):
    nowhere = (np.array([0], np.int32), np.array([29], np.int32))
    truth = (nowhere, np.array([7]))
    header, sections = unpacked(
        pack_contents(table_of(od, truth), Labels(), None, Quality()).packed
    )
    assert header["confidential"]
    true = numbers(sections["truth"])
    assert sum(true) == 7
    released = flows_of(header, sections, numbers)
    assert (0, 29) in released
    assert sum(released.values()) == od.total


def test_other_tables_get_their_cells_level_by_level(three_axes, unpacked):
    header, _ = unpacked(pack_contents(table_of(three_axes), Labels(), None, Quality()).packed)
    assert "flows" not in header
    *_, finest = (level for level in header["levels"] if len(level["axes"]) == 3)
    assert finest["n"] == len(finest["rows"]) == three_axes.manifest.n_flows
    for level in header["levels"]:
        assert sum(row[len(level["axes"])] for row in level["rows"]) == three_axes.total


def test_only_the_largest_cells_of_a_large_table_are_kept(three_axes, unpacked, monkeypatch):
    monkeypatch.setattr(contents, "MAX_PLAIN_CELLS", 5)
    monkeypatch.setattr(contents, "LARGEST_CELLS", 2)
    header, _ = unpacked(pack_contents(table_of(three_axes), Labels(), None, Quality()).packed)
    *_, finest = (level for level in header["levels"] if len(level["axes"]) == 3)
    values = sorted(three_axes.flows().column("flow").to_pylist())[::-1]
    assert [row[-1] for row in finest["rows"]] == values[:2]
    assert finest["n"] == len(values)


def test_totals_of_every_axis_are_there_and_measured_ones_with_their_intervals(unpacked):
    axes = {
        "from": {"area": ["0", "1", "2"]},
        "to": {"area": ["0", "1", "2"]},
        "mode": {"mode": ["car", "ferry"]},
    }
    cells = [(a, b, m) for a in "012" for b in "012" for m in ("car", "ferry")]
    columns = dict(zip(axes, zip(*cells, strict=True), strict=True))
    made = release(
        pa.table({**columns, "count": [900] * 18}), axes=axes, order=list(axes), epsilon=1,
        delta=1e-6, across=0.08, source=SeededSource(1),
    )  # fmt: skip
    quality = Quality.of(made, None)
    header, _ = unpacked(pack_contents(table_of(made), Labels(), None, quality).packed)
    by_depths = {tuple(level["depths"]): level for level in header["levels"]}
    assert {(1, 0, 0), (0, 1, 0), (0, 0, 1)} <= set(by_depths)
    assert set(header["totals"]) == {"0,1,0", "0,0,1"} < set(header["across"])
    half, measured = header["totals"]["0,0,1"]
    known = made.total_intervals("mode", "mode")
    assert measured == known.column("measured").to_pylist()
    assert [m + half for m in measured] == known.column("high").to_pylist()
