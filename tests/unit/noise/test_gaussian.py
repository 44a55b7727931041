"""What a user sees of the two samplers; their distributions are tested elsewhere."""

from fractions import Fraction

import numpy as np
import pytest

from inftda.errors import PrivacyError
from inftda.noise.bits import SeededSource
from inftda.noise.blocks import Blocks
from inftda.noise.gaussian import DiscreteGaussian
from inftda.noise.laplace import DiscreteLaplace
from inftda.noise.table import Table

BOTH = pytest.mark.parametrize("make", [DiscreteGaussian, DiscreteLaplace])


@BOTH
def test_the_scale_is_taken_exactly(make):
    name = "sigma2" if make is DiscreteGaussian else "scale"
    for given, exact in (("81/4", Fraction(81, 4)), ("20.1", Fraction(201, 10)), (3, Fraction(3))):
        assert getattr(make(given), name) == exact
    assert getattr(make(0.1), name) == Fraction(0.1) != Fraction(1, 10)


@BOTH
@pytest.mark.parametrize(
    "bad", [0, -1, "0", "-1/2", float("nan"), float("inf"), "x", "1/0", None, Fraction(1, 2**200)]
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


@BOTH
def test_a_table_is_built_once_for_equal_scales(make):
    assert make("1/2")._method is make(0.5)._method


@pytest.mark.parametrize(
    ("sampler", "method", "word_bits"),
    [
        (DiscreteGaussian("1/10000"), Table, 32),
        (DiscreteGaussian(1024**2), Table, 32),
        (DiscreteGaussian(1024**2 + 1), Table, 64),
        (DiscreteGaussian(10**8), Table, 64),
        (DiscreteGaussian(10**8 + 1), Blocks, 32),
        (DiscreteLaplace(512), Table, 32),
        (DiscreteLaplace(513), Table, 64),
        (DiscreteLaplace(2001), Blocks, 32),
    ],
)
def test_the_method_and_its_random_bits_follow_from_the_scale(sampler, method, word_bits):
    assert isinstance(sampler._method, method)
    table = sampler._method if method is Table else sampler._method.table
    assert table.word_bits == word_bits
