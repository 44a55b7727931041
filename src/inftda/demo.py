"""A made-up country of any size, for the demo, tests and benchmarks.

The nested gravity model of `inftda.planning.nested_gravity` with given totals of both
ends, which are heavy-tailed, as real ones are. The trips are made up, and the random numbers are
unfit for privacy.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inftda.errors import InftdaError
from inftda.planning.nested_gravity import apportion, match_trips
from inftda.tree.hierarchy import Hierarchy
from inftda.util.screen import Progress

#: Names of levels from coarse to fine; the first ones are used.
LEVEL_NAMES = ("region", "province", "municipality", "district", "section")
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
    progress: Progress | None = None,
) -> Country:
    """Make a country.

    Args:
        sizes: number of areas of each level, coarse to fine.
        trips: number of trips.
        seed: same seed, same country.
        progress: called with the name of the level, trips made so far and trips in all.
    """
    random = np.random.default_rng(seed)
    areas = nested_areas(sizes, random)
    residents = _sizes(sizes[-1], random)
    # Jobs for each resident: about one, with few areas that have many.
    jobs = residents * np.sqrt(_sizes(sizes[-1], random))
    if not 1 <= trips < 2**31:
        raise InftdaError(f"trips must be from 1 up and below 2^31, got {trips}")
    start, end = apportion(residents, trips), apportion(jobs, trips)
    return Country(areas, *match_trips(areas, start, end, random, progress))


def nested_areas(sizes: Sequence[int], random: np.random.Generator) -> Hierarchy:
    """Areas of the given numbers, split unevenly; codes are digits, padded with zeros."""
    if not sizes or list(sizes) != sorted(sizes) or sizes[0] < 1:
        raise InftdaError(
            f"sizes must be numbers of areas from coarse to fine, none smaller than the one "
            f"before, got {list(sizes)}"
        )
    parents = [_spread(n, above, random) for above, n in zip([1, *sizes], sizes, strict=False)]
    of_leaf = np.arange(sizes[-1])
    columns: dict[str, pa.Array] = {}
    names: tuple[str, ...] = LEVEL_NAMES
    if len(sizes) > len(names):
        names = tuple(f"level{level}" for level in range(1, len(sizes) + 1))
    for name, n, parent in zip(names[: len(sizes)][::-1], sizes[::-1], parents[::-1], strict=True):
        codes = pa.array([f"{number:0{len(str(n))}d}" for number in range(1, n + 1)])
        columns[name] = codes.take(pa.array(of_leaf))
        of_leaf = parent[of_leaf]
    return Hierarchy.read(pa.table(dict(reversed(columns.items()))))


def _spread(n: int, parents: int, random: np.random.Generator) -> NDArray[np.intp]:
    """Parent of each of n areas: every parent has one, the rest goes to large parents."""
    weight = _sizes(parents, random)
    rest = random.choice(parents, n - parents, p=weight / weight.sum())
    return np.sort(np.concatenate([np.arange(parents), rest]))


def _sizes(n: int, random: np.random.Generator) -> NDArray[np.float64]:
    """Heavy-tailed positive weights, bounded so that no area is the whole country."""
    return np.minimum(random.pareto(TAIL, n) + 0.3, 50.0)
