"""Trips matched to their surroundings: a nested gravity model with both totals given.

People look for a job in their own finest area first, then in ever larger surroundings, up to
the whole country; in each they take one of the free jobs at random, so that areas attract in
proportion to the jobs they have. The cost is a few steps per trip, so census sections of a whole
country take seconds.

Exact and approximate parts:

- the number of trips that start in each area and that end in it are exactly as given;
- the share of trips that stay within the same area of each level is `SURROUNDINGS` in
  expectation, as far as there are jobs: people who find none nearby go further.

The trips are made up, and the random numbers are unfit for privacy.
"""

import numpy as np
from numpy.typing import NDArray

from inftda.tree.hierarchy import Hierarchy
from inftda.util.kernels import kernel
from inftda.util.screen import Progress

#: Share of the trips that stay in an area of level 0 (the country), 1, 2, ... but not in a finer
#: one; the finest level takes what is left.
SURROUNDINGS = (0.004, 0.02, 0.33, 0.31, 0.22, 0.116)


def match_trips(  # noqa: PLR0913 - what a model is made of
    areas: Hierarchy,
    residents: NDArray[np.int64],
    jobs: NDArray[np.int64],
    random: np.random.Generator,
    progress: Progress | None = None,
    *,
    is_home_first: bool = True,
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
        is_home_first: whether people look in their own finest area first.

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
        if level == areas.depth and level and not is_home_first:
            stay = 0.0
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


def share_that_stays(level: int, depth: int) -> float:
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
