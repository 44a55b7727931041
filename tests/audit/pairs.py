"""Neighbouring tables that are hardest to keep apart from one another, for every unit.

Two tables of trips between the same public areas, as arrays over origin and destination. With
large counts in all cells nothing is clipped at 0, so that the release gives away as much as it
can; with empty cells the opposite is tried.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inftda.privacy.unit import Unit

Areas = dict[str, list[str]]

#: Trips in every cell that is not empty: far from 0 for all the noise there is.
FULL: Final = 1000


@dataclass(frozen=True)
class Pair:
    """Two neighbouring tables.

    Attributes:
        name: what one person did.
        unit: of privacy.
        origins: columns of areas, coarse to fine.
        destinations: likewise.
        left: int64[origins, destinations], trips of one table.
        right: likewise of its neighbour.
    """

    name: str
    unit: Unit
    origins: Areas
    destinations: Areas
    left: NDArray[np.int64]
    right: NDArray[np.int64]

    @property
    def codes(self) -> tuple[list[str], list[str]]:
        """Of the finest areas: origins and destinations."""
        return list(self.origins.values())[-1], list(self.destinations.values())[-1]

    @property
    def n_cells(self) -> int:
        """Number of possible pairs of areas."""
        return self.left.size

    @property
    def order(self) -> list[str]:
        """Destination and origin in turn, from coarse to fine."""
        depths = {"destination": len(self.destinations), "origin": len(self.origins)}
        deepest = max(depths.values())
        return [axis for level in range(deepest) for axis in depths if level < depths[axis]]

    @property
    def n_splitting(self) -> int:
        """Number of levels at which something is split."""
        return sum(
            len(set(finer)) > len(set(coarser))
            for areas in (self.origins, self.destinations)
            for coarser, finer in zip([["all"], *areas.values()], areas.values(), strict=False)
        )

    def table(self, counts):
        """One side as a custodian would hold it: origin, destination, count; no empty rows."""
        origin, destination = np.nonzero(counts)
        return pa.table(self.ends(origin, destination) | {"count": counts[origin, destination]})

    def ends(self, origin, destination):
        """Columns of codes, from numbers of areas."""
        origins, destinations = self.codes
        return {
            "origin": labelled(origin, origins),
            "destination": labelled(destination, destinations),
        }


def labelled(numbers, codes):
    """Codes by their numbers."""
    return pa.DictionaryArray.from_arrays(pa.array(numbers.astype(np.int32)), pa.array(codes))


def nested(**sizes):
    """Areas nested in areas: the number of parts at each level, coarse to fine."""
    paths = [()]
    for name, size in sizes.items():
        paths = [
            (*path, f"{path[-1] if path else name[0]}.{part}")
            for path in paths
            for part in range(size)
        ]
    return {name: [path[level] for path in paths] for level, name in enumerate(sizes)}


HERE: Final = nested(area=1)
FLAT: Final = nested(area=5)
TOWNS: Final = nested(region=2, town=3)
SECTIONS: Final = nested(region=2, province=3, municipality=3, section=3)


def _pair(name, unit, origins, destinations, *, left=(), right=(), others=FULL, empty=()):
    """Everybody else's trips fill all cells; one person's are (origin, destination) pairs."""
    shape = len(list(origins.values())[-1]), len(list(destinations.values())[-1])
    sides = []
    for trips in (left, right):
        counts = np.full(shape, others, np.int64)
        for cell in empty:
            counts[cell] = 0
        for trip in trips:
            counts[trip] += 1
        sides.append(counts)
    return Pair(name, unit, origins, destinations, *sides)


MOVED: Final = {"left": [(0, 0)], "right": [(1, 1)]}
ONE: Final = Unit()
ADDED: Final = Unit("add-remove")
#: Trips of one person in units of several.
_M: Final = 3
_PILED: Final = {"left": [(0, 0)] * _M}
_PILED_ELSEWHERE: Final = _PILED | {"right": [(1, 1)] * _M}
_REPEATED: Final = Unit(trips=_M)
_AT_MOST: Final = Unit(trips=_M, exactly=False)
_REPEATED_ADDED: Final = Unit("add-remove", _M)
#: All pairs of towns of region 0, and all of region 1.
_IN_ONE_REGION: Final = [(origin, destination) for origin in range(3) for destination in range(3)]
_IN_ANOTHER_REGION: Final = [(origin + 3, other + 3) for origin, other in _IN_ONE_REGION]
_DISTINCT: Final = Unit(trips=len(_IN_ONE_REGION), distinct=True)
_DISTINCT_ADDED: Final = Unit("add-remove", len(_IN_ONE_REGION), distinct=True)

PAIRS: Final = {
    pair.name: pair
    for pair in (
        _pair("both ends moved", ONE, FLAT, FLAT, **MOVED),
        _pair("moved within a municipality", ONE, HERE, SECTIONS, left=[(0, 0)], right=[(0, 1)]),
        _pair("moved across provinces", ONE, HERE, SECTIONS, left=[(0, 0)], right=[(0, 9)]),
        _pair("moved across regions", ONE, HERE, SECTIONS, left=[(0, 0)], right=[(0, 27)]),
        _pair("moved to an empty cell", ONE, FLAT, FLAT, **MOVED, empty=[(1, 1)]),
        _pair("the only trip moved", ONE, FLAT, FLAT, **MOVED, others=0),
        _pair("one trip added", ADDED, FLAT, FLAT, left=[(0, 0)]),
        _pair("one trip or none", Unit(exactly=False), FLAT, FLAT, left=[(0, 0)]),
        _pair("piled on one pair, added", _REPEATED_ADDED, FLAT, FLAT, **_PILED),
        _pair(
            "distinct in one region pair, added", _DISTINCT_ADDED, TOWNS, TOWNS,
            left=_IN_ONE_REGION,
        ),
        _pair("piled on one pair, replaced", _REPEATED, FLAT, FLAT, **_PILED_ELSEWHERE),
        _pair(
            "distinct in one region pair, replaced", _DISTINCT, TOWNS, TOWNS,
            left=_IN_ONE_REGION, right=_IN_ANOTHER_REGION,
        ),
        _pair("at most, replaced by none", _AT_MOST, FLAT, FLAT, **_PILED),
        _pair("at most, replaced by others", _AT_MOST, FLAT, FLAT, **_PILED_ELSEWHERE),
        _pair("piled on an empty cell, added", _REPEATED_ADDED, FLAT, FLAT, **_PILED, others=0),
        _pair(
            "distinct empty cells, added", _DISTINCT_ADDED, TOWNS, TOWNS, left=_IN_ONE_REGION,
            others=0,
        ),
    )
}  # fmt: skip

#: One level, and the two areas are parts of the same: nothing of the noise is optimised away.
ONE_LEVEL: Final = _pair(
    "moved between parts of one area", ONE, HERE, FLAT, left=[(0, 0)], right=[(0, 1)]
)
#: Totals of origins are of a short axis and much better than the tree's own: sums agree with them.
SHORT_ORIGINS: Final = _pair("moved between few origins", ONE, FLAT, nested(area=24), **MOVED)
#: One trip moved to another region at both ends: every level and every off-tree table tells.
BETWEEN_REGIONS: Final = _pair(
    "moved between regions", ONE, TOWNS, TOWNS, left=[(0, 0)], right=[(4, 4)]
)
#: Nobody but one person travels from or to area 0.
ALONE_IN_AN_AREA: Final = _pair(
    "alone in an area, added", ADDED, FLAT, FLAT, left=[(0, 0)],
    empty=[(0, area) for area in range(5)] + [(area, 0) for area in range(5)],
)  # fmt: skip
#: A person with far more trips than one, of which one is to be counted.
FAR_TOO_MANY_TRIPS: Final = _pair(
    "200 trips of one person, bounded to 1", ADDED, FLAT, FLAT, left=[(0, 0)] * 200, others=4
)


def derived_areas(pair, counts):
    """Areas as they must not be made: those that occur in the trips."""

    def only(areas, kept):
        return {
            name: [code for code, is_kept in zip(codes, kept, strict=True) if is_kept]
            for name, codes in areas.items()
        }

    return only(pair.origins, counts.any(axis=1)), only(pair.destinations, counts.any(axis=0))


def table_of_people(pair, counts):
    """One row for each trip; what one side has more than the other is one person's."""
    others = np.minimum(pair.left, pair.right).ravel()
    rows = np.repeat(np.arange(pair.n_cells), counts.ravel())
    number_in_cell = np.arange(len(rows)) - np.repeat(
        np.cumsum(counts.ravel()) - counts.ravel(), counts.ravel()
    )
    person = np.where(number_in_cell < others[rows], np.arange(len(rows)), -1)
    return pa.table({"person": person} | pair.ends(*np.divmod(rows, counts.shape[1])))
