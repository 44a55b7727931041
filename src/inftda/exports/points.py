"""Where areas lie and what they are called: public facts that travel beside the numbers.

They come with the areas of the release, or from a file. The place of a coarse area is the
middle of its finest areas.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from inftda.areas.wkb import Ends
from inftda.errors import InftdaError
from inftda.publication.shapes import places_at
from inftda.reports.labels import Labels
from inftda.tree import Tree


@dataclass(frozen=True)
class Points:
    """Names and places of the areas of a tree.

    Attributes:
        names: (axis, level) to a name for each area, None where there is none.
        finest: axis to longitudes and latitudes of its finest areas, NaN where there is none.
        outlines: axis to polygons of its finest areas (WKB), null where there is none.
    """

    names: dict[tuple[int, int], Sequence[str | None]] = field(default_factory=dict)
    finest: dict[int, Ends] = field(default_factory=dict)
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

    def at(self, tree: Tree, axis: int, level: int) -> Ends:
        """Longitudes and latitudes of the areas of a level, NaN where nothing is known."""
        return places_at(tree.axes[axis].hierarchy, level, self.finest[axis])

    def name(self, tree: Tree, axis: int, level: int) -> pa.StringArray:
        """Names of the areas of a level; codes where there is none."""
        codes = tree.axes[axis].hierarchy.codes(level)
        known = self.names.get((axis, level))
        if known is None:
            return codes
        pairs = zip(known, codes.to_pylist(), strict=True)
        return pa.array([name or code for name, code in pairs], pa.string())
