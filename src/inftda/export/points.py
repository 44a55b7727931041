"""Where areas lie and what they are called: public facts that travel beside the numbers.

They come with the areas of the release, or from a file. The place of a coarse area is the
middle of its finest areas.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inftda.errors import InftdaError
from inftda.hierarchy import Hierarchy
from inftda.report.labels import Labels
from inftda.tree import Tree

Coordinates = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True)
class Points:
    """Names and places of the areas of a tree.

    Attributes:
        names: (axis, level) to a name for each area, None where there is none.
        finest: axis to longitudes and latitudes of its finest areas, NaN where there is none.
        outlines: axis to polygons of its finest areas (WKB), null where there is none.
    """

    names: dict[tuple[int, int], Sequence[str | None]] = field(default_factory=dict)
    finest: dict[int, Coordinates] = field(default_factory=dict)
    outlines: dict[int, pa.BinaryArray] = field(default_factory=dict)

    @classmethod
    def of(cls, tree: Tree, centroids: Path | None, names_file: Path | None) -> "Points":
        """What is known of the areas; files come before what the release brings.

        Raises:
            InftdaError: a file cannot be read or does not fit the release.
        """
        labels = Labels()
        if names_file is not None:
            labels.add_names(tree, names_file)
        if centroids is not None:
            labels.add_centroids(tree, centroids)
        names: dict[tuple[int, int], Sequence[str | None]] = dict(labels.names)
        finest = {
            axis: (lon.astype(np.float64), lat.astype(np.float64))
            for axis, (lon, lat) in labels.places.items()
        }
        outlines: dict[int, pa.BinaryArray] = {}
        for number, axis in enumerate(tree.axes):
            places = axis.hierarchy.places
            if places.lon is not None and places.lat is not None:
                finest.setdefault(number, (places.lon, places.lat))
            for name, texts in places.names.items():
                level = axis.hierarchy.level_of(name)
                names.setdefault((number, level), texts.to_pylist())
            if places.outlines is not None:
                outlines[number] = places.outlines
        return cls(names, finest, outlines)

    def has(self, axes: Sequence[int]) -> bool:
        """Whether places are known for all of these axes."""
        return all(axis in self.finest for axis in axes)

    def require(self, axes: Sequence[int], kind: str) -> None:
        """Complain unless places are known.

        Raises:
            InftdaError: they are not.
        """
        if not self.has(axes):
            raise InftdaError(
                f"an export to {kind} needs to know where the areas lie, which the release does "
                "not say; give --centroids FILE with a column named after a level, lon and lat"
            )

    def at(self, tree: Tree, axis: int, level: int) -> Coordinates:
        """Longitudes and latitudes of the areas of a level, NaN where nothing is known."""
        hierarchy = tree.axes[axis].hierarchy
        lon, lat = self.finest[axis]
        return (lon, lat) if level == hierarchy.depth else _middles(hierarchy, level, lon, lat)

    def name(self, tree: Tree, axis: int, level: int) -> pa.StringArray:
        """Names of the areas of a level; codes where there is none."""
        codes = tree.axes[axis].hierarchy.codes(level)
        known = self.names.get((axis, level))
        if known is None:
            return codes
        pairs = zip(known, codes.to_pylist(), strict=True)
        return pa.array([name or code for name, code in pairs], pa.string())


def _middles(
    hierarchy: Hierarchy, level: int, lon: NDArray[np.float64], lat: NDArray[np.float64]
) -> Coordinates:
    """Middle of the finest areas of each area, on the sphere: at 180 degrees nothing jumps."""
    above = hierarchy.ancestor(hierarchy.depth, level)
    is_known = ~(np.isnan(lon) | np.isnan(lat))
    angle, height = np.radians(lon[is_known]), np.radians(lat[is_known])
    directions = (
        np.cos(height) * np.cos(angle),
        np.cos(height) * np.sin(angle),
        np.sin(height),
    )
    n = hierarchy.n_areas(level)
    x, y, z = (np.bincount(above[is_known], part, minlength=n) for part in directions)
    count = np.bincount(above[is_known], minlength=n)
    middle = np.degrees(np.arctan2(y, x)), np.degrees(np.arctan2(z, np.hypot(x, y)))
    return (np.where(count > 0, middle[0], np.nan), np.where(count > 0, middle[1], np.nan))
