"""A made-up country of any size, for the demo, tests and benchmarks.

A nested gravity model with both margins given. People look for a job in their own finest area
first, then in ever larger surroundings, up to the whole country; in each they take one of the
free jobs at random, so that areas attract in proportion to the jobs they have. Margins are
heavy-tailed, as real ones are. The cost is a few steps a trip, so census sections of a whole
country take seconds.

What is exact and what is not:

- the number of trips that start in each area is exactly its number of residents, and the
  number that end there exactly its number of jobs, if the margins given are whole numbers;
  relative weights are turned into whole numbers less than 1 away from their share;
- the share of trips that stay within the same area of each level is `SURROUNDINGS` in
  expectation, as far as there are jobs: who finds none nearby goes further, so where homes and
  jobs are far apart trips are longer.

Nothing here is anybody's data, and its random numbers are unfit for privacy.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inftda.compiled import kernel
from inftda.errors import InftdaError
from inftda.hierarchy import Hierarchy

#: Names of levels from coarse to fine; the first ones are used.
LEVEL_NAMES = ("region", "province", "municipality", "district", "section")
#: Share of the trips that stay in an area of level 0 (the country), 1, 2, ... but not in a finer
#: one; the finest level takes what is left.
SURROUNDINGS = (0.004, 0.02, 0.33, 0.31, 0.22, 0.116)
#: Exponent of the heavy tail of sizes: the largest town holds a few per cent of the people.
TAIL = 1.3

Progress = Callable[[str, int, int], None]


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


def make_country(  # noqa: PLR0913 - a country has many sides
    sizes: Sequence[int] = (5, 25, 300),
    trips: int | None = None,
    *,
    seed: int = 1,
    areas: Hierarchy | None = None,
    residents: NDArray[np.integer | np.floating] | None = None,
    jobs: NDArray[np.integer | np.floating] | None = None,
    progress: Progress | None = None,
) -> Country:
    """Make a country.

    Args:
        sizes: number of areas of each level, coarse to fine.
        trips: number of trips; by default the number of residents if they are given as whole
            numbers, else 250,000.
        seed: same seed, same country.
        areas: areas that exist already; `sizes` are not looked at then.
        residents: trips that start in each finest area (depth-first): whole numbers that sum
            up to `trips`, which are kept exactly, or anything else, which is taken as relative
            weights. Made up if not given.
        jobs: likewise, trips that end there.
        progress: called with the name of the level, trips made so far and trips in all.

    Raises:
        InftdaError: sizes, trips or margins make no sense.
    """
    random = np.random.default_rng(seed)
    areas = nested_areas(sizes, random) if areas is None else areas
    n = areas.n_areas(areas.depth)
    people = _sizes(n, random) if residents is None else _checked("residents", residents, n)
    attraction = people * _spread_of_jobs(n, random) if jobs is None else _checked("jobs", jobs, n)
    if trips is None:
        trips = int(people.sum()) if np.issubdtype(people.dtype, np.integer) else 250_000
    if not 1 <= trips < 2**31:
        raise InftdaError(f"trips must be from 1 up and below 2^31, got {trips}")
    start, end = apportion(people, trips), apportion(attraction, trips)
    pair = _match(areas, start, end, random, progress)
    pair.sort()
    distinct = int(np.count_nonzero(pair[1:] != pair[:-1])) + 1
    origin, destination = np.empty((2, distinct), np.int32)
    count = np.zeros(distinct, np.int64)
    count_runs_kernel(pair, origin, destination, count)
    return Country(areas, origin, destination, count)


def apportion(weights: NDArray[np.integer | np.floating], total: int) -> NDArray[np.int64]:
    """Whole numbers in proportion to the weights that sum up to `total`: largest remainders.

    >>> apportion(np.array([1, 1, 2]), 10).tolist()
    [3, 2, 5]
    """
    if np.issubdtype(weights.dtype, np.integer) and int(weights.sum()) == total:
        return np.asarray(weights, np.int64)
    share = np.asarray(weights * (total / weights.sum(dtype=np.float64)))
    whole: NDArray[np.int64] = np.floor(share).astype(np.int64)
    missing = total - int(whole.sum())
    whole[np.argsort(whole - share, kind="stable")[: max(missing, 0)]] += 1
    # A share that was rounded up to the next whole number can make one too many.
    for _ in range(-missing):
        whole[np.argmax(whole)] -= 1
    return whole


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


def _spread_of_jobs(n: int, random: np.random.Generator) -> NDArray[np.float64]:
    """Jobs for each resident: about one, with few areas that have many."""
    return np.sqrt(_sizes(n, random))


def _checked(
    name: str, margin: NDArray[np.integer | np.floating], n: int
) -> NDArray[np.integer | np.floating]:
    if margin.shape != (n,):
        raise InftdaError(
            f"{name} must be one number for each of the {n:,} finest areas, got {margin.shape}"
        )
    if not (np.isfinite(margin).all() and (margin >= 0).all() and margin.any()):
        raise InftdaError(f"{name} must be numbers from 0 up, not all of them 0")
    return margin


def _match(
    areas: Hierarchy,
    residents: NDArray[np.int64],
    jobs: NDArray[np.int64],
    random: np.random.Generator,
    progress: Progress | None,
) -> NDArray[np.int64]:
    """One number origin * 2^32 + destination for each trip, in no order.

    From the finest level up: in each area some of those who still look get a free job in it;
    at last, in the whole country, all who are left.
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
        found = np.minimum(random.binomial(looking, _stay(level, areas.depth)), free)
        match_kernel(people, vacancies, looking, free, found, state, pair[done:])
        looking, free, done = looking - found, free - found, done + int(found.sum())
        if progress is not None:
            progress(areas.level_name(level), done, trips)
    return pair


def _stay(level: int, depth: int) -> float:
    """Share of those who look for a job in an area of this level that take one there."""
    shares = list(SURROUNDINGS[:depth]) + [0.0] * max(0, depth - len(SURROUNDINGS))
    shares.append(1.0 - sum(shares))
    return 1.0 if level == 0 else shares[level] / sum(shares[: level + 1])


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

    Args:
        people: int32, home of those who look, area by area; who is left moves to the front.
        vacancies: int32, where the free jobs are, area by area; likewise.
        looking: int64[areas], how many look in each area.
        free: int64[areas], how many jobs are free in it.
        found: int64[areas], how many are to be matched; at most as many as either.
        state: uint64[1], of the random numbers, not 0; changed.
        pair: int64, written from the front: home * 2^32 + area of the job.
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


@kernel
def count_runs_kernel(
    pair: NDArray[np.int64],
    origin: NDArray[np.int32],
    destination: NDArray[np.int32],
    count: NDArray[np.int64],
) -> None:
    """Origin, destination and number of trips of each distinct pair.

    Args:
        pair: int64, sorted: origin * 2^32 + destination.
        origin: int32, written, one for each distinct pair.
        destination: int32, likewise.
        count: int64, likewise; all 0 before.
    """
    run = -1
    for i in range(pair.size):
        if i == 0 or pair[i] != pair[i - 1]:
            run += 1
            origin[run], destination[run] = pair[i] >> 32, pair[i] & 0xFFFFFFFF
        count[run] += 1
