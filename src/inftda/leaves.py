"""Leaves: how many trips there are at each finest combination of areas.

This is the truth, as the paper's section 3 has it: one count per leaf of the tree, only the
non-zero ones. Nothing here adds noise, so nothing of it may be published; it does not even
print itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from inftda.errors import IngestError

#: Sums at any level stay far from overflow, also after noise is added.
MAX_TOTAL: Final = 2**60
_Number = TypeVar("_Number", bound=np.generic)


@dataclass(frozen=True, eq=False)
class Leaves:
    """The confidential leaf counts: all leaves with trips, in any order, some of them in parts.

    Build them with `Leaves.of`, which checks the total. A leaf that stands here several times has
    the sum of its counts; `Counts` adds them up.

    Attributes:
        areas: for each axis, int32 depth-first numbers of the finest areas; read-only.
        counts: int64, all above zero; their sum is at most 2^60. Read-only.
    """

    areas: tuple[NDArray[np.int32], ...]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, areas: Sequence[NDArray[np.int32]], counts: NDArray[np.int64]) -> Self:
        """Leaves, those with a count of zero left out.

        Args:
            areas: for each axis, int32 numbers of finest areas.
            counts: int64, not negative; zeros are left out.

        Raises:
            IngestError: the total is beyond 2^60.
        """
        check_total(_sum(counts))
        is_kept = counts != 0
        if not is_kept.all():
            areas, counts = [axis[is_kept] for axis in areas], counts[is_kept]
        # All of one kind, wherever they come from: kernels are compiled for kinds of arrays.
        return cls(
            tuple(_read_only(axis, np.int32) for axis in areas), _read_only(counts, np.int64)
        )

    def __repr__(self) -> str:
        return f"Leaves({len(self.areas)} axes, confidential)"


def _read_only(array: NDArray[Any], dtype: type[_Number]) -> NDArray[_Number]:
    """The array itself, or a copy if it is not contiguous or of another type."""
    view = np.ascontiguousarray(array, dtype).view()
    view.flags.writeable = False
    return view


def _sum(counts: NDArray[np.int64]) -> int:
    """The sum, exact whatever the counts are; none is negative."""
    if not len(counts) or int(counts.max()) < 2**63 // len(counts):
        return int(counts.sum())
    # In halves, each of which is exact in int64.
    high, low = int((counts >> 32).sum()), int((counts & 0xFFFFFFFF).sum())
    return (high << 32) + low


def check_total(total: int) -> None:
    """Refuse more trips than sums of noisy counts leave room for.

    Raises:
        IngestError: there are more than 2^60.
    """
    if total > MAX_TOTAL:
        raise IngestError(
            "the total number of trips is beyond 2^60; check the count column, or split the table "
            "into parts"
        )
