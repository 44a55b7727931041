"""Accountants: from the noise of all measurements to delta at any epsilon.

All of them are upper bounds of the truth, and all rounding is upward. Laplace noise is a mixture
of few losses, each of which shifts the curve of the Gaussian noise. Proofs:
`docs/proofs/accounting.md`.

To add an accountant, derive from `Accountant` and put the object into `ACCOUNTANTS`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Final

from inftda.errors import PrivacyError
from inftda.noise.distribution import Noise
from inftda.privacy.exact import MAX_RATIO, LossLattice
from inftda.privacy.unit import Sensitivity
from inftda.util.exact_numbers import MIN_DELTA, exact_number

#: Noise of the counts of a level or cross table, and their sensitivity.
Part = tuple[Noise, Sensitivity]
#: From epsilon to delta, rounded up.
Curve = Callable[[float], float]

#: Name for the first valid accountant.
AUTO: Final = "auto"
#: Largest number of distinct losses of Laplace noise; more are put on a grid of half as many.
_MOST_LOSSES: Final = 1024


class Accountant(ABC):
    """A method that computes epsilon and delta from noise.

    Attributes:
        name: name in options and in manifests.
        margin: relative distance of the stated guarantee from the computed one, on the safe side.
            A check on another machine, whose floats may round differently, then agrees.
            Calibration stops when rho is known to this precision.
        is_pure: whether the guarantee is epsilon with delta 0.
        is_reached: whether some attacker attains the bound where all cells change together.
    """

    name: str
    margin = 1e-12
    is_pure = False
    is_reached = False

    @abstractmethod
    def objection(self, parts: Sequence[Part]) -> str:
        """Explain why the accountant is not valid for such noise, up to a common factor.

        The text is empty if it is valid.
        """

    @abstractmethod
    def gaussian_curve(self, parts: Sequence[Part]) -> Callable[[Fraction], float]:
        """From epsilon, which may be negative, to the delta of Gaussian noise, rounded up."""

    def curve(self, parts: Sequence[Part]) -> Curve:
        """From epsilon to the delta of all noise, rounded up."""
        rho, pure, bells = total_rho(parts), pure_epsilon(parts), _gaussian(parts)
        losses = _laplace_losses(part for part in parts if part[0].is_laplace)
        inner = self.gaussian_curve(bells) if bells else _without_noise

        def curve(epsilon: float) -> float:
            if pure is not None and exact_number(epsilon) >= pure:
                return 0.0
            # No term is too small: weights and deltas are rounded up.
            terms = (weight * inner(Fraction(epsilon) - loss) for weight, loss in losses)
            mixed = max(MIN_DELTA, math.fsum(terms) * (1 + 2.0**-50))
            return min(_by_zcdp(rho, Fraction(epsilon)), mixed, 1.0)

        return curve


class _Exact(Accountant):
    """The distribution of the privacy loss itself.

    It is for units of one trip, with Gaussian variances that are whole fractions of one variance;
    `accounting.commensurable` makes such variances of nearly every split of the budget.
    """

    name = "exact"
    margin = 1e-9
    is_reached = True

    def objection(self, parts: Sequence[Part]) -> str:
        if any(change.trips > 1 for _, change in parts):
            return (
                "the accountant 'exact' is valid for units of one trip only; use 'zcdp' or 'auto'"
            )
        bells = _gaussian(parts)
        if bells and _lattice(bells) is None:
            return (
                "the accountant 'exact' needs variances that are whole fractions of one, none "
                f"below 1/{MAX_RATIO} of another; use a flatter split, 'zcdp' or 'auto'"
            )
        return ""

    def gaussian_curve(self, parts: Sequence[Part]) -> Callable[[Fraction], float]:
        rho, lattice = total_rho(parts), _lattice(parts)
        if lattice is None:
            raise PrivacyError(self.objection(parts))
        # Both are valid bounds. The second is larger only for little noise in unfavourable ratios.
        return lambda epsilon: min(_by_zcdp(rho, epsilon), lattice.delta(epsilon))


class _Zcdp(Accountant):
    """The tight conversion of zCDP: for any unit and any noise."""

    name = "zcdp"

    def objection(self, parts: Sequence[Part]) -> str:
        del parts
        return ""

    def gaussian_curve(self, parts: Sequence[Part]) -> Callable[[Fraction], float]:
        rho = total_rho(parts)
        return lambda epsilon: _by_zcdp(rho, epsilon)


class _Pure(Accountant):
    """Epsilon with delta 0, a sum: Laplace noise everywhere."""

    name = "pure"
    margin = 0.0
    is_pure = True

    def objection(self, parts: Sequence[Part]) -> str:
        if _gaussian(parts):
            return "the accountant 'pure' is for `delta=0`; use another, or 'auto'"
        return ""

    def gaussian_curve(self, parts: Sequence[Part]) -> Callable[[Fraction], float]:
        raise PrivacyError(self.objection(parts))

    def curve(self, parts: Sequence[Part]) -> Curve:
        # Only whether delta is 0 matters; its value below that epsilon is not worth the time.
        rho, pure = total_rho(parts), sum(noise.epsilon(change.l1) for noise, change in parts)
        return lambda at: 0.0 if exact_number(at) >= pure else _by_zcdp(rho, Fraction(at))


EXACT: Final = _Exact()
ZCDP: Final = _Zcdp()
PURE: Final = _Pure()
#: The tightest first: "auto" is the first that is valid.
ACCOUNTANTS: Final[tuple[Accountant, ...]] = (EXACT, ZCDP, PURE)
_NAMES: Final = [f"`{one.name}`" for one in ACCOUNTANTS]
#: Their names, for the reference of manifests.
ACCOUNTANT_NAMES: Final = f"{', '.join(_NAMES[:-1])} or {_NAMES[-1]}"


def accountant_named(name: str) -> Accountant:
    """Find the accountant with a name from a manifest or an option."""
    for one in ACCOUNTANTS:
        if one.name == name:
            return one
    names = ", ".join([AUTO, *(one.name for one in ACCOUNTANTS)])
    raise PrivacyError(f"accountant must be one of {names}, got {str(name)[:40]!r}")


def resolve(name: str, parts: Iterable[Part]) -> Accountant:
    """Choose the accountant for some noise, up to a common factor.

    Args:
        name: name of an accountant, or "auto" for the first that is valid at a delta above 0.
        parts: noise and sensitivities.

    Raises:
        PrivacyError: there is no such accountant, or it is not valid.
    """
    parts = tuple(parts)
    if name == AUTO:
        return next(one for one in ACCOUNTANTS if not one.is_pure and not one.objection(parts))
    used = accountant_named(name)
    if objection := used.objection(parts):
        raise PrivacyError(objection)
    return used


def privacy_curve(name: str, parts: Iterable[Part]) -> Curve:
    """From epsilon to the delta of all this noise, by an accountant, rounded up."""
    parts = checked(parts)
    return resolve(name, parts).curve(parts)


def total_rho(parts: Iterable[Part]) -> Fraction:
    """Sum of the costs of all levels and tables in zCDP."""
    return sum((noise.rho(change.squared) for noise, change in parts), Fraction(0))


def pure_epsilon(parts: Iterable[Part]) -> Fraction | None:
    """Exact cost of Laplace noise with delta 0; None if some noise is Gaussian."""
    parts = tuple(parts)
    if _gaussian(parts):
        return None
    return sum((noise.epsilon(change.l1) for noise, change in parts), Fraction(0))


def _gaussian(parts: Iterable[Part]) -> list[Part]:
    """Select the parts with Gaussian noise."""
    return [part for part in parts if not part[0].is_laplace]


def _lattice(parts: Iterable[Part]) -> LossLattice | None:
    """Lattice of the cells with Gaussian noise that one trip changes; None if there is none."""
    return LossLattice.of((noise.square, change.sides) for noise, change in parts)


def _without_noise(epsilon: Fraction) -> float:
    """Delta without any change, at an epsilon that may be negative."""
    return -math.expm1(_down(epsilon)) * (1 + 2.0**-50) if epsilon < 0 else 0.0


def _by_zcdp(rho: Fraction, epsilon: Fraction) -> float:
    return _delta_from_log(_log_delta(_up(rho), _down(epsilon)))


def _laplace_losses(parts: Iterable[Part]) -> list[tuple[float, Fraction]]:
    """Privacy losses of cells with Laplace noise of scale b, with upper bounds of probabilities.

    One side of a change, of m trips, loses at worst m / b with probability 1 / (1 + exp(-m / b))
    and -m / b otherwise (docs/proofs/accounting.md, section 7).
    """
    found = [(1.0, Fraction(0))]
    for noise, change in parts:
        rate = change.trips / noise.scale
        odds = math.exp(-float(rate))
        # Rounding the rate moves the exponential by as many units; all else by fewer than 16.
        slack = 1 + (16 + float(rate)) * 2.0**-52
        more, less = slack / (1 + odds), slack * odds / (1 + odds)
        for _ in range(change.sides):
            merged: dict[Fraction, float] = {}
            for weight, loss in found:
                for chance, lost in ((more, rate), (less, -rate)):
                    whole = merged.get(loss + lost, 0.0) + weight * chance
                    merged[loss + lost] = whole * (1 + 2.0**-51)
            found = [(weight, loss) for loss, weight in merged.items()]
        if len(found) > _MOST_LOSSES:
            found = _on_grid(found)
    return found


def _on_grid(losses: Iterable[tuple[float, Fraction]]) -> list[tuple[float, Fraction]]:
    """Round losses to a grid; each is divided between its two neighbours.

    The mean of exp(-loss) is unchanged, so delta does not fall (docs/proofs/accounting.md, section
    7).
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


def checked(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Check the values of noise and sensitivities."""
    parts = tuple(parts)
    if not parts:
        raise PrivacyError("nothing is measured, so nothing can be accounted for")
    for noise, change in parts:
        if noise.square <= 0 or change.squared <= 0:
            raise PrivacyError(
                "the square of noise and the squared sensitivity must be > 0, got "
                f"{noise.square} and {change.squared}"
            )
        if change.trips == 1 and change.sides != change.squared:
            raise PrivacyError(
                "one trip changes as many cells as its squared sensitivity, by one each, got "
                f"{change.sides} and {change.squared}"
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
    """A delta of at least exp(log_delta), and at least the smallest supported one."""
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
