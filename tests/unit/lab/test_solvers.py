"""The paper's black boxes: optimal, or near it, and never a wrong sum."""

import importlib
import sys

import numpy as np
import pytest

from inftda.errors import MissingExtraError, OptimizeError
from inftda.lab.baselines import solvers
from inftda.lab.baselines.solvers import solve_l2, solve_linf
from optimize_vectors import chebyshev, sparse_vectors, squared
from slow_optimizers import chebyshev_optimum, euclidean_optimum

needs_cvxpy = pytest.mark.skipif(
    importlib.util.find_spec("cvxpy") is None, reason="needs the extra 'experiments'"
)


@needs_cvxpy
@pytest.mark.parametrize("solver", ["GLPK_MI", "HIGHS"])
def test_integer_solvers_find_the_least_chebyshev_distance(solver):
    for x, total in sparse_vectors(4, 15, 10, seed=15):
        y = solve_linf(x, total, solver=solver, time_limit=20)
        assert y.dtype == np.int64
        assert y.sum() == total
        assert y.min() >= 0
        assert chebyshev(x, y) == chebyshev_optimum(x, total)


@needs_cvxpy
def test_the_rounded_projection_is_near_the_optimum():
    for x, asked in sparse_vectors(5, 15, 10, seed=16):
        total = min(asked, 2000)
        y = solve_l2(x, total, time_limit=20)
        assert y.dtype == np.int64
        assert y.sum() == total
        assert y.min() >= 0
        assert squared(x, y) <= euclidean_optimum(x, total) + 2 * len(x)


@needs_cvxpy
@pytest.mark.parametrize("solve", [solve_l2, solve_linf])
def test_edge_cases(solve):
    assert solve([], 0).tolist() == []
    assert solve([-3], 4).tolist() == [4]
    assert solve([3, -2, 5], 0).tolist() == [0, 0, 0]
    with pytest.raises(OptimizeError, match="got none"):
        solve([], 1)
    with pytest.raises(OptimizeError, match="total must be in"):
        solve([1], -1)
    with pytest.raises(OptimizeError, match="2\\^50"):
        solve([1 << 51, 2], 1)


@needs_cvxpy
@pytest.mark.parametrize(
    "solve",
    [
        lambda x: solve_l2(x, 999, time_limit=1e-6),
        lambda x: solve_linf(x, 999, solver="HIGHS", time_limit=1e-6),
        lambda x: solve_linf(x, 999, solver="GLPK_MI", time_limit=1e-6),
    ],
)
def test_a_solver_that_takes_too_long_is_an_error(solve):
    with pytest.raises(OptimizeError, match="must find an optimum within"):
        solve(np.arange(2000) % 97)


def test_an_unknown_solver_is_refused():
    with pytest.raises(OptimizeError, match="'GLPK_MI' or 'HIGHS', got 'CPLEX'"):
        solve_linf([1], 1, solver="CPLEX")


def test_the_extra_is_named_where_cvxpy_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(MissingExtraError, match=r"cvxpy .*inftda\[experiments\]"):
        solve_l2([1], 1)


@needs_cvxpy
def test_the_extra_is_named_where_the_solver_is_missing(monkeypatch):
    monkeypatch.setattr("cvxpy.installed_solvers", list)
    with pytest.raises(MissingExtraError, match=r"GLPK_MI .*inftda\[experiments\]"):
        solve_linf([1], 1)


def test_a_solution_with_a_wrong_sum_is_an_error(monkeypatch):
    monkeypatch.setattr(solvers, "_minimise", lambda *_: np.array([1.0, 2.0]))
    with pytest.raises(OptimizeError, match="must return non-negative integers"):
        solve_linf([1, 2], 5)


@pytest.mark.parametrize(
    ("relaxed", "total", "expected"),
    [
        ([0.6, 0.6, 4.8], 6, [0, 1, 5]),
        ([0.4, 1.4, 5.4], 7, [0, 1, 6]),
        ([0.4, 1.4, 5.4], 8, [0, 2, 6]),
        ([1.0, 2.0, 3.0], 2, [0, 0, 2]),
        ([0.0, 0.0], 5, [2, 3]),
        ([-0.7, 3.0], 3, [0, 3]),
    ],
)
def test_rounding_takes_from_small_values_and_gives_to_large_ones(relaxed, total, expected):
    assert solvers._round_to_total(np.array(relaxed), total).tolist() == expected
