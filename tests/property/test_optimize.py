"""Properties every optimiser has, on vectors hypothesis thinks up."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inftda.optimize.intopt import intopt_into
from inftda.optimize.reference import algorithm_3, shares
from inftda.optimize.selection import LIMIT, OK, TOO_LARGE
from slow_optimizers import chebyshev_optimum

SOLVERS = {
    "ascending": lambda x, total, seed, out: intopt_into(x, total, seed, False, out),
    "descending": lambda x, total, seed, out: intopt_into(x, total, seed, True, out),
}

values = st.one_of(
    st.integers(-5, 5),
    st.integers(-1000, 1000),
    st.integers(-(1 << 40), 1 << 40),
    st.sampled_from([1 << 56, -(1 << 56), (1 << 56) - 1]),
)
vectors = st.lists(values, min_size=1, max_size=20)
totals = st.one_of(st.integers(0, 20), st.integers(0, 1 << 42), st.integers(0, LIMIT))
seeds = st.integers(0, (1 << 64) - 1)
without_deadline = settings(deadline=None)  # the first example may have to compile


def solve(name, x, total, seed):
    x = np.array(x, np.int64)
    out = np.empty_like(x)
    with np.errstate(over="ignore"):  # words wrap where kernels run interpreted
        status = SOLVERS[name](x, total, np.uint64(seed), out)
    return status, out.tolist()


@pytest.mark.parametrize("name", SOLVERS)
@without_deadline
@given(x=vectors, total=totals, seed=seeds)
def test_the_sum_is_exact_and_nothing_is_negative(name, x, total, seed):
    status, y = solve(name, x, total, seed)
    assert status == OK
    assert sum(y) == total
    assert min(y) >= 0


@pytest.mark.parametrize("name", SOLVERS)
@without_deadline
@given(
    x=st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=1, max_size=9),
    total=st.integers(0, (1 << 63) - 1),
    seed=seeds,
)
def test_any_64_bit_input_gives_the_exact_sum_or_is_refused(name, x, total, seed):
    status, y = solve(name, x, total, seed)
    assert status in {OK, TOO_LARGE}
    if status == OK:
        assert sum(y) == total
        assert min(y) >= 0


@pytest.mark.parametrize("name", ["ascending", "descending"])
@without_deadline
@given(x=vectors, total=totals, seed=seeds)
def test_intopt_is_algorithm_3_up_to_ties(name, x, total, seed):
    _, y = solve(name, x, total, seed)
    expected = algorithm_3(x, total, is_descending=name == "descending")
    assert shares(x, y) == shares(x, expected)


@pytest.mark.parametrize("name", SOLVERS)
@without_deadline
@given(x=vectors, total=totals, seed=seeds)
def test_the_chebyshev_distance_is_the_least(name, x, total, seed):
    _, y = solve(name, x, total, seed)
    assert max(abs(a - b) for a, b in zip(x, y, strict=True)) == chebyshev_optimum(x, total)


@pytest.mark.parametrize("name", SOLVERS)
@without_deadline
@given(x=vectors, total=totals, seed=seeds, data=st.data())
def test_a_permutation_of_the_input_permutes_the_result_up_to_ties(name, x, total, seed, data):
    order = data.draw(st.permutations(range(len(x))))
    permuted = [x[i] for i in order]
    _, y = solve(name, x, total, seed)
    _, z = solve(name, permuted, total, seed ^ 1)
    assert shares(x, y) == shares(permuted, z)


@without_deadline
@given(x=vectors, total=totals, seed=seeds)
def test_a_larger_element_gets_no_less_than_a_smaller_one(x, total, seed):
    _, y = solve("ascending", x, total, seed)
    by_value = sorted(zip(x, y, strict=True))
    for (a, got), (b, got_next) in pairwise(by_value):
        assert a == b or got <= got_next


@pytest.mark.parametrize("name", SOLVERS)
@without_deadline
@given(x=st.lists(st.integers(0, 1 << 30), min_size=1, max_size=14), seed=seeds)
def test_a_vector_that_already_fits_is_left_alone(name, x, seed):
    assert solve(name, x, sum(x), seed) == (OK, x)


@pytest.mark.parametrize("name", SOLVERS)
@settings(max_examples=30, deadline=None)
@given(seed=seeds, size=st.integers(1, 300), sigma=st.sampled_from([1, 20, 300]))
def test_long_vectors_work_in_place_as_out_of_place(name, seed, size, sigma):
    generator = np.random.default_rng(seed)
    x = np.rint(generator.normal(0, sigma, size)).astype(np.int64)
    total = int(generator.integers(0, 10 * sigma))
    _, y = solve(name, x, total, seed)
    with np.errstate(over="ignore"):
        assert SOLVERS[name](x, total, np.uint64(seed), x) == OK
    assert x.tolist() == y
