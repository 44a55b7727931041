"""Arrays that come in parts: joined as they come, so that no part is there twice."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class Growing:
    """A one-dimensional array that more is added to.

    It grows in place: the system moves large arrays without copying them, and parts that were
    kept until all are there would leave holes of their size in memory.

    Args:
        dtype: of its numbers.
    """

    def __init__(self, dtype: DTypeLike) -> None:
        self.values: NDArray[Any] = np.empty(0, dtype)

    def add(self, part: NDArray[Any]) -> None:
        """Put a part at the end; nobody may have kept `values` from before."""
        n = len(self.values)
        self.values.resize(n + len(part), refcheck=False)
        self.values[n:] = part
