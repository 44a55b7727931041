from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from inftda import estimate
from inftda.evaluation.cells import estimated_leaves, released_leaves
from inftda.evaluation.typical import typical_errors
from inftda.lab.generators.country import make_country
from inftda.noise.entropy import SeededSource
from inftda.publish import release
from inftda.reports import contents
from inftda.reports.contents import Quality, Table, pack_contents
from inftda.reports.labels import Labels
from inftda.reports.layout import Layout
from inftda.tree import build_tree


def table_of(release, truth=None):
    return Table(release.tree, *released_leaves(release), truth)


def flows_of(header, sections, numbers):
    """{(row, column): value} of packed flows."""
    rows, gaps = numbers(sections["flows-rows"]), numbers(sections["flows-gaps"])
    values, found, at = numbers(sections["flows-values"]), {}, 0
    for row, count in enumerate(rows):
        column = 0
        for _ in range(count):
            column += gaps[at]
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
    true = numbers(sections["flows-truth"])
    assert sum(true) == 7
    released = flows_of(header, sections, numbers)
    assert (0, 29) in released
    assert sum(released.values()) == od.total


def test_a_table_with_one_axis_gets_its_cells_level_by_level(one_axis, unpacked):
    header, _ = unpacked(pack_contents(table_of(one_axis), Labels(), None, Quality()).packed)
    assert "flows" not in header
    assert header["levels"][-1]["n"] == one_axis.manifest.n_flows
    for level in header["levels"]:
        assert sum(row[1] for row in level["rows"]) == one_axis.total


def test_only_the_largest_cells_of_a_large_table_are_kept(one_axis, unpacked, monkeypatch):
    monkeypatch.setattr(contents, "MAX_PLAIN_CELLS", 4)
    monkeypatch.setattr(contents, "LARGEST_CELLS", 2)
    header, _ = unpacked(pack_contents(table_of(one_axis), Labels(), None, Quality()).packed)
    values = sorted(one_axis.flows().column("flow").to_pylist())[::-1]
    finest = header["levels"][-1]
    assert [row[-1] for row in finest["rows"]] == values[:2]
    assert finest["n"] == len(values)


def test_further_axes_are_there_to_filter_by(three_axes, unpacked, numbers):
    header, sections = unpacked(
        pack_contents(table_of(three_axes), Labels(), None, Quality()).packed
    )
    codes = [axis["levels"][-1]["codes"] for axis in header["axes"]]
    rows, gaps = numbers(sections["flows-rows"]), numbers(sections["flows-gaps"])
    further, values, found, at = (
        numbers(sections["flows-further0"]),
        numbers(sections["flows-values"]),
        {},
        0,
    )
    for row, count in enumerate(rows):
        column = 0
        for _ in range(count):
            column += gaps[at]
            found[codes[0][row], codes[1][column], codes[2][further[at]]] = values[at]
            at += 1
    assert found == {
        (row["disease"], row["sex"], row["age"]): row["flow"]
        for row in three_axes.flows().to_pylist()
    }


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
    assert set(header["totals"]) == {"0,1,0", "0,0,1"} < set(header["across"])
    assert header["unmeasured"] == []
    half, measured = header["totals"]["0,0,1"]
    known = made.total_intervals("mode", "mode")
    assert measured == known.column("measured").to_pylist()
    assert [m + half for m in measured] == known.column("high").to_pylist()


def test_origin_and_destination_are_laid_out_wherever_they_stand():
    area, mode = {"area": ["a", "b"]}, {"mode": ["car", "ferry"]}
    tree = build_tree(axes={"mode": mode, "destination": area, "origin": area})
    layout = Layout.of(tree)
    assert [axis.name for axis in layout.axes] == ["origin", "destination", "mode"]
    assert layout.has_trips
    assert layout.is_shared
    assert layout.key((1, 2, 3)) == "3,2,1"
    assert layout.index_of(0) == 2


def test_long_sums_across_have_no_error_where_nothing_was_measured(unpacked):
    country = make_country((3, 30), 20_000)
    made = release(
        country.flows(), country.areas, epsilon=1, delta=1e-6, across=0, source=SeededSource(1)
    )
    quality = Quality.of(made, typical_errors(made, runs=1))
    header, _ = unpacked(pack_contents(table_of(made), Labels(), None, quality).packed)
    assert header["unmeasured"] == ["2,0"]
    assert "2,0" not in header["errors"]
    assert {"2,2", "1,0"} < set(header["errors"])


def test_levels_that_are_mostly_noise_are_marked(od, unpacked):
    quality = Quality.of(od, None, [od.tree.levels[-1]])
    header, _ = unpacked(pack_contents(table_of(od), Labels(), None, quality).packed)
    assert header["noise"] == ["3,3"]


@pytest.fixture(scope="module")
def measured():
    """A release with measurements."""
    country = make_country((3, 12), 20_000)
    return release(
        country.flows(), country.areas, epsilon=1, delta=1e-6, measurements=True,
        source=SeededSource(1),
    )  # fmt: skip


def test_estimates_stand_beside_what_was_published_with_their_intervals(
    measured, unpacked, numbers
):
    made = estimate(measured)
    shown = replace(table_of(measured), estimated=estimated_leaves(made))
    header, sections = unpacked(pack_contents(shown, Labels(), None, Quality()).packed)
    rows = made.flows().to_pylist()
    assert sum(numbers(sections["estimated-values"])) == measured.total
    n = header["estimated-intervals"]["2,2"]
    assert n == len(rows)
    known = numbers(sections["estimated-intervals-2,2"])
    # Cells by number, then lower ends, then how far the upper ones are above.
    codes = measured.tree.axes[0].hierarchy.codes(2).to_pylist()
    number = np.cumsum(known[:n])
    found = {
        (codes[cell // len(codes)], codes[cell % len(codes)]): (low, low + width)
        for cell, low, width in zip(number.tolist(), known[n : 2 * n], known[2 * n :], strict=True)
    }
    assert found == {(row["origin"], row["destination"]): (row["low"], row["high"]) for row in rows}


def test_a_release_with_measurements_has_intervals_for_what_was_measured(measured):
    known = Quality.of(measured, None).intervals
    on_tree = {level.depths for level in measured.tree.levels}
    assert on_tree <= set(known)
    flows = measured.flows(intervals=True).to_pylist()
    ends = known[2, 2]
    assert sorted(ends.low.tolist()) == sorted(row["low"] for row in flows)
    assert sorted(ends.high.tolist()) == sorted(row["high"] for row in flows)
