"""Checks that the installed build optimises as it should, in well under two seconds.

Compiled integer code can be wrong on one machine and right on another. So IntOpt is
run on a thousand vectors, of which many have ties, negative values or tight totals,
and compared with the slow, obvious twin of `reference`. The vectors are the same each time.
"""

from collections.abc import Callable, Iterator

import numpy as np

from inftda.checks import Check
from inftda.optimize.intopt import intopt_into
from inftda.optimize.reference import algorithm_3, shares
from inftda.optimize.selection import OK, TOO_LARGE, Vector

N_VECTORS = 1000

Solve = Callable[[Vector, int, np.uint64], tuple[int, Vector]]
IsRight = Callable[[list[int], int, list[int]], bool]


def self_check_optimizer() -> list[Check]:
    """Compare every optimiser with its reference on random vectors.

    Example:
        >>> all(check.ok for check in self_check_optimizer())
        True
    """
    return [
        _compare(
            "IntOpt, ascending", _intopt(is_descending=False), _is_intopt(is_descending=False)
        ),
        _compare("IntOpt, descending", _intopt(is_descending=True), _is_intopt(is_descending=True)),
        _refuses_overflow(),
    ]


def _compare(name: str, solve: Solve, is_right: IsRight) -> Check:
    for number, (vector, total) in enumerate(_vectors()):
        status, result = solve(vector, total, np.uint64(number))
        y = result.tolist()
        is_valid = status == OK and sum(y) == total and min(y) >= 0
        if not (is_valid and is_right(vector.tolist(), total, y)):
            return Check(name, ok=False, detail=f"wrong on vector {number} of {N_VECTORS}")
    return Check(name, ok=True, detail=f"{N_VECTORS} vectors as the reference")


def _vectors() -> Iterator[tuple[Vector, int]]:
    """Vectors as the mechanism makes them: mostly noise, a few large, some of them tied."""
    generator = np.random.default_rng(20)
    for _ in range(N_VECTORS):
        size = int(generator.integers(1, 20))
        noise = np.rint(generator.normal(0, generator.choice([0.5, 2, 20]), size))
        truth = np.where(generator.random(size) < 0.2, generator.integers(0, 60, size), 0)
        vector = noise.astype(np.int64) + truth
        slack = int(generator.integers(-10, 11))
        yield vector, int(max(0, generator.choice([0, 1, truth.sum() + slack, vector.sum()])))


def _intopt(*, is_descending: bool) -> Solve:
    def solve(vector: Vector, total: int, seed: np.uint64) -> tuple[int, Vector]:
        out = np.empty_like(vector)
        return intopt_into(vector, total, seed, is_descending, out), out

    return solve


def _is_intopt(*, is_descending: bool) -> IsRight:
    def is_right(x: list[int], total: int, y: list[int]) -> bool:
        expected = algorithm_3(x, total, is_descending=is_descending)
        return shares(x, y) == shares(x, expected)

    return is_right


def _refuses_overflow() -> Check:
    vector = np.full(3, 1 << 60, np.int64)
    statuses = [
        _intopt(is_descending=False)(vector, 1, np.uint64(0))[0],
        _intopt(is_descending=True)(vector, 1, np.uint64(0))[0],
    ]
    is_refused = all(status == TOO_LARGE for status in statuses)
    detail = "sums beyond 64 bits are refused" if is_refused else f"statuses {statuses}"
    return Check("overflow", ok=is_refused, detail=detail)
