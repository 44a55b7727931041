"""Numbers of the nodes of a level: a fixed number of bits for each area.

The key of a parent has its area on the refined axis in the highest bits, then its other areas, so
ascending keys are group order. The number of a node is the key of its parent, then its index among
the parent's children.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inftda.errors import TreeError
from inftda.tree.cells import Areas, Ints

#: Largest number of bits in the number of a cell: numbers of cells are int64.
MAX_BITS: Final = 62


class KeyField(NamedTuple):
    """Position of the area of one axis in a key."""

    shift: int
    bits: int


class NodeKeys:
    """Numbers of the nodes of one level.

    Args:
        n_areas: areas of each axis at the level of the parents.
        order: axes, the highest bits first.
        max_children: largest number of children of a parent.

    Attributes:
        fields: one for each axis.
        bits: bits of the key of a parent.
        ordinal_bits: bits of the index of a node among the children of its parent.

    Raises:
        TreeError: numbers would have more than 62 bits.
    """

    def __init__(self, n_areas: Sequence[int], order: Sequence[int], max_children: int) -> None:
        fields, shift = {}, 0
        for axis in reversed(order):
            fields[axis] = KeyField(shift, (n_areas[axis] - 1).bit_length())
            shift += fields[axis].bits
        self.fields = tuple(fields[axis] for axis in range(len(n_areas)))
        self.bits, self.ordinal_bits = shift, (max_children - 1).bit_length()
        self._n_areas = tuple(n_areas)
        if self.bits + self.ordinal_bits > MAX_BITS:
            raise TreeError(
                f"the table has more than 2^{MAX_BITS} possible cells; leave out a column or its "
                "finest areas"
            )

    @cached_property
    def codes(self) -> tuple[Ints, ...]:
        """int64[areas] for each axis: the summand of each area in the key of a parent."""
        return tuple(
            np.arange(n) << field.shift for n, field in zip(self._n_areas, self.fields, strict=True)
        )

    def of(self, parents: Sequence[NDArray[np.int32]]) -> Ints:
        """int64: the key of each parent, from its areas."""
        key = np.zeros(len(parents[0]), np.int64)
        for areas, field in zip(parents, self.fields, strict=True):
            key |= areas.astype(np.int64) << field.shift
        return key

    def areas(self, keys: Ints) -> Areas:
        """int32 for each axis: areas of the parents with these keys."""
        return tuple(
            ((keys >> shift) & ((1 << bits) - 1)).astype(np.int32) for shift, bits in self.fields
        )
