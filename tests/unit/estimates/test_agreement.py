"""Whether published sums agree with what was measured."""

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import inftda
from inftda.demo import make_country
from inftda.noise.bits import Secret, SeededSource
from inftda.noise.distribution import Noise
from inftda.privacy.unit import Unit
from inftda.publication.agreement import Agreement, TableFit, table_fits
from inftda.publication.reliability import describe_misfits, misfit_warnings, planned_totals
from inftda.tree import Cells, Tree

COUNTRY = make_country((3, 6, 24), 5_000, seed=3)
#: An only child at each level, and a level that splits nothing.
ALONE = {
    "part": ["N", "N", "N", "S", "T", "T"],
    "same": ["N", "N", "N", "S", "T", "T"],
    "town": ["1", "2", "3", "4", "5", "6"],
}
MODES = {"kind": ["foot", "motor", "motor"], "mode": ["walk", "bus", "car"]}


def country(**options):
    given = {"rho": 0.05, "cross_tables": 0.2, "source": SeededSource(4), **options}
    return inftda.release(COUNTRY.flows(), COUNTRY.areas, **given)


def by_mode(n=900, **options):
    random = np.random.default_rng(2)
    towns = [random.choice(ALONE["town"], n, p=[0.4, 0.2, 0.1, 0.1, 0.1, 0.1]) for _ in range(2)]
    table = {
        "origin": towns[0].tolist(),
        "destination": towns[1].tolist(),
        "mode": random.choice(MODES["mode"], n).tolist(),
    }
    given = {"rho": 0.2, "cross_tables": 0.3, "source": SeededSource(6), **options}
    return inftda.release(table, ALONE, axis={"mode": MODES}, **given)


def slow_fits(tree, measured, leaves):
    """The same, cell by cell."""
    found = []
    for table in measured.tables:
        up = [
            axis.hierarchy.ancestor(axis.hierarchy.depth, depth)
            for axis, depth in zip(tree.axes, table.depths, strict=True)
        ]
        sums = Counter()
        for *leaf, value in zip(*leaves.areas, leaves.value.tolist(), strict=True):
            sums[tuple(int(above[area]) for above, area in zip(up, leaf, strict=True))] += value
        off = [
            sums[tuple(map(int, cell))] - value
            for *cell, value in zip(*table.areas, table.value.tolist(), strict=True)
        ]
        sigma, n = table.noise.sigma, len(off)
        rms = math.sqrt(sum(one**2 for one in off) / n) / sigma
        found.append((n, pytest.approx(rms), sum(abs(one) > 3 * sigma + 0.5 for one in off) / n))
    return found


MADE = {
    "two axes": country,
    "noised total": lambda: country(unit=Unit("add-remove")),
    "nothing across": lambda: country(cross_tables=0),
    "three axes": by_mode,
    "another order": lambda: by_mode(order=["mode", "origin", "destination"]),
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_it_is_what_comparing_cell_by_cell_gives(made):
    release = made()
    measured, leaves = release.measurements(), release.leaves()
    expected = slow_fits(release.tree, measured, leaves)
    for fits in (release.fits, table_fits(release.tree, measured, *leaves)):
        assert [fit[1:] for fit in fits] == expected
    order = np.random.default_rng(1).permutation(len(leaves.value))
    areas = tuple(numbers[order] for numbers in leaves.areas)
    assert table_fits(release.tree, measured, areas, leaves.value[order]) == fits


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_in_which_parts_values_come_does_not_matter(size):
    release = by_mode()
    agreement = Agreement(release.tree, *release.leaves())
    for table in release.measurements().tables:
        for first in range(0, len(table.value), size):
            agreement.compare(table.take(slice(first, first + size)))
    for found, expected in zip(agreement.fits(), release.fits, strict=True):
        assert found == expected._replace(rms=pytest.approx(expected.rms))


@pytest.mark.parametrize("measurements", ["all", "totals"])
def test_a_release_just_made_knows_what_an_opened_one_does(tmp_path, measurements):
    made = country(out=tmp_path / "out", measurements=measurements)
    opened = inftda.open_release(tmp_path / "out")
    assert made == opened
    assert made.fits == opened.fits
    assert [fit.name for fit in made.fits] == [table.name for table in made.published_tables()]
    table = opened.fit()
    assert table.column_names == ["table", "cells", "rms_z", "beyond_3"]
    assert table["table"].to_pylist() == [fit.name for fit in opened.fits]
    assert list(opened.fit(as_="pandas")["beyond_3"]) == [100 * fit.beyond for fit in opened.fits]


def test_of_a_release_of_flows_only_nothing_is_known(tmp_path):
    country(out=tmp_path / "out", cross_tables=0, measurements="totals")
    opened = inftda.open_release(tmp_path / "out")
    assert "Warning" not in opened._repr_html_(), "nothing is known, so nothing is warned of"
    with pytest.raises(inftda.InftdaError, match="has no measurements"):
        opened.fit()


@pytest.mark.parametrize(("measurements", "n"), [("all", 0), ("totals", 1)])
def test_the_custodian_hears_of_misfits_that_nobody_can_see_later(monkeypatch, measurements, n):
    """All tables are taken to be wrong; those of published values are warned of when asked."""
    right, asked = Agreement.fits, []

    def wrong(agreement):
        asked.extend(right(agreement))
        return tuple(one._replace(rms=3.0, n_cells=50) for one in right(agreement))

    monkeypatch.setattr(Agreement, "fits", wrong)
    said = []
    country(measurements=measurements, on_message=said.append)
    warned = [words for words in said if "do not agree with what was measured" in words]
    assert len(warned) == n
    assert all(words.endswith(": do not use them") for words in warned)
    assert len(asked) == 15 * n


def test_an_empty_release_has_nothing_that_misfits():
    made = by_mode(0, unit=Unit("add-remove"), rho=1e-4, source=SeededSource(1))
    assert all(fit.is_right for fit in made.fits)


def test_estimates_are_compared_with_the_same_measurements(tmp_path):
    release = country()
    release.save(tmp_path / "release")
    made = inftda.estimate(release, out=tmp_path / "estimate")
    known = made.fit(tmp_path / "release")
    assert known["table"].to_pylist() == [fit.name for fit in release.fits]
    assert inftda.open_estimate(tmp_path / "estimate").fit(release) == known
    with pytest.raises(inftda.InftdaError, match="another release"):
        made.fit(country(source=SeededSource(5)))


# --- What does not fit


def fit(n_cells, rms, beyond=0.0):
    return TableFit(Tree.destination_first(COUNTRY.areas).levels[1], n_cells, rms, beyond)


@pytest.mark.parametrize(
    ("n_cells", "rms", "beyond", "is_right"),
    [
        (10_000, 1.0, 0.0027, True),
        (10_000, 1.14, 0.0027, True),
        (10_000, 1.16, 0.0027, False),
        (100, 1.2, 0.0, True),
        (100, 1.4, 0.0, False),
        (19, 1.49, 0.0, True),
        (2, 2.5, 0.0, True),
        (2, 4.0, 1.0, False),
        (1, 0.0, 0.0, True),
        (10_000, 1.0, 0.0069, True),
        (10_000, 1.0, 0.0071, False),
        (1_000, 1.0, 0.008, True),
        (50, 1.0, 0.02, True),
        (50, 1.0, 0.1, False),
    ],
)
def test_a_table_misfits_where_differences_are_large_and_no_accident(
    n_cells, rms, beyond, is_right
):
    assert fit(n_cells, rms, beyond).is_right is is_right


@pytest.mark.parametrize("n_cells", [2, 10, 19, 20, 51, 300, 3_000])
def test_false_alarms_are_as_rare_as_they_should_be(n_cells):
    rms = np.linspace(1, 6, 5_001)
    alarms = [one for one in rms if not fit(n_cells, one).is_right]
    assert stats.chi2.sf(n_cells * alarms[0] ** 2, n_cells) <= 1e-4
    beyond = next(n for n in range(n_cells + 1) if not fit(n_cells, 1.0, n / n_cells).is_right)
    assert stats.binom.sf(beyond - 1, n_cells, 0.0027) <= 1e-4


@pytest.mark.parametrize("sigma2", [0.1, 0.43, 0.5, 1.7, 9, 28, 400])
def test_noise_of_whole_numbers_is_not_beyond_more_often_than_normal_noise(sigma2):
    sigma = math.sqrt(sigma2)
    noise = np.arange(-400, 401)
    weight = np.exp(-(noise**2) / (2 * sigma2))
    assert weight[np.abs(noise) > 3 * sigma + 0.5].sum() / weight.sum() < 0.0027


def test_flows_that_follow_fit_and_others_do_not():
    release = country()
    assert misfit_warnings(release) == []
    areas, flow = release.leaves()
    others = table_fits(release.tree, release.measurements(), areas, flow[::-1].copy())
    assert not any(one.is_right for one in others if one.n_cells > 20)


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(6, 5)])
def test_the_right_noise_fits_and_a_slightly_larger_one_does_not(scale):
    """Beside no flows at all, values are the noise: here of the scale stated, and of a larger."""
    release = country()
    table = release.measurements().tables[5]
    values = np.empty(2_000, np.int64)
    noise = Noise.gaussian(table.noise.square * scale**2)
    noise.fill(values, Secret.of(SeededSource(1)).bits(1))
    areas = tuple(np.resize(numbers, len(values)) for numbers in table.areas)
    nothing = tuple(np.zeros(0, np.int32) for _ in areas)
    agreement = Agreement(release.tree, nothing, np.zeros(0, np.int64))
    agreement.compare(replace(table, cells=Cells(areas, values)))
    assert agreement.fits()[0].is_right is (scale == 1)


def test_words_name_the_worst_and_count_the_rest():
    release = by_mode()
    wrong = [one._replace(rms=3.0 + number, n_cells=50) for number, one in enumerate(release.fits)]
    totals = {table.depths for table, _ in planned_totals(release.tree, release.manifest.plan)}
    names = [one.name for one in wrong if one.marginal.depths not in totals]
    (words,) = misfit_warnings(release, wrong)
    assert words.startswith(f"sums by {names[-1]}, {names[-2]}, {names[-3]} and ")
    assert f"and {len(names) - 3} other tables do not agree" in words
    assert f"off by up to {wrong[-1].rms:.1f} standard deviations of the noise" in words
    assert words.count("take them from measurements.parquet") == 1
    assert words.endswith("refines mode earlier (`order=`) has better ones")
    one = fit(10_000, 1.0, 0.02)
    assert describe_misfits([one, fit(9, 0.5)], "ask") == (
        f"sums by {one.name} do not agree with what was measured (2.0 % are off by more than 3 "
        "standard deviations): ask"
    )


def test_what_is_not_published_is_not_where_readers_are_sent():
    release = country(measurements="totals")
    wrong = [one._replace(rms=3.0, n_cells=50) for one in country().fits]
    (words,) = misfit_warnings(release, wrong)
    assert words.endswith(": do not use them")


@pytest.mark.parametrize("scale", ["3/2", "7", "400"])
def test_z_of_laplace_noise_is_normal(scale):
    """Of a million draws; without the transformation 1.4 % would be beyond 3."""
    law = Noise.laplace(Fraction(scale))
    z = np.sqrt(law.squares(law.sample(10**6, SeededSource(5)).astype(float)))
    assert 0.85 < np.sqrt(np.mean(z**2)) < 1.005
    assert np.mean(z > 3) < 0.003
    far = law.squares(np.array([60.0, 600.0]) * float(law.scale))
    assert np.diff(np.sqrt(far)) > 20, "what no noise explains is far out"
