"""The optimisers for many vectors at once, laid one behind the other in one buffer.

This is how the top-down loop uses them: one call for all parents of a block, in place and
without the GIL. Each optimiser is compiled only when it is used.
"""

from typing import Protocol

import numpy as np
from numba import njit
from numpy.typing import NDArray

from inftda.errors import OptimizeError
from inftda.optimize.chebyshev import chebyshev_segment


class Optimizer(Protocol):
    """From noisy vectors to non-negative integers with given sums, in place."""

    def __call__(
        self,
        x: NDArray[np.int64],
        start: NDArray[np.int64],
        total: NDArray[np.int64],
        seed: NDArray[np.uint64],
    ) -> int:
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


@njit(cache=True, nogil=True)
def optimize_intopt(x, start, total, seed):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN201 - compiled; see Optimizer
    """IntOpt, small elements give way first."""
    for i in range(total.size):
        if start[i + 1] > start[i]:
            status = chebyshev_segment(x, start[i], start[i + 1], total[i], seed[i], False)
            if status != 0:
                return status
    return 0


@njit(cache=True, nogil=True)
def optimize_intopt_descending(x, start, total, seed):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN201 - compiled; see Optimizer
    """IntOpt, large elements give way first."""
    for i in range(total.size):
        if start[i + 1] > start[i]:
            status = chebyshev_segment(x, start[i], start[i + 1], total[i], seed[i], True)
            if status != 0:
                return status
    return 0
