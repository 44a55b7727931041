"""The optimisers for many vectors at once, laid one behind the other in one buffer.

This is how the top-down loop uses them: one call for all parents of a block, without the
GIL. Nearly all results are zero, so only the positive ones are written down. Each optimiser
is compiled only when it is used.
"""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from inftda.compiled import inlined_kernel, kernel
from inftda.errors import OptimizeError
from inftda.optimize.chebyshev import chebyshev_survivors
from inftda.optimize.selection import GATHER_ROOM, Places, Vector, append

Seeds = NDArray[np.uint64]


class Survivors(NamedTuple):
    """The positive elements of many vectors.

    Attributes:
        place: int32, place of each in its vector, ascending; twice as long as `value`, for
            notes behind it.
        value: int64, its value. Room for all elements of all vectors, one more for every
            vector, and GATHER_ROOM more.
        kept: int64[vectors + 1], slices of these two.
    """

    index: Places
    value: Vector
    offsets: Vector

    @classmethod
    def of(cls, room: int) -> "Survivors":
        """Arrays for as many elements and vectors, taken together."""
        return cls(
            np.empty(2 * (room + GATHER_ROOM), np.int32),
            np.empty(room + GATHER_ROOM, np.int64),
            np.empty(room + 1, np.int64),
        )

    def for_vectors(self, n_vectors: int) -> "Survivors":
        """The same arrays for so many vectors."""
        return self._replace(offsets=self.offsets[: n_vectors + 1])


class Optimizer(Protocol):
    """From noisy vectors to non-negative integers with given sums."""

    def __call__(self, x: Vector, start: Vector, total: Vector, seed: Seeds, out: Survivors) -> int:
        """Optimise every vector and write down what is positive.

        Args:
            x: int64, the noisy vectors; overwritten.
            start: int64[vectors + 1], slices of x. An empty one stands for a single element
                that no noise was drawn for: it gets the whole sum.
            total: int64[vectors], the sums, positive.
            seed: uint64[vectors], a fresh uniform word each.
            out: overwritten.

        Returns:
            0, or another number if a vector could not be optimised.
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
def optimize_intopt(x: Vector, start: Vector, total: Vector, seed: Seeds, out: Survivors) -> int:
    """IntOpt, small elements give way first."""
    return _intopt(x, start, total, seed, out, False)


@kernel
def optimize_intopt_descending(
    x: Vector, start: Vector, total: Vector, seed: Seeds, out: Survivors
) -> int:
    """IntOpt, large elements give way first."""
    return _intopt(x, start, total, seed, out, True)


@inlined_kernel
def _intopt(  # noqa: PLR0913, PLR0917 - compiled code takes plain arrays
    x: Vector,
    start: Vector,
    total: Vector,
    seed: Seeds,
    out: Survivors,
    descending: bool,  # noqa: FBT001 - compiled code has no keyword-only arguments
) -> int:
    place, value, kept = out
    end = 0
    kept[0] = 0
    for i in range(total.size):
        low, high = start[i], start[i + 1]
        if low == high:
            end = append(place, value, end, 0, total[i])
        else:
            end = chebyshev_survivors(
                x, low, high, total[i], seed[i], descending, place, value, end
            )
        if end < 0:
            return -end
        kept[i + 1] = end
    return 0
