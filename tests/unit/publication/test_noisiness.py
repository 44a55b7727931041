"""Levels that are mostly noise, told from the release alone."""

import numpy as np
import pytest

from inftda import SeededSource, release
from inftda.demo import make_country
from inftda.publication.reliability import ENOUGH, LevelUse, grades, is_drowned, smallest_usable

BUDGET = {"epsilon": 1, "delta": 1e-8, "source": SeededSource(5)}


def released(sizes, trips, **options):
    country = make_country(sizes, trips, seed=3)
    return release(country.flows(), country.areas, **BUDGET, **options)


@pytest.fixture(scope="module")
def sparse():
    """20,000 trips between 300 towns: far less than one for each pair."""
    return released((4, 24, 300), 20_000)


def test_what_is_said_of_a_level_follows_from_the_intervals_of_its_numbers(sparse):
    tree, (areas, flow) = sparse.tree, sparse.leaves()
    assert [one.level for one in sparse.uses] == list(tree.splitting_levels)
    for one in sparse.uses:
        cells, value = one.level.sum_up(areas, flow)
        found = sparse.intervals().of(one.level.depths, cells, value)
        is_poor = np.array(grades(value, *found).to_pylist()) == "D"
        assert one.n_published == len(value)
        used = value >= one.smallest
        assert (one.n_used, one.share) == (used.sum(), value[used].sum() / value.sum())
        for n in np.unique(value[used]):
            here = (value >= n) & (value <= 2 * n)
            assert is_poor[here].mean() <= 0.05
        below = value[~used]
        if len(below):
            here = (value >= below.max()) & (value <= 2 * below.max())
            assert is_poor[here].mean() > 0.05, "or the count were smaller"


def test_nothing_is_known_of_levels_whose_measurements_are_not_published():
    made = released((3, 6, 12), 2_000, measurements="totals")
    for one in made.uses:
        assert (one.is_known, one.smallest, one.is_all, one.size) == (
            False, None, False, "not known",
        )  # fmt: skip
        assert one.describe().endswith("is not known: the measurements are not published")


def test_a_sparse_table_is_called_noise_at_its_finest_level_only_if_it_is(sparse):
    names = [use.level.name for use in sparse.uses if use.is_mostly_noise]
    assert names[-1] == "municipality > municipality"
    assert "region > region" not in names
    assert sparse.uses[-1].describe().endswith("smaller ones are mostly noise")
    assert not any(use.is_mostly_noise for use in released((3, 6, 12), 2_000_000).uses)


def use(*, n_published, noise_share=0.0, smallest=92, n_used=1, share=0.829):
    level = released((3,), 100).tree.levels[-1]
    return LevelUse(level, "flows", "people", smallest, n_used, share, n_published, noise_share)


def test_nothing_is_said_of_few_numbers():
    assert use(n_published=ENOUGH, noise_share=0.51).is_mostly_noise
    assert not use(n_published=ENOUGH, noise_share=0.5).is_mostly_noise
    assert not use(n_published=ENOUGH - 1, noise_share=1.0).is_mostly_noise


def test_what_is_said_of_a_level():
    assert use(n_published=100).describe() == (
        "flows of 92 or more are usable (82 % of all people); smaller ones may be noise"
    )
    assert use(n_published=100, noise_share=0.9).describe().endswith("are mostly noise")
    assert "less than 1 % of all people" in use(n_published=100, share=0.009).describe()
    assert use(n_published=5, n_used=5).describe() == "all flows are usable"
    assert use(n_published=100, smallest=None, n_used=0).describe() == (
        "no flows are large enough to be usable; they may be noise"
    )


def smallest_slowly(number, is_poor):
    """The same by its definition, for every n."""

    def is_wrong(n):
        poor = is_poor[(number >= n) & (number <= 2 * n)]
        return len(poor) and np.mean(poor) > 0.05

    wrong = [n for n in range(1, max(number) + 2) if is_wrong(n)]
    smallest = max(wrong) + 1 if wrong else min(number)
    return smallest if smallest <= max(number) else None


@pytest.mark.parametrize("seed", range(20))
def test_the_smallest_usable_count_is_that_of_its_definition(seed):
    random = np.random.default_rng(seed)
    number = random.integers(1, 200, 150)
    is_poor = random.random(150) < 10 / number**1.2
    assert smallest_usable(number, is_poor) == smallest_slowly(number, is_poor)
    assert smallest_usable(number, np.ones(150, bool)) is None
    assert smallest_usable(number, np.zeros(150, bool)) == number.min()


def test_among_few_numbers_the_smallest_usable_count_need_not_be_published():
    number = np.array([40, 21_519])
    assert smallest_usable(number, number == 40) == 41


def test_before_a_release_the_mean_flow_decides():
    assert is_drowned(20_000, 1_000_000, 18.35)
    assert not is_drowned(20_000, 40_000, 18.35)
