"""A preview: every setting is tried, what is stated is what simulations show."""

import pytest

from inftda.demo import make_country
from inftda.errors import InftdaError
from inftda.noise.bits import SeededSource
from inftda.pipeline import release
from inftda.planning.findings import write_preview_page
from inftda.planning.plan import plan
from inftda.planning.preview import preview
from inftda.privacy.bounds import error_bounds
from inftda.privacy.noise_plan import make_plan
from inftda.privacy.unit import Unit
from inftda.reading.truth import Truth
from inftda.tree import Tree


@pytest.fixture(scope="module")
def country():
    return make_country((3, 8, 30), 20_000, seed=4)


@pytest.fixture(scope="module")
def tried(country):
    return preview(
        country.areas, stand_in=country.flows(), epsilon=[1, 5], delta=1e-6, runs=3,
        source=SeededSource(1),
    )  # fmt: skip


def test_every_level_is_measured_and_guaranteed_as_planned(country, tried):
    tree = Tree.destination_first(country.areas)
    for one in tried.settings:
        plan = make_plan(
            tree, Unit("substitute", 1), epsilon=one.setting.epsilon, delta=1e-6,
            method="inftda",
        )  # fmt: skip
        bounds = {bound.name: bound.max_error for bound in error_bounds(tree, plan)}
        for level in one.levels:
            assert level.guaranteed == bounds[level.name]
            # The guarantee fails once in 20 previews; with this seed it holds.
            assert level.largest_error <= level.guaranteed
            assert level.p95 <= level.largest_error
    weak, strong = tried.settings
    assert strong.levels[-1].common_part > weak.levels[-1].common_part
    assert strong.levels[-1].p95 < weak.levels[-1].p95


@pytest.mark.slow
def test_all_combinations_are_tried(country):
    tried = preview(
        country.areas, stand_in=country.flows(), epsilon=[1], delta=1e-6, runs=1,
        unit=[Unit(kind, trips) for kind in ("substitute", "add-remove") for trips in (1, 2)],
        split=["uniform", "log"], cross_tables=0,
        source=SeededSource(1),
    )  # fmt: skip
    said = [one.setting.describe() for one in tried.settings]
    assert len(said) == len(set(said)) == 8
    # Under add-remove the total is noised, so the root is a level.
    assert tried.settings[-1].levels[0].name == "all > all"


def test_more_settings_than_anybody_can_compare_are_refused(country):
    with pytest.raises(InftdaError, match="61 settings"):
        preview(country.areas, stand_in=country.flows(), epsilon=list(range(1, 62)), delta=1e-6)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "a public table of flows"),
        ({"stand_in": {}, "runs": 0}, "runs"),
        ({"stand_in": {}, "delta": None}, "delta"),
    ],
)
def test_what_makes_no_sense_is_refused(country, given, words):
    with pytest.raises(InftdaError, match=words):
        preview(country.areas, **{"delta": 1e-6, **given})


def test_a_stand_in_is_released_as_the_real_table_would_be(country, tried):
    """The same figures as of a real release of the same table, within what chance does."""
    made = release(country.flows(), country.areas, epsilon=5, delta=1e-6, source=SeededSource(7))
    tree = Tree.destination_first(country.areas)
    truth = Truth.from_leaves(tree, [country.origin, country.destination], country.count)
    from inftda.confidential.evaluate import compare  # noqa: PLC0415 - only here

    found = compare(made, truth).levels[-1].common_part
    assert abs(found - tried.settings[1].levels[-1].common_part) < 0.01


@pytest.mark.parametrize(
    "given",
    [
        {"areas": {"town": ["a", "b"]}, "stand_in": {"origin": ["a"], "destination": ["b"]}},
        {"axis": {"sex": {"sex": ["f", "m"]}}, "stand_in": {"sex": ["f", "m", "f"]}},
    ],
)
def test_the_smallest_tables_get_a_page_too(given, tmp_path):
    tried = preview(**given, epsilon=1, delta=1e-6, runs=1)
    page = write_preview_page(tried, tmp_path / "page.html").read_text()
    # One epsilon makes no curve.
    assert 'href="#curves"' not in page
    assert 'id="sizes"' in page


def test_a_list_of_units_has_the_tree_that_a_release_with_the_unit_has():
    """The axis of `once_per` is refined first; the command line always gives a list."""
    areas = {"region": ["N", "N", "S"], "town": ["1", "2", "3"]}
    flows = {"origin": ["1", "2"], "destination": ["3", "3"], "month": ["a", "b"], "count": [9, 9]}
    given = {"axis": {"month": {"month": ["a", "b"]}}, "epsilon": 1, "delta": 1e-6}
    monthly = Unit("add-remove", trips=2, once_per="month")
    names = {
        tuple(
            level.name
            for level in preview(areas, stand_in=flows, unit=unit, runs=1, **given)
            .settings[0].levels
        )
        for unit in (monthly, [monthly])
    }  # fmt: skip
    planned = plan(areas, unit=monthly, **given).levels().column("level").to_pylist()
    assert names == {tuple(planned)}
    with pytest.raises(InftdaError, match="one by one"):
        preview(areas, stand_in=flows, unit=[monthly, Unit()], runs=1, **given)
