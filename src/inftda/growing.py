"""Arrays that come in parts: joined as they come, so that no part is there twice."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class Growing:
    """Whole numbers that more are added to, in as few bits as they need.

    They grow in place: the system moves large arrays without copying them, and parts that were
    kept until all are there would leave holes of their size in memory.

    Args:
        dtype: of the numbers, as long as all fit; 64-bit ones from then on.
    """

    def __init__(self, dtype: DTypeLike = np.int32) -> None:
        self.values: NDArray[Any] = np.empty(0, dtype)

    def add(self, part: NDArray[Any]) -> None:
        """Put a part at the end; nobody may have kept `values` from before."""
        n, ends = len(self.values), np.iinfo(self.values.dtype)
        if part.min(initial=0) < ends.min or part.max(initial=0) > ends.max:
            self.values = self.values.astype(np.int64)
        self.values.resize(n + len(part), refcheck=False)
        self.values[n:] = part
