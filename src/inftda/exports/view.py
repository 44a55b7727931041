"""What of the world a map shows first, and at which zoom the areas of a level can be told apart."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Pixels of the whole world at zoom 0, of a map on a screen, and between neighbouring areas.
_WORLD, _SCREEN, _APART = 512, 700, 60
_FARTHEST, _NEAREST = 0.0, 18.0


@dataclass(frozen=True)
class View:
    """Middle of a map in degrees, how many degrees it shows, and its zoom."""

    lon: float
    lat: float
    width: float

    @classmethod
    def of(cls, lon: NDArray[np.float64], lat: NDArray[np.float64]) -> "View":
        """The view that shows all these places; the whole world if there are none."""
        is_known = ~np.isnan(lon + lat)
        if not is_known.any():
            return cls(0.0, 0.0, 360.0)
        west, east = float(lon[is_known].min()), float(lon[is_known].max())
        south, north = float(lat[is_known].min()), float(lat[is_known].max())
        middle = (south + north) / 2
        height = (north - south) / max(math.cos(math.radians(middle)), 0.1)
        return cls((west + east) / 2, middle, max(east - west, height, 1e-3))

    @property
    def zoom(self) -> float:
        """Zoom at which all of it fits a screen."""
        return _clipped(math.log2(360 * _SCREEN / (_WORLD * self.width)))

    def zoom_for(self, n_areas: int) -> float:
        """Zoom at which this number of areas, evenly spread, can be told apart."""
        spacing = self.width / math.sqrt(max(n_areas, 1))
        return _clipped(math.log2(360 * _APART / (_WORLD * spacing)))


def _clipped(zoom: float) -> float:
    return round(min(max(zoom, _FARTHEST), _NEAREST), 2)
