"""How often intervals hold, on tables that speak against the model and on tables for it.

What is claimed: on average over the published numbers of a class of size, at least 95 in 100. Not
claimed: the same for the numbers with a certain truth, or for single ones.
"""

import numpy as np
import pyarrow as pa
import pytest

import inftda
from inftda.inference.noise_intervals import NoiseIntervals

N, GROUP, SEEDS = 80, 20, 4
#: Noise scale of a release of two levels at epsilon 1 and delta 1e-8.
SIGMA = 14.87
#: Classes of published size, in noise scales, and fewer numbers than this say nothing of 95 %.
CLASSES = (0, 0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, np.inf)
ENOUGH = 100


def busy_centre(rng):
    """Many trips between all towns of one region, and elsewhere 40 in one pair of a hundred."""
    flows = np.where(rng.random((N, N)) < 0.01, 40, 0)
    flows[:GROUP, :GROUP] = rng.poisson(90, (GROUP, GROUP))
    return flows


def almost_equal(rng):
    """Nearly all flows are three noise scales, so what is published as larger is noise."""
    return np.where(rng.random((N, N)) < 0.95, round(3 * SIGMA), 0)


def two_sizes(rng):
    """One flow in five as large as the noise, and one in a hundred five times as large."""
    kind = rng.random((N, N))
    return np.where(kind < 0.2, round(SIGMA), np.where(kind < 0.21, round(5 * SIGMA), 0))


def gravity(rng):
    """What the model is for: flows in proportion to the sizes of both towns."""
    sizes = np.exp(rng.normal(0, 1, (2, N)))
    return rng.poisson(4 * np.outer(*sizes))


def _published(table, kind):
    """Published numbers of a few releases, and whether their intervals hold."""
    codes = np.array([f"t{i:02}" for i in range(N)])
    areas = pa.table({"region": [f"r{i // GROUP}" for i in range(N)], "town": codes})
    found = []
    for seed in range(SEEDS):
        flows = table(np.random.default_rng(seed))
        origin, destination = np.nonzero(flows)
        release = inftda.release(
            pa.table({"origin": codes[origin], "destination": codes[destination],
                      "count": flows[origin, destination]}),
            areas, epsilon=1, delta=1e-8, source=inftda.SeededSource(seed),
        )  # fmt: skip
        rows = release.flows(intervals=kind)
        at = (np.searchsorted(codes, rows.column(name)) for name in ("origin", "destination"))
        true = flows[tuple(at)]
        flow, low, high = (rows.column(name).to_numpy() for name in ("flow", "low", "high"))
        found.append((flow, (low <= true) & (true <= high)))
    return map(np.concatenate, zip(*found, strict=True))


@pytest.mark.parametrize("kind", ["model", "noise"])
@pytest.mark.parametrize("table", [busy_centre, almost_equal, two_sizes, gravity])
def test_intervals_hold_in_every_class_of_published_size(table, kind):
    flow, holds = _published(table, kind)
    class_of = np.searchsorted(CLASSES, flow / SIGMA, side="right")
    for one in np.unique(class_of):
        inside = holds[class_of == one]
        assert len(inside) < ENOUGH or inside.mean() >= 0.95, CLASSES[one - 1]


def test_the_noise_of_a_class_allows_for_what_came_into_it():
    """Of 10,000 zeros, those with the highest noise are a class, whose intervals reach 0."""
    noisy = np.round(np.random.default_rng(0).normal(0, 20, 10_000)).astype(np.int64)
    low, high = NoiseIntervals.of(noisy, 20.0).ends(noisy)
    assert low.max() == 0
    assert (high - low)[noisy > 60].min() > (high - low)[np.abs(noisy) < 20].max()


def test_a_count_that_stands_alone_has_the_width_of_its_noise():
    noisy = np.array([5, 10**9, 2**61])
    low, high = NoiseIntervals.of(noisy, 20.0).ends(noisy)
    assert (noisy[1] - low[1], high[1] - noisy[1]) == (39, 39)
