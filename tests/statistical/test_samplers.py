"""The samplers draw what they should, and the tests would notice if they did not.

Every sample is compared with the exact probabilities at its own scale, where a p-value
below `ALARM` is a failure, and at scales that are slightly wrong, where it must be below `ALARM`.
The bits are seeded, so the outcome is fixed once and for all; a fresh seed would raise a
false alarm with odds of one in ten million for each of some fifty comparisons.

A published sampler was wrong for years by 0.6 to 3 % in its variance. At 20 million draws
such noise has p-values below 10^-20 here; at a million draws, 0.6 % would go unnoticed.
"""

from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
import pytest
from chisquare import (
    cell_by_cell,
    count_draws,
    gaussian_pmf,
    goodness_of_fit,
    laplace_pmf,
    two_samples,
)

from inftda.noise.bits import SecureSource, SeededSource
from inftda.noise.distribution import Noise
from inftda.noise.ladder import gaussian_ladder, laplace_ladder
from inftda.noise.table import WordTable
from opendp_noise import OpenDPGaussian

ALARM = 1e-7
"""A sample whose p-value is below this is called wrong."""

N_DRAWS = 20_000_000
"""So many that a variance 0.6 % off is noticed with odds of failing to below 10^-9."""

SIGMAS = ["0.5", "2", "3", "4.4721", "5", "7", "20", "300", "20000"]
SCALES = ["0.5", "1", "2", "3", "4.4721", "7", "20", "300", "5000"]
OFF = [Fraction(99, 100), Fraction(101, 100)]
VARIANCE_OFF = [Fraction(97, 100), Fraction(994, 1000), Fraction(1006, 1000), Fraction(103, 100)]


@lru_cache
def gaussian_counts(sigma):
    sigma2 = Fraction(sigma) ** 2
    bits = SeededSource(20).bits(SIGMAS.index(sigma))
    return count_draws(Noise.gaussian(sigma2), N_DRAWS, bits, gaussian_pmf(sigma2).reach)


@lru_cache
def laplace_counts(scale):
    bits = SeededSource(21).bits(SCALES.index(scale))
    return count_draws(Noise.laplace(scale), N_DRAWS, bits, laplace_pmf(Fraction(scale)).reach)


def resize(pmf, reach):
    """The same probabilities over -reach, ..., reach."""
    missing = reach - pmf.reach
    p = np.pad(pmf.p, missing) if missing >= 0 else pmf.p[-missing:missing]
    return type(pmf)(p)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_gaussian_draws_have_their_exact_probabilities(sigma):
    pmf = gaussian_pmf(Fraction(sigma) ** 2)
    assert goodness_of_fit(gaussian_counts(sigma), pmf) > ALARM
    assert cell_by_cell(gaussian_counts(sigma), pmf) > ALARM


@pytest.mark.slow
@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("factor", [*(f * f for f in OFF), *VARIANCE_OFF])
def test_gaussian_draws_of_a_slightly_wrong_scale_would_be_noticed(sigma, factor):
    counts = gaussian_counts(sigma)
    wrong = resize(gaussian_pmf(Fraction(sigma) ** 2 * factor), counts.size // 2)
    assert goodness_of_fit(counts, wrong) < ALARM


@pytest.mark.slow
@pytest.mark.parametrize("scale", SCALES)
def test_laplace_draws_have_their_exact_probabilities(scale):
    pmf = laplace_pmf(Fraction(scale))
    assert goodness_of_fit(laplace_counts(scale), pmf) > ALARM
    assert cell_by_cell(laplace_counts(scale), pmf) > ALARM


@pytest.mark.slow
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("factor", [*OFF, Fraction(997, 1000), Fraction(1003, 1000)])
def test_laplace_draws_of_a_slightly_wrong_scale_would_be_noticed(scale, factor):
    counts = laplace_counts(scale)
    wrong = resize(laplace_pmf(Fraction(scale) * factor), counts.size // 2)
    assert goodness_of_fit(counts, wrong) < ALARM


class CountingTable(WordTable):
    """A table that counts the words it had to settle."""

    __slots__ = ("n_settled",)

    def __init__(self, *args):
        super().__init__(*args)
        self.n_settled = 0

    def _settle(self, word, further):
        self.n_settled += 1
        return super()._settle(word, further)


class RedrawingTable(WordTable):
    """The tempting mistake: an undecided word is replaced by a fresh one."""

    def _settle(self, _, further):
        word = np.array([next(further) >> (64 - self.word_bits)], np.uint32)
        out = np.empty(1, dtype=np.int64)
        return int(out[0]) if self._map(word, out, 0) else self._settle(0, further)


class RoundingTable(WordTable):
    """Another one: an undecided word is taken for the value below the boundary."""

    def _settle(self, word, _):
        k = int(np.searchsorted(self._cdf, word >> 1))
        return -k if word & 1 else k


# Words so short that a good part of all draws is settled the slow way.
EIGHT_BITS = pytest.mark.parametrize(
    ("ladder_of", "pmf"),
    [
        (partial(gaussian_ladder, Fraction(4)), gaussian_pmf(4)),
        (partial(gaussian_ladder, Fraction(25)), gaussian_pmf(25)),
        (partial(gaussian_ladder, Fraction(400)), gaussian_pmf(400)),
        (partial(laplace_ladder, Fraction(3)), laplace_pmf(3)),
    ],
    ids=["sigma 2", "sigma 5", "sigma 20", "scale 3"],
)


@pytest.mark.slow
@EIGHT_BITS
def test_settled_draws_have_their_exact_probabilities(ladder_of, pmf):
    table = CountingTable(ladder_of, 8)
    counts = count_draws(table, 200_000, SeededSource(22).bits(), pmf.reach)
    assert table.n_settled > 9_000
    assert goodness_of_fit(counts, pmf) > ALARM
    assert cell_by_cell(counts, pmf) > ALARM


@pytest.mark.slow
@EIGHT_BITS
@pytest.mark.parametrize("mistaken", [RedrawingTable, RoundingTable])
def test_settling_wrongly_would_be_noticed(ladder_of, pmf, mistaken):
    counts = count_draws(mistaken(ladder_of, 8), 200_000, SeededSource(23).bits(), pmf.reach)
    assert cell_by_cell(counts, pmf) < ALARM


def agree_with_opendp(sigma2, n, off):
    """OpenDP cannot be seeded, so the bar is lower here: one false alarm in a billion runs."""
    reach = gaussian_pmf(sigma2).reach
    theirs = count_draws(OpenDPGaussian(sigma2), n, None, reach)
    ours, wrong = (
        count_draws(Noise.gaussian(factor * sigma2), 10 * n, SecureSource().bits(), reach)
        for factor in (1, Fraction(off) ** 2)
    )
    assert two_samples(ours, theirs) > 1e-9
    assert two_samples(wrong, theirs) < 1e-9


@pytest.mark.slow
def test_opendp_draws_from_the_same_distribution():
    agree_with_opendp(Fraction(25), 30_000, "1.1")


@pytest.mark.nightly
@pytest.mark.parametrize("sigma", ["2", "4.4721", "20"])
def test_opendp_draws_from_the_same_distribution_to_two_percent(sigma):
    agree_with_opendp(Fraction(sigma) ** 2, 500_000, "1.02")
