"""Places: names, locations and outlines of areas.

Public facts about the areas of one hierarchy. They travel with it into releases, pages and maps,
are not part of any sum or guarantee, and do not make two hierarchies different.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from inftda.errors import HierarchyError
from inftda.util.tabular import as_arrow

#: Bytes of a name, at most.
MAX_NAME: Final = 1_000
#: Degrees; areas that cross the antimeridian may go beyond 180.
MAX_LON, MAX_LAT = 360.0, 90.0


@dataclass(frozen=True, eq=False)
class Places:
    """Names, locations and outlines of the areas of one hierarchy.

    Attributes:
        names: level name to one name for each area of that level, in the order of the
            hierarchy, null where there is none; only levels that have names.
        lon: longitudes of the finest areas in degrees, NaN where unknown; None if none is known.
        lat: latitudes of the finest areas in degrees, known exactly where longitudes are.
        outlines: polygons of the finest areas as WKB, in degrees, null where unknown; None if
            none is known.

    >>> Places().is_empty
    True
    >>> Places(names={"town": pa.array(["Aix", None])}).name("town", 0)
    'Aix'
    """

    names: Mapping[str, pa.StringArray] = field(default_factory=dict)
    lon: NDArray[np.float64] | None = None
    lat: NDArray[np.float64] | None = None
    outlines: pa.BinaryArray | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known."""
        return not self.names and self.lon is None and self.outlines is None

    def name(self, level: str, area: int) -> str | None:
        """Look up the name of an area by its number; None if it has none."""
        names = self.names.get(level)
        return None if names is None else names[area].as_py()

    def take(self, numbers: Mapping[str, pa.Array], finest: str) -> "Places":
        """Reorder the places for a hierarchy with other areas or another order.

        For each level, `numbers` are the old numbers of the areas, null for an area that is new.
        """
        names = {level: array.take(numbers[level]) for level, array in self.names.items()}
        lon, lat = (
            None if degrees is None else _take_degrees(degrees, numbers[finest])
            for degrees in (self.lon, self.lat)
        )
        outlines = None if self.outlines is None else self.outlines.take(numbers[finest])
        return Places(names, lon, lat, outlines)

    def check(self, sizes: Mapping[str, int]) -> None:
        """Check lengths against the number of areas of each level, the finest last."""
        for level, names in self.names.items():
            if level not in sizes or len(names) != sizes[level]:
                raise HierarchyError(f"there must be one name for each area of level {level!r}")
            longest = pc.max(pc.binary_length(names)).as_py() or 0
            if longest > MAX_NAME or not names.equals(tidy(names)):
                raise HierarchyError(
                    f"names of level {level!r} must be of at most {MAX_NAME:,} bytes, on one line "
                    "and without blanks around them"
                )
        n_finest = [*sizes.values()][-1]
        known = [self.lon, self.lat, self.outlines]
        if any(facts is not None and len(facts) != n_finest for facts in known):
            raise HierarchyError("there must be one location and outline for each finest area")
        if (self.lon is None) != (self.lat is None):
            raise HierarchyError("locations need both lon and lat")
        if self.lon is not None and self.lat is not None:
            _check_degrees(self.lon, self.lat)


def tidy(texts: pa.StringArray) -> pa.StringArray:
    """Put names on one line without control characters; empty names become null."""
    one_line = pc.replace_substring_regex(texts, r"[\s\p{Cc}\p{Zl}\p{Zp}]+", " ")
    trimmed = pc.utf8_trim_whitespace(one_line)
    return pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, pa.string()), trimmed)


def _take_degrees(degrees: NDArray[np.float64], numbers: pa.Array) -> NDArray[np.float64]:
    taken = as_arrow(degrees).take(numbers)
    return np.array(pc.fill_null(taken, np.nan).to_numpy(zero_copy_only=False), np.float64)


def _check_degrees(lon: NDArray[np.float64], lat: NDArray[np.float64]) -> None:
    if not np.array_equal(np.isnan(lon), np.isnan(lat)):
        raise HierarchyError("an area with a lon needs a lat, and one with a lat a lon")
    is_known = ~np.isnan(lon)
    if (np.abs(lon[is_known]) > MAX_LON).any() or (np.abs(lat[is_known]) > MAX_LAT).any():
        raise HierarchyError(
            f"locations must be degrees, lon up to {MAX_LON:g} and lat up to {MAX_LAT:g}; are they "
            "swapped, or in metres?"
        )
