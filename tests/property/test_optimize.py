"""Properties of IntOpt on vectors that hypothesis thinks up."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from inftda.errors import OptimizeError
from inftda.mechanism.intopt import LARGEST, intopt
from inftda.mechanism.reference import algorithm_3, shares
from slow_optimizers import chebyshev_optimum

pytestmark = pytest.mark.slow

values = st.one_of(st.integers(-5, 5), st.integers(-1000, 1000), st.integers(-LARGEST, LARGEST))
vectors = st.lists(values, min_size=1, max_size=20)
totals = st.one_of(st.integers(0, 20), st.integers(0, LARGEST))
without_deadline = settings(deadline=None)  # the first example may have to compile


@without_deadline
@given(x=vectors, total=totals, seed=st.binary(min_size=16, max_size=16))
def test_it_is_the_algorithm_of_the_paper_with_the_exact_sum(x, total, seed):
    y = intopt(x, total, seed=seed).tolist()
    assert sum(y) == total
    assert min(y) >= 0
    assert max(abs(a - b) for a, b in zip(x, y, strict=True)) == chebyshev_optimum(x, total)
    if max(map(abs, [*x, total])) < 10**6:
        assert shares(x, y) == shares(x, algorithm_3(x, total))


@without_deadline
@example(x=[0, -(1 << 63)], total=1)
@given(
    x=st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=1, max_size=9),
    total=st.integers(0, (1 << 63) - 1),
)
def test_any_64_bit_input_gives_the_exact_sum_or_is_refused(x, total):
    try:
        y = intopt(np.array(x, np.int64), total).tolist()
    except OptimizeError:
        assert max(map(abs, [*x, total])) > LARGEST
    else:
        assert sum(y) == total
        assert min(y) >= 0
