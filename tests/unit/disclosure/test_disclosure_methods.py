"""Methods without a guarantee do what is said of them, and who is seen is counted rightly."""

import re

import numpy as np
import pytest
from small_tables import TOWNS, TWO, counts_of, random_counts

from inftda.demo import make_country
from inftda.disclosure.compare import DEFAULT_METHODS, compare, summary_sentence
from inftda.disclosure.methods import (
    OFFICES,
    CellKey,
    NearestRounding,
    Rounding,
    Suppression,
    change_by_key,
    finest_totals,
    nodes_of_leaves,
    perturbation_matrix,
)
from inftda.errors import InftdaError
from inftda.estimates import estimate
from inftda.evaluation import evaluate
from inftda.noise.bits import SeededSource
from inftda.publish import release
from inftda.truth import Truth


@pytest.fixture(scope="module")
def country():
    return make_country((2, 5, 14), 6_000, seed=2)


@pytest.mark.parametrize("seed", range(10))
def test_no_family_hides_a_single_cell_and_no_hidden_cell_has_all_its_parts_shown(seed):
    truth = random_counts(TOWNS, seed, cells=12, most=30)
    published = Suppression(10).publish(truth, np.random.default_rng(0))
    for number, level in enumerate(truth.levels):
        above = published.levels[number].is_hidden[truth.above(number)]
        here = published.levels[number + 1]
        for parent, (first, last) in enumerate(zip(level.offsets, level.offsets[1:], strict=False)):
            hidden = here.is_hidden[first:last]
            if above[parent]:
                assert hidden.any()
            elif hidden.any():
                together = here.true[first:last][hidden].sum()
                assert hidden.all() or (hidden.sum() >= 2 and together >= 10)
        assert (here.is_hidden | (here.true >= 10)).all()


def test_rounding_is_right_in_expectation_and_to_one_of_the_two_next_multiples():
    true = np.arange(30)
    chances = (np.arange(50) + 0.5) / 50
    rounded = np.array([Rounding(5).rounded(true, np.full(30, chance)) for chance in chances])
    assert np.allclose(rounded.mean(axis=0), true)
    assert (rounded % 5 == 0).all()
    assert (np.abs(rounded - true) < 5).all()


@pytest.mark.parametrize("base", [2, 5, 100])
def test_rounding_to_the_nearest_multiple_tells_no_more_than_its_half(base):
    truth = counts_of(TWO, [(0, 0, base // 2), (1, 0, 3 * base + (base - 1) // 2), (1, 1, base)])
    leaves = NearestRounding(base).publish(truth, np.random.default_rng(0)).levels[-1]
    assert dict(zip(leaves.true.tolist(), leaves.value.tolist(), strict=True)) == {
        n: base * ((2 * n + base) // (2 * base)) for n in leaves.true.tolist()
    }
    ends = [low + base - 1 == high or low == 0 for low, high in zip(leaves.low, leaves.high)]  # noqa: B905
    assert all(ends)
    assert ((leaves.low <= leaves.true) & (leaves.true <= leaves.high)).all()


@pytest.mark.parametrize("most", [2, 3, 5])
def test_the_perturbation_matrix_has_mean_zero_and_no_number_below_zero(most):
    matrix = perturbation_matrix(most)
    law = np.diff(matrix, axis=1, prepend=0)
    change = np.arange(-most, most + 1)
    assert np.allclose(law @ change, 0, atol=1e-9)
    assert np.allclose((law @ change**2)[-1], 2.0)
    for count, row in enumerate(law):
        assert row[change < -count].sum() == 0
    assert law[0, most] == 1  # zeros stay


@pytest.mark.parametrize("seed", range(5))
def test_trips_seen_after_rounding_are_those_without_which_the_leaf_is_another(seed):
    """The second edition is made for each leaf in turn; no count is 1, so no cell vanishes."""
    flows = [(0, 0, 7), (1, 0, 12), (0, 1, 5), (1, 1, 23)]
    first = Rounding(5).publish(counts_of(TWO, flows), np.random.default_rng(seed))
    seen = somewhere = 0
    for i, (origin, destination, n) in enumerate(flows):
        without = [*flows[:i], (origin, destination, n - 1), *flows[i + 1 :]]
        second = Rounding(5).publish(counts_of(TWO, without), np.random.default_rng(seed))
        differ = [
            (a.value != b.value).any()
            for a, b in zip(first.levels[1:], second.levels[1:], strict=True)
        ]
        seen += n * differ[-1]
        somewhere += n * any(differ)
    assert (first.n_reidentified, first.n_seen_anywhere) == (seen, somewhere)


def test_a_key_picks_the_change_of_its_row():
    """One by one, as the matrix is read by hand."""
    matrix = perturbation_matrix(3)
    random = np.random.default_rng(2)
    true, keys = random.integers(0, 8, 500), random.integers(0, 1 << 64, 500, np.uint64)
    for count, key, change in zip(true, keys, change_by_key(true, keys, matrix), strict=True):
        chance = (int(key) >> 11) / 2**53
        row = matrix[min(count, 3)]
        assert change == next(at for at, up_to in enumerate(row) if chance < up_to) - 3


def test_trips_seen_by_cell_keys_are_those_without_which_a_number_is_another():
    truth = random_counts(TOWNS, 3, cells=10, most=6)
    published = CellKey(3).publish(truth, np.random.default_rng(4))
    matrix = perturbation_matrix(3)
    keys = np.random.default_rng(4).integers(0, 1 << 64, truth.total, np.uint64)
    owner = np.repeat(np.arange(truth.n_leaves), truth.leaves[1])
    seen = somewhere = 0
    for gone in range(len(owner)):
        changes = []
        for node, shown in zip(nodes_of_leaves(truth)[1:], published.levels[1:], strict=True):
            here = node[owner[gone]]
            rest = (node[owner] == here) & (np.arange(len(owner)) != gone)
            n, key = np.array([rest.sum()]), keys[rest].sum(keepdims=True)
            changes.append((n + change_by_key(n, key, matrix))[0] != shown.value[here])
        seen += changes[-1]
        somewhere += any(changes)
    assert (published.n_reidentified, published.n_seen_anywhere) == (seen, somewhere)


def test_zeros_stay_zeros_and_totals_are_published_by_the_same_method():
    truth = counts_of(TWO, [(0, 0, 3), (1, 0, 30)])
    for method in (Suppression(10), Rounding(5), CellKey(3)):
        published = method.publish(truth, np.random.default_rng(1))
        for shown, true in zip(published.totals, finest_totals(truth), strict=True):
            assert (shown.value[true == 0] == 0).all()
            assert (shown.low <= true).all()
            assert (true <= shown.high).all()


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
    assert weak.attack is None
    assert suppressed.attack.n_reidentified == suppressed.levels[-1].total_released
    assert compared.to_dict()["confidential"] is True
    assert compared.level_table().column("notice")[0].as_py().startswith("CONFIDENTIAL")


def test_ours_is_judged_by_the_numbers_that_readers_see(country):
    budget = {"epsilon": 1, "delta": 1e-6}
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


def test_offices_are_named_and_said_where_a_promise_costs_nothing(country):
    compared = compare(country.flows(), country.areas, delta=1e-6, seed=1, source=SeededSource(1))
    assert [one.method for one in compared.results] == [*DEFAULT_METHODS]
    assert all("http" in one.words for one in compared.results if one.method in OFFICES)
    said = summary_sentence(compared)
    own = next(one for one in compared.results if one.label == "inftda, epsilon 1")
    office = next(one for one in compared.results if one.label == "cbs")
    better = [
        a.common_part >= b.common_part for a, b in zip(own.levels, office.levels, strict=True)
    ]
    assert re.search(
        rf"inftda, epsilon 1 keeps [^.]*cbs[^,]* at {sum(better[1:]) or 'none'}\b", said
    )


@pytest.mark.parametrize("name", ["suppress:1", "round:x", "cell-key:0", "magic", "inftda:5"])
def test_a_method_that_is_not_there_is_refused(country, name):
    with pytest.raises(InftdaError, match=name.partition(":")[0]):
        compare(country.flows(), country.areas, methods=[name], delta=1e-6)


def test_a_table_of_one_area_shows_nobody():
    table = {"origin": ["a"] * 9, "destination": ["a"] * 9}
    compared = compare(table, {"town": ["a"]}, methods=DEFAULT_METHODS[:3])
    found = [one.attack for one in compared.results]
    assert {(one.n_reidentified, one.n_seen_anywhere) for one in found} == {(0, 0)}
