"""A release compared with its truth, and where the result may be written."""

import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import inftda
from inftda.errors import IngestError, ReleaseError
from inftda.evaluation.evaluate import (
    NOTICE,
    Comparison,
    check_outside,
    compare,
    read_truth,
    write_comparison,
)
from inftda.privacy.unit import Unit
from inftda.reading import Columns

AREAS = {"region": ["N", "N", "S"], "town": ["001", "002", "003"]}
TRUTH = {"origin": ["001", "001", "003"], "destination": ["002", "003", "003"], "count": [5, 1, 4]}
FLOWS = [("001", "002", 6), ("002", "001", 1), ("003", "003", 3)]


def released(flows=FLOWS, truth=TRUTH, **options):
    """A release in memory whose flows are these, whatever was drawn."""
    given = {"epsilon": 1, "delta": 1e-6, "source": inftda.SeededSource(1), **options}
    made = inftda.release(truth, AREAS, **given)
    names = [*(axis.name for axis in made.tree.axes), "flow"]
    columns = zip(*flows, strict=True) if flows else [pa.array([], pa.string())] * (len(names) - 1)
    table = pa.table(dict(zip(names, columns, strict=False)))
    if not flows:
        table = table.append_column("flow", pa.array([], pa.int64()))
    return replace(made, table=table, manifest=replace(made.manifest, n_flows=len(flows)))


def compared(release, flows=TRUTH, *columns, **options):
    return compare(release, read_truth(release, flows, *columns, **options))


@pytest.fixture(scope="module")
def made():
    return released()


@pytest.fixture(scope="module")
def comparison(made):
    return compared(made)


@pytest.fixture
def folder(made, tmp_path):
    made.save(tmp_path / "release")
    return tmp_path / "release"


def test_a_release_is_compared_at_every_level(comparison):
    assert [level.name for level in comparison.levels] == [
        "all > all", "all > region", "region > region", "region > town", "town > town",
    ]  # fmt: skip
    last = comparison.levels[-1]
    # 5 became 6, 1 became nothing, 4 became 3, and 1 came from nowhere.
    assert last.max_abs_error == 1
    assert last.mean_abs_error == pytest.approx(4 / 9)
    assert last.mean_abs_error_nonzero == 1
    assert last.false_discovery_rate == pytest.approx(1 / 3)
    assert last.false_negative_rate == pytest.approx(1 / 3)
    assert last.common_part == pytest.approx(2 * (5 + 3) / 20)
    assert comparison.settings["epsilon"] == 1.0


def test_rows_without_a_known_area_are_treated_as_the_release_says():
    abroad = {**TRUTH, "destination": ["002", "nowhere", "nowhere"]}
    flows = [("001", "002", 5), ("003", "outside", 5)]
    made = released(flows, abroad, columns=Columns(unplaceable="outside"))
    for unplaceable in (None, "outside"):
        got = compared(made, abroad, columns=Columns(unplaceable=unplaceable))
        assert (got.levels[0].max_abs_error, got.levels[-1].max_abs_error) == (0, 1)


@pytest.mark.parametrize(
    ("unplaceable", "said"),
    [
        (None, "cannot be placed"),
        ({"orgin": "outside"}, "'orgin', but the axes are origin, destination"),
        ({"destination": "drop"}, "error or outside, got 'drop'"),
    ],
)
def test_what_a_release_refuses_to_do_with_such_rows_is_refused_here_too(made, unplaceable, said):
    abroad = {**TRUTH, "destination": ["002", "nowhere", "003"]}
    with pytest.raises(IngestError, match=said):
        read_truth(made, abroad, Columns(unplaceable=unplaceable))


DISTINCT = {"unit": Unit(trips=2, distinct=True)}


@pytest.mark.parametrize(("unit", "total"), [({}, 9), ({}, 11), (DISTINCT, 9)])
def test_a_table_with_another_total_than_the_exact_one_is_not_the_truth(unit, total):
    made = released(**unit)
    with pytest.raises(IngestError, match=r"^[^0-9]*total of this table differs[^0-9]*$"):
        read_truth(made, {**TRUTH, "count": [total - 2, 1, 1]})


@pytest.mark.parametrize(
    ("unit", "total"), [({}, 10), (DISTINCT, 11), ({"unit": Unit(neighbours="add-remove")}, 9)]
)
def test_a_total_that_may_be_the_true_one_is_taken(unit, total):
    """Of distinct trips a release leaves out what somebody does twice; a noised total is not it."""
    assert read_truth(released(**unit), {**TRUTH, "count": [total - 2, 1, 1]}).total == total


def test_an_empty_table_is_the_truth_only_where_it_can_be_released(made):
    empty = pa.table(TRUTH).slice(0, 0)
    with pytest.raises(IngestError, match="no rows"):
        read_truth(made, empty)
    got = compared(released(unit=Unit(neighbours="add-remove")), empty)
    assert got.levels[-1].total_true == 0
    assert got.levels[-1].false_discovery_rate == 1


def test_a_release_with_nothing_in_it_is_compared():
    assert compared(released([])).levels[-1].false_negative_rate == 1


def test_an_area_the_release_does_not_list_is_an_error():
    with pytest.raises(ReleaseError, match="not among its areas"):
        compared(released([("001", "009", 10)]))


def test_files_hold_the_measures_and_the_notice(comparison, folder, tmp_path):
    out = tmp_path / "out"
    write_comparison(comparison, out, release=folder)
    levels = pq.read_table(out / "CONFIDENTIAL-levels.parquet")
    assert levels.column("max_abs_error").to_pylist() == [
        level.max_abs_error for level in comparison.levels
    ]
    assert levels.schema.metadata[b"notice"].decode() == NOTICE
    for name in ("levels", "sizes", "totals"):
        table = pa_csv.read_csv(out / f"CONFIDENTIAL-{name}.csv")
        same = pq.read_table(out / f"CONFIDENTIAL-{name}.parquet")
        assert table.column_names == same.column_names
        assert table.num_rows == same.num_rows
        assert set(table.column("notice").to_pylist()) == {NOTICE}
    summary = json.loads((out / "CONFIDENTIAL-evaluation.json").read_text())
    assert summary["notice"] == NOTICE
    assert summary["levels"][-1]["max_abs_error"] == 1
    for of, measures in (("definitions", "levels"), ("definitions_of_totals", "totals")):
        assert set(summary[of]) <= set(summary[measures][0])


def test_numbers_of_cells_beyond_64_bits_are_written(comparison):
    huge = tuple(replace(level, n_cells=10**21) for level in comparison.levels)
    assert Comparison({}, huge, ()).tables()["levels"].column("n_cells").to_pylist() == [1e21] * 5


def _linked(link, to):
    link.symlink_to(to)
    return link


#: From the folder of a release and the one around it, a place in some release.
WAYS_IN = {
    "itself": lambda release, _: release,
    "by a relative path": lambda _, around: around / "else" / ".." / "release" / "measures",
    "by a link into it": lambda release, around: _linked(around / "link", release / "inner"),
    "by a dangling link": lambda release, around: _linked(around / "link", release / "not-yet"),
    "in another release": lambda _, around: around / "other" / "measures",
}


@pytest.mark.parametrize("way", WAYS_IN)
def test_nothing_is_written_into_a_release(way, made, comparison, folder, tmp_path):
    made.save(tmp_path / "other")
    (tmp_path / "else").mkdir()
    (folder / "inner").mkdir()
    out = WAYS_IN[way](folder, tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ReleaseError, match="choose a folder elsewhere"):
        write_comparison(comparison, out, release=folder)
    assert sorted(tmp_path.rglob("*")) == before
    check_outside(tmp_path / "release-measures", folder)  # beside it is fine
