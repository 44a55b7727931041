"""A release compared with its truth, and where the result may be written."""

import json
from dataclasses import replace

import msgspec
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import inftda
from inftda.confidential.evaluate import Comparison, compare, read_truth, write_comparison
from inftda.errors import IngestError, ReleaseError
from inftda.planning.accuracy import NOTICE
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
    return replace(
        made, table=table, manifest=msgspec.structs.replace(made.manifest, n_flows=len(flows))
    )


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
        ("error", "cannot be placed"),
        ("outside", "made with `unplaceable='error'`, which holds for its truth"),
        ({"orgin": "outside"}, "made with `unplaceable='error'`"),
        ({"destination": "drop"}, "error or outside, got 'drop'"),
    ],
)
def test_what_a_release_refuses_to_do_with_such_rows_is_refused_here_too(made, unplaceable, said):
    abroad = {**TRUTH, "destination": ["002", "nowhere", "003"]}
    with pytest.raises(IngestError, match=said):
        read_truth(made, abroad, Columns(unplaceable=unplaceable))


def test_the_axes_with_an_area_outside_are_those_of_the_release():
    abroad = {**TRUTH, "destination": ["002", "nowhere", "nowhere"]}
    made = released(truth=abroad, columns=Columns(unplaceable={"destination": "outside"}))
    read_truth(made, abroad, Columns(unplaceable={"destination": "outside"}))
    with pytest.raises(IngestError, match="made with `unplaceable='destination=outside'`"):
        read_truth(made, abroad, Columns(unplaceable={"origin": "outside"}))


TRIPS = {
    "who": [f"p{i}" for i in range(30) for _ in range(7)],
    "origin": ["001", "001", "002", "003", "003", "001", "002"] * 30,
    "destination": ["002", "002", "003", "003", "003", "001", "002"] * 30,
}
PERSON = Columns(person="who")


@pytest.mark.parametrize(
    ("unit", "kept"),
    [
        (Unit("add-remove", trips=5), 150),
        (Unit("add-remove"), 30),
        (Unit("add-remove", trips=5, distinct=True), 150),
        (Unit("add-remove", trips=7, distinct=True), 150),
        (Unit(trips=7), 210),
        (Unit(trips=9, exactly=False), 210),
        (Unit(trips=5, exactly=False), 150),
        (Unit(trips=5, distinct=True), 150),
    ],
)
def test_the_truth_has_as_many_trips_of_each_person_as_the_release_counts(unit, kept):
    """The unit is that of the manifest: nobody says it again."""
    made = inftda.release(
        TRIPS, AREAS, rho=5_000, unit=unit, columns=PERSON,
        source=inftda.SeededSource(0),
    )  # fmt: skip
    truth = read_truth(made, TRIPS, PERSON)
    assert truth.total == kept
    # With the seed of the release the same trips are chosen, so errors are those of the noise.
    assert compare(made, truth).levels[-1].max_abs_error <= 2
    with pytest.raises(IngestError, match=r"each person; name the column .*`person=`"):
        read_truth(made, TRIPS)


def test_a_bound_that_the_release_does_not_have_is_refused():
    made = inftda.release(
        TRIPS, AREAS, rho=1, unit=Unit("add-remove", 7), source=inftda.SeededSource(1)
    )
    assert read_truth(made, TRIPS).total == 210
    with pytest.raises(IngestError, match=r"made without a person column .* leave out `person=`"):
        read_truth(made, TRIPS, PERSON)


@pytest.mark.parametrize("unit", [Unit(), Unit(trips=2, distinct=True)])
@pytest.mark.parametrize("total", [9, 11])
def test_a_table_with_another_total_than_the_exact_one_is_not_the_truth(unit, total):
    made = released(unit=unit)
    with pytest.raises(IngestError, match=r"^[^0-9]*total of this table differs[^0-9]*$"):
        read_truth(made, {**TRUTH, "count": [total - 2, 1, 1]})


@pytest.mark.parametrize(("unit", "total"), [(Unit(), 10), (Unit("add-remove"), 9)])
def test_a_total_that_may_be_the_true_one_is_taken(unit, total):
    truth = {**TRUTH, "count": [total - 2, 1, 1]}
    assert read_truth(released(unit=unit), truth).total == total


def test_an_empty_table_is_the_truth_only_where_it_can_be_released(made):
    empty = pa.table(TRUTH).slice(0, 0)
    with pytest.raises(IngestError, match="no rows"):
        read_truth(made, empty)
    got = compared(released(unit=Unit(neighbours="add-remove")), empty)
    assert got.levels[-1].total_true == 0
    assert got.levels[-1].false_discovery_rate == 1


def test_totals_that_pure_privacy_does_not_measure_are_compared_as_query_answers_them():
    """Delta 0 measures totals of the finest areas only."""
    made = inftda.release(TRUTH, AREAS, epsilon=1, delta=0, source=inftda.SeededSource(1))
    measures = {(one.axis, one.level): one for one in compared(made).totals}
    assert measures["origin", "town"].in_interval is not None
    asked = made.flows("region", "all").to_pylist()
    answered = {row["origin"]: row["flow"] for row in asked}
    true = {"N": 6, "S": 4}
    assert measures["origin", "region"].max_abs_error == max(
        abs(answered.get(region, 0) - true[region]) for region in true
    )


def test_an_area_the_release_does_not_list_is_an_error():
    with pytest.raises(ReleaseError, match="not among its areas"):
        compared(released([("001", "009", 10)]))


def test_files_hold_the_measures_and_the_notice(comparison, tmp_path):
    out = tmp_path / "out"
    write_comparison(comparison, out)
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


def test_nothing_is_written_into_a_release_by_a_dangling_link(comparison, folder, tmp_path):
    """What else is published is refused to all commands that write."""
    (out := tmp_path / "link").symlink_to(folder / "not-yet")
    with pytest.raises(ReleaseError, match="lies in the release folder"):
        write_comparison(comparison, out)
