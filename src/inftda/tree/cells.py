"""Cells: areas on each axis and a whole number, from counted leaves to written flows."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: int32 area numbers, one array for each axis.
Areas = tuple[NDArray[np.int32], ...]
Ints = NDArray[np.int64]


class Cells(NamedTuple):
    """Cells of one marginal, each with a whole number.

    Cells may be confidential, so their repr shows neither numbers nor how many there are.

    Attributes:
        areas: int32 area numbers for each axis.
        value: int64, the number of each cell.
    """

    areas: Areas
    value: Ints

    @classmethod
    def root(cls, n_axes: int, value: int) -> "Cells":
        """The root of a tree; no cell at all if its number is 0."""
        n = int(value > 0)
        return cls(tuple(np.zeros(n, np.int32) for _ in range(n_axes)), np.full(n, value, np.int64))

    @classmethod
    def join(cls, parts: Sequence["Cells"]) -> "Cells":
        """Cells of several parts, one after the other."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            join_areas([part.areas for part in parts]),
            np.concatenate([part.value for part in parts]),
        )

    def take(self, index: Any) -> "Cells":
        """Some of the cells: a slice, numbers or a mask."""
        return Cells(tuple(numbers[index] for numbers in self.areas), self.value[index])

    def __repr__(self) -> str:
        return f"Cells({len(self.areas)} axes)"


def join_areas(parts: Sequence[Areas]) -> Areas:
    """Areas of several parts, one after the other."""
    return tuple(map(np.concatenate, zip(*parts, strict=True)))


def differ(areas: Sequence[NDArray[np.int32] | Ints]) -> NDArray[np.bool_]:
    """Whether each cell differs from the one before it; the first one does."""
    found = np.zeros(len(areas[0]), bool)
    found[:1] = True
    for numbers in areas:
        found[1:] |= numbers[1:] != numbers[:-1]
    return found
