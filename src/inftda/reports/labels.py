"""Names and locations of areas, from files the custodian gives: for people, never for sums.

Everything here is public. A names file has the columns level, code, name; a centroids file
has one column named after a level, lon, lat, and may have name.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from inftda.areas.locations import Gazetteer
from inftda.errors import InftdaError
from inftda.hierarchy import Hierarchy
from inftda.places import Places as PublicPlaces
from inftda.tables import read_strings
from inftda.tree import Tree

Places = tuple[NDArray[np.float32], NDArray[np.float32]]


@dataclass
class Labels:
    """Names and locations of the areas of a tree.

    Attributes:
        names: (axis, level) to a name for each area, None where there is none.
        places: axis to longitudes and latitudes of its finest areas, NaN where
            there is none.
    """

    names: dict[tuple[int, int], list[str | None]] = field(default_factory=dict)
    places: dict[int, Places] = field(default_factory=dict)

    def add_names(self, tree: Tree, path: Path) -> None:
        """Read a names file.

        Raises:
            InftdaError: it has other columns, or none of its areas is in the release.
        """
        table = read_strings(
            path, what="names file", error=InftdaError, columns=("level", "code", "name")
        )
        found = 0
        for axis, level, name in _levels(tree):
            rows = table.filter(pc.equal(table.column("level"), name))
            found += self._name(tree, axis, level, rows.column("code"), rows.column("name"))
        if not found:
            levels = ", ".join(dict.fromkeys(name for _, _, name in _levels(tree)))
            raise InftdaError(
                f"no area of {path.name!r} (the names file) is in this release, whose levels "
                f"are {levels}; check its level and code columns"
            )

    def add_centroids(self, tree: Tree, path: Path) -> None:
        """Read a centroids file; its names are taken where the names file has none.

        Raises:
            InftdaError: a column is missing, a coordinate is not in degrees, or none
                of its areas is in the release.
        """
        known = Gazetteer.of((_bare(axis.hierarchy) for axis in tree.axes), centroids=path)
        for (axis, level), names in known.names.items():
            codes = pa.chunked_array([tree.axes[axis].hierarchy.codes(level)])
            self._name(tree, axis, level, codes, pa.chunked_array([pa.array(names, pa.string())]))
        for axis, (lon, lat) in known.finest.items():
            hierarchy, at = tree.axes[axis].hierarchy, (lon.astype("f4"), lat.astype("f4"))
            self.place_areas(hierarchy, axis, hierarchy.depth, np.arange(len(lon)), at)

    def add_known(self, tree: Tree) -> None:
        """Names and locations that the release itself has, where no file gave others."""
        for number, axis in enumerate(tree.axes):
            hierarchy, known = axis.hierarchy, axis.hierarchy.places
            for level_name, names in known.names.items():
                level = hierarchy.level_of(level_name)
                codes = pa.chunked_array([hierarchy.codes(level)])
                self._name(tree, number, level, codes, pa.chunked_array([names]))
            if known.lon is not None and known.lat is not None:
                area = np.where(np.isnan(known.lon), -1, np.arange(len(known.lon)))
                at = known.lon.astype(np.float32), known.lat.astype(np.float32)
                self.place_areas(hierarchy, number, hierarchy.depth, area, at)

    def _name(
        self, tree: Tree, axis: int, level: int, codes: pa.ChunkedArray, names: pa.ChunkedArray
    ) -> int:
        """Give names to areas that have none; how many areas were found."""
        hierarchy = tree.axes[axis].hierarchy
        area = _find(hierarchy, level, codes)
        known = self.names.get((axis, level)) or [None] * hierarchy.n_areas(level)
        for number, name in zip(area.tolist(), names.to_pylist(), strict=True):
            if number >= 0 and name and name.strip() and known[number] is None:
                known[number] = name.strip()
        if any(known):
            self.names[axis, level] = known
        return int((area >= 0).sum())

    def place_areas(
        self,
        hierarchy: Hierarchy,
        axis: int,
        level: int,
        area: NDArray[np.int64],
        at: Places,
    ) -> None:
        """Put areas (by number, -1 for none) on the map where nothing finer is known."""
        n = hierarchy.n_areas(level)
        lon, lat = (np.full(n, np.nan, np.float32) for _ in range(2))
        is_known = area >= 0
        lon[area[is_known]], lat[area[is_known]] = at[0][is_known], at[1][is_known]
        above = hierarchy.ancestor(hierarchy.depth, level)
        old = self.places.get(axis, (np.full(len(above), np.nan, np.float32),) * 2)
        is_open = np.isnan(old[0])
        self.places[axis] = (
            np.where(is_open, lon[above], old[0]),
            np.where(is_open, lat[above], old[1]),
        )


def _bare(hierarchy: Hierarchy) -> Hierarchy:
    return hierarchy.with_places(PublicPlaces.none())


def _levels(tree: Tree) -> Iterator[tuple[int, int, str]]:
    """Axis number, level and level name, the finest first."""
    for number, axis in enumerate(tree.axes):
        for level in range(axis.hierarchy.depth, 0, -1):
            yield number, level, axis.hierarchy.level_name(level)


def _find(hierarchy: Hierarchy, level: int, codes: pa.ChunkedArray) -> NDArray[np.int64]:
    """Area number of each code, -1 for codes that are not of this level."""
    found = pc.index_in(codes, value_set=hierarchy.codes(level))
    return np.asarray(pc.fill_null(found, -1), dtype=np.int64)
