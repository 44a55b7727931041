"""A made-up country of any size, for the demo, tests and benchmarks.

A nested gravity model with given totals of both ends, which are heavy-tailed, as real ones are.
People look for a job in their own finest area first, then in ever larger surroundings, up to the
whole country; in each they take one of the free jobs at random, so that areas attract in proportion
to the jobs they have. The cost is a few steps per trip, so census sections of a whole country take
seconds.

Exact and approximate parts:

- the number of trips that start in each area and that end in it are exactly as given;
- the share of trips that stay within the same area of each level is `SURROUNDINGS` in
  expectation, as far as there are jobs: people who find none nearby go further.

The trips are made up, and the random numbers are unfit for privacy.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inftda.errors import InftdaError
from inftda.planning.stand_in import share_that_stays
from inftda.tree.hierarchy import Hierarchy
from inftda.util.kernels import kernel
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


def match_trips(
    areas: Hierarchy,
    residents: NDArray[np.int64],
    jobs: NDArray[np.int64],
    random: np.random.Generator,
    progress: Progress | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """Give everybody one of the jobs, near home if there is one.

    From the finest level up: in each area some of those who still look get a free job in it;
    at last, in the whole country, all who are left.

    Args:
        areas: the areas of both ends.
        residents: trips that start in each finest area.
        jobs: trips that end there; their sum is that of the residents.
        random: source of random numbers.
        progress: called with the name of the level, trips made so far and total trips.

    Returns:
        Made-up flows between finest areas: where they start, ascending, where they end, and how
        many trips each has.
    """
    n, trips = len(residents), int(residents.sum())
    people = np.repeat(np.arange(n, dtype=np.int32), residents)
    vacancies = np.repeat(np.arange(n, dtype=np.int32), jobs)
    pair = np.empty(trips, np.int64)
    state = random.integers(1, 2**63, 1, dtype=np.uint64)
    looking, free, done = residents, jobs, 0
    for level in range(areas.depth, -1, -1):
        if level < areas.depth:
            first = areas.child_offsets(level)[:-1]
            looking, free = np.add.reduceat(looking, first), np.add.reduceat(free, first)
        stay = share_that_stays(level, areas.depth)
        found = np.minimum(random.binomial(looking, stay), free)
        match_kernel(people, vacancies, looking, free, found, state, pair[done:])
        looking, free, done = looking - found, free - found, done + int(found.sum())
        if progress is not None:
            progress(areas.level_name(level), done, trips)
    distinct, count = np.unique(pair, return_counts=True)
    origin, destination = distinct >> 32, distinct & 0xFFFFFFFF
    return origin.astype(np.int32), destination.astype(np.int32), count


def apportion(weights: NDArray[np.integer | np.floating], total: int) -> NDArray[np.int64]:
    """Whole numbers in proportion to the weights that sum up to `total`: largest remainders.

    >>> apportion(np.array([1, 1, 2]), 10).tolist()
    [3, 2, 5]
    """
    share = np.asarray(weights * (total / weights.sum(dtype=np.float64)))
    whole: NDArray[np.int64] = np.floor(share).astype(np.int64)
    missing = total - int(whole.sum())
    whole[np.argsort(whole - share, kind="stable")[: max(missing, 0)]] += 1
    # A share that was rounded up to the next whole number can make one too many.
    for _ in range(-missing):
        whole[np.argmax(whole)] -= 1
    return whole


@kernel
def match_kernel(  # noqa: PLR0913, PLR0917 - a kernel takes plain arrays
    people: NDArray[np.int32],
    vacancies: NDArray[np.int32],
    looking: NDArray[np.int64],
    free: NDArray[np.int64],
    found: NDArray[np.int64],
    state: NDArray[np.uint64],
    pair: NDArray[np.int64],
) -> None:
    """Give some of the people of each area one of the free jobs in it, at random.

    `people` and `vacancies` are homes of those who look and places of free jobs, area by area;
    those that are left move to the front. `looking`, `free` and `found` are how many look, are
    free and are to be matched in each area. `state` is that of the random numbers, not 0.
    Written to `pair`: home * 2^32 + area of the job.
    """
    at_people, at_vacancies, left_people, left_vacancies, done = 0, 0, 0, 0, 0
    for area in range(looking.size):
        for i in range(found[area]):
            _draw_to_front(people, at_people, i, looking[area], state)
            _draw_to_front(vacancies, at_vacancies, i, free[area], state)
            pair[done] = (np.int64(people[at_people + i]) << 32) | vacancies[at_vacancies + i]
            done += 1
        for i in range(found[area], looking[area]):
            people[left_people] = people[at_people + i]
            left_people += 1
        for i in range(found[area], free[area]):
            vacancies[left_vacancies] = vacancies[at_vacancies + i]
            left_vacancies += 1
        at_people += looking[area]
        at_vacancies += free[area]


@kernel
def _draw_to_front(
    values: NDArray[np.int32], start: int, i: int, size: int, state: NDArray[np.uint64]
) -> None:
    """Swap a random one of values[start + i : start + size] to index i; xorshift64."""
    z = state[0]
    z ^= z << np.uint64(13)
    z ^= z >> np.uint64(7)
    z ^= z << np.uint64(17)
    state[0] = z
    # Multiply-shift: each index is off by less than 2^-32, good enough for made-up data.
    chosen = i + np.int64(((z >> np.uint64(32)) * np.uint64(size - i)) >> np.uint64(32))
    values[start + i], values[start + chosen] = values[start + chosen], values[start + i]
