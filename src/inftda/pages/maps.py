"""Maps that are drawn beforehand: where areas and lines lie on a picture."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from inftda.areas.locations import Gazetteer, from_seam
from inftda.pages.shapes import Shapes

#: Of a map, in its own units.
WIDTH: Final = 600.0
_MOST_HEIGHT: Final = 720.0
_MARGIN: Final = 12.0
#: A line bends by this part of its length, so that there and back are two lines.
_BEND: Final = 0.15


@dataclass(frozen=True)
class AreaMap:
    """Areas of one level of an axis on a picture.

    Attributes:
        height: of the picture, in its own units; its width is `WIDTH`.
        x: where areas are from left to right, NaN where it is not known.
        y: from top to bottom.
        outlines: area number to a path; empty if no outlines are known.
        radius: of a dot that stands for an area without an outline.
    """

    height: float
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    outlines: dict[int, str]
    radius: float

    @classmethod
    def of(
        cls, places: Gazetteer, shapes: Shapes | None, axis: int, level: int
    ) -> "AreaMap | None":
        """A map of the areas of a level; None if nobody knows where they are."""
        if not places.has([axis]):
            return None
        lon, lat = places.at(axis, level)
        lon = from_seam(lon, places.seam)
        rings: list[tuple[int, NDArray[np.float64]]] = []
        if shapes is not None and shapes.level == level and _is_same(places, shapes.axis, axis):
            pairs = zip(shapes.areas, shapes.rings, strict=True)
            rings = [(area, ring / shapes.scale) for area, ring in pairs]
        points = np.concatenate([np.stack([lon, lat], 1), *(ring for _, ring in rings)])
        points = points[~np.isnan(points).any(axis=1)]
        if not len(points):
            return None
        low, high = points.min(axis=0), points.max(axis=0)
        shrink = math.cos(math.radians((low[1] + high[1]) / 2))  # a degree is shorter up north
        wide, tall = max((high[0] - low[0]) * shrink, 1e-6), max(high[1] - low[1], 1e-6)
        scale = min((WIDTH - 2 * _MARGIN) / wide, (_MOST_HEIGHT - 2 * _MARGIN) / tall)
        left = (WIDTH - wide * scale) / 2

        def placed(at: NDArray[np.float64]) -> NDArray[np.float64]:
            x = left + (at[:, 0] - low[0]) * shrink * scale
            return np.stack([x, _MARGIN + (high[1] - at[:, 1]) * scale], 1)

        outlines: dict[int, str] = {}
        for area, ring in rings:
            corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed(ring))
            outlines[area] = f"{outlines.get(area, '')}M{corners}Z"
        at = placed(np.stack([lon, lat], 1))
        radius = min(9.0, max(2.0, 0.3 * math.sqrt(WIDTH * tall * scale / max(len(lon), 1))))
        return cls(tall * scale + 2 * _MARGIN, at[:, 0], at[:, 1], outlines, radius)

    def line(self, start: int, end: int) -> str:
        """The path of a bent line from one area to another; empty if one has no place."""
        ends = np.array([[self.x[start], self.y[start]], [self.x[end], self.y[end]]])
        if np.isnan(ends).any() or start == end:
            return ""
        way = ends[1] - ends[0]
        middle = ends.mean(axis=0) + _BEND * np.array([-way[1], way[0]])
        numbers = (*ends[0], *middle, *ends[1])
        return "M{:.1f},{:.1f}Q{:.1f},{:.1f} {:.1f},{:.1f}".format(*numbers)


@dataclass(frozen=True)
class Curve:
    """One number over editions with its intervals, as a small picture.

    Attributes:
        label: what it is.
        values: one for each edition; None where there is none.
        low: lower ends of intervals, likewise.
        high: upper ends.
    """

    label: str
    values: Sequence[int | None]
    low: Sequence[int | None]
    high: Sequence[int | None]

    WIDTH = 220.0
    HEIGHT = 64.0

    @property
    def ends(self) -> tuple[int, int]:
        """The lowest and the highest number of the picture."""
        known = [one for one in (*self.low, *self.values, *self.high) if one is not None]
        return min(known, default=0), max(known, default=0)

    def _at(self, numbers: Sequence[int | None]) -> list[tuple[float, float]]:
        low, high = self.ends
        step, scale = self.WIDTH / max(len(numbers) - 1, 1), (self.HEIGHT - 4) / max(high - low, 1)
        return [
            (number * step, self.HEIGHT - 2 - (value - low) * scale)
            for number, value in enumerate(numbers)
            if value is not None
        ]

    @property
    def line(self) -> str:
        """Points of the line."""
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in self._at(self.values))

    @property
    def band(self) -> str:
        """Corners of the band of intervals."""
        around = [*self._at(self.high), *reversed(self._at(self.low))]
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in around)


def _is_same(places: Gazetteer, axis: int, other: int) -> bool:
    return places.hierarchies[axis] == places.hierarchies[other]
