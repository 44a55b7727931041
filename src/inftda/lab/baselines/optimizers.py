"""The optimisers of the baselines, for many parents at once.

`optimize_l2` and `optimize_linf` are exact solvers of our own for what the paper hands to
black boxes; `optimize_one_by_one` wraps the black boxes themselves.
"""

from collections.abc import Callable

from inftda.compiled import kernel
from inftda.lab.baselines.euclidean import euclidean_segment
from inftda.lab.baselines.linf import linf_segment
from inftda.optimize.segments import Optimizer, Seeds, Survivors, write_positive
from inftda.optimize.selection import Vector


@kernel
def optimize_l2(x: Vector, offsets: Vector, total: Vector, seed: Seeds, out: Survivors) -> int:
    """The nearest integers in Euclidean distance."""
    for i in range(total.size):
        if offsets[i + 1] > offsets[i]:
            status = euclidean_segment(x, offsets[i], offsets[i + 1], total[i], seed[i])
            if status != 0:
                return status
    write_positive(x, offsets, total, out)
    return 0


@kernel
def optimize_linf(x: Vector, offsets: Vector, total: Vector, seed: Seeds, out: Survivors) -> int:
    """Any of the nearest integers in Chebyshev distance, as a black box would give."""
    for i in range(total.size):
        if offsets[i + 1] > offsets[i]:
            status = linf_segment(x, offsets[i], offsets[i + 1], total[i], seed[i])
            if status != 0:
                return status
    write_positive(x, offsets, total, out)
    return 0


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
