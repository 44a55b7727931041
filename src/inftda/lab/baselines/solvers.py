"""The paper's black boxes: general solvers through cvxpy, for comparison only (section 5).

`solve_l2` minimises the Euclidean distance over the reals with Clarabel and rounds, taking
what is too much from small values first. `solve_linf` minimises the Chebyshev distance over
the integers with GLPK or HiGHS. Both are thousands of times slower than our own solvers,
break ties by position, and are held to the same postcondition: non-negative integers with
the exact sum, or an error. No release uses them unless asked to by name.

Needs the extra `experiments`; nothing of it is imported before a function is called.
"""

import importlib
import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from inftda.errors import MissingExtraError, OptimizeError
from inftda.lab.baselines.positives import write_positive
from inftda.optimize.inputs import as_total, as_vector, check_status
from inftda.optimize.segments import Optimizer, Seeds, Survivors
from inftda.optimize.selection import EMPTY, Vector

IntegerSolver = Literal["GLPK_MI", "HIGHS"]

_LARGEST = 1 << 50
"""Solvers work in double precision: beyond this their integers are not exact."""

#: An inaccurate real solution is rounded like any other; an integer one would be no optimum.
_ACCEPTED = {
    "CLARABEL": {"optimal", "optimal_inaccurate"},
    "GLPK_MI": {"optimal"},
    "HIGHS": {"optimal"},
}


def optimize_one_by_one(solve: Callable[[Vector, int], Vector]) -> Optimizer:
    """An optimiser that hands each vector to a black box."""

    def optimize(x: Vector, offsets: Vector, total: Vector, seed: Seeds, out: Survivors) -> int:
        del seed  # a black box breaks ties as it likes
        for low, high, amount in zip(offsets[:-1], offsets[1:], total, strict=True):
            if high > low:
                x[low:high] = solve(x[low:high], int(amount))
        write_positive(x, offsets, total, out)
        return 0

    return optimize


def solve_l2(x: ArrayLike, total: int, *, time_limit: float | None = None) -> Vector:
    """Real Euclidean projection by Clarabel, rounded to non-negative integers.

    Rounding to the nearest integers misses the total by a few units. Missing ones go to the
    largest values, superfluous ones are taken from the smallest positive values, one each.

    Args:
        x: integers, any sign.
        total: what the result sums to, at least 0.
        time_limit: seconds the solver may take, no limit if not given.

    Returns:
        An int64 array as long as x; near-optimal, not always optimal.

    Raises:
        MissingExtraError: if cvxpy or Clarabel is not installed.
        OptimizeError: if the arguments are not valid or the solver fails or needs too long.
    """
    vector, amount = _checked(x, total)
    if len(vector) == 0:
        return vector
    options = {} if time_limit is None else {"time_limit": float(time_limit)}
    relaxed = _minimise(vector, amount, 2, "CLARABEL", options)
    return _round_to_total(relaxed, amount)


def solve_linf(
    x: ArrayLike,
    total: int,
    *,
    solver: IntegerSolver = "GLPK_MI",
    time_limit: float | None = None,
) -> Vector:
    """Chebyshev-nearest non-negative integers by a mixed integer solver.

    Args:
        x: integers, any sign.
        total: what the result sums to, at least 0.
        solver: "GLPK_MI", as in the paper, or "HIGHS".
        time_limit: seconds the solver may take, no limit if not given. HiGHS looks at its
            clock between steps and may overrun a little.

    Returns:
        An int64 array as long as x, one of the optimal vectors.

    Raises:
        MissingExtraError: if cvxpy or the solver is not installed.
        OptimizeError: if the arguments are not valid or the solver fails or needs too long.
    """
    vector, amount = _checked(x, total)
    if solver not in {"GLPK_MI", "HIGHS"}:
        raise OptimizeError(f"solver must be 'GLPK_MI' or 'HIGHS', got {solver!r}")
    if len(vector) == 0:
        return vector
    options: dict[str, float] = {}
    if time_limit is not None and solver == "GLPK_MI":
        options = {"tm_lim": max(1, round(1000 * time_limit))}
    elif time_limit is not None:
        options = {"time_limit": float(time_limit)}
    solution = _minimise(vector, amount, "inf", solver, options)
    result: Vector = np.rint(solution).astype(np.int64)
    if result.min() < 0 or int(result.sum()) != amount:
        raise OptimizeError(
            f"{solver} must return non-negative integers that sum to total={amount}, "
            "got others; use our own solvers"
        )
    return result


def _checked(x: ArrayLike, total: int) -> tuple[Vector, int]:
    vector = as_vector(x)
    amount = as_total(total)
    if len(vector) == 0 and amount > 0:
        check_status(EMPTY, 0, amount)
    largest = max(int(vector.max(initial=0)), -int(vector.min(initial=0)), amount)
    if largest > _LARGEST:
        raise OptimizeError(
            "x and total must not exceed 2^50 in size, what solvers handle exactly; "
            "use our own solvers"
        )
    return vector, amount


def _minimise(
    vector: Vector, total: int, norm: int | str, solver: str, options: dict[str, float]
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Values of the solver's solution of: minimise the norm of y - x, y >= 0, sum y = total."""
    cvxpy = _import("cvxpy")
    if solver not in cvxpy.installed_solvers():
        raise _missing(solver)
    y = cvxpy.Variable(len(vector), integer=solver != "CLARABEL")
    distance = cvxpy.norm(y - vector, norm)
    problem = cvxpy.Problem(cvxpy.Minimize(distance), [cvxpy.sum(y) == total, y >= 0])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the status tells the same, and is looked at
            problem.solve(solver=solver, **options)
    except cvxpy.SolverError as error:
        raise _unsolved(solver, "error", options) from error
    if problem.status not in _ACCEPTED[solver] or y.value is None:
        raise _unsolved(solver, problem.status, options)
    return np.asarray(y.value, dtype=np.float64)


def _round_to_total(relaxed: np.ndarray[Any, np.dtype[np.float64]], total: int) -> Vector:
    """Nearest integers, made to fit: more to the largest, less from the smallest positive."""
    result: Vector = np.maximum(np.rint(relaxed), 0).astype(np.int64)
    while (excess := int(result.sum()) - total) != 0:
        by_size = np.argsort(result, kind="stable")
        if excess > 0:
            positive = by_size[result[by_size] > 0]
            result[positive[:excess]] -= 1
        else:
            result[by_size[::-1][:-excess]] += 1
    return result


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise _missing(name) from error


def _missing(name: str) -> MissingExtraError:
    return MissingExtraError(f"{name} is not installed; pip install 'inftda[experiments]'")


def _unsolved(solver: str, status: str, options: dict[str, float]) -> OptimizeError:
    limit = f" within {options}" if options else ""
    return OptimizeError(
        f"{solver} must find an optimum{limit}, got status {status!r}; "
        "allow more time or use our own solvers"
    )
