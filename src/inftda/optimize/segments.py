"""The optimisers for many vectors at once, one after the other in one buffer.

This is how the top-down loop uses them: one call for all parents of an item, without the
GIL. Nearly all results are zero, so only the positive ones are written. Each optimiser is
compiled only when it is used.
"""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from inftda.errors import OptimizeError
from inftda.kernels import inlined_kernel, kernel
from inftda.optimize.intopt import find_positive
from inftda.optimize.selection import Index, Vector

Seeds = NDArray[np.uint64]


class Survivors(NamedTuple):
    """The positive elements of many vectors.

    Attributes:
        index: int32, index of each in its vector, ascending.
        value: int64, its value.
        offsets: int64[vectors + 1], slices of these two.
    """

    index: Index  # type: ignore[assignment] # hides tuple.index, which nobody needs here
    value: Vector
    offsets: Vector

    @classmethod
    def of(cls, room: int) -> "Survivors":
        """Arrays for `room` elements and vectors in total."""
        return cls(np.empty(room, np.int32), np.empty(room, np.int64), np.empty(room + 1, np.int64))

    def for_vectors(self, n_vectors: int) -> "Survivors":
        """The same arrays for this number of vectors."""
        return self._replace(offsets=self.offsets[: n_vectors + 1])


class Optimizer(Protocol):
    """From noisy vectors to non-negative integers with given sums."""

    def __call__(
        self, x: Vector, offsets: Vector, total: Vector, seed: Seeds, out: Survivors
    ) -> int:
        """Optimise every vector and write its positive elements.

        Args:
            x: int64, the noisy vectors, one after the other; overwritten.
            offsets: int64[vectors + 1], slices of x. An empty one means a single element
                that no noise was drawn for: it gets the whole sum.
            total: int64[vectors], the sums, positive.
            seed: uint64[vectors], a fresh uniform word each.
            out: overwritten.

        Returns:
            0, or another number if a vector could not be optimised.
        """


def check_status(status: int) -> None:
    """Raise if an optimiser failed.

    Raises:
        OptimizeError: a count is so large that sums could overflow.
    """
    if status != 0:
        raise OptimizeError(
            "a noisy count is too large to be summed up exactly; "
            "use a larger epsilon or split the table into parts"
        )


@kernel
def optimize_intopt(x: Vector, offsets: Vector, total: Vector, seed: Seeds, out: Survivors) -> int:
    """IntOpt, small elements are lowered first."""
    return optimize_in_order(x, offsets, total, seed, out, False)


@inlined_kernel
def optimize_in_order(  # noqa: PLR0913, PLR0917 - compiled code takes plain arrays
    x: Vector,
    offsets: Vector,
    total: Vector,
    seed: Seeds,
    out: Survivors,
    descending: bool,  # noqa: FBT001 - compiled code has no keyword-only arguments
) -> int:
    """IntOpt, small or large elements are lowered first."""
    out.offsets[0] = end = 0
    for i in range(total.size):
        vector, index, value = x[offsets[i] : offsets[i + 1]], out.index[end:], out.value[end:]
        if vector.size == 0:
            n = write_only_child(total[i], index, value)
        else:
            n = find_positive(vector, total[i], seed[i], descending, index, value)
        if n < 0:
            return -n
        end += n
        out.offsets[i + 1] = end
    return 0


@inlined_kernel
def write_only_child(total: int, index: Index, value: Vector) -> int:
    """Give a single element the whole sum; return the number of positive elements."""
    index[0], value[0] = 0, total
    return 1 if total > 0 else 0
