"""Do the accountants of the installed build agree with one another, and with plain arithmetic?

Libraries change under a program: a new version of one of them could make a guarantee wrong
without any error. So known figures and orders that must hold are recomputed here, in about
two seconds, most of which is the import of dp-accounting.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from inftda.checks import Check
from inftda.privacy.accounting import delta_of, epsilon_of, max_rho
from inftda.privacy.levels import Measured, Share, levels_at

#: Six levels, one person replaced, one trip: epsilon, delta and the noise scales that two
#: conversions give, which depend on no library.
_KNOWN: Final = ((0.1, 210.546, 169.509), (1.0, 21.308, 18.674), (10.0, 2.357, 2.228))
_DELTA: Final = 1e-8
_SHARES: Final = (Share(Fraction(1), 2, 2),) * 6


def self_check_accounting() -> list[Check]:
    """All checks of the accountants."""
    return list(_checks())


def _checks() -> Iterator[Check]:
    for epsilon, paper, zcdp in _KNOWN:
        scales = {name: _scale(name, epsilon) for name in ("paper", "zcdp", "exact")}
        shown = ", ".join(f"{name} {scale:.3f}" for name, scale in scales.items())
        known = abs(scales["paper"] - paper) < 1e-3 and abs(scales["zcdp"] - zcdp) < 1e-3
        yield Check(f"known noise scales at epsilon {epsilon:g}", known, shown)
        ordered = scales["exact"] < scales["zcdp"] < scales["paper"]
        yield Check(f"tighter accountants need less noise at epsilon {epsilon:g}", ordered, shown)
    for sigma2, epsilon in ((Fraction(2), 5.0), (Fraction(9), 2.0), (Fraction(400), 0.4)):
        yield _against_library(sigma2, epsilon)
    yield _against_plain_sum()
    yield _there_and_back()


def _scale(accountant: str, epsilon: float) -> float:
    rho = max_rho(accountant, epsilon=epsilon, delta=_DELTA, parts=_SHARES)
    return math.sqrt(levels_at(rho, _SHARES)[0].sigma2)


def _against_library(sigma2: Fraction, epsilon: float) -> Check:
    levels = [Measured(sigma2, 2, 2)] * 3
    exact = delta_of("exact", epsilon=epsilon, levels=levels)
    library = delta_of("pld", epsilon=epsilon, levels=levels)
    general = delta_of("zcdp", epsilon=epsilon, levels=levels)
    # The library rounds losses up, so it may only be above; transforms blur the last 1e-11.
    ok = exact <= library * (1 + 1e-6) + 1e-11 and library <= 1.15 * exact + 1e-10
    return Check(
        f"exact, library and zCDP agree at sigma {math.sqrt(sigma2):.3g}",
        ok and exact < general,
        f"delta {exact:.4g}, {library:.4g}, {general:.4g}",
    )


def _against_plain_sum() -> Check:
    """One shift: the definition of delta, term by term, in exact logarithms and one sum."""
    sigma2, epsilon = Fraction(2), 1.5
    weights = {x: math.exp(-(x**2) / 4) for x in range(-40, 41)}
    whole = math.fsum(weights.values())
    plain = math.fsum(
        max(0.0, weights[x] - math.exp(epsilon) * math.exp(-((x - 1) ** 2) / 4)) / whole
        for x in weights
    )
    exact = delta_of("exact", epsilon=epsilon, levels=[Measured(sigma2, 1, 1)])
    ok = plain <= exact <= plain * (1 + 1e-6)
    return Check("delta equals its definition", ok, f"{exact:.9g} and {plain:.9g}")


def _there_and_back() -> Check:
    levels = levels_at(max_rho("exact", epsilon=1, delta=_DELTA, parts=_SHARES), _SHARES)
    epsilon = epsilon_of("exact", delta=_DELTA, levels=levels)
    return Check("epsilon of the noise for epsilon", abs(epsilon - 1) < 1e-6, f"{epsilon:.9f}")
