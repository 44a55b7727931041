"""Codes of H3 cells: recognised without any library.

A cell is 64 bits, written in hexadecimal digits: the kind of thing (4 bits), its resolution, its
base cell, and a digit of 3 bits for each resolution, 7 beyond its own. See https://h3geo.org.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from inftda.hierarchy import OUTSIDE, Hierarchy

FINEST: Final = 15
_KIND_AT, _CELL, _RESOLUTION_AT, _RESERVED_AT = 59, 1, 52, 56
_N_DIGITS: Final = 15


def cells_of(hierarchy: Hierarchy) -> NDArray[np.uint64] | None:
    """The finest areas as cells, 0 for the area of what cannot be placed; None if one is none."""
    codes = hierarchy.codes(hierarchy.depth).to_pylist()
    try:
        numbers = [0 if code == OUTSIDE else int(code, 16) for code in codes]
        cells = np.array(numbers, np.uint64)
    except (ValueError, OverflowError):
        return None
    is_written_so = all(
        code in {OUTSIDE, f"{number:x}"} for code, number in zip(codes, numbers, strict=True)
    )
    return cells if is_written_so else None


def resolution_of(hierarchy: Hierarchy) -> int | None:
    """The resolution of finest areas that are H3 cells, all of one; None if they are not."""
    cells = cells_of(hierarchy)
    if cells is None:
        return None
    cells = cells[cells > 0]
    if not len(cells):
        return None
    kinds = np.unique(cells >> np.uint64(_KIND_AT))
    reserved = np.unique((cells >> np.uint64(_RESERVED_AT)) & np.uint64(7))
    resolutions = np.unique((cells >> np.uint64(_RESOLUTION_AT)) & np.uint64(15))
    if kinds.tolist() != [_CELL] or reserved.tolist() != [0] or len(resolutions) != 1:
        return None
    resolution = int(resolutions[0])
    unused = np.uint64((1 << (3 * (_N_DIGITS - resolution))) - 1)
    return resolution if ((cells & unused) == unused).all() else None
