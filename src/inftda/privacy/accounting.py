"""Accounting: from the noise of all levels to (epsilon, delta), and back.

Four accountants, all of them upper bounds of the truth:

- `paper`: epsilon = rho + 2 sqrt(rho log(1 / delta)), for comparing with the paper;
- `zcdp`: the tight conversion of zCDP; any unit, any split;
- `pld`: privacy loss distributions; one-trip units, any split, delta from 1e-11 on;
- `exact`: integer convolution; one-trip units whose variances are whole fractions of the
  largest, as with a uniform split.

`auto` is the tightest that is valid. All rounding goes to the safe side: noise, epsilon and
delta up, rho down. Proofs: `docs/proofs/accounting.md`.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Final, Literal, cast, get_args

from inftda.errors import PrivacyError
from inftda.privacy.conversion import paper_curve, paper_rho, zcdp_curve
from inftda.privacy.exact import LossLattice
from inftda.privacy.levels import (
    MAX_RHO,
    Curve,
    Measured,
    Share,
    checked_delta,
    checked_epsilon,
    checked_levels,
    levels_at,
)
from inftda.privacy.pld import MAX_PLD_SIGMA2, MIN_PLD_DELTA, pld_curve

Accountant = Literal["auto", "exact", "pld", "zcdp", "paper"]
ACCOUNTANTS: Final = cast("tuple[Accountant, ...]", get_args(Accountant))

#: What is promised lies so far on the safe side of what was computed, so that a check on
#: another machine, whose floats may round otherwise, comes to the same verdict.
_MARGIN: Final = {"paper": 1e-12, "zcdp": 1e-12, "exact": 1e-9, "pld": 1e-5}
#: Calibration stops when rho is known so well.
_TOLERANCE: Final = {"paper": 1e-12, "zcdp": 1e-12, "exact": 1e-9, "pld": 1e-6}
_GROWTH: Final = 1.25
_RETREATS: Final = 30


def privacy_curve(accountant: str, levels: Iterable[tuple[Fraction, int, int]]) -> Curve:
    """From epsilon to the delta of these levels, rounded up.

    Args:
        accountant: one of `ACCOUNTANTS`; "auto" takes the least of all that are valid.
        levels: (sigma2, squared sensitivity, number of unit shifts) of every measured level.

    Raises:
        PrivacyError: the accountant is unknown or not valid for these levels.
    """
    measured = checked_levels(levels)
    match checked_accountant(accountant):
        case "paper":
            return paper_curve(measured)
        case "zcdp":
            return zcdp_curve(measured)
        case "exact":
            return _lattice(measured).delta
        case "pld":
            _check_single_trip("pld", measured)
            return pld_curve(measured)
        case _:
            return _tightest_curve(measured)


def delta_of(
    accountant: str,
    *,
    epsilon: Fraction | float | str,
    levels: Iterable[tuple[Fraction, int, int]],
) -> float:
    """The delta at `epsilon`, rounded up.

    >>> levels = [(Fraction(313), 2, 2)] * 6
    >>> 9.4e-9 < delta_of("exact", epsilon=1, levels=levels) < 9.8e-9
    True
    """
    measured = checked_levels(levels)
    found = privacy_curve(accountant, measured)(checked_epsilon(epsilon))
    return min(1.0, found * (1 + _margin(accountant, measured)))


def epsilon_of(
    accountant: str,
    *,
    delta: Fraction | float | str,
    levels: Iterable[tuple[Fraction, int, int]],
) -> float:
    """The epsilon at `delta`, rounded up; 0 if even that is promised."""
    measured = checked_levels(levels)
    curve = privacy_curve(accountant, measured)
    target = checked_delta(delta) * (1 - _margin(accountant, measured))
    if curve(0.0) <= target:
        return 0.0
    low, high = 0.0, 1.0
    while curve(high) > target:
        if high > 2.0**40:
            raise PrivacyError(
                f"delta = {target:g} is below what the accountant {accountant!r} can tell; "
                "use 'zcdp' or a larger delta"
            )
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if curve(middle) <= target else (middle, high)
    return high


def max_rho(
    accountant: str,
    *,
    epsilon: Fraction | float | str,
    delta: Fraction | float | str,
    parts: Sequence[tuple[Fraction, int, int]],
) -> Fraction:
    """The largest rho, rounded down, that keeps (epsilon, delta) when shared by `parts`.

    Args:
        accountant: one of `ACCOUNTANTS`.
        epsilon: strength of the guarantee.
        delta: probability that it does not hold.
        parts: (weight, squared sensitivity, number of unit shifts) of every measured level.

    Raises:
        PrivacyError: a parameter is out of range, or the accountant not valid.

    Privacy:
        The levels `levels_at(rho, parts)` are (epsilon, delta)-differentially private.
    """
    return calibrate(accountant, epsilon=epsilon, delta=delta, parts=parts)[1]


def calibrate(
    accountant: str,
    *,
    epsilon: Fraction | float | str,
    delta: Fraction | float | str,
    parts: Sequence[tuple[Fraction, int, int]],
) -> tuple[Accountant, Fraction]:
    """The accountant that was used ("auto" resolved), and the rho of `max_rho`."""
    asked, at, target = checked_accountant(accountant), *_checked(epsilon, delta)
    shares = tuple(Share(Fraction(weight), squared, shifts) for weight, squared, shifts in parts)
    if asked != "auto":
        return asked, _largest_rho(asked, at, target, shares)
    found: tuple[Accountant, Fraction] = "zcdp", _largest_rho("zcdp", at, target, shares)
    levels = levels_at(found[1], shares)
    if LossLattice.of(levels) is not None:
        found = "exact", _largest_rho("exact", at, target, shares)
    elif _suits_pld(levels) and target >= MIN_PLD_DELTA:
        composed = _largest_rho("pld", at, target, shares)
        found = max(found, ("pld", composed), key=lambda pair: pair[1])
    return found


def resolve(
    accountant: str, levels: Iterable[tuple[Fraction, int, int]], *, delta: float | None = None
) -> Accountant:
    """The accountant that "auto" stands for with these levels."""
    measured, asked = checked_levels(levels), checked_accountant(accountant)
    if asked != "auto":
        return asked
    if LossLattice.of(measured) is not None:
        return "exact"
    if _suits_pld(measured) and delta is not None and delta >= MIN_PLD_DELTA:
        return "pld"
    return "zcdp"


def checked_accountant(name: str) -> Accountant:
    """`name` as an accountant.

    Raises:
        PrivacyError: there is none of that name.
    """
    if name not in ACCOUNTANTS:
        raise PrivacyError(f"accountant must be one of {', '.join(ACCOUNTANTS)}, got {name!r}")
    return name


def check_offered(accountant: str, delta: float) -> None:
    """Refuse a delta that the error of an accountant is not far below.

    Raises:
        PrivacyError: it is too small.
    """
    if accountant == "pld" and delta < MIN_PLD_DELTA:
        raise PrivacyError(
            f"the accountant 'pld' needs a delta of at least {MIN_PLD_DELTA:g}, got {delta:g}; "
            "use 'exact' or 'zcdp'"
        )


def _margin(accountant: str, levels: tuple[Measured, ...]) -> float:
    if accountant == "auto":
        accountant = "exact" if LossLattice.of(levels) is not None else "pld"
    return _MARGIN[accountant]


def _checked(epsilon: Fraction | float | str, delta: Fraction | float | str) -> tuple[float, float]:
    return checked_epsilon(epsilon), checked_delta(delta)


def _tightest_curve(levels: tuple[Measured, ...]) -> Curve:
    lattice = LossLattice.of(levels)
    if lattice is not None:
        return lattice.delta
    general = zcdp_curve(levels)
    if not _suits_pld(levels):
        return general
    composed = pld_curve(levels)
    return lambda epsilon: min(general(epsilon), composed(epsilon))


def _suits_pld(levels: Iterable[Measured]) -> bool:
    return all(level.n_shifts and level.sigma2 <= MAX_PLD_SIGMA2 for level in levels)


def _lattice(levels: tuple[Measured, ...]) -> LossLattice:
    _check_single_trip("exact", levels)
    lattice = LossLattice.of(levels)
    if lattice is None:
        raise PrivacyError(
            "the accountant 'exact' needs variances that are whole fractions of the largest, "
            "as with a uniform split; use 'pld' or 'auto'"
        )
    return lattice


def _check_single_trip(accountant: str, levels: Iterable[Measured]) -> None:
    if not all(level.n_shifts for level in levels):
        raise PrivacyError(
            f"the accountant {accountant!r} is valid for units of one trip only; "
            "use 'zcdp' or 'auto'"
        )


@lru_cache(maxsize=256)  # one plan asks for the same up to four times, a preview far more often
def _largest_rho(
    accountant: Accountant, epsilon: float, delta: float, shares: tuple[Share, ...]
) -> Fraction:
    """Search between a rho that is safe and one that is not."""
    check_offered(accountant, delta)
    target = delta * (1 - _MARGIN[accountant])

    def excess(rho: float) -> float:
        """Log of delta over what is allowed; the guarantee holds where it is not positive."""
        levels = levels_at(Fraction(rho), shares)
        return math.log(privacy_curve(accountant, levels)(epsilon) / target)

    if accountant in {"paper", "zcdp"}:
        safe = paper_rho(epsilon, delta)
    else:
        safe = float(_largest_rho("zcdp", epsilon, delta, shares))
    for _ in range(_RETREATS):
        if excess(safe) <= 0:
            break
        safe *= 0.97  # it was too large by rounding, or transforms blur a tiny delta
    else:
        raise PrivacyError(
            f"delta = {delta:g} is below what the accountant {accountant!r} can tell; "
            "use 'zcdp' or a larger delta"
        )
    return Fraction(_last_safe(excess, safe, tolerance=_TOLERANCE[accountant]))


def _last_safe(excess: Callable[[float], float], safe: float, *, tolerance: float) -> float:
    """The end of the safe stretch that begins at `safe`.

    With little noise delta is not a monotone function of it (docs/proofs/accounting.md,
    section 7), so only a value that was tried is ever returned.
    """
    below, unsafe = excess(safe), min(safe * _GROWTH, float(MAX_RHO))
    above = excess(unsafe)
    while above <= 0:
        if unsafe >= MAX_RHO:
            return unsafe
        safe, below, unsafe = unsafe, above, min(unsafe * _GROWTH, float(MAX_RHO))
        above = excess(unsafe)
    while unsafe - safe > tolerance * safe:
        # Where the straight line crosses 0, for the logarithm of delta is nearly straight.
        # Trying that place plus and minus a little draws both ends in.
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
