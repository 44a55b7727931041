"""Calibration: from a guarantee to the noise of all measurements, and back.

All rounding goes to the safe side: noise, epsilon and delta up, rho down. An accountant computes
epsilon and delta from noise (`inftda.privacy.accountants`).
"""

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Final, NamedTuple

from inftda.errors import PrivacyError
from inftda.noise.distribution import Family, Noise
from inftda.privacy.accountants import (
    ZCDP,
    Accountant,
    Part,
    checked,
    resolve,
    total_rho,
)
from inftda.privacy.exact import MAX_RATIO, LossLattice
from inftda.privacy.unit import Sensitivity
from inftda.util.exact_numbers import (
    MAX_RHO,
    MIN_DELTA,
    checked_delta,
    checked_epsilon,
    root_up,
    round_up,
)

Number = Fraction | float | str

#: Largest relative change of shares of the budget to make them commensurable.
_MAX_DEVIATION: Final = 0.01
_GROWTH: Final = 1.25
_RETREATS: Final = 30


class Share(NamedTuple):
    """A measurement before its noise is known: its part of the budget."""

    weight: Fraction
    sensitivity: Sensitivity
    family: Family = "gaussian"

    @property
    def square(self) -> Fraction:
        """`Noise.square` up to a common factor of all shares."""
        return self.sensitivity.squared / self.weight


def commensurable(shares: Sequence[Share], n_levels: int) -> tuple[Share, ...]:
    """Shares near the given ones whose variances are whole fractions of one variance.

    Shares are replaced by proportional whole numbers up to 256: levels are rounded up and cross
    tables down, so that tables never exceed their part of the budget. The choice among such numbers
    keeps the levels within a hundredth of the requested shares, relative to the largest, or as near
    as possible; then the tables; then it prefers unchanged levels. So no level has less than 1/256
    of another's share. Nothing changes for several trips, or if a table has less than that. Laplace
    noise needs no whole numbers: its share relative to the largest level is unchanged.

    Args:
        shares: of the levels, then of the cross tables.
        n_levels: number of levels.

    Privacy:
        Noise is calibrated for the returned shares, so rounding does not change the guarantee.
    """
    bells = [share for share in shares if share.family == "gaussian"]
    if not bells or any(share.sensitivity.trips > 1 for share in shares):
        return tuple(shares)
    if len(bells) < len(shares):
        n_bells = sum(share.family == "gaussian" for share in shares[:n_levels])
        rounded = commensurable(bells, n_bells)
        largest = max(range(len(bells)), key=lambda i: bells[i].weight)
        factor, new = rounded[largest].weight / bells[largest].weight, iter(rounded)
        return tuple(
            next(new)
            if share.family == "gaussian"
            else share._replace(weight=share.weight * factor)
            for share in shares
        )
    least = min(share.square for share in shares)
    exact = [least / share.square for share in shares]
    found: tuple[tuple[float, float, bool], list[int]] | None = None
    for most in range(1, MAX_RATIO + 1):
        wanted = [most * ratio for ratio in exact]
        ratios = [*map(math.ceil, wanted[:n_levels]), *map(math.floor, wanted[n_levels:])]
        if min(ratios) < 1:
            continue
        off = [abs(float(ratio / ask) - 1) for ratio, ask in zip(ratios, wanted, strict=True)]
        worst = (
            max(_MAX_DEVIATION, *off[:n_levels]),
            max(_MAX_DEVIATION, 0.0, *off[n_levels:]),
            ratios[:n_levels] != wanted[:n_levels],
        )
        if found is None or worst < found[0]:
            found = worst, ratios
    if found is None:
        return tuple(shares)
    return tuple(
        share._replace(weight=Fraction(ratio * share.sensitivity.squared))
        for share, ratio in zip(shares, found[1], strict=True)
    )


def noise_at(rho: Fraction, shares: Sequence[Share]) -> tuple[Noise, ...]:
    """Divide `rho` by the shares and compute the noise, whose total cost is at most `rho`.

    Variances and scales of Laplace noise are rounded up. If variances are whole fractions of one
    variance, only that one is rounded.
    """
    scale = sum(share.weight for share in shares) / (2 * rho)
    bells = [share for share in shares if share.family == "gaussian"]
    lattice = None
    if bells and all(share.sensitivity.trips == 1 for share in bells):
        lattice = LossLattice.of((share.square, share.sensitivity.sides) for share in bells)
    unit = Fraction(0) if lattice is None else round_up(scale * lattice.sigma2)

    def square(share: Share) -> Fraction:
        if share.family == "laplace":
            return root_up(scale * share.square) ** 2
        if lattice is None:
            return round_up(scale * share.square)
        return unit * share.square / lattice.sigma2

    return tuple(Noise(square(share), share.family) for share in shares)


def pure_noise(epsilon: Fraction, shares: Sequence[Share]) -> tuple[Noise, ...]:
    """Divide `epsilon` by the shares and compute Laplace noise of at most this cost at delta 0."""
    whole = sum(share.weight for share in shares)
    scales = [round_up(share.sensitivity.l1 * whole / (epsilon * share.weight)) for share in shares]
    return tuple(Noise(scale**2, "laplace") for scale in scales)


def delta_of(accountant: str, *, epsilon: Number, parts: Iterable[Part]) -> float:
    """The delta at `epsilon`, rounded up.

    >>> parts = [(Noise.gaussian(313), Sensitivity(squared=2, sides=2))] * 6
    >>> 9.4e-9 < delta_of("exact", epsilon=1, parts=parts) < 9.8e-9
    True
    """
    parts = checked(parts)
    used = resolve(accountant, parts)
    return min(1.0, used.curve(parts)(checked_epsilon(epsilon)) * (1 + used.margin))


def epsilon_of(accountant: str, *, delta: Number, parts: Iterable[Part]) -> float:
    """The epsilon at `delta`, rounded up."""
    parts = checked(parts)
    used = resolve(accountant, parts)
    curve, target = used.curve(parts), checked_delta(delta) * (1 - used.margin)
    if curve(0.0) <= target:
        return 0.0
    low, high = 0.0, 1.0
    while curve(high) > target:
        if high > 2.0**40:
            raise PrivacyError(f"delta = {target:g} is below what can be told; use a larger delta")
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if curve(middle) <= target else (middle, high)
    return high


def max_rho(
    accountant: str,
    *,
    epsilon: Number,
    delta: Number,
    shares: Sequence[Share],
) -> Fraction:
    """The largest rho, rounded down, that keeps (epsilon, delta) when divided by `shares`.

    Privacy:
        The noise `noise_at(rho, shares)` is (epsilon, delta)-differentially private.
    """
    checked = checked_epsilon(epsilon), checked_delta(delta)
    used = resolve(accountant, with_noise(noise_at(Fraction(1), shares), shares))
    return _largest_rho(used, *checked, tuple(shares))


def with_noise(noise: Iterable[Noise], shares: Iterable[Share]) -> tuple[Part, ...]:
    """Combine noise and shares to the input of accountants."""
    return tuple(zip(noise, (share.sensitivity for share in shares), strict=True))


def epsilon_of_rho(rho: Fraction, *, delta: Number) -> float:
    """The epsilon that any noise of this cost in zCDP has at `delta`, rounded up."""
    return epsilon_of(ZCDP.name, delta=delta, parts=[(Noise(1 / (2 * rho)), Sensitivity(1, 1))])


def rho_of(*, epsilon: Number, delta: Number) -> Fraction:
    """The largest cost in zCDP that gives (epsilon, delta), rounded down.

    It is the cost of noise, which is rounded up when it is planned.
    """
    alone = [Share(Fraction(1), Sensitivity(1, 1))]
    largest = max_rho(ZCDP.name, epsilon=epsilon, delta=delta, shares=alone)
    return total_rho(with_noise(noise_at(largest, alone), alone))


@lru_cache(maxsize=256)  # a plan needs a value up to four times, a preview far more often
def _largest_rho(
    accountant: Accountant, epsilon: float, delta: float, shares: tuple[Share, ...]
) -> Fraction:
    """Search the largest safe rho between a safe one and an unsafe one."""
    target = delta * (1 - accountant.margin)

    def excess(rho: float) -> float:
        """Log of delta over the allowed delta; the guarantee holds if it is not positive."""
        parts = with_noise(noise_at(Fraction(rho), shares), shares)
        return math.log(max(MIN_DELTA, accountant.curve(parts)(epsilon)) / target)

    if accountant is ZCDP:
        # epsilon = rho + 2 sqrt(rho log(1 / delta)), solved for rho: safe, and not far off.
        log_odds = -math.log(delta)
        safe = (epsilon / (math.sqrt(log_odds + epsilon) + math.sqrt(log_odds))) ** 2
    else:
        safe = float(_largest_rho(ZCDP, epsilon, delta, shares))
    for _ in range(_RETREATS):
        if excess(safe) <= 0:
            break
        safe *= 0.97  # it was too large by rounding
    else:
        raise PrivacyError(f"delta = {delta:g} is below what can be told; use a larger delta")
    return Fraction(_last_safe(excess, safe, tolerance=accountant.margin))


def _last_safe(excess: Callable[[float], float], safe: float, *, tolerance: float) -> float:
    """The end of the safe stretch that begins at `safe`.

    With little noise delta is not a monotone function of it (docs/proofs/accounting.md,
    section 6), so only a value that was tried is ever returned.
    """
    below, unsafe = excess(safe), min(safe * _GROWTH, float(MAX_RHO))
    above = excess(unsafe)
    while above <= 0:
        if unsafe >= MAX_RHO:
            return unsafe
        safe, below, unsafe = unsafe, above, min(unsafe * _GROWTH, float(MAX_RHO))
        above = excess(unsafe)
    while unsafe - safe > tolerance * safe:
        # The logarithm of delta is nearly linear: try a little above and below the zero of the
        # line, which moves both ends of the bracket.
        crossing = safe + (unsafe - safe) * below / (below - above)
        width = unsafe - safe
        for tried in (crossing + width / 32, crossing - width / 32, (safe + unsafe) / 2):
            if not safe < tried < unsafe or unsafe - safe <= width / 8:
                continue
            value = excess(tried)
            if value <= 0:
                safe, below = tried, value
            else:
                unsafe, above = tried, value
    return safe
