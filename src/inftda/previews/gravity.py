"""A gravity model with given totals: flows fall off with distance, and sums come out right.

The expected flow from i to j is a_i b_j exp(-d_ij / decay), d the distance as the crow flies;
a and b are found by iterative proportional fitting, so that the totals are the given ones.
Rows are made one at a time and forgotten again: nothing of size areas x areas is kept.

Without a decay that somebody knows, the one that Lenormand, Huet, Gargiulo and Deffuant (2012)
found for commuting in several countries is taken: 0.3 S^-0.18 for each kilometre, S the mean
size of an area in square kilometres, here four times the squared mean distance to the next one.

Nothing here is anybody's data, and its random numbers are unfit for privacy.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from inftda.bars import Progress
from inftda.errors import InftdaError
from inftda.kernels import kernel
from inftda.previews.surroundings import Flows

_EARTH_KM: Final = 6371.0
#: Beyond this many decays an area is only looked at if there is nothing nearer.
_REACH: Final = 30.0
#: Rounds of fitting, and the part of all trips that may still be in the wrong place.
MAX_ROUNDS, CLOSE_ENOUGH = 40, 0.002
#: Kilometres from the centre of the earth (float64[n, 3]), length of a trip that stays (float64[n],
#: infinite if none may), decay, and how far is looked at.
Model = tuple[NDArray[np.float64], NDArray[np.float64], float, float]
#: Pairs beyond this number take minutes for each round.
MAX_AREAS: Final = 40_000


def gravity_flows(  # noqa: PLR0913 - what a model is made of
    out: NDArray[np.int64],
    into: NDArray[np.int64],
    lon: NDArray[np.floating],
    lat: NDArray[np.floating],
    random: np.random.Generator,
    *,
    decay: float | None = None,
    is_home_free: bool = True,
    progress: Progress | None = None,
) -> tuple[Flows, float]:
    """Whole flows with the given totals.

    Args:
        out: int64, trips that start in each area; kept exactly.
        into: int64, trips that end there, of the same sum; kept in expectation.
        lon: degrees of each area.
        lat: likewise.
        random: where chance comes from.
        decay: kilometres over which flows fall to a third (1 / e); a law of commuting by default.
        is_home_free: whether trips may end where they start.
        progress: called with what is done, rounds so far and rounds at most.

    Returns:
        The flows, and the decay.

    Raises:
        InftdaError: there are too many areas for distances.
    """
    n = len(out)
    if n > MAX_AREAS:
        raise InftdaError(
            f"a gravity model by distance is for {MAX_AREAS:,} areas at most, there are {n:,}; "
            "leave out the centroids"
        )
    place = _on_earth(lon, lat)
    nearest = np.empty(n)
    nearest_kernel(place, nearest)
    decay = decay or law_of_commuting(nearest)
    # A trip that stays is taken to be half as long as one to the next area.
    own = nearest / 2 if is_home_free else np.full(n, np.inf)
    model = (place, own, decay, _REACH * decay)
    row, sums = np.empty((2, n))
    start, pull = np.zeros(n), into.astype(np.float64)
    for done in range(MAX_ROUNDS):
        sums[:] = 0
        balance_kernel(model, out, pull, start, row, sums)
        if np.abs(sums - into).sum() <= CLOSE_ENOUGH * max(int(out.sum()), 1):
            break
        np.divide(pull * into, sums, out=pull, where=sums > 0)
        if progress is not None:
            progress("fitting", done + 1, MAX_ROUNDS)
    return _rounded(model, out, pull, row, random), decay


def law_of_commuting(nearest: NDArray[np.float64]) -> float:
    """Kilometres over which commuting falls to 1 / e, by the distances to the next area."""
    size = max(4 * float(nearest[np.isfinite(nearest)].mean()) ** 2, 1e-3)
    return float(1 / (0.3 * size**-0.18))


def _rounded(
    model: Model,
    out: NDArray[np.int64],
    pull: NDArray[np.float64],
    row: NDArray[np.float64],
    random: np.random.Generator,
) -> Flows:
    # Large enough for all; memory pages that are never written to cost nothing.
    room = int(np.minimum(out, len(out)).sum())
    origin, destination = np.empty((2, room), np.int32)
    count = np.empty(room, np.int64)
    offset = random.random(len(out))
    found = round_kernel(model, out, pull, row, offset, origin, destination, count)
    return Flows(origin[:found].copy(), destination[:found].copy(), count[:found].copy())


def _on_earth(lon: NDArray[np.floating], lat: NDArray[np.floating]) -> NDArray[np.float64]:
    """float64[n, 3]: kilometres from the centre of the earth."""
    east, north = np.radians(lon.astype(np.float64)), np.radians(lat.astype(np.float64))
    flat = np.cos(north)
    return _EARTH_KM * np.column_stack((flat * np.cos(east), flat * np.sin(east), np.sin(north)))


@kernel
def _distance(place: NDArray[np.float64], i: int, j: int) -> float:
    x, y, z = (place[i, 0] - place[j, 0], place[i, 1] - place[j, 1], place[i, 2] - place[j, 2])
    return float(np.sqrt(x * x + y * y + z * z))


@kernel
def nearest_kernel(place: NDArray[np.float64], nearest: NDArray[np.float64]) -> None:
    """Distance of each area to the next one at another place; written to `nearest`."""
    for i in range(nearest.size):
        least = np.inf
        for j in range(nearest.size):
            distance = _distance(place, i, j)
            if 0 < distance < least:
                least = distance
        nearest[i] = least


@kernel
def _fill_row(
    model: Model,
    pull: NDArray[np.float64],
    i: int,
    row: NDArray[np.float64],
) -> float:
    """Weights of all destinations of one origin; their sum."""
    place, own, decay, reach = model
    total = 0.0
    for j in range(row.size):
        distance = own[i] if i == j else _distance(place, i, j)
        row[j] = 0.0
        if distance <= reach:
            row[j] = pull[j] * np.exp(-distance / decay)
            total += row[j]
    return total


@kernel
def _row_of(
    model: Model,
    pull: NDArray[np.float64],
    i: int,
    row: NDArray[np.float64],
) -> float:
    """As above; where nothing attracts within reach, all areas attract equally."""
    total = _fill_row(model, pull, i, row)
    if total > 0:
        return total
    total = 0.0
    for j in range(row.size):
        row[j] = 0.0 if i == j and np.isinf(model[1][i]) else pull[j]
        total += row[j]
    return total


@kernel
def balance_kernel(  # noqa: PLR0913, PLR0917 - a kernel takes plain arrays
    model: Model,
    out: NDArray[np.int64],
    pull: NDArray[np.float64],
    start: NDArray[np.float64],
    row: NDArray[np.float64],
    sums: NDArray[np.float64],
) -> None:
    """One round of fitting: origins made right, destinations summed up.

    Args:
        model: places, and how attraction falls off.
        out: int64[n], trips that start.
        pull: float64[n], b of the destinations.
        start: float64[n], written: a of the origins.
        row: float64[n], work space.
        sums: float64[n], added to: expected trips that end.
    """
    for i in range(out.size):
        start[i] = 0.0
        if out[i] == 0:
            continue
        total = _row_of(model, pull, i, row)
        if total > 0:
            start[i] = out[i] / total
            for j in range(row.size):
                sums[j] += start[i] * row[j]


@kernel
def round_kernel(  # noqa: PLR0913, PLR0917 - a kernel takes plain arrays
    model: Model,
    out: NDArray[np.int64],
    pull: NDArray[np.float64],
    row: NDArray[np.float64],
    offset: NDArray[np.float64],
    origin: NDArray[np.int32],
    destination: NDArray[np.int32],
    count: NDArray[np.int64],
) -> int:
    """Expected flows as whole numbers: running sums of each origin are rounded down.

    So each flow is less than 1 from its expectation, is right in expectation, and the total of
    each origin is exact.

    Args:
        model: as above.
        out: as above.
        pull: as above.
        row: float64[n], work space.
        offset: float64[n], from 0 to 1: where the running sum of each origin begins.
        origin: int32, written, one for each flow.
        destination: int32, likewise.
        count: int64, likewise.

    Returns:
        Number of flows.
    """
    found = 0
    for i in range(out.size):
        if out[i] == 0:
            continue
        total = _row_of(model, pull, i, row)
        if total <= 0:
            continue
        scale, running, given = out[i] / total, offset[i], 0
        last = row.size - 1
        while row[last] == 0:
            last -= 1
        for j in range(last + 1):
            running += scale * row[j]
            # The last one takes what is left, whatever the sums were rounded by.
            here = out[i] - given if j == last else min(int(running), out[i]) - given
            if here > 0:
                origin[found], destination[found], count[found] = i, j, here
                found += 1
                given += here
    return found
