"""Methods without a guarantee do what is said of them, and all methods are measured alike."""

import numpy as np
import pytest

from inftda.confidential import evaluate
from inftda.confidential.compare import DEFAULT_METHODS, compare
from inftda.confidential.methods import (
    OFFICES,
    change_by_key,
    find_method,
    perturbation_matrix,
    round_at_random,
    round_to_nearest,
)
from inftda.demo import make_country
from inftda.errors import InftdaError
from inftda.estimates.estimate import estimate
from inftda.noise.bits import SeededSource
from inftda.pipeline import release
from inftda.privacy.unit import Unit
from inftda.reading import Columns
from inftda.reading.truth import Truth
from inftda.tree import Tree
from inftda.tree.hierarchy import Hierarchy

TOWNS = Hierarchy.read({"region": ["N", "N", "S", "S"], "town": ["1", "2", "3", "4"]})


@pytest.fixture(scope="module")
def country():
    return make_country((2, 5, 14), 6_000, seed=2)


@pytest.mark.parametrize("seed", range(10))
def test_no_family_hides_a_single_cell_and_no_hidden_cell_has_all_its_parts_shown(seed):
    random = np.random.default_rng(seed)
    areas = [*np.divmod(random.choice(16, 12, replace=False).astype(np.int32), 4)]
    tree = Tree.destination_first(TOWNS)
    truth = Truth.from_leaves(tree, areas, random.integers(1, 31, 12))
    shown = find_method("suppress:10").show_levels(truth, random)
    above = np.zeros(1, bool)
    for number, (level, value) in enumerate(zip(truth.levels, shown, strict=True)):
        is_hidden, is_parent_hidden = value == 0, above[truth.above(number)]
        assert (value[~is_hidden] == level.count[~is_hidden]).all()
        assert (is_hidden | (level.count >= 10)).all()
        for parent, (first, last) in enumerate(zip(level.offsets, level.offsets[1:], strict=False)):
            hidden = is_hidden[first:last]
            if is_parent_hidden[parent]:
                assert hidden.any()
            elif hidden.any():
                together = level.count[first:last][hidden].sum()
                assert hidden.all() or (hidden.sum() >= 2 and together >= 10)
        above = is_hidden


def test_rounding_is_right_in_expectation_and_to_one_of_the_two_next_multiples():
    true, random = np.repeat(np.arange(30), 4000), np.random.default_rng(1)
    rounded = round_at_random(true, 5, random)
    assert (rounded % 5 == 0).all()
    assert (np.abs(rounded - true) < 5).all()
    mean = rounded.reshape(30, -1).mean(axis=1)
    assert np.abs(mean - np.arange(30)).max() < 5 * 2.5 / 4000**0.5


@pytest.mark.parametrize("base", [2, 5, 100])
def test_rounding_to_the_nearest_multiple_is_off_by_half_of_it_at_most(base):
    true = np.arange(5 * base)
    rounded = round_to_nearest(true, base, np.random.default_rng(0))
    assert (rounded % base == 0).all()
    assert (2 * (true - rounded) < base).all()
    assert (2 * (rounded - true) <= base).all()


@pytest.mark.parametrize("most", [2, 3, 5])
def test_the_perturbation_matrix_has_mean_zero_and_no_number_below_zero(most):
    matrix = perturbation_matrix(most, 2.0)
    chance = np.diff(matrix, axis=1, prepend=0)
    change = np.arange(-most, most + 1)
    assert np.allclose(chance @ change, 0, atol=1e-9)
    assert np.allclose((chance @ change**2)[-1], 2.0)
    for count, row in enumerate(chance):
        assert row[change < -count].sum() == 0
    assert chance[0, most] == 1  # zeros stay


def test_changes_have_the_probabilities_of_the_matrix():
    true = np.repeat(np.arange(6), 20_000)
    change = change_by_key(true, 3, np.random.default_rng(3)) - true
    chance = np.diff(perturbation_matrix(3, 2.0), axis=1, prepend=0)
    for count, here in enumerate(change.reshape(6, -1)):
        found = np.bincount(here + 3, minlength=7) / len(here)
        assert np.abs(found - chance[min(count, 3)]).max() < 0.02


def test_the_office_that_changes_few_numbers_changes_one_in_seven():
    true = np.full(50_000, 40)
    shown = find_method("ons").show(true, np.random.default_rng(1))
    assert abs(np.mean(shown != true) - 0.14) < 0.01


def test_methods_are_measured_alike(country):
    names = ["suppress:10", "suppress-primary:10", "round:5", "cell-key:3", "inftda"]
    compared = compare(
        country.flows(), country.areas, methods=names, epsilon=[1, 10], delta=1e-6, seed=1,
        source=SeededSource(1),
    )  # fmt: skip
    labels = [one.label for one in compared.results]
    assert labels == [*names[:4], "inftda, epsilon 1", "inftda, epsilon 10"]
    suppressed, primary, rounded, by_key, weak, strong = compared.results
    assert {len(one.levels) for one in compared.results} == {7}
    assert {len(one.totals) for one in compared.results} == {5}
    assert suppressed.levels[-1].common_part <= primary.levels[-1].common_part
    assert primary.levels[-1].max_abs_error == 9
    assert rounded.levels[-1].max_abs_error <= 4
    assert by_key.levels[-1].max_abs_error <= 3
    assert weak.levels[-1].common_part < strong.levels[-1].common_part
    assert [one.is_guaranteed for one in compared.results] == [False] * 4 + [True] * 2
    assert compared.to_dict()["confidential"] is True
    assert compared.level_table().column("notice")[0].as_py().startswith("CONFIDENTIAL")


@pytest.mark.parametrize("delta", [1e-6, 0])
def test_ours_is_judged_by_the_numbers_that_readers_see(country, delta):
    """Delta 0 measures totals of the finest areas only."""
    budget = {"epsilon": 1, "delta": delta}
    released = release(country.flows(), country.areas, **budget, source=SeededSource(1))
    areas = [country.origin, country.destination]
    truth = Truth.from_leaves(released.tree, areas, country.count)
    known = evaluate.compare(released, truth, estimate=estimate(released))
    compared = compare(
        country.flows(), country.areas, methods=["inftda", "inftda-estimate"], **budget,
        source=SeededSource(1),
    )  # fmt: skip
    for one, expected in zip(compared.results, (known, known.estimate), strict=True):
        assert one.levels == expected.levels
        errors = [[total.mean_abs_error for total in of.totals] for of in (one, expected)]
        assert errors[0] == errors[1]


@pytest.mark.parametrize(("trips", "kept"), [(1, 20), (2, 40), (9, 60)])
def test_methods_are_compared_on_the_trips_that_a_release_would_count(trips, kept):
    table = {
        "who": [i // 3 for i in range(60)],
        "origin": ["a", "b", "a"] * 20,
        "destination": ["b", "b", "a"] * 20,
    }
    compared = compare(
        table, {"town": ["a", "b"]}, methods=["round:5", "inftda"], rho=1, seed=1,
        columns=Columns(person="who"), unit=Unit("add-remove", trips), source=SeededSource(1),
    )  # fmt: skip
    assert compared.trips == kept


def test_offices_are_named_with_their_sources(country):
    compared = compare(country.flows(), country.areas, delta=1e-6, seed=1, source=SeededSource(1))
    assert [one.method for one in compared.results] == [*DEFAULT_METHODS]
    assert {one.method for one in compared.results if "http" in one.words} == {*OFFICES}


@pytest.mark.parametrize("name", ["suppress:1", "round:x", "cell-key:0", "magic", "inftda:5"])
def test_a_method_that_is_not_there_is_refused(country, name):
    with pytest.raises(InftdaError, match=name.partition(":")[0]):
        compare(country.flows(), country.areas, methods=[name], delta=1e-6)
