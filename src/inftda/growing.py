"""Arrays that come in parts: joined as they come, so that no part is there twice."""

from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

#: One part in this many is spare room, so that arrays are seldom moved.
_ROOM: Final = 16


class Growing:
    """Whole numbers that more are added to, in as few bits as they need.

    They grow in place: the system moves large arrays without copying them, and parts that were
    kept until all are there would leave holes of their size in memory.

    Args:
        dtype: of the numbers, as long as all fit; 64-bit ones from then on.
    """

    def __init__(self, dtype: DTypeLike = np.int32) -> None:
        self._room: NDArray[Any] = np.empty(0, dtype)
        self._n = 0

    def add(self, part: NDArray[Any]) -> None:
        """Put a part at the end."""
        ends = np.iinfo(self._room.dtype)
        if part.min(initial=0) < ends.min or part.max(initial=0) > ends.max:
            self._room = self._room.astype(np.int64)
        n = self._n + len(part)
        if n > len(self._room):
            self._room.resize(n + n // _ROOM, refcheck=False)
        self._room[self._n : n] = part
        self._n = n

    def cut(self) -> NDArray[Any]:
        """All numbers, in no more room than they need; none are left here."""
        cut, self._room = self._room, self._room[:0].copy()
        cut.resize(self._n, refcheck=False)
        self._n = 0
        return cut
