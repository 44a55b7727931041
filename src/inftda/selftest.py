"""Self-test of the installation: samplers, optimiser and accountants, in seconds."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from flint import arb

from inftda.errors import OptimizeError
from inftda.mechanism.intopt import Ints, intopt
from inftda.mechanism.reference import algorithm_3, shares
from inftda.noise.bits import Bits, SecureSource
from inftda.noise.distribution import Noise
from inftda.privacy.accountants import EXACT, ZCDP
from inftda.privacy.accounting import Share, delta_of, max_rho, noise_at
from inftda.privacy.unit import Sensitivity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from inftda.noise.bits import RandomSource

#: Draws of each sampler and bins of their test; a check fails below this p-value.
N_DRAWS: Final = 1_000_000
N_BINS: Final = 40
MIN_P: Final = 1e-9
#: Vectors that the optimiser is tried on.
N_VECTORS: Final = 1000
#: Six levels, one person replaced, one trip, delta 1e-8: epsilon, and the standard deviations that
#: the accountants `zcdp` and `exact` ask for.
_KNOWN: Final = ((0.1, 169.509, 159.132), (1.0, 18.674, 17.668), (10.0, 2.228, 2.135))
_SHARES: Final = (Share(Fraction(1), Sensitivity(squared=2, sides=2)),) * 6
_ONE: Final = Sensitivity(squared=1, sides=1)
#: Noise that is drawn: sampled from short and long words, and from short and long tables.
_TRIED: Final = (
    *(
        Noise.gaussian(Fraction(sigma) ** 2)
        for sigma in ("0.5", "2", "4.4721", "20", "300", "20000")
    ),
    *(Noise.laplace(b) for b in ("0.5", "7", "3000")),
)


class Check(NamedTuple):
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str


def self_test() -> Iterator[Check]:
    """Check samplers, optimiser and accountants with fresh random bits."""
    yield from self_check_samplers()
    yield from self_check_optimizer()
    yield from self_check_accounting()


def self_check_samplers(*, source: RandomSource | None = None) -> list[Check]:
    """Check the cipher and every kind of sampler; secure bits unless a source is given.

    Wrong noise looks like correct noise: a published library drew discrete Gaussians with a
    variance up to 3 % off for years. So a million draws of every kind of sampler, made from fresh
    secure bits, are compared with the exact probabilities by a chi-square test. The probabilities
    are computed anew here, by plain summation, and share no code with the samplers.

    A sound build fails a check with probability below 10^-9, and all of them together below
    10^-7. A sampler whose variance is 3 % off passes with probability below 10^-9.
    """
    checks = [check_cipher(), check_keys_differ()]
    checks += [check_draws(noise, noise.sample(N_DRAWS, source)) for noise in _TRIED]
    noise, draws, row = Noise.gaussian(400), np.empty(N_DRAWS, np.int64), np.zeros(1, np.int64)
    bits = (SecureSource() if source is None else source).bits()
    noise.table(16).fill(draws, bits, row, np.array([0, N_DRAWS]))
    return [*checks, check_draws(noise, draws, ", thousands of undecided words")]


def check_draws(noise: Noise, draws: NDArray[np.int64], remark: str = "") -> Check:
    """Compare draws with the probabilities of a noise distribution."""
    reach = int((60 if noise.is_laplace else 12) * math.sqrt(noise.square)) + 60
    p = chi_square_p(draws, _weights(noise, np.arange(-reach, reach + 1)))
    name = f"discrete {noise.family.title()}, standard deviation {noise.sigma:.5g}{remark}"
    return Check(name, p >= MIN_P, f"{draws.size:,} draws, p = {p:.3g}")


def _weights(noise: Noise, x: NDArray[np.int64]) -> NDArray[np.float64]:
    """Proportional to the probabilities of some integers, computed anew."""
    z = x / math.sqrt(noise.square)
    return np.asarray(np.exp(-np.abs(z) if noise.is_laplace else -(z**2) / 2))


def check_cipher() -> Check:
    """Compare the first block under a key with the published one of AES-256."""
    words = Bits(bytes(32)).words(2)
    ok = words.tobytes().hex() == "dc95c078a2408989ad48a21492842087"
    return Check("AES-256 of numbered blocks", ok, "first block for a zero key")


def check_keys_differ() -> Check:
    """Compare bits under two secure keys with each other."""
    source = SecureSource()
    ok = not np.any(source.bits().words(1000) == source.bits().words(1000))
    return Check("secure keys", ok, "bits under two keys share none of 1,000 words")


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


def self_check_optimizer() -> list[Check]:
    """Compare IntOpt with its slow, obvious twin of `mechanism.reference`.

    Compiled integer code can be wrong on one machine and right on another. So it is run on a
    thousand vectors, of which many have ties, negative values or tight totals. The vectors are the
    same each time.

    Example:
        >>> all(check.ok for check in self_check_optimizer())
        True
    """
    return [_compare(), _refuses_overflow()]


def _compare() -> Check:
    name = "IntOpt"
    for number, (vector, total) in enumerate(_vectors()):
        x, y = vector.tolist(), intopt(vector, total).tolist()
        expected = algorithm_3(x, total)
        if sum(y) != total or min(y) < 0 or shares(x, y) != shares(x, expected):
            return Check(name, ok=False, detail=f"wrong on vector {number} of {N_VECTORS}")
    return Check(name, ok=True, detail=f"{N_VECTORS} vectors as the reference")


def _vectors() -> Iterator[tuple[Ints, int]]:
    """Vectors as the mechanism makes them: mostly noise, a few large, some of them tied."""
    generator = np.random.default_rng(20)
    for _ in range(N_VECTORS):
        size = int(generator.integers(1, 20))
        noise = np.rint(generator.normal(0, generator.choice([0.5, 2, 20]), size))
        truth = np.where(generator.random(size) < 0.2, generator.integers(0, 60, size), 0)
        vector = noise.astype(np.int64) + truth
        slack = int(generator.integers(-10, 11))
        yield vector, int(max(0, generator.choice([0, 1, truth.sum() + slack, vector.sum()])))


def _refuses_overflow() -> Check:
    try:
        intopt(np.full(3, 1 << 60, np.int64), 1)
    except OptimizeError:
        return Check("overflow", ok=True, detail="sums beyond 64 bits are refused")
    return Check("overflow", ok=False, detail="sums beyond 64 bits are not refused")


def self_check_accounting() -> list[Check]:
    """Compare accountants with known figures and with plain arithmetic."""
    return [
        *map(_known_sigmas, _KNOWN),
        _against_plain_sum("delta equals its definition", 1.5, Noise.gaussian(2)),
        _against_plain_sum(
            "delta with Laplace noise equals its definition",
            0.75,
            Noise.gaussian(2),
            Noise.laplace(2),
        ),
    ]


def _known_sigmas(known: tuple[float, float, float]) -> Check:
    epsilon, *expected = known
    found = []
    for accountant in (ZCDP, EXACT):
        rho = max_rho(accountant.name, epsilon=epsilon, delta=1e-8, shares=_SHARES)
        found.append(noise_at(rho, _SHARES)[0].sigma)
    ok = all(abs(f - e) < 1e-3 for f, e in zip(found, expected, strict=True))
    shown = "zcdp {:.3f}, exact {:.3f}".format(*found)
    return Check(f"known noise at epsilon {epsilon:g}", ok, shown)


def _against_plain_sum(name: str, epsilon: float, *drawn: Noise) -> Check:
    """One cell of each noise changes by one: the definition of delta, term by term."""
    here = there = np.ones(1)
    x = np.arange(-90, 91)
    for noise in drawn:
        whole = _weights(noise, x).sum()
        here = np.outer(here, _weights(noise, x) / whole).ravel()
        there = np.outer(there, _weights(noise, x - 1) / whole).ravel()
    plain = math.fsum(np.maximum(here - math.exp(epsilon) * there, 0))
    exact = delta_of(EXACT.name, epsilon=epsilon, parts=[(noise, _ONE) for noise in drawn])
    ok = plain <= exact <= plain * (1 + 1e-6)
    return Check(name, ok, f"{exact:.9g} and {plain:.9g}")
