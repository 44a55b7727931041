"""A made-up country of any size, for the demo, tests and benchmarks.

A nested gravity model: each trip starts where people live, stays within the same area of
some level (most trips are short), and inside it ends where there is most to go to. Sizes of
areas and attractions are heavy-tailed, as real ones are. The cost is one look-up a trip,
so census sections of a whole country take seconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inftda.errors import InftdaError
from inftda.hierarchy import Hierarchy

#: Names of levels from coarse to fine; the finest so many are used.
LEVEL_NAMES = ("region", "province", "municipality", "district", "section")
#: Share of the trips that stay in an area of level 0 (the country), 1, 2, ... and spread out
#: inside it; the finest level takes what is left.
SURROUNDINGS = (0.03, 0.07, 0.27, 0.33, 0.20, 0.10)
#: Exponent of the heavy tail of sizes: the largest town holds a few per cent of the people.
TAIL = 1.3


@dataclass(frozen=True)
class Country:
    """Public areas and confidential trips that never happened.

    Attributes:
        areas: the hierarchy.
        origin: int32, number of the finest area where each flow starts, ascending.
        destination: int32, where it ends.
        count: int64, its number of trips.
    """

    areas: Hierarchy
    origin: NDArray[np.int32]
    destination: NDArray[np.int32]
    count: NDArray[np.int64]

    def flows(self) -> pa.Table:
        """Flows with codes: origin, destination, count."""
        codes = self.areas.codes(self.areas.depth)
        return pa.table(
            {
                "origin": pa.DictionaryArray.from_arrays(pa.array(self.origin), codes),
                "destination": pa.DictionaryArray.from_arrays(pa.array(self.destination), codes),
                "count": self.count,
            }
        )


def make_country(
    sizes: Sequence[int] = (5, 25, 300),
    trips: int = 250_000,
    *,
    seed: int = 1,
    residents: NDArray[np.float64] | None = None,
    jobs: NDArray[np.float64] | None = None,
) -> Country:
    """Make a country.

    Args:
        sizes: number of areas of each level, coarse to fine.
        trips: number of trips.
        seed: same seed, same country.
        residents: relative number of trips that start in each finest area (depth-first).
        jobs: relative attraction of each finest area.
    """
    random = np.random.default_rng(seed)
    areas = nested_areas(sizes, random)
    n = areas.n_areas(areas.depth)
    people = _sizes(n, random) if residents is None else residents
    attraction = people * _sizes(n, random) if jobs is None else jobs
    origin = np.repeat(np.arange(n, dtype=np.int32), random.multinomial(trips, people / people.sum()))
    destination = _destinations(areas, origin, attraction, random)
    pair, count = np.unique(origin.astype(np.int64) * n + destination, return_counts=True)
    return Country(areas, (pair // n).astype(np.int32), (pair % n).astype(np.int32), count)


def nested_areas(sizes: Sequence[int], random: np.random.Generator) -> Hierarchy:
    """Areas of the given numbers, split unevenly; codes are digits, padded with zeros.

    Raises:
        InftdaError: a level has fewer areas than the one above, or there are no levels.
    """
    if not sizes or list(sizes) != sorted(sizes) or sizes[0] < 1:
        raise InftdaError(
            f"sizes must be numbers of areas from coarse to fine, none smaller than the one "
            f"before, got {list(sizes)}"
        )
    parents = [_spread(n, above, random) for above, n in zip([1, *sizes], sizes, strict=False)]
    of_leaf = np.arange(sizes[-1])
    columns: dict[str, pa.Array] = {}
    names = LEVEL_NAMES if len(sizes) <= len(LEVEL_NAMES) else _numbered(len(sizes))
    for name, n, parent in zip(names[: len(sizes)][::-1], sizes[::-1], parents[::-1], strict=True):
        columns[name] = _codes(n).take(pa.array(of_leaf))
        of_leaf = parent[of_leaf]
    return Hierarchy.read(pa.table(dict(reversed(columns.items()))))


def _numbered(depth: int) -> tuple[str, ...]:
    return tuple(f"level{level}" for level in range(1, depth + 1))


def _spread(n: int, parents: int, random: np.random.Generator) -> NDArray[np.intp]:
    """Parent of each of n areas: every parent has one, the rest goes to large parents."""
    weight = _sizes(parents, random)
    rest = random.choice(parents, n - parents, p=weight / weight.sum())
    return np.sort(np.concatenate([np.arange(parents), rest]))


def _codes(n: int) -> pa.StringArray:
    width = len(str(n))
    return pa.array([f"{number:0{width}d}" for number in range(1, n + 1)], pa.string())


def _sizes(n: int, random: np.random.Generator) -> NDArray[np.float64]:
    """Heavy-tailed positive weights, bounded so that no area is the whole country."""
    return np.minimum(random.pareto(TAIL, n) + 0.3, 50.0)


def _destinations(
    areas: Hierarchy,
    origin: NDArray[np.int32],
    attraction: NDArray[np.float64],
    random: np.random.Generator,
) -> NDArray[np.int32]:
    """Where each trip ends: inside the origin's area of a random level, by attraction."""
    shares = np.cumsum(SURROUNDINGS[: areas.depth])
    level = np.searchsorted(shares, random.random(len(origin)), side="right").astype(np.int8)
    ladder = np.concatenate([[0.0], np.cumsum(attraction)])
    low, high = np.empty(len(origin)), np.empty(len(origin))
    for depth in range(areas.depth + 1):
        here = level == depth
        around = areas.ancestor(areas.depth, depth)[origin[here]]
        span = areas.descend(depth, areas.depth)
        low[here], high[here] = ladder[span[around]], ladder[span[around + 1]]
    point = low + random.random(len(origin)) * (high - low)
    found = np.searchsorted(ladder, point, side="right") - 1
    return np.clip(found, 0, len(attraction) - 1).astype(np.int32)
