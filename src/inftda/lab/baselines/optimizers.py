"""The optimisers of the baselines, for many parents at once.

`optimize_l2` and `optimize_linf` are exact solvers of our own for what the paper hands to
black boxes; `optimize_one_by_one` wraps the black boxes themselves.
"""

from collections.abc import Callable

from inftda.compiled import kernel
from inftda.lab.baselines.euclidean import euclidean_segment
from inftda.lab.baselines.linf import linf_segment
from inftda.optimize.segments import Optimizer, Seeds, Survivors
from inftda.optimize.selection import Vector, append, gather


@kernel
def optimize_l2(x: Vector, start: Vector, total: Vector, seed: Seeds, out: Survivors) -> int:
    """The nearest integers in Euclidean distance."""
    for i in range(total.size):
        if start[i + 1] > start[i]:
            status = euclidean_segment(x, start[i], start[i + 1], total[i], seed[i])
            if status != 0:
                return status
    _keep_positive(x, start, total, out)
    return 0


@kernel
def optimize_linf(x: Vector, start: Vector, total: Vector, seed: Seeds, out: Survivors) -> int:
    """Any of the nearest integers in Chebyshev distance, as a black box would give."""
    for i in range(total.size):
        if start[i + 1] > start[i]:
            status = linf_segment(x, start[i], start[i + 1], total[i], seed[i])
            if status != 0:
                return status
    _keep_positive(x, start, total, out)
    return 0


def optimize_one_by_one(solve: Callable[[Vector, int], Vector]) -> Optimizer:
    """An optimiser that hands each vector to a black box."""

    def optimize(x: Vector, start: Vector, total: Vector, seed: Seeds, out: Survivors) -> int:
        del seed  # a black box breaks ties as it likes
        for low, high, amount in zip(start[:-1], start[1:], total, strict=True):
            if high > low:
                x[low:high] = solve(x[low:high], int(amount))
        _keep_positive(x, start, total, out)
        return 0

    return optimize


@kernel
def _keep_positive(x: Vector, start: Vector, total: Vector, out: Survivors) -> None:
    """Write down what is positive in vectors that are optimised already."""
    place, value, kept = out
    end = 0
    kept[0] = 0
    for i in range(total.size):
        low, high = start[i], start[i + 1]
        if low == high:
            end = append(place, value, end, 0, total[i])
        else:
            end = gather(x, low, high, 0, place, value, end)
        kept[i + 1] = end
