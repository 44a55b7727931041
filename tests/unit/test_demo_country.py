"""The made-up country: margins exact, surroundings as stated, any size."""

import numpy as np
import pytest

from inftda.demo import Country, apportion, make_country, match_trips, nested_areas
from inftda.planning.stand_in import SURROUNDINGS
from inftda.tree.hierarchy import Hierarchy

AREAS = Hierarchy.read(
    {
        "region": ["N"] * 4 + ["S"] * 2,
        "province": ["a", "a", "b", "b", "c", "c"],
        "town": ["1", "2", "3", "4", "5", "6"],
    }
)


def country_of(residents, jobs, *, areas=AREAS, seed=1):
    """A country with as many trips from and to each area as given."""
    random = np.random.default_rng(seed)
    return Country(areas, *match_trips(areas, residents, jobs, random))


def margins(country):
    n = country.areas.n_areas(country.areas.depth)
    start = np.bincount(country.origin, country.count, n).astype(int)
    end = np.bincount(country.destination, country.count, n).astype(int)
    return start, end


def staying(country, level):
    """Share of the trips that stay within one area of the level."""
    area = country.areas.ancestor(country.areas.depth, level)
    stays = area[country.origin] == area[country.destination]
    return country.count[stays].sum() / country.count.sum()


@pytest.mark.parametrize("seed", range(3))
def test_trips_stay_in_their_surroundings_as_stated_where_jobs_are_at_home(seed):
    sizes, trips = (4, 20, 200), 400_000
    areas = nested_areas(sizes, np.random.default_rng(seed))
    even = np.full(200, trips // 200)
    country = country_of(even, even, areas=areas, seed=seed)
    # With as many jobs as people everywhere nobody has to go further than planned, and in an
    # area of k towns 1 in k jobs is in the town one lives in: on average areas / towns of them.
    within = [*SURROUNDINGS[:3], 1 - sum(SURROUNDINGS[:3])]
    expected = sum(w * n / 200 for w, n in zip(within, (1, 4, 20, 200), strict=True))
    assert abs(staying(country, 3) - expected) < 6 * (0.25 / trips) ** 0.5
    for level in (1, 2):
        assert staying(country, level) > 1 - sum(SURROUNDINGS[:level])


def test_who_finds_no_job_nearby_goes_further():
    residents, jobs = np.array([100, 0, 0, 0, 0, 0]), np.array([0, 0, 0, 0, 0, 100])
    country = country_of(residents, jobs)
    assert country.count.tolist() == [100]
    assert (country.origin[0], country.destination[0]) == (0, 5)


def test_flows_are_distinct_ascending_and_sum_up():
    country = make_country((5, 25, 300), 50_000)
    pair = country.origin.astype(np.int64) * 300 + country.destination
    assert (np.diff(pair) > 0).all()
    assert country.count.min() > 0
    assert country.count.sum() == 50_000
    table = country.flows()
    assert table.column_names == ["origin", "destination", "count"]
    assert table.column("origin")[0].as_py() == "001"


@pytest.mark.parametrize("seed", range(20))
def test_apportioned_numbers_sum_up_and_are_near_their_share(seed):
    random = np.random.default_rng(seed)
    weights = random.pareto(0.8, 40) * (random.random(40) < 0.7)
    weights[0] = 1.0
    total = int(random.integers(1, 10**6))
    whole = apportion(weights, total)
    assert whole.sum() == total
    assert np.abs(whole - total * weights / weights.sum()).max() < 1 + 1e-6
    assert (whole[weights == 0] == 0).all()
    assert apportion(np.array([0.1, 0.1, 0.1]) * 3, seed + 1).sum() == seed + 1, "shares round up"
