"""Checks that the installed build draws the noise it should, in about a second.

Wrong noise looks like correct noise: a published library drew discrete Gaussians with a variance
up to 3 % off for years. So a million draws of every kind of sampler, made from fresh secure
bits, are compared with the exact probabilities by a chi-square test. The probabilities are
computed anew here, by plain summation, and share no code with the samplers.

A sound build fails a check with probability below 10^-9, and all of them together below 10^-7.
A sampler whose variance is 3 % off passes with probability below 10^-9.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
from flint import arb

from inftda.checks import Check
from inftda.noise.discrete_gaussian import DiscreteGaussian
from inftda.noise.discrete_laplace import DiscreteLaplace
from inftda.noise.entropy import SecureSource, Stream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from inftda.noise.entropy import RandomSource
    from inftda.noise.sampler import Sampler

N_DRAWS: Final = 1_000_000
N_BINS: Final = 40
MIN_P: Final = 1e-9
"""A check fails below this p-value."""


def self_check_samplers(*, source: RandomSource | None = None) -> list[Check]:
    """Check the cipher and every kind of sampler; secure bits unless a source is given."""
    return list(_checks(SecureSource() if source is None else source))


def _checks(source: RandomSource) -> Iterator[Check]:
    yield check_cipher()
    yield check_streams_differ()
    for sigma in ("0.5", "2", "4.4721", "20", "300", "20000"):
        sigma2 = Fraction(sigma) ** 2
        name = f"discrete Gaussian, sigma {sigma}"
        yield check_gaussian(name, DiscreteGaussian(sigma2), sigma2, source=source)
    for scale in ("0.5", "3", "7.5", "5000"):
        name = f"discrete Laplace, scale {scale}"
        yield check_laplace(name, DiscreteLaplace(scale), Fraction(scale), source=source)
    undecided = DiscreteGaussian(400, word_bits=16)
    name = "discrete Gaussian, sigma 20, thousands of undecided words"
    yield check_gaussian(name, undecided, Fraction(400), source=source)


def check_gaussian(
    name: str,
    sampler: Sampler,
    sigma2: Fraction,
    *,
    n_draws: int = N_DRAWS,
    source: RandomSource | None = None,
) -> Check:
    """Compare draws of `sampler` with the discrete Gaussian of variance parameter `sigma2`."""
    reach = int(12 * float(sigma2) ** 0.5) + 12
    x = np.arange(-reach, reach + 1, dtype=np.float64)
    weights = np.exp(-(x * x) / (2 * float(sigma2)))
    return _check_draws(name, sampler.sample(n_draws, source), weights)


def check_laplace(
    name: str,
    sampler: Sampler,
    scale: Fraction,
    *,
    n_draws: int = N_DRAWS,
    source: RandomSource | None = None,
) -> Check:
    """Compare draws of `sampler` with the discrete Laplace of this scale."""
    reach = int(40 * float(scale)) + 40
    weights = np.exp(-np.abs(np.arange(-reach, reach + 1, dtype=np.float64)) / float(scale))
    return _check_draws(name, sampler.sample(n_draws, source), weights)


def check_cipher() -> Check:
    """Compare the first block of a stream with the published one of AES-256."""
    words = Stream(lambda _: bytes(32), is_rekeyed_by_fork=False).words(2)
    ok = words.tobytes().hex() == "dc95c078a2408989ad48a21492842087"
    return Check("AES-256 in counter mode", ok, "first block for a zero key")


def check_streams_differ() -> Check:
    """Compare two secure streams with each other."""
    source = SecureSource()
    ok = not np.any(source.stream().words(1000) == source.stream().words(1000))
    return Check("secure streams", ok, "two streams share none of 1,000 words")


def _check_draws(name: str, draws: NDArray[np.int64], weights: NDArray[np.float64]) -> Check:
    p = chi_square_p(draws, weights)
    return Check(name, p >= MIN_P, f"{draws.size:,} draws, p = {p:.3g}")


def chi_square_p(draws: NDArray[np.int64], weights: NDArray[np.float64]) -> float:
    """Return the p-value of the chi-square test of draws against weights.

    The values are put into at most 40 bins of about equal probability; the tails
    make two of them. A draw beyond the weights has p-value 0.

    Args:
        draws: the integers drawn.
        weights: proportional to the probabilities of -reach, ..., reach.
    """
    reach = weights.size // 2
    if int(np.abs(draws).max(initial=0)) > reach:
        return 0.0
    probabilities = weights / weights.sum()
    middles = np.cumsum(probabilities) - probabilities / 2
    bins = np.unique(
        np.minimum(middles * N_BINS, N_BINS - 1).astype(np.int64), return_inverse=True
    )[1]
    expected = np.bincount(bins, weights=probabilities) * draws.size
    observed = np.bincount(bins[draws + reach], minlength=expected.size)
    statistic = float(np.sum((observed - expected) ** 2 / expected))
    # The upper incomplete gamma function, regularised, at (degrees of freedom, statistic) / 2.
    return float(arb(statistic / 2).gamma_upper(arb((expected.size - 1) / 2), 1))
