"""Tails of sums of noise, against sums that are written out."""

import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest

from inftda.noise.distribution import Noise
from inftda.noise.tails import Tail

NARROW, WIDE = Noise(Fraction(4)), Noise(Fraction(30) ** 2)
LAPLACE = Noise(Fraction(3) ** 2, "laplace")


def chances(law, most=400):
    at = np.arange(-most, most + 1)
    scale = float(law.scale) if law.is_laplace else law.sigma
    found = np.exp(-np.abs(at) / scale if law.is_laplace else -((at / scale) ** 2) / 2)
    return found / found.sum()


@pytest.mark.parametrize(
    "draws",
    [[(NARROW, 1)], [(LAPLACE, 1)], [(LAPLACE, 2)], [(NARROW, 3), (LAPLACE, 2), (WIDE, 1)]],
    ids=str,
)
def test_the_tail_of_a_sum_is_that_of_its_convolution(draws):
    law = np.ones(1)
    for one, n in draws:
        for _ in range(n):
            law = np.convolve(law, chances(one))
    middle, tail = len(law) // 2, Tail.of(draws)
    for least in (1, 2, 5, 17, 40, 90):
        exact = law[middle + least :].sum()
        found = float(tail.probability(np.array([float(least)]))[0])
        if exact > 1e-12:  # below, transforms round up
            assert exact * (1 - 1e-9) <= found <= exact * (1.03 if tail.step == 1 else 1.2) + 1e-13
    for missed in (0.2, 0.025, 1e-4, 1e-7):
        most = tail.quantile(np.array([missed]))[0]
        assert law[middle + int(most) + 1 :].sum() <= missed * 1.0001
        assert law[middle + int(most) + 1 - 2 * tail.step :].sum() > missed


def test_very_wide_noise_is_kept_in_steps_and_never_understated():
    law = Noise(Fraction(10**6) ** 2)
    tail = Tail.of([(law, 2)])
    exact = 1 - NormalDist(0, math.sqrt(2) * 1e6).cdf(4e6)
    assert tail.step > 1
    assert exact <= tail.probability(np.array([4e6]))[0] <= 1.2 * exact


def test_without_noise_nothing_is_beyond_zero():
    tail = Tail.of([(WIDE, 0)])
    assert tail.probability(np.array([-1.0, 0.0, 1.0])).tolist() == [1, 1, 0]
    assert tail.quantile(np.array([0.01])).tolist() == [0]
