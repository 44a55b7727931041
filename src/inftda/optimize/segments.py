"""The optimisers for many vectors at once, laid one behind the other in one buffer.

This is how the top-down loop uses them: one call for all parents of a block, in place and
without the GIL. Each optimiser is compiled only when it is used.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from inftda.compiled import kernel
from inftda.errors import OptimizeError
from inftda.optimize.chebyshev import chebyshev_segment
from inftda.optimize.euclidean import euclidean_segment
from inftda.optimize.linf import linf_segment

Vector = NDArray[np.int64]
Seeds = NDArray[np.uint64]


class Optimizer(Protocol):
    """From noisy vectors to non-negative integers with given sums, in place."""

    def __call__(self, x: Vector, start: Vector, total: Vector, seed: Seeds) -> int:
        """Optimise x[start[i]:start[i+1]] to sum to total[i]; empty stretches are left out.

        Returns 0, or another number if a vector could not be optimised.
        """


def check_status(status: int) -> None:
    """Raise if an optimiser gave up.

    Raises:
        OptimizeError: a count is so large that sums could overflow.
    """
    if status != 0:
        raise OptimizeError(
            "a noisy count is too large to be summed up exactly; "
            "use a larger epsilon or split the table into parts"
        )


@kernel
def optimize_intopt(x: Vector, start: Vector, total: Vector, seed: Seeds) -> int:
    """IntOpt, small elements give way first."""
    for i in range(total.size):
        if start[i + 1] > start[i]:
            status = chebyshev_segment(x, start[i], start[i + 1], total[i], seed[i], False)
            if status != 0:
                return status
    return 0


@kernel
def optimize_intopt_descending(x: Vector, start: Vector, total: Vector, seed: Seeds) -> int:
    """IntOpt, large elements give way first."""
    for i in range(total.size):
        if start[i + 1] > start[i]:
            status = chebyshev_segment(x, start[i], start[i + 1], total[i], seed[i], True)
            if status != 0:
                return status
    return 0


@kernel
def optimize_l2(x: Vector, start: Vector, total: Vector, seed: Seeds) -> int:
    """The nearest integers in Euclidean distance."""
    for i in range(total.size):
        if start[i + 1] > start[i]:
            status = euclidean_segment(x, start[i], start[i + 1], total[i], seed[i])
            if status != 0:
                return status
    return 0


@kernel
def optimize_linf(x: Vector, start: Vector, total: Vector, seed: Seeds) -> int:
    """Any of the nearest integers in Chebyshev distance, as a black box would give."""
    for i in range(total.size):
        if start[i + 1] > start[i]:
            status = linf_segment(x, start[i], start[i + 1], total[i], seed[i])
            if status != 0:
                return status
    return 0


def optimize_one_by_one(solve: Callable[[Vector, int], Vector]) -> Optimizer:
    """An optimiser that hands each vector to a black box."""

    def optimize(x: Vector, start: Vector, total: Vector, seed: Seeds) -> int:
        del seed  # a black box breaks ties as it likes
        for low, high, amount in zip(start[:-1], start[1:], total, strict=True):
            if high > low:
                x[low:high] = solve(x[low:high], int(amount))
        return 0

    return optimize
