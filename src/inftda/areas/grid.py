"""Square cells that cover an outline: for those who do not want hexagons.

Cells of the finest level are squares of a given size in metres at the middle latitude of the
outline; several of them, side by side, make a cell of the level above.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from inftda.areas.cell_names import letters
from inftda.areas.cells import MAX_CELLS, as_outline
from inftda.areas.polygons import shapely
from inftda.errors import HierarchyError

#: Metres in a degree of latitude.
_DEGREE: Final = 111_195.0
_MAX_LAT: Final = 85.0


def grid_areas(outline: Any, sizes: Sequence[int]) -> pa.Table:
    """The cells of a grid that cover an outline, as a table of areas.

    Args:
        outline: what the cells are to cover, which must be known without the trips: a file of
            polygons, or shapely's, in degrees.
        sizes: side of the cells of each level in metres, from coarse to fine, each a multiple of
            the next.

    Returns:
        A column of codes for each level, called grid_500 for cells of 500 m; location and outline
        of the finest cells. Codes are column and row, as in a spreadsheet: C4 is the third from
        the west and the fourth from the north; finer cells have that of their parent in front.

    Raises:
        HierarchyError: the sizes do not nest, there would be too many cells, or the outline is
            anything but polygons.
    """
    outline = as_outline(outline)
    _check_sizes(sizes)
    west, south, east, north = outline.bounds
    middle = (south + north) / 2
    if max(abs(south), abs(north)) > _MAX_LAT:
        raise HierarchyError("a grid of squares does not fit near the poles; use inftda areas h3")
    side = sizes[-1]
    step_y = side / _DEGREE
    step_x = step_y / np.cos(np.radians(middle))
    n_columns, n_rows = (
        int(np.ceil(length / step)) + 1
        for length, step in ((east - west, step_x), (north - south, step_y))
    )
    if n_columns * n_rows > MAX_CELLS:
        raise HierarchyError(
            f"there would be up to {n_columns * n_rows:,} cells of {side:,} m around this outline; "
            "choose larger ones"
        )
    # From multiples of the step: the same grid for any outline of the same middle latitude.
    row, column = (each.ravel() for each in np.mgrid[0:n_rows, 0:n_columns])
    corner_x, corner_y = west + column * step_x, north - row * step_y
    boxes = shapely().box(corner_x, corner_y - step_y, corner_x + step_x, corner_y)
    shapely().prepare(outline)
    is_kept = shapely().intersects(outline, boxes)
    row, column, boxes = row[is_kept], column[is_kept], boxes[is_kept]
    columns: dict[str, Any] = {}
    above = [""] * len(row)
    n_before = 0
    for size in sizes:
        n = size // side
        at_row, at_column = row // n, column // n
        if n_before:
            at_row, at_column = at_row % (n_before // n), at_column % (n_before // n)
        own = [
            f"{letters(x)}{y + 1}" for x, y in zip(at_column.tolist(), at_row.tolist(), strict=True)
        ]
        above = [
            f"{parent}-{name}" if parent else name for parent, name in zip(above, own, strict=True)
        ]
        columns[f"grid_{size}"] = above
        n_before = n
    points = shapely().centroid(boxes)
    return pa.table(
        columns
        | {"lon": shapely().get_x(points).round(6), "lat": shapely().get_y(points).round(6)}
        | {"wkt": shapely().to_wkt(boxes, rounding_precision=9)}
    )


def _check_sizes(sizes: Sequence[int]) -> None:
    is_falling = len(sizes) > 0 and list(sizes) == sorted({*sizes}, reverse=True)
    if not is_falling or sizes[-1] < 1:
        raise HierarchyError(
            "sizes are metres from coarse to fine, such as 4000,1000,500; got "
            f"{','.join(map(str, sizes)) or 'none'}"
        )
    for coarse, fine in pairwise(sizes):
        if coarse % fine:
            raise HierarchyError(
                f"cells of {fine:,} m do not fill one of {coarse:,} m; let each size be a multiple "
                "of the next"
            )
