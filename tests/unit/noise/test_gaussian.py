"""What a user sees of the two samplers; their distributions are tested elsewhere."""

from fractions import Fraction

import numpy as np
import pytest

from inftda.errors import PrivacyError
from inftda.noise.bits import SeededSource
from inftda.noise.gaussian import DiscreteGaussian
from inftda.noise.laplace import DiscreteLaplace

BOTH = pytest.mark.parametrize("make", [DiscreteGaussian, DiscreteLaplace])


@BOTH
def test_the_scale_is_taken_exactly(make):
    name = "sigma2" if make is DiscreteGaussian else "scale"
    for given, exact in (("81/4", Fraction(81, 4)), ("20.1", Fraction(201, 10)), (3, Fraction(3))):
        assert getattr(make(given), name) == exact
    assert getattr(make(0.1), name) == Fraction(0.1) != Fraction(1, 10)


@BOTH
@pytest.mark.parametrize(
    "bad",
    [0, -1, "0", "-1/2", float("nan"), float("inf"), "x", "1/0", None, Fraction(1, 2**200), 2**101],
)
def test_scales_that_make_no_sense_are_refused(make, bad):
    with pytest.raises(PrivacyError, match="must be"):
        make(bad)


@BOTH
def test_draws_are_reproducible_from_a_seed_and_secure_otherwise(make):
    sampler = make(400)
    assert np.array_equal(
        sampler.sample(100, SeededSource(1)), sampler.sample(100, SeededSource(1))
    )
    assert not np.array_equal(sampler.sample(100), sampler.sample(100))
    assert sampler.sample(100).dtype == np.int64
