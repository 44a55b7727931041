"""Every optimiser on every shape of vector, against its slow twin and an exhaustive search."""

import numpy as np
import pytest

from inftda.errors import OptimizeError
from inftda.noise.entropy import SeededSource
from inftda.optimize import intopt, selection
from inftda.optimize.selection import EMPTY, LIMIT, NEGATIVE, OK, TOO_LARGE
from optimize_vectors import chebyshev, sparse_vectors, vectors
from optimizers import OPTIMIZERS, SHAPES, SMALL_SHAPES, is_exhaustively_right
from slow_optimizers import chebyshev_optimum

each_optimizer = pytest.mark.parametrize("name", OPTIMIZERS)


@each_optimizer
@pytest.mark.parametrize("shape", SHAPES)
def test_results_are_those_of_the_reference(name, shape):
    optimizer = OPTIMIZERS[name]
    for number, (x, total) in enumerate(SHAPES[shape]()):
        status, y = optimizer.run(x, total, number)
        assert status == OK
        assert sum(y.tolist()) == total
        assert y.min() >= 0
        assert optimizer.is_right(x.tolist(), total, y.tolist()), (number, x, total)


@each_optimizer
@pytest.mark.parametrize("shape", SMALL_SHAPES)
def test_results_are_among_those_of_the_exhaustive_search(name, shape):
    optimizer = OPTIMIZERS[name]
    for number, (x, total) in enumerate(SMALL_SHAPES[shape]()):
        _, y = optimizer.run(x, total, number)
        assert is_exhaustively_right(x, total, y.tolist()), (number, x, total)


@each_optimizer
def test_the_reference_refuses_what_is_not_optimal(name):
    """One unit taken from the largest and given to the smallest element is seen."""
    optimizer, x = OPTIMIZERS[name], np.array([9, 0, 1, -2])
    _, y = optimizer.run(x, 8, 0)
    assert optimizer.is_right(x.tolist(), 8, y.tolist())
    y += [-1, 0, 0, 1]
    assert not optimizer.is_right(x.tolist(), 8, y.tolist())


@pytest.mark.parametrize("name", ["intopt", "intopt-descending"])
@pytest.mark.parametrize(("size", "sigma"), [(3000, 20), (20_000, 300)])
def test_very_long_vectors_get_the_exact_sum_at_the_least_distance(name, size, sigma):
    for number, (x, total) in enumerate(sparse_vectors(3, size, sigma, seed=5)):
        status, y = OPTIMIZERS[name].run(x, total, number)
        assert status == OK
        assert y.sum() == total
        assert y.min() >= 0
        assert chebyshev(x, y) == chebyshev_optimum(x, total)


@each_optimizer
def test_kernels_work_in_place_and_leave_other_input_alone(name):
    optimizer = OPTIMIZERS[name]
    for number, (x, total) in enumerate(sparse_vectors(50, 20, 5, seed=6)):
        before = x.copy()
        _, y = optimizer.run(x, total, number)
        assert (x == before).all()
        assert optimizer.run_into(x, total, number, x) == OK
        assert (x == y).all()


@each_optimizer
@pytest.mark.parametrize(
    ("x", "total", "status"),
    [
        ([], 0, OK),
        ([], 1, EMPTY),
        ([1, 2], -1, NEGATIVE),
        ([], -1, NEGATIVE),
        ([1 << 60, 1 << 60, 1 << 60], 5, TOO_LARGE),
        ([-(1 << 60), 1 << 60, 3], 5, TOO_LARGE),
        ([(1 << 63) - 1, 1], 5, TOO_LARGE),
        ([-(1 << 63), 1], 5, TOO_LARGE),
        ([-(1 << 63), 1, 2], 5, TOO_LARGE),
        ([LIMIT // 3, 5, 5], 5, OK),
        ([LIMIT // 3 + 1, 5, 5], 5, TOO_LARGE),
        ([-(LIMIT // 3) - 1, 5, 5], 5, TOO_LARGE),
        ([1, 2], LIMIT, OK),
        ([1, 2], LIMIT + 1, TOO_LARGE),
        ([1, 2, 3], (1 << 63) - 1, TOO_LARGE),
        ([(1 << 63) - 1], 7, OK),
        ([(1 << 63) - 1] * 4, 0, OK),
    ],
)
def test_what_cannot_be_summed_is_refused_by_status(name, x, total, status):
    assert OPTIMIZERS[name].run(np.array(x, np.int64), total, 0)[0] == status


@each_optimizer
def test_interpreted_and_compiled_kernels_give_the_same(name, monkeypatch):
    """Kernels run as plain Python, so that every line is seen and none wraps silently."""
    optimizer = OPTIMIZERS[name]
    problems = [problem for size in (1, 2, 3, 6) for problem in vectors(40, size, seed=12)]
    problems += [problem for size in (11, 40) for problem in sparse_vectors(30, size, 2, seed=13)]
    problems += [(np.array(x, np.int64), 3) for x in ([], [1 << 60] * 3, [7, 7, 7, 7, 7])]
    problems += [(np.array([1, 2], np.int64), -1)]
    compiled = [optimizer.run(*problem, number) for number, problem in enumerate(problems)]
    for module in (selection, intopt):
        for attribute, function in list(vars(module).items()):
            if hasattr(function, "py_func"):
                monkeypatch.setattr(module, attribute, function.py_func)
    for number, (x, total) in enumerate(problems):
        status, y = optimizer.run(x, total, number)
        assert status == compiled[number][0]
        if status == OK:
            assert (y == compiled[number][1]).all()


# The functions for use from Python

FUNCTIONS = {
    "intopt": intopt.intopt,
    "intopt-descending": lambda *x, **options: intopt.intopt(*x, order="descending", **options),
}
each_function = pytest.mark.parametrize("solve", FUNCTIONS.values(), ids=FUNCTIONS)


@each_function
def test_functions_copy_and_repeat_themselves_for_the_same_seed_only(solve):
    x = np.full(30, 5)
    first = solve(x, 100, source=SeededSource(1))
    assert (x == 5).all()
    assert first.sum() == 100
    assert (first == solve(x, 100, source=SeededSource(1))).all()
    assert (first != solve(x, 100, source=SeededSource(2))).any()


@each_function
def test_functions_use_secure_bits_unless_a_source_is_given(solve):
    assert len({tuple(solve([5] * 30, 100)) for _ in range(5)}) == 5


@each_function
@pytest.mark.parametrize(
    ("x", "total", "message"),
    [([1 << 60] * 3, 5, "2\\^61"), ([], 5, "got none"), ([1, 2], -5, "total must be in")],
)
def test_functions_raise_a_clear_error(solve, x, total, message):
    with pytest.raises(OptimizeError, match=message):
        solve(x, total)
