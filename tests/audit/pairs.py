"""Neighbouring tables that are hardest to keep apart from one another, for every unit.

Two tables of trips between the same public areas, as arrays over origin and destination. With
large counts in all cells nothing is clipped at 0, so that the release gives away as much as it
can; with empty cells the opposite is tried.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Areas = dict[str, list[str]]

#: Trips in every cell that is not empty: far from 0 for all the noise there is.
FULL: Final = 1000
#: Trips of one person in units of several.
M: Final = 3


@dataclass(frozen=True)
class Pair:
    """Two neighbouring tables.

    Attributes:
        name: what one person did.
        unit: neighbours, trips, exactly and distinct, as `inftda.release` takes them.
        origins: columns of areas, coarse to fine.
        destinations: likewise.
        left: int64[origins, destinations], trips of one table.
        right: likewise of its neighbour.
    """

    name: str
    unit: dict[str, Any]
    origins: Areas
    destinations: Areas
    left: NDArray[np.int64]
    right: NDArray[np.int64]

    @cached_property
    def origin_codes(self) -> list[str]:
        """Of the finest areas."""
        return list(self.origins.values())[-1]

    @cached_property
    def destination_codes(self) -> list[str]:
        """Of the finest areas."""
        return list(self.destinations.values())[-1]

    @property
    def n_cells(self) -> int:
        """Number of possible pairs of areas."""
        return self.left.size

    @property
    def is_total_public(self) -> bool:
        """Whether the unit lets the number of trips be known."""
        return self.unit["neighbours"] == "substitute" and self.unit.get("exactly", True)

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

    def table(self, counts: NDArray[np.int64]) -> pa.Table:
        """One side as a custodian would hold it: origin, destination, count."""
        origin, destination = np.divmod(np.arange(self.n_cells), counts.shape[1])
        return pa.table(
            {
                "origin": labelled(origin, self.origin_codes),
                "destination": labelled(destination, self.destination_codes),
                "count": counts.ravel(),
            }
        )


def labelled(numbers: NDArray[np.integer[Any]], codes: Sequence[str]) -> pa.DictionaryArray:
    """Codes by their numbers."""
    return pa.DictionaryArray.from_arrays(pa.array(numbers.astype(np.int32)), pa.array(codes))


def nested(**sizes: int) -> Areas:
    """Areas nested in areas: the number of parts at each level, coarse to fine."""
    paths: list[tuple[str, ...]] = [()]
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

SUBSTITUTE: Final[dict[str, Any]] = {"neighbours": "substitute"}
ADD_REMOVE: Final[dict[str, Any]] = {"neighbours": "add-remove"}


def _pair(
    name: str,
    unit: dict[str, Any],
    origins: Areas,
    destinations: Areas,
    *,
    left: Sequence[tuple[int, int]] = (),
    right: Sequence[tuple[int, int]] = (),
    others: int = FULL,
) -> Pair:
    """Everybody else's trips fill all cells; one person's are (origin, destination) pairs."""
    shape = len(list(origins.values())[-1]), len(list(destinations.values())[-1])
    sides = []
    for trips in (left, right):
        counts = np.full(shape, others, np.int64)
        for trip in trips:
            counts[trip] += 1
        sides.append(counts)
    return Pair(name, unit, origins, destinations, sides[0], sides[1])


def _several(**unit: Any) -> dict[str, Any]:
    return {"trips": M, **unit}


PILED: Final = [(0, 0)] * M
PILED_ELSEWHERE: Final = [(1, 1)] * M
#: Different towns, but all between region 0 and region 0, and between region 1 and region 1.
IN_ONE_REGION_PAIR: Final = [(town, 0) for town in range(M)]
IN_ANOTHER_REGION_PAIR: Final = [(3 + town, 3) for town in range(M)]

ONE_TRIP: Final = {
    pair.name: pair
    for pair in (
        _pair("both ends moved", SUBSTITUTE, FLAT, FLAT, left=[(0, 0)], right=[(1, 1)]),
        _pair("moved within a municipality", SUBSTITUTE, HERE, SECTIONS, left=[(0, 0)], right=[(0, 1)]),
        _pair("moved across provinces", SUBSTITUTE, HERE, SECTIONS, left=[(0, 0)], right=[(0, 9)]),
        _pair("moved across regions", SUBSTITUTE, HERE, SECTIONS, left=[(0, 0)], right=[(0, 27)]),
        _pair("moved to an empty cell", SUBSTITUTE, FLAT, FLAT, left=[(0, 0)], right=[(1, 1)], others=0),
        _pair("one trip added", ADD_REMOVE, FLAT, FLAT, left=[(0, 0)]),
        _pair(
            "one trip or none", {"neighbours": "substitute", "exactly": False}, FLAT, FLAT,
            left=[(0, 0)],
        ),
    )
}  # fmt: skip
SEVERAL_TRIPS: Final = {
    pair.name: pair
    for pair in (
        _pair("piled on one pair, added", _several(**ADD_REMOVE), FLAT, FLAT, left=PILED),
        _pair(
            "distinct in one region pair, added", _several(**ADD_REMOVE, distinct=True),
            TOWNS, TOWNS, left=IN_ONE_REGION_PAIR,
        ),
        _pair(
            "piled on one pair, replaced", _several(**SUBSTITUTE), FLAT, FLAT,
            left=PILED, right=PILED_ELSEWHERE,
        ),
        _pair(
            "distinct in one region pair, replaced", _several(**SUBSTITUTE, distinct=True),
            TOWNS, TOWNS, left=IN_ONE_REGION_PAIR, right=IN_ANOTHER_REGION_PAIR,
        ),
        _pair(
            "at most, replaced by nobody's trips", _several(**SUBSTITUTE, exactly=False),
            FLAT, FLAT, left=PILED,
        ),
        _pair(
            "at most, replaced by others", _several(**SUBSTITUTE, exactly=False), FLAT, FLAT,
            left=PILED, right=PILED_ELSEWHERE,
        ),
        _pair(
            "piled on an empty cell, added", _several(**ADD_REMOVE), FLAT, FLAT,
            left=PILED, others=0,
        ),
        _pair(
            "distinct empty cells, added", _several(**ADD_REMOVE, distinct=True), TOWNS, TOWNS,
            left=IN_ONE_REGION_PAIR, others=0,
        ),
    )
}  # fmt: skip
PAIRS: Final = ONE_TRIP | SEVERAL_TRIPS
