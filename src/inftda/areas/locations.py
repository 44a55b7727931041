"""Locations and names of areas, for pages, exports and models.

They are public and never part of a sum. They come from the files of a user, and where these have
no entry, from the areas themselves. A names file has the columns level, code and name; a centroids
file has a column named after a level, lon and lat, and may have name.

Longitudes jump at 180 degrees. So the middle of several places is computed on the sphere, a line
takes the shorter way, and a map of places on both sides of 180 degrees is cut elsewhere (`seam`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from inftda.errors import HierarchyError, InftdaError
from inftda.tree.hierarchy import Hierarchy
from inftda.tree.places import MAX_LAT, MAX_LON
from inftda.util.tabular import find_texts, read_strings

#: Usual names of columns of longitudes and latitudes.
LON_NAMES: Final = ("lon", "longitude", "lng", "long")
LAT_NAMES: Final = ("lat", "latitude")
_TURN: Final = 360.0

#: Longitudes and latitudes, NaN where they are not known.
LonLat = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Gazetteer:
    """Names and locations of the areas of all axes.

    Attributes:
        hierarchies: the areas of each axis.
        names: (axis, level) to a name for each area, None where there is none; only levels with
            names.
        finest: axis to the locations of its finest areas; only axes with locations.

    >>> towns = Hierarchy.read({"region": ["N", "N"], "town": ["1", "2"]})
    >>> table = {"town": ["1", "2"], "lon": ["179", "-179"], "lat": ["0", "0"]}
    >>> Gazetteer.of([towns], centroids=table).at(0, 1)[0].round(6).tolist()
    [180.0]
    """

    hierarchies: tuple[Hierarchy, ...]
    names: dict[tuple[int, int], list[str | None]] = field(default_factory=dict)
    finest: dict[int, LonLat] = field(default_factory=dict)

    @classmethod
    def of(
        cls, hierarchies: Iterable[Hierarchy], *, names: Any = None, centroids: Any = None
    ) -> "Gazetteer":
        """Names and locations of areas, from files before those of the areas themselves."""
        found = cls(tuple(hierarchies))
        if names is not None:
            found._read_names(names)
        if centroids is not None:
            found._read_centroids(centroids)
        for axis, hierarchy in enumerate(found.hierarchies):
            known = hierarchy.places
            for name, texts in known.names.items():
                level = hierarchy.level_of(name)
                found._name(axis, level, np.arange(hierarchy.n_areas(level)), texts.to_pylist())
            if known.lon is not None and known.lat is not None:
                areas = np.arange(len(known.lon))
                found.locate(axis, hierarchy.depth, areas, (known.lon, known.lat))
        return found

    def has(self, axes: Iterable[int]) -> bool:
        """Whether locations are known for all of these axes."""
        return all(axis in self.finest for axis in axes)

    def at(self, axis: int, level: int) -> LonLat:
        """Locations of the areas of a level: the middle of the finest areas in each."""
        return middles(self.hierarchies[axis], level, self.finest[axis])

    def name(self, axis: int, level: int) -> pa.StringArray:
        """Names of the areas of a level; codes where there is none."""
        codes = self.hierarchies[axis].codes(level)
        known = self.names.get((axis, level))
        if known is None:
            return codes
        pairs = zip(known, codes.to_pylist(), strict=True)
        return pa.array([name or code for name, code in pairs], pa.string())

    @property
    def seam(self) -> float:
        """Longitude at which a map of all areas is best cut: -180 unless areas lie around it."""
        every = [lon for lon, _ in self.finest.values()]
        return seam_of(np.concatenate(every)) if every else -_TURN / 2

    def locate(self, axis: int, level: int, areas: NDArray[Any], at: LonLat) -> None:
        """Set the location of areas (by number, -1 for none) that have none yet.

        Their finest areas get the same location.
        """
        hierarchy = self.hierarchies[axis]
        above = hierarchy.ancestor(hierarchy.depth, level)
        nowhere = np.full(len(above), np.nan)
        old = self.finest.get(axis, (nowhere, nowhere))
        is_open = np.isnan(old[0])
        is_known = (areas >= 0) & ~np.isnan(at[0] + at[1])
        if not is_known.any():
            return
        found = []
        for before, degrees in zip(old, at, strict=True):
            of_level = np.full(hierarchy.n_areas(level), np.nan)
            of_level[areas[is_known]] = degrees[is_known]
            found.append(np.where(is_open, of_level[above], before))
        self.finest[axis] = (found[0], found[1])

    def _read_names(self, source: Any) -> None:
        label = _label(source, "the names file")
        columns = ("level", "code", "name")
        table = read_strings(source, what="names file", error=InftdaError, columns=columns)
        level_names, codes, names = (table.column(column).combine_chunks() for column in columns)
        is_any = False
        for axis, level, name in self._levels():
            is_here = pc.fill_null(pc.equal(level_names, name), False).to_numpy(False)
            areas = np.where(is_here, self._areas(axis, level, codes), -1)
            self._name(axis, level, areas, names.to_pylist())
            is_any |= bool((areas >= 0).any())
        if not is_any:
            raise InftdaError(
                f"no area of {label} is in this release, whose levels are {self._listed()}; check "
                "its level and code columns"
            )

    def _read_centroids(self, source: Any) -> None:
        label = _label(source, "the centroids file")
        table = read_strings(source, what="centroids file", error=InftdaError)
        lon, lat = (_column(table, wanted, label) for wanted in (LON_NAMES, LAT_NAMES))
        at = degrees(table, lon, MAX_LON / 2, label), degrees(table, lat, MAX_LAT, label)
        is_any = False
        for axis, level, name in self._levels():
            if name not in table.column_names:
                continue
            areas = self._areas(axis, level, table.column(name).combine_chunks())
            self.locate(axis, level, areas, at)
            if "name" in table.column_names:
                self._name(axis, level, areas, table.column("name").to_pylist())
            is_any |= bool((areas >= 0).any())
        if not is_any:
            raise InftdaError(
                f"no area of {label} is in this release; it must have a column named after one of "
                f"the levels ({self._listed()}) with their codes"
            )

    def _name(
        self, axis: int, level: int, areas: NDArray[Any], names: Iterable[str | None]
    ) -> None:
        """Give names to areas (by number, -1 for none) that have none yet."""
        none: list[str | None] = [None] * self.hierarchies[axis].n_areas(level)
        known = self.names.get((axis, level), none)
        for area, name in zip(areas.tolist(), names, strict=True):
            if area >= 0 and name and name.strip() and known[area] is None:
                known[area] = name.strip()
        if any(known):
            self.names[axis, level] = known

    def _levels(self) -> Iterator[tuple[int, int, str]]:
        """Axis, level and its name, the finest first."""
        for axis, hierarchy in enumerate(self.hierarchies):
            for level in range(hierarchy.depth, 0, -1):
                yield axis, level, hierarchy.level_name(level)

    def _listed(self) -> str:
        return ", ".join(dict.fromkeys(name for _, _, name in self._levels()))

    def _areas(self, axis: int, level: int, codes: pa.StringArray) -> NDArray[np.int32]:
        """Number of the area of each code, -1 for codes that are not of this level."""
        return find_texts(codes, self.hierarchies[axis].codes(level))


def middles(hierarchy: Hierarchy, level: int, finest: LonLat) -> LonLat:
    """The middle, on the sphere, of the finest areas in each area of a level."""
    if level == hierarchy.depth:
        return finest
    above = hierarchy.ancestor(hierarchy.depth, level)
    is_known = ~np.isnan(finest[0] + finest[1])
    n = hierarchy.n_areas(level)
    x, y, z = (
        np.bincount(above[is_known], part, minlength=n)
        for part in unit_vectors(finest[0][is_known], finest[1][is_known]).T
    )
    is_any = np.bincount(above[is_known], minlength=n) > 0
    lon, lat = np.degrees(np.arctan2(y, x)), np.degrees(np.arctan2(z, np.hypot(x, y)))
    return np.where(is_any, lon, np.nan), np.where(is_any, lat, np.nan)


def unit_vectors(lon: NDArray[np.float64], lat: NDArray[np.float64]) -> NDArray[np.float64]:
    """float64[places, 3]: points on the unit sphere."""
    east, north = np.radians(lon), np.radians(lat)
    return np.stack(
        [np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)], axis=1
    )


def short_way(start: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.float64]:
    """Longitudes of ends, so that lines go over 180 degrees and not the long way round."""
    return np.asarray(end + _TURN * np.round((start - end) / _TURN))


def seam_of(lon: NDArray[np.float64]) -> float:
    """A longitude in the widest gap between these: -180 if it lies in that gap.

    >>> seam_of(np.array([177.0, -179.0])), seam_of(np.array([-75.0, 10.0]))
    (-1.0, -180.0)
    """
    around = np.unique((lon[~np.isnan(lon)] + _TURN / 2) % _TURN)
    if not len(around):
        return -_TURN / 2
    gaps = np.diff(around, append=around[0] + _TURN)
    widest = int(gaps.argmax())
    if widest == len(around) - 1:
        return -_TURN / 2
    return float(around[widest] + gaps[widest] / 2 - _TURN / 2)


def from_seam(lon: NDArray[np.float64], seam: float) -> NDArray[np.float64]:
    """Longitudes between the seam of a map and 360 degrees further: nothing jumps on it."""
    return np.asarray(seam + (lon - seam) % _TURN)


def _label(source: Any, what: str) -> str:
    return f"{Path(source).name!r} ({what})" if isinstance(source, str | Path) else what


def _column(table: pa.Table, wanted: tuple[str, ...], label: str) -> str:
    for name in table.column_names:
        if name.lower() in wanted:
            return str(name)
    raise InftdaError(
        f"{label} has no column {wanted[0]!r}; it has {', '.join(table.column_names)}"
    )


def degrees(table: pa.Table, column: str, most: float, label: str) -> NDArray[np.float64]:
    """A column of degrees; blank cells are not-a-number."""
    found = np.full(table.num_rows, np.nan)
    for row, cell in enumerate(table.column(column).to_pylist()):
        if cell is None or not str(cell).strip():
            continue
        try:
            found[row] = float(cell)
        except (TypeError, ValueError):
            found[row] = np.inf
        if abs(found[row]) > most:
            raise HierarchyError(
                f"column {column!r} of {label} must be degrees between -{most:g} and {most:g}, "
                f"such as 12.5, got {cell!r} in row {row + 1}; are lon and lat swapped, or is it "
                "in metres?"
            )
    return found
