"""The tests of the samplers are only as good as these helpers."""

import numpy as np
import pytest
from chisquare import cell_by_cell, count_draws, gaussian_pmf, goodness_of_fit, two_samples


class FromNumpy:
    """A sampler that draws from a table of probabilities with numpy."""

    def __init__(self, pmf):
        self.cdf = np.cumsum(pmf.p)
        self.reach = pmf.reach

    def fill(self, out, random, *_):
        out[:] = np.minimum(np.searchsorted(self.cdf, random.random(out.size)), self.cdf.size - 1)
        out -= self.reach


def test_draws_are_counted_and_far_ones_count_as_the_nearest():
    class Scripted:
        def fill(self, out, *_):
            out[:] = [-9, -2, 0, 0, 1, 7]

    assert count_draws(Scripted(), 6, None, 2).tolist() == [2, 0, 2, 1, 1]


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
