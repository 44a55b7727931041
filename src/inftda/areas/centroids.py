"""Files of centroids: a column named after a level of areas, and where each of these lies."""

from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inftda.errors import InftdaError

#: What people call the two columns.
_LON: Final = ("lon", "longitude", "lng", "long")
_LAT: Final = ("lat", "latitude")


def locations(table: pa.Table, what: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Longitude and latitude of each row, in degrees; blank cells are not-a-number.

    Args:
        table: the file, all of it text.
        what: what to call it in messages.

    Raises:
        InftdaError: a column is missing, or a cell is not in degrees.
    """
    return _degrees(table, what, _LON, 180.0), _degrees(table, what, _LAT, 90.0)


def _degrees(
    table: pa.Table, what: str, wanted: tuple[str, ...], most: float
) -> NDArray[np.float64]:
    name = next((name for name in table.column_names if name.lower() in wanted), None)
    if name is None:
        raise InftdaError(
            f"{what} has no column {wanted[0]!r}; it has {', '.join(table.column_names)}"
        )
    degrees = np.empty(table.num_rows)
    for row, cell in enumerate(table.column(name).to_pylist()):
        try:
            degrees[row] = float(cell) if (cell or "").strip() else np.nan
        except ValueError:
            degrees[row] = np.inf
        if abs(degrees[row]) > most:
            raise InftdaError(
                f"column {name!r} of {what} must be degrees between -{most:g} and {most:g}, "
                f"got {cell!r} in row {row + 1}"
            )
    return degrees
