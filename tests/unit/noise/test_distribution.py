"""What a user sees of the noise; its probabilities are tested elsewhere."""

import math
from fractions import Fraction

import numpy as np
import pytest

from inftda.errors import PrivacyError
from inftda.noise.bits import SeededSource
from inftda.noise.distribution import Noise

BOTH = pytest.mark.parametrize("make", [Noise.gaussian, Noise.laplace])
#: The widest noise of each kind, and its standard deviation.
WIDEST = pytest.mark.parametrize(
    ("widest", "deviation", "limit"),
    [
        (Noise(Fraction(200_000**2)), 200_000, "200,000"),
        (Noise(Fraction(40_000**2), "laplace"), 40_000 * math.sqrt(2), "56,568"),
    ],
)


@BOTH
def test_the_width_is_taken_exactly(make):
    power = 1 if make == Noise.gaussian else 2
    for given, exact in (("81/4", Fraction(81, 4)), ("20.1", Fraction(201, 10)), (3, Fraction(3))):
        assert make(given).square == exact**power
    assert make(0.1).square == Fraction(0.1) ** power != Fraction(1, 10) ** power


def test_the_table_is_made_for_exactly_the_planned_width():
    """60/7, which noise is accounted for with, is no floating-point number."""
    for law in (Noise(Fraction(60, 7)), Noise.laplace(Fraction(60, 7))):
        assert law.table()._ladder_of.args == (Fraction(60, 7),)


@BOTH
@pytest.mark.parametrize(
    "bad",
    [0, -1, "0", "-1/2", float("nan"), float("inf"), "x", "1/0", None, Fraction(1, 2**200), 2**101],
)
def test_widths_that_make_no_sense_are_refused(make, bad):
    with pytest.raises(PrivacyError, match="must be"):
        make(bad)


@BOTH
def test_draws_are_reproducible_from_a_seed_and_secure_otherwise(make):
    law = make(400)
    assert np.array_equal(law.sample(100, SeededSource(1)), law.sample(100, SeededSource(1)))
    assert not np.array_equal(law.sample(100), law.sample(100))
    assert law.sample(100).dtype == np.int64


@WIDEST
def test_the_widest_noise_can_be_drawn(widest, deviation, limit):
    draws = widest.check().sample(100_000, SeededSource(1))
    assert draws.std() == pytest.approx(deviation, rel=0.02)
    assert f"{int(deviation):,}" == limit


@WIDEST
@pytest.mark.parametrize("factor", [Fraction(10**9 + 1, 10**9), Fraction(4), Fraction(10**9999)])
def test_wider_noise_is_refused_and_the_message_says_how_wide_it_is(
    widest, deviation, limit, factor
):
    wide = Noise(widest.square * factor**2, widest.family)
    with pytest.raises(PrivacyError, match=f"at most {limit}; use a larger epsilon") as refused:
        wide.check()
    with pytest.raises(PrivacyError, match="at most"):
        wide.fill(np.zeros(1, np.int64), SeededSource(1).bits())
    if factor == 4:
        assert f"standard deviation of {int(4 * deviation):,}, but" in str(refused.value)


def test_laplace_noise_without_an_exact_scale_is_refused():
    with pytest.raises(PrivacyError, match="squared scale 2 has no exact scale"):
        Noise(Fraction(2), "laplace").check()


LAWS = [
    *(Noise.gaussian(sigma**2) for sigma in (0.1, 0.3, 0.51, 1.0, 1.5, 7.7, 19.9)),
    *(Noise.laplace(Fraction(scale)) for scale in ("1/3", "3/2", "7", "40")),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("missed", [0.3, 0.05, 0.015, 1e-6])
def test_the_half_width_is_the_least_that_noise_exceeds_so_seldom(law, missed):
    if law.is_laplace:
        weight = [math.exp(-x / law.scale) for x in range(3_000)]
    else:
        weight = [math.exp(-(x**2) / (2 * law.square)) for x in range(3_000)]
    whole, h = 2 * math.fsum(weight) - weight[0], law.half_width(missed)
    assert 2 * math.fsum(weight[h + 1 :]) <= missed * whole * (1 + 1e-6)
    assert h == 0 or 2 * math.fsum(weight[h:]) > missed * whole


@pytest.mark.parametrize("missed", [0.05, 1e-9])
def test_sums_and_integrals_agree_where_they_meet(missed):
    above, below = (Noise.gaussian(sigma**2).half_width(missed) for sigma in (20.001, 19.999))
    assert above - below in {0, 1}
