"""The tests of the samplers are only as good as these helpers."""

import numpy as np
import pytest
from chisquare import (
    cell_by_cell,
    count_draws,
    equal_bins,
    gaussian_pmf,
    goodness_of_fit,
    laplace_pmf,
    two_samples,
)
from scipy.stats import chi2, chisquare, dlaplace, kstest


class FromNumpy:
    """A sampler that draws from a table of probabilities with numpy."""

    def __init__(self, pmf):
        self.cdf = np.cumsum(pmf.p)
        self.reach = pmf.reach

    def fill(self, out, random, *_):
        out[:] = np.minimum(np.searchsorted(self.cdf, random.random(out.size)), self.cdf.size - 1)
        out -= self.reach


def test_the_gaussian_probabilities_are_those_worked_out_by_hand():
    p = gaussian_pmf(0.5).p
    e = np.exp(-1.0)
    total = 1 + 2 * (e + e**4 + e**9 + e**16)
    middle = p.size // 2
    assert p[middle : middle + 3] == pytest.approx([1 / total, e / total, e**4 / total], rel=1e-9)


def test_the_laplace_probabilities_are_those_of_scipy():
    pmf = laplace_pmf(3)
    x = np.arange(-pmf.reach, pmf.reach + 1)
    assert pmf.p == pytest.approx(dlaplace(1 / 3).pmf(x), rel=1e-9, abs=1e-300)


def test_equal_bins_are_about_equal_and_in_order():
    p = gaussian_pmf(400).p
    bins = equal_bins(p, 40)
    sizes = np.bincount(bins, weights=p)
    assert np.all(np.diff(bins) >= 0)
    assert sizes.size == 40
    assert 0.01 < sizes.min() <= sizes.max() < 0.05


def test_draws_are_counted_and_far_ones_count_as_the_nearest():
    class Scripted:
        def fill(self, out, *_):
            out[:] = [-9, -2, 0, 0, 1, 7]

    assert count_draws(Scripted(), 6, None, 2).tolist() == [2, 0, 2, 1, 1]


def test_p_values_are_those_of_scipy_when_no_bins_are_merged():
    pmf = laplace_pmf(2)
    counts = count_draws(FromNumpy(pmf), 100_000, np.random.default_rng(1), pmf.reach)
    inner = slice(pmf.reach - 8, pmf.reach + 9)
    observed = [counts[: pmf.reach - 8].sum(), *counts[inner], counts[pmf.reach + 9 :].sum()]
    p = [pmf.p[: pmf.reach - 8].sum(), *pmf.p[inner], pmf.p[pmf.reach + 9 :].sum()]
    min_expected = 100_000 * pmf.p[pmf.reach + 8] * 0.99
    got = cell_by_cell(counts, pmf, min_expected=min_expected)
    assert got == pytest.approx(chisquare(observed, np.array(p) * 1e5).pvalue, rel=1e-6)


@pytest.mark.parametrize("test", [goodness_of_fit, cell_by_cell])
def test_p_values_of_right_samples_are_uniform(test):
    pmf, rng = gaussian_pmf(9), np.random.default_rng(2)
    sampler = FromNumpy(pmf)
    values = [test(count_draws(sampler, 20_000, rng, pmf.reach), pmf) for _ in range(300)]
    assert kstest(values, "uniform").pvalue > 1e-4


def test_p_values_of_two_equal_samples_are_uniform():
    pmf, rng = gaussian_pmf(9), np.random.default_rng(3)
    sampler = FromNumpy(pmf)
    values = [
        two_samples(*(count_draws(sampler, n, rng, pmf.reach) for n in (5_000, 20_000)))
        for _ in range(300)
    ]
    assert kstest(values, "uniform").pvalue > 1e-4


def test_a_small_p_value_is_as_rare_as_it_says():
    pmf, rng = gaussian_pmf(9), np.random.default_rng(4)
    counts = rng.multinomial(1_000_000, pmf.p, size=20_000)
    bins = equal_bins(pmf.p, 40)
    expected = np.bincount(bins, weights=pmf.p) * 1_000_000
    binned = np.stack([counts[:, bins == b].sum(axis=1) for b in range(expected.size)], axis=1)
    p = chi2.sf(np.sum((binned - expected) ** 2 / expected, axis=1), expected.size - 1)
    assert 2 <= np.sum(p < 1e-3) <= 50  # 20 expected


@pytest.mark.parametrize("factor", [0.97, 1.03])
def test_a_wrong_variance_gives_a_small_p_value(factor):
    right, wrong, rng = gaussian_pmf(25), gaussian_pmf(25 * factor), np.random.default_rng(5)
    counts = count_draws(FromNumpy(wrong), 1_000_000, rng, right.reach)
    others = count_draws(FromNumpy(right), 1_000_000, rng, right.reach)
    assert goodness_of_fit(counts, right) < 1e-20
    assert two_samples(counts, others) < 1e-20
    assert goodness_of_fit(others, right) > 1e-7


def test_one_wrong_value_gives_a_small_p_value():
    right = gaussian_pmf(25)
    p = right.p.copy()
    p[right.reach + 3] *= 1.05
    counts = np.random.default_rng(6).multinomial(1_000_000, p / p.sum())
    assert cell_by_cell(counts, right) < 1e-10
