"""Every noisy value that was drawn, beside the flows: written, read back, and followed."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import inftda
from inftda.demo import make_country
from inftda.errors import InftdaError, ReleaseError
from inftda.noise.bits import SeededSource
from inftda.noise.distribution import Noise
from inftda.privacy.measurement import Measurement
from inftda.privacy.unit import UNIT, Unit
from inftda.publication import verify
from inftda.publication.measured import NoisyTable
from inftda.publication.measurements import planned_measurements, write_measurements
from inftda.publication.parquet import ROW_GROUP, read_flows
from inftda.tree import Cells, Tree
from inftda.tree.hierarchy import Hierarchy

ORIGIN_FIRST = ("origin", "destination")

#: Only children at both levels of both ends, and a level that splits nothing.
AREAS = {
    "part": ["N", "N", "N", "S", "T", "T"],
    "same": ["N", "N", "N", "S", "T", "T"],
    "region": ["n1", "n1", "n2", "s1", "t1", "t2"],
    "town": ["1", "2", "3", "4", "5", "6"],
}
BUDGET = {"rho": 0.05}
UNITS = [
    {},
    {"unit": Unit(neighbours="add-remove")},
    {
        "unit": Unit(trips=2, distinct=True),
        "order": ("origin", "destination"),
        "split": [1, 1, 2, 2, 3, 3],
    },
]


def trips(n=600, seed=1):
    random = np.random.default_rng(seed)
    ends = [random.choice(AREAS["town"], n, p=[0.4, 0.2, 0.1, 0.1, 0.1, 0.1]) for _ in range(2)]
    return pa.table({"origin": ends[0], "destination": ends[1]})


def released(**options):
    return inftda.release(trips(), AREAS, **{**BUDGET, "source": SeededSource(5), **options})


def drawn_one_by_one(made, table):
    """Areas of all values of a table that must have been drawn, slowly, from the flows alone."""
    axes = made.tree.axes
    up = [
        [axis.hierarchy.ancestor(axis.hierarchy.depth, depth) for depth in range(6) if depth <= 4]
        for axis in axes
    ]
    codes = [axis.hierarchy.codes(4).to_pylist() for axis in axes]
    flows = made.flows().to_pylist()
    leaves = [tuple(codes[a].index(row[axis.name]) for a, axis in enumerate(axes)) for row in flows]
    level, depths = table.level, table.depths
    if level.refined is None:
        return {(0, 0)}
    refined, other = level.axis, 1 - level.axis
    found = set()
    for leaf in leaves:
        above = up[refined][depths[refined] - 1][leaf[refined]]
        low, high = level.child_offsets[above : above + 2].tolist()
        if table.is_on_tree and high - low == 1:
            continue
        across = int(up[other][depths[other]][leaf[other]])
        for child in range(low, high):
            found.add((child, across) if refined == 0 else (across, child))
    if not table.is_on_tree and depths[other] == 0:  # also below areas that nobody is released in
        n = axes[refined].hierarchy.n_areas(depths[refined])
        found = {(area, 0) if refined == 0 else (0, area) for area in range(n)}
    return found


@pytest.mark.parametrize("across", [0, 0.3])
@pytest.mark.parametrize("options", UNITS)
def test_they_are_all_that_was_drawn_and_the_flows_stay_as_they_are(options, across):
    made = released(cross_tables=across, **options)
    small = released(cross_tables=across, measurements="totals", **options)
    assert made.table.equals(small.table)
    measured, plan = made.measurements(), made.manifest.plan
    planned = planned_measurements(made.tree, plan)
    assert len(measured.tables) == len(planned) == len(plan.levels) + len(plan.tables)
    for found, known in zip(measured.tables, planned, strict=True):
        assert (found.depths, found.noise) == (known.depths, known.noise)
        cells = list(zip(*(areas.tolist() for areas in found.areas), strict=True))
        assert len(cells) == len(set(cells)) == len(found.value)
        assert set(cells) == drawn_one_by_one(made, known)


@pytest.mark.parametrize("options", UNITS)
def test_with_next_to_no_noise_they_are_the_true_counts(options):
    made = released(rho=3000, **options)
    table, hierarchy = trips(), made.tree.axes[0].hierarchy
    towns = [hierarchy.find(4, table[name].to_pylist()) for name in ("origin", "destination")]
    for found in made.measurements().tables:
        truth = np.zeros([hierarchy.n_areas(depth) for depth in found.depths], np.int64)
        up = [hierarchy.ancestor(4, depth) for depth in found.depths]
        np.add.at(truth, (up[0][towns[0]], up[1][towns[1]]), 1)
        np.testing.assert_array_equal(found.value, truth[found.areas])


def test_totals_that_are_published_anyway_are_the_same_draws():
    both = [
        released(measurements=measurements, cross_tables=0.3) for measurements in ("all", "totals")
    ]
    for axis, level in (("origin", "town"), ("destination", "town"), ("origin", "part")):
        asked = {"origin": "all", "destination": "all"} | {axis: level}
        found = [made.flows(level=asked, intervals=True) for made in both]
        assert "listed" in found[0].column_names
        # With all measurements intervals may be narrower.
        shown = [one.drop_columns(["low", "high", "grade"]) for one in found]
        assert shown[0] == shown[1]


def test_the_table_of_a_level_is_found_by_its_number():
    measured = released(unit=Unit(neighbours="add-remove")).measurements()
    assert measured.level(0).depths == (0, 0)
    assert len(measured.level(0).value) == 1
    assert measured.level(1).depths == (0, 1)
    with pytest.raises(ReleaseError, match="level 3 of the tree was not measured"):
        measured.level(3)


def test_people_read_the_file_by_names_and_codes(tmp_path):
    made = released(cross_tables=0.3, out=tmp_path / "out")
    table = pq.read_table(tmp_path / "out" / "measurements.parquet").to_pandas()
    assert list(table.columns) == ["table", "origin", "destination", "measured"]
    first = table[table["table"] == "all > part"]
    assert first["origin"].tolist() == ["all"] * 3
    assert first["destination"].tolist() == ["N", "S", "T"]
    stated = made.manifest.guarantee.levels + made.manifest.guarantee.cross_tables
    assert set(table["table"]) == {known.name for known in stated}


@pytest.mark.parametrize("across", [0, 0.3])
def test_a_release_in_memory_keeps_them_and_can_be_saved(tmp_path, across):
    made = released(cross_tables=across)
    saved = made.save(tmp_path / "saved")
    for here, there in zip(made.measurements().tables, saved.measurements().tables, strict=True):
        np.testing.assert_array_equal(here.value, there.value)
        np.testing.assert_array_equal(here.areas, there.areas)
    again = saved.save(tmp_path / "again")
    written = released(cross_tables=across, out=tmp_path / "written")
    digests = {one.manifest.files["measurements.parquet"] for one in (saved, again, written)}
    assert len(digests) == 1, "the file follows from its rows"


def test_an_axis_must_not_have_the_name_of_another_column(tmp_path):
    table = {"Measured": ["a", "b"], "count": [3, 4]}
    options = {"axis": {"Measured": {"letter": ["a", "b"]}}, "rho": 1}
    inftda.release(table, **options, cross_tables=0, measurements="totals")
    with pytest.raises(InftdaError, match="'Measured' where measurements are published"):
        inftda.release(table, **options, out=tmp_path / "out")


@pytest.mark.parametrize("n_chunks", [1, 2])
def test_tables_in_another_order_are_refused(n_chunks):
    made = released(cross_tables=0.3)
    cut = made.measured["table"].to_pylist().index(made.published_tables()[1].name)
    parts = [made.measured.slice(cut), made.measured.slice(0, cut)]
    other = pa.concat_tables(parts)
    if n_chunks == 1:
        other = other.unify_dictionaries().combine_chunks()
    with pytest.raises(ReleaseError, match="tables in another order"):
        replace(made, measured=other).measurements()


def test_two_tables_must_not_have_the_same_name():
    ends = {
        "origin": {"a": ["1", "1", "2", "2"], "a > b": ["1", "2", "3", "4"]},
        "destination": {"c": ["1", "1", "2", "2"], "b > c": ["1", "2", "3", "4"]},
    }
    table = {"origin": ["1"], "destination": ["2"]}
    with pytest.raises(InftdaError, match="two tables would be called 'a > b > c'"):
        inftda.release(table, axis=ends, rho=1)


def test_the_file_does_not_show_in_which_blocks_it_was_made(tmp_path):
    tree = Tree.destination_first(Hierarchy.read({"town": [f"{i:04d}" for i in range(1500)]}))
    cells = np.arange(ROW_GROUP + 5000)
    areas = tuple(part.astype(np.int32) for part in np.divmod(cells, 1500))
    contents = []
    of_level = [Measurement.of(one, UNIT, Noise(Fraction(1))) for one in tree.levels]
    first = NoisyTable(of_level[1], Cells((areas[0][:9] * 0, areas[1][:9]), cells[:9]))
    every = NoisyTable(of_level[2], Cells(areas, cells))
    for number, cuts in enumerate(([], [7, ROW_GROUP - 9], [1_000_001, 1_000_002, 1_048_000])):
        parts = (every.take(slice(*ends)) for ends in pairwise([0, *cuts, len(cells)]))
        write_measurements(tmp_path / f"{number}.parquet", tree, (first, *parts))
        contents.append((tmp_path / f"{number}.parquet").read_bytes())
    assert contents[0] == contents[1] == contents[2]
    metadata = pq.read_metadata(tmp_path / "0.parquet")
    assert [metadata.row_group(i).num_rows for i in range(2)] == [ROW_GROUP, 5009]


# --- What follows from them ---


COUNTRY = make_country((3, 6, 24), 5_000, seed=3)


def followed(made, **changes):
    """What is found right, with some values changed: table number to function."""
    measured = made.measurements()
    for number, change in changes.get("values", {}).items():
        change(measured.tables[number].value)
    leaves = read_flows(made.table.sort_by("flow"), made.tree)  # in whatever order they come
    return list(verify.check_follows(leaves, measured, made.tree, made.manifest.division_seed))


def country(**options):
    facts = {**BUDGET, "source": SeededSource(8), **options}
    return inftda.release(COUNTRY.flows(), COUNTRY.areas, **facts)


@pytest.mark.parametrize("across", [0, 0.08])
@pytest.mark.parametrize("options", [{}, {"unit": Unit("add-remove")}, {"order": ORIGIN_FIRST}])
def test_flows_follow_from_the_measurements_and_the_seed(options, across):
    said = followed(country(cross_tables=across, **options))
    assert said[1] == "flows follow from the measurements and the seed, at 6 levels"
    assert len(said) == 2


@pytest.mark.parametrize("across", [0, 0.08])
def test_a_release_of_nothing_follows_from_a_total_that_is_not_above_zero(across):
    options = {"unit": Unit("add-remove"), "cross_tables": across, "rho": 0.001}
    made = [
        inftda.release(trips(0), AREAS, source=SeededSource(seed), **options) for seed in range(4)
    ]
    empty = [one for one in made if one.total == 0]
    assert empty
    assert all(len(followed(one)) == 2 for one in empty)


def test_another_seed_gives_other_flows():
    """Ties are many where counts are small."""
    made = country(cross_tables=0)
    other = replace(made, manifest=msgspec.structs.replace(made.manifest, division_seed="ff" * 16))
    with pytest.raises(ReleaseError, match=r"do not follow from|must list every value"):
        followed(other)


def far_too_low(value):
    value[int(np.argmax(value))] -= 100_000


def far_too_high(value):
    value[int(np.argmin(value))] += 100_000


@pytest.mark.parametrize("across", [0, 0.08])
@pytest.mark.parametrize("change", [far_too_low, far_too_high])
def test_flows_that_do_not_follow_are_found(across, change):
    made = country(cross_tables=across)
    tables = made.measurements().tables
    for number in (n for n, table in enumerate(tables) if table.measurement.is_on_tree):
        with pytest.raises(ReleaseError, match=r"do not follow from|must list every value"):
            followed(made, values={number: change})


def test_values_that_no_release_can_have_are_refused():
    def huge(value):
        value[0] = 1 << 60

    with pytest.raises(ReleaseError, match="no release can have"):
        followed(country(cross_tables=0), values={0: huge})
