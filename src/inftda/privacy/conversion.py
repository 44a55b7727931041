"""From zCDP to (epsilon, delta): the paper's lemma 21, and the tight conversion.

Both hold for any mechanism with that rho, so for every unit of privacy. Rounding is upward:
in the tight conversion every order gives a valid bound, so the order is optimised in plain
floats and only the bound at that order has to be on the safe side.

Proofs: `docs/proofs/accounting.md`, section 2.
"""

import math
from collections.abc import Iterable
from fractions import Fraction

from inftda.privacy.levels import MIN_DELTA, Curve, Measured, total_rho


def paper_curve(levels: Iterable[Measured]) -> Curve:
    """Epsilon = rho + 2 sqrt(rho log(1 / delta)), solved for delta."""
    rho = _up(total_rho(levels))
    return lambda epsilon: delta_from_log(_paper_log_delta(rho, epsilon))


def zcdp_curve(levels: Iterable[Measured]) -> Curve:
    """The least delta that rho-zCDP implies by its Rényi divergences."""
    rho = _up(total_rho(levels))
    return lambda epsilon: delta_from_log(_tight_log_delta(rho, epsilon))


def paper_rho(epsilon: float, delta: float) -> float:
    """The rho for which the paper's conversion gives (epsilon, delta), to rounding."""
    log_odds = -math.log(delta)
    return (epsilon / (math.sqrt(log_odds + epsilon) + math.sqrt(log_odds))) ** 2


def delta_from_log(log_delta: float) -> float:
    """A delta that is not below exp(log_delta), nor below what is accounted for."""
    if log_delta >= 0:
        return 1.0
    return max(MIN_DELTA, math.exp(log_delta) * (1 + 2.0**-50))


def _paper_log_delta(rho: float, epsilon: float) -> float:
    if epsilon <= rho:
        return 0.0
    # The difference is exact to the last digit; 4 further roundings, so 2^-50 covers them
    # unless epsilon and rho cancel, when the exponent is near 0 and harmless.
    margin = epsilon - rho - 2.0**-52 * epsilon
    return -(1 - 2.0**-50) * max(margin, 0.0) ** 2 / (4 * rho)


def _tight_log_delta(rho: float, epsilon: float) -> float:
    """Log of min over a > 1 of exp((a-1)(a rho - epsilon)) / (a-1) * (1 - 1/a)^a, upward."""
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


def _up(value: Fraction) -> float:
    """The float at or above `value`."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)
