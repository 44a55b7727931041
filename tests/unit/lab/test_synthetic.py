"""The paper's synthetic data sets: its numbers, its law, any size."""

import numpy as np
import pytest

from inftda.errors import InftdaError
from inftda.lab.generators.synthetic import (
    EXPONENT,
    PAPER,
    Synthetic,
    _choose_pairs,
    make_synthetic,
    pareto_flows,
    pareto_scale,
    split_areas,
)

#: Users and pairs of the paper's table (its 95,612 for random dense is a slip).
TABLE = {
    "binary_complete": (1_051_271, 65_536),
    "binary_dense": (734_688, 32_768),
    "binary_sparse": (23_302, 655),
    "random_complete": (2_019_580, 189_225),
    "random_dense": (1_003_943, 94_612),
    "random_sparse": (67_840, 1_892),
}


@pytest.mark.parametrize("name", PAPER)
def test_pairs_are_the_papers_and_users_nearly_so(name):
    users, pairs = TABLE[name]
    data = make_synthetic(name)
    assert len(data.count) == pairs
    # The deviation of one flow is about 0.87 scales (variance 3/4 of the scale squared).
    noise = 0.87 * pareto_scale(users / pairs) * pairs**0.5
    assert abs(data.count.sum() - users) < 5 * noise


def test_binary_areas_are_halved_eight_times():
    areas = make_synthetic("binary_sparse").areas
    assert [areas.n_areas(level) for level in range(1, 9)] == [2**level for level in range(1, 9)]


def test_random_areas_are_those_of_the_paper_in_number():
    areas = make_synthetic("random_sparse").areas
    assert [areas.n_areas(level) for level in range(1, 5)] == [3, 13, 74, 435]


def test_random_areas_are_split_into_two_to_ten():
    areas = split_areas("random", 5, np.random.default_rng(2))
    children = np.concatenate([np.diff(areas.child_offsets(level)) for level in range(5)])
    assert set(children.tolist()) == set(range(2, 11))
    # All nine numbers are equally likely: chi-square with 8 degrees, far below p = 1e-6 at 45.
    expected = len(children) / 9
    chi2 = (((np.bincount(children)[2:] - expected) ** 2) / expected).sum()
    assert chi2 < 45


def test_all_data_sets_of_a_partition_have_the_same_areas():
    assert make_synthetic("random_sparse").areas == make_synthetic("random_dense").areas


def test_pairs_are_distinct_and_ascending():
    data = make_synthetic("random_dense")
    pair = data.origin.astype(np.int64) * 435 + data.destination
    assert (np.diff(pair) > 0).all()
    assert pair.max() < 435**2
    assert data.count.min() >= 1


def test_every_pair_is_as_likely_as_any_other(monkeypatch):
    # Blocks of two origins, so that the share of each block is drawn too.
    monkeypatch.setattr("inftda.lab.generators.synthetic.BLOCK", 16)
    hits = np.zeros((8, 8))
    rounds = 2_000
    random = np.random.default_rng(6)
    for _ in range(rounds):
        hits[_choose_pairs(8, 16, random, None)] += 1
    assert hits.sum() == rounds * 16
    # Each pair is hit binomial(2000, 1/4) times, and all together a fixed number of times:
    # chi-square with 63 degrees, beyond 151 or below 20 with p < 1e-8.
    chi2 = ((hits - rounds / 4) ** 2 / (rounds / 4 * 0.75)).sum() * 63 / 64
    assert 20 < chi2 < 151


def chi2_of_tail(flows, scale, exponent):
    """Chi-square of flows against rounded-up Pareto, in ten classes of equal odds."""
    edges = scale * (np.arange(10, 0, -1) / 10) ** (-1 / exponent) - scale
    edges = np.append(np.unique(np.floor(edges)), np.inf)
    odds = -np.diff((1 + edges / scale) ** -exponent)
    seen = np.histogram(flows, bins=np.append(edges[:-1] + 0.5, np.inf))[0]
    expected = odds * len(flows)
    return ((seen - expected) ** 2 / expected).sum()


def test_flows_follow_the_pareto_law_and_the_test_would_see_another():
    flows = pareto_flows(100_000, 16.04, np.random.default_rng(8))
    scale = pareto_scale(16.04)
    # 9 degrees of freedom: 46 is p < 1e-6.
    assert chi2_of_tail(flows, scale, EXPONENT) < 46
    assert chi2_of_tail(flows, scale * 1.05, EXPONENT) > 46
    assert chi2_of_tail(flows, scale, EXPONENT * 1.1) > 46


@pytest.mark.parametrize("mean", [2.0, 3.5, 16.0, 500.0])
def test_the_scale_gives_the_mean(mean):
    scale = pareto_scale(mean)
    k = np.arange(3_000_000)
    rest = scale / 2 * (1 + len(k) / scale) ** -2
    assert ((1 + k / scale) ** -3).sum() + rest == pytest.approx(mean, abs=0.005)


def test_another_seed_makes_other_flows_on_the_same_areas():
    one, same, other = (make_synthetic("binary_sparse", seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.origin, same.origin)
    assert np.array_equal(one.count, same.count)
    assert not np.array_equal(one.origin, other.origin)
    assert one.areas == other.areas


def test_a_larger_sparse_data_set_takes_a_moment():
    data = make_synthetic(Synthetic("binary", 0.0001, 15))
    assert len(data.count) == 107_374
    assert data.areas.n_areas(15) == 32_768


def test_progress_ends_with_all_pairs():
    seen = []
    make_synthetic("binary_sparse", progress=lambda *step: seen.append(step))
    assert seen[-1] == ("pairs", 655, 655)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("ternary", 0.5), "binary or random"),
        (("binary", 0.0), "share"),
        (("binary", 1.5), "share"),
        (("binary", 0.5, 0), "levels"),
        (("binary", 0.5, 3, 1.0), "mean_flow"),
    ],
)
def test_what_makes_no_sense_is_an_error(options, message):
    with pytest.raises(InftdaError, match=message):
        Synthetic(*options)


def test_a_name_that_is_not_in_the_paper_is_an_error():
    with pytest.raises(InftdaError, match="binary_complete, binary_dense"):
        make_synthetic("binary_half")


def test_a_share_below_one_pair_is_an_error():
    with pytest.raises(InftdaError, match="not even one"):
        make_synthetic(Synthetic("binary", 0.01, 2))
