"""Accounting: from the noise of all levels to (epsilon, delta), and back.

Three accountants, all of them upper bounds of the truth:

- `exact`: the law of the privacy loss itself; one-trip units whose Gaussian variances are whole
  fractions of one variance, which `commensurable` makes of nearly every split of the budget;
- `zcdp`: the tight conversion of zCDP; any unit, any split;
- `pure`: epsilon with delta 0, a sum; Laplace noise everywhere.

`auto` is `exact` where that is valid. Laplace noise is a mixture of few losses, each of which
shifts the curve of the Gaussian noise. All rounding goes to the safe side: noise, epsilon and delta
up, rho down. Proofs: `docs/proofs/accounting.md`.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple, cast, get_args

from inftda.errors import PrivacyError
from inftda.noise.law import Family, Law
from inftda.numbers import (
    MAX_RHO,
    MIN_DELTA,
    checked_delta,
    checked_epsilon,
    exact_number,
    root_up,
    round_up,
)
from inftda.privacy.exact import MAX_RATIO, LossLattice

#: "auto" is one of the others, once it is known what is measured.
UsedAccountant = Literal["exact", "zcdp", "pure"]
ACCOUNTANTS: Final = ("auto", *get_args(UsedAccountant))
Number = Fraction | float | str
#: From epsilon to delta, rounded up.
Curve = Callable[[float], float]

#: What is promised lies so far on the safe side of what was computed, so that a check on
#: another machine, whose floats may round otherwise, comes to the same verdict. Calibration stops
#: when rho is known so well.
_MARGIN: Final = {"zcdp": 1e-12, "exact": 1e-9, "pure": 0.0}
#: Shares of the budget may be so far from what was asked for, to be commensurable.
_MAX_DEVIATION: Final = 0.01
_GROWTH: Final = 1.25
_RETREATS: Final = 30
#: Losses of Laplace noise that are told apart, at most. More are put on a grid of half as many.
_MOST_LOSSES: Final = 1024


class Noise(NamedTuple):
    """Noise of one level or table.

    Attributes:
        sigma2: variance parameter of a discrete Gaussian, or the square of the scale of a discrete
            Laplace; exact.
        squared_sensitivity: square of its l2 sensitivity.
        sides: 2 where some cells lose what others gain, 1 where cells only lose or only gain.
        family: which of the two it is.
        trips: what the cells of one side change by at most, together.
    """

    sigma2: Fraction
    squared_sensitivity: int
    sides: int
    family: Family = "gaussian"
    trips: int = 1

    @property
    def law(self) -> Law:
        """What is drawn from."""
        return Law(self.sigma2, self.family)

    @property
    def rho(self) -> Fraction:
        """What it costs in zCDP."""
        return self.squared_sensitivity / (2 * self.sigma2)

    @property
    def epsilon(self) -> Fraction:
        """What it costs in pure differential privacy, if it is Laplace noise."""
        return self.sides * self.trips / self.law.scale


class Share(NamedTuple):
    """A level or table before its noise is known: its part of the budget, and what can change."""

    weight: Fraction
    squared_sensitivity: int
    sides: int
    family: Family = "gaussian"
    trips: int = 1

    @property
    def variance(self) -> Fraction:
        """What `Noise.sigma2` is, up to a factor that all shares have in common."""
        return self.squared_sensitivity / self.weight


def commensurable(shares: Sequence[Share], n_levels: int) -> tuple[Share, ...]:
    """Shares near the given ones whose variances are whole fractions of one variance.

    Whole numbers up to 256 are taken in proportion to the shares: levels are rounded up, tables off
    the tree down, so that these never cost more than the part of the budget that is theirs. Of all
    such numbers those are taken that keep the levels within a hundredth of what was asked for,
    relative to the largest, or come nearest; among these those that do so for the tables, and then
    those that keep levels as they are. So no level has less than 1/256 of another's share. Nothing
    changes for several trips, or where a table has less than that. Laplace noise needs no such
    numbers: its share stays what it is beside that of the largest level.

    Args:
        shares: of the levels, then of the tables off the tree.
        n_levels: number of levels.

    Privacy:
        Noise is calibrated for the shares that come out, so their rounding promises nothing more.
    """
    bells = [share for share in shares if share.family == "gaussian"]
    if not bells or any(share.trips > 1 for share in shares):
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
    least = min(share.variance for share in shares)
    exact = [least / share.variance for share in shares]
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
        share._replace(weight=Fraction(ratio * share.squared_sensitivity))
        for share, ratio in zip(shares, found[1], strict=True)
    )


def noise_at(rho: Fraction, shares: Sequence[Share]) -> tuple[Noise, ...]:
    """Noise that costs `rho` or a trifle less in all, by the shares.

    Variances are rounded up, and so are scales of Laplace noise. Variances that are whole fractions
    of one variance stay so: that one is rounded.
    """
    scale = sum(share.weight for share in shares) / (2 * rho)
    lattice = _lattice(share for share in shares if share.family == "gaussian")
    unit = Fraction(0) if lattice is None else round_up(scale * lattice.sigma2)

    def square(share: Share) -> Fraction:
        if share.family == "laplace":
            return root_up(scale * share.variance) ** 2
        if lattice is None:
            return round_up(scale * share.variance)
        return unit * share.variance / lattice.sigma2

    return tuple(Noise(square(share), *share[1:]) for share in shares)


def pure_noise(epsilon: Fraction, shares: Sequence[Share]) -> tuple[Noise, ...]:
    """Laplace noise that costs `epsilon` or a trifle less in all, with delta 0, by the shares."""
    whole = sum(share.weight for share in shares)
    scales = [
        round_up(share.sides * share.trips * whole / (epsilon * share.weight)) for share in shares
    ]
    return tuple(Noise(b**2, *share[1:]) for b, share in zip(scales, shares, strict=True))


def total_rho(noise: Iterable[Noise]) -> Fraction:
    """What levels and tables cost together in zCDP: costs add up."""
    return sum((part.rho for part in noise), Fraction(0))


def resolve(accountant: str, parts: Iterable[Noise]) -> UsedAccountant:
    """The accountant to use for parts with this noise, up to a common factor."""
    if accountant not in ACCOUNTANTS:
        raise PrivacyError(
            f"accountant must be one of {', '.join(ACCOUNTANTS)}, got {str(accountant)[:40]!r}"
        )
    parts = tuple(parts)
    bells = _bells(parts)
    if accountant == "pure":
        if bells:
            raise PrivacyError("the accountant 'pure' is for `delta=0`; use another, or 'auto'")
        return "pure"
    is_single = all(part.trips == 1 for part in parts)
    if accountant == "zcdp":
        return "zcdp"
    if is_single and (not bells or _lattice(bells) is not None):
        return "exact"
    if accountant == "auto":
        return "zcdp"
    if not is_single:
        raise PrivacyError(
            "the accountant 'exact' is valid for units of one trip only; use 'zcdp' or 'auto'"
        )
    raise PrivacyError(
        "the accountant 'exact' needs variances that are whole fractions of one, none below "
        f"1/{MAX_RATIO} of another; use a flatter split, 'zcdp' or 'auto'"
    )


def privacy_curve(accountant: str, noise: Iterable[tuple[Any, ...]]) -> Curve:
    """From epsilon to the delta of this noise, rounded up; see `Noise`."""
    parts = _checked(noise)
    used, rho, pure = resolve(accountant, parts), total_rho(parts), pure_epsilon(parts)
    bells, others = _bells(parts), [part for part in parts if part.law.is_laplace]
    inner, losses = _bell_curve(used, bells), _laplace_losses(others)

    def curve(epsilon: float) -> float:
        if pure is not None and exact_number(epsilon) >= pure:
            return 0.0
        found = _by_zcdp(rho, Fraction(epsilon))
        # Every term is at least what it should be: weights are rounded up, and so are deltas.
        terms = (weight * inner(Fraction(epsilon) - loss) for weight, loss in losses)
        return min(found, max(MIN_DELTA, math.fsum(terms) * (1 + 2.0**-50)), 1.0)

    return curve


def pure_epsilon(parts: Iterable[Noise]) -> Fraction | None:
    """What Laplace noise alone costs with delta 0, exact; None if some noise is Gaussian."""
    parts = tuple(parts)
    return None if _bells(parts) else sum((part.epsilon for part in parts), Fraction(0))


def _bells(parts: Iterable[Noise]) -> list[Noise]:
    """Those with Gaussian noise."""
    return [part for part in parts if part.family == "gaussian"]


def _lattice(bells: Iterable[Noise] | Iterable[Share]) -> LossLattice | None:
    """All cells with Gaussian noise that one trip changes; None if there is no such lattice."""
    cells = [
        (part.sigma2 if isinstance(part, Noise) else part.variance, part.sides, part.trips)
        for part in bells
    ]
    if not cells or any(trips > 1 for *_, trips in cells):
        return None
    return LossLattice.of((variance, sides) for variance, sides, _ in cells)


def _bell_curve(used: UsedAccountant, bells: Sequence[Noise]) -> Callable[[Fraction], float]:
    """From epsilon, which may be negative, to the delta of Gaussian noise alone, rounded up."""
    if not bells:
        return lambda epsilon: -math.expm1(_down(epsilon)) * (1 + 2.0**-50) if epsilon < 0 else 0.0
    rho = total_rho(bells)
    if used == "zcdp":
        return lambda epsilon: _by_zcdp(rho, epsilon)
    lattice = cast("LossLattice", _lattice(bells))
    # Both bound the truth. The second is larger only with little noise in awkward ratios.
    return lambda epsilon: min(_by_zcdp(rho, epsilon), lattice.delta(epsilon))


def _by_zcdp(rho: Fraction, epsilon: Fraction) -> float:
    return _delta_from_log(_log_delta(_up(rho), _down(epsilon)))


def _laplace_losses(parts: Iterable[Noise]) -> list[tuple[float, Fraction]]:
    """What changes of cells with Laplace noise of scale b lose, and how likely that is at most.

    One side of a change, of m trips, loses at worst m / b with probability 1 / (1 + exp(-m / b))
    and -m / b otherwise (docs/proofs/accounting.md, section 7).
    """
    found = [(1.0, Fraction(0))]
    for part in parts:
        rate = part.trips / part.law.scale
        odds = math.exp(-float(rate))
        # Rounding the rate moves the exponential by as many units; all else by fewer than 16.
        slack = 1 + (16 + float(rate)) * 2.0**-52
        more, less = slack / (1 + odds), slack * odds / (1 + odds)
        for _ in range(part.sides):
            merged: dict[Fraction, float] = {}
            for weight, loss in found:
                for chance, change in ((more, rate), (less, -rate)):
                    whole = merged.get(loss + change, 0.0) + weight * chance
                    merged[loss + change] = whole * (1 + 2.0**-51)
            found = [(weight, loss) for loss, weight in merged.items()]
        if len(found) > _MOST_LOSSES:
            found = _on_grid(found)
    return found


def _on_grid(losses: Iterable[tuple[float, Fraction]]) -> list[tuple[float, Fraction]]:
    """The same losses in few places: each is divided between the two next to it.

    The mean of exp(-loss) stays what it is, so delta does not fall (docs/proofs/accounting.md,
    section 7).
    """
    losses = tuple(losses)
    step, width = Fraction(1), 2 * max(abs(loss) for _, loss in losses)
    while _MOST_LOSSES * step > 4 * width:
        step /= 2
    while _MOST_LOSSES * step < 2 * width:
        step *= 2
    whole, slack = math.expm1(-float(step)), 1 + 2.0**-45
    found: dict[Fraction, float] = {}
    for weight, loss in losses:
        low = loss // step * step
        over, short = float(loss - low), float(low + step - loss)
        parts = (
            (low, math.exp(-over) * math.expm1(-short) / whole),
            (low + step, math.expm1(-over) / whole),
        )
        for place, part in parts:
            if part:
                found[place] = (found.get(place, 0.0) + weight * part * slack) * (1 + 2.0**-52)
    return [(weight, loss) for loss, weight in found.items()]


def delta_of(accountant: str, *, epsilon: Number, noise: Iterable[tuple[Any, ...]]) -> float:
    """The delta at `epsilon`, rounded up.

    >>> noise = [(Fraction(313), 2, 2)] * 6
    >>> 9.4e-9 < delta_of("exact", epsilon=1, noise=noise) < 9.8e-9
    True
    """
    parts = _checked(noise)
    used = resolve(accountant, parts)
    return min(1.0, privacy_curve(used, parts)(checked_epsilon(epsilon)) * (1 + _MARGIN[used]))


def epsilon_of(accountant: str, *, delta: Number, noise: Iterable[tuple[Any, ...]]) -> float:
    """The epsilon at `delta`, rounded up; 0 if even that is promised."""
    parts = _checked(noise)
    used = resolve(accountant, parts)
    curve, target = privacy_curve(used, parts), checked_delta(delta) * (1 - _MARGIN[used])
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
    shares: Sequence[tuple[Any, ...]],
) -> Fraction:
    """The largest rho, rounded down, that keeps (epsilon, delta) when divided by `shares`.

    Privacy:
        The noise `noise_at(rho, shares)` is (epsilon, delta)-differentially private.
    """
    parts = tuple(Share(Fraction(weight), *others) for weight, *others in shares)
    strength = checked_epsilon(epsilon), checked_delta(delta)
    return _largest_rho(resolve(accountant, noise_at(Fraction(1), parts)), *strength, parts)


@lru_cache(maxsize=256)  # one plan asks for the same up to four times, a preview far more often
def _largest_rho(
    accountant: UsedAccountant, epsilon: float, delta: float, shares: tuple[Share, ...]
) -> Fraction:
    """Search between a rho that is safe and one that is not."""
    target = delta * (1 - _MARGIN[accountant])

    def excess(rho: float) -> float:
        """Log of delta over what is allowed; the guarantee holds where it is not positive."""
        noise = noise_at(Fraction(rho), shares)
        return math.log(max(MIN_DELTA, privacy_curve(accountant, noise)(epsilon)) / target)

    if accountant == "zcdp":
        # epsilon = rho + 2 sqrt(rho log(1 / delta)), solved for rho: safe, and not far off.
        log_odds = -math.log(delta)
        safe = (epsilon / (math.sqrt(log_odds + epsilon) + math.sqrt(log_odds))) ** 2
    else:
        safe = float(_largest_rho("zcdp", epsilon, delta, shares))
    for _ in range(_RETREATS):
        if excess(safe) <= 0:
            break
        safe *= 0.97  # it was too large by rounding
    else:
        raise PrivacyError(f"delta = {delta:g} is below what can be told; use a larger delta")
    return Fraction(_last_safe(excess, safe, tolerance=_MARGIN[accountant]))


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


def _checked(noise: Iterable[tuple[Any, ...]]) -> tuple[Noise, ...]:
    """Noise as given, with its values checked."""
    parts = tuple(Noise(Fraction(sigma2), *others) for sigma2, *others in noise)
    if not parts:
        raise PrivacyError("nothing is measured, so nothing can be accounted for")
    for part in parts:
        if part.sigma2 <= 0 or part.squared_sensitivity <= 0:
            raise PrivacyError(
                "sigma2 and squared sensitivity must be > 0, got "
                f"{part.sigma2} and {part.squared_sensitivity}"
            )
        if part.trips == 1 and part.sides != part.squared_sensitivity:
            raise PrivacyError(
                "one trip changes as many cells as its squared sensitivity, by one each, got "
                f"{part.sides} and {part.squared_sensitivity}"
            )
    return parts


def _log_delta(rho: float, epsilon: float) -> float:
    """Log of min over a > 1 of exp((a-1)(a rho - epsilon)) / (a-1) * (1 - 1/a)^a, upward.

    Every order a gives a valid bound, so the order is optimised in plain floats and only the
    bound at that order has to be on the safe side.
    """
    over = _best_order(rho, epsilon)  # a - 1
    terms = (
        over * (1 + over) * rho,
        -over * epsilon,
        -(1 + over) * math.log1p(1 / over),
        -math.log(over),
    )
    # Each term is right to 4 units in the last place, the sum adds one for each term.
    slack = 2.0**-49 * math.fsum(abs(term) for term in terms)
    return math.fsum(terms) + slack


def _best_order(rho: float, epsilon: float) -> float:
    """Where the derivative (2 over + 1) rho - epsilon - log(1 + 1 / over) changes sign."""
    low, high = -60.0, 80.0  # of log(over)
    for _ in range(64):
        middle = (low + high) / 2
        over = math.exp(middle)
        if (2 * over + 1) * rho - epsilon - math.log1p(1 / over) < 0:
            low = middle
        else:
            high = middle
    return math.exp(high)


def _delta_from_log(log_delta: float) -> float:
    """A delta that is not below exp(log_delta), nor below what is accounted for."""
    if log_delta >= 0:
        return 1.0
    return max(MIN_DELTA, math.exp(log_delta) * (1 + 2.0**-50))


def _down(value: Fraction) -> float:
    """The float at or below `value`."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


def _up(value: Fraction) -> float:
    """The float at or above `value`."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)
