"""A release folder compared with its truth, and where the result may be written."""

import json
import os
import stat
from dataclasses import replace

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from inftda.errors import IngestError, ReleaseError
from inftda.evaluation.evaluate import (
    NOTICE,
    Comparison,
    check_outside,
    compare,
    read_truth,
    released_counts,
    write_comparison,
)
from inftda.hierarchy import Hierarchy
from inftda.privacy.unit import PrivacyUnit
from inftda.publication.counting import Counting
from inftda.publication.manifest import AxisEntry, Manifest
from inftda.publication.release import Release, open_release
from inftda.tree import Axis, Tree

AREAS = Hierarchy.read({"region": ["N", "N", "S"], "town": ["001", "002", "003"]})
TREE = Tree.destination_first(AREAS)
UNIT = PrivacyUnit()
TRUTH = {"origin": ["001", "001", "003"], "destination": ["002", "003", "003"], "count": [5, 1, 4]}


def released(flows, tree=TREE, unit=UNIT, mechanism="vanilla-gauss"):
    """A release in memory from rows of codes and flow."""
    names = [axis.name for axis in tree.axes]
    columns = list(zip(*flows, strict=True))
    table = pa.table(
        {name: pa.array(column) for name, column in zip([*names, "flow"], columns, strict=True)}
    )
    axes = tuple(
        AxisEntry(a.name, a.hierarchy.level_names, f"areas-{n}.csv", a.hierarchy.fingerprint)
        for n, a in enumerate(tree.axes, start=1)
    )
    if len({axis.hierarchy for axis in tree.axes}) == 1:
        axes = tuple(AxisEntry(a.name, a.levels, "areas.csv", a.fingerprint) for a in axes)
    total = sum(flow for *_, flow in flows)
    guarantee = {"epsilon": 1.0, "delta": 1e-8, **unit.to_dict()}
    manifest = Manifest(
        private=False,
        mechanism=mechanism,
        options={},
        guarantee=guarantee,
        axes=axes,
        order=tree.order,
        total=total,
        n_flows=len(flows),
    )
    return Release(manifest, tree, table)


def compared(release, flows, **options):
    return compare(release, read_truth(release, flows, **options))


@pytest.fixture
def made():
    return released([("001", "002", 6), ("002", "001", 1), ("003", "003", 3)])


@pytest.fixture
def folder(made, tmp_path):
    made.save(tmp_path / "release")
    return tmp_path / "release"


@pytest.fixture
def comparison(made):
    return compared(made, TRUTH)


def test_a_release_is_compared_at_every_level(comparison):
    assert [level.name for level in comparison.levels] == [
        "all > all",
        "all > region",
        "region > region",
        "region > town",
        "town > town",
    ]
    last = comparison.levels[-1]
    # 5 became 6, 1 became nothing, 4 became 3, and 1 came from nowhere.
    assert last.max_abs_error == 1
    assert last.mean_abs_error == pytest.approx(4 / 9)
    assert last.mean_abs_error_nonzero == 1
    assert last.false_discovery_rate == pytest.approx(1 / 3)
    assert last.false_negative_rate == pytest.approx(1 / 3)
    assert last.common_part == pytest.approx(2 * (5 + 3) / 20)
    assert comparison.settings["epsilon"] == 1.0


def test_a_release_in_a_folder_compares_as_in_memory(folder, comparison):
    assert compared(open_release(folder), TRUTH).levels == comparison.levels


def test_a_release_of_many_files_is_read(made, comparison, tmp_path):
    parts = tmp_path / "flows.parquet"
    parts.mkdir()
    for number in range(made.table.num_rows):
        pq.write_table(made.table.slice(number, 1), parts / f"part-{number}.parquet")
    assert compared(Release(made.manifest, TREE, parts), TRUTH).levels == comparison.levels


def test_columns_of_other_names_are_taken(made, comparison):
    renamed = {"from": TRUTH["origin"], "to": TRUTH["destination"], "n": TRUTH["count"]}
    got = compared(made, renamed, origin="from", destination="to", count="n")
    assert got.levels == comparison.levels


def test_further_axes_are_compared_too():
    sex = Hierarchy.read({"sex": ["f", "m"]})
    axes = [Axis("origin", AREAS), Axis("destination", AREAS), Axis("sex", sex)]
    tree = Tree.build(axes, ["destination", "origin", "destination", "origin", "sex"])
    made = released([("001", "002", "m", 2), ("001", "002", "f", 3)], tree)
    got = compared(made, {**TRUTH, "sex": ["f", "f", "m"]})
    assert got.levels[-1].name.endswith("sex")
    assert got.levels[-1].max_abs_error == 4
    assert got.levels[-1].n_cells == 18


@pytest.mark.parametrize("unplaceable", [None, "outside"])
def test_unplaceable_rows_are_outside_if_the_release_says_so(unplaceable):
    tree = Tree.destination_first(AREAS.with_outside())
    made = released([("001", "002", 5), ("003", "outside", 5)], tree)
    stated = replace(made.manifest, counted=Counting(unplaceable="outside"))
    made = replace(made, manifest=stated)
    abroad = {**TRUTH, "destination": ["002", "nowhere", "nowhere"]}
    got = compared(made, abroad, unplaceable=unplaceable)
    assert got.levels[0].max_abs_error == 0
    assert got.levels[-1].max_abs_error == 1


def test_unplaceable_rows_are_an_error_otherwise_or_dropped_on_demand(made):
    abroad = {**TRUTH, "destination": ["002", "nowhere", "003"]}
    with pytest.raises(IngestError, match="cannot be placed"):
        compared(made, abroad)
    assert compared(made, abroad, unplaceable="drop").levels[0].total_true == 9


@pytest.mark.parametrize(
    ("unplaceable", "said"),
    [
        ({"orgin": "outside"}, "'orgin', but the axes are origin, destination"),
        ({"destination": "drop"}, "error or outside, got 'drop'"),
    ],
)
def test_what_a_release_refuses_to_do_with_unplaceable_rows_is_refused_here_too(
    made, unplaceable, said
):
    with pytest.raises(IngestError, match=said):
        read_truth(made, TRUTH, unplaceable=unplaceable)


SUM_10 = [("001", "002", 6), ("003", "003", 4)]


UNITS = {
    "exactly": UNIT,
    "distinct": PrivacyUnit("substitute", 2, distinct=True),
    "at most": PrivacyUnit("substitute", 2, exactly=False),
    "add-remove": PrivacyUnit("add-remove"),
}


@pytest.mark.parametrize(("unit", "total"), [("exactly", 9), ("exactly", 11), ("distinct", 9)])
def test_a_table_with_another_total_than_the_exact_one_is_not_the_truth(unit, total):
    made = released(SUM_10, unit=UNITS[unit], mechanism="inftda")
    with pytest.raises(IngestError, match=r"^[^0-9]*total of this table differs[^0-9]*$"):
        read_truth(made, {**TRUTH, "count": [total - 2, 1, 1]})


@pytest.mark.parametrize(
    ("unit", "total"),
    [("exactly", 10), ("distinct", 11), ("at most", 9), ("at most", 11), ("add-remove", 9)],
)
def test_a_total_that_may_be_the_true_one_is_taken(unit, total):
    """Under `distinct` a release leaves out what somebody does twice."""
    made = released(SUM_10, unit=UNITS[unit], mechanism="inftda")
    assert read_truth(made, {**TRUTH, "count": [total - 2, 1, 1]}).total == total


def test_totals_of_other_mechanisms_are_not_exact():
    assert read_truth(released(SUM_10), {**TRUTH, "count": [1, 1, 1]}).total == 3


def test_an_empty_table_is_the_truth_only_where_it_can_be_released():
    empty = pa.table(TRUTH).slice(0, 0)
    with pytest.raises(IngestError, match="no rows"):
        read_truth(released(SUM_10), empty)
    got = compared(released(SUM_10, unit=PrivacyUnit("add-remove")), empty)
    assert got.levels[-1].total_true == 0
    assert got.levels[-1].false_discovery_rate == 1


def test_an_area_the_release_does_not_list_is_an_error():
    with pytest.raises(ReleaseError, match="not among its areas"):
        released_counts(released([("001", "009", 6)]))


def test_a_release_with_nothing_in_it_is_compared(made):
    empty = Release(made.manifest, TREE, made.table.slice(0, 0))
    assert compared(empty, TRUTH).levels[-1].false_negative_rate == 1


def test_every_file_is_marked_and_for_its_owner_only(comparison, folder, tmp_path):
    files = write_comparison(
        comparison, tmp_path / "out", release=folder, page=lambda path: path.write_text("page")
    )
    assert sorted(files) == sorted((tmp_path / "out").iterdir())
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o700
    for file in files:
        assert file.name.startswith("CONFIDENTIAL")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_files_hold_the_measures_and_the_notice(comparison, folder, tmp_path):
    out = tmp_path / "out"
    write_comparison(comparison, out, release=folder)
    levels = pq.read_table(out / "CONFIDENTIAL-levels.parquet")
    assert levels.column("max_abs_error").to_pylist() == [
        lv.max_abs_error for lv in comparison.levels
    ]
    assert levels.schema.metadata[b"notice"].decode() == NOTICE
    for name in ("levels", "sizes"):
        table = pa_csv.read_csv(out / f"CONFIDENTIAL-{name}.csv")
        same = pq.read_table(out / f"CONFIDENTIAL-{name}.parquet")
        assert table.column_names == same.column_names
        assert table.num_rows == same.num_rows
        assert set(table.column("notice").to_pylist()) == {NOTICE}
    summary = json.loads((out / "CONFIDENTIAL-evaluation.json").read_text())
    assert summary["confidential"] is True
    assert summary["notice"] == NOTICE
    assert summary["levels"][-1]["max_abs_error"] == 1
    assert set(summary["definitions"]) < set(summary["levels"][0])


def test_a_comparison_replaces_an_earlier_one(comparison, folder, tmp_path):
    for _ in range(2):
        files = write_comparison(comparison, tmp_path / "out", release=folder)
    assert sorted(files) == sorted((tmp_path / "out").iterdir())


def test_numbers_of_cells_beyond_64_bits_are_written(comparison):
    huge = tuple(replace(level, n_cells=10**21) for level in comparison.levels)
    assert Comparison({}, huge, ()).level_table().column("n_cells").to_pylist() == [1e21] * 5


def _in_it(release, _tmp_path):
    return release / "measures"


def _itself(release, _tmp_path):
    return release


def _deep_in_it(release, _tmp_path):
    return release / "a" / "b"


def _by_a_relative_path(_release, tmp_path):
    return tmp_path / "elsewhere" / ".." / "release" / "measures"


def _by_a_link_to_it(release, tmp_path):
    (tmp_path / "link").symlink_to(release)
    return tmp_path / "link" / "measures"


def _by_a_link_into_it(release, tmp_path):
    (release / "inner").mkdir()
    (tmp_path / "link").symlink_to(release / "inner")
    return tmp_path / "link"


def _by_a_dangling_link_into_it(release, tmp_path):
    (tmp_path / "link").symlink_to(release / "not-yet")
    return tmp_path / "link"


def _in_another_release(release, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    for file in release.iterdir():
        (other / file.name).write_bytes(file.read_bytes())
    return other / "measures"


WAYS_IN = [
    _in_it,
    _itself,
    _deep_in_it,
    _by_a_relative_path,
    _by_a_link_to_it,
    _by_a_link_into_it,
    _by_a_dangling_link_into_it,
    _in_another_release,
]


@pytest.mark.parametrize("way", WAYS_IN)
def test_nothing_is_written_into_a_release(way, comparison, folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    out = way(folder, tmp_path)
    before = sorted(folder.rglob("*"))
    with pytest.raises(ReleaseError, match="choose a folder elsewhere"):
        write_comparison(comparison, out, release=folder)
    assert sorted(folder.rglob("*")) == before


def test_the_release_may_be_named_by_a_link(folder, tmp_path):
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(ReleaseError):
        check_outside(folder / "measures", tmp_path / "link")


def test_the_release_may_be_named_from_where_one_stands(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    with pytest.raises(ReleaseError):
        check_outside(folder / "measures", ".")
    with pytest.raises(ReleaseError):
        check_outside((tmp_path / "release") / "x", folder)


def test_a_link_left_in_the_folder_is_replaced_and_not_followed(comparison, folder, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "CONFIDENTIAL-levels.csv").symlink_to(folder / "leak.csv")
    write_comparison(comparison, out, release=folder)
    assert not (folder / "leak.csv").exists()
    assert not (out / "CONFIDENTIAL-levels.csv").is_symlink()


def test_a_folder_beside_the_release_is_fine(folder, tmp_path):
    check_outside(tmp_path / "release-measures", folder)
    check_outside(tmp_path, folder)


def test_a_page_that_fails_leaves_no_half_file(comparison, folder, tmp_path):
    def fail(path):
        path.write_text("half")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_comparison(comparison, tmp_path / "out", release=folder, page=fail)
    assert not [path for path in (tmp_path / "out").iterdir() if "html" in path.name]


def test_a_file_of_another_process_beside_the_measures_is_left_alone(comparison, folder, tmp_path):
    (out := tmp_path / "out").mkdir()
    other = out / f".CONFIDENTIAL-levels.csv.partial-{os.getpid()}"
    other.write_text("somebody else's")
    write_comparison(comparison, out, release=folder)
    assert other.read_text() == "somebody else's"
    assert (out / "CONFIDENTIAL-levels.csv").exists()


def test_a_file_in_the_place_of_the_folder_is_an_error(comparison, folder, tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(ReleaseError, match="cannot make the folder"):
        write_comparison(comparison, tmp_path / "out", release=folder)
