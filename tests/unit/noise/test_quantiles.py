"""The exact reach of discrete Gaussian noise."""

import math

import pytest

from inftda.noise.quantiles import half_width


@pytest.mark.parametrize("sigma", [0.1, 0.3, 0.51, 1.0, 1.5, 7.7, 19.9])
@pytest.mark.parametrize("missed", [0.3, 0.05, 1e-6])
def test_it_is_the_least_that_noise_exceeds_so_seldom(sigma, missed):
    weight = [math.exp(-((x / sigma) ** 2) / 2) for x in range(2_000)]
    whole = 2 * math.fsum(weight) - weight[0]
    h = half_width(sigma, missed)
    assert 2 * math.fsum(weight[h + 1 :]) <= missed * whole
    assert h == 0 or 2 * math.fsum(weight[h:]) > missed * whole


@pytest.mark.parametrize("missed", [0.05, 1e-9])
def test_sums_and_integrals_agree_where_they_meet(missed):
    assert half_width(20.001, missed) - half_width(19.999, missed) in {0, 1}
