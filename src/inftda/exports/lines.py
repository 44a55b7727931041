"""Desire lines: from the place of the origin straight to that of the destination."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inftda.areas.locations import short_way
from inftda.exports.contents import Contents, Numbers
from inftda.tables import as_arrow


@dataclass(frozen=True)
class Lines:
    """The numbers of a level whose two ends have a place.

    Attributes:
        table: codes, number, and `low` and `high` where they are known.
        areas: numbers of the origin and of the destination of each row.
        start: longitude and latitude of the origin of each row.
        end: likewise of the destination.
        n_left_out: rows that are not shown, because an end has no place.
    """

    table: pa.Table
    areas: tuple[NDArray[np.int32], NDArray[np.int32]]
    start: tuple[NDArray[np.float64], NDArray[np.float64]]
    end: tuple[NDArray[np.float64], NDArray[np.float64]]
    n_left_out: int

    @property
    def facts(self) -> dict[str, str]:
        """What readers must know of what is not shown."""
        if not self.n_left_out:
            return {}
        return {"left_out": f"{self.n_left_out:,} rows with an end whose place is not known"}


def lines_of(contents: Contents, numbers: Numbers) -> Lines:
    """The numbers of a level as lines; trips inside one area are lines of no length."""
    ends, places = [], []
    for axis in contents.ends:
        area = numbers.areas(contents.tree, axis)
        lon, lat = contents.places.at(axis, numbers.level.depths[axis])
        ends.append(area)
        places.append((lon[area], lat[area]))
    is_known = ~np.isnan(places[0][0] + places[0][1] + places[1][0] + places[1][1])
    kept = np.flatnonzero(is_known)
    (lon0, lat0), (lon1, lat1) = ((lon[kept], lat[kept]) for lon, lat in places)
    return Lines(
        numbers.table.take(as_arrow(kept)),
        (ends[0][kept], ends[1][kept]),
        (lon0, lat0),
        (short_way(lon0, lon1), lat1),
        len(is_known) - len(kept),
    )
